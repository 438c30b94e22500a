//! Steps that were recorded elsewhere, on this build or another, and what they lead to here.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Options;
use super::energy::{Checkpoint, News};
use super::history::History;
use super::knowledge::{Knowledge, Values};
use super::run::Runner;
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
    /// It did so after something was learned of the steps: what is known is not to be saved.
    Torn,
}

/// What a trace led to.
#[derive(Default)]
struct Followed {
    /// The steps, with the choices that they really made.
    steps: Trace,
    /// Which faults are on.
    faults: Vec<bool>,
    /// Edges and scores that the last step saw first.
    new: u32,
    /// Those that are edges.
    new_edges: Vec<u32>,
    /// All features of edges that it showed.
    shown: Vec<u32>,
    /// So many steps passed.
    passed: usize,
}

impl Followed {
    fn new(faults: usize) -> Followed {
        Followed { faults: vec![false; faults], ..Followed::default() }
    }

    /// Why the step after these cannot be followed.
    fn rejected(&self, reject: Reject) -> String {
        let why = match reject {
            Reject::Precondition => "a precondition does not hold",
            Reject::Assume | Reject::LeftOut => "the guest rejects the run",
        };
        format!("step {}: {why}", self.steps.len() + 1)
    }
}

impl<T: Target> Runner<'_, T> {
    /// Performs a run's steps, and makes a checkpoint, with this energy, of the state that they lead to, or a
    /// finding of the failure. Answers that do not fit are fitted or drawn, as in shrinking. An input of a function may be
    /// shortened first.
    pub(super) fn plant(
        &mut self,
        known: &mut Knowledge<T::Snapshot>,
        options: &Options,
        trace: &Trace,
        (energy, is_trimmed): (f64, bool),
    ) -> Planted {
        let mut followed = Followed::new(self.target.faults().len());
        self.plant_followed(known, options, trace, (energy, is_trimmed), &mut followed)
    }

    fn plant_followed(
        &mut self,
        known: &mut Knowledge<T::Snapshot>,
        options: &Options,
        trace: &Trace,
        (energy, is_trimmed): (f64, bool),
        followed: &mut Followed,
    ) -> Planted {
        let run = known.tally.runs.max(1);
        match known.follow(self.target, trace, followed) {
            Outcome::Stopped => return Planted::Stopped,
            Outcome::Reject(reject) => return Planted::Stale(followed.rejected(reject)),
            Outcome::Fail(failure) if known.has_found(&failure) => return Planted::FoundBefore,
            Outcome::Fail(failure) => {
                let trace = std::mem::take(&mut followed.steps);
                known.findings.push(Arc::new(Found { failure: *failure, run, trace }));
                return Planted::Found;
            }
            // Nothing can follow, but of a function its input is kept.
            Outcome::Exit if !self.target.is_function() => return Planted::Known,
            Outcome::Pass | Outcome::Exit => {}
        }
        let ends = followed.steps.steps().last().is_some_and(|step| step.action == Action::Teardown);
        let is_function = self.target.is_function();
        let state = if is_function { None } else { self.target.live_state() };
        let is_known =
            if is_function { followed.new == 0 } else { state.is_some() && known.checkpoints.holds(state) };
        if ends || is_known {
            return Planted::Known;
        }
        if is_trimmed && is_function {
            self.trim_followed(known, followed);
            if self.is_stopped {
                return Planted::Torn;
            }
        }
        self.keep(known, options, (followed, state), energy);
        Planted::Checkpoint
    }

    /// As [`plant`](Runner::plant), of steps that were recorded on another build. Where they cannot be followed to their end, a checkpoint is made
    /// of the state up to which they can.
    pub(super) fn plant_rebuilt(
        &mut self,
        known: &mut Knowledge<T::Snapshot>,
        options: &Options,
        trace: &Trace,
        energy: f64,
    ) -> Planted {
        let mut followed = Followed::new(self.target.faults().len());
        let planted = self.plant_followed(known, options, trace, (energy, false), &mut followed);
        let is_cut = matches!(planted, Planted::Stale(_) | Planted::Found | Planted::FoundBefore);
        if !is_cut || self.target.is_function() || followed.passed == 0 {
            return planted;
        }
        let mut passed = Trace::default();
        passed.extend(trace, followed.passed);
        match self.plant(known, options, &passed, (energy, false)) {
            Planted::Stopped => Planted::Stopped,
            _ => planted,
        }
    }

    /// Makes a checkpoint of what a trace led to, and of this state.
    fn keep(
        &mut self,
        known: &mut Knowledge<T::Snapshot>,
        options: &Options,
        (followed, state): (&mut Followed, Option<u128>),
        energy: f64,
    ) {
        let (run, is_function) = (known.tally.runs.max(1), self.target.is_function());
        let Followed { steps, faults, new, shown, .. } = std::mem::take(followed);
        let id = known.checkpoints.saved() + 1;
        let checkpoint = Checkpoint {
            id,
            parent: None,
            snapshot: if is_function { None } else { self.target.snapshot() },
            state,
            faults,
            step: steps.len() as u32,
            history: Arc::new(History::new(id, Some(known.start.clone()), steps)),
            energy: energy.max(options.energies.floor),
            new_edges: new,
            run,
            selected: 0,
            news: News::Edges,
            work: self.target.work(),
            champion_of: 0,
            rareness: 0,
            given: Values::default(),
            closer: Arc::default(),
        };
        known.checkpoints.adopt(std::iter::once(checkpoint), 1);
        if is_function {
            known.checkpoints.crown(id, edges_in(shown).map(|edge| (edge, 1)));
        }
    }

    /// Shortens the input that the last step was given.
    fn trim_followed(&mut self, known: &Knowledge<T::Snapshot>, followed: &mut Followed) {
        self.trace = std::mem::take(&mut followed.steps);
        self.new = std::mem::take(&mut followed.new_edges);
        self.is_stopped = false;
        self.trim(known);
        followed.steps = std::mem::take(&mut self.trace);
        followed.shown = std::mem::take(&mut self.shown);
    }
}

