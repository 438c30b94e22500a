//! Continuations: what once followed a checkpoint and led to another, to be changed and tried again.

use std::ops::Range;
use std::sync::Arc;

use rand::{Rng, RngExt};

use super::dice::Dice;
use super::history::History;
use super::mutate::{mutated, mutated_bytes, renewed};
use super::tokens::Tokens;
use crate::choice::Value;
use crate::trace::Action;

/// Steps that are taken over from one continuation, at most.
const STEPS_MAX: usize = 16;
/// Changes made to it, at most.
const CHANGES_MAX: u32 = 3;

/// The steps that a run is to follow. The buffers are reused.
#[derive(Default)]
pub(crate) struct Continuation {
    /// What each step does, and which of `values` it is given.
    steps: Vec<(Action, Range<usize>)>,
    /// `None` is to be drawn.
    values: Vec<Option<Value>>,
    next: usize,
    /// Scratch: bytes that are changed.
    bytes: Vec<u8>,
}

impl Continuation {
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.values.clear();
        self.next = 0;
    }

    /// Takes the last steps of `history`, changes some of them, and now and then goes on as `other` does.
    pub(crate) fn mutate(
        &mut self,
        history: &Arc<History>,
        other: &Arc<History>,
        tokens: &Tokens,
        rng: &mut impl Rng,
    ) {
        self.clear();
        self.append(history);
        if rng.random_bool(0.25) {
            // Splices: the beginning of one, the end of another.
            let kept = rng.random_range(0..=self.steps.len());
            self.steps.truncate(kept);
            let from = self.steps.len();
            self.append(other);
            let skipped = rng.random_range(0..=self.steps.len() - from);
            self.steps.drain(from..from + skipped);
        }
        for _ in 0..rng.random_range(1..=CHANGES_MAX) {
            self.change(tokens, rng);
        }
    }

    /// Deletes or duplicates a step, or renews one of its values or draws all anew.
    fn change(&mut self, tokens: &Tokens, rng: &mut impl Rng) {
        if self.steps.is_empty() {
            return;
        }
        let at = rng.random_range(0..self.steps.len());
        let (action, range) = self.steps[at].clone();
        match rng.random_range(0..4u32) {
            0 => drop(self.steps.remove(at)),
            1 => self.steps.insert(at, (action, range)),
            2 if !range.is_empty() => {
                let value = &mut self.values[rng.random_range(range)];
                *value = renewed(value.as_ref(), tokens, &mut self.bytes, rng);
            }
            _ => self.values[range].fill(None),
        }
    }

    /// Appends the last steps that led to a checkpoint, in their order.
    fn append(&mut self, history: &Arc<History>) {
        let from = self.steps.len();
        let mut next = Some(history);
        while let Some(history) = next {
            for step in history.steps.steps().iter().rev() {
                if self.steps.len() - from == STEPS_MAX {
                    break;
                }
                if matches!(step.action, Action::Setup | Action::Teardown) {
                    continue;
                }
                let start = self.values.len();
                self.values.extend(history.steps.recorded(step));
                self.steps.push((step.action, start..self.values.len()));
            }
            next = history.parent.as_ref().filter(|_| self.steps.len() - from < STEPS_MAX);
        }
        self.steps[from..].reverse();
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The next step to perform, where there is one.
    pub(crate) fn next(&mut self) -> Option<(Action, &[Option<Value>])> {
        let (action, range) = self.steps.get(self.next)?.clone();
        self.next += 1;
        Some((action, &self.values[range]))
    }
}

