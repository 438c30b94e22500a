//! Two-phase commit, and what may happen in it, in any order.

#![forbid(unsafe_code)]

pub mod protocol;

use spelunk_guest::{Samples, prelude::*};

use protocol::{Protocol, Set};

/// How many resource managers there are.
pub const COUNT: usize = if cfg!(feature = "n9") {
    9
} else if cfg!(feature = "n7") {
    7
} else if cfg!(feature = "n5") {
    5
} else if cfg!(feature = "n4") {
    4
} else {
    3
};

#[cfg(feature = "faults")]
fault!(
    /// What is sent is lost.
    LOSSY,
    "lossy"
);

#[cfg(feature = "faults")]
fault!(
    /// Managers crash.
    CRASHES,
    "crashes"
);

/// Whether what is sent now is lost.
fn is_lost() -> bool {
    #[cfg(feature = "faults")]
    return LOSSY.is_active();
    #[cfg(not(feature = "faults"))]
    false
}

#[derive(Default)]
struct Harness(Protocol);

/// One rule for each action of the specification, which draws with which resource manager it is done.
#[harness]
impl Harness {
    #[rule]
    #[precondition(!self.0.can_tm_rcv_prepared().is_empty())]
    fn tm_rcv_prepared(&mut self, #[draw(sampled_from(self.0.can_tm_rcv_prepared()))] rm: usize) {
        self.0.tm_rcv_prepared(rm);
    }

    #[rule]
    #[precondition(self.0.can_tm_commit())]
    fn tm_commit(&mut self) {
        self.0.tm_commit(is_lost());
    }

    #[rule]
    #[precondition(self.0.can_tm_abort())]
    fn tm_abort(&mut self) {
        self.0.tm_abort(is_lost());
    }

    #[rule]
    #[precondition(!self.0.working().is_empty())]
    fn rm_prepare(&mut self, #[draw(sampled_from(self.0.working()))] rm: usize) {
        self.0.rm_prepare(rm, is_lost());
    }

    #[rule]
    #[precondition(!self.0.working().is_empty())]
    fn rm_choose_to_abort(&mut self, #[draw(sampled_from(self.0.working()))] rm: usize) {
        self.0.rm_choose_to_abort(rm);
    }

    #[rule]
    #[precondition(self.0.can_rm_rcv_commit())]
    fn rm_rcv_commit_msg(&mut self, #[draw(sampled_from(Set::of(|_| true)))] rm: usize) {
        self.0.rm_rcv_commit(rm);
        sometimes!(self.0.is_committed(), "all commit");
    }

    #[rule]
    #[precondition(self.0.can_rm_rcv_abort())]
    fn rm_rcv_abort_msg(&mut self, #[draw(sampled_from(Set::of(|_| true)))] rm: usize) {
        self.0.rm_rcv_abort(rm);
    }

    #[cfg(feature = "faults")]
    #[rule]
    #[precondition(!self.0.can_rm_send_again().is_empty())]
    fn rm_send_again(&mut self, #[draw(sampled_from(self.0.can_rm_send_again()))] rm: usize) {
        self.0.rm_send_again(rm, is_lost());
    }

    #[cfg(feature = "faults")]
    #[rule]
    #[precondition(self.0.can_tm_send_again())]
    fn tm_send_again(&mut self) {
        self.0.tm_send_again(is_lost());
    }

    #[cfg(feature = "faults")]
    #[rule]
    #[precondition(CRASHES.is_active() && !self.0.can_rm_crash().is_empty())]
    fn rm_crash(&mut self, #[draw(sampled_from(self.0.can_rm_crash()))] rm: usize) {
        self.0.rm_crash(rm);
    }

    #[cfg(feature = "faults")]
    #[rule]
    #[precondition(CRASHES.is_active() && self.0.can_tm_crash())]
    fn tm_crash(&mut self) {
        self.0.tm_crash();
    }

    /// Nobody commits where another aborts.
    #[invariant]
    fn consistent(&self) {
        assert!(self.0.is_consistent(), "{:?}", self.0.rm_states());
    }
}

/// So that a resource manager can be drawn from a set of them.
impl Samples for Set {
    type Item = usize;

    fn len(&self) -> usize {
        Set::len(*self)
    }

    fn get(&self, index: usize) -> usize {
        self.iter().nth(index).expect("the index is less than the length")
    }
}

const _: () = assert!(COUNT <= 16, "a set has 16 bits");
