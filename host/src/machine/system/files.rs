//! Files, directories and symbolic links, by number. Paths are resolved elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::content::{Content, SIZE_MAX};
use super::errno::{Answer, Errno};
use super::record::Known;

/// The number of a file, a directory or a link. The lowest that is free is given next, so equal trees are equal states.
pub(crate) type Ino = u32;

/// The directory `/`.
pub(crate) const ROOT: Ino = 1;
/// Files, directories and links that there may be.
pub(super) const INODES_MAX: usize = 16 << 10;
/// Numbers that inodes may have are below this.
pub(super) const INO_MAX: Ino = 1 << 15;
/// What all entries and the targets of all links may count: a record of them is read as a whole.
pub(super) const TEXTS_MAX: u64 = 8 << 20;
/// Bytes of the name of an entry.
pub(super) const NAME_MAX: usize = 255;
/// Bytes that a link's target may have.
pub(crate) const TARGET_MAX: usize = 4096;
/// What an inode counts, and an entry beside its name.
const INODE_BYTES: u64 = 256;
const ENTRY_BYTES: u64 = 64;
/// Looking at one directory on the way up costs as much as reading so many bytes.
const LEVEL_BYTES: usize = 64;
/// Names that a file may have.
const LINKS_MAX: u32 = 1024;

/// A file, a directory or a link.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Inode {
    pub(crate) node: Node,
    pub(crate) times: Times,
    /// Entries that refer to it.
    pub(crate) links: u32,
    /// Who may do what, as POSIX numbers it; the faces of WASI do not look at it.
    pub(crate) mode: u16,
    #[serde(skip)]
    pub(super) known: Known,
}

impl Inode {
    fn new(node: Node, now: u64) -> Inode {
        let mode = if matches!(node, Node::File(_)) { 0o666 } else { 0o777 };
        Inode { node, times: Times::at(now), links: 1, mode, known: Known::default() }
    }

    /// What it counts, beside its entries.
    pub(super) fn bytes(&self) -> u64 {
        let stored = if let Node::File(content) = &self.node { content.stored() } else { 0 };
        INODE_BYTES + stored + self.target_bytes()
    }

    /// Bytes of a link's target.
    pub(super) fn target_bytes(&self) -> u64 {
        if let Node::Link(target) = &self.node { target.len() as u64 } else { 0 }
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Node {
    File(Content),
    Directory { entries: BTreeMap<Arc<str>, Ino>, parent: Ino },
    Link(Arc<str>),
}

/// Nanoseconds since 1970.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) accessed: u64,
    pub(crate) modified: u64,
    pub(crate) changed: u64,
}

impl Times {
    pub(crate) fn at(now: u64) -> Times {
        Times { accessed: now, modified: now, changed: now }
    }
}

/// All of a virtual system's files.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Files {
    pub(super) inodes: BTreeMap<Ino, Arc<Inode>>,
    /// Numbers that were given and are free. Without one, all from [`ROOT`] on are taken.
    #[serde(skip)]
    free: BTreeSet<Ino>,
    /// What the entries and the targets of links count.
    pub(super) texts: u64,
    /// What all of it counts, but for `/`.
    pub(super) bytes: u64,
    pub(super) bytes_max: u64,
}

impl Files {
    /// An empty `/`, for so many bytes.
    pub(crate) fn new(bytes_max: u64, now: u64) -> Files {
        let root = Inode::new(Node::Directory { entries: BTreeMap::new(), parent: ROOT }, now);
        let inodes = BTreeMap::from([(ROOT, Arc::new(root))]);
        Files { inodes, free: BTreeSet::new(), texts: 0, bytes: 0, bytes_max }
    }

    /// The inode with this number, which there is.
    pub(crate) fn get(&self, ino: Ino) -> &Inode {
        &self.inodes[&ino]
    }

    pub(super) fn contains(&self, ino: Ino) -> bool {
        self.inodes.contains_key(&ino)
    }

    fn get_mut(&mut self, ino: Ino) -> &mut Inode {
        let inode = Arc::make_mut(self.inodes.get_mut(&ino).expect("an open or named inode is there"));
        inode.known = Known::default();
        inode
    }

