//! States in which no rule may be called.

use std::sync::Arc;

use spelunk::budget::Budget;
use spelunk::check::{self, Checked, Options, Order};
use spelunk::file::{Conditions, Environment};
use spelunk::machine::{Machine, Program};
use spelunk::outcome::Found;
use spelunk::replay::{Replayed, replay};
use spelunk::search::energy::Strategy;
use spelunk::trace::{Action, Trace};
use spelunk_tests::checks::{default_options, program, run};
use spelunk_tests::{check_replays, explore, machine, on_guest_stack, seeded, shrunk, steps_of};

const DEADLOCK: &str =
    "deadlock: no rule may be called; where a run may end so, say it in `terminal`, or give --allow-deadlock";

/// Two who eat with two forks, which they take in opposite order and give back together.
fn forks(rest: &str) -> String {
    let one = |name, at, first, second| {
        let needed = format!(
            "(select (i32.const {first}) (i32.const {second}) (i32.eqz (i32.load (i32.const {at}))))"
        );
        format!(
            r#"(func (export "precondition:{name}") (result i32)
              (i32.or (i32.eq (i32.load (i32.const {at})) (i32.const 2)) (i32.eqz (i32.load {needed}))))
            (func (export "rule:{name}")
              (if (i32.eq (i32.load (i32.const {at})) (i32.const 2))
                (then (i64.store (i32.const 8) (i64.const 0)) (i32.store (i32.const {at}) (i32.const 0)))
                (else
                  (i32.store {needed} (i32.const 1))
                  (i32.store (i32.const {at}) (i32.add (i32.load (i32.const {at})) (i32.const 1))))))"#
        )
    };
    format!("(module (memory 1) {} {} {rest})", one("one", 0, 8, 12), one("other", 4, 12, 8))
}

fn loaded(wat: &str, allows_deadlock: bool) -> Arc<Program> {
    let environment = Environment { allows_deadlock, ..Environment::default() };
    let conditions = Conditions { environment, ..Conditions::default() };
    let wasm = wat::parse_str(wat).unwrap();
    Arc::new(Program::load_in(&wasm, conditions, None, &Budget::unlimited()).unwrap())
}

fn checked(program: &Arc<Program>, order: Order, workers: usize) -> Checked {
    let mut machines: Vec<Machine> = (0..workers).map(|_| machine(program)).collect();
    let options = Options { order, ..Options::default() };
    check::check(&mut machines, &options, &|_| None, &mut |_, _| ()).unwrap()
}

/// What is found in `wat`, breadth-first, each with the steps to it; the same in the other order.
fn failures(wat: &str, allows_deadlock: bool) -> Vec<(String, usize)> {
    let program = loaded(wat, allows_deadlock);
    let of = |found: &Found| {
        check_replays(&program, &found.trace, &found.failure);
        (found.failure.to_string(), steps_of(&found.trace))
    };
    let all: Vec<Checked> = [(Order::Breadth, 1), (Order::Breadth, 2), (Order::Depth, 1), (Order::Depth, 2)]
        .map(|(order, workers)| checked(&program, order, workers))
        .into();
    let found = all[0].findings.iter().map(of).collect::<Vec<_>>();
    for other in &all {
        assert_eq!(other.census.states, all[0].census.states);
        let others: Vec<String> = other.findings.iter().map(|found| of(found).0).collect();
        assert!(others.iter().eq(found.iter().map(|(failure, _)| failure)), "{others:?}");
    }
    found
}

#[test]
fn taking_forks_in_opposite_order_is_found() {
    on_guest_stack(|| {
        let program = loaded(&forks(""), false);
        let checked = checked(&program, Order::Breadth, 1);
        assert_eq!((checked.census.states, checked.findings.len()), (6, 1));
        let found = &checked.findings[0];
        let actions: Vec<Action> = found.trace.steps().iter().map(|step| step.action).collect();
        assert_eq!(actions, [Action::Rule(0), Action::Rule(1), Action::Deadlock]);
        assert_eq!(found.failure.to_string(), DEADLOCK);
        for strategy in [Strategy::Random, Strategy::Novel] {
            let mut machine = machine(&program);
            let options = spelunk::search::Options { strategy, ..seeded(1) };
            let (found, _) = explore(&mut machine, options, 1_000);
            let found = found.expect("it is found");
            check_replays(&program, &found.trace, &found.failure);
            assert_eq!(steps_of(&shrunk(&mut machine, &found).trace), 2);
        }
    });
}

