//! Explaining a finding: which values do not matter, and which steps are there for this failure only.
//!
//! As Hypothesis' explain phase does, each part is varied alone while all else stays as it is.

use std::ops::Range;

use crate::choice::{Chooser, Hole, Value, mix};
use crate::outcome::{Failure, Outcome, Reject};
use crate::target::{Target, attempt};
use crate::trace::Trace;

/// How often a part is varied.
const TRIES: u64 = 32;

/// Choices of one step that may matter together: those of an argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which step.
    pub step: usize,
    /// Which of its choices.
    pub choices: Range<usize>,
    /// The span that they are, where they are one: what follows it keeps its answers however many choices
    /// are made in it.
    pub span: Option<u32>,
}

/// Whether the part can have any other value: with the simplest and several others, the trace always failed the same way.
/// Where `is_over` says that no time is left, it may matter.
pub fn does_not_matter<T: Target>(
    target: &mut T,
    trace: &Trace,
    failure: &Failure,
    part: &Part,
    is_over: &dyn Fn() -> bool,
) -> bool {
    let step = &trace.steps()[part.step];
    let original = &trace.choices(step)[part.choices.clone()];
    let is_part = |at| part.choices.contains(&at);
    let values = trace.choices(step).iter().enumerate();
    let values: Vec<Option<Value>> =
        values.map(|(at, choice)| (!is_part(at)).then(|| choice.value.clone())).collect();
    let hole = part.span.map(|span| Hole { span, resume: part.choices.end as u32 });
    let mut others = 0;
    for number in 0..TRIES {
        if is_over() {
            return false;
        }
        let mut run = Trace::default();
        let draws_nothing = number == 0;
        let varied =
            Varied { step: part.step, seed: mix(step.seed, number), draws_nothing, values: &values, hole };
        let outcome = execute(target, trace, Some(&varied), None, &mut run);
        let Some(now) = run.steps().get(part.step) else { return false };
        let now = run.choices(now);
        if now.len() == trace.choices(step).len() && now[part.choices.clone()] == *original {
            continue;
        }
        match outcome {
            Outcome::Fail(found) if found.is_same(failure) && run.len() == trace.len() => others += 1,
            Outcome::Reject(Reject::Assume) => {}
            _ => return false,
        }
    }
    others > 0
}

/// Whether a failure of the same kind remains without the step.
pub fn is_droppable<T: Target>(target: &mut T, trace: &Trace, failure: &Failure, step: usize) -> bool {
    let outcome = execute(target, trace, None, Some(step), &mut Trace::default());
    matches!(outcome, Outcome::Fail(found) if found.kind == failure.kind)
}

/// What one step is given instead of its recorded answers.
struct Varied<'a> {
    step: usize,
    seed: u64,
    /// What has no recorded answer gets the simplest one.
    draws_nothing: bool,
    values: &'a [Option<Value>],
    hole: Option<Hole>,
}

fn execute<T: Target>(
    target: &mut T,
    trace: &Trace,
    varied: Option<&Varied>,
    dropped: Option<usize>,
    run: &mut Trace,
) -> Outcome {
    let mut chooser = Chooser::default();
    let mut enabled = Vec::new();
    target.reset();
    for (index, step) in trace.steps().iter().enumerate() {
        if dropped == Some(index) {
            continue;
        }
        let outcome = match varied.filter(|varied| varied.step == index) {
            Some(varied) => {
                (chooser.hole, chooser.draws_nothing) = (varied.hole, varied.draws_nothing);
                let what = (step.action, varied.seed);
                attempt(target, &mut chooser, &mut enabled, what, varied.values.iter().cloned(), run)
            }
            None => {
                (chooser.hole, chooser.draws_nothing) = (None, false);
                let what = (step.action, step.seed);
                attempt(target, &mut chooser, &mut enabled, what, trace.recorded(step), run)
            }
        };
        match outcome {
            // Where a step before it is dropped, another may not be callable.
            Outcome::Pass | Outcome::Reject(Reject::Precondition) => {}
            ended => return ended,
        }
    }
    Outcome::Pass
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::{Choice, Kind};
    use crate::model::{Model, fail};
    use crate::trace::Action;

    /// Draws two numbers and fails where the first is 5; or, after `noop`, in another place.
    fn model() -> Model<u32> {
        Model::new(0, &["go", "noop"], &[], |state, action, chooser, _| {
            if action == Action::Rule(1) {
                *state += 1;
                return Outcome::Pass;
            }
            let kind = Kind::Index { n: 9 };
            chooser.span_begin((0, 0));
            let first = chooser.choose(kind).clone();
            chooser.span_end(false);
            chooser.span_begin((0, 0));
            let count = chooser.choose(kind).clone();
            let Value::Index(count) = count else { unreachable!() };
            (0..count).for_each(|_| drop(chooser.choose(kind).clone()));
            chooser.span_end(false);
            let last = chooser.choose(kind).clone();
            match (first, last) {
                (Value::Index(5), Value::Index(7)) if *state == 1 => fail("after noop"),
                (Value::Index(5), Value::Index(7)) => fail("alone"),
                _ => Outcome::Pass,
            }
        })
    }

    fn trace(values: &[u32]) -> Trace {
        let mut trace = Trace::default();
        trace.push(Action::Rule(1), 3);
        trace.chose(&mut Vec::new(), &mut Vec::new());
        trace.push(Action::Rule(0), 1);
        let choice = |v: &u32| Choice { kind: Kind::Index { n: 9 }, value: Value::Index(*v) };
        trace.chose(&mut values.iter().map(choice).collect(), &mut Vec::new());
        trace
    }

    #[test]
    fn what_fails_with_all_but_the_simplest_matters() {
        let mut model = Model::new(0u32, &["go"], &[], |_, _, chooser, _| {
            let kind = Kind::Integer { min: 0, max: 1 << 40, simplest: 0 };
            let is_simplest = *chooser.choose(kind) == Value::Integer(0);
            if is_simplest { Outcome::Pass } else { fail("not the simplest") }
        });
        let kind = Kind::Integer { min: 0, max: 1 << 40, simplest: 0 };
        let mut trace = Trace::default();
        trace.push(Action::Rule(0), 1);
        trace.chose(&mut vec![Choice { kind, value: Value::Integer(1) }], &mut Vec::new());
        let Outcome::Fail(failure) = execute(&mut model, &trace, None, None, &mut Trace::default()) else {
            panic!("it fails")
        };
        let part = Part { step: 0, choices: 0..1, span: None };
        assert!(!does_not_matter(&mut model, &trace, &failure, &part, &|| false));
    }

    #[test]
    fn what_can_be_anything_is_told_from_what_cannot() {
        let (mut model, trace) = (model(), trace(&[5, 2, 0, 0, 7]));
        let Outcome::Fail(failure) = execute(&mut model, &trace, None, None, &mut Trace::default()) else {
            panic!("it fails")
        };
        let mut check = |choices, span, expected| {
            let part = Part { step: 1, choices, span };
            assert_eq!(does_not_matter(&mut model, &trace, &failure, &part, &|| false), expected);
        };
        check(0..1, Some(0), false);
        check(1..4, Some(1), true);
        check(4..5, None, false);
        assert!(is_droppable(&mut model, &trace, &failure, 0));
        assert!(!is_droppable(&mut model, &trace, &failure, 1));
    }
}
