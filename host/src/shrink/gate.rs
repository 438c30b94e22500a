//! The gate: the one place where candidates are made, executed, and become the best trace or are taken back.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::edit::{Draft, Edit, drafts_of};
use super::known::{End, Known, Path, START, fingerprint};
use super::layout::Layout;
use super::{compare, compare_choices};
use crate::choice::{Choice, Chooser};
use crate::outcome::{Failure, Outcome, Reject};
use crate::target::{Target, attempt};
use crate::trace::Trace;

/// Bytes of the states that are saved before steps, about. A candidate goes on from the last one that is.
const SAVED_BYTES: usize = 32 << 20;

/// What is known of the state before a step.
struct Before<S> {
    /// None where the target has no snapshots, or too much is saved.
    state: Option<S>,
    path: Path,
}

/// Holds the best trace, and all that is known of candidates.
pub(super) struct Gate<'a, T: Target> {
    pub(super) target: &'a mut T,
    /// What the best trace fails with.
    failure: Failure,
    /// The same failure, perhaps with another message, of the last candidate.
    last: Failure,
    /// The rules that may be drawn.
    pub(super) rules: Vec<u16>,
    pub(super) best: Trace,
    /// The steps of `best`; while a candidate is executed, those of the candidate.
    pub(super) drafts: Vec<Draft>,
    /// Before each step of `best`.
    before: Vec<Before<T::Snapshot>>,
    known: Known,
    /// Fingerprints of the candidates, of which none is looked at twice.
    tried: BTreeSet<Path>,
    /// How the choices of the best trace's steps lie in spans, as far as it was asked.
    pub(super) layouts: RefCell<BTreeMap<usize, Rc<Layout>>>,
    others: BTreeMap<String, (Failure, Trace)>,
    pub(super) executions: u64,
    executions_max: u64,
    /// Bytes that all saved states may have for one more to be saved.
    saved_bytes_max: usize,
    chooser: Chooser,
    enabled: Vec<u16>,
    progress: &'a mut dyn FnMut(u64, usize) -> bool,
    /// The caller asked to stop.
    is_stopped: bool,
}

/// What became of a candidate.
pub(super) enum Tried {
    /// It is the best trace now.
    IsBest,
    /// It fails the same way with this trace, which is no simpler.
    Fails(Trace),
    /// It passes, fails in another way, or was not executed.
    IsRefuted,
}

impl<'a, T: Target> Gate<'a, T> {
    /// A gate for a trace that was just replayed.
    pub(super) fn new(
        target: &'a mut T,
        best: Trace,
        failure: &Failure,
        rules: &[u16],
        executions_max: u64,
        progress: &'a mut dyn FnMut(u64, usize) -> bool,
    ) -> Self {
        let rules = match rules {
            [] => (0..target.rules().len() as u16).collect(),
            _ => rules.to_vec(),
        };
        target.reset();
        let mut gate = Gate {
            failure: failure.clone(),
            last: failure.clone(),
            rules,
            drafts: drafts_of(&best),
            before: vec![Before { state: target.snapshot(), path: START }],
            known: Known::default(),
            tried: BTreeSet::new(),
            layouts: RefCell::default(),
            others: BTreeMap::new(),
            executions: 0,
            executions_max,
            saved_bytes_max: target.saved_bytes().saturating_add(SAVED_BYTES),
            chooser: Chooser::default(),
            enabled: Vec::new(),
            progress,
            is_stopped: false,
            target,
            best,
        };
        gate.execute(0);
        gate
    }

    /// The best trace, what it fails with, and the other failures that were met.
    pub(super) fn into_parts(self) -> (Trace, Failure, Vec<(Failure, Trace)>) {
        (self.best, self.failure, self.others.into_values().collect())
    }

    /// One round of all passes. Whether any helped.
    pub(super) fn round(&mut self) -> bool {
        let passes: &[fn(&mut Self) -> bool] = &[
            Self::lower_all,
            Self::delete_steps,
            Self::delete_rows,
            Self::collapse_spans,
            Self::merge_rows,
            Self::hoist_spans,
            Self::lower_each_to_simplest,
            Self::lower_equal,
            Self::lower_together,
            Self::lower_each,
            Self::reorder_spans,
            Self::delete_choices,
            Self::redistribute,
        ];
        let mut helped = false;
        for pass in passes {
            helped |= pass(self);
        }
        helped
    }

