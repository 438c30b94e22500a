//! Passes over whole steps.

use std::ops::Range;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::edit::{Draft, Edit, drafts_of};
use super::gate::{Gate, Tried};
use crate::choice::{Choice, Kind, Value, small_seed};
use crate::target::Target;
use crate::trace::Action;

/// Steps that are rewritten at once, at most.
const REWRITTEN_MAX: usize = 4;
/// How often one of the new steps toggles a fault.
const FAULT_RATE: f64 = 0.25;
/// For each execution so far, so many rewritings in a row may fail before it ends; and the bounds of that.
const BARREN_RATE: u64 = 30;
const BARREN_MIN: u64 = 1_000;
const BARREN_MAX: u64 = 30_000;

/// What is no more probable than this is rare.
const RARE: f64 = 0.1;
/// Places to which what is rare may move, and how often what is drawn after it is drawn anew at each.
const EARLIER_MAX: usize = 64;
const DRAWN_ANEW: usize = 8;

impl<T: Target> Gate<'_, T> {
    /// Deletes runs of steps, long ones first, late ones first.
    pub(super) fn delete_steps(&mut self) -> bool {
        let mut helped = false;
        let mut len = self.best.len() / 2;
        while len > 0 {
            let mut end = self.best.len();
            while end >= len && !self.is_over() {
                let start = end - len;
                if self.deleted_steps(start..end) {
                    helped = true;
                    end = start.min(self.best.len());
                } else {
                    end -= 1;
                }
            }
            len /= 2;
        }
        helped
    }

    /// Whether the trace without these steps became the best. Setup, teardown and a deadlock stay.
    fn deleted_steps(&mut self, range: Range<usize>) -> bool {
        let fixed = |draft: &&Draft| !matches!(draft.action, Action::Rule(_) | Action::Fault(..));
        let drafts: Vec<Draft> = self.drafts[range.clone()].iter().filter(fixed).cloned().collect();
        if drafts.len() == range.len() {
            return false;
        }
        let deletion = Edit::Steps { range: range.clone(), drafts };
        self.is_better([deletion.clone()]) || (range.len() == 1 && self.closed_up(range.start, deletion))
    }

    /// Where the one deleted step made a thing that later steps choose by index: the indices of those made
    /// after it close up.
    fn closed_up(&mut self, deleted: usize, deletion: Edit) -> bool {
        let action = self.drafts[deleted].action;
        let position = self.drafts[..deleted].iter().filter(|draft| draft.action == action).count() as u32;
        let mut edits = Vec::new();
        for (step, draft) in self.drafts.iter().enumerate().skip(deleted + 1) {
            for (at, value) in draft.values.iter().enumerate() {
                if let Value::Index(index) = value
                    && *index > position
                {
                    edits.push(Edit::Value { place: (step, at), value: Value::Index(index - 1) });
                }
            }
        }
        if edits.is_empty() {
            return false;
        }
        edits.push(deletion);
        self.is_better(edits)
    }

    /// What rarely happens, as a fault that strikes, happens in an earlier step, and the step in which it does goes: what another crash leaves
    /// may be as bad. What is drawn after it is as it was, or anew.
    pub(super) fn happen_earlier(&mut self) -> bool {
        let mut tries = 0;
        for step in (1..self.drafts.len()).rev() {
            let Some(at) = self.rare(step, true).next() else { continue };
            for earlier in (0..step).rev() {
                if tries == EARLIER_MAX || self.is_over() {
                    return false;
                }
                let places: Vec<usize> = self.rare(earlier, false).collect();
                for place in places.into_iter().rev().take(EARLIER_MAX - tries) {
                    tries += 1;
                    if self.happens_at((step, at), (earlier, place)) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// The places in a step of what rarely happens, where it does or else where it does not.
    fn rare(&self, step: usize, happens: bool) -> impl Iterator<Item = usize> {
        let choices = self.best.steps().get(step).map_or(&[][..], |step| self.best.choices(step));
        let is_rare = move |(at, choice): (usize, &Choice)| match choice.kind {
            Kind::Boolean { probability } if probability <= RARE => {
                (choice.value == Value::Boolean(happens)).then_some(at)
            }
            _ => None,
        };
        choices.iter().enumerate().filter_map(is_rare)
    }

    fn happens_at(&mut self, (step, at): (usize, usize), (earlier, place): (usize, usize)) -> bool {
        let after = self.drafts[step].values[at + 1..].to_vec();
        let mut values = self.drafts[earlier].values[..place].to_vec();
        values.push(Value::Boolean(true));
        let as_it_was = Draft { values: [&values[..], &after].concat(), ..self.drafts[earlier].clone() };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
        let anew = || Draft { values: values.clone(), seed: rng.random(), draws: true, ..as_it_was.clone() };
        let anew: Vec<Draft> = std::iter::repeat_with(anew).take(DRAWN_ANEW).collect();
        let candidates = [vec![as_it_was], anew].concat();
        candidates.into_iter().any(|draft| {
            let drafts = [&[draft], &self.drafts[earlier + 1..step]].concat();
            self.is_better([Edit::Steps { range: earlier..step + 1, drafts }])
        })
    }

    /// Walks at random among traces of the same failure that have no more steps: where deleting and lowering
    /// has come to an end, another way to the failure may be shorter still. Whether it found one.
    pub(super) fn rewrite_steps(&mut self) -> bool {
        let is_free = |draft: &Draft| matches!(draft.action, Action::Rule(_) | Action::Fault(..));
        let first = self.drafts.iter().position(is_free).unwrap_or(0);
        // The failure itself is one step; with none before it nothing is left to rewrite.
        if self.drafts.len() - first < 3 || self.rules.is_empty() {
            return false;
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
        let mut current = self.drafts.clone();
        for _ in 0..(self.executions * BARREN_RATE).clamp(BARREN_MIN, BARREN_MAX) {
            let candidate = self.rewritten(&current, first, &mut rng);
            let same = self.drafts.iter().zip(&candidate).take_while(|(old, new)| old == new).count();
            let tail = Edit::Steps { range: same..self.drafts.len(), drafts: candidate[same..].to_vec() };
            match self.tried([tail]) {
                Tried::IsBest => return true,
                Tried::Fails(trace) if trace.len() <= self.best.len() => current = drafts_of(&trace),
                Tried::Fails(_) | Tried::IsRefuted => {}
            }
            if self.is_over() {
                break;
            }
        }
        false
    }

    /// A few steps replaced by as many others at most, with small values; now and then one comes to stand
    /// elsewhere.
    fn rewritten(&self, steps: &[Draft], first: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<Draft> {
        let mut candidate = steps.to_vec();
        let start = rng.random_range(first..steps.len());
        let removed = rng.random_range(1..=REWRITTEN_MAX.min(steps.len() - start));
        let added = rng.random_range(0..=removed);
        let (rules, faults) = (self.rules.len() as u16, self.target.faults().len() as u16);
        let mut action = || match faults > 0 && rng.random_bool(FAULT_RATE) {
            true => Action::Fault(rng.random_range(0..faults), rng.random()),
            false => Action::Rule(self.rules[usize::from(rng.random_range(0..rules))]),
        };
        let actions: Vec<Action> = (0..added).map(|_| action()).collect();
        let drawn: Vec<Draft> = actions
            .into_iter()
            .map(|action| Draft {
                action,
                seed: small_seed(rng.random()),
                values: Vec::new(),
                hole: None,
                draws: true,
            })
            .collect();
        candidate.splice(start..start + removed, drawn);
        if rng.random() && candidate.len() > first + 1 {
            let moved = candidate.remove(rng.random_range(first..candidate.len()));
            candidate.insert(rng.random_range(first..=candidate.len()), moved);
        }
        candidate
    }
}

#[cfg(test)]
mod tests {
    use crate::choice::{Chooser, Kind};
    use crate::model::{Model, fail};
    use crate::outcome::Outcome;
    use crate::shrink::tests::{check, draw};

    #[test]
    fn a_crash_moves_to_where_fewer_steps_lead() {
        /// A file is emptied and written anew in each step. It fails where it is there and empty after a crash.
        fn write() -> Model<bool> {
            Model::new(false, &["write"], &[], |is_there, _, chooser, edge| {
                let crashes = |chooser: &mut Chooser| draw(chooser, Kind::Boolean { probability: 0.05 }) == 1;
                edge(u32::from(*is_there));
                // Before it is emptied nothing is lost that was not there.
                let was_there = std::mem::replace(is_there, true);
                if crashes(chooser) {
                    return if was_there { fail("empty") } else { Outcome::Exit };
                }
                // Of what was written the disk has all or nothing.
                match crashes(chooser) {
                    true if draw(chooser, Kind::Index { n: 2 }) == 1 => fail("empty"),
                    true => Outcome::Exit,
                    false => Outcome::Pass,
                }
            })
        }
        check(write, "Rule(0) false true 1");
    }
}
