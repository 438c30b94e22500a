//! What a guest is given of a system around it, beside its files. A run depends on it, so a trace records it.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::{HostFault, MEMORY_BYTES_MAX, differing};

/// Arguments, variables and standard input of a guest, and how it is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Environment {
    /// Arguments, after the name of the program. Where one has [`Environment::FILE`] in it, a file is drawn, and its path put
    /// there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Further arguments that may be drawn.
    #[serde(skip_serializing_if = "is_zero")]
    pub args_drawn_max: u32,
    /// Variables, each `NAME=VALUE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vars: Vec<String>,
    /// Bytes that all files may have together.
    pub files_bytes_max: u64,
    /// What standard input holds. By default it is drawn for a program that is called by `_start`, and else empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Stdin>,
    /// Faults that may strike calls to the system, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<HostFault>,
    /// The export that is called once in a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Whether it is a failure that the guest ends itself with a code other than 0. By default it is, but for a program that
    /// is called by `_start`, which may say so that its input is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fails_on_exit: Option<bool>,
    /// Whether a state in which no rule may be called is no failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allows_deadlock: bool,
    /// Functions of a component, of which an error that they return is a failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors_that_fail: Vec<String>,
}

/// What standard input holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdin {
    /// These bytes.
    #[serde(with = "hex")]
    Bytes(Arc<[u8]>),
    /// Bytes that are drawn when they are first read.
    Drawn,
}

impl Default for Environment {
    fn default() -> Environment {
        Environment {
            args: Vec::new(),
            args_drawn_max: 0,
            vars: Vec::new(),
            files_bytes_max: 64 << 20,
            stdin: None,
            faults: Vec::new(),
            entry: None,
            fails_on_exit: None,
            allows_deadlock: false,
            errors_that_fail: Vec::new(),
        }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Environment {
    /// Refuses what would let a guest take any memory there is: somebody else may have written it.
    ///
    /// # Errors
    /// It would.
    pub fn validate(&self) -> Result<()> {
        let bytes = self.files_bytes_max;
        ensure!(
            bytes <= MEMORY_BYTES_MAX,
            "it lets files take {bytes} bytes, and {MEMORY_BYTES_MAX} are the most"
        );
        Ok(())
    }

    /// The flags by which it differs from another one.
    pub fn flags_beside(&self, other: &Environment) -> Vec<&'static str> {
        let Environment {
            args,
            args_drawn_max,
            vars,
            files_bytes_max,
            stdin,
            faults,
            entry,
            fails_on_exit,
            allows_deadlock,
            errors_that_fail,
        } = self;
        let parts = [
            ("arguments", *args == other.args),
            ("--draw-args", *args_drawn_max == other.args_drawn_max),
            ("--env", *vars == other.vars),
            ("--files-max", *files_bytes_max == other.files_bytes_max),
            ("--stdin or --draw-stdin", *stdin == other.stdin),
            ("--faults", *faults == other.faults),
            ("--entry", *entry == other.entry),
            ("--fail-on-exit", *fails_on_exit == other.fails_on_exit),
            ("--allow-deadlock", *allows_deadlock == other.allows_deadlock),
            ("--error-is-failure", *errors_that_fail == other.errors_that_fail),
        ];
        differing(parts)
    }

    /// What stands in an argument for the path of a drawn file, as for AFL.
    pub const FILE: &str = "@@";

    /// Whether a file is drawn.
    pub fn draws_file(&self) -> bool {
        self.args.iter().any(|arg| arg.contains(Environment::FILE))
    }

    /// Whether a trace need not record it.
    pub(crate) fn is_default(&self) -> bool {
        *self == Environment::default()
    }
}

/// Bytes as pairs of hexadecimal digits.
mod hex {
    use super::*;
    use serde::{Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, to: S) -> Result<S::Ok, S::Error> {
        let mut text = String::new();
        bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("writing to a string works"));
        to.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        super::super::line::bytes_of(&String::deserialize(from)?).map_err(de::Error::custom)
    }
}
