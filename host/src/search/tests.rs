use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::choice::{Chooser, Kind, Value};
use crate::model::{Model, fail};
use crate::outcome::Outcome;
use crate::replay::{Replayed, replay};
use crate::trace::Action;

fn integer(chooser: &mut Chooser, min: i64, max: i64) -> i64 {
    match *chooser.choose(Kind::Integer { min, max, simplest: min }) {
        Value::Integer(v) => v,
        ref other => unreachable!("{other:?}"),
    }
}

/// A lock over an alphabet of ten: each right key takes a new branch, a wrong one resets.
fn lock<const N: usize>() -> Model<usize> {
    Model::new(0, &["press"], &[], |at, _, chooser, edge| {
        let is_right = integer(chooser, 0, 9) == (*at as i64 * 7 + 3) % 10;
        *at = if is_right { *at + 1 } else { 0 };
        edge(*at as u32);
        if *at == N { fail("open") } else { Outcome::Pass }
    })
}

fn explore<S: Clone + std::fmt::Debug + Send + Sync>(
    model: &mut Model<S>,
    options: Options,
    steps_max: u64,
) -> (Progress, Vec<Found>) {
    let mut explorer = Explorer::new(model, options);
    explorer.explore(|p| p.findings == 0 && p.steps < steps_max);
    (explorer.progress(), explorer.findings().cloned().collect())
}

/// Median runs and steps to open a lock over twenty seeds; every finding must replay.
fn median<const N: usize>(options: &Options) -> (u64, u64) {
    let (mut runs, mut steps) = (Vec::new(), Vec::new());
    for seed in 1..=20 {
        let (progress, findings) = explore(&mut lock::<N>(), Options { seed, ..options.clone() }, 1_000_000);
        let [finding] = &findings[..] else { panic!("seed {seed} found {findings:?}") };
        let (replayed, _) = replay(&mut lock::<N>(), &finding.trace, false);
        assert_eq!(replayed, Replayed::Failed(Box::new(finding.failure.clone())));
        runs.push(progress.runs);
        steps.push(progress.steps);
    }
    runs.sort_unstable();
    steps.sort_unstable();
    (runs[10], steps[10])
}

#[test]
fn locks_open_within_their_budgets() {
    // The budgets are 500 runs and 5,000 steps, and 20,000 steps.
    let medians = [median::<8>(&Options::default()), median::<32>(&Options::default())];
    assert_eq!(medians, [(192, 1_587), (1_026, 8_664)]);
}

#[test]
fn where_others_explore_too_a_run_ends_at_an_edge() {
    let most = |sharers| {
        let mut model = Model::new(0, &["go"], &[], |at, _, _, edge| {
            *at += 1;
            edge(*at);
            Outcome::Pass
        });
        let mut explorer = Explorer::new(&mut model, Options { seed: 1, ..Options::default() });
        explorer.set_sharers(sharers);
        let run = |runs| {
            let before = explorer.progress().edges;
            explorer.explore(|progress| progress.runs < runs);
            explorer.progress().edges - before
        };
        (1..=10).map(run).max()
    };
    assert_eq!((most(1), most(2)), (Some(9), Some(1)));
}

/// A function that reads eight keys; each right one takes a new branch, and the first wrong one ends it.
fn keys() -> Model<bool> {
    let mut model = Model::new(false, &["keys"], &[], |has_run, action, chooser, edge| {
        if action == Action::Setup {
            edge(9);
            return Outcome::Pass;
        }
        *has_run = true;
        for at in 0..8 {
            if integer(chooser, 0, 99) != (at * 37 + 11) % 100 {
                return Outcome::Pass;
            }
            edge(at as u32);
        }
        fail("open")
    });
    model.is_function = true;
    model.guard = |has_run, _| !has_run;
    model
}

