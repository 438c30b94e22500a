//! What a file holds: pages that snapshots share until they are written.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::super::pages::{Hashing, LEAF, Leaf, PAGE, Page};

/// Bytes that a leaf stands for.
pub(super) const LEAF_BYTES: u64 = (LEAF * PAGE) as u64;
/// Bytes that a file may have, holes counted.
pub(super) const SIZE_MAX: u64 = 1 << 40;

/// The bytes of a file. Holes are not stored.
#[derive(Clone, Default)]
pub(crate) struct Content {
    size: u64,
    leaves: BTreeMap<u64, Arc<Leaf>>,
    /// Pages that are no holes.
    pages: u64,
}

impl Content {
    /// How many bytes, holes counted.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that are stored for it.
    pub(crate) fn stored(&self) -> u64 {
        self.pages * PAGE as u64
    }

    /// Reads from an offset on into `out`; how many bytes there were.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> usize {
        let len = self.size.saturating_sub(offset).min(out.len() as u64) as usize;
        for (page, within, range) in parts(offset, len) {
            let out = &mut out[range];
            match self.page(page) {
                Some(bytes) => out.copy_from_slice(&bytes[within..within + out.len()]),
                None => out.fill(0),
            }
        }
        len
    }

    /// Bytes that writing so many at an offset stores anew.
    pub(super) fn growth(&self, offset: u64, len: usize) -> u64 {
        let fresh = parts(offset, len).filter(|(page, ..)| self.page(*page).is_none()).count();
        (fresh * PAGE) as u64
    }

    /// Writes at an offset; a gap before it becomes a hole.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (page, within, range) in parts(offset, bytes.len()) {
            let bytes = &bytes[range];
            self.page_mut(page)[within..within + bytes.len()].copy_from_slice(bytes);
        }
        if !bytes.is_empty() {
            self.size = self.size.max(offset + bytes.len() as u64);
        }
    }

    /// Cuts the file, or appends a hole.
    pub(super) fn resize(&mut self, size: u64) {
        if size < self.size {
            let cut = self.leaves.split_off(&size.div_ceil(LEAF_BYTES));
            self.pages -= cut.values().map(|leaf| pages_of(&leaf.pages)).sum::<u64>();
            let first = size.div_ceil(PAGE as u64);
            if let Some(leaf) = self.leaves.get_mut(&(first / LEAF as u64))
                && !first.is_multiple_of(LEAF as u64)
            {
                let cut = &mut Leaf::own(leaf).pages[(first % LEAF as u64) as usize..];
                self.pages -= pages_of(cut);
                cut.fill(None);
            }
            let (last, within) = (size / PAGE as u64, (size % PAGE as u64) as usize);
            if within > 0 && self.page(last).is_some() {
                self.page_mut(last)[within..].fill(0);
            }
        }
        self.size = size;
    }

    /// The sum of the hashes of its pages, each of which covers its place in the file with this number.
    pub(super) fn hash(&self, ino: u32, hashing: Hashing) -> u128 {
        let place = (ino as usize) << LEAVES_BITS;
        let leaf = |(index, leaf): (&u64, &Arc<Leaf>)| leaf.hash(MEMORY, place | *index as usize, hashing);
        self.leaves.iter().map(leaf).fold(0, u128::wrapping_add)
    }

    /// Its leaves and their indices, in order.
    pub(super) fn leaves(&self) -> impl Iterator<Item = (u64, &Arc<Leaf>)> {
        self.leaves.iter().map(|(index, leaf)| (*index, leaf))
    }

    /// The leaf at an index.
    pub(super) fn leaf(&self, index: u64) -> Option<&Arc<Leaf>> {
        self.leaves.get(&index)
    }

    /// Puts a leaf in place that was read.
    pub(super) fn insert(&mut self, index: u64, leaf: Arc<Leaf>) {
        self.pages += pages_of(&leaf.pages);
        let replaced = self.leaves.insert(index, leaf);
        self.pages -= replaced.map_or(0, |leaf| pages_of(&leaf.pages));
    }

    /// How many leaves there are.
    pub(super) fn len(&self) -> usize {
        self.leaves.len()
    }

    /// Whether every byte lies within the file.
    pub(super) fn is_sound(&self) -> bool {
        let is_within = |(index, leaf): (&u64, &Arc<Leaf>)| {
            leaf.pages.iter().enumerate().all(|(slot, page)| {
                let Some(page) = page else { return true };
                let start = index * LEAF_BYTES + (slot * PAGE) as u64;
                let inside = self.size.saturating_sub(start).min(PAGE as u64) as usize;
                inside > 0 && page.bytes[inside..].iter().all(|byte| *byte == 0)
            })
        };
        let most = SIZE_MAX / LEAF_BYTES;
        self.size <= SIZE_MAX
            && self.leaves.keys().all(|index| *index < most)
            && self.leaves.iter().all(is_within)
    }

    fn page(&self, page: u64) -> Option<&[u8; PAGE]> {
        let leaf = self.leaves.get(&(page / LEAF as u64))?;
        leaf.pages[(page % LEAF as u64) as usize].as_ref().map(|page| &page.bytes)
    }

    fn page_mut(&mut self, page: u64) -> &mut [u8; PAGE] {
        let leaf = self.leaves.entry(page / LEAF as u64).or_insert_with(Leaf::again);
        let page = &mut Leaf::own(leaf).pages[(page % LEAF as u64) as usize];
        self.pages += u64::from(page.is_none());
        Page::own(page)
    }
}

