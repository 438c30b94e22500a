//! Shrinking: from a trace that fails to the simplest one that fails the same way.
//!
//! Simplicity is shortlex: fewer steps, then fewer faults toggled, then fewer choices, then smaller values,
//! the first that differs counting. One gate runs candidates and replaces the best; only a strictly simpler
//! trace of the same failure passes. A candidate runs from the state before its first change, which the gate
//! keeps for every step of the best trace.

mod known;
mod layout;
mod numbers;
mod spans;
mod steps;
mod values;

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::choice::{Choice, Chooser, Hole, Value};
use crate::outcome::{Failure, Outcome, Reject};
use crate::replay::{Replayed, replay};
use crate::target::{Target, attempt};
use crate::trace::{Action, Step, Trace};
use known::{End, Known, Path, START, fingerprint};
use layout::Layout;

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

/// Shrinks `trace`, which fails with `failure`, within `executions_max` candidates. `progress` is told the
/// number of executions and of steps left with each candidate, and says whether to go on.
///
/// # Errors
/// The trace does not fail this way when it is replayed.
pub fn shrink<T: Target>(
    target: &mut T,
    trace: &Trace,
    failure: &Failure,
    executions_max: u64,
    mut progress: impl FnMut(u64, usize) -> bool,
) -> Result<Shrunk, NotReproduced> {
    let (replayed, best) = replay(target, trace, false);
    match &replayed {
        Replayed::Failed(found) if found.is_same(failure) => {}
        _ => return Err(NotReproduced(replayed)),
    }
    let mut gate = Gate {
        target,
        failure: failure.clone(),
        drafts: drafts_of(&best),
        before: Vec::new(),
        known: Known::default(),
        tried: BTreeSet::new(),
        layouts: RefCell::default(),
        others: BTreeMap::new(),
        executions: 0,
        executions_max,
        chooser: Chooser::default(),
        enabled: Vec::new(),
        progress: &mut progress,
        is_stopped: false,
        best,
    };
    gate.keep_states();
    while !gate.is_over() && (gate.round() || gate.rewrite_steps()) {}
    let is_minimal = !gate.is_over();
    let executions = gate.executions;
    let others = std::mem::take(&mut gate.others).into_values().collect();
    let best = std::mem::take(&mut gate.best);
    // From zero once more: what is reported is what a replay will do.
    match replay(gate.target, &best, false) {
        (Replayed::Failed(found), trace) if found.is_same(failure) => {
            Ok(Shrunk { trace, failure: *found, executions, is_minimal, others })
        }
        (other, _) => Err(NotReproduced(other)),
    }
}

/// A step of a candidate.
#[derive(Clone, PartialEq)]
struct Draft {
    action: Action,
    seed: u64,
    values: Vec<Value>,
    hole: Option<DraftHole>,
    /// What is asked beyond `values` is drawn from the seed; else it is answered with the simplest.
    draws: bool,
}

/// A span that is to be all simplest.
#[derive(Clone, Copy, PartialEq)]
struct DraftHole {
    hole: Hole,
    /// Index of its first choice.
    start: usize,
    /// Spans that open with it, within it.
    nested: u16,
}

/// What is known of the state before a step.
#[derive(Clone)]
struct Before<S> {
    /// None where the target has no snapshots.
    state: Option<S>,
    path: Path,
}

/// The one place where candidates are executed.
struct Gate<'a, T: Target> {
    target: &'a mut T,
    failure: Failure,
    best: Trace,
    /// The steps of `best`.
    drafts: Vec<Draft>,
    /// Before each step of `best`.
    before: Vec<Before<T::Snapshot>>,
    known: Known,
    /// Fingerprints of the candidates, of which none is looked at twice.
    tried: BTreeSet<Path>,
    /// How the choices of the best trace's steps lie in spans, as far as it was asked.
    layouts: RefCell<BTreeMap<usize, Rc<Layout>>>,
    others: BTreeMap<String, (Failure, Trace)>,
    executions: u64,
    executions_max: u64,
    chooser: Chooser,
    enabled: Vec<u16>,
    progress: &'a mut dyn FnMut(u64, usize) -> bool,
    /// The caller asked to stop.
    is_stopped: bool,
}

