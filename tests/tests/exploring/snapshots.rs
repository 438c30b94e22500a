//! A snapshot holds everything that a step can change, and restoring one brings all of it back.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use spelunk::choice::{Chooser, Value};
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::outcome::Outcome;
use spelunk::target::Target;
use spelunk::trace::Action;

/// Every kind of state: two memories, one of which grows, stores of all widths that straddle pages, bulk
/// operations, globals of every type, a table, dropped segments, a fault.
const EVERYTHING: &str = r#"(module
  (memory $m 1 6) (memory $n 1 1)
  (table $t 8 funcref) (elem $e func $one $two) (data $d "abcdefghijklmnop")
  (global $i (mut i32) (i32.const 0)) (global $l (mut i64) (i64.const 0))
  (global $f (mut f32) (f32.const 0)) (global $g (mut f64) (f64.const 0))
  (global $v (mut v128) (v128.const i64x2 0 0)) (global $r (mut funcref) (ref.null func))
  (func $one (result i32) (i32.const 1)) (func $two (result i32) (i32.const 2))
  (func (export "rule:store8") (param $a i32) (param $v i32)
    (i32.store8 (i32.and (local.get $a) (i32.const 65535)) (local.get $v)))
  (func (export "rule:straddle") (param $page i32) (param $v i64)
    (i64.store offset=4093 (i32.mul (i32.and (local.get $page) (i32.const 7)) (i32.const 4096)) (local.get $v)))
  (func (export "rule:vector") (param $page i32) (param $v i64)
    (v128.store offset=4081 (i32.mul (i32.and (local.get $page) (i32.const 7)) (i32.const 4096))
      (i64x2.splat (local.get $v))))
  (func (export "rule:second") (param $a i32) (param $v i32)
    (i32.store $n (i32.and (local.get $a) (i32.const 65532)) (local.get $v)))
  (func (export "rule:fill") (param $a i32) (param $v i32) (param $n i32)
    (memory.fill (i32.and (local.get $a) (i32.const 32767)) (local.get $v) (i32.and (local.get $n) (i32.const 16383))))
  (func (export "rule:copy") (param $to i32) (param $from i32) (param $n i32)
    (memory.copy $m $n (i32.and (local.get $to) (i32.const 32767)) (i32.and (local.get $from) (i32.const 32767))
      (i32.and (local.get $n) (i32.const 16383))))
  (func (export "rule:init") (param $to i32)
    (memory.init $d (i32.and (local.get $to) (i32.const 65535)) (i32.const 0) (i32.const 16)))
  (func (export "rule:drop_data") (data.drop $d))
  (func (export "rule:grow") (drop (memory.grow $m (i32.const 1))))
  (func (export "rule:high") (param $v i32)
    (i32.store (i32.sub (i32.mul (memory.size $m) (i32.const 65536)) (i32.const 4)) (local.get $v)))
  (func (export "rule:globals") (param $i i32) (param $l i64) (param $f f32) (param $g f64)
    (global.set $i (local.get $i)) (global.set $l (local.get $l)) (global.set $f (local.get $f))
    (global.set $g (local.get $g)) (global.set $v (i64x2.splat (local.get $l))))
  (func (export "rule:ref") (param $which i32)
    (global.set $r (select (result funcref) (ref.func $one) (ref.func $two) (i32.and (local.get $which) (i32.const 1)))))
  (func (export "rule:unref") (global.set $r (ref.null func)))
  (func (export "rule:table") (param $at i32)
    (table.set $t (i32.and (local.get $at) (i32.const 7)) (global.get $r)))
  (func (export "rule:table_init") (table.init $t $e (i32.const 3) (i32.const 0) (i32.const 2)))
  (func (export "rule:drop_elem") (elem.drop $e))
  (func (export "rule:call") (param $at i32)
    (global.set $i (call_indirect $t (result i32) (i32.and (local.get $at) (i32.const 7)))))
  (func (export "fault:f") (param i32) (i32.store (i32.const 100) (local.get 0))))"#;

fn machine(wat: &str) -> Machine {
    let wasm = wat::parse_str(wat).unwrap();
    let program = Program::load(&wasm, Limits::default(), Selection::default()).unwrap();
    Machine::new(Arc::new(program)).unwrap()
}

fn random_action(machine: &Machine, rng: &mut Xoshiro256PlusPlus) -> Action {
    match rng.random_range(0..20) {
        0 => Action::Fault(0, rng.random()),
        _ => Action::Rule(rng.random_range(0..machine.rules().len() as u16)),
    }
}

