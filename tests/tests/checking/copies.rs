//! Where a harness is `Clone`, its copies are checked in place of saved states: with the same result, or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use spelunk::check::{self, Checked, Options, TroubleKind};
use spelunk::choice::{Chooser, Past};
use spelunk::machine::{Limits, Machine, Program, Selection, Snapshot, on_guest_stack};
use spelunk::outcome::{Outcome, Reject};
use spelunk::target::{Successors, Target as _};
use spelunk::trace::Action;
use spelunk_tests::checks::{default_options, machines, program, run};

pub(crate) const PATH: &str = "tests/guests/copies";
/// Alternatives of a choice that are tried.
const ALTERNATIVES: u32 = 64;

pub(crate) fn without(program: &Arc<Program>) -> Checked {
    run(program, 1, &Options { copies: false, ..default_options(program) })
}

/// Checks with so many workers whose guests copy states; whether that can be done.
pub(crate) fn copying(program: &Arc<Program>, workers: usize, options: &Options) -> Option<Checked> {
    let mut machines: Vec<Machine> = machines(program, workers);
    assert!(machines[0].begin_copies(), "the guest can copy its states");
    match check::check(&mut machines, options, &|_| None, &mut |_, _| ()) {
        Ok(checked) => Some(checked),
        Err(trouble) => {
            assert!(
                matches!(
                    trouble.kind,
                    TroubleKind::Copies | TroubleKind::Without(_) | TroubleKind::Unequal { .. }
                ),
                "{trouble:?}"
            );
            None
        }
    }
}

#[test]
fn copies_that_are_like_the_harness_change_nothing() {
    on_guest_stack(|| {
        for features in [["like"], ["fails"], ["wide"], ["last"], ["nested"], ["tells"], ["draws"], ["bars"]]
        {
            let program = program(PATH, &features);
            let expected = without(&program);
            assert_eq!(expected.findings.is_empty(), !["fails", "nested"].contains(&features[0]));
            assert!(expected.census.rejected > 0 && expected.census.states > 50, "{:?}", expected.census);
            let options = default_options(&program);
            for workers in [1, 2, 3] {
                assert_eq!(copying(&program, workers, &options).as_ref(), Some(&expected), "{features:?}");
            }
            // With no room for copies, each state is reached by steps.
            let small = Options { saved_bytes_max: 0, ..options };
            assert_eq!(copying(&program, 2, &small), Some(expected), "{features:?}");
        }
    });
}

/// Of each copy it is asked what it holds.
#[test]
fn a_copy_that_leaves_something_out_in_one_state_is_noticed() {
    on_guest_stack(|| {
        let program = program(PATH, &["rarely"]);
        assert_eq!(without(&program).findings.len(), 1);
        for workers in [1, 2] {
            assert_eq!(copying(&program, workers, &default_options(&program)), None);
        }
    });
}

/// What copies share is changed late, and put back before other states are left.
#[test]
fn what_copies_share_is_noticed_whenever_a_step_changes_it() {
    on_guest_stack(|| {
        let program = program(PATH, &["late"]);
        let expected = without(&program);
        assert_eq!((expected.findings.len(), expected.census.depth), (1, 102), "{:?}", expected.census);
        for workers in [1, 2] {
            assert_eq!(copying(&program, workers, &default_options(&program)), None);
        }
    });
}

/// Of many rules one changes nothing else than what `Hash` and `Clone` leave out.
#[test]
fn what_one_rule_of_many_changes_unseen_is_told() {
    on_guest_stack(|| {
        let program = program(PATH, &["hidden"]);
        for workers in [1, 2] {
            assert_eq!(copying(&program, workers, &default_options(&program)), None);
        }
    });
}

/// Two machines of a guest, one of which copies states, after setup where there is one.
fn pair(program: &Arc<Program>) -> [Machine; 2] {
    let [mut copying, mut alone] = <[Machine; 2]>::try_from(machines(program, 2)).ok().unwrap();
    assert!(copying.begin_copies());
    for machine in [&mut copying, &mut alone] {
        machine.reset();
        if machine.has_setup() {
            assert_eq!(machine.step(Action::Setup, &mut Chooser::default()), Outcome::Pass);
        }
    }
    [copying, alone]
}

fn state(machine: &mut Machine) -> u128 {
    machine.compared_state().unwrap().unwrap()
}

/// Of a state from which one machine performed all steps at once, that each of them comes to the same by itself. The scripts, and the states that
/// are led to, each with what both saved of it, which is nothing of one to which steps led before.
type Led = (Vec<(u16, Vec<u32>)>, Vec<Option<(u128, Option<Snapshot>, Snapshot)>>);