    /// All of them, by number.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (Ino, &Inode)> {
        self.inodes.iter().map(|(ino, inode)| (*ino, &**inode))
    }

    /// Whether there may be no more of them, however small.
    pub(super) fn is_full(&self) -> bool {
        self.inodes.len() >= INODES_MAX || self.texts + entry_bytes("") >= TEXTS_MAX
    }

    pub(crate) fn is_directory(&self, ino: Ino) -> bool {
        matches!(self.get(ino).node, Node::Directory { .. })
    }

    /// The entries of a directory.
    pub(crate) fn entries(&self, directory: Ino) -> Answer<&BTreeMap<Arc<str>, Ino>> {
        match &self.get(directory).node {
            Node::Directory { entries, .. } => Ok(entries),
            _ => Err(Errno::Notdir),
        }
    }

    pub(crate) fn parent(&self, directory: Ino) -> Ino {
        match self.get(directory).node {
            Node::Directory { parent, .. } => parent,
            _ => unreachable!("only a directory is asked for its parent"),
        }
    }

    pub(crate) fn lookup(&self, directory: Ino, name: &str) -> Answer<Option<Ino>> {
        Ok(self.entries(directory)?.get(name).copied())
    }

    fn entries_mut(&mut self, directory: Ino, now: u64) -> &mut BTreeMap<Arc<str>, Ino> {
        let inode = self.get_mut(directory);
        (inode.times.modified, inode.times.changed) = (now, now);
        match &mut inode.node {
            Node::Directory { entries, .. } => entries,
            _ => unreachable!("the caller looked it up in a directory"),
        }
    }

    /// Makes room for bytes of entries and targets, and for others.
    fn charge(&mut self, texts: u64, others: u64) -> Answer<()> {
        let (texts, bytes) = (self.texts + texts, self.bytes + texts + others);
        if texts > TEXTS_MAX || bytes > self.bytes_max {
            return Err(Errno::Nospc);
        }
        (self.texts, self.bytes) = (texts, bytes);
        Ok(())
    }

    pub(super) fn is_file(&self, ino: Ino) -> bool {
        self.inodes.get(&ino).is_some_and(|inode| matches!(inode.node, Node::File(_)))
    }

    pub(super) fn has_directory(&self, ino: Ino) -> bool {
        self.contains(ino) && self.is_directory(ino)
    }

    /// Whether so much can be added: what entries and targets of links count, inodes, and bytes.
    pub(super) fn has_room(&self, texts: u64, inodes: usize, bytes: u64) -> bool {
        let all = self.bytes + texts + bytes + inodes as u64 * INODE_BYTES;
        all <= self.bytes_max && self.texts + texts <= TEXTS_MAX && self.inodes.len() + inodes <= INODES_MAX
    }

    /// Bytes that files can still have.
    pub(crate) fn room(&self) -> u64 {
        self.bytes_max.saturating_sub(self.bytes)
    }

    fn discharge(&mut self, texts: u64) {
        self.texts -= texts;
        self.bytes -= texts;
    }

    /// The number after all that were given.
    fn next(&self) -> Ino {
        ROOT + (self.inodes.len() + self.free.len()) as Ino
    }

    /// Makes a new entry, of an inode whose number is not `taken`.
    pub(super) fn create(
        &mut self,
        directory: Ino,
        name: &str,
        node: Node,
        now: u64,
        taken: impl Fn(Ino) -> bool,
    ) -> Answer<Ino> {
        let all = self.free.iter().copied().chain(self.next()..INO_MAX);
        let ino = all.into_iter().find(|ino| !taken(*ino)).ok_or(Errno::Nospc)?;
        self.create_as(ino, directory, name, node, now)?;
        Ok(ino)
    }

    /// Makes a new entry, of an inode with this number.
    pub(super) fn create_as(
        &mut self,
        ino: Ino,
        directory: Ino,
        name: &str,
        node: Node,
        now: u64,
    ) -> Answer<()> {
        self.may_enter(directory, name)?;
        if let Node::Link(target) = &node {
            check_target(target)?;
        }
        let inode = Inode::new(node, now);
        if self.inodes.len() >= INODES_MAX || self.contains(ino) {
            return Err(Errno::Nospc);
        }
        self.charge(entry_bytes(name) + inode.target_bytes(), INODE_BYTES)?;
        self.free.extend(self.next()..ino);
        self.free.remove(&ino);
        self.inodes.insert(ino, Arc::new(inode));
        self.entries_mut(directory, now).insert(name.into(), ino);
        Ok(())
    }

    /// Whether a name that is not there yet can be put into a directory.
    fn may_enter(&self, directory: Ino, name: &str) -> Answer<()> {
        check_name(name)?;
        // A directory that was removed and is still open takes no entries.
        match self.lookup(directory, name)? {
            Some(_) => Err(Errno::Exist),
            None if self.get(directory).links == 0 => Err(Errno::Noent),
            None => Ok(()),
        }
    }

    /// Makes one more entry of what is no directory.
    pub(crate) fn link(&mut self, directory: Ino, name: &str, ino: Ino, now: u64) -> Answer<()> {
        self.may_enter(directory, name)?;
        match self.get(ino) {
            Inode { node: Node::Directory { .. }, .. } => return Err(Errno::Perm),
            Inode { links: 0, .. } => return Err(Errno::Noent),
            Inode { links: LINKS_MAX.., .. } => return Err(Errno::Mlink),
            _ => {}
        }
        self.charge(entry_bytes(name), 0)?;
        self.entries_mut(directory, now).insert(name.into(), ino);
        let inode = self.get_mut(ino);
        inode.links += 1;
        inode.times.changed = now;
        Ok(())
    }

    /// Removes an entry that is there. What it refers to stays until [`Files::drop_unused`].
    fn remove(&mut self, directory: Ino, name: &str, now: u64) {
        let ino = self.entries_mut(directory, now).remove(name).expect("the caller looked it up");
        self.discharge(entry_bytes(name));
        let inode = self.get_mut(ino);
        inode.links -= 1;
        inode.times.changed = now;
        // Its parent may go while it is still open.
        if let Node::Directory { parent, .. } = &mut inode.node {
            *parent = ROOT;
        }
    }

    /// Removes an entry that is there, and what it refers to where nothing else does; nothing of a directory that is not empty.
    pub(super) fn remove_any(&mut self, directory: Ino, name: &str, now: u64) -> Answer<()> {
        let ino = match self.unlink(directory, name, now) {
            Err(Errno::Isdir) => self.remove_directory(directory, name, now)?,
            removed => removed?,
        };
        self.drop_unused(ino);
        Ok(())
    }

    /// Removes the entry of a file or link; the inode.
    pub(crate) fn unlink(&mut self, directory: Ino, name: &str, now: u64) -> Answer<Ino> {
        let ino = self.lookup(directory, name)?.ok_or(Errno::Noent)?;
        if self.is_directory(ino) {
            return Err(Errno::Isdir);
        }
        self.remove(directory, name, now);
        Ok(ino)
    }

    /// Removes an empty directory; the inode.
    pub(crate) fn remove_directory(&mut self, directory: Ino, name: &str, now: u64) -> Answer<Ino> {
        let ino = self.lookup(directory, name)?.ok_or(Errno::Noent)?;
        if !self.entries(ino)?.is_empty() {
            return Err(Errno::Notempty);
        }
        self.remove(directory, name, now);
        Ok(ino)
    }

    /// Gives an entry another name and place, where it replaces what is there; what that was. What looking for the place
    /// costs is added to `work`, in bytes.
    pub(crate) fn rename(
        &mut self,
        (from, old): (Ino, &str),
        (to, new): (Ino, &str),
        now: u64,
        work: &mut usize,
    ) -> Answer<Option<Ino>> {
        let ino = self.lookup(from, old)?.ok_or(Errno::Noent)?;
        check_name(new)?;
        let replaced = self.lookup(to, new)?;
        if replaced == Some(ino) {
            return Ok(None);
        }
        let is_directory = self.is_directory(ino);
        if is_directory && self.is_within(to, ino, work) {
            return Err(Errno::Inval);
        }
        if self.get(to).links == 0 {
            return Err(Errno::Noent);
        }
        match replaced {
            Some(other) if self.is_directory(other) && !is_directory => return Err(Errno::Isdir),
            Some(other) if !self.is_directory(other) && is_directory => return Err(Errno::Notdir),
            Some(other) if is_directory && !self.entries(other)?.is_empty() => return Err(Errno::Notempty),
            Some(_) => self.remove(to, new, now),
            None => {}
        }
        let (before, after) = (entry_bytes(old), entry_bytes(new));
        self.charge(after.saturating_sub(before), 0)?;
        self.discharge(before.saturating_sub(after));
        self.entries_mut(from, now).remove(old);
        self.entries_mut(to, now).insert(new.into(), ino);
        let inode = self.get_mut(ino);
        inode.times.changed = now;
        if let Node::Directory { parent, .. } = &mut inode.node {
            *parent = to;
        }
        Ok(replaced)
    }

    /// Whether a directory is another, or lies below it.
    fn is_within(&self, mut directory: Ino, above: Ino, work: &mut usize) -> bool {
        while directory != above && directory != ROOT {
            *work += LEVEL_BYTES;
            directory = self.parent(directory);
        }
        directory == above
    }

    /// Whether an inode has no entry.
    pub(super) fn is_unnamed(&self, ino: Ino) -> bool {
        self.inodes.get(&ino).is_some_and(|inode| inode.links == 0)
    }

    /// Forgets an inode that has no entry; the caller knows that it is not open.
    pub(super) fn drop_unused(&mut self, ino: Ino) {
        if !self.is_unnamed(ino) {
            return;
        }
        if let Some(inode) = self.inodes.remove(&ino) {
            self.bytes -= inode.bytes();
            self.texts -= inode.target_bytes();
            self.free.insert(ino);
        }
    }

    /// The content of a file.
    pub(crate) fn content(&self, ino: Ino) -> Answer<&Content> {
        match &self.get(ino).node {
            Node::File(content) => Ok(content),
            Node::Directory { .. } => Err(Errno::Isdir),
            Node::Link(_) => Err(Errno::Loop),
        }
    }

    /// Reads from a file; how many bytes there were.
    pub(crate) fn read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> Answer<usize> {
        Ok(self.content(ino)?.read(offset, out))
    }

    /// Writes to a file.
    pub(crate) fn write(&mut self, ino: Ino, offset: u64, bytes: &[u8], now: u64) -> Answer<()> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(Errno::Fbig)?;
        if end > SIZE_MAX {
            return Err(Errno::Fbig);
        }
        let growth = self.content(ino)?.growth(offset, bytes.len());
        self.charge(0, growth)?;
        self.content_mut(ino, now).write(offset, bytes);
        Ok(())
    }

    /// Cuts a file, or appends a hole.
    pub(crate) fn resize(&mut self, ino: Ino, size: u64, now: u64) -> Answer<()> {
        if size > SIZE_MAX {
            return Err(Errno::Fbig);
        }
        let before = self.content(ino)?.stored();
        let content = self.content_mut(ino, now);
        content.resize(size);
        self.bytes -= before - content.stored();
        Ok(())
    }

    fn content_mut(&mut self, ino: Ino, now: u64) -> &mut Content {
        let inode = self.get_mut(ino);
        (inode.times.modified, inode.times.changed) = (now, now);
        match &mut inode.node {
            Node::File(content) => content,
            _ => unreachable!("the caller looked at its content"),
        }
    }

    pub(crate) fn set_mode(&mut self, ino: Ino, mode: u16, now: u64) {
        let inode = self.get_mut(ino);
        (inode.mode, inode.times.changed) = (mode & 0o7777, now);
    }

    pub(crate) fn set_times(&mut self, ino: Ino, times: Times) {
        self.get_mut(ino).times = times;
    }

    /// The content of a file, to put in what was read of a snapshot.
    pub(super) fn content_read(&mut self, ino: Ino) -> Option<&mut Content> {
        match &mut Arc::make_mut(self.inodes.get_mut(&ino)?).node {
            Node::File(content) => Some(content),
            _ => None,
        }
    }

    /// Finds the numbers that are free, where only the inodes were read.
    pub(super) fn find_free(&mut self) {
        let last = self.inodes.last_key_value().map_or(ROOT, |(last, _)| *last);
        self.free = (ROOT..last).filter(|ino| !self.contains(*ino)).collect();
    }
}

/// What an entry counts.
pub(super) fn entry_bytes(name: &str) -> u64 {
    ENTRY_BYTES + name.len() as u64
}

/// Whether an entry may have this name.
pub(super) fn check_name(name: &str) -> Answer<()> {
    match name {
        "" | "." | ".." => Err(Errno::Inval),
        name if name.len() > NAME_MAX => Err(Errno::Nametoolong),
        name if name.contains(['/', '\0']) => Err(Errno::Inval),
        _ => Ok(()),
    }
}

/// Whether a link may lead to this path. It may be absolute: such a link is there, and following it fails.
pub(super) fn check_target(target: &str) -> Answer<()> {
    match target {
        "" => Err(Errno::Noent),
        target if target.len() > TARGET_MAX => Err(Errno::Nametoolong),
        target if target.contains('\0') => Err(Errno::Inval),
        _ => Ok(()),
    }
}