/// Nothing follows a function, so its inputs are kept, changed and tried again.
#[test]
fn a_function_is_given_changed_inputs() {
    let (mut runs, mut checkpoints) = (Vec::new(), Vec::new());
    for seed in 1..=20 {
        let mut model = keys();
        let (progress, findings) = explore(&mut model, Options { seed, ..Options::default() }, 1_000_000);
        assert_eq!(findings.len(), 1, "seed {seed}");
        let shortening = model.steps - progress.runs;
        assert_eq!(progress.steps, progress.runs, "one call a run");
        assert_eq!(shortening, progress.checkpoints, "and one to measure what is kept");
        let (replayed, _) = replay(&mut keys(), &findings[0].trace, false);
        assert_eq!(replayed, Replayed::Failed(Box::new(findings[0].failure.clone())));
        runs.push(progress.runs);
        checkpoints.push(progress.checkpoints);
    }
    let mut model = keys();
    model.has_setup = true;
    let mut explorer = Explorer::new(&mut model, Options { seed: 1, ..Options::default() });
    explorer.explore(|progress| progress.runs < 10_000);
    assert!(explorer.seen().contains(9));
    assert_eq!(explorer.checkpoints().len(), 7);
    assert!(explorer.checkpoints().iter().all(|kept| !kept.history.last_choices().is_empty()));
    runs.sort_unstable();
    assert_eq!(runs[10], 4_373);
    assert!(
        checkpoints.iter().all(|kept| (6..=7).contains(kept)),
        "one a key, unless two were met at once: {checkpoints:?}"
    );
    let unguided = Options { seed: 1, strategy: Strategy::Random, ..Options::default() };
    assert_eq!(explore(&mut keys(), unguided, 100_000).0.edges, 2);
}

#[test]
fn without_guidance_the_lock_stays_shut() {
    let options = Options { seed: 1, strategy: Strategy::Random, ..Options::default() };
    let mut model = lock::<8>();
    let mut explorer = Explorer::new(&mut model, options);
    explorer.explore(|p| p.runs < 100_000);
    assert_eq!(explorer.progress().findings, 0);
    assert_eq!(explorer.progress().checkpoints, 0);
}

/// A counter with a setup that draws, a fault and a guarded rule.
fn counter() -> Model<(i64, bool)> {
    let mut model =
        Model::new((0, false), &["add", "halve", "check"], &["stuck"], |state, action, chooser, edge| {
            match action {
                Action::Setup => state.0 = integer(chooser, 0, 3),
                Action::Rule(0) => state.0 += integer(chooser, 1, 10) * i64::from(!state.1),
                Action::Rule(1) => state.0 /= 2,
                Action::Fault(_, on) => state.1 = on,
                _ if state.0 > 20 && state.1 => return fail("stuck above 20"),
                _ => {}
            }
            edge((state.0 / 8).min(100) as u32 + 100 * u32::from(state.1));
            Outcome::Pass
        });
    model.has_setup = true;
    model.guard = |state, rule| rule != 1 || state.0 > 4;
    model
}

#[test]
fn one_seed_gives_one_result() {
    let options = |seed| Options { seed, ..Options::default() };
    let first = explore(&mut counter(), options(3), 100_000);
    assert_eq!(first, explore(&mut counter(), options(3), 100_000));
    assert_ne!(first.1, explore(&mut counter(), options(4), 100_000).1);
}

#[test]
fn a_snapshot_is_a_cache() {
    for seed in 1..=20 {
        let options = Options { seed, ..Options::default() };
        let mut replayed = counter();
        replayed.uses_snapshots = false;
        let with = explore(&mut counter(), options.clone(), 20_000);
        assert_eq!(with, explore(&mut replayed, options, 20_000));
    }
}

#[test]
fn a_fault_that_must_be_on_is_found_and_stands_in_the_trace() {
    let (_, findings) = explore(&mut counter(), Options { seed: 1, ..Options::default() }, 100_000);
    let trace = &findings[0].trace;
    assert!(trace.steps().iter().any(|step| step.action == Action::Fault(0, true)));
    assert_eq!(trace.steps()[0].action, Action::Setup);
    let (replayed, _) = replay(&mut counter(), trace, false);
    assert_eq!(replayed, Replayed::Failed(Box::new(findings[0].failure.clone())));
}

