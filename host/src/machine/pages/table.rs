//! What a memory held, as a persistent table of pages.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::hashing::{Blocks, Hashing, hash_change, hash_of, within};
use super::pool::{Leaf, Page};
use super::{LEAF, PAGE};

/// What a memory held. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct PageTable {
    /// Bytes in the memory; always whole pages.
    pub(crate) size: usize,
    leaves: Arc<Leaves>,
}

/// The leaves of a table; `None` is one of zero pages.
#[derive(Default)]
struct Leaves {
    list: Vec<Option<Arc<Leaf>>>,
    /// The sum of the hashes of all pages, portable and keyed, where some bytes count as zeros: that range, and the sum.
    hashes: [OnceLock<(Range<usize>, u128)>; 2],
}

impl Drop for Leaves {
    fn drop(&mut self) {
        self.list.drain(..).flatten().for_each(Leaf::let_go);
    }
}

impl Clone for Leaves {
    /// To be changed, which its hash does not survive.
    fn clone(&self) -> Leaves {
        Leaves { list: self.list.clone(), hashes: Default::default() }
    }
}

impl Leaves {
    /// See [`PageTable::hash`].
    fn hash(&self, memory: usize, dead: &Range<usize>, hashing: Hashing) -> u128 {
        let sum = || (dead.clone(), self.sum(memory, dead, hashing));
        let (known, hash) = self.hashes[hashing as usize].get_or_init(sum);
        if known == dead { *hash } else { self.sum(memory, dead, hashing) }
    }

    fn sum(&self, memory: usize, dead: &Range<usize>, hashing: Hashing) -> u128 {
        let mut sum = 0u128;
        for (leaf, pages) in self.list.iter().enumerate() {
            let Some(pages) = pages else { continue };
            let (first, end) = (leaf * LEAF, (leaf + 1) * LEAF);
            if dead.start <= first * PAGE && dead.end >= end * PAGE {
                continue;
            }
            sum = sum.wrapping_add(pages.hash(memory, leaf, hashing));
            for index in first.max(dead.start / PAGE)..end.min(dead.end.div_ceil(PAGE)) {
                let Some(page) = &pages.pages[index % LEAF] else { continue };
                sum = sum.wrapping_sub(page.hash(memory, index, hashing));
                let dead = within(dead, index);
                if dead.len() < PAGE {
                    let mut live = page.bytes;
                    live[dead].fill(0);
                    sum = sum.wrapping_add(hash_of(&live, memory, index, hashing));
                }
            }
        }
        sum
    }
}

impl PageTable {
    /// A memory of `size` zero bytes.
    pub(crate) fn zeros(size: usize) -> PageTable {
        PageTable { size, leaves: Arc::default() }
    }

    /// A memory of `size` bytes with these leaves, the first ones; `None` is one of zeros.
    pub(in crate::machine) fn of(size: usize, list: Vec<Option<Arc<Leaf>>>) -> PageTable {
        PageTable { size, leaves: Arc::new(Leaves { list, hashes: Default::default() }) }
    }

    /// The leaves that are not all zeros, and their indices.
    pub(in crate::machine) fn leaves(&self) -> impl Iterator<Item = (usize, &Leaf)> {
        let leaves = self.leaves.list.iter().enumerate();
        leaves
            .filter_map(|(index, leaf)| Some((index, &**leaf.as_ref()?)))
            .filter(|(_, leaf)| leaf.name() != 0)
    }

    /// How many pages this table and another hold once for both.
    pub(in crate::machine) fn shared_with(&self, other: &PageTable) -> usize {
        let is_shared = |index: &usize| match (self.page(*index), other.page(*index)) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        (0..self.size / PAGE).filter(is_shared).count()
    }

