//! Flexible Paxos for one decision (Howard, Malkhi and Spiegelman, "Flexible Paxos: Quorum intersection revisited", 2016),
//! with three acceptors, two ballots, or three, and two values.
//!
//! Quorums of phase 1 need to meet those of phase 2, and not each other: here phase 1 asks all acceptors, and one acceptor
//! is enough for phase 2. A message stays after it was received: it can come late, twice, or never.

use std::collections::BTreeSet;

const ACCEPTORS: usize = 3;
const BALLOTS: u32 = if cfg!(feature = "large") { 4 } else { 2 };

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Red,
    Blue,
}

/// A value that was accepted in a ballot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vote {
    ballot: u32,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Message {
    Prepare { ballot: u32 },
    Promise { ballot: u32, acceptor: usize, vote: Option<Vote> },
    Propose(Vote),
    Accept { acceptor: usize, vote: Vote },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Acceptor {
    /// It takes part in no ballot before this one.
    promised: Option<u32>,
    vote: Option<Vote>,
}

/// `PHASE_1` acceptors are a quorum of phase 1, `PHASE_2` are one of phase 2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlexiblePaxos<const PHASE_1: usize, const PHASE_2: usize> {
    acceptors: [Acceptor; ACCEPTORS],
    messages: BTreeSet<Message>,
}

impl<const PHASE_1: usize, const PHASE_2: usize> FlexiblePaxos<PHASE_1, PHASE_2> {
    /// Ballots that have not begun.
    pub fn can_prepare(&self) -> Vec<u32> {
        (0..BALLOTS).filter(|&ballot| !self.messages.contains(&Message::Prepare { ballot })).collect()
    }

    pub fn prepare(&mut self, ballot: u32) {
        self.messages.insert(Message::Prepare { ballot });
    }

    /// Acceptors that can promise a ballot.
    pub fn can_promise(&self) -> Vec<(usize, u32)> {
        let prepared = |message: &Message| match message {
            Message::Prepare { ballot } => Some(*ballot),
            _ => None,
        };
        let pairs = self.messages.iter().filter_map(prepared).flat_map(|ballot| with_acceptors(&ballot));
        pairs.filter(|(acceptor, ballot)| Some(*ballot) > self.acceptors[*acceptor].promised).collect()
    }

    pub fn promise(&mut self, (acceptor, ballot): (usize, u32)) {
        self.acceptors[acceptor].promised = Some(ballot);
        let vote = self.acceptors[acceptor].vote.clone();
        self.messages.insert(Message::Promise { ballot, acceptor, vote });
    }

    /// Ballots with a quorum of promises and no proposal, each with what may be proposed.
    pub fn can_propose(&self) -> Vec<Vote> {
        let votes =
            (0..BALLOTS).flat_map(|ballot| [Value::Red, Value::Blue].map(|value| Vote { ballot, value }));
        votes.filter(|vote| self.is_safe(vote)).collect()
    }

    fn is_safe(&self, proposal: &Vote) -> bool {
        let is_of_ballot =
            |message: &Message| matches!(message, Message::Propose(vote) if vote.ballot == proposal.ballot);
        let promised = |message| match message {
            &Message::Promise { ballot, ref vote, .. } if ballot == proposal.ballot => Some(vote.as_ref()),
            _ => None,
        };
        let promises: Vec<Option<&Vote>> = self.messages.iter().filter_map(promised).collect();
        let is_free = |votes: &[Option<&Vote>]| {
            votes.iter().flatten().max().is_none_or(|latest| latest.value == proposal.value)
        };
        !self.messages.iter().any(is_of_ballot)
            && quorums(&promises, PHASE_1).iter().any(|quorum| is_free(quorum))
    }

    pub fn propose(&mut self, vote: Vote) {
        self.messages.insert(Message::Propose(vote));
    }

    /// Acceptors that can accept a proposal, if they have not.
    pub fn can_accept(&self) -> Vec<(usize, Vote)> {
        let proposed = |message: &Message| match message {
            Message::Propose(vote) => Some(vote.clone()),
            _ => None,
        };
        let pairs = self.messages.iter().filter_map(proposed).flat_map(|vote| with_acceptors(&vote));
        let is_possible = |(acceptor, vote): &(usize, Vote)| {
            let acceptor = &self.acceptors[*acceptor];
            Some(vote.ballot) >= acceptor.promised && acceptor.vote.as_ref() != Some(vote)
        };
        pairs.filter(is_possible).collect()
    }

