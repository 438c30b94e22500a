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
            self.seen.resize((slot + 1).next_multiple_of(LINE), 0);
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

    /// As [`EdgeSet::take_new`] of some counters, the first of which is that of the slot `first`.
    pub fn take_some(&self, first: u32, counters: &mut [u8], new: &mut Vec<u32>) {
        let (words, rest) = counters.as_chunks_mut::<8>();
        for (at, word) in words.iter_mut().enumerate() {
            if *word != [0; 8] {
                self.take_each(first + at as u32 * 8, word, new);
            }
        }
        let end = first + words.len() as u32 * 8;
        self.take_each(end, rest, new);
    }

    fn take_each(&self, first: u32, counters: &mut [u8], new: &mut Vec<u32>) {
        for (slot, counter) in (first..).zip(counters) {
            if std::mem::take(counter) != 0 && !self.contains(slot) {
                new.push(slot);
            }
        }
    }

    /// Zeroes the hit counters, and puts the slots of those that were not zero and are not in the set into `new`.
    /// Most counters are zero, so they are looked at by the line.
    pub fn take_new(&self, counters: &mut [u8], new: &mut Vec<u32>) {
        let (lines, rest) = counters.as_chunks_mut::<LINE>();
        let (seen, _) = self.seen.as_chunks::<LINE>();
        for (at, line) in lines.iter_mut().enumerate() {
            if line.iter().fold(0, |any, counter| any | counter) != 0 {
                take_line(at * LINE, line, seen.get(at).unwrap_or(&[0; LINE]), new);
            }
        }
        let count = lines.len();
        let mut line = [0; LINE];
        line[..rest.len()].copy_from_slice(rest);
        rest.fill(0);
        take_line(count * LINE, &mut line, seen.get(count).unwrap_or(&[0; LINE]), new);
    }
}

/// Zeroes one line of counters, the first of which is that of the slot `first`.
fn take_line(first: usize, counters: &mut [u8; LINE], seen: &[u8; LINE], new: &mut Vec<u32>) {
    let (words, _) = counters.as_chunks_mut::<8>();
    let (seen, _) = seen.as_chunks::<8>();
    for (at, (word, seen)) in words.iter_mut().zip(seen).enumerate() {
        let counts = u64::from_le_bytes(std::mem::take(word));
        // 1 in each byte that is not 0: the sum carries into the top bit unless the low seven are all 0.
        let low = u64::from_le_bytes([0x7f; 8]);
        let hits = (((counts & low) + low) | counts) >> 7 & u64::from_le_bytes([1; 8]);
        let mut unseen = hits & !u64::from_le_bytes(*seen);
        while unseen != 0 {
            new.push((first + at * 8) as u32 + unseen.trailing_zeros() / 8);
            unseen &= unseen - 1;
        }
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
            let mut counters = vec![0u8; rng.random_range(1..300)];
            for _ in 0..rng.random_range(0..4) {
                let slot = rng.random_range(0..counters.len());
                counters[slot] = rng.random();
            }
            let hit: BTreeSet<u32> =
                (0u32..).zip(&counters).filter(|(_, n)| **n != 0).map(|(i, _)| i).collect();
            let expected: Vec<u32> = hit.difference(&model).copied().collect();
            let mut new = Vec::new();
            let at = rng.random_range(0..=counters.len());
            let (front, back) = (&mut counters.clone()[..at], &mut counters.clone()[at..]);
            edges.take_some(0, front, &mut new);
            edges.take_some(at as u32, back, &mut new);
            assert_eq!(new, expected);
            new.clear();
            edges.take_new(&mut counters, &mut new);
            assert_eq!(new, expected);
            assert!(new.into_iter().all(|slot| edges.insert(slot)));
            assert!(counters.iter().all(|n| *n == 0));
            model.extend(hit);
            let one = rng.random_range(0..300);
            assert_eq!(edges.insert(one), model.insert(one));
            assert_eq!(edges.len() as usize, model.len());
            assert!((0..310).all(|slot| edges.contains(slot) == model.contains(&slot)));
        }
    }
}