    /// The pages from this one on that are not all zeros.
    pub(in crate::machine) fn pages_from(&self, first: usize) -> impl Iterator<Item = u32> {
        let leaves = self.leaves.list.iter().enumerate().skip(first / LEAF);
        let leaves = leaves.filter_map(|(at, leaf)| leaf.as_ref().map(|leaf| (at, leaf)));
        let pages = leaves.flat_map(|(at, leaf)| (at * LEAF..).zip(&leaf.pages));
        pages.filter(move |(index, page)| *index >= first && page.is_some()).map(|(index, _)| index as u32)
    }

    /// Whether this is a clone of the other.
    pub(in crate::machine) fn is(&self, other: &PageTable) -> bool {
        self.size == other.size && Arc::ptr_eq(&self.leaves, &other.leaves)
    }

    pub(super) fn page(&self, index: usize) -> Option<&Arc<Page>> {
        self.leaves.list.get(index / LEAF)?.as_ref()?.pages[index % LEAF].as_ref()
    }

    /// What the page held; `None` where it is all zeros.
    pub(in crate::machine) fn bytes(&self, index: usize) -> Option<&[u8; PAGE]> {
        self.page(index).map(|page| &page.bytes)
    }

    /// The pages that may hold something else than those of the table `before`, in order.
    pub(in crate::machine) fn changed_from<'a>(
        &'a self,
        before: &'a PageTable,
    ) -> impl Iterator<Item = usize> + 'a {
        let (now, then) = (&self.leaves.list, &before.leaves.list);
        let is_same = |one: Option<&Arc<Leaf>>, other: Option<&Arc<Leaf>>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let leaf = |list: &'a [Option<Arc<Leaf>>], at: usize| list.get(at).and_then(Option::as_ref);
        let leaves =
            (0..now.len().max(then.len())).filter(move |at| !is_same(leaf(now, *at), leaf(then, *at)));
        let pages = leaves.flat_map(|at| at * LEAF..(at + 1) * LEAF);
        pages.filter(|index| match (self.page(*index), before.page(*index)) {
            (Some(one), Some(other)) => !Arc::ptr_eq(one, other),
            (one, other) => one.is_some() || other.is_some(),
        })
    }

    /// Takes the dirty pages into this table, that of a memory which holds `bytes`. Only the leaves that hold them are made
    /// anew. `known` has hashes of blocks of this table as it was.
    pub(crate) fn save(&mut self, memory: usize, (bytes, dirty): (&[u8], &[u32]), known: &mut Blocks) {
        self.size = bytes.len();
        let count = (bytes.len() / PAGE).div_ceil(LEAF);
        if dirty.is_empty() && count >= self.leaves.list.len() {
            return;
        }
        // Where the hash is known, that of what comes after it is too, by what changes.
        let is_longer = count >= self.leaves.list.len();
        let known_hash = |hash: &OnceLock<_>| hash.get().filter(|_| is_longer).cloned();
        let mut hashes = self.leaves.hashes.each_ref().map(known_hash);
        let changed = Arc::make_mut(&mut self.leaves);
        let leaves = &mut changed.list;
        leaves.resize(count, None);
        for pages in dirty.chunk_by(|a, b| *a as usize / LEAF == *b as usize / LEAF) {
            let leaf = leaves[pages[0] as usize / LEAF].get_or_insert_with(Leaf::again);
            let now = |index: u32| -> &[u8; PAGE] {
                bytes[index as usize * PAGE..][..PAGE].try_into().expect("a whole page")
            };
            let differs = |leaf: &Leaf, index: u32| match &leaf.pages[index as usize % LEAF] {
                Some(old) => old.bytes != *now(index),
                None => *now(index) != [0; PAGE],
            };
            // It is made one's own once, and only where something changed.
            let Some(first) = pages.iter().position(|index| differs(leaf, *index)) else { continue };
            let leaf = Leaf::own(leaf);
            for &index in &pages[first..] {
                if !differs(leaf, index) {
                    continue;
                }
                let now = now(index);
                let index = index as usize;
                let old = leaf.pages[index % LEAF].take();
                for (hash, hashing) in hashes.iter_mut().zip([Hashing::Portable, Hashing::Keyed]) {
                    let Some((dead, sum)) = hash else { continue };
                    let before = old.as_ref().map_or(&[0; PAGE], |old| &old.bytes);
                    let dead = within(dead, index);
                    let change = hash_change((before, now), &dead, (memory, index), known, hashing);
                    *sum = sum.wrapping_add(change);
                }
                leaf.pages[index % LEAF] = (*now != [0; PAGE]).then(|| Page::again(now));
                old.into_iter().for_each(Page::let_go);
            }
        }
        changed.hashes = hashes.map(|hash| hash.map_or_else(OnceLock::new, OnceLock::from));
        known.clear();
    }

    /// Makes `memory`, which holds `resident` but for the `dirty` pages and has been set to this table's
    /// size, hold this table.
    pub(crate) fn load(&self, resident: &PageTable, memory: &mut [u8], dirty: &[u32]) {
        let pages = memory.len() / PAGE;
        for &index in dirty {
            if (index as usize) < pages {
                self.load_page(memory, index as usize);
            }
        }
        if Arc::ptr_eq(&self.leaves, &resident.leaves) {
            return;
        }
        let (to_leaves, from_leaves) = (&self.leaves.list, &resident.leaves.list);
        for leaf in 0..to_leaves.len().max(from_leaves.len()) {
            let to = to_leaves.get(leaf).and_then(Option::as_ref);
            let from = from_leaves.get(leaf).and_then(Option::as_ref);
            match (to, from) {
                (None, None) => continue,
                (Some(to), Some(from)) if Arc::ptr_eq(to, from) => continue,
                _ => {}
            }
            for index in leaf * LEAF..((leaf + 1) * LEAF).min(pages) {
                let is_same = match (self.page(index), resident.page(index)) {
                    (None, None) => true,
                    (Some(to), Some(from)) => Arc::ptr_eq(to, from),
                    _ => false,
                };
                if !is_same {
                    self.load_page(memory, index);
                }
            }
        }
    }

    fn load_page(&self, memory: &mut [u8], index: usize) {
        let to = &mut memory[index * PAGE..][..PAGE];
        match self.bytes(index) {
            Some(bytes) => to.copy_from_slice(bytes),
            None => to.fill(0),
        }
    }

    /// The sum of the pages' hashes, each of which covers the page's place: which pages were hashed before
    /// does not matter, and a page of zeros counts nothing. The bytes in `dead` count as zeros.
    pub(crate) fn hash(&self, memory: usize, dead: &Range<usize>) -> u128 {
        self.hash_with(memory, dead, (&[], &[]), &mut Blocks::default(), Hashing::Portable)
    }

    /// The hash of a memory of this table's pages but for those in `dirty`, in order, which are as in `bytes`. The hashes
    /// of some of its blocks are kept in `known`.
    pub(crate) fn hash_with(
        &self,
        memory: usize,
        dead: &Range<usize>,
        (bytes, dirty): (&[u8], &[u32]),
        known: &mut Blocks,
        hashing: Hashing,
    ) -> u128 {
        let size = if bytes.is_empty() { self.size } else { bytes.len() };
        let mut sum = xxh3_128_with_seed(&(size as u64).to_le_bytes(), !(memory as u64));
        sum = sum.wrapping_add(self.leaves.hash(memory, dead, hashing));
        for &index in dirty {
            let index = index as usize;
            let dead = within(dead, index);
            if dead.len() == PAGE {
                continue;
            }
            let now: &[u8; PAGE] = bytes[index * PAGE..][..PAGE].try_into().expect("a whole page");
            let before = self.bytes(index).unwrap_or(&[0; PAGE]);
            sum = sum.wrapping_add(hash_change((before, now), &dead, (memory, index), known, hashing));
        }
        sum
    }
}
