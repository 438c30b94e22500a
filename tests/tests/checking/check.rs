//! Exhaustive checks of WebAssembly guests: whatever the order, the workers and the snapshots, one verdict.

use std::sync::Arc;

use spelunk::check::{self, Census, Checked, Limit, Options, Order, TroubleKind};
use spelunk::machine::{Edges, Limits, Machine, Program, Selection};
use spelunk::replay::{Replayed, replay};
use spelunk::target::Target;
use spelunk::trace::{Action, Trace};
use spelunk_tests::checks::seen;

fn program(wat: &str) -> Arc<Program> {
    let wasm = wat::parse_str(wat).unwrap();
    let selection = Selection { edges: Edges::None, ..Selection::default() };
    Arc::new(Program::load(&wasm, Limits::default(), selection).unwrap())
}

fn machines(program: &Arc<Program>, count: usize) -> Vec<Machine> {
    (0..count).map(|_| Machine::new(program.clone()).unwrap()).collect()
}

fn run(machines: &mut [Machine], options: &Options) -> Checked {
    check::check(machines, options, &|_| None, &mut |_, _| ()).unwrap()
}

fn failures(checked: &Checked) -> Vec<String> {
    let mut failures: Vec<String> = checked.findings.iter().map(|f| f.failure.id()).collect();
    failures.sort();
    failures
}

/// Checks `wat` in every way; the census of the breadth-first check where states are compared.
fn everywhere(wat: &str, steps: u32) -> Census {
    let program = program(wat);
    let mut result = None;
    for order in [Order::Breadth, Order::Depth] {
        for (prunes, steps_max) in [(true, None), (true, Some(steps)), (false, Some(steps))] {
            let options = Options { order, prunes, steps_max, findings_max: 0, ..Options::default() };
            let expected = run(&mut machines(&program, 1), &options);
            assert_eq!(run(&mut machines(&program, 3), &options), expected);
            let mut replayed = machines(&program, 2);
            replayed.iter_mut().for_each(|machine| machine.set_uses_snapshots(false).unwrap());
            assert_eq!(run(&mut replayed, &options), expected);
            let small = Options { saved_bytes_max: 0, ..options.clone() };
            assert_eq!(run(&mut machines(&program, 2), &small), expected);
            for finding in &expected.findings {
                let (replayed, _) = replay(&mut machines(&program, 1)[0], &finding.trace, false);
                assert_eq!(replayed, Replayed::Failed(Box::new(finding.failure.clone())));
            }
            let first = result.get_or_insert(expected.clone());
            if steps_max.is_none() {
                assert_eq!(failures(&expected), failures(first));
                let same = |census: Census| Census { depth: 0, ..census };
                assert_eq!(same(expected.census), same(first.census));
            }
        }
    }
    result.unwrap().census
}

/// A queue of two places with a fault that empties it; preconditions write to memory, setup and teardown choose.
const QUEUE: &str = r#"(module
  (import "spelunk" "index" (func $index (param i32) (result i32)))
  (import "spelunk" "fault" (func $fault (param i32 i32) (result i32)))
  (import "spelunk" "reject" (func $reject))
  (memory 1) (data (i32.const 5000) "lossy") (global $len (mut i32) (i32.const 0))
  (table $t 2 funcref) (elem (i32.const 0) func $one $two)
  (func $one (result i32) (i32.const 1)) (func $two (result i32) (i32.const 2))
  (func (export "setup") (i32.store (i32.const 0) (call $index (i32.const 2))))
  (func (export "rule:push")
    (i32.store8 (i32.add (i32.const 8) (global.get $len))
      (call_indirect $t (result i32) (call $index (i32.const 2))))
    (global.set $len (i32.add (global.get $len) (i32.const 1)))
    (if (call $fault (i32.const 5000) (i32.const 5)) (then (global.set $len (i32.const 0)))))
  (func (export "precondition:push") (result i32)
    ;; How often it was asked is part of the state until it is three.
    (if (i32.lt_u (i32.load (i32.const 4)) (i32.const 3)) (then
      (i32.store (i32.const 4) (i32.add (i32.load (i32.const 4)) (i32.const 1)))))
    (i32.lt_u (global.get $len) (i32.const 2)))
  (func (export "rule:pop")
    (global.set $len (i32.sub (global.get $len) (i32.const 1)))
    (if (i32.eqz (global.get $len)) (then (i32.store8 (i32.const 8) (i32.const 0)))))
  (func (export "precondition:pop") (result i32) (i32.gt_u (global.get $len) (i32.load (i32.const 0))))
  (func (export "rule:swap")
    (if (i32.ne (global.get $len) (i32.const 2)) (then (call $reject)))
    (if (i32.eq (i32.load16_u (i32.const 8)) (i32.const 0x0202)) (then unreachable)))
  (func (export "fault:lossy") (param i32))
  (func (export "teardown") (drop (call $index (i32.const 2)))))"#;

