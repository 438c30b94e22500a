use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::choice::{Chooser, Value, mix};
use crate::model::{Model, fail};
use crate::outcome::{Outcome, Reject};
use crate::replay::{Replayed, replay};
use crate::trace::Action;

pub(super) const ORDERS: [Order; 2] = [Order::Depth, Order::Breadth];

pub(super) fn endless(_: &Progress) -> Option<Limit> {
    None
}

pub(super) fn run<S: Clone + std::fmt::Debug + Send + Sync>(model: Model<S>, options: &Options) -> Checked {
    check(&mut [model], options, &endless, &mut |_, _| ()).unwrap()
}

pub(super) fn flip(chooser: &mut Chooser) -> bool {
    *chooser.choose(Kind::Boolean { probability: 0.5 }) == Value::Boolean(true)
}

pub(super) fn index(chooser: &mut Chooser, n: u32) -> u32 {
    match *chooser.choose(Kind::Index { n }) {
        Value::Index(v) => v,
        ref other => unreachable!("{other:?}"),
    }
}

/// One function: its only rule may be called once.
pub(super) fn function(
    body: fn(&mut bool, Action, &mut Chooser, &mut dyn FnMut(u32)) -> Outcome,
) -> Model<bool> {
    let mut model = Model::new(false, &["check"], &[], body);
    model.guard = |is_done, _| !is_done;
    model
}

/// What each path answered, in the order of the visits.
fn answers(make: fn() -> Model<bool>, order: Order) -> String {
    let options = Options { order, prunes: false, lists: true, ..Options::default() };
    let mut paths = Vec::new();
    check(&mut [make(), make()], &options, &endless, &mut |trace, _| {
        let values = trace.steps().iter().flat_map(|step| trace.choices(step));
        paths.push(
            values
                .map(|choice| match choice.value {
                    Value::Boolean(v) => if v { "t" } else { "f" }.to_string(),
                    ref other => other.to_string(),
                })
                .collect::<String>(),
        );
    })
    .unwrap();
    paths.join(" ")
}

#[test]
fn the_orders_are_those_of_rseq_and_explode() {
    let flips = || {
        function(|is_done, _, chooser, _| {
            *is_done = true;
            for _ in 0..3 {
                flip(chooser);
            }
            Outcome::Pass
        })
    };
    let threes = || {
        function(|is_done, _, chooser, _| {
            *is_done = true;
            for _ in 0..2 {
                index(chooser, 3);
            }
            Outcome::Pass
        })
    };
    for order in ORDERS {
        assert_eq!(answers(flips, order), "fff fft ftf ftt tff tft ttf ttt");
        assert_eq!(answers(threes, order), "00 01 02 10 11 12 20 21 22");
    }
    // Once true there is one more flip.
    let conditional = || {
        function(|is_done, _, chooser, _| {
            *is_done = true;
            if flip(chooser) {
                flip(chooser);
            }
            flip(chooser);
            Outcome::Pass
        })
    };
    for order in ORDERS {
        assert_eq!(answers(conditional, order), "ff ft tff tft ttf ttt");
    }
    // Depth-first to the end of each path; breadth-first the shortest first.
    let uneven = || {
        function(|is_done, _, chooser, _| {
            *is_done = true;
            if !flip(chooser) {
                flip(chooser);
            }
            Outcome::Pass
        })
    };
    assert_eq!(answers(uneven, Order::Depth), "ff ft t");
    assert_eq!(answers(uneven, Order::Breadth), "t ff ft");
}

/// A machine whose moves are random, but always the same for one seed.
#[derive(Clone, Debug)]
struct Random {
    seed: u64,
    at: u64,
    is_on: bool,
}

