//! Files, directories and symbolic links, by number. Paths are resolved elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::content::{Content, SIZE_MAX};
use super::errno::{Answer, Errno};

/// The number of a file, a directory or a link. The lowest that is free is given next, so equal trees are equal states.
pub(crate) type Ino = u32;

/// The directory `/`.
pub(crate) const ROOT: Ino = 1;
/// Files, directories and links that there may be.
const INODES_MAX: usize = 16 << 10;
/// Numbers that inodes may have are below this.
const INO_MAX: Ino = 1 << 15;
/// Bytes of the name of an entry.
const NAME_MAX: usize = 255;
/// Bytes that a link's target may have.
pub(crate) const TARGET_MAX: usize = 4096;
/// What an inode counts, and an entry beside its name.
const INODE_BYTES: u64 = 256;
const ENTRY_BYTES: u64 = 64;
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
    inodes: BTreeMap<Ino, Arc<Inode>>,
    /// No lower number is free.
    free: Ino,
    /// What all of it counts.
    bytes: u64,
    bytes_max: u64,
}

impl Files {
    /// An empty `/`, for so many bytes.
    pub(crate) fn new(bytes_max: u64, now: u64) -> Files {
        let node = Node::Directory { entries: BTreeMap::new(), parent: ROOT };
        let root = Inode { node, times: Times::at(now), links: 1, mode: 0o777 };
        let inodes = BTreeMap::from([(ROOT, Arc::new(root))]);
        Files { inodes, free: ROOT + 1, bytes: INODE_BYTES, bytes_max }
    }

    /// The inode with this number, which there is.
    pub(crate) fn get(&self, ino: Ino) -> &Inode {
        &self.inodes[&ino]
    }

    pub(super) fn contains(&self, ino: Ino) -> bool {
        self.inodes.contains_key(&ino)
    }

    fn get_mut(&mut self, ino: Ino) -> &mut Inode {
        Arc::make_mut(self.inodes.get_mut(&ino).expect("an open or named inode is there"))
    }