#[test]
fn every_way_of_checking_gives_one_result() {
    let census = everywhere(QUEUE, 4);
    assert!(census.states > 20 && census.pruned > census.states, "{census:?}");
}

/// `n` clients, each of which may take one of two steps until it has taken two; the guest says what its state is.
fn clients(n: u32, canonical: bool, reduction: &str) -> String {
    let rules: String = (0..n)
        .map(|i| format!(r#"(func (export "rule:go{i}") (call $go (i32.const {i})))
            (func (export "precondition:go{i}") (result i32) (i32.lt_u (i32.load8_u (i32.const {i})) (i32.const 2)))"#))
        .collect();
    // Counts the clients by how far they are, and says the counts.
    let count: String = (0..n).map(|i| format!("(call $count (i32.load8_u (i32.const {i})))")).collect();
    let state = if canonical {
        format!(
            r#"(func (export "state")
            (i32.store (i32.const 100) (i32.const 0)) {count}
            (call $state (i32.const 100) (i32.const 4)))"#
        )
    } else {
        String::new()
    };
    format!(
        r#"(module
      (import "spelunk" "state" (func $state (param i32 i32)))
      (memory 1)
      (@custom "spelunk:reduction" "{reduction}")
      (func $go (param i32) (i32.store8 (local.get 0) (i32.add (i32.load8_u (local.get 0)) (i32.const 1))))
      (func $count (param i32)
        (i32.store8 (i32.add (i32.const 100) (local.get 0))
          (i32.add (i32.load8_u (i32.add (i32.const 100) (local.get 0))) (i32.const 1))))
      {rules} {state})"#
    )
}

#[test]
fn a_guest_may_say_what_its_state_is() {
    // Each client is in one of three states; of the clients only how many are in which counts.
    assert_eq!(everywhere(&clients(4, false, ""), 5).states, 81);
    assert_eq!(everywhere(&clients(4, true, ""), 5).states, 15);
}

/// What the export `state` writes is undone: the traces of a check lead to the same states without it.
#[test]
fn saying_what_the_state_is_changes_nothing() {
    let mut machine = machines(&program(&clients(2, true, "")), 1).remove(0);
    let before = machine.state();
    let said = machine.compared_state().unwrap();
    assert_eq!((machine.state(), machine.state_from_scratch()), (before, before));
    machine.step(Action::Rule(1), &mut Default::default());
    let other = machine.compared_state().unwrap();
    assert_ne!(said, other);
    machine.reset();
    machine.step(Action::Rule(0), &mut Default::default());
    assert_eq!(machine.compared_state().unwrap(), other);
}

