//! What a guest says of its properties and events, as one run counts it.
//!
//! What is kept depends on that run alone: on how many runs a machine executed before, and so on the number of workers,
//! nothing depends. What all runs together may name is limited where they are added up, in their order
//! ([`Counts::add`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::property::{Counts, NAMES_BYTES_MAX, NAMES_MAX, OTHERS, Properties, PropertyKind};

/// What was counted since it was last taken.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) properties: Properties,
    /// Which property has this kind and name, by the hash of both.
    index: HashMap<u128, usize, BuildHasherDefault<Hashed>>,
    /// How many of them are declared.
    declared: usize,
    /// Bytes of the names of the others.
    name_bytes: usize,
    /// What the guest says of properties and events counts now.
    pub(crate) counts: bool,
    /// How often each event happened, by its text's bytes.
    events: BTreeMap<Vec<u8>, u64>,
    event_bytes: usize,
    /// A property or an event was counted.
    has_counted: bool,
    /// Those of runs without end, by index, in order.
    liveness: Arc<[usize]>,
    /// What [`Tally::back_to_mark`] goes back to.
    marked: Marked,
    pub(crate) met: Met,
}

/// Properties that did what they claim at some time, whether or not that counts.
#[derive(Default)]
pub(crate) struct Met {
    /// By their hashes, as many as are told apart.
    all: BTreeSet<u128>,
    /// By index, those of which it is known.
    known: Vec<bool>,
    /// There is one that was not asked for yet.
    is_more: bool,
}

impl Met {
    fn meet(&mut self, at: usize, hash: u128) {
        if self.known.len() <= at {
            self.known.resize(at + 1, false);
        }
        self.known[at] = true;
        if self.all.len() < NAMES_MAX {
            self.is_more |= self.all.insert(hash);
        }
    }

    /// Whether there are more than when this was asked last.
    pub(crate) fn is_more(&mut self) -> bool {
        std::mem::take(&mut self.is_more)
    }

    /// Whether all of them are among those of another.
    pub(crate) fn is_among(&self, others: &Met) -> bool {
        self.all.is_subset(&others.all)
    }
}

/// Properties and events that are marked, at most.
const MARKED_MAX: usize = 256;

/// What was counted at some time.
#[derive(Default)]
struct Marked {
    properties: Vec<(u64, u64)>,
    events: BTreeMap<Vec<u8>, u64>,
    event_bytes: usize,
    has_counted: bool,
}

impl Tally {
    /// Of a guest that declares these properties.
    pub(crate) fn new(declared: &Properties) -> Tally {
        let index = |(at, property): (usize, &crate::property::Property)| {
            (hash(property.kind, property.name.as_bytes()), at)
        };
        Tally {
            index: declared.iter().enumerate().map(index).collect(),
            declared: declared.iter().count(),
            properties: declared.clone(),
            liveness: declared.liveness().map(|(at, _)| at).collect(),
            ..Tally::default()
        }
    }

    /// A property was reached.
    pub(crate) fn reach(&mut self, kind: PropertyKind, name: &[u8], holds: bool) {
        let hash = hash(kind, name);
        let at = self.index.get(&hash).copied().or_else(|| self.add(hash, kind, name));
        if let Some(at) = at {
            self.count((at, hash), (kind, holds));
        }
    }

    fn count(&mut self, (at, hash): (usize, u128), (kind, holds): (PropertyKind, bool)) {
        if kind.is_met(holds) && !self.met.known.get(at).is_some_and(|known| *known) {
            self.met.meet(at, hash);
        }
        if self.counts {
            self.properties.at(at).count(holds);
            self.has_counted = true;
        }
    }

    /// The number of a property of runs without end, which is counted as reached; `None` where it is not declared.
    pub(crate) fn live(&mut self, kind: PropertyKind, name: &[u8], holds: bool) -> Option<usize> {
        let hash = hash(kind, name);
        let at = self.index.get(&hash).copied()?;
        let number = self.liveness.binary_search(&at).ok()?;
        self.count((at, hash), (kind, holds));
        Some(number)
    }

    fn add(&mut self, hash: u128, kind: PropertyKind, name: &[u8]) -> Option<usize> {
        let is_full = |tally: &Tally, bytes| {
            tally.index.len() - tally.declared >= NAMES_MAX || tally.name_bytes + bytes > NAMES_BYTES_MAX
        };
        if is_full(self, name.len()) {
            self.forget_others();
        }
        if is_full(self, name.len()) {
            return None;
        }
        self.name_bytes += name.len();
        let at = self.properties.push(kind, String::from_utf8_lossy(name).into_owned());
        self.index.insert(hash, at);
        Some(at)
    }

