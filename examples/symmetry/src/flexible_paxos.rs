//! Flexible Paxos for one decision (Howard, Malkhi and Spiegelman, "Flexible Paxos: Quorum intersection revisited", 2016), with two
//! ballots and two values.
//!
//! Quorums of phase 1 need to meet those of phase 2, and not each other: here phase 1 asks all acceptors, and one acceptor
//! is enough for phase 2. A message stays after it was received: it can come late, twice, or never.

use std::collections::BTreeSet;

use spelunk_guest::prelude::*;

use crate::Protocol;

const BALLOTS: u32 = 2;

/// Tells their ids from others.
pub struct OfAcceptors;

type Id<const N: usize> = Scalar<N, OfAcceptors>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Red,
    Blue,
}

/// A value that was accepted in a ballot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vote {
    ballot: u32,
    value: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Acceptor {
    /// It takes part in no ballot before this one.
    promised: Option<u32>,
    vote: Option<Vote>,
    /// Ballots that it has promised, each with its vote at that time.
    promises: BTreeSet<(u32, Option<Vote>)>,
    accepted: BTreeSet<Vote>,
}

/// What was said to an acceptor is received by all, and what it says is kept with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlexiblePaxos<const N: usize> {
    acceptors: PerScalar<N, Acceptor, OfAcceptors>,
    prepared: BTreeSet<u32>,
    proposed: BTreeSet<Vote>,
}

impl<const N: usize> FlexiblePaxos<N> {
    /// Acceptors in a quorum of phase 1; with the bug, one that need not meet those of phase 2.
    const PHASE_1: usize = if cfg!(feature = "mistake") { N - 1 } else { N };

    /// Ballots that have not begun.
    fn can_prepare(&self) -> Vec<u32> {
        (0..BALLOTS).filter(|ballot| !self.prepared.contains(ballot)).collect()
    }

    fn prepare(&mut self, ballot: u32) {
        self.prepared.insert(ballot);
    }

    /// Acceptors that can promise a ballot.
    fn can_promise(&self) -> Vec<(Id<N>, u32)> {
        let can = |ballot: &u32| self.acceptors.ids(|acceptor| Some(*ballot) > acceptor.promised);
        self.prepared.iter().flat_map(|ballot| can(ballot).iter().map(|id| (id, *ballot))).collect()
    }

    fn promise(&mut self, (acceptor, ballot): (Id<N>, u32)) {
        let acceptor = &mut self.acceptors[acceptor];
        acceptor.promised = Some(ballot);
        acceptor.promises.insert((ballot, acceptor.vote));
    }

    /// Ballots with a quorum of promises and no proposal, each with what may be proposed.
    fn can_propose(&self) -> Vec<Vote> {
        let votes =
            (0..BALLOTS).flat_map(|ballot| [Value::Red, Value::Blue].map(|value| Vote { ballot, value }));
        votes.filter(|vote| self.is_safe(vote)).collect()
    }

    /// Whether there is a quorum of which the latest vote, if there is one, is for this value: the promises with the earliest votes, beside one
    /// that has such a vote.
    fn is_safe(&self, proposal: &Vote) -> bool {
        let of_ballot = |acceptor: &Acceptor| {
            acceptor.promises.iter().find(|(ballot, _)| *ballot == proposal.ballot).map(|(_, vote)| *vote)
        };
        let mut votes: Vec<Option<Vote>> = self.acceptors.values().filter_map(of_ballot).collect();
        votes.sort_unstable();
        let is_free = |latest: Option<Vote>| latest.is_none_or(|latest| latest.value == proposal.value);
        !self.proposed.iter().any(|vote| vote.ballot == proposal.ballot)
            && votes.iter().skip(Self::PHASE_1 - 1).any(|latest| is_free(*latest))
    }

    fn propose(&mut self, vote: Vote) {
        self.proposed.insert(vote);
    }

