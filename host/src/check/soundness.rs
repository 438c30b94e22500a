//! Tests of what would make a wrong *holds*.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

use super::tests::{ORDERS, all_findings, endless, flip, function, index, run};
use super::*;
use crate::choice::Chooser;
use crate::model::{Model, fail};
use crate::outcome::{Outcome, Reject};
use crate::trace::Action;

type Teardown = fn(u32) -> Outcome;

/// Counts to five, over and over; `teardown` is what happens in the end.
fn cycle(teardown: Teardown) -> Model<(u32, Teardown)> {
    let mut model = Model::new((0, teardown), &["next"], &[], |(at, teardown), action, _, _| {
        if action == Action::Teardown {
            return teardown(*at);
        }
        *at = (*at + 1) % 5;
        Outcome::Pass
    });
    model.has_teardown = true;
    model
}

/// A run may end after each step, so teardown is tried in every state.
#[test]
fn every_state_is_torn_down() {
    let three = |at| if at == 3 { fail("three") } else { Outcome::Pass };
    for order in ORDERS {
        for (prunes, steps_max) in [(true, None), (true, Some(3)), (false, Some(4))] {
            for (uses_snapshots, reduces, workers) in [(true, false, 1), (false, true, 3), (true, true, 2)] {
                let options = Options { prunes, steps_max, reduces, ..all_findings(order) };
                let mut models: Vec<_> = (0..workers).map(|_| cycle(three)).collect();
                models.iter_mut().for_each(|model| model.uses_snapshots = uses_snapshots);
                let checked = check(&mut models, &options, &endless, &mut |_, _| ()).unwrap();
                assert_eq!(checked.findings.len(), 1, "{options:?}");
                let actions = checked.findings[0].trace.steps().iter().map(|step| step.action);
                let rule = Action::Rule(0);
                assert_eq!(actions.collect::<Vec<_>>(), [rule, rule, rule, Action::Teardown]);
            }
        }
        let options = Options { order, steps_max: Some(2), ..Options::default() };
        let checked = run(cycle(three), &options);
        assert_eq!((checked.findings.len(), checked.limit), (0, Some(Limit::Steps)));
    }
}

/// Each teardown is the end of one run, and no step.
#[test]
fn a_run_ends_in_every_state() {
    let census = Census { runs: 5, rejected: 0, states: 5, pruned: 1, steps: 5, choices: 0, depth: 5 };
    for order in ORDERS {
        let checked = run(cycle(|_| Outcome::Pass), &Options { order, ..Options::default() });
        assert_eq!((checked.census, checked.limit), (census, None));
        let bound = Options { order, steps_max: Some(3), ..Options::default() };
        let checked = run(cycle(|_| Outcome::Pass), &bound);
        assert_eq!((checked.census.runs, checked.census.states, checked.limit), (4, 4, Some(Limit::Steps)));
    }
}

#[test]
fn a_function_is_torn_down_after_it_was_called() {
    for order in ORDERS {
        let mut model = function(|is_done, action, chooser, _| {
            if action == Action::Teardown {
                return if *is_done { Outcome::Pass } else { fail("it was not called") };
            }
            *is_done = true;
            flip(chooser);
            Outcome::Pass
        });
        (model.has_teardown, model.is_function) = (true, true);
        let checked = run(model, &Options { prunes: false, ..all_findings(order) });
        assert_eq!((checked.findings.len(), checked.census.runs, checked.limit), (0, 2, None));
    }
}

#[test]
fn no_run_is_no_check() {
    for order in ORDERS {
        for prunes in [true, false] {
            let options = Options { order, prunes, runs_max: Some(0), ..Options::default() };
            let checked = run(cycle(|_| Outcome::Pass), &options);
            assert_eq!((checked.census, checked.limit), (Census::default(), Some(Limit::Runs)));
        }
    }
}

/// The bound on runs is exact, wherever it falls.
#[test]
fn no_more_runs_than_wanted() {
    for order in ORDERS {
        for runs in 1..12 {
            let make = || {
                let mut model = Model::new(0, &["three"], &[], |at, _, chooser, _| {
                    *at = 3 * *at + 1 + index(chooser, 3);
                    Outcome::Pass
                });
                model.guard = |at, _| *at < 4;
                model
            };
            for workers in [1, 3] {
                let mut models: Vec<_> = (0..workers).map(|_| make()).collect();
                let options = Options { order, prunes: false, runs_max: Some(runs), ..Options::default() };
                let checked = check(&mut models, &options, &endless, &mut |_, _| ()).unwrap();
                let expected = if runs < 9 { (runs, Some(Limit::Runs)) } else { (9, None) };
                assert_eq!((checked.census.runs, checked.limit), expected, "{order:?} {runs}");
            }
        }
    }
}