impl<T: Target> Gate<'_, T> {
    /// One round of all passes. Whether any helped.
    fn round(&mut self) -> bool {
        let passes: &[fn(&mut Self) -> bool] = &[
            Self::lower_all,
            Self::delete_steps,
            Self::delete_rows,
            Self::collapse_spans,
            Self::merge_rows,
            Self::hoist_spans,
            Self::lower_each_to_simplest,
            Self::lower_equal,
            Self::lower_together,
            Self::lower_each,
            Self::reorder_spans,
            Self::delete_choices,
            Self::redistribute,
        ];
        let mut helped = false;
        for pass in passes {
            helped |= pass(self);
        }
        helped
    }

    /// Records the state before each step of the best trace.
    fn keep_states(&mut self) {
        let drafts = self.drafts.clone();
        self.target.reset();
        self.execute(&drafts, 0);
    }

    /// Whether no candidate may be tried any more.
    fn is_over(&self) -> bool {
        self.is_stopped || self.executions >= self.executions_max
    }

    /// Tries a candidate that is the best trace up to step `from`. Whether it became the best.
    fn is_better(&mut self, candidate: &[Draft], from: usize) -> bool {
        if !self.may_be_simpler(candidate) {
            return false;
        }
        let before = self.before.clone();
        if let Some(trace) = self.failing(candidate, from)
            && compare(&trace, &self.best) == Ordering::Less
        {
            self.become_best(trace);
            return true;
        }
        self.before = before;
        false
    }

    fn become_best(&mut self, trace: Trace) {
        self.drafts = drafts_of(&trace);
        self.best = trace;
        self.layouts.borrow_mut().clear();
    }

    /// The trace of a candidate, which is the best up to step `from`, where it is executed and ends in the
    /// failure; `before` is then that of this trace.
    fn failing(&mut self, candidate: &[Draft], from: usize) -> Option<Trace> {
        if self.is_over() || candidate.is_empty() || !self.tried.insert(fingerprint(candidate)) {
            return None;
        }
        self.is_stopped |= !(self.progress)(self.executions, self.best.len());
        let from = from.min(self.before.len() - 1);
        if self.known.covers(self.before[from].path, &candidate[from..]) {
            return None;
        }
        self.executions += 1;
        let from = match &self.before[from].state {
            Some(state) => {
                self.target.restore(state);
                from
            }
            None => {
                self.target.reset();
                0
            }
        };
        let before = self.before.clone();
        self.before.truncate(from + 1);
        let (trace, skipped) = self.execute(candidate, from)?;
        if skipped {
            // What was skipped evaluated preconditions; only an execution without it counts.
            self.before = before;
            return self.failing(&drafts_of(&trace), from);
        }
        Some(trace)
    }

    /// Whether a candidate may turn out to be simpler than the best: it is not longer, and where it first
    /// differs its answer fits the question, which is the same, and is simpler unless it is shorter.
    fn may_be_simpler(&self, candidate: &[Draft]) -> bool {
        if candidate.iter().any(|draft| draft.hole.is_some() || draft.draws)
            || candidate.len() < self.drafts.len()
        {
            return true;
        }
        let choices = |drafts: &[Draft]| drafts.iter().map(|draft| draft.values.len()).sum::<usize>();
        let is_shorter = choices(candidate) < choices(&self.drafts);
        let mut pairs = candidate.iter().zip(&self.drafts).zip(self.best.steps());
        let Some(((new, old), step)) = pairs.find(|((new, old), _)| new != old) else { return false };
        if new.action != old.action {
            return true;
        }
        let mut answers = new.values.iter().zip(&old.values).zip(self.best.choices(step));
        match answers.find(|((new, old), _)| new != old) {
            Some(((new, _), choice)) => choice.kind.fit(new).is_some_and(|value| {
                is_shorter || compare_choices(&Choice { kind: choice.kind, value }, choice) == Ordering::Less
            }),
            None => is_shorter,
        }
    }

    /// Executes `candidate[from..]` on the state before step `from`, which is the last of `before`, and keeps
    /// what is before each later step. The whole trace, and whether steps were skipped because they may not be
    /// called, where it ends in the failure.
    fn execute(&mut self, candidate: &[Draft], from: usize) -> Option<(Trace, bool)> {
        let mut trace = Trace::default();
        trace.extend(&self.best, from);
        let mut path = self.before.pop().map_or(START, |before| before.path);
        let mut skipped = false;
        for draft in &candidate[from..] {
            self.before.push(Before { state: self.target.snapshot(), path });
            let values = draft.values.iter().cloned().map(Some);
            let what = (draft.action, draft.seed);
            self.chooser.hole = draft.hole.map(|hole| hole.hole);
            self.chooser.draws_nothing = !draft.draws;
            let outcome =
                attempt(self.target, &mut self.chooser, &mut self.enabled, what, values, &mut trace);
            let end = match &outcome {
                Outcome::Pass => End::Passed,
                Outcome::Reject(Reject::Precondition) => End::Skipped,
                Outcome::Fail(_) | Outcome::Reject(_) => End::Stopped,
                Outcome::Stopped => {
                    self.is_stopped = true;
                    return None;
                }
            };
            let made = match trace.steps().last() {
                Some(step) if end != End::Skipped => (trace.choices(step), trace.spans(step)),
                _ => Default::default(),
            };
            path = self.known.learn(path, draft.action, made, end);
            match outcome {
                Outcome::Pass => {}
                Outcome::Fail(found) if found.is_same(&self.failure) => return Some((trace, skipped)),
                Outcome::Fail(found) => {
                    if !skipped {
                        self.others.entry(found.id()).or_insert((*found, trace));
                    }
                    return None;
                }
                Outcome::Reject(Reject::Precondition) => skipped = true,
                Outcome::Reject(_) | Outcome::Stopped => return None,
            }
        }
        None
    }
}

