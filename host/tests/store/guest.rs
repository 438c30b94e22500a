//! A guest with state of all kinds, and random steps of it.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use spelunk::choice::Chooser;
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::outcome::Outcome;
use spelunk::target::{Target, perform};
use spelunk::trace::{Action, Trace};

/// Two memories, globals of all types, a table, a segment that is dropped, a fault.
pub(crate) const EVERYTHING: &str = r#"(module
  (type $unary (func (result i32)))
  (memory $m 1 6) (memory $n 1 1)
  (table $t 8 funcref) (elem $e func $one $two) (data $d "abcdefghijklmnop")
  (global $i (mut i32) (i32.const 0)) (global $l (mut i64) (i64.const 0))
  (global $f (mut f32) (f32.const 0)) (global $g (mut f64) (f64.const 0))
  (global $v (mut v128) (v128.const i64x2 0 0)) (global $r (mut funcref) (ref.null func))
  (global $s (mut (ref $unary)) (ref.func $one))
  (func $one (type $unary) (i32.const 1)) (func $two (type $unary) (i32.const 2))
  (func $three (param i32)) (elem declare func $three)
  (func (export "rule:store") (param $a i32) (param $v i64)
    (i64.store (i32.and (local.get $a) (i32.const 65528)) (local.get $v)))
  (func (export "rule:second") (param $a i32) (param $v i32)
    (i32.store $n (i32.and (local.get $a) (i32.const 65532)) (local.get $v)))
  (func (export "rule:fill") (param $a i32) (param $v i32) (param $n i32)
    (memory.fill (i32.and (local.get $a) (i32.const 32767)) (local.get $v) (i32.and (local.get $n) (i32.const 16383))))
  (func (export "rule:init") (param $to i32)
    (memory.init $d (i32.and (local.get $to) (i32.const 65535)) (i32.const 0) (i32.const 16)))
  (func (export "rule:drop") (data.drop $d))
  (func (export "rule:grow") (drop (memory.grow $m (i32.const 1))))
  (func (export "rule:globals") (param i32 i64 f32 f64)
    (global.set $i (local.get 0)) (global.set $l (local.get 1))
    (global.set $f (local.get 2)) (global.set $g (local.get 3))
    (global.set $v (i64x2.splat (local.get 1))))
  (func (export "rule:references") (param i32)
    (global.set $r (ref.func $two)) (global.set $s (ref.func $two))
    (table.set $t (i32.and (local.get 0) (i32.const 7)) (ref.func $three)))
  (func (export "rule:elements") (table.init $t $e (i32.const 3) (i32.const 0) (i32.const 2)))
  (func (export "fault:disk") (param i32)))"#;

pub(crate) fn program(wat: &str) -> (Arc<Program>, Vec<u8>) {
    let wasm = wat::parse_str(wat).unwrap();
    (Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap()), wasm)
}

/// Performs a random step.
pub(crate) fn step(machine: &mut Machine, rng: &mut Xoshiro256PlusPlus, trace: &mut Trace) {
    let action = match rng.random_range(0..10) {
        0 => Action::Fault(0, rng.random()),
        _ => Action::Rule(rng.random_range(0..Target::rules(machine).len()) as u16),
    };
    let mut chooser = Chooser::default();
    let before = machine.snapshot().unwrap();
    let outcome = perform(machine, &mut chooser, (action, rng.random()), [], trace);
    if outcome != Outcome::Pass {
        machine.restore(&before);
    }
}