/// Faults, memory, globals, tables and dropped segments are all compared.
#[test]
fn states_that_differ_in_anything_that_matters_are_different() {
    let wat = r#"(module
      (import "spelunk" "verbose" (func $verbose (result i32)))
      (import "spelunk" "reject" (func $reject))
      (memory 1 4) (data $d "x") (global $g (mut i32) (i32.const 0)) (table $t 2 funcref)
      (global $h (mut funcref) (ref.null func)) (elem $e funcref (ref.func $f)) (elem declare func $verbose $reject)
      (func $f)
      (func (export "rule:memory") (i32.store (i32.const 7) (i32.const 1)))
      (func (export "rule:grow") (drop (memory.grow (i32.const 1))))
      (func (export "rule:global") (global.set $g (i32.const 1)))
      (func (export "rule:table") (table.set $t (i32.const 1) (ref.func $f)))
      (func (export "rule:import") (table.set $t (i32.const 1) (ref.func $verbose)))
      (func (export "rule:other") (table.set $t (i32.const 1) (ref.func $reject)))
      (func (export "rule:reference") (global.set $h (ref.func $verbose)))
      (func (export "rule:forget") (elem.drop $e))
      (func (export "rule:again") (table.init $t $e (i32.const 0) (i32.const 0) (i32.const 0)))
      (func (export "rule:drop") (data.drop $d))
      (func (export "rule:init") (memory.init $d (i32.const 0) (i32.const 0) (i32.const 0)))
      (func (export "fault:f") (param i32)))"#;
    let mut machine = machines(&program(wat), 1).remove(0);
    let mut states = vec![machine.compared_state().unwrap().unwrap()];
    for action in (0..11).map(Action::Rule).chain([Action::Fault(0, true)]) {
        machine.reset();
        machine.step(action, &mut Default::default());
        states.push(machine.compared_state().unwrap().unwrap());
    }
    states.sort_unstable();
    states.dedup();
    // All but that of `init` and of `again`, which write nothing.
    assert_eq!(states.len(), 11);
}

#[test]
fn of_independent_rules_one_order_is_explored() {
    let pairs = "independent go0 go1\\nindependent go0 go2\\nindependent go1 go2\\n";
    let program = program(&clients(3, false, pairs));
    for (order, prunes) in [(Order::Breadth, true), (Order::Depth, true), (Order::Depth, false)] {
        let options = Options { order, prunes, ..Options::default() };
        let all = run(&mut machines(&program, 2), &options);
        let reduced = run(&mut machines(&program, 2), &Options { reduces: true, ..options });
        assert_eq!((all.limit, reduced.limit), (None, None));
        // Six steps, two of each client, in any order; or in one.
        let runs = if prunes { (1, 1) } else { (90, 1) };
        assert_eq!((all.census.runs, reduced.census.runs), runs);
        if prunes {
            assert_eq!((all.census.states, reduced.census.states), (27, 27));
            assert_eq!((all.census.steps, reduced.census.steps), (54, 26));
        }
    }
}

/// One value of 201 makes the difference; of few states many are tried.
#[test]
fn rules_that_depend_on_each_other_for_one_value_are_told() {
    let wat = r#"(module
      (@custom "spelunk:reduction" "independent draw set\n")
      (import "spelunk" "unsigned" (func $unsigned (param i64 i64 i64) (result i64)))
      (memory 1)
      (func (export "rule:draw")
        (if (i64.eq (call $unsigned (i64.const 0) (i64.const 200) (i64.const 0)) (i64.const 137))
          (then (i32.store8 (i32.const 1) (i32.load8_u (i32.const 0))))))
      (func (export "rule:set") (i32.store8 (i32.const 0) (i32.const 1)))
      (func (export "invariant:good") (result i32) (i32.eqz (i32.load8_u (i32.const 1)))))"#;
    let program = program(wat);
    for order in [Order::Breadth, Order::Depth] {
        let options = Options { order, reduces: true, ..Options::default() };
        let trouble = check::check(&mut machines(&program, 1), &options, &|_| None, &mut |_, _| ());
        let kind = trouble.err().map(|trouble| trouble.kind);
        assert!(matches!(kind, Some(TroubleKind::Dependent { rules: [0, 1], .. })), "{kind:?}");
    }
}

#[test]
fn what_is_declared_of_unknown_rules_is_refused() {
    let check = |reduction: &str, expected: &str| {
        let wasm = wat::parse_str(clients(2, false, reduction)).unwrap();
        let error = Program::load(&wasm, Limits::default(), Selection::default()).err().unwrap();
        assert_eq!(error.to_string(), expected);
    };
    check(
        "independent go0 go7",
        "the section `spelunk:reduction` names a rule `go7`, which the module does not export",
    );
    check(
        "sorted go0",
        "the section `spelunk:reduction` has a line `sorted go0`; it must be `independent RULE RULE`",
    );
}

