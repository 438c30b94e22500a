//! The hash of a system, and what a snapshot stores of it: its data as bytes, and the leaves of its files.

use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use xxhash_rust::xxh3::xxh3_128;

use super::super::keyed;
use super::super::pages::{Hashing, Held, LEAF, Leaf, PAGE, Page};
use super::files::{Ino, Inode, Node};
use super::{Shared, State, System};

/// Bytes of a system beside the pages of its files.
const META_MAX: u64 = 64 << 20;

/// A leaf of the record of a system: of a file, or, as file 0, of its data.
pub(crate) struct Part {
    pub(crate) ino: Ino,
    pub(crate) index: u64,
    pub(crate) leaf: Arc<Leaf>,
}

impl System {
    /// A hash of all of it.
    pub(crate) fn hash(&self, hashing: Hashing) -> u128 {
        *self.0.hashes[hashing as usize].get_or_init(|| self.get().hash(hashing))
    }

    /// Counts what it holds beside the pages of files, once for all that share it.
    pub(crate) fn count(&self) {
        self.0.held.get_or_init(|| {
            let inodes = self.get().files.len() + self.get().descriptors.len();
            Held::new(size_of::<Shared>() + inodes * HELD_BYTES + self.get().process.held_bytes())
        });
    }

    /// The length of its data, and all leaves: of the data, then of the files.
    pub(crate) fn parts(&self) -> (u64, Vec<Part>) {
        let data = self.get().data();
        let mut parts = Vec::new();
        for (index, bytes) in data.chunks(LEAF * PAGE).enumerate() {
            let mut leaf = Leaf::zeros();
            for (page, bytes) in leaf.pages.iter_mut().zip(bytes.chunks(PAGE)) {
                let mut whole = [0; PAGE];
                whole[..bytes.len()].copy_from_slice(bytes);
                *page = Some(Arc::new(Page::new(&whole)));
            }
            parts.push(Part { ino: 0, index: index as u64, leaf: Arc::new(leaf) });
        }
        for (ino, inode) in self.get().all_files() {
            let Node::File(content) = &inode.node else { continue };
            let leaves = content.leaves().filter(|(_, leaf)| leaf.name() != 0);
            parts.extend(leaves.map(|(index, leaf)| Part { ino, index, leaf: leaf.clone() }));
        }
        (data.len() as u64, parts)
    }

    /// The system that these parts stand for.
    ///
    /// # Errors
    /// Data that no system leaves behind.
    pub(crate) fn of_parts(len: u64, parts: Vec<Part>) -> Result<System> {
        ensure!(len <= META_MAX, "the system has {len} bytes of data");
        let mut data = Vec::new();
        let mut of_files = Vec::new();
        for part in parts {
            if part.ino > 0 {
                of_files.push(part);
                continue;
            }
            ensure!(part.index as usize == data.len() / (LEAF * PAGE), "a part of the data is out of place");
            for page in &part.leaf.pages {
                data.extend(page.as_ref().map_or([0; PAGE], |page| page.bytes));
            }
        }
        ensure!(data.len() as u64 >= len, "the data ends too early");
        data.truncate(len as usize);
        let (mut state, rest): (State, &[u8]) =
            postcard::take_from_bytes(&data).map_err(|error| anyhow!("{error}"))?;
        ensure!(rest.is_empty(), "{} bytes follow the data", rest.len());
        for Part { ino, index, leaf } in of_files {
            let content = match (&mut state.disk, ino.checked_sub(ON_DISK)) {
                (Some(disk), Some(ino)) => disk.files.content_read(ino),
                _ => state.files.content_read(ino),
            };
            content.ok_or_else(|| anyhow!("{ino} is no file"))?.insert(index, leaf);
        }
        let open: Vec<Ino> =
            state.descriptors.values().filter_map(|descriptor| descriptor.open.ino()).collect();
        // The descriptors after the files: they refer to them.
        ensure!(
            state.files.is_sound(&open)
                && state.has_sound_descriptors()
                && state.disk.as_ref().is_none_or(|disk| disk.files.is_sound(&[])),
            "its files are not as a guest can leave them"
        );
        Ok(System(Arc::new(Shared::of(state))))
    }
}

/// What is added to the number of a file that stands for its content on the disk.
const ON_DISK: Ino = 1 << 15;
/// What an inode or a descriptor counts, about.
const HELD_BYTES: usize = 512;

impl State {
    /// All but the bytes of the files.
    fn data(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("it is made of maps, numbers and bytes")
    }

    /// All files, and those on the disk under numbers of their own.
    fn all_files(&self) -> impl Iterator<Item = (Ino, &Inode)> {
        let on_disk = self.disk.iter().flat_map(|disk| disk.files.iter());
        self.files.iter().chain(on_disk.map(|(ino, inode)| (ino + ON_DISK, inode)))
    }

    fn hash(&self, hashing: Hashing) -> u128 {
        let mut bytes = self.data();
        for (ino, inode) in self.all_files() {
            if let Node::File(content) = &inode.node {
                // The disk shares leaves with the files, and so must their places in hashes be shared.
                bytes.extend(content.hash(ino % ON_DISK, hashing).to_le_bytes());
            }
        }
        match hashing {
            Hashing::Portable => xxh3_128(&bytes),
            Hashing::Keyed => keyed::hash(&bytes),
        }
    }
}
