//! The protocol, as Gray and Lamport specify it in TLA+ ("Consensus on Transaction Commit", 2004, `TwoPhase.tla`),
//! with its names: a transaction manager (TM) and resource managers (RM).
//!
//! A message that was sent is there for ever and can be received any number of times. The feature `faults` adds messages
//! that get lost and are sent again, and crashes, from which a resource manager recovers by its log.

use super::COUNT;

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

/// Of the resource managers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Set(u16);

impl Set {
    const ALL: Set = Set((1 << COUNT) - 1);

    pub fn of(holds: impl Fn(usize) -> bool) -> Set {
        Set((0..COUNT).map(|rm| u16::from(holds(rm)) << rm).sum())
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub fn contains(self, rm: usize) -> bool {
        self.0 >> rm & 1 != 0
    }

    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..COUNT).filter(move |rm| self.contains(*rm))
    }

    fn insert(&mut self, rm: usize) {
        self.0 |= 1 << rm;
    }
}

/// The messages that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Messages {
    prepared: Set,
    commit: bool,
    abort: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Protocol {
    rm_state: [RmState; COUNT],
    tm_state: TmState,
    /// Whose votes the transaction manager has.
    tm_prepared: Set,
    messages: Messages,
    /// Whose logs say that they are prepared.
    #[cfg(feature = "faults")]
    logged: Set,
}

/// What can be done: the resource managers with which, by the name of the action.
impl Protocol {
    pub fn can_tm_rcv_prepared(&self) -> Set {
        match self.tm_state {
            TmState::Init => self.messages.prepared,
            _ => Set::default(),
        }
    }

    pub fn can_tm_commit(&self) -> bool {
        self.tm_state == TmState::Init && self.tm_prepared == Set::ALL
    }

    pub fn can_tm_abort(&self) -> bool {
        self.tm_state == TmState::Init
    }

    pub fn working(&self) -> Set {
        Set::of(|rm| self.rm_state[rm] == RmState::Working)
    }

    pub fn can_rm_rcv_commit(&self) -> bool {
        self.messages.commit
    }

    pub fn can_rm_rcv_abort(&self) -> bool {
        self.messages.abort
    }
}

/// What is done. A message that `is_lost` is not there after it was sent.
impl Protocol {
    pub fn tm_rcv_prepared(&mut self, rm: usize) {
        self.tm_prepared.insert(rm);
    }

    pub fn tm_commit(&mut self, is_lost: bool) {
        self.tm_state = TmState::Committed;
        self.send(is_lost, |messages| messages.commit = true);
    }

    pub fn tm_abort(&mut self, is_lost: bool) {
        self.tm_state = TmState::Aborted;
        self.send(is_lost, |messages| messages.abort = true);
    }

    pub fn rm_prepare(&mut self, rm: usize, is_lost: bool) {
        // The bug of the feature `mistake`: the vote is sent, and not in the log.
        #[cfg(all(feature = "faults", not(feature = "mistake")))]
        self.logged.insert(rm);
        self.rm_state[rm] = RmState::Prepared;
        self.send(is_lost, |messages| messages.prepared.insert(rm));
    }

    pub fn rm_choose_to_abort(&mut self, rm: usize) {
        self.rm_state[rm] = RmState::Aborted;
    }

    pub fn rm_rcv_commit(&mut self, rm: usize) {
        self.rm_state[rm] = RmState::Committed;
    }

    pub fn rm_rcv_abort(&mut self, rm: usize) {
        self.rm_state[rm] = RmState::Aborted;
    }

    fn send(&mut self, is_lost: bool, send: impl FnOnce(&mut Messages)) {
        if !is_lost {
            send(&mut self.messages);
        }
    }
}

/// What goes wrong, and how it is made good.
#[cfg(feature = "faults")]
impl Protocol {
    /// Those who voted, and whose vote was lost.
    pub fn can_rm_send_again(&self) -> Set {
        Set::of(|rm| self.rm_state[rm] == RmState::Prepared && !self.messages.prepared.contains(rm))
    }

    pub fn rm_send_again(&mut self, rm: usize, is_lost: bool) {
        self.send(is_lost, |messages| messages.prepared.insert(rm));
    }

    /// The decision was lost.
    pub fn can_tm_send_again(&self) -> bool {
        match self.tm_state {
            TmState::Init => false,
            TmState::Committed => !self.messages.commit,
            TmState::Aborted => !self.messages.abort,
        }
    }

