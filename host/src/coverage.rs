//! The set of edges seen so far.

/// Counters that are looked at together.
const LINE: usize = 64;

/// A set of edge slots, one byte each: 1 for those in the set.
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
    /// Most counters are zero, so they are looked at by the line.
    pub fn drain(&mut self, counters: &mut [u8]) -> u32 {
        if self.seen.len() < counters.len() {
            self.seen.resize(counters.len(), 0);
        }
        let before = self.len;
        let (lines, rest) = counters.as_chunks_mut::<LINE>();
        let (seen_lines, _) = self.seen.as_chunks_mut::<LINE>();
        for (line, seen) in lines.iter_mut().zip(seen_lines) {
            if line.iter().fold(0, |any, counter| any | counter) != 0 {
                self.len += merge(line, seen);
            }
        }
        let seen_rest = &mut self.seen[lines.len() * LINE..];
        for (counter, seen) in rest.iter_mut().zip(seen_rest) {
            let is_hit = u8::from(std::mem::take(counter) != 0);
            self.len += u32::from(is_hit & !*seen);
            *seen |= is_hit;
        }
        self.len - before
    }
}

/// Moves the hits of one line of counters into the set; how many are new.
fn merge(counters: &mut [u8; LINE], seen: &mut [u8; LINE]) -> u32 {
    let mut new = 0;
    let (words, _) = counters.as_chunks_mut::<8>();
    let (seen_words, _) = seen.as_chunks_mut::<8>();
    for (word, seen_word) in words.iter_mut().zip(seen_words) {
        let counts = u64::from_ne_bytes(std::mem::take(word));
        let seen = u64::from_ne_bytes(*seen_word);
        // 1 in each byte that is not 0: the sum carries into the top bit unless the low seven are all 0.
        let low = u64::from_ne_bytes([0x7f; 8]);
        let hits = (((counts & low) + low) | counts) >> 7 & u64::from_ne_bytes([1; 8]);
        new += (hits & !seen).count_ones();
        *seen_word = (seen | hits).to_ne_bytes();
    }
    new
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
            let mut counters = vec![0u8; rng.random_range(1..300)];
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
            let one = rng.random_range(0..300);
            assert_eq!(edges.insert(one), model.insert(one));
            assert_eq!(edges.len() as usize, model.len());
            assert!((0..310).all(|slot| edges.contains(slot) == model.contains(&slot)));
        }
    }
}