    /// Forgets properties that earlier runs reached, and this one did not.
    fn forget_others(&mut self) {
        self.properties.retain_counted(self.declared);
        self.index.clear();
        self.met.known.clear();
        self.name_bytes = 0;
        for (at, property) in self.properties.iter().enumerate() {
            self.index.insert(hash(property.kind, property.name.as_bytes()), at);
            if at >= self.declared {
                self.name_bytes += property.name.len();
            }
        }
    }

    /// An event happened.
    pub(crate) fn event(&mut self, name: &[u8]) {
        if !self.counts {
            return;
        }
        self.has_counted = true;
        if let Some(count) = self.events.get_mut(name) {
            *count += 1;
            return;
        }
        let is_full = self.events.len() >= NAMES_MAX || self.event_bytes + name.len() > NAMES_BYTES_MAX;
        let name = if is_full { OTHERS.as_bytes() } else { name };
        self.event_bytes += name.len();
        *self.events.entry(name.to_vec()).or_default() += 1;
    }

    /// Marks what is counted now, in vain if it turns out so; whether it did, which takes too long where much is.
    pub(crate) fn mark(&mut self) -> bool {
        let Tally { marked, properties, events, event_bytes, has_counted, .. } = self;
        if events.len() + properties.iter().len() > MARKED_MAX {
            return false;
        }
        marked.properties.clear();
        marked.properties.extend(properties.iter().map(|property| (property.reached, property.held)));
        marked.events.clone_from(events);
        (marked.event_bytes, marked.has_counted) = (*event_bytes, *has_counted);
        true
    }

    /// Forgets what was counted since then.
    pub(crate) fn back_to_mark(&mut self) {
        self.properties.set_counts(&self.marked.properties);
        self.events = std::mem::take(&mut self.marked.events);
        (self.event_bytes, self.has_counted) = (self.marked.event_bytes, self.marked.has_counted);
    }

    /// What was counted, which is forgotten.
    pub(crate) fn take(&mut self) -> Option<Box<Counts>> {
        std::mem::take(&mut self.has_counted).then(|| {
            self.event_bytes = 0;
            let events = std::mem::take(&mut self.events).into_iter();
            let events = events.map(|(text, count)| (String::from_utf8_lossy(&text).into_owned(), count));
            Box::new(Counts { events: events.collect(), ..Counts::new(self.properties.take()) })
        })
    }
}

fn hash(kind: PropertyKind, name: &[u8]) -> u128 {
    xxh3_128_with_seed(name, kind as u64)
}

/// Takes for a hash what is one.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers of 128 bits")
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(i: usize) -> Vec<u8> {
        format!("property {i}").into_bytes()
    }

    fn names(counts: &Counts) -> Vec<&str> {
        counts.properties.iter().map(|property| property.name.as_str()).collect()
    }

    #[test]
    fn what_a_run_counts_does_not_depend_on_earlier_runs() {
        let declared = Properties::parse(b"sometimes declared\n");
        let (mut old, mut fresh) = (Tally::new(&declared), Tally::new(&declared));
        (old.counts, fresh.counts) = (true, true);
        for i in 0..NAMES_MAX + 10 {
            old.reach(PropertyKind::Reachable, &name(i), true);
            old.event(&name(i));
        }
        let first = old.take().unwrap();
        assert_eq!((first.properties.iter().count(), first.events.len()), (NAMES_MAX, NAMES_MAX + 1));
        assert_eq!(first.events[OTHERS], 10);
        for tally in [&mut old, &mut fresh] {
            tally.reach(PropertyKind::Sometimes, b"declared", false);
            tally.reach(PropertyKind::Reachable, &name(NAMES_MAX + 5), true);
            tally.reach(PropertyKind::Reachable, &name(3), true);
            tally.event(&name(NAMES_MAX + 5));
        }
        let (old, fresh) = (old.take().unwrap(), fresh.take().unwrap());
        assert_eq!(names(&old).len(), 3);
        let mut sum = [Counts::new(declared.clone()), Counts::new(declared)];
        sum[0].add(&old);
        sum[1].add(&fresh);
        assert_eq!(sum[0], sum[1]);
    }

    #[test]
    fn long_names_fill_it_sooner() {
        let mut tally = Tally { counts: true, ..Tally::default() };
        for i in 0..100u8 {
            let name = vec![i; 64 << 10];
            tally.reach(PropertyKind::Reachable, &name, true);
            tally.event(&name);
        }
        let counts = tally.take().unwrap();
        let max = NAMES_BYTES_MAX / (64 << 10);
        assert_eq!((counts.properties.iter().count(), counts.events.len()), (max, max + 1));
    }
}
