//! Two-phase commit, as Gray and Lamport specify it in TLA+ ("Consensus on Transaction Commit", 2004, `TwoPhase.tla`): a transaction
//! manager (TM), and resource managers (RM) that are alike. A message that was sent is there for ever.

use spelunk_guest::prelude::*;

use crate::Protocol;

/// Tells their ids from others.
pub struct Rm;

type Id<const N: usize> = Scalar<N, Rm>;
type Ids<const N: usize> = ScalarSet<N, Rm>;

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
pub struct Commit<const N: usize> {
    rms: PerScalar<N, RmState, Rm>,
    tm: TmState,
    /// Whose votes the transaction manager has.
    tm_prepared: Ids<N>,
    /// Who has sent that it is prepared.
    sent_prepared: Ids<N>,
    sent_commit: bool,
    sent_abort: bool,
}

impl<const N: usize> Commit<N> {
    fn can_tm_receive(&self) -> Ids<N> {
        if self.tm == TmState::Init { self.sent_prepared } else { Ids::new() }
    }

    fn tm_receive(&mut self, rm: Id<N>) {
        self.tm_prepared.insert(rm);
    }

    fn can_tm_commit(&self) -> bool {
        let missing = usize::from(cfg!(feature = "mistake"));
        self.tm == TmState::Init && self.tm_prepared.len() + missing >= N
    }

    fn tm_commit(&mut self) {
        (self.tm, self.sent_commit) = (TmState::Committed, true);
    }

    fn can_tm_abort(&self) -> bool {
        self.tm == TmState::Init
    }

    fn tm_abort(&mut self) {
        (self.tm, self.sent_abort) = (TmState::Aborted, true);
    }

    fn working(&self) -> Ids<N> {
        self.rms.ids(|state| *state == RmState::Working)
    }

    fn rm_prepare(&mut self, rm: Id<N>) {
        self.rms[rm] = RmState::Prepared;
        self.sent_prepared.insert(rm);
    }

    fn rm_choose_to_abort(&mut self, rm: Id<N>) {
        self.rms[rm] = RmState::Aborted;
    }

    fn can_receive_commit(&self) -> bool {
        self.sent_commit
    }

    fn rm_receive_commit(&mut self, rm: Id<N>) {
        self.rms[rm] = RmState::Committed;
    }

    fn can_receive_abort(&self) -> bool {
        self.sent_abort
    }

    fn rm_receive_abort(&mut self, rm: Id<N>) {
        self.rms[rm] = RmState::Aborted;
    }

    pub fn is_committed(&self) -> bool {
        self.rms.values().all(|state| *state == RmState::Committed)
    }

    fn is_consistent(&self) -> bool {
        let is_any = |wanted| self.rms.values().any(|state| *state == wanted);
        !(is_any(RmState::Committed) && is_any(RmState::Aborted))
    }
}

/// With the names of the specification.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<const N: usize> {
    TmReceive(Id<N>),
    TmCommit,
    TmAbort,
    RmPrepare(Id<N>),
    RmChooseToAbort(Id<N>),
    RmReceiveCommit(Id<N>),
    RmReceiveAbort(Id<N>),
}

impl<const N: usize> Protocol for Commit<N> {
    type Action = Action<N>;

    fn actions(&self, actions: &mut Vec<Action<N>>) {
        let all = |is_possible| if is_possible { Id::all() } else { Ids::new() };
        actions.extend(self.can_tm_receive().iter().map(Action::TmReceive));
        actions.extend(self.can_tm_commit().then_some(Action::TmCommit));
        actions.extend(self.can_tm_abort().then_some(Action::TmAbort));
        actions.extend(self.working().iter().map(Action::RmPrepare));
        actions.extend(self.working().iter().map(Action::RmChooseToAbort));
        actions.extend(all(self.can_receive_commit()).iter().map(Action::RmReceiveCommit));
        actions.extend(all(self.can_receive_abort()).iter().map(Action::RmReceiveAbort));
    }

    fn perform(&mut self, action: Action<N>) {
        match action {
            Action::TmReceive(rm) => self.tm_receive(rm),
            Action::TmCommit => self.tm_commit(),
            Action::TmAbort => self.tm_abort(),
            Action::RmPrepare(rm) => self.rm_prepare(rm),
            Action::RmChooseToAbort(rm) => self.rm_choose_to_abort(rm),
            Action::RmReceiveCommit(rm) => self.rm_receive_commit(rm),
            Action::RmReceiveAbort(rm) => self.rm_receive_abort(rm),
        }
    }

    fn is_right(&self) -> bool {
        self.is_consistent()
    }
}

#[cfg(feature = "two-phase-commit")]
mod harness {
    use super::*;

    /// How many resource managers there are.
    const COUNT: usize = if cfg!(feature = "n7") { 7 } else { 3 };

    #[derive(Clone, Default, Hash)]
    struct Harness(Commit<COUNT>);

    #[harness]
    impl Harness {
        #[rule]
        #[precondition(!self.0.can_tm_receive().is_empty())]
        fn tm_receive(&mut self, #[draw(sampled_from(self.0.can_tm_receive()))] rm: Id<COUNT>) {
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
        fn rm_prepare(&mut self, #[draw(sampled_from(self.0.working()))] rm: Id<COUNT>) {
            self.0.rm_prepare(rm);
        }

        #[rule]
        #[precondition(!self.0.working().is_empty())]
        fn rm_choose_to_abort(&mut self, #[draw(sampled_from(self.0.working()))] rm: Id<COUNT>) {
            self.0.rm_choose_to_abort(rm);
        }

        #[rule]
        #[precondition(self.0.can_receive_commit())]
        fn rm_receive_commit(&mut self, rm: Id<COUNT>) {
            self.0.rm_receive_commit(rm);
            sometimes!(self.0.is_committed(), "all commit");
        }

        #[rule]
        #[precondition(self.0.can_receive_abort())]
        fn rm_receive_abort(&mut self, rm: Id<COUNT>) {
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
    use crate::native::{Reached, Renamed, orders, reach};

    impl<const N: usize> Renamed for Commit<N> {
        fn renamed(&self) -> Vec<Commit<N>> {
            orders::<N, Rm>()
                .iter()
                .map(|to| {
                    let mut renamed = self.clone();
                    self.rms.iter().for_each(|(rm, state)| renamed.rms[to[rm]] = *state);
                    renamed.tm_prepared = self.tm_prepared.iter().map(|rm| to[rm]).collect();
                    renamed.sent_prepared = self.sent_prepared.iter().map(|rm| to[rm]).collect();
                    renamed
                })
                .collect()
        }
    }

    #[test]
    fn whoever_is_who_there_are_fewer_states() {
        if cfg!(feature = "mistake") {
            let expected = Reached { states: 339, orbits: 93, steps: 365, failure: Some(7) };
            assert_eq!(reach::<Commit<3>>(), expected);
            return;
        }
        let expected = Reached { states: 288, orbits: 80, steps: 317, failure: None };
        assert_eq!(reach::<Commit<3>>(), expected);
        let expected = Reached { states: 296_448, orbits: 920, steps: 8_409, failure: None };
        assert_eq!(reach::<Commit<7>>(), expected);
    }
}