/// Puts the values that a step was given into `values`, which is empty. Of several the last ones are left to be drawn anew, or
/// some are changed: now and then one is drawn anew, or taken from `other`.
pub(crate) fn vary<'h>(
    given: &[Value],
    other: impl Fn() -> &'h [Value],
    tokens: &Tokens,
    values: &mut Vec<Option<Value>>,
    scratch: &mut Vec<u8>,
    rng: &mut impl Rng,
) {
    // Mostly the other one is not needed, and reading it takes long.
    let beside = |at: usize| other().get(at);
    if let [Value::Bytes(bytes)] = given
        && rng.below(16) > 0
    {
        values.push(Some(Value::Bytes(mutated_bytes(bytes, || beside(0), tokens, scratch, rng))));
        return;
    }
    values.extend(given.iter().cloned().map(Some));
    if values.is_empty() {
        return;
    }
    if values.len() > 1 && rng.random() {
        // What comes last was tried least: the end is drawn anew, a short one more often.
        let share = rng.random::<f64>().powi(4);
        let drawn = 1 + (share * values.len() as f64) as usize;
        values.truncate(values.len() - drawn);
        return;
    }
    for _ in 0..1 + rng.below(CHANGES_MAX) {
        let at = rng.place(values.len());
        match rng.below(16) {
            0 => values[at] = None,
            1 => values[at] = beside(at).cloned(),
            2 if values.len() > 1 => values[at..].rotate_left(1),
            _ => {
                let Some(value) = &values[at] else { continue };
                let changed = mutated(value, || beside(at), tokens, scratch, rng);
                let is_done = matches!(changed, Value::Bytes(_));
                values[at] = Some(changed);
                if is_done {
                    // Bytes were changed at several places already.
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::{Choice, Kind};
    use crate::trace::Trace;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    fn history(parent: Option<Arc<History>>, numbers: &[u32]) -> Arc<History> {
        let mut steps = Trace::default();
        for &number in numbers {
            steps.push(Action::Rule(number as u16), 1);
            let choice = Choice { kind: Kind::Index { n: 100 }, value: Value::Index(number) };
            steps.chose(&mut vec![choice], &mut Vec::new());
        }
        Arc::new(History::new(0, parent, steps))
    }

    fn followed(continuation: &mut Continuation) -> Vec<(u16, Option<Value>)> {
        let mut steps = Vec::new();
        while let Some((Action::Rule(rule), values)) = continuation.next() {
            steps.push((rule, values[0].clone()));
        }
        steps
    }

    #[test]
    fn the_last_steps_come_in_order_each_with_its_values() {
        let first = history(None, &[1, 2]);
        let last = history(Some(first), &(3..18).collect::<Vec<_>>());
        let mut continuation = Continuation::default();
        continuation.append(&last);
        let expected: Vec<_> = (2..18).map(|n| (n as u16, Some(Value::Index(n)))).collect();
        assert_eq!(followed(&mut continuation), expected);
    }

    #[test]
    fn a_variation_has_most_of_the_values_that_were_there() {
        let of = |numbers: std::ops::Range<u32>| numbers.map(Value::Index).collect::<Vec<Value>>();
        let (one, other) = (of(100..110), of(500..505));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let (mut values, mut scratch) = (Vec::new(), Vec::new());
        let (mut renewed, mut taken, mut changed, mut shorter, mut least_kept) = (0, 0, 0, 0, usize::MAX);
        for _ in 0..1_000 {
            values.clear();
            vary(&one, || &other, &Tokens::default(), &mut values, &mut scratch, &mut rng);
            shorter += u32::from(values.len() < 10);
            if values.len() < 10 {
                assert!((100..).zip(&values).all(|(n, v)| *v == Some(Value::Index(n))));
                continue;
            }
            let same = values.iter().flatten().filter(|v| matches!(v, Value::Index(100..110))).count();
            least_kept = least_kept.min(same);
            renewed += u32::from(values.contains(&None));
            taken += u32::from(values.iter().flatten().any(|v| matches!(v, Value::Index(500..505))));
            changed += u32::from((100..).zip(&values).any(|(n, v)| *v != Some(Value::Index(n))));
        }
        assert_eq!((renewed, taken, changed, shorter), (96, 26, 473, 481));
        assert_eq!(least_kept, 7, "of ten values");
    }

    #[test]
    fn a_mutation_holds_steps_of_both_with_their_values_or_none() {
        let (one, other) = (history(None, &[1, 2, 3]), history(None, &[11, 12, 13]));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut continuation = Continuation::default();
        let (mut spliced, mut longer, mut redrawn) = (0, 0, 0);
        for _ in 0..1_000 {
            continuation.mutate(&one, &other, &Tokens::default(), &mut rng);
            let steps = followed(&mut continuation);
            for (rule, value) in &steps {
                assert!(value.as_ref().is_none_or(|v| *v == Value::Index((*rule).into())));
                redrawn += u32::from(value.is_none());
            }
            spliced += u32::from(steps.iter().any(|s| s.0 < 10) && steps.iter().any(|s| s.0 > 10));
            longer += u32::from(steps.len() > 3);
        }
        assert_eq!((spliced, longer, redrawn), (135, 324, 962));
    }
}