#[test]
fn a_snapshot_holds_all_state() {
    for seed in 0..30 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut machine = machine(EVERYTHING);
        let mut chooser = Chooser::default();
        let mut saved = vec![(machine.snapshot().unwrap(), machine.state_from_scratch())];
        for _ in 0..400 {
            match rng.random_range(0..8) {
                0 => {
                    let snapshot = machine.snapshot().unwrap();
                    let state = machine.state();
                    assert_eq!(state, snapshot.hash());
                    assert_eq!(state, machine.state_from_scratch(), "a written page was not marked");
                    saved.push((snapshot, state));
                }
                1 => {
                    let (snapshot, state) = &saved[rng.random_range(0..saved.len())];
                    machine.restore(snapshot);
                    assert_eq!(machine.state_from_scratch(), *state, "something was not restored");
                }
                _ => {
                    chooser.begin(rng.random(), []);
                    let action = random_action(&machine, &mut rng);
                    machine.step(action, &mut chooser);
                    chooser.end();
                }
            }
        }
        for (snapshot, state) in &saved {
            assert_eq!(snapshot.hash(), *state, "a saved state was disturbed");
        }
    }
}

/// The target goes back to a bookmark from wherever it is, also from what was saved or restored since.
#[test]
fn a_bookmark_holds_all_state() {
    for seed in 0..60 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut machine = machine(EVERYTHING);
        let mut chooser = Chooser::default();
        let mut saved = vec![machine.snapshot().unwrap()];
        let mut marked = None;
        for _ in 0..400 {
            match (rng.random_range(0..12), marked) {
                (0, _) => saved.push(machine.snapshot().unwrap()),
                (1, _) => machine.restore(&saved[rng.random_range(0..saved.len())]),
                (2, _) => {
                    assert!(machine.bookmark());
                    // Nothing is saved for it.
                    marked = Some(machine.live_state());
                }
                (3 | 4, Some(state)) => {
                    machine.to_bookmark();
                    assert_eq!(machine.live_state(), state, "something was not put back");
                    if rng.random_range(0..8) == 0 {
                        assert_eq!(machine.state(), machine.state_from_scratch(), "a page was not marked");
                    }
                }
                _ => {
                    chooser.begin(rng.random(), []);
                    let action = random_action(&machine, &mut rng);
                    machine.step(action, &mut chooser);
                    chooser.end();
                }
            }
        }
    }
}

/// run(a·b) is run(a), snapshot, anything else, restore, run(b).
#[test]
fn a_run_does_not_notice_that_it_was_interrupted() {
    for seed in 0..30 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut straight, mut interrupted) = (machine(EVERYTHING), machine(EVERYTHING));
        let mut chooser = Chooser::default();
        for _ in 0..100 {
            if rng.random_range(0..4) == 0 {
                let snapshot = interrupted.snapshot().unwrap();
                for _ in 0..rng.random_range(0..10) {
                    chooser.begin(rng.random(), []);
                    let action = random_action(&interrupted, &mut rng);
                    interrupted.step(action, &mut chooser);
                }
                interrupted.restore(&snapshot);
            }
            let (action, step_seed) = (random_action(&straight, &mut rng), rng.random());
            let outcomes = [&mut straight, &mut interrupted].map(|machine| {
                chooser.begin(step_seed, []);
                machine.step(action, &mut chooser)
            });
            assert_eq!(outcomes[0], outcomes[1]);
            assert_eq!(straight.state_from_scratch(), interrupted.state_from_scratch());
        }
    }
}

