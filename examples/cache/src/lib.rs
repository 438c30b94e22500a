//! A cache, and a list that does the same in the plainest way.

#![forbid(unsafe_code)]

pub mod cache;

use spelunk_guest::prelude::*;

use cache::Cache;

const CAPACITY: usize = 3;
const KEYS: [char; 4] = ['a', 'b', 'c', 'd'];

#[derive(Default)]
struct Harness {
    cache: Cache<char, u8, CAPACITY>,
    /// What the cache must hold, the newest first.
    model: Vec<(char, u8)>,
}

#[harness]
impl Harness {
    #[rule]
    fn get(&mut self, #[draw(sampled_from(KEYS))] key: char) {
        let expected = self.model.iter().position(|(other, _)| *other == key).map(|place| {
            let entry = self.model.remove(place);
            self.model.insert(0, entry);
            entry.1
        });
        assert_eq!(self.cache.get(&key).copied(), expected);
    }

    #[rule]
    fn put(&mut self, #[draw(sampled_from(KEYS))] key: char, #[draw(0..=1)] value: u8) {
        self.cache.put(key, value);
        self.model.retain(|(other, _)| *other != key);
        self.model.insert(0, (key, value));
        sometimes!(self.model.len() > CAPACITY, "something is forgotten");
        self.model.truncate(CAPACITY);
    }

    #[invariant]
    fn equals_model(&self) {
        let is_equal = self.cache.iter().eq(self.model.iter().map(|(key, value)| (*key, value)));
        assert!(
            is_equal,
            "the cache holds {:?}, expected {:?}",
            self.cache.iter().collect::<Vec<_>>(),
            self.model
        );
    }
}