    /// All of them, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ino, &Inode)> {
        self.inodes.iter().map(|(ino, inode)| (*ino, &**inode))
    }

    /// Entries and files that there are, about: what looking at all of them costs.
    pub(super) fn len(&self) -> usize {
        self.inodes.len()
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

    fn charge(&mut self, bytes: u64) -> Answer<()> {
        if self.bytes + bytes > self.bytes_max {
            return Err(Errno::Nospc);
        }
        self.bytes += bytes;
        Ok(())
    }

    pub(super) fn is_file(&self, ino: Ino) -> bool {
        self.inodes.get(&ino).is_some_and(|inode| matches!(inode.node, Node::File(_)))
    }

    pub(super) fn has_directory(&self, ino: Ino) -> bool {
        self.contains(ino) && self.is_directory(ino)
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
        let is_free = |ino: &Ino| !self.inodes.contains_key(ino) && !taken(*ino);
        let ino = (self.free..INO_MAX).find(is_free).ok_or(Errno::Nospc)?;
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
        if self.inodes.len() >= INODES_MAX || self.contains(ino) {
            return Err(Errno::Nospc);
        }
        let target = if let Node::Link(target) = &node { target.len() as u64 } else { 0 };
        self.charge(INODE_BYTES + ENTRY_BYTES + name.len() as u64 + target)?;
        let mode = if matches!(node, Node::File(_)) { 0o666 } else { 0o777 };
        self.inodes.insert(ino, Arc::new(Inode { node, times: Times::at(now), links: 1, mode }));
        while self.inodes.contains_key(&self.free) {
            self.free += 1;
        }
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
        self.charge(ENTRY_BYTES + name.len() as u64)?;
        self.entries_mut(directory, now).insert(name.into(), ino);
        let inode = self.get_mut(ino);
        inode.links += 1;
        inode.times.changed = now;
        Ok(())
    }

    /// Removes an entry that is there. What it refers to stays until [`Files::drop_unused`].
    fn remove(&mut self, directory: Ino, name: &str, now: u64) {
        let ino = self.entries_mut(directory, now).remove(name).expect("the caller looked it up");
        self.bytes -= ENTRY_BYTES + name.len() as u64;
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

    /// Gives an entry another name and place, where it replaces what is there; what that was.
    pub(crate) fn rename(
        &mut self,
        (from, old): (Ino, &str),
        (to, new): (Ino, &str),
        now: u64,
    ) -> Answer<Option<Ino>> {
        let ino = self.lookup(from, old)?.ok_or(Errno::Noent)?;
        check_name(new)?;
        let replaced = self.lookup(to, new)?;
        if replaced == Some(ino) {
            return Ok(None);
        }
        let is_directory = self.is_directory(ino);
        if is_directory && self.is_within(to, ino) {
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
        if new.len() > old.len() {
            self.charge((new.len() - old.len()) as u64)?;
        } else {
            self.bytes -= (old.len() - new.len()) as u64;
        }
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
    fn is_within(&self, mut directory: Ino, above: Ino) -> bool {
        while directory != above && directory != ROOT {
            directory = self.parent(directory);
        }
        directory == above
    }

    /// Forgets an inode that has no entry; the caller knows that it is not open.
    pub(crate) fn drop_unused(&mut self, ino: Ino) {
        let Some(inode) = self.inodes.get(&ino).filter(|inode| inode.links == 0) else { return };
        self.bytes -= INODE_BYTES
            + match &inode.node {
                Node::File(content) => content.stored(),
                Node::Directory { .. } => 0,
                Node::Link(target) => target.len() as u64,
            };
        self.inodes.remove(&ino);
        self.free = self.free.min(ino);
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
        self.charge(growth)?;
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

    /// Whether it is as the functions here leave it: what is read from a file need not be. `open` are inodes that are open.
    pub(super) fn is_sound(&self, open: &[Ino]) -> bool {
        let mut links: BTreeMap<Ino, u32> = BTreeMap::from([(ROOT, 1)]);
        let mut bytes = 0;
        for (ino, inode) in self.iter() {
            bytes += INODE_BYTES;
            match &inode.node {
                Node::File(content) if content.is_sound() => bytes += content.stored(),
                Node::Link(target) if target.len() <= TARGET_MAX => bytes += target.len() as u64,
                Node::Directory { entries, parent } => {
                    for (name, child) in entries {
                        bytes += ENTRY_BYTES + name.len() as u64;
                        *links.entry(*child).or_default() += 1;
                        let parent = self.inodes.get(child).map(|child| match child.node {
                            Node::Directory { parent, .. } => parent,
                            _ => ino,
                        });
                        if check_name(name).is_err() || parent != Some(ino) || *child == ROOT {
                            return false;
                        }
                    }
                    let is_gone = inode.links == 0 && ino != ROOT;
                    if is_gone && (*parent != ROOT || !entries.is_empty()) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        let is_linked = |(ino, inode): (Ino, &Inode)| {
            let named = links.get(&ino).copied().unwrap_or(0);
            let is_one = named <= 1 || !self.is_directory(ino);
            inode.links == named && is_one && (named > 0 || open.contains(&ino)) && self.is_rooted(ino)
        };
        let is_lowest = (ROOT..self.free).all(|ino| self.inodes.contains_key(&ino));
        let is_free = !self.inodes.contains_key(&self.free);
        let numbers = self.inodes.len() <= INODES_MAX && self.inodes.keys().all(|ino| *ino < INO_MAX);
        numbers
            && is_lowest
            && is_free
            && bytes == self.bytes
            && bytes <= self.bytes_max
            && self.iter().all(is_linked)
    }

    /// Whether the parents of a directory lead to `/`.
    fn is_rooted(&self, ino: Ino) -> bool {
        let mut at = ino;
        for _ in 0..=self.inodes.len() {
            match self.inodes.get(&at).map(|inode| &inode.node) {
                Some(Node::Directory { .. }) if at == ROOT => return self.parent(ROOT) == ROOT,
                Some(Node::Directory { parent, .. }) => at = *parent,
                Some(_) => return at == ino,
                None => return false,
            }
        }
        false
    }
}

/// Whether an entry may have this name.
fn check_name(name: &str) -> Answer<()> {
    match name {
        "" | "." | ".." => Err(Errno::Inval),
        name if name.len() > NAME_MAX => Err(Errno::Nametoolong),
        name if name.contains(['/', '\0']) => Err(Errno::Inval),
        _ => Ok(()),
    }
}
