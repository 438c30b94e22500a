//! Hashes of pages, as sums over blocks: what did not change is not hashed again.

use std::ops::Range;
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::super::keyed;
use super::PAGE;

/// Bytes that are hashed together: most stores change few of a page's.
const BLOCK: usize = keyed::BLOCK;
/// Blocks in a page.
const BLOCKS: usize = PAGE / BLOCK;

/// What a hash is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Hashing {
    /// To be compared with one of another process: what anybody can compute.
    Portable,
    /// To take two states for one, be it that a guest wants them to be taken so: see [`keyed`].
    Keyed,
}

/// A hash that is computed once. In halves, since a page with a `u128` takes a tenth more room than its bytes.
#[derive(Default)]
pub(super) struct Once(OnceLock<[u64; 2]>);

impl Once {
    pub(super) fn get_or_init(&self, hash: impl FnOnce() -> u128) -> u128 {
        let [low, high] = *self.0.get_or_init(|| {
            let hash = hash();
            [hash as u64, (hash >> 64) as u64]
        });
        u128::from(high) << 64 | u128::from(low)
    }
}

/// The hash of a page: the sum of those of its blocks.
pub(super) fn hash_of(bytes: &[u8; PAGE], memory: usize, index: usize, hashing: Hashing) -> u128 {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let hashes = blocks.iter().enumerate();
    let hashes = hashes.map(|(at, block)| hash_of_block(block, memory, index * BLOCKS + at, hashing));
    hashes.fold(0, u128::wrapping_add)
}

/// The hash of a block, which covers its place; 0 of one that is all zeros.
fn hash_of_block(block: &[u8; BLOCK], memory: usize, at: usize, hashing: Hashing) -> u128 {
    let place = (memory as u64) << 48 | at as u64;
    match hashing {
        Hashing::Keyed => keyed::hash_of_block(block, place),
        Hashing::Portable if *block == [0; BLOCK] => 0,
        Hashing::Portable => xxh3_128_with_seed(block, place),
    }
}

/// The hashes of blocks of one table of one memory, those that were asked for lately: what follows a state differs from
/// it in few blocks, and often in the same ones.
#[derive(Default)]
pub(crate) struct Blocks(Vec<(usize, Hashing, u128)>);

/// Blocks whose hashes are kept.
const BLOCKS_MAX: usize = 16;

impl Blocks {
    /// To be called where the table changes.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn hash(&mut self, block: &[u8; BLOCK], memory: usize, at: usize, hashing: Hashing) -> u128 {
        if let Some((.., hash)) = self.0.iter().find(|(known, how, _)| *known == at && *how == hashing) {
            return *hash;
        }
        let hash = hash_of_block(block, memory, at, hashing);
        if self.0.len() < BLOCKS_MAX {
            self.0.push((at, hashing, hash));
        }
        hash
    }
}

/// How the hash of a page changes between two contents, of both of which the bytes in `dead` count as zeros. The hashes of
/// blocks of the first are kept in `known`.
pub(super) fn hash_change(
    (from, to): (&[u8; PAGE], &[u8; PAGE]),
    dead: &Range<usize>,
    (memory, index): (usize, usize),
    known: &mut Blocks,
    hashing: Hashing,
) -> u128 {
    let (from, _) = from.as_chunks::<BLOCK>();
    let (to, _) = to.as_chunks::<BLOCK>();
    let mut change = 0u128;
    for at in 0..BLOCKS {
        if is_same(&from[at], &to[at]) {
            continue;
        }
        let clamp = |byte: usize| byte.clamp(at * BLOCK, (at + 1) * BLOCK) - at * BLOCK;
        let dead = clamp(dead.start)..clamp(dead.end);
        if dead.len() == BLOCK {
            continue;
        }
        if dead.is_empty() {
            change = change.wrapping_add(hash_of_block(&to[at], memory, index * BLOCKS + at, hashing));
            change = change.wrapping_sub(known.hash(&from[at], memory, index * BLOCKS + at, hashing));
            continue;
        }
        let live = |block: &[u8; BLOCK]| {
            let mut live = *block;
            live[dead.clone()].fill(0);
            hash_of_block(&live, memory, index * BLOCKS + at, hashing)
        };
        change = change.wrapping_add(live(&to[at])).wrapping_sub(live(&from[at]));
    }
    change
}

/// Whether two blocks are equal; written for the vectoriser.
fn is_same(a: &[u8; BLOCK], b: &[u8; BLOCK]) -> bool {
    let (a, _) = a.as_chunks::<16>();
    let (b, _) = b.as_chunks::<16>();
    let differing = |(a, b): (&[u8; 16], &[u8; 16])| u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b);
    a.iter().zip(b).map(differing).fold(0, |any, bits| any | bits) == 0
}

/// The part of `range` that lies on a page, relative to it.
pub(super) fn within(range: &Range<usize>, page: usize) -> Range<usize> {
    let clamp = |at: usize| at.clamp(page * PAGE, (page + 1) * PAGE) - page * PAGE;
    clamp(range.start)..clamp(range.end)
}
