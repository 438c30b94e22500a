//! Who met each state first. What does not fit in memory is elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use super::nodes::NONE;
use crate::check::visited::Visited;
use crate::check::{Hashes, lock};

/// The states that were met, by hash, and the first node known to lead to each.
pub(super) struct Claims {
    /// In the order of their hashes: tables, of which few grow at a time, together where one worker has them all.
    groups: Vec<Mutex<Vec<Visited<u32>>>>,
    /// Those that were met before all that are claimed now.
    old: RwLock<Option<Box<dyn Hashes>>>,
    /// Those could not be read, so it is not known what is new.
    is_broken: AtomicBool,
    /// All nodes of the last round claimed in their order, so none has taken a claim from another.
    is_in_turn: AtomicBool,
}

/// Tables, so many that workers seldom wait for one another. Which one a state is in its highest bits say.
const TABLES: usize = 1 << TABLE_BITS;
const TABLE_BITS: u32 = 6;

impl Claims {
    /// Bytes that a state takes: few of the tables grow at a time.
    pub(super) const BYTES: usize = Visited::<u32>::BYTES;

    pub(super) fn new(workers: usize) -> Claims {
        let groups = if workers == 1 { 1 } else { TABLES };
        let group = |_| Mutex::new((0..TABLES / groups).map(|_| Visited::new()).collect());
        Claims {
            groups: (0..groups).map(group).collect(),
            old: RwLock::new(None),
            is_broken: AtomicBool::new(false),
            is_in_turn: AtomicBool::new(false),
        }
    }

    /// Does something with the table that a state belongs to.
    fn with<R>(&self, state: u128, f: impl FnOnce(&mut Visited<u32>) -> R) -> R {
        self.with_table(table_of(state), f)
    }

    fn with_table<R>(&self, table: usize, f: impl FnOnce(&mut Visited<u32>) -> R) -> R {
        let (group, at) = if self.groups.len() == 1 { (0, table) } else { (table, 0) };
        f(&mut lock(&self.groups[group])[at])
    }

    /// Claims a state for a node; whether no node before it, nor this one, has claimed it.
    pub(super) fn claim(&self, state: u128, node: u32) -> bool {
        self.with(state, |table| table.lower(state, node, || self.is_old(state)))
    }

    /// As [`Claims::claim`], of several states in their order.
    pub(super) fn claim_all(&self, states: &[u128], node: u32, are_new: &mut Vec<bool>) {
        are_new.clear();
        let [group] = &self.groups[..] else {
            return are_new.extend(states.iter().map(|state| self.claim(*state, node)));
        };
        let mut tables = lock(group);
        // Mostly none of it is in a cache, and what is read without waiting for what was found comes together.
        let may_be_new = |state: &u128| tables[table_of(*state)].get(*state).is_none_or(|known| known > node);
        are_new.extend(states.iter().map(may_be_new));
        for (state, is_new) in states.iter().zip(are_new) {
            *is_new = *is_new && tables[table_of(*state)].lower(*state, node, || self.is_old(*state));
        }
    }

    /// Claims a state for a node, both of which nobody met before.
    pub(super) fn add(&self, state: u128, node: u32) {
        self.with(state, |table| table.lower(state, node, || false));
    }

    fn is_old(&self, state: u128) -> bool {
        let old = self.old.read().unwrap_or_else(PoisonError::into_inner);
        let Some(old) = &*old else { return false };
        old.contains(state).unwrap_or_else(|| {
            self.is_broken.store(true, Ordering::Relaxed);
            true
        })
    }

    /// A round is over; whether its nodes claimed in their order.
    pub(super) fn claimed(&self, is_in_turn: bool) {
        self.is_in_turn.store(is_in_turn, Ordering::Relaxed);
    }

    /// Whether a state that this node claimed in the last round is still its own.
    pub(super) fn belongs_to(&self, state: u128, node: u32) -> bool {
        self.is_in_turn.load(Ordering::Relaxed) || self.with(state, |table| table.get(state)) == Some(node)
    }

    /// Takes a claim back.
    pub(super) fn forget(&self, state: u128, node: u32) {
        self.with(state, |table| {
            if table.get(state) == Some(node) {
                table.insert(state, NONE);
            }
        });
    }

    /// Whether some state was taken for known because it could not be looked for.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Bytes of memory that all this takes, about.
    pub(super) fn bytes(&self) -> usize {
        let met: usize = (0..TABLES).map(|table| self.with_table(table, |table| table.len())).sum();
        let old = self.old.read().unwrap_or_else(PoisonError::into_inner);
        met * Claims::BYTES + old.as_ref().map_or(0, |old| old.bytes())
    }

    /// Moves all that were met to where others were moved, or else to `place`, as long as it `goes_on`. No node that was looked at
    /// before claims any from here on. Whether they were moved: if not, all is as it was.
    pub(super) fn store(
        &self,
        place: impl FnOnce() -> Option<Box<dyn Hashes>>,
        goes_on: &dyn Fn() -> bool,
    ) -> bool {
        let mut old = self.old.write().unwrap_or_else(PoisonError::into_inner);
        let Some(mut hashes) = old.take().or_else(place) else { return false };
        let mut states = (0..TABLES).flat_map(|table| {
            let mut states = self.with_table(table, |table| table.with(|node| *node != NONE));
            states.sort_unstable();
            states
        });
        let is_moved = hashes.add(&mut states, goes_on);
        if is_moved {
            (0..TABLES).for_each(|table| self.with_table(table, |table| *table = Visited::new()));
        }
        *old = Some(hashes);
        is_moved
    }
}

