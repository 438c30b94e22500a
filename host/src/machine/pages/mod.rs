//! The page store: what a memory held, as a persistent table of reference-counted pages.
//!
//! A table shares every page that did not change with the table it was made from. The machine remembers
//! which table is resident in the memory, so going to any other table copies the pages that were written
//! since and those in which the two tables differ, and nothing else.
//!
//! | file | what |
//! |---|---|
//! | `account` | how many bytes are saved |
//! | `pool` | pages and leaves, and those to be used again |
//! | `hashing` | hashes of pages |
//! | `table` | tables of pages |
//! | `dirty` | which pages were written |

mod account;
mod dirty;
mod hashing;
mod pool;
mod table;

pub(super) use account::{Held, saved_bytes};
pub(super) use dirty::take_dirty;
pub(super) use hashing::{Blocks, Hashing};
pub(super) use pool::{Leaf, Page};
pub(super) use table::PageTable;

/// Bytes in a page. With 512 the marks to be looked at cost more than the bytes that need not be copied; with 4096
/// checks took 1.2 times as long.
pub const PAGE: usize = 1024;
/// Pages in a leaf of the table.
pub(super) const LEAF: usize = 64;
/// Bytes of what names a leaf's pages: the hash of each one's bytes.
pub(super) const NAMES: usize = LEAF * size_of::<u128>();

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};
    use std::ops::Range;
    use std::sync::Arc;

    /// Random stores, growth, snapshots and restores, beside full copies of the memory.
    #[test]
    fn it_holds_what_a_full_copy_holds() {
        for seed in 0..20 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut memory = vec![0u8; 65536];
            let mut marks = vec![0u8; 8 * 65536 / PAGE];
            let mut resident = PageTable::zeros(memory.len());
            let mut dirty = Vec::new();
            let mut saved: Vec<(PageTable, Vec<u8>)> = vec![(resident.clone(), memory.clone())];
            for _ in 0..300 {
                match rng.random_range(0..10) {
                    0..6 => {
                        let len = rng.random_range(1..=16);
                        let at = rng.random_range(0..=memory.len() - len);
                        memory[at..at + len].fill(rng.random_range(0..3));
                        marks[at / PAGE] = 1;
                    }
                    6 if memory.len() < 8 * 65536 => memory.resize(memory.len() + 65536, 0),
                    7 => {
                        take_dirty(&mut marks, &memory, &resident, &mut dirty);
                        let dead = rng.random_range(0..30_000)..rng.random_range(30_000..60_000);
                        let hash = |table: &PageTable, written: (&[u8], &[u32])| {
                            let mut blocks = Blocks::default();
                            [Hashing::Portable, Hashing::Keyed]
                                .map(|hashing| table.hash_with(0, &dead, written, &mut blocks, hashing))
                        };
                        let hashes = hash(&resident, (&memory, &dirty));
                        resident.save(0, (&memory, &dirty), &mut Blocks::default());
                        assert_eq!(hashes, hash(&resident, (&[], &[])));
                        let mut fresh = PageTable::zeros(0);
                        let all: Vec<u32> = (0..(memory.len() / PAGE) as u32).collect();
                        fresh.save(0, (&memory, &all), &mut Blocks::default());
                        assert_eq!(hashes, hash(&fresh, (&[], &[])));
                        dirty.clear();
                        saved.push((resident.clone(), memory.clone()));
                    }
                    // What is known to be written is kept until it is saved or restored.
                    8 => take_dirty(&mut marks, &memory, &resident, &mut dirty),
                    _ => {
                        let (table, copy) = saved[rng.random_range(0..saved.len())].clone();
                        take_dirty(&mut marks, &memory, &resident, &mut dirty);
                        memory.resize(table.size, 0);
                        table.load(&resident, &mut memory, &dirty);
                        resident = table;
                        dirty.clear();
                        assert!(memory == copy);
                    }
                }
            }
            for (table, copy) in &saved {
                let mut fresh = PageTable::zeros(0);
                let all: Vec<u32> = (0..(copy.len() / PAGE) as u32).collect();
                fresh.save(0, (copy, &all), &mut Blocks::default());
                assert_eq!(table.hash(0, &(0..0)), fresh.hash(0, &(0..0)));
                assert_ne!(table.hash(0, &(0..0)), fresh.hash(1, &(0..0)));
            }
        }
    }

    #[test]
    fn dead_bytes_count_as_zeros() {
        let mut memory = vec![0u8; 65536];
        memory[3 * PAGE..5 * PAGE].fill(9);
        let hash = |memory: &[u8], dead: Range<usize>| {
            let mut table = PageTable::zeros(memory.len());
            let all: Vec<u32> = (0..(memory.len() / PAGE) as u32).collect();
            table.save(0, (memory, &all), &mut Blocks::default());
            table.hash(0, &dead)
        };
        let dead = 100..4 * PAGE + 7;
        let before = hash(&memory, dead.clone());
        memory[4 * PAGE + 6] = 1;
        memory[PAGE] = 1;
        assert_eq!(hash(&memory, dead.clone()), before);
        memory[4 * PAGE + 7] = 1;
        assert_ne!(hash(&memory, dead.clone()), before);
        memory[4 * PAGE + 7] = 9;
        memory[dead.clone()].fill(0);
        assert_eq!(hash(&memory, 0..0), before);
    }

    #[test]
    fn what_was_let_go_leaves_nothing_behind() {
        let ones = vec![1u8; 65536];
        let zeros = vec![0u8; 65536];
        let all: Vec<u32> = (0..64).collect();
        let mut table = PageTable::zeros(65536);
        let nothing = table.hash(0, &(0..0));
        table.save(0, (&ones, &all), &mut Blocks::default());
        assert_ne!(table.hash(0, &(0..0)), nothing);
        assert_eq!(table.leaves().count(), 1);
        drop(table);
        let mut table = PageTable::zeros(65536);
        table.save(0, (&zeros, &all), &mut Blocks::default());
        assert_eq!((table.hash(0, &(0..0)), table.leaves().count()), (nothing, 0));
        table.save(0, (&ones, &[7]), &mut Blocks::default());
        assert!((0..64).all(|index| table.bytes(index).is_some() == (index == 7)));
        let mut fresh = PageTable::zeros(65536);
        let mut memory = zeros;
        memory[7 * PAGE..8 * PAGE].fill(1);
        fresh.save(0, (&memory, &[7]), &mut Blocks::default());
        assert_eq!(table.hash(0, &(0..0)), fresh.hash(0, &(0..0)));
    }

    #[test]
    fn a_table_shares_the_pages_that_did_not_change() {
        let mut memory = vec![1u8; 4 * 65536];
        let mut first = PageTable::zeros(memory.len());
        first.save(0, (&memory, &(0..64).collect::<Vec<_>>()), &mut Blocks::default());
        memory[5 * PAGE] = 2;
        let mut second = first.clone();
        second.save(0, (&memory, &[5, 6]), &mut Blocks::default());
        let shared = (0..64).filter(|i| match (first.page(*i), second.page(*i)) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        });
        assert_eq!(shared.count(), 63);
    }
}