fn random(seed: u64, has_fault: bool) -> Model<Random> {
    let faults: &[&str] = if has_fault { &["f"] } else { &[] };
    let mut model = Model::new(
        Random { seed, at: 0, is_on: false },
        &["a", "b", "c"],
        faults,
        |state, action, chooser, _| {
            let states = 4 + state.seed % 9;
            let number = match action {
                Action::Setup => {
                    state.at = u64::from(index(chooser, 2));
                    return Outcome::Pass;
                }
                Action::Rule(rule) => u64::from(rule),
                Action::Fault(_, on) => {
                    state.is_on = on;
                    return Outcome::Pass;
                }
                Action::Teardown | Action::Deadlock | Action::Loop | Action::Again(_) => 9,
            };
            let place = mix(state.seed, state.at * 32 + number * 2 + u64::from(state.is_on));
            let mut answer = u64::from(index(chooser, 1 + (place % 3) as u32));
            if place.is_multiple_of(5) && flip(chooser) {
                answer += 10 * u64::from(flip(chooser));
            }
            let hash = mix(place, answer);
            if action != Action::Teardown {
                state.at = hash % states;
            }
            match hash >> 32 {
                h if h.is_multiple_of(40) => fail(["one", "two", "three"][(hash >> 8) as usize % 3]),
                h if h.is_multiple_of(23) => Outcome::Reject(Reject::Assume),
                _ => Outcome::Pass,
            }
        },
    );
    model.guard = |state, rule| !mix(!state.seed, state.at * 8 + u64::from(rule)).is_multiple_of(3);
    model.has_setup = seed.is_multiple_of(2);
    model.has_teardown = seed.is_multiple_of(3);
    model
}

/// The ids of the failures, and what kept the check from being complete.
fn verdict(checked: &Checked) -> (Vec<String>, Option<Limit>) {
    let mut failures: Vec<String> = checked.findings.iter().map(|f| f.failure.id()).collect();
    failures.sort();
    (failures, checked.limit)
}

pub(super) fn all_findings(order: Order) -> Options {
    Options { order, findings_max: 0, ..Options::default() }
}

/// On a hundred random models: no way of checking changes the verdict, nor what is counted where it is well
/// defined.
#[test]
fn every_way_of_checking_gives_one_verdict() {
    let (mut failing, mut bounded) = (0, 0);
    for seed in 0..100 {
        let make = || random(seed, seed % 4 == 1);
        let breadth = run(make(), &all_findings(Order::Breadth));
        let depth = run(make(), &all_findings(Order::Depth));
        assert_eq!(verdict(&breadth), verdict(&depth), "seed {seed}");
        let without_depth = |checked: &Checked| Census { depth: 0, ..checked.census };
        assert_eq!(without_depth(&breadth), without_depth(&depth), "seed {seed}");
        failing += usize::from(!breadth.findings.is_empty());
        for steps in 0..5 {
            let options = |order, prunes| Options { steps_max: Some(steps), prunes, ..all_findings(order) };
            let breadth = run(make(), &options(Order::Breadth, true));
            let depth = run(make(), &options(Order::Depth, true));
            assert_eq!(verdict(&breadth), verdict(&depth), "seed {seed}, {steps} steps");
            assert_eq!(breadth.census.states, depth.census.states, "seed {seed}, {steps} steps");
            let (tree, other) =
                (run(make(), &options(Order::Breadth, false)), run(make(), &options(Order::Depth, false)));
            assert_eq!(tree.census, other.census, "seed {seed}, {steps} steps");
            assert_eq!(verdict(&tree), verdict(&other), "seed {seed}, {steps} steps");
            // Where the tree goes on at the bound, all states may be known.
            assert_eq!(verdict(&tree).0, verdict(&breadth).0, "seed {seed}, {steps} steps");
            assert!(tree.limit.is_some() || breadth.limit.is_none(), "seed {seed}, {steps} steps");
            bounded += usize::from(breadth.limit.is_some());
        }
    }
    assert_eq!((failing, bounded), (72, 338));
}

