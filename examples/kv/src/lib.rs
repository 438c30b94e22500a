//! A log-structured key-value store, and its harness: whatever is done to it, and whenever the power fails,
//! it holds what a map would hold.
//!
//! [`store`] and [`record`] are the product; [`disk`] stands for the disk it would run on.

#![forbid(unsafe_code)]

pub mod disk;
pub mod record;
pub mod store;

use std::collections::BTreeMap;

use spelunk_guest::prelude::*;

use disk::FakeDisk;
use store::{PowerLost, Store};

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

type Map = BTreeMap<String, u8>;

struct Harness {
    /// `None` only while it is opened again.
    store: Option<Store<FakeDisk>>,
    /// What the store must hold.
    model: Map,
}

#[harness]
impl Harness {
    #[setup]
    fn new() -> Harness {
        Harness { store: Some(open(FakeDisk::default())), model: Map::new() }
    }

    #[rule]
    fn put(&mut self, #[draw(sampled_from(KEYS))] key: &'static str, value: u8) {
        let result = self.store_mut().put(key.as_bytes(), &[value]);
        self.settle(result, |model| {
            model.insert(key.into(), value);
        });
    }

    #[rule]
    fn get(&self, #[draw(sampled_from(KEYS))] key: &'static str) {
        let found = self.store().get(key.as_bytes());
        let expected = self.model.get(key).map(std::slice::from_ref);
        assert!(found == expected, "{key} is {found:?}, expected {expected:?}");
    }

    #[rule]
    fn delete(&mut self, #[draw(sampled_from(KEYS))] key: &'static str) {
        let result = self.store_mut().delete(key.as_bytes());
        self.settle(result, |model| {
            model.remove(key);
        });
    }

    #[rule]
    fn compact(
        &mut self,
        #[draw(0..self.store().segments_len())] from: usize,
        #[draw(from..self.store().segments_len())] to: usize,
    ) {
        let result = self.store_mut().compact(from..=to);
        self.settle(result, |_| ());
    }

    #[rule]
    fn reopen(&mut self) {
        self.open_again();
    }

    #[invariant]
    fn equals_model(&self) {
        let store = self.store();
        let is_equal = store.keys_len() == self.model.len()
            && store
                .iter()
                .zip(&self.model)
                .all(|(found, (key, value))| found == (key.as_bytes(), &[*value]));
        assert!(is_equal, "the store holds {:?}, expected {:?}", contents(store), self.model);
    }

    /// Brings the model to where the store is: `change` has happened, or the power failed and it is one of the
    /// two whether it has.
    fn settle(&mut self, result: Result<(), PowerLost>, change: impl Fn(&mut Map)) {
        if result == Err(PowerLost) {
            self.open_again();
            let found = contents(self.store());
            let before = self.model.clone();
            change(&mut self.model);
            sometimes!(found != self.model, "a power loss undid a change");
            if found == before {
                self.model = before;
            }
        } else {
            change(&mut self.model);
        }
    }

    fn open_again(&mut self) {
        let store = self.store.take().expect("it is open");
        self.store = Some(open(store.close()));
    }

    fn store(&self) -> &Store<FakeDisk> {
        self.store.as_ref().expect("it is open")
    }

    fn store_mut(&mut self) -> &mut Store<FakeDisk> {
        self.store.as_mut().expect("it is open")
    }
}

/// Opens the store, during which the power may fail again, but not for ever.
fn open(mut disk: FakeDisk) -> Store<FakeDisk> {
    const TRIES_MAX: u32 = 3;
    for attempt in 1.. {
        disk.is_steady = attempt == TRIES_MAX;
        match Store::open(disk) {
            Ok(mut store) => {
                store.disk_mut().is_steady = false;
                return store;
            }
            Err((PowerLost, returned)) => disk = returned,
        }
    }
    unreachable!("a steady disk does not fail")
}

fn contents(store: &Store<FakeDisk>) -> Map {
    store.iter().map(|(key, value)| (String::from_utf8_lossy(key).into_owned(), value[0])).collect()
}
