//! Invariants where a harness copies its states: they are evaluated where a state is new, with the same result.

use std::sync::Arc;

use spelunk::machine::{Limits, Program, Selection, on_guest_stack};
use spelunk_tests::checks::{default_options, program};

use super::copies::{PATH, copying, without};

/// What an invariant changes in a state that is new it would change in one that is known too.
#[test]
fn an_invariant_that_changes_what_is_held_is_noticed() {
    on_guest_stack(|| {
        let program = program(PATH, &["changes"]);
        assert_eq!(without(&program).findings.len(), 0);
        for workers in [1, 2] {
            assert_eq!(copying(&program, workers, &default_options(&program)), None);
        }
    });
}

/// What a step and the invariants take together ends it in a state that is known too: budget, and spans.
#[test]
fn invariants_take_of_what_a_step_left() {
    let turns = |turns: u32, each: &str| {
        format!(
            "(local.set $i (i32.const {turns})) (loop {each}
              (br_if 0 (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))"
        )
    };
    let span = "(call $begin (i32.const 0) (i32.const 0)) (call $end (i32.const 0))";
    let cases =
        [(300, turns(50_000, ""), turns(29_000, "")), (1 << 16, turns(130_000, span), turns(90_000, span))];
    on_guest_stack(|| {
        for (step_budget, slow, judge) in cases {
            let keep = "(i32.store (i32.add (i32.const 4096) (i32.shl (local.get 0) (i32.const 2))) (global.get $n))";
            let wat = format!(
                r#"(module
                  (import "spelunk" "span_begin" (func $begin (param i32 i32)))
                  (import "spelunk" "span_end" (func $end (param i32)))
                  (import "spelunk" "reject" (func $reject))
                  (import "spelunk" "state" (func $state (param i32 i32)))
                  (memory (export "memory") 64) (global $n (mut i32) (i32.const 0))
                  (@custom "spelunk:state" "content Stepper\ncopies\n")
                  (func (export "copy_keep") (param i32) {keep}) (func (export "copy_move") (param i32) {keep})
                  (func (export "copy_load") (param i32 i32)
                    (global.set $n (i32.load (i32.add (i32.const 4096) (i32.shl (local.get 0) (i32.const 2))))))
                  (func (export "rule:next")
                    (if (i32.eq (global.get $n) (i32.const 4200)) (then (call $reject)))
                    (global.set $n (i32.add (global.get $n) (i32.const 1))))
                  (func (export "rule:slow") (local $i i32)
                    (if (i32.eq (global.get $n) (i32.const 4190)) (then {slow})))
                  (func (export "invariant:quick") (local $i i32)
                    (if (i32.gt_u (global.get $n) (i32.const 4180)) (then {judge})))
                  (func (export "state") (result i32)
                    (i32.store (i32.const 0) (global.get $n)) (call $state (i32.const 0) (i32.const 4)) (i32.const 1)))"#
            );
            let limits = Limits { step_budget, ..Limits::default() };
            let program = Program::load(&wat::parse_str(wat).unwrap(), limits, Selection::default());
            let program = Arc::new(program.unwrap());
            let expected = without(&program);
            assert_eq!((expected.findings.len(), expected.census.states), (1, 4201));
            let copied = copying(&program, 1, &default_options(&program));
            // Of spans it is told otherwise, so that a check is made without copies.
            assert!(copied.is_none_or(|copied| copied == expected), "it fails");
        }
    });
}
