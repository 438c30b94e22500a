//! Where a harness is `Clone`, its copies are checked in place of saved states: with the same result, or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use spelunk::check::{self, Checked, Options, TroubleKind};
use spelunk::choice::{Chooser, Past};
use spelunk::machine::{Limits, Machine, Program, Selection, on_guest_stack};
use spelunk::outcome::{Outcome, Reject};
use spelunk::target::{Successors, Target as _};
use spelunk::trace::Action;
use spelunk_tests::checks::{default_options, machines, program, run};

const PATH: &str = "tests/guests/copies";

fn without(program: &Arc<Program>) -> Checked {
    run(program, 1, &Options { copies: false, ..default_options(program) })
}

/// Checks with so many workers whose guests copy states; whether that can be done.
fn copying(program: &Arc<Program>, workers: usize, options: &Options) -> Option<Checked> {
    let mut machines: Vec<Machine> = machines(program, workers);
    assert!(machines[0].begin_copies(), "the guest can copy its states");
    match check::check(&mut machines, options, &|_| None, &mut |_, _| ()) {
        Ok(checked) => Some(checked),
        Err(trouble) => {
            assert!(matches!(trouble.kind, TroubleKind::Copies | TroubleKind::Unequal { .. }), "{trouble:?}");
            None
        }
    }
}

#[test]
fn copies_that_are_like_the_harness_change_nothing() {
    on_guest_stack(|| {
        for features in [["like"], ["fails"], ["wide"], ["last"]] {
            let program = program(PATH, &features);
            let expected = without(&program);
            assert_eq!(expected.findings.is_empty(), features != ["fails"]);
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

/// All that a guest tells of the steps from a state at once is what each of them comes to by itself.
#[test]
fn all_steps_at_once_are_as_one_by_one() {
    on_guest_stack(|| {
        let program = program(PATH, &["fails"]);
        let [mut copying, mut alone] = <[Machine; 2]>::try_from(machines(&program, 2)).ok().unwrap();
        assert!(copying.begin_copies());
        for machine in [&mut copying, &mut alone] {
            machine.reset();
            assert_eq!(machine.step(Action::Setup, &mut Chooser::default()), Outcome::Pass);
        }
        let state = |machine: &mut Machine| machine.compared_state().unwrap().unwrap();
        let mut waiting = vec![(copying.snapshot().unwrap(), alone.snapshot().unwrap())];
        let (mut known, mut found, mut enabled) = (BTreeSet::new(), Successors::default(), Vec::new());
        let (mut rejected, mut failed) = (0, 0);
        while let Some((copied, saved)) = waiting.pop() {
            if !copying.has(&copied) {
                continue;
            }
            if !copying.successors(Some(&copied), 64, &mut found).unwrap() {
                failed += 1;
                copying.reset();
                continue;
            }
            alone.restore(&saved);
            alone.enabled(&mut enabled).unwrap();
            assert_eq!(found.rules, enabled);
            let mut at = 0;
            let mut scripts = BTreeSet::new();
            for (number, step) in found.steps.iter().enumerate() {
                let script = &found.scripts[at..at + step.script];
                at += step.script;
                assert!(scripts.insert((step.rule, script.iter().map(|s| s.number).collect::<Vec<_>>())));
                alone.restore(&saved);
                let mut chooser = Chooser::default();
                chooser.begin_script(script, Past::Stop, 64);
                let outcome = alone.step(Action::Rule(step.rule), &mut chooser);
                assert_eq!(chooser.stopped, None);
                let Some(led) = step.state else {
                    assert!(matches!(outcome, Outcome::Reject(Reject::Assume)), "{outcome:?}");
                    rejected += 1;
                    continue;
                };
                assert_eq!((outcome, state(&mut alone)), (Outcome::Pass, led));
                let copy = copying.successor(number).expect("there is room");
                assert!(copying.successor(number).is_none(), "it is given once");
                if known.insert(led) {
                    waiting.push((copy, alone.snapshot().unwrap()));
                }
            }
            // Four ways to arrive, one to serve, and one to leave last or as many as wait.
            let waits = scripts.len() - 4;
            assert!(waits == 0 || waits > 2, "{scripts:?}");
            for (copied, saved) in waiting.iter().rev().take(3) {
                copying.restore(copied);
                alone.restore(saved);
                assert_eq!(state(&mut copying), state(&mut alone));
            }
        }
        assert!(known.len() > 20 && rejected > 20 && failed == 1, "{} {rejected} {failed}", known.len());
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