/// A function is called once in a run, in exploration as in a check.
#[test]
fn a_function_runs_once() {
    let wat = r#"(module
      (import "spelunk" "boolean" (func $flip (param f64) (result i32)))
      (global $n (mut i32) (i32.const 0))
      (func (export "check")
        (global.set $n (i32.add (global.get $n) (i32.const 1)))
        (drop (call $flip (f64.const 0.5)))
        (drop (call $flip (f64.const 0.5))))
      (func (export "invariant:once") (result i32) (i32.le_u (global.get $n) (i32.const 1))))"#;
    let program = program(wat);
    for order in [Order::Depth, Order::Breadth] {
        let options = Options { order, prunes: false, ..Options::default() };
        let checked = run(&mut machines(&program, 3), &options);
        assert_eq!((checked.census.runs, checked.census.choices, checked.limit), (4, 3, None));
    }
    let mut machine = machines(&program, 1).remove(0);
    let mut explorer = spelunk::search::Explorer::new(&mut machine, Default::default());
    explorer.explore(|progress| progress.runs < 100);
    assert_eq!((explorer.progress().findings, explorer.progress().rules), (0, 100));
}

/// A tree of 2^14 leaves as one function: any number of workers visits each leaf once.
#[test]
fn workers_share_one_function() {
    let wat = r#"(module
      (import "spelunk" "boolean" (func $flip (param f64) (result i32)))
      (func (export "check") (local i32)
        (loop
          (drop (call $flip (f64.const 0.5)))
          (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 14))))))"#;
    let program = program(wat);
    for workers in [1, 2, 4] {
        let options = Options { order: Order::Depth, prunes: false, ..Options::default() };
        let census = run(&mut machines(&program, workers), &options).census;
        assert_eq!((census.runs, census.choices, census.steps), (1 << 14, (1 << 14) - 1, 1 << 14));
    }
}

/// What a check saw counts, whether states are restored or reached anew.
#[test]
fn what_is_seen_is_seen_without_snapshots_too() {
    let wat = r#"(module
      (import "spelunk" "index" (func $index (param i32) (result i32)))
      (import "spelunk" "sometimes" (func $sometimes (param i32 i32 i32)))
      (memory 1) (data (i32.const 0) "twonine") (global $n (mut i32) (i32.const 0))
      (func (export "rule:go")
        (global.set $n (call $index (i32.const 3)))
        (call $sometimes (i32.const 0) (i32.const 3) (i32.eq (global.get $n) (i32.const 2)))
        (call $sometimes (i32.const 3) (i32.const 4) (i32.eq (global.get $n) (i32.const 9)))))"#;
    let program = program(wat);
    for order in [Order::Breadth, Order::Depth] {
        for uses_snapshots in [true, false] {
            let mut machines = machines(&program, 1);
            machines[0].set_uses_snapshots(uses_snapshots).unwrap();
            let seen = seen(&mut machines, &Options { order, ..Options::default() });
            let unmet = seen.iter().filter(|property| property.is_unmet());
            assert_eq!(unmet.map(|property| property.name.as_str()).collect::<Vec<_>>(), ["nine"]);
        }
    }
}

/// The bound is on rules and faults; setup and teardown do not count.
#[test]
fn a_bound_makes_it_unknown() {
    let program = program(QUEUE);
    for order in [Order::Breadth, Order::Depth] {
        let options = Options { order, steps_max: Some(1), ..Options::default() };
        let checked = run(&mut machines(&program, 1), &options);
        assert_eq!((checked.limit, checked.census.depth), (Some(Limit::Steps), 1));
    }
}

