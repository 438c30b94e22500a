//! Whether the files and descriptors of a record are as a guest can leave them: nothing that is read is trusted.

use std::collections::BTreeMap;

use super::State;
use super::descriptors::{DESCRIPTORS_MAX, Open};
use super::disk::{BLOCK, Change, Disk, PENDING_MAX};
use super::files::{
    Files, INO_MAX, Ino, Inode, Node, ROOT, TEXTS_MAX, check_name, check_target, entry_bytes,
};

impl Files {
    /// Whether it is as its functions leave it, where `is_open` says what is open.
    pub(super) fn is_sound(&self, is_open: impl Fn(Ino) -> bool) -> bool {
        let root = self.inodes.get(&ROOT).map(|root| &root.node);
        if !matches!(root, Some(Node::Directory { parent: ROOT, .. }))
            || !self.inodes.keys().all(|ino| (ROOT..INO_MAX).contains(ino))
        {
            return false;
        }
        let mut links: BTreeMap<Ino, u32> = BTreeMap::from([(ROOT, 1)]);
        let (mut bytes, mut texts) = (0, 0);
        for (ino, inode) in self.iter() {
            let is_sound = match &inode.node {
                Node::File(content) => content.is_sound(),
                Node::Link(target) => check_target(target).is_ok(),
                // One that has no entry may be open.
                Node::Directory { entries, parent } => {
                    inode.links > 0 || entries.is_empty() && *parent == ROOT
                }
            };
            if !is_sound {
                return false;
            }
            bytes += if ino == ROOT { 0 } else { inode.bytes() };
            texts += inode.target_bytes();
            let Node::Directory { entries, .. } = &inode.node else { continue };
            for (name, child) in entries {
                if !self.may_hold(ino, name, *child) {
                    return false;
                }
                *links.entry(*child).or_default() += 1;
                bytes += entry_bytes(name);
                texts += entry_bytes(name);
            }
        }
        let is_linked = |(ino, inode): (Ino, &Inode)| {
            let named = links.get(&ino).copied().unwrap_or(0);
            inode.links == named && (named <= 1 || !self.is_directory(ino)) && (named > 0 || is_open(ino))
        };
        (bytes, texts) == (self.bytes, self.texts)
            && bytes <= self.bytes_max
            && texts <= TEXTS_MAX
            && self.iter().all(is_linked)
            && self.is_tree()
    }

    /// Whether an entry of a directory may refer to this.
    fn may_hold(&self, directory: Ino, name: &str, child: Ino) -> bool {
        let is_below = self.inodes.get(&child).is_some_and(|child| match child.node {
            Node::Directory { parent, .. } => parent == directory,
            _ => true,
        });
        check_name(name).is_ok() && child != ROOT && is_below
    }

    /// Whether every directory that has a name is below `/`. None has two.
    fn is_tree(&self) -> bool {
        let mut pending = vec![ROOT];
        let mut reached = 0;
        while let Some(directory) = pending.pop() {
            reached += 1;
            let below = self.entries(directory).into_iter().flat_map(BTreeMap::values).copied();
            pending.extend(below.filter(|ino| self.is_directory(*ino)));
        }
        let is_named = |(ino, inode): &(Ino, &Inode)| inode.links > 0 && self.is_directory(*ino);
        self.iter().filter(is_named).count() == reached
    }
}

impl Disk {
    /// Whether it is as a guest can leave it. A change that cannot be made is none.
    pub(super) fn is_sound(&self, bytes_max: u64) -> bool {
        let is_sound = |change: &Change| {
            let bytes = if let Change::Bytes { bytes, .. } = change { bytes.len() } else { 0 };
            (ROOT..INO_MAX).contains(&change.ino()) && bytes as u64 <= BLOCK
        };
        self.files.is_sound(|_| false)
            && self.files.bytes_max == bytes_max
            && self.pending.len() <= PENDING_MAX
            && self.pending.iter().all(is_sound)
            && self.witness.iter().all(|ino| (ROOT..INO_MAX).contains(ino))
    }
}

/// Whether what is open is there.
fn is_there(files: &Files, open: &Open) -> bool {
    match open {
        Open::File { ino, .. } => files.is_file(*ino),
        Open::Directory { ino, .. } => files.has_directory(*ino),
        _ => true,
    }
}

impl State {
    /// Whether every descriptor refers to what it may.
    pub(super) fn has_sound_descriptors(&self) -> bool {
        self.descriptors.len() <= DESCRIPTORS_MAX
            && self.process.is_sound(DESCRIPTORS_MAX)
            && self.descriptors.values().all(|descriptor| is_there(&self.files, &descriptor.open))
    }

    /// Closes what stands for files that a crash left nothing of.
    pub(super) fn forget_lost(&mut self) {
        let files = &self.files;
        self.descriptors.retain(|_, descriptor| is_there(files, &descriptor.open));
        self.resources.retain(files);
    }
}
