//! A disk in memory that loses what a real one might when the power fails.

use std::collections::BTreeMap;

use spelunk_guest::prelude::*;

use crate::store::{Disk, FileId, PowerLost};

fault!(
    /// While it is on, each change of the disk may be the one at which the power fails.
    pub POWER_LOSS,
    "power_loss"
);

/// The files, and how much of each would outlast a power loss.
#[derive(Debug, Default)]
pub struct FakeDisk {
    files: BTreeMap<FileId, File>,
    /// Nothing fails, whatever the fault says.
    pub is_steady: bool,
}

#[derive(Debug, Default)]
struct File {
    bytes: Vec<u8>,
    synced_len: usize,
}

impl FakeDisk {
    /// Draws whether the power fails now, and what is left of the files then.
    fn change(&mut self) -> Result<(), PowerLost> {
        if !POWER_LOSS.is_active() || self.is_steady || !draw(weighted(0.1)) {
            return Ok(());
        }
        for (file, File { bytes, synced_len }) in &mut self.files {
            if *synced_len < bytes.len() {
                bytes.truncate(draw(*synced_len..=bytes.len()));
                *synced_len = bytes.len();
                note!("power lost: {} bytes left of file {file}", bytes.len());
            }
        }
        Err(PowerLost)
    }
}

impl Disk for FakeDisk {
    fn files(&self) -> Vec<FileId> {
        self.files.keys().copied().collect()
    }

    fn read(&self, file: FileId) -> &[u8] {
        self.files.get(&file).map_or(&[], |file| &file.bytes)
    }

    fn append(&mut self, file: FileId, bytes: &[u8]) -> Result<(), PowerLost> {
        self.files.entry(file).or_default().bytes.extend(bytes);
        self.change()
    }

    fn sync(&mut self, file: FileId) -> Result<(), PowerLost> {
        self.change()?;
        if let Some(file) = self.files.get_mut(&file) {
            file.synced_len = file.bytes.len();
        }
        Ok(())
    }

    fn replace(&mut self, file: FileId, bytes: &[u8]) -> Result<(), PowerLost> {
        self.change()?;
        self.files.insert(file, File { bytes: bytes.to_vec(), synced_len: bytes.len() });
        self.change()
    }

    fn remove(&mut self, file: FileId) -> Result<(), PowerLost> {
        self.change()?;
        self.files.remove(&file);
        Ok(())
    }
}
