//! How a run comes to the state that it starts from.

use std::sync::Arc;

use rand::RngExt;

use super::knowledge::Knowledge;
use super::run::{Flow, Known, Runner};
use crate::outcome::Outcome;
use crate::target::{Target, attempt, perform};
use crate::trace::{Action, Trace};

impl<T: Target> Runner<'_, T> {
    /// Reaches a state by its history, where it could not be saved.
    pub(super) fn replay(&mut self) {
        let mut steps = Trace::default();
        self.history.flatten(&mut steps);
        let mut again = Trace::default();
        self.target.reset();
        for step in steps.steps() {
            let recorded = steps.recorded(step);
            let what = (step.action, step.seed);
            attempt(self.target, &mut self.chooser, &mut self.enabled, what, recorded, &mut again);
        }
        // Nothing here is new: every one of these steps was explored.
        self.forget_coverage();
        self.chooser.drawn_bytes = 0;
    }

    pub(super) fn start_fresh(&mut self, known: &mut Known<'_, T::Snapshot>) -> Flow {
        self.faults.fill(false);
        self.depth = 0;
        self.parent = self.checkpoint.map(|index| known.get().checkpoints.get(index).id);
        // To count owners takes longer than to see that it is the same.
        if !Arc::ptr_eq(&self.history, &known.get().start) {
            self.history = known.get().start.clone();
        }
        if let Some(snapshot) = &known.get().base {
            self.target.restore(snapshot);
            let seed = self.rng.random();
            self.trace.push(Action::Setup, seed);
            self.depth = 1;
            self.steps += 1;
            return Flow::GoOn;
        }
        self.target.reset();
        self.drew = false;
        let is_always_so = known.get().base_state.is_some();
        if self.target.has_setup() && is_always_so {
            // As if it had been saved: nothing of it is new.
            let seed = self.rng.random();
            if self.set_up(seed) {
                (self.depth, self.steps) = (1, self.steps + 1);
                return Flow::GoOn;
            }
            self.target.reset();
            self.trace.clear();
        }
        if self.target.has_setup() && self.step(known, Action::Setup) == Flow::End {
            return Flow::End;
        }
        // In each run where setup draws, there is nothing that is always the same.
        if known.get().base_state.is_none() && !self.drew {
            let base_state = self.target.live_state();
            let base = if self.target.has_setup() { self.target.snapshot() } else { None };
            if base_state.is_some() || base.is_some() {
                let known = known.learn();
                (known.base_state, known.base) = (base_state, base);
            }
        }
        Flow::GoOn
    }

    /// Calls setup, of which nothing counts as new; whether it passed.
    fn set_up(&mut self, seed: u64) -> bool {
        let outcome = perform(self.target, &mut self.chooser, (Action::Setup, seed), [], &mut self.trace);
        self.forget_coverage();
        outcome == Outcome::Pass
    }

    /// Finds the state that fresh runs start from, where it is always the same. The first run did so already, in
    /// an exploration that goes on elsewhere.
    pub(super) fn find_base(&mut self, known: &mut Knowledge<T::Snapshot>) {
        if known.base_state.is_some() || known.base.is_some() {
            return;
        }
        self.target.reset();
        if self.target.has_setup() {
            self.target.set_counts(false);
            let passes = self.set_up(0);
            let drew = self.trace.last_drew();
            self.trace.clear();
            if !passes || drew {
                return;
            }
            known.base = self.target.snapshot();
        }
        known.base_state = self.target.live_state();
    }
}
