//! Readers and writers (Courtois, Heymans and Parnas, "Concurrent control with 'readers' and 'writers'", 1971), the
//! second solution, in which no reader starts while a writer waits, with the semaphores of the paper. There are two sets of ids.

use std::collections::BTreeSet;

use spelunk_guest::prelude::*;

use self::Semaphore::{Mutex1, Mutex2, Mutex3, R, W};
use self::Step::{Arrive, Leave, P, PIfFirst, V, VIfLast, Work};
use crate::Protocol;

/// Tells the ids of readers from others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reader;

/// Tells the ids of writers from others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Writer;

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

/// With the bug, a reader looks whether it is the first one when others may have come.
const READER: [Step; 13] = [
    P(Mutex3),
    P(R),
    P(Mutex1),
    Arrive,
    if cfg!(feature = "mistake") { V(Mutex1) } else { PIfFirst(W) },
    if cfg!(feature = "mistake") { V(R) } else { V(Mutex1) },
    if cfg!(feature = "mistake") { V(Mutex3) } else { V(R) },
    if cfg!(feature = "mistake") { PIfFirst(W) } else { V(Mutex3) },
    Work,
    P(Mutex1),
    Leave,
    VIfLast(W),
    V(Mutex1),
];

const WRITER: [Step; 11] =
    [P(Mutex2), Arrive, PIfFirst(R), V(Mutex2), P(W), Work, V(W), P(Mutex2), Leave, VIfLast(R), V(Mutex2)];

/// Those who run one program, over and over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Group<const N: usize, Of: 'static> {
    /// The next step of each.
    at: PerScalar<N, usize, Of>,
    /// `readcount` or `writecount`.
    count: usize,
}

impl<const N: usize, Of> Group<N, Of> {
    fn can_step(&self, program: &[Step], up: &BTreeSet<Semaphore>) -> ScalarSet<N, Of> {
        self.at.ids(|at| match program[*at] {
            P(semaphore) => up.contains(&semaphore),
            PIfFirst(semaphore) => self.count > 1 || up.contains(&semaphore),
            _ => true,
        })
    }

    fn step(&mut self, one: Scalar<N, Of>, program: &[Step], up: &mut BTreeSet<Semaphore>) {
        match program[self.at[one]] {
            P(semaphore) => _ = up.remove(&semaphore),
            PIfFirst(semaphore) if self.count == 1 => _ = up.remove(&semaphore),
            V(semaphore) => _ = up.insert(semaphore),
            VIfLast(semaphore) if self.count == 0 => _ = up.insert(semaphore),
            PIfFirst(_) | VIfLast(_) | Work => (),
            Arrive => self.count += 1,
            Leave => self.count -= 1,
        }
        self.at[one] = (self.at[one] + 1) % program.len();
    }

    /// How many work.
    fn working(&self, program: &[Step]) -> usize {
        self.at.values().filter(|at| program[**at] == Work).count()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadersWriters<const READERS: usize, const WRITERS: usize> {
    readers: Group<READERS, Reader>,
    writers: Group<WRITERS, Writer>,
    /// Semaphores that nobody has.
    up: BTreeSet<Semaphore>,
}

impl<const READERS: usize, const WRITERS: usize> Default for ReadersWriters<READERS, WRITERS> {
    fn default() -> Self {
        ReadersWriters {
            readers: Group { at: PerScalar::default(), count: 0 },
            writers: Group { at: PerScalar::default(), count: 0 },
            up: BTreeSet::from([Mutex1, Mutex2, Mutex3, R, W]),
        }
    }
}

impl<const READERS: usize, const WRITERS: usize> ReadersWriters<READERS, WRITERS> {
    fn can_step_reader(&self) -> ScalarSet<READERS, Reader> {
        self.readers.can_step(&READER, &self.up)
    }

    fn step_reader(&mut self, reader: Scalar<READERS, Reader>) {
        self.readers.step(reader, &READER, &mut self.up);
    }

    fn can_step_writer(&self) -> ScalarSet<WRITERS, Writer> {
        self.writers.can_step(&WRITER, &self.up)
    }

    fn step_writer(&mut self, writer: Scalar<WRITERS, Writer>) {
        self.writers.step(writer, &WRITER, &mut self.up);
    }

    fn is_exclusive(&self) -> bool {
        let writing = self.writers.working(&WRITER);
        writing == 0 || writing + self.readers.working(&READER) == 1
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action<const READERS: usize, const WRITERS: usize> {
    Reader(Scalar<READERS, Reader>),
    Writer(Scalar<WRITERS, Writer>),
}

impl<const READERS: usize, const WRITERS: usize> Protocol for ReadersWriters<READERS, WRITERS> {
    type Action = Action<READERS, WRITERS>;

    fn actions(&self, actions: &mut Vec<Self::Action>) {
        actions.extend(self.can_step_reader().iter().map(Action::Reader));
        actions.extend(self.can_step_writer().iter().map(Action::Writer));
    }

    fn perform(&mut self, action: Self::Action) {
        match action {
            Action::Reader(reader) => self.step_reader(reader),
            Action::Writer(writer) => self.step_writer(writer),
        }
    }

    /// One who writes is alone.
    fn is_right(&self) -> bool {
        self.is_exclusive()
    }
}

#[cfg(feature = "readers-writers")]
mod harness {
    use super::*;

    const READERS: usize = if cfg!(feature = "n5") { 5 } else { 3 };
    const WRITERS: usize = READERS - 1;

    #[derive(Clone, Default, Hash)]
    struct Harness(ReadersWriters<READERS, WRITERS>);

    #[harness]
    impl Harness {
        #[rule]
        #[precondition(!self.0.can_step_reader().is_empty())]
        fn step_reader(
            &mut self,
            #[draw(sampled_from(self.0.can_step_reader()))] reader: Scalar<READERS, Reader>,
        ) {
            self.0.step_reader(reader);
            sometimes!(self.0.readers.working(&READER) == READERS, "all read at once");
        }

        #[rule]
        #[precondition(!self.0.can_step_writer().is_empty())]
        fn step_writer(
            &mut self,
            #[draw(sampled_from(self.0.can_step_writer()))] writer: Scalar<WRITERS, Writer>,
        ) {
            self.0.step_writer(writer);
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

    impl<const N: usize, Of> Group<N, Of> {
        fn renamed(&self) -> Vec<Group<N, Of>> {
            let renamed = |to: &PerScalar<N, Scalar<N, Of>, Of>| {
                let mut at = PerScalar::default();
                self.at.iter().for_each(|(one, step)| at[to[one]] = *step);
                Group { at, count: self.count }
            };
            orders().iter().map(renamed).collect()
        }
    }

    impl<const READERS: usize, const WRITERS: usize> Renamed for ReadersWriters<READERS, WRITERS> {
        fn renamed(&self) -> Vec<Self> {
            let mut all = Vec::new();
            for readers in self.readers.renamed() {
                for writers in self.writers.renamed() {
                    all.push(ReadersWriters { readers: readers.clone(), writers, up: self.up.clone() });
                }
            }
            all
        }
    }

    #[test]
    fn whoever_is_who_there_are_fewer_states() {
        let expected = match cfg!(feature = "mistake") {
            false => Reached { states: 7_380, orbits: 900, steps: 2_930, failure: None },
            true => Reached { states: 48_288, orbits: 5_324, steps: 20_102, failure: Some(19) },
        };
        assert_eq!(reach::<ReadersWriters<3, 2>>(), expected);
    }
}