    pub fn accept(&mut self, (acceptor, vote): (usize, Vote)) {
        self.acceptors[acceptor] = Acceptor { promised: Some(vote.ballot), vote: Some(vote.clone()) };
        self.messages.insert(Message::Accept { acceptor, vote });
    }

    /// Values that a quorum of phase 2 accepted in one ballot.
    pub fn chosen(&self) -> BTreeSet<Value> {
        let accepted = |message: &Message| match message {
            Message::Accept { vote, .. } => Some(vote.clone()),
            _ => None,
        };
        let votes: Vec<Vote> = self.messages.iter().filter_map(accepted).collect();
        let count = |vote: &Vote| votes.iter().filter(|other| *other == vote).count();
        votes.iter().filter(|vote| count(vote) >= PHASE_2).map(|vote| vote.value).collect()
    }

    pub fn agrees(&self) -> bool {
        self.chosen().len() <= 1
    }
}

/// This, with each acceptor.
fn with_acceptors<T: Clone>(value: &T) -> Vec<(usize, T)> {
    (0..ACCEPTORS).map(|acceptor| (acceptor, value.clone())).collect()
}

/// All choices of so many of these.
fn quorums<T: Clone>(from: &[T], len: usize) -> Vec<Vec<T>> {
    let Some(rest) = len.checked_sub(1) else { return vec![Vec::new()] };
    let with = |at: usize| {
        let one = from[at].clone();
        quorums(&from[at + 1..], rest).into_iter().map(move |others| [vec![one.clone()], others].concat())
    };
    (0..from.len()).flat_map(with).collect()
}

#[cfg(feature = "flexible-paxos")]
mod harness {
    use spelunk_guest::prelude::*;

    use super::*;

    /// The bug of the feature `mistake`: two of three in phase 1 need not meet the one of phase 2.
    #[derive(Clone, Default, Hash)]
    struct Harness(FlexiblePaxos<{ if cfg!(feature = "mistake") { 2 } else { 3 } }, 1>);

    #[harness]
    impl Harness {
        #[rule]
        #[precondition(!self.0.can_prepare().is_empty())]
        fn prepare(&mut self, #[draw(sampled_from(self.0.can_prepare()))] ballot: u32) {
            self.0.prepare(ballot);
        }

        #[rule]
        #[precondition(!self.0.can_promise().is_empty())]
        fn promise(&mut self, #[draw(sampled_from(self.0.can_promise()))] of: (usize, u32)) {
            self.0.promise(of);
        }

        #[rule]
        #[precondition(!self.0.can_propose().is_empty())]
        fn propose(&mut self, #[draw(sampled_from(self.0.can_propose()))] vote: Vote) {
            self.0.propose(vote);
        }

        #[rule]
        #[precondition(!self.0.can_accept().is_empty())]
        fn accept(&mut self, #[draw(sampled_from(self.0.can_accept()))] of: (usize, Vote)) {
            self.0.accept(of);
            sometimes!(!self.0.chosen().is_empty(), "a value is chosen");
        }

        /// Only the bound on ballots ends a run.
        #[terminal]
        fn all_ballots_have_begun(&self) -> bool {
            self.0.can_prepare().is_empty()
        }

        #[invariant]
        fn agreement(&self) {
            assert!(self.0.agrees(), "{:?}", self.0.chosen());
        }
    }
}

#[cfg(all(test, not(feature = "large")))]
mod tests {
    use super::*;
    use crate::native::{Reached, after, holds, reach};

    fn reached<const PHASE_1: usize, const PHASE_2: usize>() -> Reached {
        let next = |paxos: &FlexiblePaxos<PHASE_1, PHASE_2>| {
            [
                after(paxos, paxos.can_prepare(), FlexiblePaxos::prepare),
                after(paxos, paxos.can_promise(), FlexiblePaxos::promise),
                after(paxos, paxos.can_propose(), FlexiblePaxos::propose),
                after(paxos, paxos.can_accept(), FlexiblePaxos::accept),
            ]
            .concat()
        };
        reach(next, FlexiblePaxos::agrees)
    }

    #[test]
    fn quorums_of_phase_1_must_meet_those_of_phase_2() {
        assert_eq!(reached::<3, 1>(), holds(513, 1_048));
        assert_eq!(reached::<2, 2>(), holds(3_921, 9_442));
        assert_eq!(reached::<2, 1>(), Reached { states: 3_585, steps: 8_938, failure: Some(10) });
    }
}
