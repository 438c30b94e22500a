//! What a program has of a system beside files and descriptors, where it is one of POSIX.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Bytes that the path of the working directory may have.
pub(crate) const DIRECTORY_MAX: usize = 4096;

/// The part of a process that WASI does not know.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Process {
    /// The working directory: an absolute path.
    pub(crate) directory: String,
    /// Permissions that new files do not get.
    pub(crate) umask: u16,
    /// Where in its listing the next entry of a directory is read, by descriptor; at the start where there is none.
    pub(crate) listings: BTreeMap<u32, u64>,
    /// Exceptions of C++ that are on their way or caught.
    pub(crate) exceptions: Exceptions,
}

/// The exceptions of C++ that are not over, by the addresses of the objects that were thrown.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Exceptions {
    /// The last that was thrown, or 0.
    pub(crate) last: u32,
    /// Those that were thrown and not caught yet.
    pub(crate) uncaught: u32,
    /// Those that are being handled, the innermost last.
    pub(crate) caught: Vec<u32>,
    /// The second result of the last call.
    pub(crate) second: u32,
}

impl Default for Process {
    fn default() -> Process {
        Process {
            directory: "/".to_string(),
            umask: 0o022,
            listings: BTreeMap::new(),
            exceptions: Exceptions::default(),
        }
    }
}
