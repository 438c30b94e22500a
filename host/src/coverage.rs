//! The set of edges seen so far.

/// A set of edge slots, one byte each.
#[derive(Clone, Debug, Default)]
pub struct EdgeSet {
    seen: Vec<u8>,
    len: u32,
}

impl EdgeSet {
    /// Adds the slot; whether it was new.
    pub fn insert(&mut self, slot: u32) -> bool {
        let slot = slot as usize;
        if slot >= self.seen.len() {
            self.seen.resize(slot + 1, 0);
        }
        let is_new = self.seen[slot] == 0;
        self.seen[slot] = 1;
        self.len += u32::from(is_new);
        is_new
    }

    /// Whether the slot is in the set.
    pub fn contains(&self, slot: u32) -> bool {
        self.seen.get(slot as usize).is_some_and(|byte| *byte != 0)
    }

    /// How many slots are in the set.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds every slot whose hit counter is not zero, and zeroes the counters; returns how many were new.
    /// Eight counters are looked at a time, most of which are zero.
    pub fn drain(&mut self, counters: &mut [u8]) -> u32 {
        if self.seen.len() < counters.len() {
            self.seen.resize(counters.len(), 0);
        }
        let before = self.len;
        for (i, chunk) in counters.chunks_mut(8).enumerate() {
            let is_zero = match <[u8; 8]>::try_from(&*chunk) {
                Ok(word) => u64::from_ne_bytes(word) == 0,
                Err(_) => chunk.iter().all(|byte| *byte == 0),
            };
            if is_zero {
                continue;
            }
            for (j, counter) in chunk.iter().enumerate() {
                let seen = &mut self.seen[i * 8 + j];
                let is_new = *counter != 0 && *seen == 0;
                *seen |= u8::from(*counter != 0);
                self.len += u32::from(is_new);
            }
            chunk.fill(0);
        }
        self.len - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};
    use std::collections::BTreeSet;

    #[test]
    fn it_is_a_set() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut model = BTreeSet::new();
        let mut edges = EdgeSet::default();
        for _ in 0..200 {
            let mut counters = vec![0u8; rng.random_range(1..100)];
            for _ in 0..rng.random_range(0..4) {
                let slot = rng.random_range(0..counters.len());
                counters[slot] = rng.random();
            }
            let hit: BTreeSet<u32> =
                (0u32..).zip(&counters).filter(|(_, n)| **n != 0).map(|(i, _)| i).collect();
            let new = hit.difference(&model).count() as u32;
            assert_eq!(edges.drain(&mut counters), new);
            assert!(counters.iter().all(|n| *n == 0));
            model.extend(hit);
            let one = rng.random_range(0..100);
            assert_eq!(edges.insert(one), model.insert(one));
            assert_eq!(edges.len() as usize, model.len());
            assert!((0..120).all(|slot| edges.contains(slot) == model.contains(&slot)));
        }
    }
}