/// Five rules in order, with the fault on during the third and off during the others.
#[test]
fn a_fault_during_the_third_of_five_rules_is_found() {
    let rules = ["one", "two", "three", "four", "five"];
    for seed in 1..=10 {
        let mut model = Model::new((0u16, false), &rules, &["f"], |state, action, _, edge| {
            match action {
                Action::Fault(_, on) => state.1 = on,
                Action::Rule(rule) if rule == state.0 && state.1 == (rule == 2) => state.0 += 1,
                _ => state.0 = 0,
            }
            edge(u32::from(state.0) + 10 * u32::from(state.1));
            if state.0 == 5 { fail("five in order") } else { Outcome::Pass }
        });
        let (_, findings) = explore(&mut model, Options { seed, ..Options::default() }, 1_000_000);
        let shrunk = crate::shrink::shrink(
            &mut model,
            &findings[0].trace,
            &findings[0].failure,
            &[],
            100_000,
            |_, _| true,
        );
        let actions: Vec<Action> = shrunk.unwrap().trace.steps().iter().map(|step| step.action).collect();
        let [one, two, three, four, five] = [0, 1, 2, 3, 4].map(Action::Rule);
        let (on, off) = (Action::Fault(0, true), Action::Fault(0, false));
        assert_eq!(actions, [one, two, on, three, off, four, five]);
    }
}

#[test]
fn a_checkpoint_is_not_disturbed_by_runs_from_it() {
    let mut model = counter();
    let mut explorer = Explorer::new(&mut model, Options { seed: 2, ..Options::default() });
    explorer.explore(|p| p.checkpoints < 5);
    let states = |explorer: &mut Explorer<'_, Model<(i64, bool)>>| {
        (0..5)
            .map(|index| {
                let snapshot = explorer.checkpoints().get(index).snapshot.expect("this target has snapshots");
                explorer.target().restore(&snapshot);
                explorer.target().state()
            })
            .collect::<Vec<_>>()
    };
    let before = states(&mut explorer);
    explorer.explore(|p| p.runs < 500);
    assert_eq!(before, states(&mut explorer));
}

#[test]
fn few_checkpoints_are_enough_to_go_on() {
    let options = Options { seed: 1, checkpoints_max: Some(2), ..Options::default() };
    let mut model = lock::<8>();
    let mut explorer = Explorer::new(&mut model, options);
    explorer.explore(|p| p.runs < 2_000);
    assert_eq!(explorer.checkpoints().len(), 2);
    assert_eq!(explorer.progress().checkpoints, 7);
}

#[test]
fn a_rule_is_called_only_where_its_precondition_holds() {
    let mut model = Model::new(0, &["up", "down"], &[], |state, action, _, edge| {
        *state += if action == Action::Rule(0) { 1 } else { -1 };
        edge(*state as u32);
        if *state < 0 { fail("below") } else { Outcome::Pass }
    });
    model.guard = |state, rule| if rule == 1 { *state > 0 } else { *state < 20 };
    let (progress, findings) = explore(&mut model, Options::default(), 20_000);
    assert_eq!((findings.len(), progress.edges), (0, 21));
}

/// Everything that an exploration came to.
fn outcome<S: Clone + std::fmt::Debug + Send + Sync + PartialEq>(
    models: &mut [Model<S>],
    options: Options,
    goes_on: fn(&Progress) -> bool,
) -> impl PartialEq + std::fmt::Debug + use<S> {
    let mut explorer = Explorer::with_workers(models, options);
    explorer.explore(goes_on);
    let known = explorer.knowledge();
    let checkpoints = known.checkpoints.iter();
    let checkpoints: Vec<_> = checkpoints
        .map(|c| (c.id, c.parent, c.snapshot.clone(), c.energy.to_bits(), c.selected, c.run, c.step))
        .collect();
    let findings: Vec<Found> = explorer.findings().cloned().collect();
    (explorer.progress(), checkpoints, findings, known.features.clone(), known.productive.clone())
}

#[test]
fn the_number_of_workers_changes_nothing() {
    for seed in 1..=8 {
        for checkpoints_max in [Some(3), None] {
            let options = Options { seed, checkpoints_max, ..Options::default() };
            let goes_on: fn(&Progress) -> bool = |p| p.runs < 3_001;
            let one = outcome(&mut [counter()], options.clone(), goes_on);
            for workers in [2, 3, 7] {
                let mut models: Vec<_> = (0..workers).map(|_| counter()).collect();
                assert_eq!(outcome(&mut models, options.clone(), goes_on), one);
            }
            let goes_on: fn(&Progress) -> bool = |p| p.findings == 0 && p.runs < 20_000;
            let one = outcome(&mut [lock::<12>()], options.clone(), goes_on);
            assert_eq!(outcome(&mut [lock::<12>(), lock::<12>()], options, goes_on), one);
        }
    }
}

