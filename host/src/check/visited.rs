//! The states that were met: a hash table whose keys are hashes already.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// A map from states by their hash. Its order reaches no result: whoever wants them sorts them.
pub(super) struct Visited<V>(HashTable<Slot<V>>);

/// A state in words, which take no padding.
struct Slot<V> {
    state: [u32; 4],
    value: V,
}

impl<V: Copy> Slot<V> {
    fn new(state: u128, value: V) -> Slot<V> {
        Slot { state: words(state), value }
    }

    /// What the table is ordered by.
    fn hash(&self) -> u64 {
        u64::from(self.state[1]) << 32 | u64::from(self.state[0])
    }
}

fn words(state: u128) -> [u32; 4] {
    [0, 32, 64, 96].map(|shift| (state >> shift) as u32)
}

fn number(words: [u32; 4]) -> u128 {
    words.iter().rev().fold(0, |number, word| number << 32 | u128::from(*word))
}

impl<V: Copy> Visited<V> {
    /// Bytes that a state takes at most: a slot and what the table keeps of it, where 7 of 16 are in use, as they are once it has grown.
    pub(super) const BYTES: usize = (size_of::<Slot<V>>() + 1) * 16 / 7;

    pub(super) fn new() -> Visited<V> {
        Visited(HashTable::new())
    }

    /// How many states it holds.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, state: u128) -> Option<V> {
        let sought = words(state);
        self.0.find(state as u64, |slot| slot.state == sought).map(|slot| slot.value)
    }

    /// Sets the value of a state; what it was before.
    pub(super) fn insert(&mut self, state: u128, value: V) -> Option<V> {
        match self.entry(state) {
            Entry::Occupied(mut known) => Some(std::mem::replace(&mut known.get_mut().value, value)),
            Entry::Vacant(new) => {
                new.insert(Slot::new(state, value));
                None
            }
        }
    }

    /// Sets the value of a state, where it has a greater one, or none and is not `known` elsewhere; whether it did.
    pub(super) fn lower(&mut self, state: u128, value: V, known: impl FnOnce() -> bool) -> bool
    where
        V: Ord,
    {
        match self.entry(state) {
            Entry::Occupied(known) if known.get().value <= value => false,
            Entry::Occupied(mut known) => {
                known.get_mut().value = value;
                true
            }
            Entry::Vacant(_) if known() => false,
            Entry::Vacant(new) => {
                new.insert(Slot::new(state, value));
                true
            }
        }
    }

    /// The states with such a value, in any order.
    pub(super) fn with(&self, is_wanted: impl Fn(&V) -> bool) -> Vec<u128> {
        self.0.iter().filter(|slot| is_wanted(&slot.value)).map(|slot| number(slot.state)).collect()
    }

    fn entry(&mut self, state: u128) -> Entry<'_, Slot<V>> {
        let sought = words(state);
        self.0.entry(state as u64, |slot| slot.state == sought, Slot::hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use crate::choice::mix;

    #[test]
    fn it_holds_what_a_map_holds() {
        let (mut visited, mut map) = (Visited::new(), BTreeMap::new());
        for i in 0..5000u64 {
            let key = u128::from(mix(i % 1700, 1) % 2000) * 0x1_0000_0001_0000_0000_0001;
            assert_eq!(visited.get(key), map.get(&key).copied());
            if i % 3 == 0 {
                let is_lower = map.get(&key).is_none_or(|known| i / 2 < *known);
                assert_eq!(visited.lower(key, i / 2, || false), is_lower);
                if is_lower {
                    map.insert(key, i / 2);
                }
            } else {
                assert_eq!(visited.insert(key, i), map.insert(key, i));
            }
        }
    }

    /// What is said of a table's size is what it takes.
    #[test]
    fn a_state_takes_as_many_bytes_as_are_counted() {
        let mut visited = Visited::<u32>::new();
        for i in 0..200_000 {
            visited.insert(u128::from(mix(i, 1)) << 64 | u128::from(mix(i, 2)), 0);
            // Where there are few, the least size of a table counts.
            assert!(i < 100 || visited.0.allocation_size() <= (i as usize + 2) * Visited::<u32>::BYTES + 64);
        }
        assert_eq!(Visited::<u32>::BYTES, 48);
    }
}
