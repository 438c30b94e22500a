//! Readers and writers (Courtois, Heymans and Parnas, "Concurrent control with 'readers' and 'writers'", 1971), the
//! second solution, in which no reader starts while a writer waits, with the semaphores of the paper.

use std::collections::BTreeSet;

use self::Semaphore::{Mutex1, Mutex2, Mutex3, R, W};
use self::Step::{Arrive, Leave, P, PIfFirst, V, VIfLast, Work};

const READERS: usize = if cfg!(feature = "large") { 6 } else { 3 };
const WRITERS: usize = 2;

/// With the names of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Semaphore {
    Mutex1,
    Mutex2,
    Mutex3,
    R,
    W,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Takes it; waits until it is there.
    P(Semaphore),
    V(Semaphore),
    /// Is counted.
    Arrive,
    /// The first one to arrive does it for the others.
    PIfFirst(Semaphore),
    Leave,
    VIfLast(Semaphore),
    /// Reads or writes.
    Work,
}

const READER: [Step; 13] = [
    P(Mutex3),
    P(R),
    P(Mutex1),
    Arrive,
    PIfFirst(W),
    V(Mutex1),
    V(R),
    V(Mutex3),
    Work,
    P(Mutex1),
    Leave,
    VIfLast(W),
    V(Mutex1),
];

const WRITER: [Step; 11] =
    [P(Mutex2), Arrive, PIfFirst(R), V(Mutex2), P(W), Work, V(W), P(Mutex2), Leave, VIfLast(R), V(Mutex2)];

/// Those who run one program, over and over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Group<const N: usize> {
    /// The next step of each.
    at: [usize; N],
    /// `readcount` or `writecount`.
    count: usize,
}

impl<const N: usize> Group<N> {
    fn can_step(&self, program: &[Step], up: &BTreeSet<Semaphore>) -> Vec<usize> {
        let can = |step: Step| match step {
            P(semaphore) => up.contains(&semaphore),
            PIfFirst(semaphore) => self.count > 1 || up.contains(&semaphore),
            _ => true,
        };
        (0..N).filter(|one| can(program[self.at[*one]])).collect()
    }

    fn step(&mut self, one: usize, program: &[Step], up: &mut BTreeSet<Semaphore>) {
        match program[self.at[one]] {
            P(semaphore) => assert!(up.remove(&semaphore), "it is there"),
            PIfFirst(semaphore) if self.count == 1 => assert!(up.remove(&semaphore), "it is there"),
            V(semaphore) => assert!(up.insert(semaphore), "it was taken"),
            VIfLast(semaphore) if self.count == 0 => assert!(up.insert(semaphore), "it was taken"),
            PIfFirst(_) | VIfLast(_) | Work => (),
            Arrive => self.count += 1,
            Leave => self.count -= 1,
        }
        self.at[one] = (self.at[one] + 1) % program.len();
    }

    /// How many work.
    fn working(&self, program: &[Step]) -> usize {
        self.at.iter().filter(|at| program[**at] == Work).count()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadersWriters {
    readers: Group<READERS>,
    writers: Group<WRITERS>,
    /// Semaphores that nobody has.
    up: BTreeSet<Semaphore>,
}

impl Default for ReadersWriters {
    fn default() -> Self {
        ReadersWriters {
            readers: Group { at: [0; READERS], count: 0 },
            writers: Group { at: [0; WRITERS], count: 0 },
            up: BTreeSet::from([Mutex1, Mutex2, Mutex3, R, W]),
        }
    }
}

impl ReadersWriters {
    pub fn can_step_reader(&self) -> Vec<usize> {
        self.readers.can_step(&READER, &self.up)
    }

    pub fn step_reader(&mut self, reader: usize) {
        self.readers.step(reader, &READER, &mut self.up);
    }

    pub fn can_step_writer(&self) -> Vec<usize> {
        self.writers.can_step(&WRITER, &self.up)
    }

    pub fn step_writer(&mut self, writer: usize) {
        self.writers.step(writer, &WRITER, &mut self.up);
    }

    pub fn all_read(&self) -> bool {
        self.readers.working(&READER) == READERS
    }

    /// One who writes is alone.
    pub fn is_exclusive(&self) -> bool {
        let writing = self.writers.working(&WRITER);
        writing == 0 || writing + self.readers.working(&READER) == 1
    }
}

#[cfg(feature = "readers-writers")]
mod harness {
    use spelunk_guest::prelude::*;

    use super::*;

    #[derive(Clone, Default, Hash)]
    struct Harness(ReadersWriters);

    #[harness]
    impl Harness {
        #[rule]
        #[precondition(!self.0.can_step_reader().is_empty())]
        fn step_reader(&mut self, #[draw(sampled_from(self.0.can_step_reader()))] reader: usize) {
            self.0.step_reader(reader);
            sometimes!(self.0.all_read(), "all read at once");
        }

        #[rule]
        #[precondition(!self.0.can_step_writer().is_empty())]
        fn step_writer(&mut self, #[draw(sampled_from(self.0.can_step_writer()))] writer: usize) {
            self.0.step_writer(writer);
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

    fn next(lock: &ReadersWriters) -> Vec<ReadersWriters> {
        let readers = after(lock, lock.can_step_reader(), ReadersWriters::step_reader);
        let writers = after(lock, lock.can_step_writer(), ReadersWriters::step_writer);
        [readers, writers].concat()
    }

    #[test]
    fn one_who_writes_is_alone() {
        assert_eq!(reach(next, ReadersWriters::is_exclusive), holds(7_380, 22_946));
    }
}