/// A panic in one worker ends the exploration, and does not hang it.
#[test]
fn a_panic_is_passed_on() {
    let model = || {
        Model::new(0u64, &["count"], &[], |count, _, _, edge| {
            edge(0);
            *count += 1;
            assert!(*count < 30, "a bug of ours");
            Outcome::Pass
        })
    };
    let options = Options { seed: 1, strategy: Strategy::Random, ..Options::default() };
    let explored = std::panic::catch_unwind(|| {
        let mut models = [model(), model()];
        Explorer::with_workers(&mut models, options).explore(|p| p.runs < 10_000);
    });
    assert!(explored.is_err());
}

#[test]
fn what_was_executed_before_the_time_was_over_counts() {
    let mut models = [counter(), counter()];
    let mut explorer = Explorer::with_workers(&mut models, Options { seed: 1, ..Options::default() });
    let asked = AtomicU64::new(0);
    explorer.explore(|_| asked.fetch_add(1, Ordering::Relaxed) < 3_000);
    let runs = explorer.progress().runs;
    // Workers that are ahead ask for runs that are not executed any more.
    assert!((1_000..=3_000).contains(&runs), "{runs}");
}

#[test]
fn a_merged_exploration_knows_what_both_knew_and_goes_on() {
    let run = |seed, runs: u64| {
        let mut model = counter();
        let mut explorer = Explorer::new(&mut model, Options { seed, ..Options::default() });
        explorer.explore(|p| p.runs < runs);
        explorer.known
    };
    let (mut one, other) = (run(1, 300), run(2, 200));
    let slots = |known: &Knowledge<(i64, bool)>| {
        known.features.iter().map(|(slot, _)| *slot).collect::<std::collections::BTreeSet<_>>()
    };
    let all = &slots(&one) | &slots(&other);
    // What comes again is not counted again, nor what comes by another way.
    let mut third = run(3, 100);
    third.merge(&other, (3, 2));
    one.merge(&other, (1, 2));
    let saved = one.checkpoints.saved();
    one.merge(&other, (1, 2));
    assert_eq!((one.tally.runs, one.checkpoints.saved()), (500, saved));
    let mut both = one.clone();
    both.merge(&third, (1, 3));
    assert_eq!(both.tally.runs, 600);
    third.merge(&both, (3, 1));
    assert_eq!((third.tally.runs, third.tally.counts.clone()), (600, both.tally.counts.clone()));
    assert_eq!(slots(&one), all);
    assert_eq!((one.tally.runs, one.progress().edges as usize), (500, all.len()));
    let states: Vec<_> = one.checkpoints.iter().map(|c| c.state).collect();
    assert_eq!(states.iter().collect::<std::collections::BTreeSet<_>>().len(), states.len());
    let ids: Vec<u64> = one.checkpoints.iter().map(|c| c.id).collect();
    assert!(ids.is_sorted() && ids.iter().all(|id| *id <= one.checkpoints.saved()));
    // Every checkpoint is what its steps lead to.
    let mut model = counter();
    for checkpoint in one.checkpoints.iter() {
        let mut trace = Trace::default();
        checkpoint.history.flatten(&mut trace);
        assert_eq!(replay(&mut model, &trace, false).0, Replayed::Passed);
        assert_eq!(Some(model.state), checkpoint.snapshot);
    }
    let mut models = [counter()];
    let mut explorer = Explorer::resume(&mut models, Options::default(), one);
    explorer.explore(|p| p.runs < 600);
    assert_eq!(explorer.progress().runs, 600);
}

/// Marks the lock's state before whose step the host stops the guest, see `Model::drift`.
const STOPPED: usize = 1000;

/// A lock that the host stops at the step with this number.
fn stopped_lock(at: u64) -> Model<usize> {
    let mut model = Model::new(0, &["press"], &[], |at, _, chooser, edge| {
        if *at == STOPPED {
            return Outcome::Stopped;
        }
        let is_right = integer(chooser, 0, 9) == (*at as i64 * 7 + 3) % 10;
        *at = if is_right { *at + 1 } else { 0 };
        edge(*at as u32);
        if *at == 8 { fail("open") } else { Outcome::Pass }
    });
    model.drift = Some((at, STOPPED));
    model
}

