//! Peterson's filter lock ("Myths about the mutual exclusion problem", 1981; Herlihy and Shavit, "The Art of
//! Multiprocessor Programming", 2.4) for three threads. Each step is one read or write of a shared variable. A thread reads the levels of
//! the others in any order.

use spelunk_guest::prelude::*;

const THREADS: usize = 3;
/// At each level but 0 one thread is held back, so the last one lets one through.
const LEVELS: usize = if cfg!(feature = "mistake") { THREADS - 1 } else { THREADS };

/// Tells their ids from others.
pub struct Thread;

type Id = Scalar<THREADS, Thread>;
type Ids = ScalarSet<THREADS, Thread>;

/// The next step of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum At {
    #[default]
    Outside,
    WriteLevel {
        level: usize,
    },
    WriteVictim {
        level: usize,
    },
    /// Whether one of these is at this level or above.
    ReadLevel {
        level: usize,
        of: Ids,
    },
    /// Since another one is: whether the victim is still the thread itself.
    ReadVictim {
        level: usize,
    },
    Inside,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FilterLock {
    levels: PerScalar<THREADS, usize, Thread>,
    /// Of each level the last one to come there.
    victims: [Option<Id>; THREADS],
    at: PerScalar<THREADS, At, Thread>,
}

impl FilterLock {
    /// Those that a thread may read the level of next; itself where it does something else.
    pub fn others(&self, thread: Id) -> Ids {
        match self.at[thread] {
            At::ReadLevel { of, .. } => of,
            _ => Ids::from_iter([thread]),
        }
    }

    /// A step of this thread, which reads the level of `other` if that is what it does.
    pub fn step(&mut self, thread: Id, other: Id) {
        self.at[thread] = match self.at[thread].clone() {
            At::Outside => At::WriteLevel { level: 1 },
            At::WriteLevel { level } => {
                self.levels[thread] = level;
                At::WriteVictim { level }
            }
            At::WriteVictim { level } => {
                self.victims[level] = Some(thread);
                FilterLock::read_all(thread, level)
            }
            At::ReadLevel { level, .. } if self.levels[other] >= level => At::ReadVictim { level },
            At::ReadLevel { level, mut of } => {
                of.remove(other);
                if of.is_empty() { FilterLock::next_level(level) } else { At::ReadLevel { level, of } }
            }
            At::ReadVictim { level } if self.victims[level] == Some(thread) => {
                FilterLock::read_all(thread, level)
            }
            At::ReadVictim { level } => FilterLock::next_level(level),
            At::Inside => {
                self.levels[thread] = 0;
                At::Outside
            }
        };
    }

    fn read_all(thread: Id, level: usize) -> At {
        At::ReadLevel { level, of: Ids::of(|other| other != thread) }
    }

    fn next_level(level: usize) -> At {
        if level + 1 < LEVELS { At::WriteLevel { level: level + 1 } } else { At::Inside }
    }

    pub fn is_exclusive(&self) -> bool {
        self.at.values().filter(|at| **at == At::Inside).count() <= 1
    }
}

#[cfg(feature = "filter-lock")]
mod harness {
    use super::*;

    #[derive(Default, Hash)]
    struct Harness(FilterLock);

    #[harness]
    impl Harness {
        #[rule]
        fn step(&mut self, thread: Id, #[draw(sampled_from(self.0.others(thread)))] other: Id) {
            self.0.step(thread, other);
        }

        #[invariant]
        fn exclusive(&self) {
            assert!(self.0.is_exclusive(), "{:?}", self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Protocol, Reached, after, reach};

    impl Protocol<THREADS, Thread> for FilterLock {
        fn next(&self) -> Vec<FilterLock> {
            let steps =
                |thread| after(self, self.others(thread), move |lock, other| lock.step(thread, other));
            Id::all().iter().flat_map(steps).collect()
        }

        fn is_right(&self) -> bool {
            self.is_exclusive()
        }

        fn renamed(&self, to: impl Fn(Id) -> Id) -> FilterLock {
            let mut renamed = FilterLock::default();
            for thread in Id::all() {
                renamed.levels[to(thread)] = self.levels[thread];
                renamed.at[to(thread)] = match self.at[thread].clone() {
                    At::ReadLevel { level, of } => At::ReadLevel { level, of: of.iter().map(&to).collect() },
                    at => at,
                };
            }
            renamed.victims = self.victims.map(|victim| victim.map(&to));
            renamed
        }
    }

    #[test]
    fn whoever_is_who_there_are_fewer_states() {
        let expected = match cfg!(feature = "mistake") {
            false => Reached { states: 3_774, orbits: 662, steps: 2_354, failure: None },
            true => Reached { states: 651, orbits: 126, steps: 433, failure: Some(13) },
        };
        assert_eq!(reach::<THREADS, Thread, FilterLock>(), expected);
    }
}