fn one_by_one([copying, alone]: &mut [Machine; 2], found: &Successors, saved: &Snapshot) -> Led {
    let mut enabled = Vec::new();
    alone.restore(saved);
    alone.enabled(&mut enabled).unwrap();
    assert_eq!(found.rules, enabled);
    let (mut at, mut scripts, mut led) = (0, Vec::new(), Vec::new());
    for (number, step) in found.steps.iter().enumerate() {
        let script = &found.scripts[at..at + step.script];
        at += step.script;
        let numbers = (step.rule, script.iter().map(|s| s.number).collect::<Vec<_>>());
        assert!(scripts.last() < Some(&numbers), "depth-first: {numbers:?}");
        scripts.push(numbers);
        alone.restore(saved);
        let mut chooser = Chooser::default();
        chooser.begin_script(script, Past::Stop, ALTERNATIVES);
        let outcome = alone.step(Action::Rule(step.rule), &mut chooser);
        assert_eq!((chooser.stopped, chooser.choices.len()), (None, step.script));
        let Some(to) = step.state else {
            assert!(matches!(outcome, Outcome::Reject(Reject::Assume)), "{outcome:?}");
            led.push(None);
            continue;
        };
        assert_eq!((outcome, state(alone)), (Outcome::Pass, to));
        let copy = copying.successor(number);
        assert!(copying.successor(number).is_none(), "it is given once");
        led.push(Some((to, copy, alone.snapshot().unwrap())));
    }
    (scripts, led)
}

/// All that a guest tells of the steps from a state at once is what each of them comes to by itself.
#[test]
fn all_steps_at_once_are_as_one_by_one() {
    on_guest_stack(|| {
        let mut machines = pair(&program(PATH, &["fails"]));
        let mut waiting = vec![(machines[0].snapshot().unwrap(), machines[1].snapshot().unwrap())];
        let (mut known, mut found) = (BTreeSet::new(), Successors::default());
        let (mut rejected, mut failed) = (0, 0);
        while let Some((copied, saved)) = waiting.pop() {
            if !machines[0].has(&copied) {
                continue;
            }
            if !machines[0].successors(Some(&copied), ALTERNATIVES, &mut found).unwrap() {
                failed += 1;
                machines[0].reset();
                continue;
            }
            let (scripts, led) = one_by_one(&mut machines, &found, &saved);
            rejected += led.iter().filter(|led| led.is_none()).count();
            let new = led.into_iter().flatten().filter(|(to, ..)| known.insert(*to));
            waiting.extend(new.map(|(_, copied, saved)| (copied.expect("there is room"), saved)));
            // Four ways to arrive, one to serve, and one to leave last or as many as wait.
            let waits = scripts.len() - 4;
            assert!(waits == 0 || waits > 2, "{scripts:?}");
            let [copying, alone] = &mut machines;
            for (copied, saved) in waiting.iter().rev().take(3) {
                copying.restore(copied);
                alone.restore(saved);
                assert_eq!(state(copying), state(alone));
            }
        }
        assert!(known.len() > 20 && rejected > 20 && failed == 1, "{} {rejected} {failed}", known.len());
    });
}

/// A guest whose step is this, which may set the number that is its state, and draw; and that says it in such parts.
fn stepper(step: &str, says: &str) -> Arc<Program> {
    let at = "(i32.add (i32.const 4096) (i32.mul (local.get 0) (i32.const 8)))";
    let keep = format!("(i64.store {at} (global.get $n))");
    let wat = format!(
        r#"(module
          (import "spelunk" "boolean" (func $boolean (param f64) (result i32)))
          (import "spelunk" "index" (func $index (param i32) (result i32)))
          (import "spelunk" "integer" (func $integer (param i64 i64 i64) (result i64)))
          (import "spelunk" "unsigned" (func $unsigned (param i64 i64 i64) (result i64)))
          (import "spelunk" "float" (func $float (param f64 f64 i32) (result f64)))
          (import "spelunk" "span_begin" (func $begin (param i32 i32)))
          (import "spelunk" "span_end" (func $end (param i32)))
          (import "spelunk" "verbose" (func $verbose (result i32)))
          (import "spelunk" "reject" (func $reject))
          (import "spelunk" "state" (func $state (param i32 i32)))
          (memory (export "memory") 64) (global $n (mut i64) (i64.const 0))
          (@custom "spelunk:state" "content Stepper\ncopies\n")
          (func (export "copy_keep") (param i32) {keep}) (func (export "copy_move") (param i32) {keep})
          (func (export "copy_load") (param i32 i32) (global.set $n (i64.load {at})))
          (func (export "rule:step") (local $i i32) {step})
          (func (export "state") (result i32) (local $i i32)
            (i64.store (i32.const 0) (global.get $n)) {says} (i32.const 1)))"#
    );
    let wasm = wat::parse_str(wat).unwrap();
    Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap())
}