impl<S: Clone> Knowledge<S> {
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
            self.see(target, run, followed);
            followed.passed += usize::from(outcome == Outcome::Pass);
            if outcome != Outcome::Pass {
                return outcome;
            }
        }
        Outcome::Pass
    }

    /// Takes in the edges and scores of the steps since the last time.
    fn see<T: Target>(&mut self, target: &mut T, run: u64, followed: &mut Followed) {
        let Followed { new, new_edges, shown, .. } = followed;
        let mut risen = Vec::new();
        shown.clear();
        target.coverage(&self.seen.none(), shown);
        target.scores(&self.scores, &mut risen);
        *new_edges = shown.iter().copied().filter(|feature| self.saw(*feature, run)).collect();
        *new = (new_edges.len() + risen.len()) as u32;
        self.scores.extend(risen);
    }
}

/// How a run ends, and the features of edges, with how often each was gone through, that its last step shows.
pub fn features_of<T: Target>(target: &mut T, trace: &Trace) -> (Outcome, Vec<u32>) {
    let (mut chooser, mut enabled, mut again) = (Chooser::default(), Vec::new(), Trace::default());
    let (mut outcome, mut features) = (Outcome::Pass, Vec::new());
    target.reset();
    for step in trace.steps() {
        let what = (step.action, step.seed);
        outcome = attempt(target, &mut chooser, &mut enabled, what, trace.recorded(step), &mut again);
        features.clear();
        target.coverage(&FeatureSet::new(true), &mut features);
        if outcome != Outcome::Pass {
            break;
        }
    }
    (outcome, features)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, fail};
    use crate::search::Explorer;

    /// A build that fails in the fourth step, and the steps of another that does not.
    #[test]
    fn steps_of_another_build_are_kept_up_to_where_they_fail() {
        let steps = |count| {
            let mut trace = Trace::default();
            (0..count).for_each(|_| trace.push(Action::Rule(0), 0));
            trace
        };
        let mut model = Model::new(0, &["next"], &[], |at, _, _, _| {
            *at += 1;
            if *at == 4 { fail("four") } else { Outcome::Pass }
        });
        let mut explorer = Explorer::new(&mut model, Options::default());
        let mut plant = |count| explorer.plant_rebuilt(&steps(count), 1.0);
        assert_eq!(plant(6), Planted::Found);
        assert_eq!(
            (plant(5), plant(2), plant(3)),
            (Planted::FoundBefore, Planted::Checkpoint, Planted::Known)
        );
        let kept = explorer.knowledge().checkpoints.iter().map(|checkpoint| checkpoint.step);
        assert_eq!(kept.collect::<Vec<_>>(), [3, 2]);
    }
}