    /// Acceptors that can accept a proposal, if they have not.
    fn can_accept(&self) -> Vec<(Id<N>, Vote)> {
        let can = |vote: &Vote| {
            self.acceptors.ids(|acceptor| {
                Some(vote.ballot) >= acceptor.promised && acceptor.vote.as_ref() != Some(vote)
            })
        };
        self.proposed.iter().flat_map(|vote| can(vote).iter().map(|id| (id, *vote))).collect()
    }

    fn accept(&mut self, (acceptor, vote): (Id<N>, Vote)) {
        let acceptor = &mut self.acceptors[acceptor];
        (acceptor.promised, acceptor.vote) = (Some(vote.ballot), Some(vote));
        acceptor.accepted.insert(vote);
    }

    /// Values that an acceptor accepted, which is a quorum of phase 2.
    fn chosen(&self) -> BTreeSet<Value> {
        self.acceptors.values().flat_map(|acceptor| &acceptor.accepted).map(|vote| vote.value).collect()
    }

    fn agrees(&self) -> bool {
        self.chosen().len() <= 1
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action<const N: usize> {
    Prepare(u32),
    Promise((Id<N>, u32)),
    Propose(Vote),
    Accept((Id<N>, Vote)),
}

impl<const N: usize> Protocol for FlexiblePaxos<N> {
    type Action = Action<N>;

    fn actions(&self, actions: &mut Vec<Action<N>>) {
        actions.extend(self.can_prepare().into_iter().map(Action::Prepare));
        actions.extend(self.can_promise().into_iter().map(Action::Promise));
        actions.extend(self.can_propose().into_iter().map(Action::Propose));
        actions.extend(self.can_accept().into_iter().map(Action::Accept));
    }

    fn perform(&mut self, action: Action<N>) {
        match action {
            Action::Prepare(ballot) => self.prepare(ballot),
            Action::Promise(of) => self.promise(of),
            Action::Propose(vote) => self.propose(vote),
            Action::Accept(of) => self.accept(of),
        }
    }

    fn is_right(&self) -> bool {
        self.agrees()
    }
}

#[cfg(feature = "flexible-paxos")]
mod harness {
    use super::*;

    const ACCEPTORS: usize = if cfg!(feature = "n7") { 7 } else { 3 };

    #[derive(Clone, Default, Hash)]
    struct Harness(FlexiblePaxos<ACCEPTORS>);

    #[harness]
    impl Harness {
        #[rule]
        #[precondition(!self.0.can_prepare().is_empty())]
        fn prepare(&mut self, #[draw(sampled_from(self.0.can_prepare()))] ballot: u32) {
            self.0.prepare(ballot);
        }

        #[rule]
        #[precondition(!self.0.can_promise().is_empty())]
        fn promise(&mut self, #[draw(sampled_from(self.0.can_promise()))] of: (Id<ACCEPTORS>, u32)) {
            self.0.promise(of);
        }

        #[rule]
        #[precondition(!self.0.can_propose().is_empty())]
        fn propose(&mut self, #[draw(sampled_from(self.0.can_propose()))] vote: Vote) {
            self.0.propose(vote);
        }

        #[rule]
        #[precondition(!self.0.can_accept().is_empty())]
        fn accept(&mut self, #[draw(sampled_from(self.0.can_accept()))] of: (Id<ACCEPTORS>, Vote)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Reached, Renamed, orders, reach};

    impl<const N: usize> Renamed for FlexiblePaxos<N> {
        fn renamed(&self) -> Vec<FlexiblePaxos<N>> {
            let renamed = |to: &PerScalar<N, Id<N>, OfAcceptors>| {
                let mut renamed = self.clone();
                self.acceptors.iter().for_each(|(id, acceptor)| renamed.acceptors[to[id]] = acceptor.clone());
                renamed
            };
            orders().iter().map(renamed).collect()
        }
    }

    #[test]
    fn whoever_is_who_there_are_fewer_states() {
        let expected = match cfg!(feature = "mistake") {
            false => Reached { states: 513, orbits: 173, steps: 375, failure: None },
            true => Reached { states: 3_585, orbits: 789, steps: 1_985, failure: Some(10) },
        };
        assert_eq!(reach::<FlexiblePaxos<3>>(), expected);
    }
}
