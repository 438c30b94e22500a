//! A store with a write-ahead log, which only redoes (Gray and Reuter, "Transaction Processing: Concepts and Techniques",
//! 1993; Mohan and others, "ARIES", 1992), and crashes at any point.
//!
//! A put is appended to the log in memory; a sync writes the log to disk; then the put may be acknowledged, and applied to
//! the table on disk. A checkpoint drops from the log what was applied. A crash leaves what is on disk, and recovery
//! redoes the whole log, of which the table may hold a part.

use std::collections::{BTreeMap, VecDeque};

pub const KEYS: usize = if cfg!(feature = "large") { 3 } else { 2 };
/// Puts that are not lost.
const PUTS_MAX: usize = if cfg!(feature = "large") { 5 } else { 3 };

type Table = BTreeMap<usize, usize>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Record {
    key: usize,
    /// Which put it is, from 1.
    value: usize,
}

/// What a crash leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Disk {
    log: VecDeque<Record>,
    table: Table,
}

/// What a crash takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Memory {
    /// The whole table, for gets.
    table: Table,
    /// Of the log, what was not synced.
    tail: Vec<Record>,
    /// Records of the log on disk that were applied.
    applied: usize,
}

/// The bug with `IS_MISTAKEN`: a put is acknowledged before it is synced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CrashStore<const IS_MISTAKEN: bool> {
    disk: Disk,
    /// Nothing after a crash.
    memory: Option<Memory>,
    /// The keys that were put, in order, without those puts that a crash lost.
    puts: Vec<usize>,
    /// So many puts, from the first on.
    acknowledged: usize,
}

impl<const IS_MISTAKEN: bool> Default for CrashStore<IS_MISTAKEN> {
    fn default() -> Self {
        CrashStore {
            disk: Disk::default(),
            memory: Some(Memory::default()),
            puts: Vec::new(),
            acknowledged: 0,
        }
    }
}

/// What can be done.
impl<const IS_MISTAKEN: bool> CrashStore<IS_MISTAKEN> {
    pub fn can_put(&self) -> bool {
        self.memory.is_some() && self.puts.len() < PUTS_MAX
    }

    pub fn can_sync(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| !memory.tail.is_empty())
    }

    pub fn can_acknowledge(&self) -> bool {
        let is_sure = |memory: &Memory| self.acknowledged < self.puts.len() - memory.tail.len();
        match &self.memory {
            Some(_) if IS_MISTAKEN => self.acknowledged < self.puts.len(),
            Some(memory) => is_sure(memory),
            None => false,
        }
    }

    pub fn can_apply(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.applied < self.disk.log.len())
    }

    pub fn can_check_point(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.applied > 0)
    }

    /// How many records a crash may leave of those that are not synced.
    pub fn can_crash(&self) -> Vec<usize> {
        self.memory.iter().flat_map(|memory| 0..=memory.tail.len()).collect()
    }

    pub fn can_recover(&self) -> bool {
        self.memory.is_none()
    }
}

/// What is done.
impl<const IS_MISTAKEN: bool> CrashStore<IS_MISTAKEN> {
    fn memory(&mut self) -> &mut Memory {
        self.memory.as_mut().expect("the store is running")
    }

    pub fn put(&mut self, key: usize) {
        self.puts.push(key);
        let value = self.puts.len();
        let memory = self.memory();
        memory.table.insert(key, value);
        memory.tail.push(Record { key, value });
    }

    pub fn sync(&mut self) {
        let tail = std::mem::take(&mut self.memory().tail);
        self.disk.log.extend(tail);
    }

    pub fn acknowledge(&mut self) {
        self.acknowledged += 1;
    }

    pub fn apply(&mut self) {
        let at = self.memory().applied;
        let Record { key, value } = self.disk.log[at];
        self.disk.table.insert(key, value);
        self.memory().applied += 1;
    }

    pub fn check_point(&mut self) {
        let applied = std::mem::take(&mut self.memory().applied);
        self.disk.log.drain(..applied);
    }

    pub fn crash(&mut self, kept: usize) {
        let memory = self.memory.take().expect("the store is running");
        self.disk.log.extend(memory.tail.into_iter().take(kept));
    }

    pub fn recover(&mut self) {
        let mut table = self.disk.table.clone();
        table.extend(self.disk.log.iter().map(|record| (record.key, record.value)));
        self.puts.truncate(latest(&table));
        self.memory = Some(Memory { table, ..Memory::default() });
    }
}

/// Which put was the last in this table.
fn latest(table: &Table) -> usize {
    table.values().copied().max().unwrap_or(0)
}

/// What must hold.
impl<const IS_MISTAKEN: bool> CrashStore<IS_MISTAKEN> {
    /// While the store runs, it holds the first so many puts, and all that were acknowledged.
    pub fn is_durable(&self) -> bool {
        self.memory.as_ref().is_none_or(|Memory { table, .. }| {
            let held = &self.puts[..latest(table)];
            let expected: Table = held.iter().copied().zip(1..).collect();
            *table == expected && held.len() >= self.acknowledged
        })
    }
}

#[cfg(feature = "crash-store")]
mod harness {
    use spelunk_guest::prelude::*;

    use super::*;

    #[derive(Clone, Default, Hash)]
    struct Harness(CrashStore<{ cfg!(feature = "mistake") }>);

    #[harness]
    impl Harness {
        #[rule]
        #[precondition(self.0.can_put())]
        fn put(&mut self, #[draw(0..KEYS)] key: usize) {
            self.0.put(key);
        }

        #[rule]
        #[precondition(self.0.can_sync())]
        fn sync(&mut self) {
            self.0.sync();
        }

        #[rule]
        #[precondition(self.0.can_acknowledge())]
        fn acknowledge(&mut self) {
            self.0.acknowledge();
        }

        #[rule]
        #[precondition(self.0.can_apply())]
        fn apply(&mut self) {
            self.0.apply();
        }

        #[rule]
        #[precondition(self.0.can_check_point())]
        fn check_point(&mut self) {
            self.0.check_point();
        }

        #[rule]
        #[precondition(!self.0.can_crash().is_empty())]
        fn crash(&mut self, #[draw(sampled_from(self.0.can_crash()))] kept: usize) {
            self.0.crash(kept);
        }

        #[rule]
        #[precondition(self.0.can_recover())]
        fn recover(&mut self) {
            self.0.recover();
        }

        #[invariant]
        fn durable(&self) {
            assert!(self.0.is_durable(), "{:?}", self.0);
        }
    }
}

#[cfg(all(test, not(feature = "large")))]
mod tests {
    use super::*;
    use crate::native::{Reached, after, after_one, holds, reach};

    fn reached<const IS_MISTAKEN: bool>() -> Reached {
        let next = |store: &CrashStore<IS_MISTAKEN>| {
            [
                after(store, (0..KEYS).filter(|_| store.can_put()), CrashStore::put),
                after_one(store, store.can_sync(), CrashStore::sync),
                after_one(store, store.can_acknowledge(), CrashStore::acknowledge),
                after_one(store, store.can_apply(), CrashStore::apply),
                after_one(store, store.can_check_point(), CrashStore::check_point),
                after(store, store.can_crash(), CrashStore::crash),
                after_one(store, store.can_recover(), CrashStore::recover),
            ]
            .concat()
        };
        reach(next, CrashStore::is_durable)
    }

    #[test]
    fn what_was_acknowledged_is_recovered_if_it_was_synced_before() {
        assert_eq!(reached::<false>(), holds(1_704, 4_672));
        assert_eq!(reached::<true>(), Reached { states: 2_036, steps: 5_886, failure: Some(4) });
    }
}
