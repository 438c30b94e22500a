//! What of the files is on the disk: a crash leaves that, and of the rest a part that is drawn.
//!
//! Changes of files are pending until `fsync`. It writes back the bytes of a file, and the changes of entries that name the
//! file or a directory above it; of a directory, those in it. After a crash, of the pending bytes each block is there or not,
//! and of the pending changes of entries as many as a journal wrote back: some of the first.
//!
//! What lies below `/witness` is on the disk at once, and no crash strikes there: a harness notes in it what it was promised.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::State;
use super::content::Content;
use super::errno::Answer;
use super::files::{Files, Ino, Node};

/// Bytes that reach the disk together.
pub(super) const BLOCK: u64 = 4096;
/// Changes that may be pending; before there are more the first is written back.
pub(super) const PENDING_MAX: usize = 256;
/// Pending changes of which a crash draws whether they are there; of those before them all are.
const DRAWN_MAX: usize = 32;

/// A disk, and what is to be written to it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Disk {
    pub(super) files: Files,
    pub(super) pending: Vec<Change>,
    /// `/witness` and what lies below it.
    pub(super) witness: BTreeSet<Ino>,
}

/// A change of files.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Change {
    Bytes { ino: Ino, offset: u64, bytes: Arc<[u8]> },
    Size { ino: Ino, size: u64 },
    Made { directory: Ino, name: Arc<str>, ino: Ino, what: Made },
    Linked { directory: Ino, name: Arc<str>, ino: Ino },
    Removed { directory: Ino, name: Arc<str>, ino: Ino },
    Renamed { from: (Ino, Arc<str>), to: (Ino, Arc<str>), ino: Ino },
}

/// What an entry was made for.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Made {
    File,
    Directory,
    Link(Arc<str>),
}

impl Change {
    /// The inode that it is of.
    pub(super) fn ino(&self) -> Ino {
        match self {
            Change::Bytes { ino, .. }
            | Change::Size { ino, .. }
            | Change::Made { ino, .. }
            | Change::Linked { ino, .. }
            | Change::Removed { ino, .. }
            | Change::Renamed { ino, .. } => *ino,
        }
    }

    fn is_of_entry(&self) -> bool {
        !matches!(self, Change::Bytes { .. } | Change::Size { .. })
    }

    /// The entries that it changes: their directories and names.
    fn entries(&self) -> Vec<(Ino, &Arc<str>)> {
        match self {
            Change::Made { directory, name, .. }
            | Change::Linked { directory, name, .. }
            | Change::Removed { directory, name, .. } => vec![(*directory, name)],
            Change::Renamed { from, to, .. } => vec![(from.0, &from.1), (to.0, &to.1)],
            Change::Bytes { .. } | Change::Size { .. } => Vec::new(),
        }
    }

    /// Whether it changes the entries of a directory.
    fn is_in(&self, directory: Ino) -> bool {
        self.entries().iter().any(|(at, _)| *at == directory)
    }

