//! What a state leads to where the target tells of all steps at once.

use std::ops::Range;

use super::grown::{Child, Grown};
use super::worker::{Job, Worker};
use crate::check::equal::Arrival;
use crate::check::visit::with;
use crate::check::{End, Trouble, TroubleKind};
use crate::target::{Successor, Successors, Target};
use crate::trace::Action;

impl<T: Target> Worker<'_, '_, T> {
    /// Whether nothing is asked of a step but what [`Target::successors`] tells.
    pub(super) fn tells_all(&self) -> bool {
        let shared = self.shared;
        self.visitor.target.is_copying() && shared.options.may_copy() && shared.independence.is_empty()
    }

    /// Looks at what a state leads to, and says whether that could be done so. If not, nothing was recorded.
    pub(super) fn successors(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        node: u32,
        grown: &mut Grown<T::Snapshot>,
    ) -> Result<bool, Box<Trouble>> {
        let is_beyond = self.shared.options.steps_max.is_some_and(|max| job.depth >= max);
        if job.is_start || is_beyond || !self.tells_all() {
            return Ok(false);
        }
        let saved = job.nodes.saved(node).filter(|saved| self.visitor.target.has(saved));
        if saved.is_none() {
            self.reach(job.nodes, node)?;
            if !self.visitor.target.bookmark() {
                return Ok(false);
            }
        }
        let mut found = std::mem::take(&mut self.found);
        let is_told = match self.visitor.successors(saved, &mut found) {
            // Where none may be called the state may be one that fails.
            Ok(is_told) => is_told && !found.rules.is_empty(),
            Err(_) => {
                let trace = job.nodes.trace(node);
                return Err(Box::new(Trouble { trace, kind: TroubleKind::Stopped }));
            }
        };
        let recorded = if is_told { self.record_all(job, node, &found, grown) } else { Ok(()) };
        self.found = found;
        recorded.map(|()| is_told)
    }

    fn record_all(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        node: u32,
        found: &Successors,
        grown: &mut Grown<T::Snapshot>,
    ) -> Result<(), Box<Trouble>> {
        // Comparing states has the target perform other steps, so it comes last.
        let mut compared = Vec::new();
        let mut steps = std::mem::take(&mut self.order);
        self.put_in_order(found, &mut steps);
        let mut are_new = std::mem::take(&mut self.are_new);
        self.claim_all(found, &steps, node, &mut are_new);
        let (mut in_order, mut is_new) = (steps.drain(..).peekable(), are_new.drain(..));
        for rule in &found.rules {
            while let Some((number, script)) =
                in_order.next_if(|(number, _)| found.steps[*number].rule == *rule)
            {
                self.poll();
                if self.shared.stop.is_set() {
                    return Ok(());
                }
                let script = &found.scripts[script];
                self.script.clear();
                self.script.extend_from_slice(script);
                let step = &found.steps[number];
                let is_new = step.state.is_some() && is_new.next().expect("each was claimed");
                let arrived = self.successor(job, node, (number, step, is_new));
                compared.extend(arrived.map(|met| (*rule, script, met)));
            }
            self.record(grown, Some(Action::Rule(*rule)));
        }
        drop((in_order, is_new));
        (self.order, self.are_new) = (steps, are_new);
        for (rule, script, met) in compared {
            let action = Action::Rule(rule);
            self.met(met, || job.nodes.trace_with(node, action, script)).map_err(|kind| {
                self.script = script.to_vec();
                self.trouble(job.nodes, node, action, kind)
            })?;
        }
        self.audit_steps(job, node, found)
    }

    /// The steps, with where their scripts are, in the order in which those of a rule count: the shortest first, as everywhere.
    fn put_in_order(&self, found: &Successors, steps: &mut Vec<(usize, Range<usize>)>) {
        let mut script = 0;
        for of_rule in found.steps.chunk_by(|a, b| a.rule == b.rule) {
            let first = steps.len();
            for step in of_rule {
                steps.push((steps.len(), script..script + step.script));
                script += step.script;
            }
            steps[first..].sort_by_key(|(_, script)| script.len());
        }
    }

    /// Claims the states that these steps led to, in their order; whether each is new.
    fn claim_all(
        &mut self,
        found: &Successors,
        steps: &[(usize, Range<usize>)],
        node: u32,
        are_new: &mut Vec<bool>,
    ) {
        let mut states = std::mem::take(&mut self.states);
        states.clear();
        states.extend(steps.iter().filter_map(|(number, _)| self.state_after(&found.steps[*number])));
        self.shared.claims.claim_all(&states, node, are_new);
        self.states = states;
    }

    /// The state that a step led to, as a check compares it.
    fn state_after(&self, step: &Successor) -> Option<u128> {
        let state = step.state?;
        Some(if self.shared.keeps_steps { with(state, step.holds) } else { state })
    }

    /// One of these steps, with its script, and whether the state that it leads to is new. Where the state that it leads to is to be compared, that, and how many were met before.
    fn successor(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        node: u32,
        (number, step, is_new): (usize, &Successor, bool),
    ) -> Option<Arrival> {
        let action = Action::Rule(step.rule);
        self.asked(step.asked as u64);
        self.stepped(job, action);
        let Some(state) = self.state_after(step) else {
            self.ended(End::Rejected, action);
            return None;
        };
        let keeps_steps = self.shared.keeps_steps;
        let arrived = self.equals.and_then(|all| all.arrives(&*self.visitor.target, state, Some(action)));
        let is_saved = is_new && self.is_saved(job.nodes, node, step.work);
        let saved = if is_saved { self.visitor.target.successor(number) } else { None };
        // Where the graph is kept, each step counts.
        if is_new || keeps_steps {
            let (holds, way) = (step.holds, self.way(action, step.way));
            let new = Child::new(action, self.script.len());
            self.led.arrived(Child { state: Some(state), holds, way, saved, ..new }, &self.script);
        } else {
            self.led.census.pruned += 1;
        }
        arrived
    }
}
