//! What of the files is on the disk: a crash leaves that, and of the rest a part that is drawn.
//!
//! Changes of files are pending until `fsync`. It writes back the bytes of a file, and the changes of entries that name the
//! file or a directory above it; of a directory, those in it; and what these need. After a crash, of the pending bytes each block is there or
//! not, and of the pending changes of entries as many as a journal wrote back: some of the first. A disk that is nearly full writes all back,
//! since what was removed takes room until then.
//!
//! What lies below `/witness` is on the disk at once, and no fault strikes there: a harness notes in it what it was promised.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::State;
use super::content::Content;
use super::errno::Answer;
use super::files::{Files, Ino, Node, entry_bytes};

/// Bytes that reach the disk together.
pub(super) const BLOCK: u64 = 4096;
/// Changes that may be pending; before there are more the first is written back.
pub(super) const PENDING_MAX: usize = 256;
/// Pending blocks of which a crash draws of each whether it is there; of those before them some of the first are.
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
    Renamed { from: (Ino, Arc<str>), to: (Ino, Arc<str>), ino: Ino, replaced: Option<Ino> },
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

    /// What is not there any more once it is made: if that is a directory, it must be empty.
    fn gone(&self) -> Option<Ino> {
        match self {
            Change::Removed { ino, .. } => Some(*ino),
            Change::Renamed { replaced, .. } => *replaced,
            _ => None,
        }
    }

    /// What it may take of the disk: entries, inodes and bytes.
    fn room(&self) -> (u64, usize, u64) {
        let entries = self.entries().iter().map(|(_, name)| entry_bytes(name)).sum();
        match self {
            Change::Bytes { .. } => (0, 0, BLOCK),
            Change::Made { what: Made::Link(target), .. } => (entries + target.len() as u64, 1, 0),
            Change::Made { .. } => (entries, 1, 0),
            _ => (entries, 0, 0),
        }
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
            Change::Renamed { from, to, ino, .. }
                if files.has_directory(from.0) && files.has_directory(to.0) =>
            {
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
            // It is after none that it may need.
            match self.is_tight(self.pending.iter().take(1)) {
                true => self.write_back(now, |_| true),
                false => self.pending.remove(0).apply(&mut self.files, now),
            }
        }
        self.pending.push(change);
    }

    /// Writes back the pending changes of which `is_due` says so, and those before them that they need, in order.
    fn write_back(&mut self, now: u64, is_due: impl Fn(&Change) -> bool) {
        let (mut names, mut needed, mut gone) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut due: Vec<bool> = vec![false; self.pending.len()];
        for (change, due) in self.pending.iter().zip(&mut due).rev() {
            let entries = change.entries();
            // A name cannot be given while the disk has it still for something else.
            let takes_name = entries.iter().any(|entry| names.contains(entry));
            let is_made_for = matches!(change, Change::Made { ino, .. } if needed.contains(ino));
            // What is removed is empty by then, if it is a directory, and has its other names, if it is a file.
            let empties = entries.iter().any(|(directory, _)| gone.contains(directory));
            let names_it = change.is_of_entry() && gone.contains(&change.ino());
            *due = is_due(change) || takes_name || is_made_for || empties || names_it;
            if *due {
                needed.extend(entries.iter().map(|(directory, _)| *directory));
                needed.insert(change.ino());
                names.extend(entries);
                gone.extend(change.gone());
            }
        }
        if self.is_tight(self.pending.iter().zip(&due).filter(|(_, due)| **due).map(|(change, _)| change)) {
            due.fill(true);
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

    /// Whether there may be no room for all of these.
    fn is_tight<'c>(&self, changes: impl Iterator<Item = &'c Change>) -> bool {
        let rooms = changes.map(Change::room);
        let sum = |sum: (u64, usize, u64), room: (u64, usize, u64)| {
            (sum.0 + room.0, sum.1 + room.1, sum.2 + room.2)
        };
        let (texts, inodes, bytes) = rooms.fold((0, 0, 0), sum);
        !self.files.has_room(texts, inodes, bytes)
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

    /// What a crash leaves: `keeps` says how many of the changes of entries, of so many, are there, how many of the blocks but the last, and then
    /// for each of those whether it is. Nothing is open any more.
    pub(crate) fn crash<E>(&mut self, mut keeps: impl FnMut(Kept) -> Result<usize, E>) -> Result<(), E> {
        let now = self.now();
        let Some(disk) = &mut self.disk else { return Ok(()) };
        let pending = std::mem::take(&mut disk.pending);
        let entries = pending.iter().filter(|change| change.is_of_entry()).count();
        let mut first = (pending.len() - entries).saturating_sub(DRAWN_MAX);
        let mut entries_left = if entries > 0 { keeps(Kept::First(entries))? } else { 0 };
        let mut first_left = if first > 0 { keeps(Kept::First(first))? } else { 0 };
        let is_of_first = |left: &mut usize| std::mem::replace(left, left.saturating_sub(1)) > 0;
        for change in &pending {
            let is_kept = if change.is_of_entry() {
                is_of_first(&mut entries_left)
            } else if is_of_first(&mut first) {
                is_of_first(&mut first_left)
            } else {
                disk.files.is_file(change.ino()) && keeps(Kept::Block)? > 0
            };
            if is_kept {
                change.apply(&mut disk.files, now);
            }
        }
        self.files = disk.files.clone();
        disk.witness.retain(|ino| disk.files.contains(*ino));
        Ok(())
    }
}

/// What a crash may leave or not.
pub(crate) enum Kept {
    /// Some of the first of so many changes.
    First(usize),
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
mod tests;
