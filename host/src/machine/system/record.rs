//! The hash of a system, and what a snapshot stores of it: its data as bytes, and the leaves of its files.

use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow, ensure};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::super::keyed;
use super::super::pages::{Hashing, Held, LEAF, Leaf, PAGE, Page};
use super::disk::Disk;
use super::files::{INO_MAX, Ino, Inode, Node};
use super::{Descriptor, Shared, State, System};

/// Bytes of a system beside the pages of its files: of names, targets of links, and standard input.
const DATA_MAX: u64 = 32 << 20;
/// Bytes that a part of the data has.
const PART_BYTES: usize = LEAF * PAGE;

/// What is known of a value: its hashes, portable and keyed, and that it is counted as held. What changes the value forgets it.
#[derive(Default)]
pub(super) struct Known {
    hashes: [OnceLock<u128>; 2],
    held: OnceLock<Held>,
}

impl Clone for Known {
    /// A copy is made to be changed.
    fn clone(&self) -> Known {
        Known::default()
    }
}

impl Known {
    fn hash(&self, hashing: Hashing, bytes: impl FnOnce() -> Vec<u8>) -> u128 {
        *self.hashes[hashing as usize].get_or_init(|| match hashing {
            Hashing::Portable => xxh3_128(&bytes()),
            Hashing::Keyed => keyed::hash(&bytes()),
        })
    }

    /// Counts these bytes as held while the value lives.
    fn hold(&self, bytes: impl FnOnce() -> usize) {
        self.held.get_or_init(|| Held::new(bytes()));
    }
}

/// What standard input holds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Input {
    pub(crate) bytes: Arc<[u8]>,
    #[serde(skip)]
    known: Known,
}

impl Input {
    pub(crate) fn new(bytes: Arc<[u8]>) -> Arc<Input> {
        Arc::new(Input { bytes, known: Known::default() })
    }
}

/// A leaf of the record of a system: of a file, or, as file 0, of its data.
pub(crate) struct Part {
    pub(crate) ino: Ino,
    pub(crate) index: u64,
    pub(crate) leaf: Arc<Leaf>,
}

impl System {
    /// A hash of all of it.
    pub(crate) fn hash(&self, hashing: Hashing) -> u128 {
        self.0.known.hash(hashing, || self.get().hashed(hashing))
    }

    /// Counts what it holds beside the pages of files, once for all that share it.
    pub(crate) fn count(&self) {
        let state = self.get();
        self.0.known.hold(|| {
            state.all_files().for_each(|(_, inode)| inode.known.hold(|| inode.held_bytes()));
            size_of::<Shared>()
                + state.all_files().count() * MAP_BYTES
                + state.disk.as_ref().map_or(0, Disk::held_bytes)
                + state.descriptors.len() * size_of::<Descriptor>()
                + state.process.held_bytes()
                + state.resources.held_bytes()
        });
    }