fn table_of(state: u128) -> usize {
    (state >> (u128::BITS - TABLE_BITS)) as usize
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::check::tests::endless;
    use crate::check::{End, Keeper, Keeping, Limit, News, Options, check_keeping};
    use crate::choice::mix;
    use crate::model::Model;
    use crate::outcome::Outcome;
    use crate::property::Counts;
    use crate::trace::{Action, Trace};

    /// Hashes that can be added and asked for so often.
    struct Elsewhere(BTreeSet<u128>, u64, AtomicU64);

    impl Hashes for Elsewhere {
        fn add(&mut self, more: &mut dyn Iterator<Item = u128>, goes_on: &dyn Fn() -> bool) -> bool {
            let more: Vec<u128> = more.collect();
            assert!(more.is_sorted() && goes_on());
            self.1 = self.1.saturating_sub(1);
            self.0.extend(if self.1 > 0 { more } else { Vec::new() });
            self.1 > 0
        }

        fn contains(&self, state: u128) -> Option<bool> {
            let left = self.2.load(Ordering::Relaxed);
            self.2.store(left.saturating_sub(1), Ordering::Relaxed);
            (left > 0).then(|| self.0.contains(&state))
        }

        fn bytes(&self) -> usize {
            0
        }
    }

    pub(in crate::check) fn elsewhere(adds: u64, asks: u64) -> Option<Box<dyn Hashes>> {
        Some(Box::new(Elsewhere(BTreeSet::new(), adds + 1, AtomicU64::new(asks))))
    }

    /// Claims as they come in levels.
    #[test]
    fn what_is_elsewhere_is_claimed_no_more() {
        let (all, some) = (Claims::new(1), Claims::new(3));
        for level in 0..20u32 {
            for i in 0..400 {
                let i = u64::from(level) * 400 + i;
                let state = mix(mix(i, 1) % (100 + i), 2);
                let state = u128::from(state) << 64 | u128::from(mix(state, 3));
                let node = level * 100 + (mix(i, 4) % 100) as u32;
                let mut are_new = Vec::new();
                all.claim_all(&[state, !state, state], node, &mut are_new);
                assert_eq!(are_new, [some.claim(state, node), some.claim(!state, node), false]);
                if i % 7 == 0 {
                    [&all, &some].iter().for_each(|claims| claims.forget(state, node));
                }
                assert_eq!(all.belongs_to(state, node), some.belongs_to(state, node));
            }
            if level % 3 == 2 {
                assert!(some.store(|| elsewhere(u64::MAX - 1, u64::MAX), &|| true));
                assert_eq!(some.bytes(), 0);
            }
        }
        assert!(!some.is_broken());
    }

    #[test]
    fn what_cannot_be_moved_stays_and_what_cannot_be_asked_for_is_told() {
        let claims = Claims::new(1);
        assert!(claims.claim(7, 1));
        assert!(!claims.store(|| None, &|| true));
        assert!(claims.store(|| elsewhere(1, 1), &|| true));
        assert!(claims.claim(8, 2) && !claims.is_broken());
        assert!(!claims.store(|| None, &|| true));
        assert!(claims.belongs_to(8, 2));
        assert!(!claims.claim(9, 2) && claims.is_broken());
    }

    /// Gives a place for hashes, and counts how often.
    struct Place(fn() -> Option<Box<dyn Hashes>>, AtomicU64);

    impl Keeper for Place {
        fn is_due(&self) -> bool {
            false
        }

        fn keep(&self, _: &News) {}

        fn hashes(&self) -> Option<Box<dyn Hashes>> {
            self.1.fetch_add(1, Ordering::Relaxed);
            (self.0)()
        }
    }

    #[test]
    fn what_does_not_fit_in_memory_is_elsewhere() {
        let checked = |memory: usize, place: fn() -> Option<Box<dyn Hashes>>, workers: usize| {
            let make = |_| {
                let mut model = Model::new([0u16; 3], &["a", "b", "c"], &[], |at, action, _, _| {
                    let Action::Rule(rule) = action else { unreachable!() };
                    at[usize::from(rule)] += 1;
                    Outcome::Pass
                });
                model.guard = |at, rule| at[usize::from(rule)] < 29;
                model
            };
            let mut models: Vec<_> = (0..workers).map(make).collect();
            let options = Options { met_bytes_max: memory, ..Options::default() };
            let place = Place(place, AtomicU64::new(0));
            let keeping = Keeping { before: Box::new(std::iter::empty()), keeper: &place, helpers: None };
            let mut counts = Counts::default();
            let (goes_on, mut told) = (&endless, |_: &Trace, _: &End| ());
            let checked =
                check_keeping(&mut models, &options, (goes_on, &mut told), (Some(keeping), &mut counts));
            (checked.unwrap(), place.1.load(Ordering::Relaxed))
        };
        let (all, asked) = checked(1 << 30, || None, 1);
        assert_eq!((all.census.states, all.limit, asked), (27_000, None, 0));
        for workers in [1, 3] {
            let (some, asked) = checked(1 << 20, || elsewhere(100, u64::MAX), workers);
            assert_eq!(some, all);
            assert_eq!(asked, 1);
        }
        for place in [|| None, || elsewhere(1, u64::MAX), || elsewhere(100, 1000)] {
            let (some, _) = checked(1 << 20, place, 1);
            assert_eq!((some.limit, some.findings.len()), (Some(Limit::Memory), 0));
        }
    }
}
