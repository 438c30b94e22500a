//! Steps that were recorded elsewhere, on this build or another, and what they lead to here.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Options;
use super::energy::{Checkpoint, News};
use super::history::History;
use super::knowledge::Knowledge;
use crate::choice::Chooser;
use crate::coverage::{FeatureSet, edges_in};
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

/// What a trace led to.
struct Followed {
    /// The steps, with the choices that they really made.
    steps: Trace,
    /// Which faults are on.
    faults: Vec<bool>,
    /// Edges and scores that the last step saw first.
    new: u32,
    /// All features of edges that it showed.
    shown: Vec<u32>,
}

impl Followed {
    /// Why the step after these cannot be followed.
    fn rejected(&self, reject: Reject) -> String {
        let why = match reject {
            Reject::Precondition => "a precondition does not hold",
            Reject::Assume => "the guest rejects the run",
        };
        format!("step {}: {why}", self.steps.len() + 1)
    }
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
        let mut followed = Followed {
            steps: Trace::default(),
            faults: vec![false; target.faults().len()],
            new: 0,
            shown: Vec::new(),
        };
        let run = self.tally.runs.max(1);
        match self.follow(target, trace, &mut followed) {
            Outcome::Stopped => return Planted::Stopped,
            Outcome::Reject(reject) => return Planted::Stale(followed.rejected(reject)),
            Outcome::Fail(failure) if self.has_found(&failure) => return Planted::FoundBefore,
            Outcome::Fail(failure) => {
                self.findings.push(Arc::new(Found { failure: *failure, run, trace: followed.steps }));
                return Planted::Found;
            }
            // Nothing can follow, but of a function its input is kept.
            Outcome::Exit if !target.is_function() => return Planted::Known,
            Outcome::Pass | Outcome::Exit => {}
        }
        let ends = followed.steps.steps().last().is_some_and(|step| step.action == Action::Teardown);
        let is_function = target.is_function();
        let state = if is_function { None } else { target.live_state() };
        let is_known =
            if is_function { followed.new == 0 } else { state.is_some() && self.checkpoints.holds(state) };
        if ends || is_known {
            return Planted::Known;
        }
        let Followed { steps, faults, new, shown } = followed;
        let id = self.checkpoints.saved() + 1;
        let checkpoint = Checkpoint {
            id,
            parent: None,
            snapshot: if is_function { None } else { target.snapshot() },
            state,
            faults,
            step: steps.len() as u32,
            history: Arc::new(History::new(id, Some(self.start.clone()), steps)),
            energy: energy.max(options.energies.floor),
            new_edges: new,
            run,
            selected: 0,
            news: News::Edges,
            work: if is_function { target.work() } else { 0 },
            champion_of: 0,
            closer: Arc::default(),
        };
        self.checkpoints.adopt(std::iter::once(checkpoint), 1);
        if is_function {
            self.checkpoints.crown(id, edges_in(shown));
        }
        Planted::Checkpoint
    }

    /// Performs the steps of a trace from the start, up to the first that does not pass; how that one ended.
    fn follow<T: Target<Snapshot = S>>(
        &mut self,
        target: &mut T,
        trace: &Trace,
        followed: &mut Followed,
    ) -> Outcome {
        let (mut chooser, mut enabled) = (Chooser::default(), Vec::new());
        let run = self.tally.runs.max(1);
        target.reset();
        for step in trace.steps() {
            if let Action::Fault(fault, on) = step.action {
                followed.faults[usize::from(fault)] = on;
            }
            let (what, recorded) = ((step.action, step.seed), trace.recorded(step));
            let outcome = attempt(target, &mut chooser, &mut enabled, what, recorded, &mut followed.steps);
            if outcome == Outcome::Stopped {
                return outcome;
            }
            followed.new = self.see(target, run, &mut followed.shown);
            if outcome != Outcome::Pass {
                return outcome;
            }
        }
        Outcome::Pass
    }

    /// Takes in the edges and scores of the steps since the last time; how many are new.
    fn see<T: Target>(&mut self, target: &mut T, run: u64, shown: &mut Vec<u32>) -> u32 {
        let mut risen = Vec::new();
        shown.clear();
        target.coverage(&self.seen.none(), shown);
        target.scores(&self.scores, &mut risen);
        let new = shown.iter().filter(|feature| self.saw(**feature, run)).count();
        let count = (new + risen.len()) as u32;
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
        target.coverage(&FeatureSet::default(), &mut edges);
    }
    edges_in(edges).collect()
}