    /// Whether no candidate may be tried any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_stopped || self.executions >= self.executions_max
    }

    /// Whether the state before one more step is saved.
    fn has_room(&self) -> bool {
        self.executions_max > 0 && self.target.saved_bytes() < self.saved_bytes_max
    }

    /// Tries the best trace with these edits. Whether the result became the best.
    pub(super) fn is_better(&mut self, edits: impl IntoIterator<Item = Edit>) -> bool {
        matches!(self.tried(edits), Tried::IsBest)
    }

    /// Tries the best trace with these edits, from the first step that they change. Unless the result becomes the best,
    /// everything is as before.
    pub(super) fn tried(&mut self, edits: impl IntoIterator<Item = Edit>) -> Tried {
        // Asked with each candidate, since passes make many that are never executed.
        self.is_stopped |= !(self.progress)(self.executions, self.best.len());
        if self.is_over() {
            return Tried::IsRefuted;
        }
        let mut from = self.before.len() - 1;
        let mut undo = Vec::new();
        for edit in edits {
            from = from.min(edit.first_step());
            undo.push(edit.apply(&mut self.drafts));
        }
        from = (0..=from).rev().find(|step| self.before[*step].state.is_some()).unwrap_or(0);
        let before = self.before.split_off(from + 1);
        let trace = if self.may_be_simpler() { self.failing(from, &mut undo) } else { None };
        match trace {
            Some(trace) if compare(&trace, &self.best) == Ordering::Less => {
                self.drafts = drafts_of(&trace);
                self.best = trace;
                self.failure = self.last.clone();
                self.layouts.borrow_mut().clear();
                Tried::IsBest
            }
            trace => {
                for edit in undo.into_iter().rev() {
                    edit.apply(&mut self.drafts);
                }
                self.before.truncate(from + 1);
                self.before.extend(before);
                trace.map_or(Tried::IsRefuted, Tried::Fails)
            }
        }
    }

    /// Executes the candidate in `drafts` from step `from` on. Its trace, where it ends in the failure; `before` is then that
    /// of this trace.
    fn failing(&mut self, from: usize, undo: &mut Vec<Edit>) -> Option<Trace> {
        loop {
            if self.is_over() || self.drafts.is_empty() || !self.tried.insert(fingerprint(&self.drafts)) {
                return None;
            }
            if self.known.covers(self.before[from].path, &self.drafts[from..]) {
                return None;
            }
            self.executions += 1;
            match &self.before[from].state {
                Some(state) => self.target.restore(state),
                None => self.target.reset(),
            }
            self.before.truncate(from + 1);
            let (trace, skipped) = self.execute(from)?;
            if !skipped {
                return Some(trace);
            }
            // What was skipped evaluated preconditions; only an execution without it counts.
            let range = from..self.drafts.len();
            let edit = Edit::Steps { range, drafts: drafts_of(&trace).split_off(from) };
            undo.push(edit.apply(&mut self.drafts));
        }
    }

    /// Whether the candidate in `drafts` may turn out to be simpler than the best: it is not longer, and where it first
    /// differs its answer fits the question, which is the same, and is simpler unless it is shorter.
    fn may_be_simpler(&self) -> bool {
        let (candidate, steps) = (&self.drafts, self.best.steps());
        if candidate.iter().any(|draft| draft.hole.is_some() || draft.draws) || candidate.len() < steps.len()
        {
            return true;
        }
        let answers = candidate.iter().map(|draft| draft.values.len()).sum::<usize>();
        let is_shorter = answers < steps.iter().map(|step| self.best.choices(step).len()).sum();
        for (draft, step) in candidate.iter().zip(steps) {
            let choices = self.best.choices(step);
            if draft.action != step.action {
                return true;
            }
            let mut pairs = draft.values.iter().zip(choices);
            if let Some((new, choice)) = pairs.find(|(new, choice)| **new != choice.value) {
                return choice.kind.fit(new).is_some_and(|value| {
                    let answer = Choice { kind: choice.kind, value };
                    is_shorter || compare_choices(&answer, choice) == Ordering::Less
                });
            }
            if draft.values.len() != choices.len() || draft.seed != step.seed {
                return is_shorter;
            }
        }
        false
    }

    /// Executes the drafts from step `from` on, in the state before it, whose `before` is the last; keeps what is before each
    /// later step. The whole trace, and whether steps were skipped because they may not be called, where it ends in
    /// the failure.
    fn execute(&mut self, from: usize) -> Option<(Trace, bool)> {
        let mut trace = Trace::default();
        trace.extend(&self.best, from);
        let mut path = self.before[from].path;
        let mut skipped = false;
        for (index, draft) in self.drafts.iter().enumerate().skip(from) {
            if index > from {
                let state = if self.has_room() { self.target.snapshot() } else { None };
                self.before.push(Before { state, path });
            }
            let values = draft.values.iter().cloned().map(Some);
            let what = (draft.action, draft.seed);
            self.chooser.hole = draft.hole.map(|hole| hole.hole);
            self.chooser.draws_nothing = !draft.draws;
            let outcome =
                attempt(self.target, &mut self.chooser, &mut self.enabled, what, values, &mut trace);
            let end = match &outcome {
                Outcome::Pass => End::Passed,
                Outcome::Reject(Reject::Precondition) => End::Skipped,
                Outcome::Fail(_) | Outcome::Reject(_) | Outcome::Exit => End::Stopped,
                Outcome::Stopped => {
                    self.is_stopped = true;
                    return None;
                }
            };
            let made = match trace.steps().last() {
                Some(step) if end != End::Skipped => (trace.choices(step), trace.spans(step)),
                _ => Default::default(),
            };
            path = self.known.learn(path, draft.action, made, end);
            match outcome {
                // What comes after is no part of the run.
                Outcome::Pass if draft.action.ends_run() => return None,
                Outcome::Pass => {}
                Outcome::Fail(found) if found.is_same(&self.failure) => {
                    self.last = *found;
                    return Some((trace, skipped));
                }
                Outcome::Fail(found) => {
                    if !skipped {
                        self.others.entry(found.id()).or_insert((*found, trace));
                    }
                    return None;
                }
                Outcome::Reject(Reject::Precondition) => skipped = true,
                Outcome::Reject(_) | Outcome::Exit | Outcome::Stopped => return None,
            }
        }
        None
    }
}