const SAYS: &str = "(call $state (i32.const 0) (i32.const 8))";

/// The steps from the first state, at once, which are as one by one; none where that cannot be done.
fn at_once(program: &Arc<Program>) -> Option<Vec<(u16, Vec<u32>)>> {
    let mut machines = pair(program);
    let [copied, saved] = machines.each_mut().map(|machine| machine.snapshot().unwrap());
    let mut found = Successors::default();
    let is_told = machines[0].successors(Some(&copied), ALTERNATIVES, &mut found).unwrap();
    is_told.then(|| one_by_one(&mut machines, &found, &saved).0)
}

#[test]
fn every_kind_of_choice_is_answered_at_once_as_by_the_host() {
    on_guest_stack(|| {
        let counted =
            |draw: &str| at_once(&stepper(&format!("(global.set $n {draw})"), SAYS)).map(|all| all.len());
        let (min, max) = (i64::MIN, i64::MAX);
        let one_float =
            |to| format!("(i64.reinterpret_f64 (call $float (f64.const 1) (f64.const {to}) (i32.const 0)))");
        for kind in ["integer", "unsigned"] {
            for (low, high, simplest) in [(0, 9, 0), (0, 9, 9), (3, 8, 5), (3, 8, 0), (3, 8, 99), (5, 5, 5)] {
                let draw =
                    format!("(call ${kind} (i64.const {low}) (i64.const {high}) (i64.const {simplest}))");
                assert_eq!(counted(&draw), Some((high - low + 1) as usize), "{draw}");
            }
        }
        for (draw, count) in [
            (format!("(call $integer (i64.const {min}) (i64.const {}) (i64.const 0))", min + 6), Some(7)),
            (format!("(call $integer (i64.const {}) (i64.const {max}) (i64.const 0))", max - 6), Some(7)),
            ("(call $integer (i64.const -3) (i64.const 3) (i64.const 1))".to_string(), Some(7)),
            ("(call $unsigned (i64.const -5) (i64.const -1) (i64.const -2))".to_string(), Some(5)),
            // Too many, the same with their count out of range, and none.
            (format!("(call $integer (i64.const 0) (i64.const {}) (i64.const 0))", ALTERNATIVES), None),
            (format!("(call $integer (i64.const {min}) (i64.const {max}) (i64.const 0))"), None),
            ("(call $unsigned (i64.const 0) (i64.const -1) (i64.const 0))".to_string(), None),
            ("(call $integer (i64.const 1) (i64.const 0) (i64.const 0))".to_string(), None),
            ("(i64.extend_i32_u (call $index (i32.const 5)))".to_string(), Some(5)),
            ("(i64.extend_i32_u (call $index (i32.const 0)))".to_string(), None),
            ("(i64.extend_i32_u (call $index (i32.const -1)))".to_string(), None),
            (one_float(1), Some(1)),
            (one_float(2), None),
        ] {
            assert_eq!(counted(&draw), count, "{draw}");
        }
        for (probability, count) in [
            ("0.5", 2),
            ("0", 1),
            ("-0", 1),
            ("-1", 1),
            ("1", 1),
            ("2", 1),
            ("nan", 1),
            ("inf", 1),
            ("1e-300", 2),
        ] {
            let draw = format!("(i64.extend_i32_u (call $boolean (f64.const {probability})))");
            assert_eq!(counted(&draw), Some(count), "{draw}");
        }
    });
}