#[test]
fn a_check_says_where_nothing_could_be_done() {
    let step = |_: &mut u32, action: Action, _: &mut Chooser, _: &mut dyn FnMut(u32)| match action {
        Action::Setup => Outcome::Pass,
        Action::Rule(0) => Outcome::Reject(Reject::Assume),
        _ => Outcome::Pass,
    };
    let rejects =
        |_: &mut u32, _: Action, _: &mut Chooser, _: &mut dyn FnMut(u32)| Outcome::Reject(Reject::Assume);
    for order in ORDERS {
        for prunes in [true, false] {
            let vacuity = |mut model: Model<u32>, has_setup: bool, has_teardown: bool| {
                (model.has_setup, model.has_teardown) = (has_setup, has_teardown);
                let options = Options { order, prunes, steps_max: Some(3), ..Options::default() };
                run(model, &options).vacuity(has_teardown)
            };
            let setup = Some("setup rejects every run, so nothing was checked");
            let all = Some("the guest rejects every run: what it assumes never holds");
            let none = Some("no rule may ever be called, so nothing was checked");
            assert_eq!(vacuity(Model::new(0, &["a"], &[], rejects), true, false), setup);
            assert_eq!(vacuity(Model::new(0, &["a"], &[], step), true, false), all);
            assert_eq!(vacuity(Model::new(0, &["a"], &[], step), false, true), None);
            assert_eq!(vacuity(Model::new(0, &["a"], &[], rejects), false, true), all);
            let mut never = Model::new(0, &["a"], &[], step);
            never.guard = |_, _| false;
            assert_eq!(vacuity(never, false, true), none);
            assert_eq!(vacuity(Model::new(0, &["a", "b"], &[], step), false, false), None);
        }
    }
}

/// Two rules that are declared independent, with what shows that they are not.
fn dependent(order: Order, uses_snapshots: bool, prunes: bool, workers: usize, which: usize) -> Box<Trouble> {
    let make = || {
        let mut model =
            Model::new((0u32, which), &["wait", "a", "b"], &[], |(at, which), action, chooser, _| {
                let Action::Rule(rule) = action else { unreachable!() };
                match (rule, *which) {
                    (0, _) => *at += 8,
                    // Either order, but for which of them was last.
                    (_, 0) => *at = *at / 8 * 8 + u32::from(rule),
                    // `a` makes `b` impossible, or possible.
                    (1, 1 | 2) => *at += 1,
                    // It asks for more after the other.
                    (2, 3) if *at % 2 == 1 => drop(index(chooser, 3)),
                    (1, 3) => *at |= 1,
                    (1, 4) => *at |= 1,
                    (2, 4) if *at % 2 == 1 => return Outcome::Reject(Reject::Assume),
                    (2, 5) if *at % 2 == 1 => return fail("after a"),
                    (1, 5) => *at |= 1,
                    _ => {}
                }
                Outcome::Pass
            });
        model.guard = |(at, which), rule| match (rule, which) {
            (0, _) => *at < 24,
            // Only after three waits is there anything to see.
            (1, _) => *at >= 24,
            (_, 1) => *at == 24,
            (_, 2) => *at == 25,
            _ => *at >= 24,
        };
        model.independent = vec![(1, 2)];
        model.uses_snapshots = uses_snapshots;
        model
    };
    let mut models: Vec<_> = (0..workers).map(|_| make()).collect();
    let options = Options { prunes, reduces: true, steps_max: Some(6), ..all_findings(order) };
    check(&mut models, &options, &endless, &mut |_, _| ()).unwrap_err()
}

#[test]
fn rules_that_do_not_commute_are_named() {
    let whys = [
        "the one order leads to another state than the other",
        "the one makes the other impossible",
        "the one makes the other possible",
        "the one has the other ask for something else",
        "the one order passes and the other does not",
        "the one order passes and the other does not",
    ];
    for (which, expected) in whys.into_iter().enumerate() {
        for order in ORDERS {
            for (uses_snapshots, prunes, workers) in [(true, true, 1), (false, true, 2), (true, false, 3)] {
                let trouble = dependent(order, uses_snapshots, prunes, workers, which);
                let TroubleKind::Dependent { rules, why } = trouble.kind else { panic!("{trouble:?}") };
                assert_eq!((rules, why, trouble.trace.len()), ([1, 2], expected, 3), "{which} {order:?}");
            }
        }
    }
}

/// A worker that panics is not waited for: the panic is that of the check.
#[test]
fn a_panic_of_a_worker_is_passed_on() {
    for order in ORDERS {
        for workers in [1, 2, 3] {
            let (sender, receiver) = mpsc::channel();
            std::thread::spawn(move || {
                let make = || {
                    let mut model = Model::new(0u32, &["flip"], &[], |at, _, chooser, _| {
                        (0..4).for_each(|_| *at = 2 * *at + 1 + u32::from(flip(chooser)));
                        assert!(*at != 300, "the model panics");
                        Outcome::Pass
                    });
                    model.guard = |at, _| *at < 4000;
                    model
                };
                let mut models: Vec<_> = (0..workers).map(|_| make()).collect();
                let options = Options { order, prunes: false, ..Options::default() };
                let checked = catch_unwind(AssertUnwindSafe(|| {
                    check(&mut models, &options, &endless, &mut |_, _| ()).map(|_| ())
                }));
                sender
                    .send(checked.map_err(|panic| panic.downcast_ref::<&str>().map(|text| text.to_string())))
            });
            let checked = receiver.recv_timeout(Duration::from_secs(30)).expect("the check ends");
            assert_eq!(checked, Err(Some("the model panics".to_string())), "{order:?} {workers}");
        }
    }
}