/// Snapshots, the room for them and workers change nothing at all.
#[test]
fn neither_snapshots_nor_workers_change_a_result() {
    for seed in 0..60 {
        let make = |uses_snapshots: bool| {
            let mut model = random(seed, seed % 4 == 1);
            model.uses_snapshots = uses_snapshots;
            model
        };
        for order in ORDERS {
            for prunes in [true, false] {
                let steps_max = Some(4);
                for findings_max in [0, 2] {
                    let options =
                        Options { order, prunes, steps_max, findings_max, lists: true, ..Options::default() };
                    let list = |models: &mut [Model<Random>], options: &Options| {
                        let mut told = Vec::new();
                        let checked = check(models, options, &endless, &mut |trace, end| {
                            told.push((trace.clone(), end.clone()));
                        });
                        (checked.unwrap(), told)
                    };
                    let expected = list(&mut [make(true)], &options);
                    assert_eq!(list(&mut [make(false)], &options), expected, "seed {seed}");
                    let small = Options { saved_bytes_max: 0, ..options.clone() };
                    assert_eq!(list(&mut [make(true)], &small), expected, "seed {seed}");
                    let mut three = [make(true), make(true), make(true)];
                    assert_eq!(list(&mut three, &options), expected, "seed {seed}");
                    let silent = Options { lists: false, ..options };
                    assert_eq!(list(&mut three, &silent).0, expected.0, "seed {seed}");
                    let mut three = [make(false), make(false), make(false)];
                    assert_eq!(list(&mut three, &silent).0, expected.0, "seed {seed}");
                }
            }
        }
    }
}

/// Every finding replays, breadth-first with a shortest trace.
#[test]
fn findings_replay() {
    for seed in 0..60 {
        for order in ORDERS {
            for finding in run(random(seed, seed % 4 == 1), &all_findings(order)).findings {
                let (replayed, _) = replay(&mut random(seed, seed % 4 == 1), &finding.trace, false);
                assert_eq!(replayed, Replayed::Failed(Box::new(finding.failure)));
            }
        }
    }
}

#[test]
fn breadth_first_finds_a_shortest_path() {
    let make = || {
        Model::new(0, &["one", "two", "three"], &[], |at, action, _, _| {
            let Action::Rule(rule) = action else { unreachable!() };
            *at += i32::from(rule) + 1;
            if *at == 7 { fail("seven") } else { Outcome::Pass }
        })
    };
    let rules = |order| {
        let checked = run(make(), &Options { order, findings_max: 1, ..Options::default() });
        let steps = checked.findings[0].trace.steps().to_vec();
        steps.iter().map(|step| format!("{:?} ", step.action)).collect::<String>()
    };
    assert_eq!(rules(Order::Depth), "Rule(0) ".repeat(7));
    assert_eq!(rules(Order::Breadth), "Rule(0) Rule(2) Rule(2) ");
}

/// Depth-first comes to two by two steps first, and later by one: what is three steps from there is within the
/// bound only then.
#[test]
fn a_state_reached_in_fewer_steps_is_explored_again() {
    let make = || {
        let mut model = Model::new(0, &["next", "jump"], &[], |at, action, _, _| {
            *at += if action == Action::Rule(0) { 1 } else { 2 };
            if *at == 5 { fail("five") } else { Outcome::Pass }
        });
        model.guard = |at, rule| rule == 0 || *at == 0;
        model
    };
    let bound = |order, steps| Options { order, steps_max: Some(steps), ..Options::default() };
    for order in ORDERS {
        assert_eq!(run(make(), &bound(order, 4)).findings.len(), 1);
        let checked = run(make(), &bound(order, 3));
        assert_eq!(
            (checked.findings.len(), checked.limit, checked.census.states),
            (0, Some(Limit::Steps), 5)
        );
    }
}

#[test]
fn the_bound_is_a_limit_only_where_something_is_left_to_do() {
    let make = || {
        let mut model = Model::new(0, &["next"], &[], |at, _, _, _| {
            *at += 1;
            Outcome::Pass
        });
        model.guard = |at, _| *at < 3;
        model
    };
    for order in ORDERS {
        for prunes in [true, false] {
            let limit = |steps| {
                run(make(), &Options { order, prunes, steps_max: Some(steps), ..Options::default() }).limit
            };
            assert_eq!((limit(2), limit(3), limit(4)), (Some(Limit::Steps), None, None));
        }
    }
}