/// Memories change their size by going to another place; more sizes than there are places kept.
#[test]
fn a_memory_ends_where_its_snapshot_says() {
    let mut machine = machine(
        r#"(module (memory 1)
             (func (export "rule:grow") (local $new i32)
               (local.set $new (i32.mul (memory.grow (i32.const 1)) (i32.const 65536)))
               (if (i64.ne (i64.load (local.get $new)) (i64.const 0)) (then (unreachable)))
               (if (i64.ne (i64.load offset=65528 (local.get $new)) (i64.const 0)) (then (unreachable)))
               (i64.store (local.get $new) (i64.const 7))
               (i64.store offset=65528 (local.get $new) (i64.const 7)))
             (func (export "rule:peek") (param i32) (drop (i32.load8_u (local.get 0)))))"#,
    );
    let mut chooser = Chooser::default();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut saved = vec![(machine.snapshot().unwrap(), 1)];
    let mut pages = 1;
    for _ in 0..2_000 {
        match rng.random_range(0..4) {
            0 | 1 if pages < 24 => {
                chooser.begin(1, []);
                assert_eq!(machine.step(Action::Rule(0), &mut chooser), Outcome::Pass);
                pages += 1;
            }
            2 => saved.push((machine.snapshot().unwrap(), pages)),
            _ => {
                let (snapshot, size) = saved[rng.random_range(0..saved.len())].clone();
                machine.restore(&snapshot);
                pages = size;
            }
        }
        for (address, expected) in [(pages * 65536 - 1, true), (pages * 65536, false)] {
            chooser.begin(1, [Some(Value::Integer(address))]);
            let outcome = machine.step(Action::Rule(1), &mut chooser);
            assert_eq!(outcome == Outcome::Pass, expected, "{outcome:?} at {address:#x}");
        }
    }
    assert_eq!(saved.iter().map(|(_, pages)| pages).collect::<BTreeSet<_>>().len(), 23);
}

fn check(wat: &str, expected: &str) {
    let mut machine = machine(wat);
    let mut chooser = Chooser::default();
    chooser.begin(1, []);
    let outcome = match machine.step(Action::Rule(0), &mut chooser) {
        Outcome::Fail(failure) => format!("{failure}, {}", failure.place.as_deref().unwrap_or("nowhere")),
        other => format!("{other:?}"),
    };
    assert_eq!(outcome, expected);
    // The machine goes on as if nothing had happened.
    machine.reset();
    let state = machine.state_from_scratch();
    machine.reset();
    assert_eq!(machine.state_from_scratch(), state);
}

#[test]
fn a_hostile_guest_comes_to_an_outcome() {
    check(
        r#"(module (func $f (export "rule:spin") (loop (br 0))))"#,
        "hang: the step did not end within its budget (--step-budget), in f+0x1, spin",
    );
    check(
        r#"(module (func $f (export "rule:deep") (call $f)))"#,
        "stack-overflow: calls nest deeper than 10000 (--depth-max), in f+0x1, deep",
    );
    check(
        r#"(module (memory 1) (func $f (export "rule:out") (drop (i32.load (i32.const 65536)))))"#,
        "trap: out of bounds memory access, f+0x5",
    );
    check(
        r#"(module (memory 1) (func $f (export "rule:grow")
            (if (i32.ne (memory.grow (i32.const 65535)) (i32.const -1)) (then (unreachable)))))"#,
        "Pass",
    );
    check(
        r#"(module (table 0 funcref) (func $f (export "rule:grow")
            (if (i32.ne (table.grow (ref.null func) (i32.const 0x7fffffff)) (i32.const -1)) (then (unreachable)))))"#,
        "Pass",
    );
    check(
        r#"(module (import "spelunk" "panic" (func $p (param i32 i32 i32 i32 i32 i32))) (memory 1)
            (func $f (export "rule:far") (call $p (i32.const -1) (i32.const 9) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))))"#,
        "trap: out of bounds memory access, f+0xd",
    );
    check(
        r#"(module (import "spelunk" "index" (func $i (param i32) (result i32)))
            (func $f (export "rule:none") (drop (call $i (i32.const 0)))))"#,
        "deadlock: a choice among nothing: no alternative is left, f+0x3",
    );
    check(
        r#"(module (import "spelunk" "float" (func $x (param f64 f64 i32) (result f64)))
            (func $f (export "rule:infinite") (drop (call $x (f64.const inf) (f64.const inf) (i32.const 2)))))"#,
        "Pass",
    );
    check(
        r#"(module (import "spelunk" "index" (func $i (param i32) (result i32)))
            (func $f (export "rule:flood") (loop (drop (call $i (i32.const 2))) (br 0))))"#,
        "abi: the step made more than 100000 choices, f+0x5",
    );
    // Named like a fault, and none.
    check(
        r#"(module (func $f (export "faulty") (param i32) (if (local.get 0) (then (unreachable)))))"#,
        "trap: wasm `unreachable` instruction executed, f+0x5",
    );
    check(
        r#"(module (import "spelunk" "bytes" (func $b (param i32 i32 i32) (result i32))) (memory 1)
            (func $f (export "rule:huge") (drop (call $b (i32.const 0) (i32.const 0) (i32.const -1)))))"#,
        "abi: bytes: more than 1048576 bytes are asked for at once, f+0x7",
    );
}