/// Breadth-first a step is tried in order, and again by a queue where its scripts differ in length: what the first
/// attempt told of is told of again, and nothing counts twice.
#[test]
fn a_step_that_is_tried_again_counts_once() {
    let make = || {
        function(|is_done, _, chooser, _| {
            *is_done = true;
            let mut length = 0;
            // The last answers are the longest.
            while length < 8 && (flip(chooser) || length < 6) {
                length += 1;
            }
            Outcome::Pass
        })
    };
    let most = Mutex::new(Census::default());
    let goes_on = |progress: &Progress| {
        let mut most = lock(&most);
        most.runs = most.runs.max(progress.census.runs);
        None
    };
    let options = Options { order: Order::Breadth, prunes: false, ..Options::default() };
    let breadth = check(&mut [make(), make()], &options, &goes_on, &mut |_, _| ()).unwrap();
    let depth = run(make(), &Options { order: Order::Depth, ..options });
    assert_eq!((breadth.census, breadth.rules[0].taken), (depth.census, depth.census.steps));
    assert!(lock(&most).runs <= 2 * depth.census.runs);
}

#[test]
fn a_check_whose_guest_is_stopped_is_not_complete() {
    for order in ORDERS {
        for prunes in [true, false] {
            for workers in [1, 3] {
                let stopped = || {
                    let mut model = Model::new(0u32, &["flip"], &[], |at, _, chooser, _| {
                        if *at == u32::MAX {
                            return Outcome::Stopped;
                        }
                        (0..4).for_each(|_| *at = 2 * *at + 1 + u32::from(flip(chooser)));
                        Outcome::Pass
                    });
                    model.guard = |at, _| *at < 4000;
                    model.drift = Some((50, u32::MAX));
                    model
                };
                let mut models: Vec<_> = (0..workers).map(|_| stopped()).collect();
                let goes_on = |_: &Progress| None;
                let options = Options { order, prunes, ..Options::default() };
                let checked = check(&mut models, &options, &goes_on, &mut |_, _| ()).unwrap();
                assert_eq!(checked.limit, Some(Limit::Interrupt), "{order:?} {prunes} {workers}");
                assert!(checked.findings.is_empty());
            }
        }
    }
}

#[test]
fn where_no_thread_can_be_started_one_worker_checks_alone() {
    for order in ORDERS {
        let make = || {
            let mut model = cycle(|_| Outcome::Pass);
            model.stack_bytes = Some(1 << 50);
            model
        };
        let options = Options { order, prunes: false, steps_max: Some(7), ..Options::default() };
        let checked = check(&mut [make(), make(), make()], &options, &endless, &mut |_, _| ()).unwrap();
        assert_eq!(checked, run(make(), &options));
        assert_eq!(checked.census.states, 8);
    }
}

/// Two counters up to 3, of which the model says only the first; the second matters `far` steps later.
fn forgetful(far: u32) -> Model<([u32; 2], u32)> {
    let mut model = Model::new(([0, 0], far), &["one", "other", "use"], &[], |(at, far), action, _, _| {
        match action {
            Action::Rule(0) => at[0] = (at[0] + 1).min(3 + *far),
            Action::Rule(1) => at[1] = (at[1] + 1).min(3),
            // What nothing but this rule sees.
            _ if at[0] == 3 + *far && at[1] == 2 => return fail("both"),
            _ => {}
        }
        Outcome::Pass
    });
    model.says = Some(|(at, _)| vec![at[0]]);
    model
}

#[test]
fn states_that_are_said_to_be_equal_and_are_not_are_shown() {
    for order in ORDERS {
        for far in [0, 1, 4] {
            let options = Options { order, ..Options::default() };
            let trouble = check(&mut [forgetful(far)], &options, &endless, &mut |_, _| ()).unwrap_err();
            let TroubleKind::Unequal { other, last, why, .. } = &trouble.kind else { panic!("{trouble:?}") };
            assert_eq!((*last, *why), (Action::Rule(2), "fails"));
            assert_ne!(trouble.trace, **other);
            // All of it said, it fails.
            let mut whole = forgetful(far);
            whole.says = Some(|(at, _)| at.to_vec());
            assert_eq!(run(whole, &options).findings.len(), 1);
        }
    }
}

#[test]
fn states_that_differ_in_who_is_who_are_equal() {
    for order in ORDERS {
        let mut model = Model::new([0u32; 3], &["step"], &[], |at, _, chooser, _| {
            let who = index(chooser, 3) as usize;
            at[who] = (at[who] + 1).min(2);
            Outcome::Pass
        });
        model.says = Some(|at| {
            let mut sorted = at.to_vec();
            sorted.sort_unstable();
            sorted
        });
        let checked = run(model, &Options { order, ..Options::default() });
        assert_eq!((checked.census.states, checked.limit), (10, None));
    }
}
