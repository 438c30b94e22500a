//! The write-ahead journal: an entry is on disk before the ledger acts on it.

use spelunk_guest::prelude::*;

fault!(
    /// The disk takes no more entries.
    pub DISK_FULL,
    "disk_full"
);

/// What happened to the accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Opened { name: String, amount: u32 },
    Deposited { name: String, amount: u32 },
    Withdrawn { name: String, amount: u32 },
    Transferred { from: String, to: String, amount: u32 },
    Closed { name: String },
}

/// The entry could not be written; the journal is as before.
#[derive(Debug, PartialEq, Eq)]
pub struct DiskFull;

#[derive(Clone, Debug, Default)]
pub struct Journal {
    entries: Vec<Entry>,
}

impl Journal {
    pub fn append(&mut self, entry: Entry) -> Result<(), DiskFull> {
        if DISK_FULL.is_active() {
            return Err(DiskFull);
        }
        self.entries.push(entry);
        Ok(())
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}
