//! Faults in the calls that a guest makes to its system.

use serde::{Deserialize, Serialize};

/// A way in which a call to the system goes wrong. Whether it strikes a call is a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostFault {
    /// A read gives fewer bytes than there are.
    ShortRead,
    /// A write takes fewer bytes than are given.
    ShortWrite,
    /// A call on a file fails with `EIO`.
    Eio,
    /// A call that needs room fails with `ENOSPC`.
    Enospc,
    /// A call that may wait fails with `EINTR`.
    Eintr,
    /// A read or write fails with `EAGAIN`.
    Eagain,
    /// A memory does not grow.
    MemoryGrow,
    /// The clock jumps when it is read: that of real time to and fro, the monotonic one ahead.
    ClockJump,
    /// What is random is drawn.
    Random,
    /// The program ends at a call that changes files, loses what it had not synced, or a part of it, and is started again.
    Crash,
}

/// All of them, by their names in flags and files.
const NAMES: [(&str, HostFault); 10] = [
    ("short-read", HostFault::ShortRead),
    ("short-write", HostFault::ShortWrite),
    ("eio", HostFault::Eio),
    ("enospc", HostFault::Enospc),
    ("eintr", HostFault::Eintr),
    ("eagain", HostFault::Eagain),
    ("memory-grow", HostFault::MemoryGrow),
    ("clock-jump", HostFault::ClockJump),
    ("random", HostFault::Random),
    ("crash", HostFault::Crash),
];

impl HostFault {
    /// The faults that a name stands for: one of them, or a group (`fs`, `memory`, `clock`).
    ///
    /// # Errors
    /// Another name; what there is.
    pub fn named(name: &str) -> Result<Vec<HostFault>, String> {
        let group = match name {
            "fs" => &NAMES[..6],
            "memory" => &NAMES[6..7],
            "clock" => &NAMES[7..8],
            _ => {
                let found = NAMES.iter().find(|(known, _)| *known == name);
                return found.map(|(_, fault)| vec![*fault]).ok_or_else(|| {
                    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
                    format!("there are fs, memory, clock, and {}", names.join(", "))
                });
            }
        };
        Ok(group.iter().map(|(_, fault)| *fault).collect())
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, fault)| *fault == self).map_or("", |(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_in_files() {
        for (name, fault) in NAMES {
            assert_eq!(serde_json::to_string(&fault).unwrap(), format!("\"{name}\""));
            assert_eq!((HostFault::named(name), fault.name()), (Ok(vec![fault]), name));
        }
        assert_eq!(HostFault::named("clock"), Ok(vec![HostFault::ClockJump]));
        let groups: Vec<_> =
            ["fs", "memory", "clock", "random", "crash"].map(|name| HostFault::named(name).unwrap()).concat();
        assert_eq!(groups, NAMES.map(|(_, fault)| fault));
        assert_eq!(
            HostFault::named("disk").unwrap_err(),
            "there are fs, memory, clock, and short-read, short-write, eio, enospc, eintr, eagain, memory-grow, \
             clock-jump, random, crash"
        );
    }
}