#[test]
fn a_run_that_was_stopped_never_was() {
    let options = || Options { seed: 3, ..Options::default() };
    let known = |explorer: &Explorer<'_, Model<usize>>| {
        let checkpoints: Vec<_> =
            explorer.checkpoints().iter().map(|c| (c.id, c.energy.to_bits(), c.selected)).collect();
        (explorer.progress(), checkpoints, explorer.findings().cloned().collect::<Vec<_>>())
    };
    let mut model = lock::<8>();
    let mut undisturbed = Explorer::new(&mut model, options());
    undisturbed.explore(|p| p.runs < 300);
    let (mut whole, mut torn) = (0, 0);
    for at in (0..1000).step_by(17) {
        for workers in [1, 3] {
            let mut models: Vec<_> = (0..workers).map(|_| stopped_lock(at)).collect();
            let mut explorer = Explorer::with_workers(&mut models, options());
            explorer.explore(|p| p.runs < 300);
            if explorer.is_torn() {
                torn += 1;
                continue;
            }
            whole += 1;
            assert_eq!(known(&explorer), known(&undisturbed), "step {at}, {workers} workers");
        }
    }
    assert!(whole > 50 && torn > 0, "{whole} {torn}");
}

/// A rule that draws 100,000 bytes, and takes one of four branches, other ones with each step.
fn bytes() -> Model<u32> {
    Model::new(0, &["draw"], &[], |at, _, chooser, edge| {
        let branch = match chooser.choose(Kind::Bytes { min: 100_000, max: 100_000 }) {
            Value::Bytes(bytes) => u32::from(bytes[0] % 4),
            other => unreachable!("{other:?}"),
        };
        edge((*at * 4 + branch).min(255));
        *at += 1;
        Outcome::Pass
    })
}

#[test]
fn steps_to_checkpoints_hold_no_more_than_they_may() {
    let kept = |history_bytes_max| {
        let mut model = bytes();
        let options = Options { history_bytes_max, steps_max: 200, ..Options::default() };
        let mut explorer = Explorer::new(&mut model, options);
        explorer.explore(|progress| progress.runs < 100);
        let histories = explorer.checkpoints().iter().map(|checkpoint| &checkpoint.history);
        let bytes = history::held_bytes(histories);
        // One is kept in any case.
        assert!(bytes <= history_bytes_max || explorer.checkpoints().len() == 1, "{bytes}");
        (explorer.checkpoints().saved(), explorer.checkpoints().len())
    };
    assert_eq!(kept(64 << 20), (64, 64));
    let (saved, left) = kept(6 << 20);
    assert!(saved > 64 && left < 10, "{saved} {left}");
}

#[test]
fn a_run_ends_once_its_answers_hold_much() {
    let mut model = bytes();
    let options = Options { strategy: Strategy::Random, steps_max: 1_000_000, ..Options::default() };
    let mut explorer = Explorer::new(&mut model, options);
    explorer.explore(|progress| progress.runs < 1);
    // With 8 MiB: the step that goes beyond is the last.
    assert_eq!(explorer.progress().steps, 84);
}

/// What steps that are replayed ask for does not count in the run that goes on from there.
#[test]
fn a_run_from_a_long_way_is_as_long_without_snapshots() {
    let explored = |uses_snapshots| {
        let mut model = bytes();
        model.uses_snapshots = uses_snapshots;
        let options = Options { steps_max: 100, ..Options::default() };
        let mut explorer = Explorer::new(&mut model, options);
        explorer.explore(|progress| progress.runs < 100);
        assert!(explorer.checkpoints().iter().any(|checkpoint| checkpoint.history.bytes() > 4 << 20));
        explorer.progress()
    };
    assert_eq!(explored(false), explored(true));
}

/// A rule that knows a word by itself, so that nothing shows how near an answer is.
fn word() -> Model<()> {
    Model::new((), &["say"], &[], |_, _, chooser, edge| {
        edge(0);
        match chooser.choose(Kind::Bytes { min: 0, max: 16 }) {
            Value::Bytes(said) if said.windows(6).any(|part| part == b"sesame") => fail("open"),
            _ => Outcome::Pass,
        }
    })
}

#[test]
fn tokens_are_given_to_rules() {
    let tokens = Tokens { given: std::sync::Arc::from([b"sesame"[..].into()]), ..Tokens::default() };
    let options = Options { seed: 1, ..Options::default() };
    assert_eq!(explore(&mut word(), options.clone(), 100_000).1.len(), 0);
    assert_eq!(explore(&mut word(), Options { tokens, ..options }, 100_000).1.len(), 1);
}