    pub fn tm_send_again(&mut self, is_lost: bool) {
        let tm_state = self.tm_state;
        self.send(is_lost, |messages| match tm_state {
            TmState::Init => unreachable!("nothing is decided"),
            TmState::Committed => messages.commit = true,
            TmState::Aborted => messages.abort = true,
        });
    }

    /// Those who have not come to an end, which would be in their logs.
    pub fn can_rm_crash(&self) -> Set {
        Set::of(|rm| matches!(self.rm_state[rm], RmState::Working | RmState::Prepared))
    }

    /// It knows what its log says, and nothing else.
    pub fn rm_crash(&mut self, rm: usize) {
        self.rm_state[rm] = match self.logged.contains(rm) {
            true => RmState::Prepared,
            false => RmState::Working,
        };
    }

    /// It has decided nothing, and logs only decisions.
    pub fn can_tm_crash(&self) -> bool {
        self.tm_state == TmState::Init
    }

    /// It forgets the votes, which will come again: their messages are still there.
    pub fn tm_crash(&mut self) {
        self.tm_prepared = Set::default();
    }
}

/// What must hold.
impl Protocol {
    pub fn is_consistent(&self) -> bool {
        !(self.rm_state.contains(&RmState::Committed) && self.rm_state.contains(&RmState::Aborted))
    }

    pub fn is_committed(&self) -> bool {
        self.rm_state == [RmState::Committed; COUNT]
    }

    pub fn rm_states(&self) -> &[RmState] {
        &self.rm_state
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The states after each possible action.
    fn next(state: &Protocol) -> Vec<Protocol> {
        let mut next = Vec::new();
        let mut go = |rms: Set, action: &dyn Fn(&mut Protocol, usize)| {
            for rm in rms.iter() {
                let mut state = *state;
                action(&mut state, rm);
                next.push(state);
            }
        };
        let all = |is_possible| if is_possible { Set::ALL } else { Set::default() };
        let once = |is_possible| if is_possible { Set(1) } else { Set::default() };
        go(state.can_tm_rcv_prepared(), &Protocol::tm_rcv_prepared);
        go(state.working(), &Protocol::rm_choose_to_abort);
        go(all(state.can_rm_rcv_commit()), &Protocol::rm_rcv_commit);
        go(all(state.can_rm_rcv_abort()), &Protocol::rm_rcv_abort);
        for &is_lost in if cfg!(feature = "faults") { &[false, true][..] } else { &[false] } {
            go(once(state.can_tm_commit()), &|state, _| state.tm_commit(is_lost));
            go(once(state.can_tm_abort()), &|state, _| state.tm_abort(is_lost));
            go(state.working(), &|state, rm| state.rm_prepare(rm, is_lost));
            #[cfg(feature = "faults")]
            {
                go(state.can_rm_send_again(), &|state, rm| state.rm_send_again(rm, is_lost));
                go(once(state.can_tm_send_again()), &|state, _| state.tm_send_again(is_lost));
            }
        }
        #[cfg(feature = "faults")]
        {
            go(state.can_rm_crash(), &Protocol::rm_crash);
            go(once(state.can_tm_crash()), &|state, _| state.tm_crash());
        }
        next
    }

    /// All states that can be reached, and how often one is.
    fn reach() -> (HashSet<Protocol>, usize) {
        let start = Protocol::default();
        let (mut seen, mut generated) = (HashSet::from([start]), 1);
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            for state in next(&state) {
                generated += 1;
                if seen.insert(state) {
                    open.push(state);
                }
            }
        }
        (seen, generated)
    }

    #[test]
    #[cfg(not(feature = "faults"))]
    fn there_are_as_many_states_as_the_specification_has() {
        let (states, generated) = reach();
        assert!(states.iter().all(Protocol::is_consistent));
        let expected = match COUNT {
            3 => (288, 1_146),
            4 => (1_568, 8_258),
            5 => (8_832, 58_146),
            7 => (296_448, 2_744_706),
            _ => return,
        };
        assert_eq!((states.len(), generated), expected);
    }

    #[test]
    #[cfg(feature = "faults")]
    fn faults_do_no_harm_unless_a_vote_is_forgotten() {
        let (states, _) = reach();
        assert_eq!(states.iter().all(Protocol::is_consistent), !cfg!(feature = "mistake"));
        assert!(states.iter().any(Protocol::is_committed));
    }
}
