//! The states that were met: a hash table whose keys are hashes already.

/// A map from states by their hash. Nothing ever iterates over it, so its order reaches no result.
pub(super) struct Visited<V> {
    /// Zero is an empty slot.
    slots: Vec<(u128, V)>,
    len: usize,
}

impl<V: Copy + Default> Visited<V> {
    pub(super) fn new() -> Visited<V> {
        Visited { slots: vec![(0, V::default()); 64], len: 0 }
    }

    /// The index of the slot that holds `key`, or would.
    fn slot(&self, key: u128) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = key as usize & mask;
        while self.slots[at].0 != key && self.slots[at].0 != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    pub(super) fn get(&self, state: u128) -> Option<V> {
        let (key, value) = self.slots[self.slot(key(state))];
        (key != 0).then_some(value)
    }

    /// Sets the value of a state; what it was before.
    pub(super) fn insert(&mut self, state: u128, value: V) -> Option<V> {
        if self.len * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        let key = key(state);
        let at = self.slot(key);
        let (known, before) = std::mem::replace(&mut self.slots[at], (key, value));
        if known != 0 {
            return Some(before);
        }
        self.len += 1;
        None
    }

    fn grow(&mut self) {
        let bigger = vec![(0, V::default()); self.slots.len() * 2];
        for (key, value) in std::mem::replace(&mut self.slots, bigger) {
            if key != 0 {
                let at = self.slot(key);
                self.slots[at] = (key, value);
            }
        }
    }
}

/// A hash of zero is taken for another, as any two are with a chance of 2^-128.
fn key(state: u128) -> u128 {
    state.max(1)
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
            assert_eq!(visited.insert(key, i), map.insert(key, i));
        }
    }
}
