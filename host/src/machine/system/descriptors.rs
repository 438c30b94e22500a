//! Open files and directories.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::errno::{Answer, Errno};
use super::files::Ino;
use super::{State, rights};

/// Descriptors that may be open.
pub(super) const DESCRIPTORS_MAX: usize = 1024;

/// Writes go to the end.
pub(crate) const APPEND: u16 = 1;
/// All flags that WASI knows: append, dsync, nonblock, rsync, sync.
pub(crate) const FLAGS: u16 = 31;

/// An open file, directory or stream.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Descriptor {
    pub(crate) open: Open,
    pub(crate) flags: u16,
    /// What may be done with it, and with what is opened through it.
    pub(crate) rights: u64,
    pub(crate) inheriting: u64,
}

/// What a descriptor stands for.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Open {
    Stdin,
    Stdout,
    Stderr,
    File {
        ino: Ino,
        /// Where the next read or write begins.
        at: u64,
    },
    Directory {
        ino: Ino,
        /// The path under which it was open from the start.
        preopen: Option<Arc<str>>,
    },
}

impl Open {
    /// The inode, where there is one.
    pub(crate) fn ino(&self) -> Option<Ino> {
        match self {
            Open::File { ino, .. } | Open::Directory { ino, .. } => Some(*ino),
            _ => None,
        }
    }
}

impl State {
    /// The descriptor with this number.
    pub(crate) fn descriptor(&self, fd: u32) -> Answer<&Descriptor> {
        self.descriptors.get(&fd).ok_or(Errno::Badf)
    }

    pub(crate) fn descriptor_mut(&mut self, fd: u32) -> Answer<&mut Descriptor> {
        self.descriptors.get_mut(&fd).ok_or(Errno::Badf)
    }

    /// The descriptor, where it has these rights.
    pub(crate) fn with_rights(&self, fd: u32, rights: u64) -> Answer<&Descriptor> {
        let descriptor = self.descriptor(fd)?;
        // The right to move includes the right to know where one is.
        let implied = if descriptor.rights & rights::FD_SEEK != 0 { rights::FD_TELL } else { 0 };
        let missing = rights & !(descriptor.rights | implied);
        if missing & (rights::FD_READ | rights::FD_WRITE) != 0 {
            // As a file that was opened for reading only is no file to write to.
            return Err(Errno::Badf);
        }
        if missing == 0 { Ok(descriptor) } else { Err(Errno::Notcapable) }
    }

    /// The inode of a file that is open with these rights, and where its next read or write begins.
    pub(crate) fn file(&self, fd: u32, rights: u64) -> Answer<(Ino, u64)> {
        match self.descriptor(fd)?.open {
            Open::File { ino, at } => self.with_rights(fd, rights).map(|_| (ino, at)),
            Open::Directory { .. } => Err(Errno::Badf),
            _ => Err(Errno::Spipe),
        }
    }

    /// The inode of a directory that is open with these rights.
    pub(crate) fn directory(&self, fd: u32, rights: u64) -> Answer<Ino> {
        match self.descriptor(fd)?.open {
            Open::Directory { ino, .. } => self.with_rights(fd, rights).map(|_| ino),
            _ => Err(Errno::Notdir),
        }
    }

    /// Opens something, under the lowest number that is free.
    pub(crate) fn add(&mut self, descriptor: Descriptor) -> Answer<u32> {
        self.may_open()?;
        let is_free = |(number, fd): &(u32, &u32)| number != *fd;
        let free = (0..).zip(self.descriptors.keys()).find(is_free);
        let fd = free.map_or(self.descriptors.len() as u32, |(number, _)| number);
        self.descriptors.insert(fd, descriptor);
        Ok(fd)
    }

    /// Whether one more descriptor may be open.
    pub(crate) fn may_open(&self) -> Answer<()> {
        if self.descriptors.len() < DESCRIPTORS_MAX { Ok(()) } else { Err(Errno::Mfile) }
    }

    /// Closes a descriptor.
    pub(crate) fn close(&mut self, fd: u32) -> Answer<()> {
        let closed = self.descriptors.remove(&fd).ok_or(Errno::Badf)?;
        self.process.listings.remove(&fd);
        if let Some(ino) = closed.open.ino() {
            self.let_go(ino);
        }
        Ok(())
    }

    /// Has a descriptor take the number of another, which is closed.
    pub(crate) fn renumber(&mut self, from: u32, to: u32) -> Answer<()> {
        self.descriptor(from)?;
        self.descriptor(to)?;
        if from != to {
            self.close(to)?;
            let moved = self.descriptors.remove(&from).expect("it was looked up");
            self.descriptors.insert(to, moved);
            if let Some(at) = self.process.listings.remove(&from) {
                self.process.listings.insert(to, at);
            }
        }
        Ok(())
    }

    /// Forgets an inode that nothing refers to.
    pub(crate) fn let_go(&mut self, ino: Ino) {
        if self.files.is_unnamed(ino) && !self.is_open(ino) {
            self.files.drop_unused(ino);
            if let Some(disk) = &mut self.disk {
                disk.witness.remove(&ino);
            }
        }
    }

    /// Whether something is open that stands for it.
    pub(super) fn is_open(&self, ino: Ino) -> bool {
        self.descriptors.values().any(|descriptor| descriptor.open.ino() == Some(ino))
            || self.resources.keep(ino)
    }
}
