//! Steps that were recorded elsewhere, on this build or another, and what they lead to here.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Options;
use super::energy::{Checkpoint, History};
use super::knowledge::Knowledge;
use crate::choice::Chooser;
use crate::coverage::EdgeSet;
use crate::outcome::{Found, Outcome, Reject};
use crate::target::{Target, attempt};
use crate::trace::{Action, Trace};

/// What became of recorded steps.
#[derive(Clone, Debug, PartialEq)]
pub enum Planted {
    /// A checkpoint.
    Checkpoint,
    /// The state that they lead to is that of a checkpoint already.
    Known,
    /// A failure that was not known.
    Found,
    /// A failure that was known.
    FoundBefore,
    /// They cannot be followed; why.
    Stale(String),
    /// The host stopped the guest before the end.
    Stopped,
}

impl<S: Clone> Knowledge<S> {
    /// Performs a run's steps, and makes a checkpoint, with this energy, of the state that they lead to, or a
    /// finding of the failure. Answers that do not fit are fitted or drawn, as in shrinking.
    pub fn plant<T: Target<Snapshot = S>>(
        &mut self,
        target: &mut T,
        options: &Options,
        trace: &Trace,
        energy: f64,
    ) -> Planted {
        let (mut chooser, mut enabled, mut again) = (Chooser::default(), Vec::new(), Trace::default());
        let mut faults = vec![false; target.faults().len()];
        let run = self.tally.runs.max(1);
        let (mut end, mut new_edges) = (Outcome::Pass, 0);
        target.reset();
        for step in trace.steps() {
            if let Action::Fault(fault, on) = step.action {
                faults[usize::from(fault)] = on;
            }
            let what = (step.action, step.seed);
            end = attempt(target, &mut chooser, &mut enabled, what, trace.recorded(step), &mut again);
            if end == Outcome::Stopped {
                return Planted::Stopped;
            }
            new_edges = self.see(target, run);
            if end != Outcome::Pass {
                break;
            }
        }
        match end {
            Outcome::Reject(reject) => {
                let why = match reject {
                    Reject::Precondition => "a precondition does not hold",
                    Reject::Assume => "the guest rejects the run",
                };
                return Planted::Stale(format!("step {}: {why}", again.len() + 1));
            }
            Outcome::Fail(failure) => {
                if self.has_found(&failure) {
                    return Planted::FoundBefore;
                }
                self.findings.push(Arc::new(Found { failure: *failure, run, trace: again }));
                return Planted::Found;
            }
            Outcome::Pass | Outcome::Stopped => {}
        }
        let ends = again.steps().last().is_some_and(|step| step.action == Action::Teardown);
        let is_function = target.is_function();
        let state = if is_function { None } else { target.live_state() };
        let is_known =
            if is_function { new_edges == 0 } else { state.is_some() && self.checkpoints.holds(state) };
        if ends || is_known {
            return Planted::Known;
        }
        let id = self.checkpoints.saved() + 1;
        let step = again.len() as u32;
        let checkpoint = Checkpoint {
            id,
            parent: None,
            snapshot: if is_function { None } else { target.snapshot() },
            state,
            faults,
            history: Arc::new(History { id, parent: Some(self.start.clone()), steps: again }),
            energy: energy.max(options.energies.floor),
            new_edges,
            step,
            run,
            selected: 0,
        };
        self.checkpoints.adopt(std::iter::once(checkpoint), 1);
        Planted::Checkpoint
    }

    /// Takes in the edges and scores of the steps since the last time; how many are new.
    fn see<T: Target>(&mut self, target: &mut T, run: u64) -> u32 {
        let (mut new, mut risen) = (Vec::new(), Vec::new());
        target.coverage(&self.seen, &mut new);
        target.scores(&self.scores, &mut risen);
        let count = (new.len() + risen.len()) as u32;
        for slot in new {
            self.saw(slot, run);
        }
        self.scores.extend(risen);
        count
    }
}

/// The edges of a run's steps, whatever they end with.
pub fn edges_of<T: Target>(target: &mut T, trace: &Trace) -> BTreeSet<u32> {
    let (mut chooser, mut enabled, mut again) = (Chooser::default(), Vec::new(), Trace::default());
    let mut edges = Vec::new();
    target.reset();
    for step in trace.steps() {
        let what = (step.action, step.seed);
        attempt(target, &mut chooser, &mut enabled, what, trace.recorded(step), &mut again);
        target.coverage(&EdgeSet::default(), &mut edges);
    }
    edges.into_iter().collect()
}