/// No rule stands in the place of the deadlock, though it fails alike whatever is to be called there.
#[test]
fn a_deadlock_is_shrunk_to_one() {
    on_guest_stack(|| {
        // The simplest answer asks for more than the other, so steps are rewritten.
        let wat = r#"(module (import "spelunk" "index" (func $index (param i32) (result i32)))
          (memory (export "memory") 1) (global $n (mut i32) (i32.const 0))
          (func (export "precondition:go") (result i32) (i32.lt_u (global.get $n) (i32.const 3)))
          (func (export "rule:go")
            (if (i32.eqz (call $index (i32.const 2)))
              (then (drop (call $index (i32.const 2))) (drop (call $index (i32.const 2)))))
            (global.set $n (i32.add (global.get $n) (i32.const 1)))))"#;
        let program = loaded(wat, false);
        let mut found = checked(&program, Order::Depth, 1).findings;
        for seed in 1..4 {
            found.extend(explore(&mut machine(&program), seeded(seed), 1_000).0);
        }
        assert_eq!(found.len(), 4);
        for found in &found {
            let shrunk = shrunk(&mut machine(&program), found);
            let actions: Vec<Action> = shrunk.trace.steps().iter().map(|step| step.action).collect();
            let go = Action::Rule(0);
            assert_eq!(actions, [go, go, go, Action::Deadlock]);
            let asked: Vec<usize> =
                shrunk.trace.steps().iter().map(|step| shrunk.trace.choices(step).len()).collect();
            assert_eq!(asked, [1, 1, 1, 0]);
            check_replays(&program, &shrunk.trace, &shrunk.failure);
        }
    });
}

#[test]
fn a_guest_says_which_states_are_terminal() {
    on_guest_stack(|| {
        let terminal = |body: &str| forks(&format!(r#"(func (export "terminal") (result i32) {body})"#));
        let both_wait = "(i32.eq (i32.load (i32.const 0)) (i32.load (i32.const 4)))";
        assert_eq!(failures(&terminal(both_wait), false), []);
        let said = "deadlock: no rule may be called; `terminal` says that no run may end so".to_string();
        assert_eq!(failures(&terminal("(i32.const 0)"), false), [(said, 2)]);
        // As where a precondition fails, the trace ends with a rule that was to be called.
        let trap = "trap: wasm `unreachable` instruction executed".to_string();
        assert_eq!(failures(&terminal("unreachable"), false), [(trap, 3)]);
        // It may write, as a precondition may.
        let writes = "(i32.store (i32.const 16) (i32.const 1)) (i32.const 1)";
        assert_eq!(failures(&terminal(writes), false), []);
        assert_eq!(failures(&forks(""), true), []);
    });
}

#[test]
fn faults_alone_keep_nothing_alive() {
    on_guest_stack(|| {
        let wat = r#"(module (memory 1)
          (func (export "fault:down") (param i32) (i32.store (i32.const 0) (local.get 0)))
          (func (export "precondition:go") (result i32) (i32.eqz (i32.load (i32.const 0))))
          (func (export "rule:go")))"#;
        assert_eq!(failures(wat, false), [(DEADLOCK.to_string(), 1)]);
    });
}

#[test]
fn a_trace_to_a_deadlock_that_is_none_diverges() {
    on_guest_stack(|| {
        let program = loaded(&forks(""), false);
        let mut trace = Trace::default();
        trace.push(Action::Rule(0), 0);
        trace.push(Action::Deadlock, 0);
        let (replayed, _) = replay(&mut machine(&program), &trace, false);
        let why = "a rule may be called here, or a run may end".to_string();
        assert_eq!(replayed, Replayed::Diverged { step: 1, why });
    });
}

/// It has the number of the second task, and does not wake that.
#[test]
fn a_waker_of_a_task_that_has_ended_wakes_nobody() {
    on_guest_stack(|| {
        let program = program("tests/guests/tasks", &["ended"]);
        let checked = run(&program, 1, &default_options(&program));
        let failures: Vec<String> = checked.findings.iter().map(|found| found.failure.to_string()).collect();
        assert_eq!(failures, ["deadlock: a choice among nothing: no alternative is left"]);
    });
}
