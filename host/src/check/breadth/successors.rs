//! What a state leads to where the target tells of all steps at once.

use super::grown::{Child, Grown};
use super::worker::{Job, Worker};
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
        let (mut at, mut script) = (0, 0);
        // Comparing states has the target perform other steps, so it comes last.
        let mut compared = Vec::new();
        let mut steps = std::mem::take(&mut self.order);
        for rule in &found.rules {
            let of_rule = found.steps[at..].iter().take_while(|step| step.rule == *rule);
            for step in of_rule {
                steps.push((at, script..script + step.script));
                (at, script) = (at + 1, script + step.script);
            }
            // The shortest first, as everywhere.
            steps.sort_by_key(|(_, script)| script.len());
            for (number, script) in steps.drain(..) {
                self.poll();
                if self.shared.stop.is_set() {
                    return Ok(());
                }
                let script = &found.scripts[script];
                self.script.clear();
                self.script.extend_from_slice(script);
                let arrived = self.successor(job, node, (number, &found.steps[number]));
                compared.extend(arrived.map(|met| (*rule, script, met)));
            }
            self.record(grown, Some(Action::Rule(*rule)));
        }
        self.order = steps;
        for (rule, script, met) in compared {
            let action = Action::Rule(rule);
            self.met(met, || job.nodes.trace_with(node, action, script)).map_err(|kind| {
                self.script = script.to_vec();
                self.trouble(job.nodes, node, action, kind)
            })?;
        }
        self.audit_steps(job, node, found)
    }

    /// One of these steps, with its script. Where the state that it leads to is to be compared, that, and how many were met before.
    fn successor(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        node: u32,
        (number, step): (usize, &Successor),
    ) -> Option<(u128, u64)> {
        let action = Action::Rule(step.rule);
        self.asked(step.asked as u64);
        self.stepped(job, action);
        let Some(state) = step.state else {
            self.ended(End::Rejected, action);
            return None;
        };
        let keeps_steps = self.shared.keeps_steps;
        let state = if keeps_steps { with(state, step.holds) } else { state };
        let arrived = self.equals.and_then(|equals| equals.arrives(&*self.visitor.target, state));
        let is_new = self.shared.claims.claim(state, node);
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
        arrived.map(|arrived| (state, arrived))
    }
}
