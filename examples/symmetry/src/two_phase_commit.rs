//! Two-phase commit, as Gray and Lamport specify it in TLA+ ("Consensus on Transaction Commit", 2004, `TwoPhase.tla`): a transaction
//! manager (TM), and resource managers (RM) that are alike. A message that was sent is there for ever.

use spelunk_guest::prelude::*;

/// How many resource managers there are.
pub const COUNT: usize = if cfg!(feature = "n7") { 7 } else { 3 };

/// Tells their ids from others.
pub struct Rm;

type Id = Scalar<COUNT, Rm>;
type Ids = ScalarSet<COUNT, Rm>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RmState {
    #[default]
    Working,
    Prepared,
    Committed,
    Aborted,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TmState {
    #[default]
    Init,
    Committed,
    Aborted,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Commit {
    rms: PerScalar<COUNT, RmState, Rm>,
    tm: TmState,
    /// Whose votes the transaction manager has.
    tm_prepared: Ids,
    /// Who has sent that it is prepared.
    sent_prepared: Ids,
    sent_commit: bool,
    sent_abort: bool,
}

impl Commit {
    pub fn can_tm_receive(&self) -> Ids {
        if self.tm == TmState::Init { self.sent_prepared } else { Ids::new() }
    }

    pub fn tm_receive(&mut self, rm: Id) {
        self.tm_prepared.insert(rm);
    }

    pub fn can_tm_commit(&self) -> bool {
        let missing = usize::from(cfg!(feature = "mistake"));
        self.tm == TmState::Init && self.tm_prepared.len() + missing >= COUNT
    }

    pub fn tm_commit(&mut self) {
        (self.tm, self.sent_commit) = (TmState::Committed, true);
    }

    pub fn can_tm_abort(&self) -> bool {
        self.tm == TmState::Init
    }

    pub fn tm_abort(&mut self) {
        (self.tm, self.sent_abort) = (TmState::Aborted, true);
    }

    pub fn working(&self) -> Ids {
        self.rms.ids(|state| *state == RmState::Working)
    }

    pub fn rm_prepare(&mut self, rm: Id) {
        self.rms[rm] = RmState::Prepared;
        self.sent_prepared.insert(rm);
    }

    pub fn rm_choose_to_abort(&mut self, rm: Id) {
        self.rms[rm] = RmState::Aborted;
    }

    pub fn can_receive_commit(&self) -> bool {
        self.sent_commit
    }

    pub fn rm_receive_commit(&mut self, rm: Id) {
        self.rms[rm] = RmState::Committed;
    }

    pub fn can_receive_abort(&self) -> bool {
        self.sent_abort
    }

    pub fn rm_receive_abort(&mut self, rm: Id) {
        self.rms[rm] = RmState::Aborted;
    }

    pub fn is_committed(&self) -> bool {
        self.rms.values().all(|state| *state == RmState::Committed)
    }

    pub fn is_consistent(&self) -> bool {
        let is_any = |wanted| self.rms.values().any(|state| *state == wanted);
        !(is_any(RmState::Committed) && is_any(RmState::Aborted))
    }
}

#[cfg(feature = "two-phase-commit")]
mod harness {
    use super::*;

    #[derive(Default, Hash)]
    struct Harness(Commit);

    #[harness]
    impl Harness {
        #[rule]
        #[precondition(!self.0.can_tm_receive().is_empty())]
        fn tm_receive(&mut self, #[draw(sampled_from(self.0.can_tm_receive()))] rm: Id) {
            self.0.tm_receive(rm);
        }

        #[rule]
        #[precondition(self.0.can_tm_commit())]
        fn tm_commit(&mut self) {
            self.0.tm_commit();
        }

        #[rule]
        #[precondition(self.0.can_tm_abort())]
        fn tm_abort(&mut self) {
            self.0.tm_abort();
        }

        #[rule]
        #[precondition(!self.0.working().is_empty())]
        fn rm_prepare(&mut self, #[draw(sampled_from(self.0.working()))] rm: Id) {
            self.0.rm_prepare(rm);
        }

        #[rule]
        #[precondition(!self.0.working().is_empty())]
        fn rm_choose_to_abort(&mut self, #[draw(sampled_from(self.0.working()))] rm: Id) {
            self.0.rm_choose_to_abort(rm);
        }

        #[rule]
        #[precondition(self.0.can_receive_commit())]
        fn rm_receive_commit(&mut self, rm: Id) {
            self.0.rm_receive_commit(rm);
            sometimes!(self.0.is_committed(), "all commit");
        }

        #[rule]
        #[precondition(self.0.can_receive_abort())]
        fn rm_receive_abort(&mut self, rm: Id) {
            self.0.rm_receive_abort(rm);
        }

        #[invariant]
        fn consistent(&self) {
            assert!(self.0.is_consistent(), "{:?}", self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Protocol, Reached, after, after_one, reach};

    impl Protocol<COUNT, Rm> for Commit {
        fn next(&self) -> Vec<Commit> {
            let all = |is_possible| if is_possible { Id::all() } else { Ids::new() };
            [
                after(self, self.can_tm_receive(), Commit::tm_receive),
                after_one(self, self.can_tm_commit(), Commit::tm_commit),
                after_one(self, self.can_tm_abort(), Commit::tm_abort),
                after(self, self.working(), Commit::rm_prepare),
                after(self, self.working(), Commit::rm_choose_to_abort),
                after(self, all(self.can_receive_commit()), Commit::rm_receive_commit),
                after(self, all(self.can_receive_abort()), Commit::rm_receive_abort),
            ]
            .concat()
        }

        fn is_right(&self) -> bool {
            self.is_consistent()
        }

        fn renamed(&self, to: impl Fn(Id) -> Id) -> Commit {
            let mut renamed = self.clone();
            self.rms.iter().for_each(|(rm, state)| renamed.rms[to(rm)] = *state);
            renamed.tm_prepared = self.tm_prepared.iter().map(&to).collect();
            renamed.sent_prepared = self.sent_prepared.iter().map(&to).collect();
            renamed
        }
    }

    #[test]
    fn whoever_is_who_there_are_fewer_states() {
        let reached = reach::<COUNT, Rm, Commit>();
        let expected = match (COUNT, cfg!(feature = "mistake")) {
            (3, false) => Reached { states: 288, orbits: 80, steps: 317, failure: None },
            (3, true) => Reached { states: 339, orbits: 93, steps: 365, failure: Some(7) },
            (7, false) => Reached { states: 296_448, orbits: 920, steps: 8_409, failure: None },
            _ => return,
        };
        assert_eq!(reached, expected);
    }
}
