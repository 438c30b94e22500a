//! What changes files, and is noted where a crash may come.

use std::sync::Arc;

use super::content::Content;
use super::disk::{Change, Made, blocks};
use super::errno::{Answer, Errno};
use super::files::{Ino, Node, ROOT};
use super::{INPUT, State};

impl State {
    /// Makes a new entry.
    pub(crate) fn create(&mut self, directory: Ino, name: &str, node: Node) -> Answer<Ino> {
        let what = match &node {
            Node::File(_) => Made::File,
            Node::Directory { .. } => Made::Directory,
            Node::Link(target) => Made::Link(target.clone()),
        };
        let (now, disk) = (self.now(), self.disk.as_ref());
        let ino =
            self.files.create(directory, name, node, now, |ino| disk.is_some_and(|disk| disk.holds(ino)))?;
        self.changed(Change::Made { directory, name: name.into(), ino, what }, directory);
        Ok(ino)
    }

    /// Makes one more entry of what is no directory.
    pub(crate) fn link(&mut self, directory: Ino, name: &str, ino: Ino) -> Answer<()> {
        self.may_cross(directory, ino)?;
        self.files.link(directory, name, ino, self.now())?;
        self.changed(Change::Linked { directory, name: name.into(), ino }, directory);
        Ok(())
    }

    /// Removes the entry of a file or link.
    pub(crate) fn unlink(&mut self, directory: Ino, name: &str) -> Answer<()> {
        let ino = self.files.unlink(directory, name, self.now())?;
        self.changed(Change::Removed { directory, name: name.into(), ino }, directory);
        self.let_go(ino);
        Ok(())
    }

    /// Removes an empty directory.
    pub(crate) fn remove_directory(&mut self, directory: Ino, name: &str) -> Answer<()> {
        let ino = self.files.remove_directory(directory, name, self.now())?;
        self.changed(Change::Removed { directory, name: name.into(), ino }, directory);
        self.let_go(ino);
        Ok(())
    }

    /// Puts bytes into the file that is drawn. It is on the disk from the start.
    pub(crate) fn put_input(&mut self, bytes: &[u8]) -> Answer<()> {
        let ino = match self.files.lookup(ROOT, INPUT)? {
            Some(ino) => ino,
            None => self.create(ROOT, INPUT, Node::File(Content::default()))?,
        };
        self.resize(ino, 0)?;
        self.write(ino, 0, bytes)?;
        self.sync(ROOT);
        self.sync(ino);
        Ok(())
    }

    /// Gives an entry another name and place, where it replaces what is there. What looking for the place costs is added to
    /// `work`, in bytes.
    pub(crate) fn rename(&mut self, from: (Ino, &str), to: (Ino, &str), work: &mut usize) -> Answer<()> {
        self.may_cross(from.0, to.0)?;
        let ino = self.files.lookup(from.0, from.1)?.ok_or(Errno::Noent)?;
        let replaced = self.files.rename(from, to, self.now(), work)?;
        let (old, new) = ((from.0, Arc::from(from.1)), (to.0, Arc::from(to.1)));
        self.changed(Change::Renamed { from: old, to: new, ino, replaced }, from.0);
        if let Some(replaced) = replaced {
            self.let_go(replaced);
        }
        Ok(())
    }

    /// Writes to a file.
    pub(crate) fn write(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Answer<()> {
        self.files.write(ino, offset, bytes, self.now())?;
        if self.disk.is_some() {
            for (offset, bytes) in blocks(offset, bytes) {
                self.changed(Change::Bytes { ino, offset, bytes }, ino);
            }
        }
        Ok(())
    }

    /// Cuts a file, or appends a hole.
    pub(crate) fn resize(&mut self, ino: Ino, size: u64) -> Answer<()> {
        let before = self.files.content(ino)?.size();
        self.files.resize(ino, size, self.now())?;
        if before != size {
            self.changed(Change::Size { ino, size }, ino);
        }
        Ok(())
    }

    /// What is the harness's own is another file system.
    fn may_cross(&self, one: Ino, other: Ino) -> Answer<()> {
        if self.is_witness(one) == self.is_witness(other) { Ok(()) } else { Err(Errno::Xdev) }
    }
}