    /// Makes the change; nothing where what it needs is not there.
    fn apply(&self, files: &mut Files, now: u64) {
        let done = match self {
            Change::Bytes { ino, offset, bytes } if files.is_file(*ino) => {
                files.write(*ino, *offset, bytes, now)
            }
            Change::Size { ino, size } if files.is_file(*ino) => files.resize(*ino, *size, now),
            Change::Bytes { .. } | Change::Size { .. } => Ok(()),
            Change::Made { directory, name, ino, what } if files.has_directory(*directory) => {
                let node = match what {
                    Made::File => Node::File(Content::default()),
                    Made::Directory => Node::Directory { entries: BTreeMap::new(), parent: *directory },
                    Made::Link(target) => Node::Link(target.clone()),
                };
                files.create_as(*ino, *directory, name, node, now)
            }
            Change::Linked { directory, name, ino }
                if files.has_directory(*directory) && files.contains(*ino) =>
            {
                files.link(*directory, name, *ino, now)
            }
            Change::Removed { directory, name, ino } if files.has_directory(*directory) => {
                match files.lookup(*directory, name) {
                    Ok(Some(found)) if found == *ino => files.remove_any(*directory, name, now),
                    _ => Ok(()),
                }
            }
            Change::Renamed { from, to, ino } if files.has_directory(from.0) && files.has_directory(to.0) => {
                match files.lookup(from.0, &from.1) {
                    Ok(Some(found)) if found == *ino => {
                        let replaced = files.rename((from.0, &from.1), (to.0, &to.1), now, &mut 0);
                        replaced.map(|replaced| replaced.into_iter().for_each(|ino| files.drop_unused(ino)))
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        };
        // A disk that is as full as the files does not take what they took: then it stays as it was.
        let _: Answer<()> = done;
    }
}

impl Disk {
    /// A disk that holds all of these files, of which those below one directory are the harness's own.
    pub(super) fn new(files: Files, witness: Ino) -> Disk {
        Disk { files, pending: Vec::new(), witness: BTreeSet::from([witness]) }
    }

    /// Whether a number may not be given to another file: what it stood for may come back.
    pub(super) fn holds(&self, ino: Ino) -> bool {
        self.files.contains(ino) || self.pending.iter().any(|change| change.ino() == ino)
    }

    /// What it holds beside its files, about.
    pub(super) fn held_bytes(&self) -> usize {
        let bytes = |change: &Change| if let Change::Bytes { bytes, .. } = change { bytes.len() } else { 0 };
        let pending = self.pending.iter().map(|change| size_of::<Change>() + bytes(change)).sum::<usize>();
        size_of::<Disk>() + pending + self.witness.len() * size_of::<Ino>()
    }

    /// Takes a change that was made to the files.
    fn take(&mut self, change: Change, now: u64) {
        if self.pending.len() >= PENDING_MAX {
            self.pending.remove(0).apply(&mut self.files, now);
        }
        self.pending.push(change);
    }

    /// Writes back the pending changes of which `is_due` says so, and those before them of the same entries, in order.
    fn write_back(&mut self, now: u64, is_due: impl Fn(&Change) -> bool) {
        let mut names = BTreeSet::new();
        let mut due: Vec<bool> = vec![false; self.pending.len()];
        for (change, due) in self.pending.iter().zip(&mut due).rev() {
            let entries = change.entries();
            // A name cannot be given while the disk has it still for something else.
            *due = is_due(change) || entries.iter().any(|entry| names.contains(entry));
            if *due {
                names.extend(entries);
            }
        }
        let mut due = due.into_iter();
        let (due, rest): (Vec<Change>, _) =
            std::mem::take(&mut self.pending).into_iter().partition(|_| due.next() == Some(true));
        self.pending = rest;
        due.iter().for_each(|change| change.apply(&mut self.files, now));
        // Bytes of a file that is gone are written nowhere.
        let made = self.pending.iter().filter(|change| matches!(change, Change::Made { .. }));
        let made: BTreeSet<Ino> = made.map(Change::ino).collect();
        let files = &self.files;
        self.pending.retain(|change| {
            change.is_of_entry() || files.contains(change.ino()) || made.contains(&change.ino())
        });
    }
}

impl State {
    /// Whether a crash may come.
    pub(crate) fn may_crash(&self) -> bool {
        self.disk.is_some()
    }

    /// Whether it is the harness's own, which no fault strikes.
    pub(crate) fn is_witness(&self, ino: Ino) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.witness.contains(&ino))
    }

    /// Takes a change that was made to the files: where a crash may come, it is pending; of the harness's own it is on the
    /// disk at once.
    pub(super) fn changed(&mut self, change: Change, place: Ino) {
        let now = self.now();
        let Some(disk) = &mut self.disk else { return };
        if !disk.witness.contains(&place) {
            return disk.take(change, now);
        }
        if let Change::Made { ino, .. } = change {
            disk.witness.insert(ino);
        }
        change.apply(&mut disk.files, now);
    }

    /// `fsync` of a file or directory.
    pub(crate) fn sync(&mut self, ino: Ino) {
        let now = self.now();
        let is_directory = self.files.is_directory(ino);
        let mut above = BTreeSet::new();
        if !is_directory {
            above.extend(self.directories_above(ino));
        }
        let Some(disk) = &mut self.disk else { return };
        disk.write_back(now, |change| match is_directory {
            true => change.is_in(ino),
            false => change.ino() == ino || change.is_of_entry() && above.contains(&change.ino()),
        });
    }

    /// The directories that lead to a file, by all of its names.
    fn directories_above(&self, ino: Ino) -> BTreeSet<Ino> {
        let mut above = BTreeSet::new();
        let holds = |entries: &BTreeMap<Arc<str>, Ino>| entries.values().any(|child| *child == ino);
        for (directory, _) in self.files.iter().filter(|(_, inode)| match &inode.node {
            Node::Directory { entries, .. } => holds(entries),
            _ => false,
        }) {
            let mut at = directory;
            while above.insert(at) {
                at = self.files.parent(at);
            }
        }
        above
    }

    /// What a crash leaves: `keeps` says how many of the changes of entries, of so many, are there, and then for each block
    /// of bytes whether it is. Nothing is open any more.
    pub(crate) fn crash<E>(&mut self, mut keeps: impl FnMut(Kept) -> Result<usize, E>) -> Result<(), E> {
        let now = self.now();
        let Some(disk) = &mut self.disk else { return Ok(()) };
        let pending = std::mem::take(&mut disk.pending);
        let (before, drawn) = pending.split_at(pending.len().saturating_sub(DRAWN_MAX));
        before.iter().for_each(|change| change.apply(&mut disk.files, now));
        let entries = drawn.iter().filter(|change| change.is_of_entry()).count();
        let mut left = if entries > 0 { keeps(Kept::Entries(entries))? } else { 0 };
        for change in drawn {
            let is_kept = match change.is_of_entry() {
                true => left > 0,
                false => disk.files.is_file(change.ino()) && keeps(Kept::Block)? > 0,
            };
            if change.is_of_entry() {
                left = left.saturating_sub(1);
            }
            if is_kept {
                change.apply(&mut disk.files, now);
            }
        }
        self.files = disk.files.clone();
        Ok(())
    }
}

/// What a crash may leave or not.
pub(crate) enum Kept {
    /// Some of the first of so many changes of entries.
    Entries(usize),
    /// A block of bytes, or the size of a file.
    Block,
}

/// The blocks that bytes at an offset lie in.
pub(super) fn blocks(offset: u64, bytes: &[u8]) -> Vec<(u64, Arc<[u8]>)> {
    let mut blocks = Vec::new();
    let (mut at, mut rest) = (offset, bytes);
    while !rest.is_empty() {
        let room = BLOCK - at % BLOCK;
        let (now, later) = rest.split_at(rest.len().min(room as usize));
        blocks.push((at, now.into()));
        (at, rest) = (at + now.len() as u64, later);
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Environment, HostFault, Image};
    use crate::machine::system::System;
    use crate::machine::system::files::ROOT;

    /// The content of a file after a crash that keeps nothing of what is pending.
    fn left(state: &mut State, name: &str) -> Option<Vec<u8>> {
        state.crash(|_| Ok::<_, ()>(0)).unwrap();
        let ino = state.files.lookup(ROOT, name).unwrap()?;
        let content = state.files.content(ino).unwrap();
        let mut bytes = vec![0; content.size() as usize];
        content.read(0, &mut bytes);
        Some(bytes)
    }

    fn file(state: &mut State, name: &str, bytes: &[u8]) -> Ino {
        let ino = state.create(ROOT, name, Node::File(Content::default())).unwrap();
        state.write(ino, 0, bytes).unwrap();
        state.sync(ino);
        ino
    }

    fn check(change: impl FnOnce(&mut State), expected: Option<&[u8]>) {
        let environment = Environment { faults: vec![HostFault::Crash], ..Environment::default() };
        let mut system = System::new(&environment, &Image::default(), false).unwrap();
        let state = system.change();
        change(state);
        assert_eq!(left(state, "a").as_deref(), expected);
    }

    #[test]
    fn a_synced_file_keeps_a_name_that_another_had() {
        let removed = |state: &mut State| {
            file(state, "a", b"old");
            state.unlink(ROOT, "a").unwrap();
        };
        check(removed, Some(b"old"));
        let made_again = |state: &mut State| {
            removed(state);
            file(state, "a", b"new");
        };
        check(made_again, Some(b"new"));
        // The name is there, and a sync of the directory takes nothing from it.
        check(|state| (made_again(state), state.sync(ROOT)).0, Some(b"new"));
        let renamed = |state: &mut State| {
            file(state, "a", b"old");
            state.rename((ROOT, "a"), (ROOT, "b"), &mut 0).unwrap();
            file(state, "a", b"new");
        };
        check(renamed, Some(b"new"));
    }

    #[test]
    fn what_a_sync_is_not_of_stays_pending() {
        check(
            |state| {
                file(state, "a", b"old");
                state.unlink(ROOT, "a").unwrap();
                file(state, "b", b"");
            },
            Some(b"old"),
        );
    }
}
