//! Shrinking: from a trace that fails to the simplest one that fails the same way.
//!
//! Simplicity is shortlex: fewer steps, then fewer faults toggled, then fewer choices, then smaller values,
//! the first that differs counting. One gate runs candidates and replaces the best; only a strictly simpler
//! trace of the same failure passes. A candidate is a list of edits of the best trace, which the gate applies, runs from the
//! state before the first step that they change, and takes back where the candidate does not pass.

mod edit;
mod exchange;
mod gaps;
mod gate;
mod known;
mod layout;
mod numbers;
mod spans;
mod steps;
mod together;
mod values;

use std::cmp::Ordering;

use crate::choice::{Choice, Value};
use crate::outcome::{Failure, FailureKind};
use crate::replay::{Replayed, replay};
use crate::target::Target;
use crate::trace::{Action, Trace};
use gate::Gate;

/// How shrinking ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Shrunk {
    /// The simplest trace found, with the state after each step.
    pub trace: Trace,
    /// What it fails with; the same failure as before, perhaps with another message.
    pub failure: Failure,
    /// Candidates that were executed.
    pub executions: u64,
    /// Whether no pass helps any more; false where the budget ended first.
    pub is_minimal: bool,
    /// Other failures that candidates met, each with the first trace that did.
    pub others: Vec<(Failure, Trace)>,
}

/// The trace does not do what it did when it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct NotReproduced(pub Replayed);

/// Shrinks `trace`, which fails with `failure`, within `executions_max` candidates. Where a candidate calls other rules than
/// the trace, they are among `rules`, by index; empty is all. `progress` gets the number of executions and of steps left
/// with each candidate, and returns whether to continue.
///
/// # Errors
/// The trace does not fail this way when it is replayed.
pub fn shrink<T: Target>(
    target: &mut T,
    trace: &Trace,
    failure: &Failure,
    rules: &[u16],
    executions_max: u64,
    mut progress: impl FnMut(u64, usize) -> bool,
) -> Result<Shrunk, NotReproduced> {
    let (replayed, best) = replay(target, trace, false);
    match &replayed {
        Replayed::Failed(found) if found.is_same(failure) => {}
        _ => return Err(NotReproduced(replayed)),
    }
    let mut gate = Gate::new(target, best, failure, rules, executions_max, &mut progress);
    // A check found the shortest way to a loop, and another loop may not be fair.
    let is_shortest = failure.kind == FailureKind::Liveness;
    while !is_shortest
        && !gate.is_over()
        && (gate.round()
            || gate.exchange_names()
            || gate.happen_earlier()
            || gate.shorten_together()
            || gate.cross_gaps()
            || gate.rewrite_steps())
    {}
    let is_minimal = !gate.is_over();
    let executions = gate.executions;
    let (best, last, others) = gate.into_parts();
    // From zero once more: what is reported is what a replay will do.
    match replay(target, &best, false) {
        (Replayed::Failed(found), trace) if found.is_same(failure) => {
            Ok(Shrunk { trace, failure: *found, executions, is_minimal, others })
        }
        // There was no time left to do so. It was executed when it became the best.
        (Replayed::Stopped, _) => {
            Ok(Shrunk { trace: best, failure: last, executions, is_minimal: false, others })
        }
        (other, _) => Err(NotReproduced(other)),
    }
}

/// Shortlex: see the module's documentation.
fn compare(a: &Trace, b: &Trace) -> Ordering {
    let faults =
        |trace: &Trace| trace.steps().iter().filter(|s| matches!(s.action, Action::Fault(..))).count();
    let choices = |trace: &Trace| trace.steps().iter().map(|step| trace.choices(step).len()).sum::<usize>();
    let counts = |trace: &Trace| (trace.len(), faults(trace), choices(trace));
    counts(a).cmp(&counts(b)).then_with(|| {
        let a = a.steps().iter().flat_map(|step| a.choices(step));
        let b = b.steps().iter().flat_map(|step| b.choices(step));
        let pairs = a.zip(b).map(|(a, b)| compare_choices(a, b));
        pairs.fold(Ordering::Equal, Ordering::then)
    })
}

