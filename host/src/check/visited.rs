//! The states that were met: a hash table whose keys are hashes already.

/// A map from states by their hash. Nothing ever iterates over it, so its order reaches no result.
pub(super) struct Visited<V> {
    /// Zero is an empty slot.
    keys: Vec<u128>,
    /// The value of each key. Apart, so that more keys fit the processor's caches: most states are known, and of those
    /// the key alone is looked at where the values cannot matter.
    values: Vec<V>,
    len: usize,
}

impl<V: Copy + Default> Visited<V> {
    pub(super) fn new() -> Visited<V> {
        Visited { keys: vec![0; 64], values: vec![V::default(); 64], len: 0 }
    }

    /// The index of the slot that holds `key`, or would.
    fn slot(&self, key: u128) -> usize {
        let mask = self.keys.len() - 1;
        let mut at = key as usize & mask;
        while self.keys[at] != key && self.keys[at] != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    /// Whether a state was met.
    pub(super) fn contains(&self, state: u128) -> bool {
        self.keys[self.slot(key(state))] != 0
    }

    pub(super) fn get(&self, state: u128) -> Option<V> {
        let at = self.slot(key(state));
        (self.keys[at] != 0).then(|| self.values[at])
    }

    /// Sets the value of a state; what it was before.
    pub(super) fn insert(&mut self, state: u128, value: V) -> Option<V> {
        if self.len * 4 >= self.keys.len() * 3 {
            self.grow();
        }
        let key = key(state);
        let at = self.slot(key);
        let is_known = std::mem::replace(&mut self.keys[at], key) != 0;
        let before = std::mem::replace(&mut self.values[at], value);
        self.len += usize::from(!is_known);
        is_known.then_some(before)
    }

    fn grow(&mut self) {
        let keys = vec![0; self.keys.len() * 2];
        let values = vec![V::default(); keys.len()];
        let keys = std::mem::replace(&mut self.keys, keys);
        let values = std::mem::replace(&mut self.values, values);
        for (key, value) in keys.into_iter().zip(values) {
            if key != 0 {
                let at = self.slot(key);
                (self.keys[at], self.values[at]) = (key, value);
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
            assert_eq!(visited.contains(key), map.contains_key(&key));
            assert_eq!(visited.get(key), map.get(&key).copied());
            assert_eq!(visited.insert(key, i), map.insert(key, i));
        }
    }
}
