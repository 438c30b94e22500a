//! Clients of the locks, each of which may be slow, and what they know about who holds what.

#![forbid(unsafe_code)]

pub mod locks;

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use spelunk_guest::prelude::*;

use locks::{Client, LEASE, Locks};

const NAMES: [&str; 2] = ["a", "b"];

#[derive(Default)]
struct Harness {
    locks: Locks,
    /// The seconds that have passed.
    now: u64,
    /// Who must hold each lock, and when the lease ends.
    expected: BTreeMap<&'static str, (Client, u64)>,
    /// The locks that a client took and did not give back yet. It does not look at the clock.
    taken: BTreeSet<(&'static str, Client)>,
}

#[harness]
impl Harness {
    #[rule]
    fn acquire(&mut self, #[draw(sampled_from(NAMES))] name: &'static str, #[draw(1..=3)] client: Client) {
        if self.locks.acquire(name, client) {
            self.expected.insert(name, (client, self.now + LEASE.as_secs()));
            self.taken.insert((name, client));
        } else {
            note!("another client holds it");
        }
    }

    #[rule]
    #[precondition(!self.taken.is_empty())]
    fn release(&mut self, #[draw(sampled_from(&self.taken))] taken: (&'static str, Client)) {
        let (name, client) = taken;
        self.locks.release(name);
        self.taken.remove(&taken);
        if self.expected.get(name).is_some_and(|(holder, _)| *holder == client) {
            self.expected.remove(name);
        }
    }

    #[rule]
    fn wait(&mut self, #[draw(1..=60)] seconds: u64) {
        thread::sleep(Duration::from_secs(seconds));
        self.now += seconds;
    }

    #[invariant]
    fn each_has_its_holder(&self) {
        for name in NAMES {
            let lease = self.expected.get(name).filter(|(_, ends)| self.now < *ends);
            let expected = lease.map(|(holder, _)| *holder);
            let found = self.locks.holder(name);
            assert!(found == expected, "{name} is held by {found:?}, expected {expected:?}");
        }
    }
}
