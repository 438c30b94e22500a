//! What a run learns from the step that it performed: edges, scores, choices worth trying again, checkpoints, failures.

use std::sync::Arc;

use rand::RngExt;

use super::energy::{Checkpoint, News, Strategy};
use super::history::History;
use super::knowledge::{PRODUCTIVE_BYTES_MAX, PRODUCTIVE_MAX, Values, bytes_of};
use super::run::{Known, Runner};
use crate::coverage::{SHOWN, edges_in, slot_of};
use crate::outcome::{Failure, Found};
use crate::target::Target;
use crate::trace::{Action, Trace};

/// Bytes that the steps to a checkpoint may hold.
const WAY_BYTES_MAX: u64 = 16 << 20;
/// Runs after which the state that they start from is saved, if no other was.
const START_RUNS: u64 = 64;

impl<T: Target> Runner<'_, T> {
    /// Learns which features the last step showed first, and which scores rose; how many, and of how many that are no edges: numbers
    /// that it observed and, of a state machine, how often it went through an edge.
    pub(super) fn look(&mut self, known: &mut Known<'_, T::Snapshot>) -> (u32, u32) {
        let before = known.get();
        self.new.clear();
        self.target.coverage(&before.seen, &mut self.new);
        self.target.scores(&before.scores, &mut self.risen);
        if self.new.is_empty() && self.risen.is_empty() {
            return (0, 0);
        }
        let is_function = before.is_function;
        let is_known_edge = |feature: u32| !is_function && before.seen.contains(slot_of(feature));
        let is_number = |feature: &&u32| **feature >= SHOWN || is_known_edge(**feature);
        let numbers = self.new.iter().filter(is_number).count();
        let (edges, numbers) = ((self.new.len() - numbers + self.risen.len()) as u32, numbers as u32);
        let run = known.plan.number;
        let known = known.learn();
        for feature in &self.new {
            known.saw(*feature, run);
        }
        known.scores.extend(self.risen.drain(..));
        self.new_edges += edges;
        self.new_numbers += numbers;
        (edges, numbers)
    }

    /// Keeps the choices of the last step, which found an edge.
    pub(super) fn remember(&mut self, known: &mut Known<'_, T::Snapshot>, action: Action) {
        let (Action::Rule(rule), Some(step)) = (action, self.trace.steps().last()) else { return };
        let choices = self.trace.choices(step);
        if choices.is_empty() {
            return;
        }
        let values: Values = choices.iter().map(|choice| choice.value.clone()).collect();
        let known = known.learn();
        if known.productive_bytes() + bytes_of(&values) > PRODUCTIVE_BYTES_MAX {
            return;
        }
        let productive = &mut known.productive[usize::from(rule)];
        if productive.len() < PRODUCTIVE_MAX {
            productive.push(values);
        } else {
            let at = self.rng.random_range(0..PRODUCTIVE_MAX);
            productive[at] = values;
        }
    }

    /// Saves a checkpoint, but where the state is known: starting from it again would lead to nothing new.
    pub(super) fn save(&mut self, known: &mut Known<'_, T::Snapshot>, new_edges: u32, news: News) {
        let is_function = self.target.is_function();
        let state = if is_function { None } else { self.target.live_state() };
        let seen = known.get();
        if state.is_some() && (state == seen.base_state || seen.checkpoints.holds(state)) {
            return;
        }
        self.keep_state(known, state, (new_edges, news));
    }

    fn keep_state(
        &mut self,
        known: &mut Known<'_, T::Snapshot>,
        state: Option<u128>,
        (new_edges, news): (u32, News),
    ) {
        let (run, is_function) = (known.plan.number, self.target.is_function());
        let has_room = self.target.saved_bytes() < known.options.saved_bytes_max;
        let known = known.learn();
        if self.history.bytes() + self.trace.bytes() > WAY_BYTES_MAX {
            return;
        }
        let steps = self.trace.clone();
        self.trace.clear();
        let id = known.checkpoints.saved() + 1;
        let history = Arc::new(History::new(id, Some(self.history.clone()), steps));
        self.history = history.clone();
        let checkpoint = Checkpoint {
            id,
            parent: self.parent.replace(id),
            // Where there is no room the state is reached again by its steps.
            snapshot: if is_function || !has_room { None } else { self.target.snapshot() },
            state,
            faults: self.faults.clone(),
            history,
            energy: 0.0,
            new_edges,
            step: self.depth,
            run,
            selected: 0,
            news,
            work: if is_function { self.work } else { self.target.work() },
            champion_of: 0,
            rareness: 0,
            given: Values::default(),
            closer: Arc::default(),
        };
        known.checkpoints.save(checkpoint);
        if is_function && news == News::Edges {
            known.checkpoints.crown(id, edges_in(self.shown.drain(..)).map(|edge| (edge, 1)));
        }
        while let Some(evicted) = known.checkpoints.evict() {
            self.checkpoint = match self.checkpoint {
                Some(index) if index == evicted => None,
                Some(index) if index > evicted => Some(index - 1),
                unmoved => unmoved,
            };
        }
    }

    /// Saves the state that a run starts from, where many runs have led to no other: what rules compare is looked at where a state is kept.
    pub(super) fn save_start(&mut self, known: &mut Known<'_, T::Snapshot>) {
        let is_alone = known.get().checkpoints.is_empty() && known.plan.number > START_RUNS;
        let is_guided = known.options.strategy != Strategy::Random && !self.target.is_function();
        if is_alone && is_guided && self.is_looked_into(known) {
            let state = known.get().base_state;
            self.keep_state(known, state, (0, News::Shown));
        }
    }

    pub(super) fn found(&mut self, known: &mut Known<'_, T::Snapshot>, failure: Failure) {
        if known.get().has_found(&failure) {
            return;
        }
        let mut trace = Trace::default();
        self.history.flatten(&mut trace);
        trace.extend(&self.trace, self.trace.len());
        let run = known.plan.number;
        known.learn().findings.push(Arc::new(Found { failure, run, trace }));
    }
}
