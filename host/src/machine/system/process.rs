//! What a program has of a system beside files and descriptors, where it is one of POSIX.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Bytes that the path of the working directory may have.
pub(crate) const DIRECTORY_MAX: usize = 4096;

/// Exceptions that may be handled at a time.
pub(crate) const CAUGHT_MAX: usize = 256;
/// What a place in a listing counts.
const LISTING_BYTES: usize = 32;

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

impl Process {
    /// What it counts as held.
    pub(super) fn held_bytes(&self) -> usize {
        self.directory.len()
            + self.listings.len() * LISTING_BYTES
            + self.exceptions.caught.len() * size_of::<u32>()
    }

    /// Whether it is as a guest can leave it: what is read from a record need not be. So many descriptors may be open.
    pub(super) fn is_sound(&self, descriptors_max: usize) -> bool {
        self.directory.starts_with('/')
            && self.directory.len() <= DIRECTORY_MAX
            && self.umask <= 0o777
            && self.listings.len() <= descriptors_max
            && self.exceptions.caught.len() <= CAUGHT_MAX
    }
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