/// Three flips of four in a row; the tree has 2^12 leaves.
fn tree() -> Model<u32> {
    let mut model = Model::new(0, &["flip"], &[], |at, _, chooser, _| {
        (0..4).for_each(|_| *at = 2 * *at + 1 + u32::from(flip(chooser)));
        Outcome::Pass
    });
    model.guard = |at, _| *at < 4000;
    model
}

#[test]
fn a_census_counts_the_tree() {
    let census = Census {
        runs: 4096,
        rejected: 0,
        states: 1 + 16 + 256 + 4096,
        pruned: 0,
        steps: 16 + 256 + 4096,
        choices: 15 * (1 + 16 + 256),
        depth: 3,
    };
    for order in ORDERS {
        for prunes in [true, false] {
            for workers in [1, 2, 5] {
                let mut models: Vec<Model<u32>> = (0..workers).map(|_| tree()).collect();
                let options = Options { order, prunes, ..Options::default() };
                let checked = check(&mut models, &options, &endless, &mut |_, _| ()).unwrap();
                assert_eq!((checked.census, checked.limit), (census, None));
                // Depth-first without comparison the work is divided, and none is done twice.
                if order == Order::Depth && !prunes {
                    assert_eq!(models.iter().map(|model| model.steps).sum::<u64>(), census.steps);
                }
            }
        }
    }
}

#[test]
fn limits_end_a_check() {
    let mut runs = Vec::new();
    for order in ORDERS {
        let checked =
            run(tree(), &Options { order, runs_max: Some(100), prunes: false, ..Options::default() });
        assert_eq!((checked.census.runs, checked.limit), (100, Some(Limit::Runs)));
        let all = run(tree(), &Options { order, runs_max: Some(4096), ..Options::default() });
        assert_eq!((all.census.runs, all.limit), (4096, None));
        let polls = AtomicU64::new(0);
        let goes_on =
            |_: &Progress| (polls.fetch_add(1, Ordering::Relaxed) == 20).then_some(Limit::Interrupt);
        let options = Options { order, ..Options::default() };
        let checked = check(&mut [tree()], &options, &goes_on, &mut |_, _| ()).unwrap();
        assert_eq!(checked.limit, Some(Limit::Interrupt));
        runs.push(checked.census.runs);
    }
    assert_eq!(runs, [295, 0]);
}

#[test]
fn a_check_of_endlessly_many_states_ends_where_they_hold_too_much() {
    for order in ORDERS {
        let counter = Model::new(0u64, &["count"], &[], |state, _, _, _| {
            *state += 1;
            Outcome::Pass
        });
        let checked = run(counter, &Options { order, met_bytes_max: 1 << 20, ..Options::default() });
        assert_eq!((checked.findings.len(), checked.limit), (0, Some(Limit::Memory)));
        assert!((1_000..20_000).contains(&checked.census.states), "{order:?}: {:?}", checked.census);
    }
}

#[test]
fn progress_says_which_part_of_the_tree_is_done() {
    let done = Mutex::new(Vec::new());
    let goes_on = |progress: &Progress| {
        lock(&done).push((progress.done, progress.census.runs));
        None
    };
    let options = Options { order: Order::Depth, prunes: false, ..Options::default() };
    check(&mut [tree()], &options, &goes_on, &mut |_, _| ()).unwrap();
    for (done, runs) in lock(&done).iter() {
        assert!((done * 4096.0 - *runs as f64).abs() < 20.0, "{done} {runs}");
    }
}

