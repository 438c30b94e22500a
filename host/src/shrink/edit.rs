//! Candidates as edits: what is changed in the steps of the best trace, and how to change it back.

use std::ops::Range;

use crate::choice::{Hole, Value};
use crate::trace::{Action, Step, Trace};

/// A choice: which step, and which of its choices.
pub(super) type Place = (usize, usize);

/// A step of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Draft {
    pub(super) action: Action,
    pub(super) seed: u64,
    pub(super) values: Vec<Value>,
    pub(super) hole: Option<DraftHole>,
    /// What is asked beyond `values` is drawn from the seed; else it is answered with the simplest.
    pub(super) draws: bool,
}

/// A span that is to be all simplest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DraftHole {
    pub(super) hole: Hole,
    /// Index of its first choice.
    pub(super) start: usize,
    /// Spans that open with it, within it.
    pub(super) nested: u32,
}

/// The steps of a trace as they are executed again.
pub(super) fn drafts_of(trace: &Trace) -> Vec<Draft> {
    let values = |step: &Step| trace.choices(step).iter().map(|choice| choice.value.clone()).collect();
    let draft = |step: &Step| Draft {
        action: step.action,
        seed: step.seed,
        values: values(step),
        hole: None,
        draws: false,
    };
    trace.steps().iter().map(draft).collect()
}

/// One change of a list of drafts. Several are applied in order, each to what those before it left.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Edit {
    /// Other steps come in the place of these.
    Steps { range: Range<usize>, drafts: Vec<Draft> },
    /// One value is replaced.
    Value { place: Place, value: Value },
    /// Other values come in the place of these, which are values of one step.
    Values { step: usize, range: Range<usize>, values: Vec<Value> },
    /// These values of a step turn right, so that the last `by` of them are the first.
    Rotation { step: usize, range: Range<usize>, by: usize },
    /// A span of a step becomes all simplest.
    Hole { step: usize, hole: Option<DraftHole> },
}

impl Edit {
    /// Takes values out of a step.
    pub(super) fn without(step: usize, range: Range<usize>) -> Edit {
        Edit::Values { step, range, values: Vec::new() }
    }

    /// The first step that it changes.
    pub(super) fn first_step(&self) -> usize {
        match self {
            Edit::Steps { range, .. } => range.start,
            Edit::Value { place: (step, _), .. } => *step,
            Edit::Values { step, .. } | Edit::Rotation { step, .. } | Edit::Hole { step, .. } => *step,
        }
    }

    /// Changes the drafts. What is returned changes them back.
    pub(super) fn apply(self, drafts: &mut Vec<Draft>) -> Edit {
        match self {
            Edit::Steps { range, drafts: new } => {
                let back = range.start..range.start + new.len();
                Edit::Steps { drafts: drafts.splice(range, new).collect(), range: back }
            }
            Edit::Value { place, value } => {
                let old = std::mem::replace(&mut drafts[place.0].values[place.1], value);
                Edit::Value { place, value: old }
            }
            Edit::Values { step, range, values: new } => {
                let back = range.start..range.start + new.len();
                Edit::Values { step, values: drafts[step].values.splice(range, new).collect(), range: back }
            }
            Edit::Rotation { step, range, by } => {
                drafts[step].values[range.clone()].rotate_right(by);
                Edit::Rotation { step, by: range.len() - by, range }
            }
            Edit::Hole { step, hole } => {
                Edit::Hole { step, hole: std::mem::replace(&mut drafts[step].hole, hole) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(rule: u16, values: &[u64]) -> Draft {
        let values = values.iter().copied().map(Value::Unsigned).collect();
        Draft { action: Action::Rule(rule), seed: 7, values, hole: None, draws: false }
    }

    /// What the edit makes of three steps; undone, they are as before.
    fn check(edit: Edit, first_step: usize, expected: [&[u64]; 3]) {
        let before: Vec<Draft> = vec![draft(0, &[1, 2]), draft(1, &[3, 4, 5, 6]), draft(2, &[])];
        let mut drafts = before.clone();
        assert_eq!(edit.first_step(), first_step);
        let back = edit.apply(&mut drafts);
        let expected: Vec<Draft> = (0..).zip(expected).map(|(rule, values)| draft(rule, values)).collect();
        assert_eq!(drafts, expected);
        assert_eq!(back.first_step(), first_step);
        back.apply(&mut drafts);
        assert_eq!(drafts, before);
    }

    #[test]
    fn an_edit_changes_what_it_says_and_its_inverse_changes_it_back() {
        let value = Value::Unsigned;
        check(Edit::Value { place: (1, 2), value: value(9) }, 1, [&[1, 2], &[3, 4, 9, 6], &[]]);
        check(Edit::without(1, 1..3), 1, [&[1, 2], &[3, 6], &[]]);
        let values = vec![value(7), value(8), value(9)];
        check(Edit::Values { step: 0, range: 0..1, values }, 0, [&[7, 8, 9, 2], &[3, 4, 5, 6], &[]]);
        check(Edit::Rotation { step: 1, range: 1..4, by: 1 }, 1, [&[1, 2], &[3, 6, 4, 5], &[]]);
        let drafts = vec![draft(0, &[]), draft(1, &[8])];
        check(Edit::Steps { range: 0..2, drafts }, 0, [&[], &[8], &[]]);
    }

    #[test]
    fn steps_and_holes_come_and_go() {
        let before = vec![draft(0, &[1]), draft(1, &[2])];
        let mut drafts = before.clone();
        let shorter = Edit::Steps { range: 0..1, drafts: Vec::new() }.apply(&mut drafts);
        assert_eq!(drafts, [draft(1, &[2])]);
        shorter.apply(&mut drafts);
        assert_eq!(drafts, before);

        let hole = DraftHole { hole: Hole { span: 3, resume: 1 }, start: 0, nested: 0 };
        let back = Edit::Hole { step: 1, hole: Some(hole) }.apply(&mut drafts);
        assert_eq!(drafts[1].hole, Some(hole));
        back.apply(&mut drafts);
        assert_eq!(drafts, before);
    }
}
