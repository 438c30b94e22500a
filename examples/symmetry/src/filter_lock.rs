//! Peterson's filter lock ("Myths about the mutual exclusion problem", 1981; Herlihy and Shavit, "The Art of
//! Multiprocessor Programming", 2.4). Each step is one read or write of a shared variable. A thread reads the levels of
//! the others in any order.

use spelunk_guest::prelude::*;

use crate::Protocol;

/// Tells their ids from others.
pub struct Thread;

type Id<const N: usize> = Scalar<N, Thread>;
type Ids<const N: usize> = ScalarSet<N, Thread>;

/// The next step of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum At<const N: usize> {
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
        of: Ids<N>,
    },
    /// Since another one is: whether the victim is still the thread itself.
    ReadVictim {
        level: usize,
    },
    Inside,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilterLock<const N: usize> {
    levels: PerScalar<N, usize, Thread>,
    /// Of each level the last one to come there.
    victims: [Option<Id<N>>; N],
    at: PerScalar<N, At<N>, Thread>,
}

impl<const N: usize> Default for FilterLock<N> {
    fn default() -> Self {
        FilterLock { levels: PerScalar::default(), victims: [None; N], at: PerScalar::default() }
    }
}

impl<const N: usize> FilterLock<N> {
    /// At each level but 0 one thread is held back, so the last one lets one through.
    const LEVELS: usize = if cfg!(feature = "mistake") { N - 1 } else { N };

    /// Those that a thread may read the level of next; itself where it does something else.
    fn others(&self, thread: Id<N>) -> Ids<N> {
        match self.at[thread] {
            At::ReadLevel { of, .. } => of,
            _ => Ids::from_iter([thread]),
        }
    }

    /// A step of this thread, which reads the level of `other` if that is what it does.
    fn step(&mut self, thread: Id<N>, other: Id<N>) {
        self.at[thread] = match self.at[thread].clone() {
            At::Outside => At::WriteLevel { level: 1 },
            At::WriteLevel { level } => {
                self.levels[thread] = level;
                At::WriteVictim { level }
            }
            At::WriteVictim { level } => {
                self.victims[level] = Some(thread);
                Self::read_all(thread, level)
            }
            At::ReadLevel { level, .. } if self.levels[other] >= level => At::ReadVictim { level },
            At::ReadLevel { level, mut of } => {
                of.remove(other);
                if of.is_empty() { Self::next_level(level) } else { At::ReadLevel { level, of } }
            }
            At::ReadVictim { level } if self.victims[level] == Some(thread) => Self::read_all(thread, level),
            At::ReadVictim { level } => Self::next_level(level),
            At::Inside => {
                self.levels[thread] = 0;
                At::Outside
            }
        };
    }

    fn read_all(thread: Id<N>, level: usize) -> At<N> {
        At::ReadLevel { level, of: Ids::of(|other| other != thread) }
    }

    fn next_level(level: usize) -> At<N> {
        if level + 1 < Self::LEVELS { At::WriteLevel { level: level + 1 } } else { At::Inside }
    }

    fn is_exclusive(&self) -> bool {
        self.at.values().filter(|at| **at == At::Inside).count() <= 1
    }
}

/// A step of a thread, which reads the level of the other one if that is what it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Action<const N: usize>(Id<N>, Id<N>);

impl<const N: usize> Protocol for FilterLock<N> {
    type Action = Action<N>;

    fn actions(&self, actions: &mut Vec<Action<N>>) {
        for thread in Id::all() {
            actions.extend(self.others(thread).iter().map(|other| Action(thread, other)));
        }
    }

    fn perform(&mut self, Action(thread, other): Action<N>) {
        self.step(thread, other);
    }

    fn is_right(&self) -> bool {
        self.is_exclusive()
    }
}

#[cfg(feature = "filter-lock")]
mod harness {
    use super::*;

    const THREADS: usize = if cfg!(feature = "n4") { 4 } else { 3 };

    #[derive(Clone, Default, Hash)]
    struct Harness(FilterLock<THREADS>);

    #[harness]
    impl Harness {
        #[rule]
        fn step(
            &mut self,
            thread: Id<THREADS>,
            #[draw(sampled_from(self.0.others(thread)))] other: Id<THREADS>,
        ) {
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
    use crate::native::{Reached, Renamed, orders, reach};

    impl<const N: usize> Renamed for FilterLock<N> {
        fn renamed(&self) -> Vec<FilterLock<N>> {
            orders::<N, Thread>()
                .iter()
                .map(|to| {
                    let mut renamed = FilterLock::default();
                    for thread in Id::all() {
                        renamed.levels[to[thread]] = self.levels[thread];
                        renamed.at[to[thread]] = match self.at[thread].clone() {
                            At::ReadLevel { level, of } => {
                                At::ReadLevel { level, of: of.iter().map(|id| to[id]).collect() }
                            }
                            at => at,
                        };
                    }
                    renamed.victims = self.victims.map(|victim| victim.map(|id| to[id]));
                    renamed
                })
                .collect()
        }
    }

    #[test]
    fn whoever_is_who_there_are_fewer_states() {
        let expected = match cfg!(feature = "mistake") {
            false => Reached { states: 3_774, orbits: 662, steps: 2_354, failure: None },
            true => Reached { states: 651, orbits: 126, steps: 433, failure: Some(13) },
        };
        assert_eq!(reach::<FilterLock<3>>(), expected);
    }
}