fn pages_of(pages: &[Option<Arc<Page>>]) -> u64 {
    pages.iter().flatten().count() as u64
}

/// Stands where a memory's number does in the hash of a page: no memory has such a one.
const MEMORY: usize = 0x8000;
/// Bits of the index of a leaf; above them stands the number of the file, in 15 bits. A leaf remembers its hash, so wherever
/// it is shared it must stand in a file of the same number.
const LEAVES_BITS: u32 = (SIZE_MAX / LEAF_BYTES).ilog2();

/// The pages that `len` bytes at an offset lie on: the page, where on it, and which of the bytes.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % PAGE as u64) as usize;
        let now = (PAGE - within).min(len - done);
        let part = (at / PAGE as u64, within, done..done + now);
        done += now;
        (now > 0).then_some(part)
    })
}

/// Its size; the bytes are stored by themselves.
impl Serialize for Content {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.size.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Content, D::Error> {
        Ok(Content { size: u64::deserialize(from)?, ..Content::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    /// Random writes, reads and sizes, beside a plain vector.
    #[test]
    fn it_holds_what_a_vector_holds() {
        for seed in 0..30 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (mut content, mut plain) = (Content::default(), Vec::new());
            let mut saved: Vec<(Content, Vec<u8>)> = Vec::new();
            for _ in 0..200 {
                let at: usize = rng.random_range(0..200_000);
                match rng.random_range(0..10) {
                    0..5 => {
                        let bytes = vec![rng.random(); rng.random_range(0..3000)];
                        content.write(at as u64, &bytes);
                        if !bytes.is_empty() {
                            plain.resize(plain.len().max(at + bytes.len()), 0);
                            plain[at..at + bytes.len()].copy_from_slice(&bytes);
                        }
                    }
                    5..7 => {
                        content.resize(at as u64);
                        plain.resize(at, 0);
                    }
                    7 => saved.push((content.clone(), plain.clone())),
                    8 if !saved.is_empty() => {
                        (content, plain) = saved[rng.random_range(0..saved.len())].clone();
                    }
                    _ => {
                        let mut out = vec![9; rng.random_range(0..5000)];
                        let len = content.read(at as u64, &mut out);
                        let expected = plain.get(at..).unwrap_or_default();
                        assert_eq!(out[..len], expected[..expected.len().min(out.len())]);
                    }
                }
                let stored = content.leaves.values().map(|leaf| pages_of(&leaf.pages)).sum::<u64>();
                assert_eq!((content.size(), content.pages), (plain.len() as u64, stored));
                assert!(content.is_sound());
            }
        }
    }

    #[test]
    fn holes_are_not_stored() {
        let mut content = Content::default();
        assert_eq!(content.growth(1 << 39, 3), PAGE as u64);
        content.write(1 << 39, b"end");
        assert_eq!((content.size(), content.stored()), ((1 << 39) + 3, PAGE as u64));
        content.resize(5);
        assert_eq!((content.size(), content.stored()), (5, 0));
    }
}
