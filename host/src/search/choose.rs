//! What a run does next: its length, the next step, and what a rule is given.

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::continuation::vary;
use super::dice::Dice;
use super::looks::Closer;
use super::luck::{Manner, Move};
use super::mutate::renewed;
use super::operands::Probe;
use super::run::{Known, Runner};
use crate::outcome::Halt;
use crate::target::Target;
use crate::trace::Action;

/// At most two to the power of this are changed at once.
const OPERANDS_BITS: u32 = 4;
const PROBED_BITS: u32 = 2;
/// A long run has so many times as many steps, at most.
const LONGER: u32 = 4;

impl<T: Target> Runner<'_, T> {
    /// A run from a checkpoint may follow what led to another, or to this one, with changes.
    pub(super) fn draw_continuation(&mut self, known: &Known<'_, T::Snapshot>) {
        self.continuation.clear();
        let checkpoints = &known.get().checkpoints;
        let is_guided = self.checkpoint.is_some() && !self.target.is_function();
        if !is_guided || !self.rng.random_bool(known.options.continuation_rate) {
            return;
        }
        let [one, other] = [(); 2].map(|()| self.rng.random_range(0..checkpoints.len()));
        let (one, other) = (checkpoints.get(one), checkpoints.get(other));
        self.continuation.mutate(&one.history, &other.history, &known.options.tokens, &mut self.rng);
    }

    /// A fresh run has 1 to the maximum of steps, each as likely. One from a checkpoint is short more often:
    /// at most the maximum to the power u², with u uniform in 0..1, since what the checkpoint promises is near.
    pub(super) fn draw_len(&mut self, max: u32, from_checkpoint: bool, manner: Option<Manner>) -> u32 {
        let max = if manner == Some(Manner::Long) { max.saturating_mul(LONGER) } else { max.max(1) };
        let len = self.rng.random_range(1..=max);
        if !from_checkpoint || manner.is_some_and(|manner| manner != Manner::Near) {
            return len;
        }
        let cap = f64::from(max).powf(self.rng.random::<f64>().powi(2)).ceil() as u32;
        len.min(cap.max(1))
    }

    pub(super) fn leave_out_rules(&mut self, swarm_rate: f64) {
        self.left_out.clear();
        let rules = self.target.rules().len() as u16;
        if rules > 1 && self.rng.random_bool(swarm_rate) {
            let kept = self.rng.random_range(0..rules);
            let rng = &mut self.rng;
            self.left_out.extend((0..rules).filter(|rule| *rule != kept && rng.random()));
        }
    }

    /// What the next step does; `None` where no rule may be called.
    pub(super) fn draw_action(&mut self, known: &Known<'_, T::Snapshot>) -> Result<Option<Action>, Halt> {
        self.recorded.clear();
        if self.target.is_function()
            && let Some(index) = self.checkpoint
        {
            self.vary(known, index);
        }
        if let Some((action, values)) = self.continuation.next() {
            self.recorded.extend_from_slice(values);
            let is_possible = match action {
                Action::Fault(fault, on) if self.faults[usize::from(fault)] != on => {
                    return Ok(Some(action));
                }
                Action::Rule(rule) => {
                    self.target.enabled(&mut self.enabled)?;
                    self.enabled.contains(&rule)
                }
                _ => {
                    self.target.enabled(&mut self.enabled)?;
                    false
                }
            };
            if is_possible {
                return Ok(Some(action));
            }
            // It cannot be followed from here on.
            self.continuation.clear();
            self.recorded.clear();
            return Ok(self.draw_enabled(&known.options.rules));
        }
        let faults = self.faults.len();
        if faults > 0 && self.rng.random_bool(known.options.fault_rate) {
            let fault = self.rng.random_range(0..faults);
            return Ok(Some(Action::Fault(fault as u16, !self.faults[fault])));
        }
        self.target.enabled(&mut self.enabled)?;
        if let Some(probed) = self.draw_probed(known) {
            return Ok(Some(probed));
        }
        let action = self.draw_enabled(&known.options.rules);
        if let Some(Action::Rule(rule)) = action
            && self.recorded.is_empty()
        {
            self.draw_recorded(known, rule);
        }
        Ok(action)
    }

    /// Gives a function a changed copy of what once led to this checkpoint.
    pub(super) fn vary(&mut self, known: &Known<'_, T::Snapshot>, index: usize) {
        let checkpoints = &known.get().checkpoints;
        let other = self.rng.place(checkpoints.len());
        let given = &*checkpoints.get(index).given;
        if let Some(moved) = known.plan.moved.filter(|moved| *moved != Move::Vary) {
            let closer = Closer::of(self.target, (checkpoints, index), &[]);
            if let [Probe { hints, .. }] = closer.probes() {
                let history = &*checkpoints.get(index).history;
                self.recorded.extend(given.iter().cloned().map(Some));
                if moved == Move::Solve && self.solve(history, hints) {
                    return;
                }
                // Mostly one or two: more of them seldom go together.
                let times = 1 << self.rng.random::<u32>().trailing_zeros().min(OPERANDS_BITS);
                hints.apply(&mut self.recorded, times, &mut self.bytes, &mut self.rng);
                if moved == Move::Mend {
                    self.mend(history, &closer);
                }
                return;
            }
        }
        let other = || &*checkpoints.get(other).given;
        vary(given, other, &known.options.tokens, &mut self.recorded, &mut self.bytes, &mut self.rng);
    }

    /// Whether closer looks are worth what they take.
    pub(super) fn is_looked_into(&self, known: &Known<'_, T::Snapshot>) -> bool {
        known.get().looks_from.is_some_and(|from| known.plan.number >= from)
    }

    /// A rule that may be called in the state that the run starts from, with answers that are changed to what they are compared
    /// with.
    fn draw_probed(&mut self, known: &Known<'_, T::Snapshot>) -> Option<Action> {
        let index = self.checkpoint.filter(|_| self.trace.is_empty() && !self.target.is_function())?;
        let checkpoints = &known.get().checkpoints;
        // Where one was saved since, the trace is empty too, and that is another state.
        let is_there = self.parent == Some(checkpoints.get(index).id);
        if !is_there || !self.is_looked_into(known) {
            return None;
        }
        self.keep_allowed(&known.options.rules);
        let closer = Closer::of(self.target, (checkpoints, index), &self.enabled);
        // What was tried often serves seldom.
        let selected = known.plan.selected;
        let often = (4 * closer.hints() as u64).max(selected / 8).min(selected);
        let share = known.options.operand_rate * often as f64 / selected as f64;
        if !known.plan.is_trial && !self.rng.random_bool(share) {
            return None;
        }
        let allowed = &known.options.rules;
        let is_allowed = |probe: &&Probe| match probe.action {
            Action::Rule(rule) => allowed.is_empty() || allowed.contains(&rule),
            _ => false,
        };
        let probes: Vec<&Probe> = closer.probes().iter().filter(is_allowed).collect();
        let Probe { action, values, hints } = *probes.choose(&mut self.rng)?;
        self.recorded.extend(values.iter().cloned().map(Some));
        let times = 1 << self.rng.random_range(0..=PROBED_BITS);
        hints.apply(&mut self.recorded, times, &mut self.bytes, &mut self.rng);
        self.is_trial = known.plan.is_trial;
        Some(*action)
    }

    /// Leaves these of the rules that may be called, or all where none are named.
    fn keep_allowed(&mut self, rules: &[u16]) {
        if !rules.is_empty() {
            self.enabled.retain(|rule| rules.contains(rule));
        }
    }

    /// One of the rules that may be called, where there is one.
    pub(super) fn draw_enabled(&mut self, rules: &[u16]) -> Option<Action> {
        self.keep_allowed(rules);
        let is_left = |rule: &u16| self.left_out.binary_search(rule).is_err();
        if !self.left_out.is_empty() && self.enabled.iter().any(is_left) {
            self.enabled.retain(is_left);
        }
        if let Some(favourite) = self.favourite.filter(|rule| self.enabled.contains(rule))
            && self.rng.random()
        {
            return Some(Action::Rule(favourite));
        }
        if self.enabled.is_empty() {
            return None;
        }
        Some(Action::Rule(self.enabled[self.rng.place(self.enabled.len())]))
    }

    /// Sometimes a rule is given a changed copy of choices that once found an edge: one of them is drawn
    /// anew.
    pub(super) fn draw_recorded(&mut self, known: &Known<'_, T::Snapshot>, rule: u16) {
        let productive = &known.get().productive[usize::from(rule)];
        if productive.is_empty() || !self.rng.random_bool(known.options.mutation_rate) {
            return;
        }
        let Some(values) = productive.choose(&mut self.rng) else { return };
        self.recorded.extend(values.iter().cloned().map(Some));
        let changed = self.rng.random_range(0..values.len());
        let recorded = self.recorded[changed].as_ref();
        let renewed = renewed(recorded, &known.options.tokens, &mut self.bytes, &mut self.rng);
        self.recorded[changed] = renewed;
    }
}
