//! What the budgets of a step say after it, and the stacks of threads.

use spelunk_instrumenter::SUSPEND_BYTES;

use super::{Spent, State};
use crate::machine::Limits;
use crate::machine::memory::was_ended;
use crate::machine::suspend::ThreadProblem;
use crate::machine::watchdog::Place;

impl State {
    /// Why the last call ended, where that was because its budget ran out.
    pub(in crate::machine) fn spent(&mut self) -> Option<Spent> {
        let left = i64::from_le_bytes(self.private_at(self.layout.budget)?);
        match left {
            0.. => None,
            left if was_ended(left) => Some(Spent::ByWatchdog),
            _ => Some(Spent::ByGuest),
        }
    }

    /// The part of the budget of the last step that was used.
    pub(in crate::machine) fn work(&mut self, limits: &Limits) -> u64 {
        let left = self.private_at(self.layout.budget).map_or(0, i64::from_le_bytes);
        limits.steps().saturating_sub(left.max(0) as u64)
    }

    /// Where the step budget is, for the watchdog.
    pub(in crate::machine) fn place_of_budget(&self) -> Place {
        match (&self.private, self.layout.budget) {
            (Some(private), Some(at)) => Place::At(private.mapping().clone(), at as usize),
            _ => Place::None,
        }
    }

    /// What went wrong with a thread in the last call, where something did.
    pub(in crate::machine) fn thread_problem(&mut self) -> Option<ThreadProblem> {
        let last = self.layout.suspend? + SUSPEND_BYTES - 4;
        ThreadProblem::of(u32::from_le_bytes(self.private_at(Some(last))?))
    }

    /// Whether the last call ended because it nested too deep.
    pub(in crate::machine) fn is_too_deep(&mut self, limits: &Limits) -> bool {
        self.private_at(self.layout.depth).is_some_and(|depth| u32::from_le_bytes(depth) > limits.depth_max)
    }
}