/// A counter that must stay below ten, at 4096; `layout` says where the stack is, `setup` where its pointer goes.
fn counter(layout: &str, setup: &str) -> String {
    format!(
        r#"(module
      (memory 2) {layout}
      (func (export "setup") (global.set $__stack_pointer (i32.const {setup})))
      (func $at (result i32) (i32.load (i32.const 100000)))
      (data (i32.const 100000) "\00\10")
      (func (export "rule:count")
        (i32.store (call $at) (i32.add (i32.load (call $at)) (i32.const 1))))
      (func (export "invariant:small") (result i32) (i32.lt_u (i32.load (call $at)) (i32.const 10))))"#
    )
}

/// Only what is proven to be left over on the stack is left out of a state.
#[test]
fn memory_is_dead_only_on_the_stack() {
    let end = |at: u32| format!(r#"(global $end i32 (i32.const {at})) (export "__data_end" (global $end))"#);
    let pointer = |at: u32| format!("(global $__stack_pointer (mut i32) (i32.const {at}))");
    let llvm = r#"(@custom "target_features" "")"#;
    let layouts = [
        // The pointer is moved beyond the stack, and below it.
        (pointer(4096) + &end(2048), "65536"),
        (pointer(4096) + &end(2048), "2047"),
        (pointer(4096) + &end(2048), "0"),
        (pointer(4096) + &end(100_002), "65536"),
        // A name is no proof.
        (pointer(65536), "65536"),
        (pointer(65536) + &end(2048), "65536"),
        (pointer(200_000) + llvm, "65536"),
    ];
    for (layout, setup) in layouts {
        let program = program(&counter(&layout, setup));
        for order in [Order::Breadth, Order::Depth] {
            let checked = run(&mut machines(&program, 1), &Options { order, ..Options::default() });
            assert_eq!((checked.findings.len(), checked.limit), (1, None), "{layout} {setup}");
            assert_eq!(checked.census.states, 10);
        }
    }
    // What a step leaves on the stack and none reads again is left out.
    let frame = |layout: &str| {
        let wat = format!(
            r#"(module (memory 2) {layout} (global $n (mut i32) (i32.const 0))
          (func (export "rule:go") (local $frame i32)
            (local.set $frame (i32.sub (global.get $__stack_pointer) (i32.const 16)))
            (i32.store (local.get $frame) (global.get $n))
            (global.set $n (i32.xor (i32.const 1) (i32.load (local.get $frame))))))"#
        );
        run(&mut machines(&program(&wat), 1), &Options::default()).census.states
    };
    assert_eq!(frame(&(pointer(65536) + &end(100_002))), 2);
    assert_eq!(frame(&pointer(65536)), 3);
}

/// A guest whose invariants do not hold before any rule was called.
const WRONG_FROM_THE_START: &str = r#"(module
  (global $n (mut i32) (i32.const 9))
  (func (export "rule:mend") (global.set $n (i32.const 1)))
  (func (export "invariant:small") (result i32) (i32.lt_u (global.get $n) (i32.const 5))))"#;

/// Invariants hold of the state that runs start from, with setup or without.
#[test]
fn the_initial_state_is_checked() {
    let program = program(WRONG_FROM_THE_START);
    for order in [Order::Breadth, Order::Depth] {
        for prunes in [true, false] {
            for uses_snapshots in [true, false] {
                let mut machines = machines(&program, 2);
                machines.iter_mut().for_each(|m| m.set_uses_snapshots(uses_snapshots).unwrap());
                let checked = run(&mut machines, &Options { order, prunes, ..Options::default() });
                let [finding] = &checked.findings[..] else { panic!("{checked:?}") };
                assert_eq!(finding.failure.to_string(), "invariant small: it does not hold");
                assert_eq!(
                    finding.trace.steps().iter().map(|s| s.action).collect::<Vec<_>>(),
                    [Action::Setup]
                );
                let replayed = replay(&mut machines[0], &finding.trace, true).0;
                assert_eq!(replayed, Replayed::Failed(Box::new(finding.failure.clone())));
                assert_eq!((checked.census.runs, checked.census.states, checked.limit), (1, 0, None));
            }
        }
    }
    let mut machine = machines(&program, 1).remove(0);
    let mut explorer = spelunk::search::Explorer::new(&mut machine, Default::default());
    explorer.explore(|progress| progress.runs < 10);
    assert_eq!(explorer.progress().findings, 1);
    assert_eq!(explorer.findings().next().unwrap().trace.len(), 1);
}

