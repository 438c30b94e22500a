//! Open files and directories.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::errno::{Answer, Errno};
use super::files::{Ino, Node};
use super::{State, rights};

/// Descriptors that may be open.
const DESCRIPTORS_MAX: usize = 1024;

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
        if descriptor.rights & rights != rights {
            // As a file that was opened for reading only is no file to write to.
            let is_mode = rights & !descriptor.rights & (rights::FD_READ | rights::FD_WRITE) != 0;
            return Err(if is_mode { Errno::Badf } else { Errno::Notcapable });
        }
        Ok(descriptor)
    }

    /// The inode of a file that is open with these rights, and where its next read or write begins.
    pub(crate) fn file(&self, fd: u32, rights: u64) -> Answer<(Ino, u64)> {
        match self.with_rights(fd, rights)?.open {
            Open::File { ino, at } => Ok((ino, at)),
            Open::Directory { .. } => Err(Errno::Isdir),
            _ => Err(Errno::Spipe),
        }
    }

    /// The inode of a directory that is open with these rights.
    pub(crate) fn directory(&self, fd: u32, rights: u64) -> Answer<Ino> {
        let descriptor = self.descriptor(fd)?;
        let Open::Directory { ino, .. } = descriptor.open else { return Err(Errno::Notdir) };
        if descriptor.rights & rights != rights { Err(Errno::Notcapable) } else { Ok(ino) }
    }

    /// Opens something, under the lowest number that is free.
    pub(crate) fn add(&mut self, descriptor: Descriptor) -> Answer<u32> {
        if self.descriptors.len() >= DESCRIPTORS_MAX {
            return Err(Errno::Mfile);
        }
        let fd = (0..).find(|fd| !self.descriptors.contains_key(fd)).expect("few are open");
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
        }
        Ok(())
    }

    /// Forgets an inode that nothing refers to.
    pub(crate) fn let_go(&mut self, ino: Ino) {
        if !self.descriptors.values().any(|descriptor| descriptor.open.ino() == Some(ino)) {
            self.files.drop_unused(ino);
        }
    }

    /// Whether every descriptor refers to what it may.
    pub(super) fn has_sound_descriptors(&self) -> bool {
        let is_sound = |descriptor: &Descriptor| match descriptor.open {
            Open::File { ino, .. } => {
                self.files.contains(ino) && matches!(self.files.get(ino).node, Node::File(_))
            }
            Open::Directory { ino, .. } => self.files.contains(ino) && self.files.is_directory(ino),
            _ => true,
        };
        self.descriptors.len() <= DESCRIPTORS_MAX
            && self.process.is_sound(DESCRIPTORS_MAX)
            && self.descriptors.values().all(is_sound)
    }
}