#[test]
fn a_choice_with_too_many_alternatives_is_named() {
    for order in ORDERS {
        let mut model = Model::new(0i64, &["add"], &[], |at, _, chooser, _| {
            flip(chooser);
            if *at == 1 {
                chooser.choose(Kind::Integer { min: 0, max: 100, simplest: 0 });
            }
            *at += 1;
            Outcome::Pass
        });
        model.guard = |at, _| *at < 3;
        let options = Options { order, alternatives_max: 100, ..Options::default() };
        let trouble = check(&mut [model], &options, &endless, &mut |_, _| ()).unwrap_err();
        let kind = Kind::Integer { min: 0, max: 100, simplest: 0 };
        assert_eq!((trouble.trace.len(), trouble.kind), (2, TroubleKind::Unbounded(1, kind)));
    }
}

#[test]
fn another_question_than_before_is_nondeterminism() {
    for order in ORDERS {
        // The fourth step that is performed asks for one of five, and for one of two whenever else.
        let mut model = Model::new(2, &["add"], &[], |n, _, chooser, _| {
            index(chooser, *n);
            Outcome::Pass
        });
        model.drift = Some((3, 5));
        let options = Options { order, prunes: false, steps_max: Some(2), ..Options::default() };
        let trouble = check(&mut [model], &options, &endless, &mut |_, _| ()).unwrap_err();
        let TroubleKind::Nondeterminism(why) = &trouble.kind else { panic!("{trouble:?}") };
        let expected = "choice 1 asked for an index below 2, and now asks for an index below 5";
        let steps = if order == Order::Depth { 1 } else { 2 };
        assert_eq!((&**why, trouble.trace.len()), (expected, steps));
    }
}

/// Three automata that do not see one another, with rules that are independent across them; whether a state fails
/// depends on all three.
#[derive(Clone, Debug)]
struct Apart {
    seed: u64,
    at: [u8; 3],
}

fn apart(seed: u64) -> Model<Apart> {
    let rules = ["a1", "a2", "b1", "b2", "c1", "c2"];
    let mut model = Model::new(Apart { seed, at: [0; 3] }, &rules, &[], |state, action, chooser, _| {
        let Action::Rule(rule) = action else { unreachable!() };
        let part = usize::from(rule / 2);
        let place = mix(state.seed, u64::from(rule) * 16 + u64::from(state.at[part]));
        let answer = index(chooser, 1 + (place % 2) as u32);
        state.at[part] = (mix(place, answer.into()) % 5) as u8;
        let all = state.at.iter().fold(state.seed, |hash, at| mix(hash, u64::from(*at)));
        if state.seed.is_multiple_of(2) && all.is_multiple_of(60) { fail("together") } else { Outcome::Pass }
    });
    model.guard = |state, rule| {
        let at = state.at[usize::from(rule / 2)];
        !mix(!state.seed, u64::from(rule) * 16 + u64::from(at)).is_multiple_of(3)
    };
    for a in 0..6 {
        model.independent.extend((0..6).filter(|b| a / 2 < b / 2).map(|b| (a, b)));
    }
    model
}

#[test]
fn reduction_leaves_the_verdict_and_the_states() {
    let (mut steps_all, mut steps_reduced, mut failing) = (0, 0, 0);
    for seed in 0..60 {
        for order in ORDERS {
            for (prunes, steps_max) in [(true, None), (true, Some(5)), (false, Some(4))] {
                let options = Options { prunes, steps_max, ..all_findings(order) };
                let all = run(apart(seed), &options);
                let options = Options { reduces: true, ..options };
                let reduced = run(apart(seed), &options);
                assert_eq!(verdict(&all).0, verdict(&reduced).0, "seed {seed}");
                failing += usize::from(!all.findings.is_empty());
                if all.findings.is_empty() {
                    assert_eq!(all.limit, reduced.limit, "seed {seed}");
                    if prunes {
                        assert_eq!(all.census.states, reduced.census.states, "seed {seed}");
                    }
                    steps_all += all.census.steps;
                    steps_reduced += reduced.census.steps;
                }
                let mut three = [apart(seed), apart(seed), apart(seed)];
                let again = check(&mut three, &options, &endless, &mut |_, _| ()).unwrap();
                assert_eq!(again, reduced, "seed {seed}");
            }
        }
    }
    assert_eq!((failing, steps_reduced, steps_all), (48, 75_376, 279_067));
}
