//! Peterson's filter lock ("Myths about the mutual exclusion problem", 1981; Herlihy and Shavit, "The Art of
//! Multiprocessor Programming", 2.4) for three threads, or four. Each step is one read or write of a shared variable.

pub const THREADS: usize = if cfg!(feature = "large") { 4 } else { 3 };

/// The next step of a thread. At each level but 0 one thread is held back, so the last level lets one through.
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
    /// Whether the other one is at this level or above.
    ReadLevel {
        level: usize,
        other: usize,
    },
    /// Since the other one is: whether the victim is still the thread itself.
    ReadVictim {
        level: usize,
    },
    Inside,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FilterLock {
    levels: [usize; THREADS],
    /// Of each level the last one to come there.
    victims: [Option<usize>; THREADS],
    at: [At; THREADS],
}

impl FilterLock {
    /// A step of this thread.
    pub fn step(&mut self, thread: usize) {
        self.at[thread] = match self.at[thread].clone() {
            At::Outside => At::WriteLevel { level: 1 },
            At::WriteLevel { level } => {
                self.levels[thread] = level;
                At::WriteVictim { level }
            }
            At::WriteVictim { level } => {
                self.victims[level] = Some(thread);
                self.next_read(thread, level, 0)
            }
            At::ReadLevel { level, other } if self.levels[other] >= level => At::ReadVictim { level },
            At::ReadLevel { level, other } => self.next_read(thread, level, other + 1),
            At::ReadVictim { level } if self.victims[level] == Some(thread) => {
                self.next_read(thread, level, 0)
            }
            At::ReadVictim { level } => self.next_level(level),
            At::Inside => {
                self.levels[thread] = 0;
                At::Outside
            }
        };
    }

    /// To read the levels of the others from this one on; above the last, nobody is in the way.
    fn next_read(&self, thread: usize, level: usize, from: usize) -> At {
        match (from..THREADS).find(|other| *other != thread) {
            Some(other) => At::ReadLevel { level, other },
            None => self.next_level(level),
        }
    }

    fn next_level(&self, level: usize) -> At {
        match level + 1 < THREADS {
            true => At::WriteLevel { level: level + 1 },
            false => At::Inside,
        }
    }

    /// Those who are outside, or who are not.
    pub fn outside(&self, are_outside: bool) -> Vec<usize> {
        (0..THREADS).filter(|thread| self.is_outside(*thread) == are_outside).collect()
    }

    pub fn is_outside(&self, thread: usize) -> bool {
        self.at[thread] == At::Outside
    }

    pub fn is_inside(&self, thread: usize) -> bool {
        self.at[thread] == At::Inside
    }

    pub fn is_exclusive(&self) -> bool {
        self.at.iter().filter(|at| **at == At::Inside).count() <= 1
    }
}

#[cfg(feature = "filter-lock")]
mod harness {
    use spelunk_guest::prelude::*;

    use super::*;

    #[derive(Clone, Default, Hash)]
    struct Harness(FilterLock);

    #[harness]
    impl Harness {
        /// Nobody need want to go in.
        #[rule]
        #[unfair]
        #[precondition(!self.0.outside(true).is_empty())]
        fn want(&mut self, #[draw(sampled_from(self.0.outside(true)))] thread: usize) {
            self.0.step(thread);
        }

        #[rule]
        #[fair(each)]
        #[precondition(!self.0.outside(false).is_empty())]
        fn step(&mut self, #[draw(sampled_from(self.0.outside(false)))] thread: usize) {
            self.0.step(thread);
        }

        #[invariant]
        fn progress(&self) {
            #[cfg(not(feature = "exclusion"))]
            {
                leads_to!("thread 0 gets in", !self.0.is_outside(0), self.0.is_inside(0));
                leads_to!("thread 1 gets in", !self.0.is_outside(1), self.0.is_inside(1));
                leads_to!("thread 2 gets in", !self.0.is_outside(2), self.0.is_inside(2));
            }
        }

        #[invariant]
        fn exclusive(&self) {
            assert!(self.0.is_exclusive(), "{:?}", self.0);
        }
    }
}

#[cfg(all(test, not(feature = "large")))]
mod tests {
    use super::*;
    use crate::native::{after, holds, reach};

    #[test]
    fn one_thread_at_a_time_is_inside() {
        let next = |lock: &FilterLock| after(lock, 0..THREADS, FilterLock::step);
        assert_eq!(reach(next, FilterLock::is_exclusive), holds(2_731, 8_193));
    }
}
