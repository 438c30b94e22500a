//! Exhaustive checks of the examples: exact verdicts, exact counts, whatever the way.

use std::collections::BTreeSet;

use spelunk::check::{self, Limit, Options, Order};
use spelunk::machine::{Machine, on_guest_stack};
use spelunk::property::PropertyKind;
use spelunk::story;
use spelunk_tests::checks::{default_options, fails, holds, machines, program, run, seen};

/// What each run notes, in the order in which they are visited.
fn listed(path: &str, features: &[&str], order: Order) -> Vec<String> {
    on_guest_stack(|| {
        let program = program(path, features);
        let mut teller = Machine::new(program.clone()).unwrap();
        let options = Options { order, prunes: false, lists: true, ..Options::default() };
        let mut notes = Vec::new();
        check::check(&mut machines(&program, 1), &options, &|_| None, &mut |trace, _| {
            notes.push(story::notes(&mut teller, trace, &|| false).join(" "));
        })
        .unwrap();
        notes
    })
}

#[test]
fn flips_come_in_the_order_of_rseq() {
    let three = ["fff", "fft", "ftf", "ftt", "tff", "tft", "ttf", "ttt"];
    let conditional = ["df", "de", "acf", "ace", "abf", "abe"];
    assert_eq!(listed("examples/flip", &[], Order::Depth), three);
    assert_eq!(listed("examples/flip", &[], Order::Breadth), three);
    assert_eq!(listed("examples/flip", &["conditional"], Order::Depth), conditional);
    assert_eq!(holds("examples/flip", &[]).runs, 8);
    assert_eq!(holds("examples/flip", &["conditional"]).runs, 6);
}

/// In seven simulations a read fails at each place where one is made, in Rust as in C.
#[test]
fn the_order_whose_last_error_is_dropped_is_found_in_rust_and_c() {
    let (message, _, census) = fails("examples/order", &[]);
    assert_eq!((message.as_str(), census.runs), ("a read failed, and there is an order", 7));
    assert_eq!(fails("examples/order/c/order.wasm", &[]).2.runs, 7);
    assert_eq!(holds("examples/order", &["fixed"]).runs, 7);
    assert_eq!(holds("examples/order/c/order-fixed.wasm", &[]).runs, 7);
}

#[test]
fn philosophers_deadlock_unless_they_take_forks_in_order() {
    let message = "a choice among nothing: no alternative is left";
    for (features, runs) in [(&["n2"][..], 14), (&[], 636)] {
        let (found, _, census) = fails("examples/philosophers", features);
        assert_eq!((found.as_str(), census.runs), (message, runs));
    }
    assert_eq!(holds("examples/philosophers", &["fixed", "n2"]).runs, 8);
    assert_eq!(holds("examples/philosophers", &["fixed"]).runs, 474);
    let (found, _, census) = fails("examples/philosophers", &["steps"]);
    assert_eq!((found.as_str(), census.states), (message, 64));
    assert_eq!(holds("examples/philosophers", &["steps", "fixed"]).states, 60);
}

/// The counts are those that TLC gives for TwoPhase.tla, Gray and Lamport, "Consensus on Transaction Commit".
#[test]
fn two_phase_commit_has_exactly_the_states_of_its_specification() {
    for (features, states) in [(&[][..], 288), (&["n4"], 1_568), (&["n5"], 8_832)] {
        assert_eq!(holds("examples/two-phase-commit", features).states, states);
    }
}

#[test]
fn two_phase_commit_with_seven_managers_has_296_448_states() {
    on_guest_stack(|| {
        let program = program("examples/two-phase-commit", &["n7"]);
        let checked = run(&program, 2, &default_options(&program));
        assert_eq!((checked.findings.len(), checked.limit), (0, None));
        assert_eq!((checked.census.states, checked.census.steps), (296_448, 2_744_705));
    })
}

#[test]
fn two_phase_commit_survives_faults_but_not_a_vote_that_is_not_written_down() {
    assert_eq!(holds("examples/two-phase-commit", &["faults"]).states, 3_084);
    let (_, steps, _) = fails("examples/two-phase-commit", &["mistake"]);
    assert_eq!(steps, 11);
}

#[test]
fn the_cache_forgets_the_wrong_key_after_three_steps() {
    assert_eq!(fails("examples/cache", &[]).1, 3);
    assert_eq!(holds("examples/cache", &["fixed"]).states, 3_561);
}

/// Whatever element of the text is missing or mangled: fourteen runs, and every error path is taken.
#[test]
fn every_error_path_of_a_parser_is_visited() {
    on_guest_stack(|| {
        let program = program("tests/guests/parser", &[]);
        let mut machines = machines(&program, 1);
        let options = Options { prunes: false, order: Order::Depth, ..Options::default() };
        let checked = check::check(&mut machines, &options, &|_| None, &mut |_, _| ()).unwrap();
        assert_eq!((checked.findings.len(), checked.limit, checked.census.runs), (0, None, 14));
        let properties = seen(&mut machines, &options);
        assert_eq!(properties.iter().filter(|p| p.kind == PropertyKind::Sometimes).count(), 4);
        assert!(properties.iter().all(|property| !property.is_unmet()));
    })
}

#[test]
fn memory_runs_out_at_every_allocation_in_turn() {
    assert_eq!(listed("tests/guests/allocation", &[], Order::Depth).len(), 4);
    assert_eq!(holds("tests/guests/allocation", &[]).runs, 4);
    let (message, _, census) = fails("tests/guests/allocation", &["careless"]);
    // Rust's standard library gives up where there is no memory, with a trap.
    assert_eq!((message.as_str(), census.runs), ("wasm `unreachable` instruction executed", 4));
}

/// Pruned and not, depth-first and breadth-first, one worker and several: within one bound on steps the verdict and
/// the failures are the same.
#[test]
fn every_way_of_checking_an_example_gives_one_verdict() {
    type Verdict = (BTreeSet<String>, Option<Limit>);
    let check = |path: &str, features: &[&str], steps_max: Option<u32>| {
        on_guest_stack(|| {
            let program = program(path, features);
            let mut verdicts: BTreeSet<String> = BTreeSet::new();
            for order in [Order::Depth, Order::Breadth] {
                for prunes in [true, false] {
                    for workers in [1, 3] {
                        let prunes = prunes && !program.is_function();
                        let options =
                            Options { order, prunes, steps_max, findings_max: 0, ..Options::default() };
                        let checked = run(&program, workers, &options);
                        let failures = checked.findings.iter().map(|finding| finding.failure.id());
                        let verdict: Verdict = (failures.collect(), checked.limit);
                        verdicts.insert(format!("{verdict:?}"));
                    }
                }
            }
            assert_eq!(verdicts.len(), 1, "{path} {features:?}: {verdicts:?}");
        })
    };
    check("examples/flip", &["conditional"], None);
    check("examples/order", &[], None);
    check("examples/order", &["fixed"], None);
    check("examples/philosophers", &[], None);
    check("examples/philosophers", &["steps"], Some(7));
    check("examples/two-phase-commit", &[], Some(5));
    check("examples/two-phase-commit", &["mistake"], Some(4));
    check("examples/cache", &[], Some(4));
    check("examples/cache", &["fixed"], Some(3));
    check("examples/bank", &[], Some(1));
    check("examples/lock", &[], Some(4));
}
