//! A cache that forgets what was not used for longest.

use std::collections::BTreeMap;

/// Holds up to `CAPACITY` entries. They are linked in the order of their last use, so that each operation takes as long as
/// looking up its key.
pub struct Cache<K, V, const CAPACITY: usize> {
    /// Where the entry of each key is.
    places: BTreeMap<K, usize>,
    entries: Vec<Entry<K, V>>,
    newest: usize,
    oldest: usize,
}

struct Entry<K, V> {
    key: K,
    value: V,
    newer: usize,
    older: usize,
}

/// No entry.
const NONE: usize = usize::MAX;

impl<K: Copy + Ord, V, const CAPACITY: usize> Cache<K, V, CAPACITY> {
    /// Without an entry.
    pub fn new() -> Cache<K, V, CAPACITY> {
        Cache { places: BTreeMap::new(), entries: Vec::with_capacity(CAPACITY), newest: NONE, oldest: NONE }
    }

    /// The value of this key, which is used by that.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        let place = *self.places.get(key)?;
        self.unlink(place);
        self.link(place);
        Some(&self.entries[place].value)
    }

    /// Sets the value of this key, which is used by that.
    pub fn put(&mut self, key: K, value: V) {
        if let Some(&place) = self.places.get(&key) {
            self.entries[place].value = value;
            if cfg!(feature = "fixed") {
                self.unlink(place);
                self.link(place);
            }
            // The bug: without that, the entry is as old as it was.
            return;
        }
        let entry = Entry { key, value, newer: NONE, older: NONE };
        let place = match self.entries.len() < CAPACITY {
            true => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
            false => {
                let place = self.oldest;
                self.unlink(place);
                self.places.remove(&self.entries[place].key);
                self.entries[place] = entry;
                place
            }
        };
        self.places.insert(key, place);
        self.link(place);
    }

    /// The entries, the newest first.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let mut place = self.newest;
        std::iter::from_fn(move || {
            let entry = self.entries.get(place)?;
            place = entry.older;
            Some((entry.key, &entry.value))
        })
    }

    fn unlink(&mut self, place: usize) {
        let Entry { newer, older, .. } = self.entries[place];
        match newer {
            NONE => self.newest = older,
            _ => self.entries[newer].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.entries[older].newer = newer,
        }
    }

    /// Makes it the newest.
    fn link(&mut self, place: usize) {
        self.entries[place].newer = NONE;
        self.entries[place].older = self.newest;
        match self.newest {
            NONE => self.oldest = place,
            newest => self.entries[newest].newer = place,
        }
        self.newest = place;
    }
}

impl<K: Copy + Ord, V, const CAPACITY: usize> Default for Cache<K, V, CAPACITY> {
    fn default() -> Cache<K, V, CAPACITY> {
        Cache::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let mut cache = Cache::<_, _, 2>::new();
        cache.put('a', 1);
        cache.put('b', 2);
        assert_eq!(cache.get(&'a'), Some(&1));
        cache.put('c', 3);
        assert_eq!(cache.get(&'b'), None);
        assert!(cache.iter().eq([('c', &3), ('a', &1)]));
    }
}