/// What there is no room for is gone on with, or is left to be performed one by one.
#[test]
fn many_steps_and_large_states_are_told_at_once_as_one_by_one() {
    on_guest_stack(|| {
        let repeat = |times: u32, what: &str| {
            format!(
                "(loop $again {what} (local.set $i (i32.add (local.get $i) (i32.const 1)))
                    (br_if $again (i32.lt_u (local.get $i) (i32.const {times}))))"
            )
        };
        let digit = "(global.set $n (i64.add (i64.mul (global.get $n) (i64.const 3))
            (i64.extend_i32_u (call $index (i32.const 3)))))";
        let even = "(if (i64.eqz (i64.rem_u (global.get $n) (i64.const 2))) (then (call $reject)))";
        let of = |step: &str, says: &str| at_once(&stepper(step, says)).map(|all| all.len());
        assert_eq!(of(&repeat(6, digit), SAYS), Some(729));
        assert_eq!(of(&(repeat(6, digit) + even), SAYS), Some(729));
        // More than from a state.
        assert_eq!(of(&repeat(8, digit), SAYS), None);
        assert_eq!(of(&repeat(1000, "(drop (call $index (i32.const 1)))"), SAYS), Some(1));
        let span =
            "(call $begin (i32.const 0) (i32.const 0)) (call $end (i32.const 0)) (drop (call $verbose))";
        assert_eq!([1000, 200_001].map(|spans| of(&repeat(spans, span), SAYS)), [Some(1), None]);
        assert_eq!(of("(call $begin (i32.const 0) (i32.const 0))", SAYS), Some(1));
        assert_eq!(of("(call $end (i32.const 0))", SAYS), None);
        // Some hundred kilobytes, in parts of all lengths, and megabytes.
        let parts = repeat(700, "(call $state (i32.const 0) (local.get $i))");
        assert_eq!(of(&repeat(3, digit), &parts), Some(27));
        assert_eq!(of(digit, "(call $state (i32.const 1048576) (i32.const 2000000))"), Some(3));
        // Beyond the memory of the guest.
        assert_eq!(of(digit, "(call $state (i32.const 4194300) (i32.const 8))"), None);
        assert_eq!(of(digit, "(call $state (i32.const -1) (i32.const 8))"), None);
    });
}

#[test]
fn copies_that_are_not_like_the_harness_are_told() {
    on_guest_stack(|| {
        // Copies have no room to spare, and know nothing by heart.
        for features in [["shares"], ["forgets"], ["global"], ["room"], ["memo"]] {
            let program = program(PATH, &features);
            assert_eq!(copying(&program, 1, &default_options(&program)), None, "{features:?}");
        }
        // What it does then.
        let expected = without(&program(PATH, &["like"]));
        for features in [["shares"], ["forgets"]] {
            assert_eq!(without(&program(PATH, &features)).census, expected.census, "{features:?}");
        }
    });
}

/// A guest that counts to nine, and does something else at seven, in its rule or in saying what its state is, which is `said`.
fn counter(in_rule: &str, in_state: (&str, &str)) -> Arc<Program> {
    counter_that_loads("", in_rule, in_state)
}

/// The same, which does something as it loads a state, too.
fn counter_that_loads(in_load: &str, in_rule: &str, (in_state, said): (&str, &str)) -> Arc<Program> {
    let keep = "(i32.store (i32.add (i32.const 1024) (i32.mul (local.get 0) (i32.const 4))) (global.get $n))";
    let is_seven = "(i32.eq (global.get $n) (i32.const 7))";
    let wat = format!(
        r#"(module
          (import "spelunk" "index" (func $index (param i32) (result i32)))
          (import "spelunk" "reject" (func $reject))
          (import "spelunk" "state" (func $state (param i32 i32)))
          (import "spelunk" "span_begin" (func $begin (param i32 i32)))
          (import "spelunk" "span_end" (func $end (param i32)))
          (memory (export "memory") 1) (global $n (mut i32) (i32.const 0)) (global $loads (mut i32) (i32.const 0))
          (@custom "spelunk:state" "content Counter\ncopies\n")
          (func (export "copy_keep") (param i32) {keep}) (func (export "copy_move") (param i32) {keep})
          (func (export "copy_load") (param i32 i32)
            (global.set $loads (i32.add (global.get $loads) (i32.const 1))) {in_load}
            (global.set $n (i32.load (i32.add (i32.const 1024) (i32.mul (local.get 0) (i32.const 4))))))
          (func (export "rule:count")
            (global.set $n (i32.rem_u (i32.add (global.get $n) (i32.const 1)) (i32.const 9)))
            (if {is_seven} (then {in_rule})))
          (func (export "state") (result i32)
            (if {is_seven} (then {in_state}))
            (i32.store (i32.const 0) {said}) (call $state (i32.const 0) (i32.const 4)) (i32.const 1)))"#
    );
    let wasm = wat::parse_str(wat).unwrap();
    Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap())
}

