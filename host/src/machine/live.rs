//! What a run owes of its properties without end, where it is repeated to see that a loop closes.

use super::Machine;
use crate::outcome::{Failure, FailureKind, Halt, Outcome, Reject};
use crate::property::PropertyKind;
use crate::target::{Holds, Target};

/// What the states of a run said so far; a bit for each property.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Monitor {
    /// What came.
    came: u64,
    /// What is owed and has not come since.
    owed: u64,
    /// What the last state said came.
    now: u64,
    turns: Option<Turns>,
}

/// A loop that has begun.
#[derive(Clone, Copy, Debug)]
struct Turns {
    /// The hash of the state in which it did.
    state: u128,
    /// What came in it.
    came: u64,
    steps: usize,
}

impl Monitor {
    fn see(&mut self, holds: Holds) {
        self.came |= holds.to;
        self.owed = (self.owed | holds.from) & !holds.to;
        self.now = holds.to;
        if let Some(turns) = &mut self.turns {
            turns.came |= holds.to;
            turns.steps += 1;
        }
    }

    /// Whether what must come is missing on the loop, which has closed.
    fn lacks(&self, kind: PropertyKind, bit: u64) -> bool {
        let owes = match kind {
            PropertyKind::Eventually => self.came & bit == 0,
            PropertyKind::LeadsTo => self.owed & bit != 0,
            _ => true,
        };
        owes && self.turns.is_some_and(|turns| turns.came & bit == 0)
    }
}

impl Machine {
    /// Notes what the state after a step says.
    pub(super) fn see(&mut self) {
        if !self.program.liveness.is_empty() {
            let host = self.store.data_mut();
            host.guest.monitor.see(host.step.holds);
        }
    }

    /// A loop begins here.
    pub(super) fn begin_loop(&mut self) -> Outcome {
        match self.compared_state() {
            Ok(state) => {
                let monitor = &mut self.store.data_mut().guest.monitor;
                monitor.turns = state.map(|state| Turns { state, came: monitor.now, steps: 0 });
                Outcome::Pass
            }
            Err(halt) => halt.into(),
        }
    }

    /// Fails where the loop has closed, and the property with this number never held on it.
    pub(super) fn end_loop(&mut self, number: u16) -> Outcome {
        let state = match self.compared_state() {
            Ok(state) => state,
            Err(Halt::Stopped) => return Outcome::Stopped,
            Err(halt) => return halt.into(),
        };
        let monitor = self.store.data().guest.monitor;
        let is_closed = monitor.turns.is_some_and(|turns| Some(turns.state) == state);
        let property = self.program.liveness.get(usize::from(number));
        match property.filter(|property| is_closed && monitor.lacks(property.kind, 1 << number)) {
            Some(property) => {
                let steps = monitor.turns.map_or(0, |turns| turns.steps);
                let failure = Failure::new(FailureKind::Liveness, property.kind.unmet_on_loop(steps));
                Outcome::Fail(Box::new(Failure { subject: Some(property.name.clone()), ..failure }))
            }
            None => Outcome::Reject(Reject::Precondition),
        }
    }
}