fn drafts_of(trace: &Trace) -> Vec<Draft> {
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
    use crate::choice::Kind;
    use crate::explore::{Explorer, Options};
    use crate::model::{Model, fail};

    fn draw(chooser: &mut Chooser, kind: Kind) -> i64 {
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
    fn check<S: Clone + std::fmt::Debug + Send + Sync>(make: fn() -> Model<S>, expected: &str) {
        for seed in 1..=30 {
            for uses_snapshots in [true, false] {
                let mut model = make();
                model.uses_snapshots = uses_snapshots;
                let mut explorer = Explorer::new(&mut model, Options { seed, ..Options::default() });
                explorer.explore(|p| p.findings == 0 && p.steps < 1_000_000);
                let finding = explorer.findings().next().expect("there is a bug").clone();
                let shrunk =
                    shrink(&mut model, &finding.trace, &finding.failure, 100_000, |_, _| true).unwrap();
                assert!(shrunk.is_minimal);
                assert_eq!(story(&shrunk.trace), expected, "seed {seed}");
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
                    shrink(&mut model, &finding.trace, &finding.failure, 10_000, |_, _| true).unwrap();
                let is_large = finding.failure.message == "large";
                assert_eq!(story(&shrunk.trace), if is_large { "Rule(0) 900" } else { "Rule(0) 500" });
                // The other one that was met is kept.
                let others: Vec<&str> = shrunk.others.iter().map(|(f, _)| f.message.as_str()).collect();
                let met = if is_large { "middle" } else { "large" };
                assert!(others.is_empty() || others == [met], "{others:?}");
                kept += others.len();
            }
        }
        assert!(kept > 0);
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
        let error = shrink(&mut changed, &finding.trace, &finding.failure, 100, |_, _| true).unwrap_err();
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
            |drift| shrink(&mut total(drift), &finding.trace, &finding.failure, 100_000, |_, _| true);
        assert!(shrunk(None).unwrap().is_minimal);
        let stopped = shrunk(Some((60, i64::MIN))).unwrap();
        assert!(!stopped.is_minimal && stopped.failure.is_same(&finding.failure));
        assert_eq!(shrunk(Some((0, i64::MIN))).unwrap_err(), NotReproduced(Replayed::Stopped));
    }
}