/// What is left out of a state that is copied is left out of one that is not, and told as that.
#[test]
fn what_a_copied_state_leaves_out_is_told() {
    on_guest_stack(|| {
        let said = "(i32.rem_u (global.get $n) (i32.const 3))";
        for at_seven in ["(call $reject)", "unreachable"] {
            let program = counter(at_seven, ("", said));
            let mut machines: Vec<Machine> = machines(&program, 1);
            assert!(machines[0].begin_copies(), "the guest can copy its states");
            let options = default_options(&program);
            let trouble = check::check(&mut machines, &options, &|_| None, &mut |_, _| ()).unwrap_err();
            assert!(matches!(trouble.kind, TroubleKind::Unequal { .. }), "{at_seven}: {trouble:?}");
        }
    });
}

/// What a step may not do is told where all steps from a state are one call, too.
#[test]
fn what_is_forbidden_is_not_passed_over() {
    on_guest_stack(|| {
        let [state, index, reject] = [
            "(call $state (i32.const 0) (i32.const 4))",
            "(drop (call $index (i32.const 2)))",
            "(call $reject)",
        ];
        let checked = |in_rule: &str, in_state: &str| {
            let program = counter(in_rule, (in_state, "(global.get $n)"));
            copying(&program, 1, &default_options(&program))
        };
        assert_eq!(
            checked("", "").map(|checked| (checked.findings.len(), checked.census.states)),
            Some((0, 9))
        );
        assert_eq!(checked(index, "").map(|checked| checked.findings.len()), Some(0));
        // Seven is never left.
        assert_eq!(checked(reject, "").map(|checked| checked.census.states), Some(7));
        assert_eq!(checked(state, "").map(|checked| checked.findings.len()), Some(1));
        for in_state in [index, reject] {
            assert_eq!(checked("", in_state), None, "{in_state}");
        }
    });
}

/// What a state says is compared however long it is, and in how many parts it comes.
#[test]
fn what_does_not_fit_where_a_state_is_said_counts_too() {
    on_guest_stack(|| {
        // Where nothing is kept.
        let say = |len: u32| format!("(call $state (i32.const 32768) (i32.const {len}))");
        let fits = [say(4080), say(4072) + &say(0), say(8).repeat(255)];
        let does_not = [say(5000), say(4080) + &say(0), say(30_000) + &say(5), say(1).repeat(600)];
        for in_state in fits.into_iter().chain(does_not) {
            let program = counter("", (&in_state, "(global.get $n)"));
            let expected = without(&program);
            assert_eq!((expected.findings.len(), expected.census.states), (0, 9), "{in_state}");
            assert_eq!(copying(&program, 1, &default_options(&program)), Some(expected), "{in_state}");
        }
        // What is not in memory is not said.
        let program = counter("", (&say(40_000), "(global.get $n)"));
        assert_eq!(copying(&program, 1, &default_options(&program)), None);
    });
}

/// Spans of steps from copies are only counted.
#[test]
fn spans_are_bounded_where_states_are_copied() {
    on_guest_stack(|| {
        let spans = |begun: u32, ended: u32| {
            format!(
                "(i32.store (i32.const 512) (i32.const {begun}))
                (loop $more (call $begin (i32.const 0) (i32.const 1))
                  (i32.store (i32.const 512) (i32.sub (i32.load (i32.const 512)) (i32.const 1)))
                  (br_if $more (i32.load (i32.const 512))))
                {}",
                "(call $end (i32.const 0))".repeat(ended as usize)
            )
        };
        for (begun, ended, is_right) in
            [(3, 3, true), (3, 1, true), (200_000, 0, true), (200_001, 0, false), (1, 2, false)]
        {
            let program = counter(&spans(begun, ended), ("", "(global.get $n)"));
            let expected = without(&program);
            assert_eq!(expected.findings.is_empty(), is_right);
            let checked = copying(&program, 1, &default_options(&program));
            assert_eq!(checked, is_right.then_some(expected), "{begun}, {ended}");
        }
    });
}

/// A guest that rejects as it loads a state rejects no step, which would be left out.
#[test]
fn what_is_rejected_as_a_state_is_loaded_is_no_step() {
    on_guest_stack(|| {
        let mut given_up = 0;
        for load in 1..40 {
            let in_load =
                format!("(if (i32.eq (global.get $loads) (i32.const {load})) (then (call $reject)))");
            let program = counter_that_loads(&in_load, "", ("", "(global.get $n)"));
            let mut machines: Vec<Machine> = machines(&program, 1);
            if !machines[0].begin_copies() {
                continue;
            }
            match check::check(&mut machines, &default_options(&program), &|_| None, &mut |_, _| ()) {
                Ok(checked) => assert_eq!(checked.census.states, 9, "{load}"),
                Err(trouble) => given_up += u32::from(trouble.kind == TroubleKind::Copies),
            }
        }
        assert!(given_up > 0);
    });
}
