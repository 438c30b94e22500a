//! An input of a function is shortened before it is kept, as long as it shows what is new (AFL's trimming), and measured.

use std::sync::Arc;

use super::knowledge::Knowledge;
use super::run::Runner;
use crate::choice::Value;
use crate::observed::is_of_size;
use crate::outcome::Outcome;
use crate::target::{Target, attempt, perform};
use crate::trace::Trace;

/// So often an input is executed to shorten it, at most.
const TRIALS_MAX: u32 = 8;

impl<T: Target> Runner<'_, T> {
    /// Shortens the byte strings that the last step was given, and measures what is left, unless the host stops the guest.
    pub(super) fn trim(&mut self, known: &Knowledge<T::Snapshot>) {
        let first = std::mem::take(&mut self.trace);
        // Whether one stands for others of its size depends on what was seen before.
        self.new.retain(|feature| !is_of_size(*feature));
        let new = std::mem::take(&mut self.new);
        let mut values: Vec<Option<Value>> =
            first.last_choices().iter().map(|choice| Some(choice.value.clone())).collect();
        let mut trials = if new.is_empty() { 0 } else { TRIALS_MAX };
        let mut best = Trace::default();
        for at in 0..values.len() {
            let Some(Value::Bytes(bytes)) = values[at].clone() else { continue };
            let mut bytes = bytes.to_vec();
            let mut part = bytes.len() / 2;
            while part > 0 && trials > 0 {
                let mut from = 0;
                while from < bytes.len() && trials > 0 {
                    let mut shorter = bytes.clone();
                    shorter.drain(from..(from + part).min(bytes.len()));
                    values[at] = Some(Value::Bytes(Arc::from(&shorter[..])));
                    match self.still_shows(known, (&first, &values), &new, &mut best) {
                        true => bytes = shorter,
                        false => from += part,
                    }
                    trials = if self.is_stopped { 0 } else { trials - 1 };
                }
                part /= 2;
            }
            values[at] = Some(Value::Bytes(bytes.into()));
        }
        // What is kept is what is executed last, so that it is what was measured.
        match self.still_shows(known, (&first, &values), &new, &mut best) {
            true => self.trace = best,
            false => self.trace = first,
        }
        self.new = new;
    }

    /// Whether the run with other values for its last step passes and shows what is new.
    fn still_shows(
        &mut self,
        known: &Knowledge<T::Snapshot>,
        (first, values): (&Trace, &[Option<Value>]),
        new: &[u32],
        again: &mut Trace,
    ) -> bool {
        let Some((last, before)) = first.steps().split_last() else { return false };
        again.clear();
        match &known.base {
            Some(base) => {
                self.target.restore(base);
                again.extend(first, before.len());
            }
            None => {
                self.target.reset();
                for step in before {
                    let (what, recorded) = ((step.action, step.seed), first.recorded(step));
                    perform(self.target, &mut self.chooser, what, recorded, again);
                }
            }
        }
        let (what, recorded) = ((last.action, last.seed), values.iter().cloned());
        let outcome = attempt(self.target, &mut self.chooser, &mut self.enabled, what, recorded, again);
        self.is_stopped |= outcome == Outcome::Stopped;
        self.work = self.target.work();
        self.shown.clear();
        self.target.coverage(&known.seen.none(), &mut self.shown);
        self.target.scores(&known.scores, &mut self.risen);
        self.risen.clear();
        matches!(outcome, Outcome::Pass | Outcome::Exit)
            && new.iter().all(|feature| self.shown.binary_search(feature).is_ok())
    }
}