/// The simpler answer is less; byte strings by length, then byte by byte.
fn compare_choices(a: &Choice, b: &Choice) -> Ordering {
    match (&a.value, &b.value) {
        (Value::Bytes(a), Value::Bytes(b)) => (a.len(), a).cmp(&(b.len(), b)),
        _ => a.kind.complexity(&a.value).cmp(&b.kind.complexity(&b.value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::{Chooser, Kind};
    use crate::model::{Model, fail};
    use crate::outcome::Outcome;
    use crate::search::{Explorer, Options};
    use crate::trace::Step;

    pub(super) fn draw(chooser: &mut Chooser, kind: Kind) -> i64 {
        match *chooser.choose(kind) {
            Value::Integer(v) => v,
            Value::Index(v) => v.into(),
            Value::Boolean(v) => v.into(),
            ref other => unreachable!("{other:?}"),
        }
    }

    fn integer(chooser: &mut Chooser, min: i64, max: i64) -> i64 {
        draw(chooser, Kind::Integer { min, max, simplest: 0i64.clamp(min, max) })
    }

    /// The shrunk story of whatever is found first, and the executions it took.
    pub(super) fn check<S: Clone + std::fmt::Debug + Send + Sync>(make: fn() -> Model<S>, expected: &str) {
        for seed in 1..=30 {
            for uses_snapshots in [true, false] {
                let mut model = make();
                model.uses_snapshots = uses_snapshots;
                let mut explorer = Explorer::new(&mut model, Options { seed, ..Options::default() });
                explorer.explore(|p| p.findings == 0 && p.steps < 1_000_000);
                let finding = explorer.findings().next().expect("there is a bug").clone();
                let no_room: fn(&S) -> usize = |_| usize::MAX;
                for saved_bytes in [model.saved_bytes, no_room] {
                    model.saved_bytes = saved_bytes;
                    let shrunk =
                        shrink(&mut model, &finding.trace, &finding.failure, &[], 100_000, |_, _| true)
                            .unwrap();
                    assert!(shrunk.is_minimal);
                    assert_eq!(story(&shrunk.trace), expected, "seed {seed}");
                }
            }
        }
    }

    fn story(trace: &Trace) -> String {
        let step = |step: &Step| {
            let values: Vec<String> = trace.choices(step).iter().map(|c| c.value.to_string()).collect();
            format!("{:?} {}", step.action, values.join(" ")).trim_end().to_string()
        };
        trace.steps().iter().map(step).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn steps_and_values_come_down_to_the_minimum() {
        fn total() -> Model<i64> {
            Model::new(0, &["add", "noop", "check"], &["on", "off"], |state, action, chooser, edge| {
                match action {
                    Action::Rule(0) => *state += integer(chooser, -100, 100),
                    Action::Rule(2) if *state > 150 => return fail("above 150"),
                    _ => {}
                }
                edge((*state / 10).clamp(0, 40) as u32);
                Outcome::Pass
            })
        }
        // Lowered in order, so the first is as small as the second allows.
        check(total, "Rule(0) 51; Rule(0) 100; Rule(2)");
    }

    #[test]
    fn a_list_filled_by_early_steps_and_drawn_from_later_shrinks_although_deletions_change_it() {
        fn list() -> Model<Vec<i64>> {
            let mut model = Model::new(
                Vec::new(),
                &["push", "pick"],
                &[],
                |list: &mut Vec<i64>, action, chooser, edge| {
                    match action {
                        Action::Rule(0) => list.push(integer(chooser, 0, 1000)),
                        _ => {
                            let picked = draw(chooser, Kind::Index { n: list.len() as u32 });
                            if list[picked as usize] >= 700 {
                                return fail("picked a large one");
                            }
                        }
                    }
                    edge(list.len().min(9) as u32);
                    Outcome::Pass
                },
            );
            model.guard = |list, rule| rule == 0 || !list.is_empty();
            model
        }
        check(list, "Rule(0) 700; Rule(1) 0");
    }

    #[test]
    fn a_fault_that_does_not_matter_goes_with_what_was_done_for_it() {
        fn save() -> Model<bool> {
            Model::new(false, &["save", "check"], &[], |is_lost, action, chooser, edge| {
                if action == Action::Rule(1) {
                    return if *is_lost { fail("lost") } else { Outcome::Pass };
                }
                let occurs = |chooser: &mut Chooser| draw(chooser, Kind::Boolean { probability: 0.3 }) == 1;
                for written in 0..3 {
                    // A part is written, and then the rest.
                    while occurs(chooser) {
                        edge(written);
                        draw(chooser, Kind::Index { n: 2 });
                        draw(chooser, Kind::Index { n: 3 });
                    }
                }
                *is_lost = occurs(chooser);
                Outcome::Pass
            })
        }
        check(save, "Rule(0) false false false true; Rule(1)");
    }

    #[test]
    fn floats_come_down_to_where_they_fail() {
        fn large() -> Model<u32> {
            Model::new(0, &["go"], &[], |_, _, chooser, _| {
                let (min, max) = (f64::NEG_INFINITY, f64::INFINITY);
                match *chooser.choose(Kind::Float { min, max, nan: true, infinite: true }) {
                    Value::Float(v) if v > 1000.5 => fail("large"),
                    _ => Outcome::Pass,
                }
            })
        }
        check(large, "Rule(0) 1001.0");
    }

    #[test]
    fn no_candidate_calls_a_rule_that_may_not_be_drawn() {
        let mut model = Model::new(0, &["add", "jump", "check"], &[], |state, action, _, edge| {
            match action {
                Action::Rule(0) => *state += 1,
                Action::Rule(1) => *state += 5,
                _ if *state >= 3 => return fail("at least 3"),
                _ => {}
            }
            edge((*state).min(9));
            Outcome::Pass
        });
        let options = Options { seed: 1, rules: vec![0, 2], ..Options::default() };
        let mut explorer = Explorer::new(&mut model, options);
        explorer.explore(|p| p.findings == 0);
        let finding = explorer.findings().next().unwrap().clone();
        for (rules, expected) in [
            (&[0, 2][..], "Rule(0); Rule(0); Rule(0); Rule(2)"),
            (&[], "Rule(1); Rule(2)"),
            (&[0, 1, 2], "Rule(1); Rule(2)"),
        ] {
            let shrunk =
                shrink(&mut model, &finding.trace, &finding.failure, rules, 100_000, |_, _| true).unwrap();
            assert!(shrunk.is_minimal);
            assert_eq!(story(&shrunk.trace), expected, "{rules:?}");
        }
    }

    #[test]
    fn shrinking_never_slips_to_another_failure() {
        fn two() -> Model<i64> {
            Model::new(0, &["go"], &[], |_, _, chooser, _| match integer(chooser, 0, 1000) {
                900.. => fail("large"),
                500..600 => fail("middle"),
                _ => Outcome::Pass,
            })
        }
        let mut kept = 0;
        for seed in 1..=30 {
            let mut model = two();
            let mut explorer = Explorer::new(&mut model, Options { seed, ..Options::default() });
            explorer.explore(|p| p.findings < 2);
            for finding in explorer.findings().cloned().collect::<Vec<_>>() {
                let shrunk =
                    shrink(&mut model, &finding.trace, &finding.failure, &[], 10_000, |_, _| true).unwrap();
                let is_large = finding.failure.message == "large";
                assert_eq!(story(&shrunk.trace), if is_large { "Rule(0) 900" } else { "Rule(0) 500" });
                // The other one that was met is kept.
                let others: Vec<&str> = shrunk.others.iter().map(|(f, _)| f.message.as_str()).collect();
                let met = if is_large { "middle" } else { "large" };
                assert!(others.is_empty() || others == [met], "{others:?}");
                kept += others.len();
            }
        }
        assert_eq!(kept, 29);
    }

    #[test]
    fn a_string_strategy_that_becomes_an_integer_strategy_stays_valid() {
        // The first rule decides what the second draws.
        fn changing() -> Model<u32> {
            Model::new(0, &["more", "draw"], &[], |state, action, chooser, edge| {
                *state += u32::from(action == Action::Rule(0));
                edge((*state).min(5));
                if action == Action::Rule(0) {
                    return Outcome::Pass;
                }
                let kind = if *state % 2 == 1 {
                    Kind::Bytes { min: 2, max: 4 }
                } else {
                    Kind::Integer { min: 5, max: 9, simplest: 5 }
                };
                assert!(kind.accepts(chooser.choose(kind)));
                if *state >= 1 { fail("drew") } else { Outcome::Pass }
            })
        }
        check(changing, r#"Rule(0); Rule(1) b"\x00\x00""#);
    }

    #[test]
    fn byte_strings_that_must_be_of_one_length_are_shortened_together() {
        fn put() -> Model<Vec<Vec<u8>>> {
            Model::new(Vec::new(), &["put"], &[], |values: &mut Vec<Vec<u8>>, _, chooser, edge| {
                let bytes = match chooser.choose(Kind::Bytes { min: 0, max: 64 }) {
                    Value::Bytes(bytes) => bytes.to_vec(),
                    other => unreachable!("{other:?}"),
                };
                edge(values.len().min(9) as u32);
                let is_like = |other: &&Vec<u8>| other.len() == bytes.len() && **other != bytes;
                let alike = values.iter().filter(is_like).count();
                values.push(bytes);
                if alike > 1 { fail("three of one length") } else { Outcome::Pass }
            })
        }
        check(put, r#"Rule(0) b"\x00"; Rule(0) b"\x00"; Rule(0) b"\x01""#);
    }

    #[test]
    fn texts_that_must_be_equal_are_shortened_together() {
        fn put() -> Model<Vec<Vec<i64>>> {
            Model::new(
                Vec::new(),
                &["put", "get"],
                &[],
                |known: &mut Vec<Vec<i64>>, action, chooser, edge| {
                    let mut text = Vec::new();
                    loop {
                        chooser.span_begin((0, 0));
                        let more = draw(chooser, Kind::Boolean { probability: 0.8 }) == 1;
                        if more {
                            text.push(draw(chooser, Kind::Index { n: 2 }));
                        }
                        chooser.span_end(false);
                        if !more {
                            break;
                        }
                    }
                    edge(text.len().min(9) as u32);
                    if action == Action::Rule(0) && text.len() >= 2 {
                        known.push(text);
                    } else if known.contains(&text) {
                        return fail("what was put is not there");
                    }
                    Outcome::Pass
                },
            )
        }
        check(put, "Rule(0) true 0 true 0 false; Rule(1) true 0 true 0 false");
    }

    #[test]
    fn a_trace_that_does_not_fail_again_is_reported() {
        // A hidden input: the number of steps ever performed.
        let mut model = Model::new((0, 0u64), &["tick"], &[], |state, _, _, _| {
            state.0 += 1;
            if state.1 == 0 && state.0 > 2 { fail("third tick") } else { Outcome::Pass }
        });
        let mut explorer = Explorer::new(&mut model, Options { seed: 1, ..Options::default() });
        explorer.explore(|p| p.findings == 0);
        let finding = explorer.findings().next().unwrap().clone();
        let mut changed = Model::new((0, 1u64), &["tick"], &[], |state, _, _, _| {
            state.0 += 1;
            if state.1 == 0 && state.0 > 2 { fail("third tick") } else { Outcome::Pass }
        });
        let error =
            shrink(&mut changed, &finding.trace, &finding.failure, &[], 100, |_, _| true).unwrap_err();
        assert_eq!(error, NotReproduced(Replayed::Passed));
    }

    #[test]
    fn shrinking_that_is_stopped_keeps_the_best_so_far() {
        fn total(drift: Option<(u64, i64)>) -> Model<i64> {
            let mut model = Model::new(0, &["add"], &[], |state, _, chooser, _| {
                if *state == i64::MIN {
                    return Outcome::Stopped;
                }
                *state += integer(chooser, 0, 100);
                if *state > 150 { fail("above 150") } else { Outcome::Pass }
            });
            model.drift = drift;
            model
        }
        let mut model = total(None);
        let mut explorer = Explorer::new(&mut model, Options { seed: 1, ..Options::default() });
        explorer.explore(|p| p.findings == 0);
        let finding = explorer.findings().next().unwrap().clone();
        let shrunk =
            |drift| shrink(&mut total(drift), &finding.trace, &finding.failure, &[], 100_000, |_, _| true);
        let minimal = shrunk(None).unwrap();
        assert!(minimal.is_minimal);
        let stopped = shrunk(Some((60, i64::MIN))).unwrap();
        assert!(!stopped.is_minimal && stopped.failure.is_same(&finding.failure));
        assert_eq!(shrunk(Some((0, i64::MIN))).unwrap_err(), NotReproduced(Replayed::Stopped));
    }
}