    /// The length of its data, and all leaves: of the data, then of the files.
    pub(crate) fn parts(&self) -> (u64, Vec<Part>) {
        let mut data = postcard::to_allocvec(self.get()).expect(PLAIN);
        data.extend(self.get().record_resources());
        let mut parts = Vec::new();
        for (index, bytes) in data.chunks(PART_BYTES).enumerate() {
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

    /// Bytes that the pages may have which the record of a system in the same place refers to.
    pub(crate) fn parts_bytes_max(&self) -> u64 {
        let trees = 1 + u64::from(self.get().disk.is_some());
        self.get().files.bytes_max.saturating_mul(trees).saturating_add(DATA_MAX)
    }

    /// The system that these parts stand for, in the place of this one.
    ///
    /// # Errors
    /// Data that no system leaves behind.
    pub(crate) fn of_parts(&self, len: u64, parts: Vec<Part>) -> Result<System> {
        ensure!(len <= DATA_MAX, "the system has {len} bytes of data");
        let mut data = Vec::new();
        let mut of_files = Vec::new();
        for part in parts {
            if part.ino > 0 {
                of_files.push(part);
                continue;
            }
            ensure!(part.index as usize == data.len() / PART_BYTES, "a part of the data is out of place");
            for page in &part.leaf.pages {
                data.extend(page.as_ref().map_or([0; PAGE], |page| page.bytes));
            }
        }
        ensure!(data.len() as u64 >= len, "the data ends too early");
        data.truncate(len as usize);
        let (mut state, mut rest): (State, &[u8]) =
            postcard::take_from_bytes(&data).map_err(|error| anyhow!("{error}"))?;
        if !rest.is_empty() {
            (state.resources, rest) = postcard::take_from_bytes(rest).map_err(|error| anyhow!("{error}"))?;
            ensure!(!state.resources.is_empty(), "nothing follows the data");
        }
        ensure!(rest.is_empty(), "{} bytes follow the data", rest.len());
        for Part { ino, index, leaf } in of_files {
            let content = match (&mut state.disk, ino.checked_sub(ON_DISK)) {
                (Some(disk), Some(ino)) => disk.files.content_read(ino),
                _ => state.files.content_read(ino),
            };
            content.ok_or_else(|| anyhow!("{ino} is no file"))?.insert(index, leaf);
        }
        let bytes_max = self.get().files.bytes_max;
        ensure!(
            state.is_sound()
                && state.files.bytes_max == bytes_max
                && state.disk.is_some() == self.get().disk.is_some(),
            "its files are not as a guest can leave them"
        );
        state.files.find_free();
        state.disk.iter_mut().for_each(|disk| disk.files.find_free());
        Ok(System::of(state))
    }
}

/// What is added to the number of a file that stands for its content on the disk.
const ON_DISK: Ino = INO_MAX;
/// What an entry of a map takes, about.
const MAP_BYTES: usize = 32;
const PLAIN: &str = "it is made of maps, numbers and bytes";

impl Inode {
    /// What it holds beside the pages of a file, about.
    fn held_bytes(&self) -> usize {
        size_of::<Inode>()
            + match &self.node {
                Node::File(content) => content.len() * MAP_BYTES,
                Node::Directory { entries, .. } => {
                    entries.keys().map(|name| MAP_BYTES + name.len()).sum::<usize>()
                }
                Node::Link(target) => target.len(),
            }
    }

    /// A hash of it under its number.
    fn hash(&self, ino: Ino, hashing: Hashing) -> u128 {
        self.known.hash(hashing, || {
            let mut bytes = postcard::to_allocvec(self).expect(PLAIN);
            if let Node::File(content) = &self.node {
                bytes.extend(content.hash(ino, hashing).to_le_bytes());
            }
            bytes
        })
    }
}

impl State {
    /// All files, and those on the disk under numbers of their own.
    fn all_files(&self) -> impl Iterator<Item = (Ino, &Inode)> {
        let on_disk = self.disk.iter().flat_map(|disk| disk.files.iter());
        self.files.iter().chain(on_disk.map(|(ino, inode)| (ino + ON_DISK, inode)))
    }

    /// What follows the record of all else: nothing where there are none.
    fn record_resources(&self) -> Vec<u8> {
        let recorded = (!self.resources.is_empty()).then(|| postcard::to_allocvec(&self.resources));
        recorded.map(|bytes| bytes.expect(PLAIN)).unwrap_or_default()
    }

    /// What its hash is made of: what changes with every call as it is, and the hashes of the rest.
    fn hashed(&self, hashing: Hashing) -> Vec<u8> {
        let clocks = (self.clock, self.offset, self.random);
        let pending = self.disk.as_ref().map(|disk| (&disk.pending, &disk.witness));
        let changing =
            (&self.descriptors, &self.process, clocks, self.stdin_at, self.stdin.is_some(), pending);
        let mut bytes = postcard::to_allocvec(&changing).expect(PLAIN);
        bytes.extend(self.record_resources());
        if let Some(input) = &self.stdin {
            bytes.extend(input.known.hash(hashing, || input.bytes.to_vec()).to_le_bytes());
        }
        for (ino, inode) in self.all_files() {
            bytes.extend(ino.to_le_bytes());
            // The disk shares inodes with the files, and so must their places in hashes be shared.
            bytes.extend(inode.hash(ino % ON_DISK, hashing).to_le_bytes());
        }
        bytes
    }
}
