//! A lock for readers and a writer, to compare two ways to choose who is next: whoever comes while others read may read
//! too, or whoever came first is next.

use std::collections::VecDeque;

use self::Client::{Idle, Inside, Waiting};

/// The writer is the last one.
const CLIENTS: usize = 3;
const WRITER: usize = CLIENTS - 1;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Client {
    #[default]
    Idle,
    Waiting,
    Inside,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lock {
    clients: [Client; CLIENTS],
    /// Those who wait, in the order in which they came.
    queue: VecDeque<usize>,
    /// That order counts.
    is_fair: bool,
}

impl Lock {
    pub fn new(is_fair: bool) -> Lock {
        Lock { is_fair, ..Lock::default() }
    }

    fn those(&self, client: Client) -> Vec<usize> {
        (0..CLIENTS).filter(|one| self.clients[*one] == client).collect()
    }

    pub fn idle(&self) -> Vec<usize> {
        self.those(Idle)
    }

    pub fn inside(&self) -> Vec<usize> {
        self.those(Inside)
    }

    pub fn can_enter(&self) -> Vec<usize> {
        let is_free = |one: &usize| match *one {
            WRITER => self.inside().is_empty(),
            _ => self.clients[WRITER] != Inside,
        };
        let is_next = |one: &usize| !self.is_fair || self.queue.front() == Some(one);
        self.those(Waiting).into_iter().filter(|one| is_next(one) && is_free(one)).collect()
    }

    pub fn ask(&mut self, one: usize) {
        self.clients[one] = Waiting;
        if self.is_fair {
            self.queue.push_back(one);
        }
    }

    pub fn enter(&mut self, one: usize) {
        self.clients[one] = Inside;
        self.queue.retain(|other| *other != one);
    }

    pub fn leave(&mut self, one: usize) {
        self.clients[one] = Idle;
    }

    /// The writer is alone.
    pub fn is_exclusive(&self) -> bool {
        self.clients[WRITER] != Inside || self.inside() == [WRITER]
    }

    pub fn writer_waits(&self) -> bool {
        self.clients[WRITER] == Waiting
    }

    pub fn writer_writes(&self) -> bool {
        self.clients[WRITER] == Inside
    }
}

#[cfg(feature = "lock")]
mod harness {
    use spelunk_guest::prelude::*;

    use super::*;

    #[derive(Clone, Hash)]
    struct Harness(Lock);

    #[harness]
    impl Harness {
        #[setup]
        fn new() -> Harness {
            Harness(Lock::new(cfg!(feature = "fair")))
        }

        /// Nobody need ask.
        #[rule]
        #[unfair]
        #[precondition(!self.0.idle().is_empty())]
        fn ask(&mut self, #[draw(sampled_from(self.0.idle()))] client: usize) {
            self.0.ask(client);
        }

        #[rule]
        #[fair(each)]
        #[precondition(!self.0.can_enter().is_empty())]
        fn enter(&mut self, #[draw(sampled_from(self.0.can_enter()))] client: usize) {
            self.0.enter(client);
        }

        #[rule]
        #[fair(each)]
        #[precondition(!self.0.inside().is_empty())]
        fn leave(&mut self, #[draw(sampled_from(self.0.inside()))] client: usize) {
            self.0.leave(client);
        }

        #[invariant]
        fn exclusive(&self) -> bool {
            self.0.is_exclusive()
        }

        #[invariant]
        fn progress(&self) {
            leads_to!("a writer who waits writes", self.0.writer_waits(), self.0.writer_writes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{after, holds, reach};

    /// The two policies differ in what they keep, so each is a type that starts as it does.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Policy<const IS_FAIR: bool>(Lock);

    impl<const IS_FAIR: bool> Default for Policy<IS_FAIR> {
        fn default() -> Self {
            Policy(Lock::new(IS_FAIR))
        }
    }

    fn next<const IS_FAIR: bool>(policy: &Policy<IS_FAIR>) -> Vec<Policy<IS_FAIR>> {
        let lock = &policy.0;
        let after = [
            after(lock, lock.idle(), Lock::ask),
            after(lock, lock.can_enter(), Lock::enter),
            after(lock, lock.inside(), Lock::leave),
        ];
        after.concat().into_iter().map(Policy).collect()
    }

    #[test]
    fn the_writer_is_alone() {
        assert_eq!(reach(next::<false>, |policy| policy.0.is_exclusive()), holds(22, 57));
        assert_eq!(reach(next::<true>, |policy| policy.0.is_exclusive()), holds(33, 66));
    }
}