/// A fault can be toggled where a precondition fails: that comes before.
#[test]
fn faults_are_toggled_where_a_precondition_fails() {
    let program = program(
        r#"(module
      (import "spelunk" "fault" (func $fault (param i32 i32) (result i32)))
      (import "spelunk" "fail" (func $fail (param i32 i32)))
      (memory 1) (data (i32.const 0) "f")
      (func (export "precondition:go") (result i32)
        (if (i32.eqz (call $fault (i32.const 0) (i32.const 1))) (then unreachable)) (i32.const 1))
      (func (export "rule:go") (call $fail (i32.const 0) (i32.const 1)))
      (func (export "fault:f") (param i32)))"#,
    );
    for order in [Order::Breadth, Order::Depth] {
        for uses_snapshots in [true, false] {
            let mut machines = machines(&program, 1);
            machines[0].set_uses_snapshots(uses_snapshots).unwrap();
            let checked = run(&mut machines, &Options { order, findings_max: 0, ..Options::default() });
            assert_eq!((checked.findings.len(), checked.census.states, checked.limit), (2, 2, None));
            for finding in &checked.findings {
                let (replayed, _) = replay(&mut machines[0], &finding.trace, false);
                assert_eq!(replayed, Replayed::Failed(Box::new(finding.failure.clone())));
            }
        }
    }
}

/// Two states are compared by what follows, also beyond the bound: a guest that cannot say there what its state is has done nothing wrong yet.
#[test]
fn what_lies_beyond_the_bound_is_no_error() {
    let wat = r#"(module
      (import "spelunk" "state" (func $state (param i32 i32)))
      (memory (export "memory") 1)
      (func $step (param i32)
        (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
        (i32.store (i32.const 8) (local.get 0)))
      (func (export "rule:one") (call $step (i32.const 1)))
      (func (export "rule:two") (call $step (i32.const 2)))
      (func (export "state")
        (if (i32.gt_u (i32.load (i32.const 0)) (i32.const 3)) (then unreachable))
        (call $state (i32.const 0) (i32.const 4))))"#;
    let program = program(wat);
    for (steps, states) in [(2, Some(3)), (3, Some(4)), (4, None)] {
        let options = Options { steps_max: Some(steps), order: Order::Breadth, ..Options::default() };
        let checked = check::check(&mut machines(&program, 1), &options, &|_| None, &mut |_, _| ());
        assert_eq!(checked.map(|checked| checked.census.states).ok(), states, "{steps}");
    }
}

/// All faults are off at the start, and a step changes one.
#[test]
fn a_fault_is_turned_off_only_where_it_is_on() {
    // Who turns it off breaks it.
    let program = program(
        r#"(module (global $is_broken (mut i32) (i32.const 0))
          (func (export "fault:f") (param i32) (global.set $is_broken (i32.eqz (local.get 0))))
          (func (export "rule:a") (if (global.get $is_broken) (then unreachable))))"#,
    );
    for order in [Order::Breadth, Order::Depth] {
        let mut machines = machines(&program, 1);
        let checked = run(&mut machines, &Options { order, ..Options::default() });
        let [found] = &checked.findings[..] else { panic!("{checked:?}") };
        let shrunk = spelunk_tests::shrunk(&mut machines[0], found);
        let actions: Vec<Action> = shrunk.trace.steps().iter().map(|step| step.action).collect();
        assert_eq!(actions, [Action::Fault(0, true), Action::Fault(0, false), Action::Rule(0)]);
    }
    for (toggles, step, why) in
        [(&[false][..], 0, "the fault is not on"), (&[true, true], 1, "the fault is on already")]
    {
        let mut trace = Trace::default();
        toggles.iter().for_each(|on| trace.push(Action::Fault(0, *on), 0));
        let (replayed, _) = replay(&mut machines(&program, 1)[0], &trace, false);
        assert_eq!(replayed, Replayed::Diverged { step, why: why.to_string() });
    }
}
