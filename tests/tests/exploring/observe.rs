//! Numbers that a guest says are of interest lead where no edge does.

use std::sync::Arc;

use spelunk::coverage::SHOWN;
use spelunk::machine::{Limits, Program, Selection};
use spelunk::search::energy::{News, Strategy};
use spelunk::search::{Explorer, Options};
use spelunk_tests::{
    check_replays, exact, explore, known, machine, on_guest_stack, seeded, shrunk, steps_of,
};

/// A lock of 24 keys, each one of 16. A wrong one locks it again. How many were right is held as a product, and no branch depends
/// on it but the last.
const LOCK: &str = r#"(module
  (import "spelunk" "observe" (func $observe (param i64 i32 i32)))
  (memory 1) (data (i32.const 16) "right")
  (data (i32.const 1024) "\07\02\0e\09\00\0b\05\0d\03\0f\08\01\0c\06\0a\04\09\0e\02\07\0b\00\0d\05\00")
  (global $held (mut i64) (i64.const 0x1000000000000000))
  (func (export "rule:turn") (param $key i32) (local $at i32) (local $next i32)
    (local.set $at (i32.mul (i32.wrap_i64 (global.get $held)) (i32.const 0x0e8b2f51)))
    (local.set $next (select (i32.add (local.get $at) (i32.const 1)) (i32.const 0)
      (i32.eqz (i32.xor (i32.and (local.get $key) (i32.const 15)) (i32.load8_u offset=1024 (local.get $at))))))
    (global.set $held (i64.or (i64.const 0x1000000000000000)
      (i64.extend_i32_u (i32.mul (local.get $next) (i32.const 0x9e3779b1)))))
    OBSERVE
    (if (i32.eq (local.get $next) (i32.const 24)) (then unreachable))))"#;

/// A maze of which each wall sends back to the start. An input is a way through it.
const MAZE: &str = r#"(module
  (import "spelunk" "observe" (func $observe (param i64 i32 i32)))
  (memory (export "memory") 2) (data (i32.const 16) "right") (data (i32.const 32) "\f0\01\10\ff")
  (data (i32.const 256)
    "xxxxxxxxxxxxxxxx"
    "x  xxx     xxxxx"
    "xx xxx xxx xxxxx"
    "xx     xxx xxxxx"
    "xxxxxxxxxx xxxxx"
    "x*         xxxxx"
    "xxxxxxxxxxxxxxxx")
  (func (export "LLVMFuzzerTestOneInput") (param $data i32) (param $len i32) (result i32)
    (local $at i32) (local $next i32) (local $end i32)
    (local.set $next (i32.const 17))
    (local.set $end (i32.add (local.get $data) (local.get $len)))
    (block $done (loop $walk
      (br_if $done (i32.ge_u (local.get $data) (local.get $end)))
      (local.set $at (i32.add (local.get $next)
        (i32.load8_s offset=32 (i32.and (i32.load8_u (local.get $data)) (i32.const 3)))))
      (local.set $next (select (i32.const 17) (local.get $at)
        (i32.eq (i32.load8_u offset=256 (local.get $at)) (i32.const 120))))
      OBSERVE
      (if (i32.eq (local.get $next) (i32.const 81)) (then unreachable))
      (local.set $data (i32.add (local.get $data) (i32.const 1)))
      (br $walk)))
    (i32.const 0)))"#;

/// A guest that says how far it is, or that does not.
fn guest(text: &str, observes: bool) -> Arc<Program> {
    let observe = match observes {
        true => "(call $observe (i64.extend_i32_u (local.get $next)) (i32.const 16) (i32.const 5))",
        false => "",
    };
    let wasm = wat::parse_str(text.replace("OBSERVE", observe)).unwrap();
    Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap())
}

/// After how many runs the failure is found, with it and without; at most `max`.
fn runs(text: &str, max: u64) -> [u64; 2] {
    [true, false].map(|observes| {
        let program = guest(text, observes);
        let (found, progress) = explore(&mut machine(&program), seeded(1), max);
        if let Some(found) = found {
            check_replays(&program, &found.trace, &found.failure);
        }
        progress.runs
    })
}

#[test]
fn a_lock_opens_that_says_how_far_it_is() {
    on_guest_stack(|| {
        assert_eq!(runs(LOCK, 20_000), [1_749, 20_000]);
        let program = guest(LOCK, true);
        let mut machine = machine(&program);
        let (found, _) = explore(&mut machine, seeded(2), 20_000);
        let shrunk = shrunk(&mut machine, &found.expect("it opens"));
        assert_eq!(steps_of(&shrunk.trace), 24);
    });
}

#[test]
fn a_maze_is_left_that_says_where_it_is() {
    on_guest_stack(|| assert_eq!(runs(MAZE, 300_000), [91_251, 300_000]));
}

#[test]
fn workers_change_no_result() {
    on_guest_stack(|| {
        for text in [LOCK, MAZE] {
            for looks in [false, true] {
                let (program, options) = (guest(text, true), Options { looks, ..seeded(3) });
                let of = |workers| exact(&known(&program, &options, workers, &[3_000]));
                assert!(of(4) == of(1), "closer looks: {looks}");
            }
        }
    });
}

#[test]
fn what_is_not_guided_is_not() {
    on_guest_stack(|| {
        for text in [LOCK, MAZE] {
            let random = Options { strategy: Strategy::Random, ..seeded(1) };
            let [with, without] = [true, false].map(|observes| {
                let (mut machine, mut other) = (machine(&guest(text, observes)), Vec::new());
                let mut explorer = Explorer::new(&mut machine, random.clone());
                explorer.explore(|progress| progress.runs < 2_000);
                other.extend(explorer.findings().cloned());
                (explorer.progress(), other)
            });
            assert_eq!(with, without);
            assert_eq!(with.0.checkpoints, 0);
        }
    });
}

/// One that observes other numbers under other names in each step, a hundred thousand of each.
const HOSTILE: &str = r#"(module
  (import "spelunk" "observe" (func $observe (param i64 i32 i32)))
  (memory 1) (global $x (mut i64) (i64.const 1))
  (func (export "rule:flood") (param $from i64) (local $i i32)
    (loop $next
      (global.set $x (i64.add (i64.mul (i64.xor (global.get $x) (local.get $from)) (i64.const 6364136223846793005))
        (i64.const 1442695040888963407)))
      (i64.store (i32.const 64) (global.get $x))
      (call $observe (global.get $x) (i32.const 64) (i32.const 8))
      (call $observe (i64.extend_i32_u (local.get $i)) (i32.const 0) (i32.const 512))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 100000)))))
  (func (export "rule:outside") (call $observe (i64.const 1) (i32.const 65530) (i32.const 7)))
  (func (export "rule:endless") (call $observe (i64.const 1) (i32.const 0) (i32.const 65537))))"#;

#[test]
fn what_a_guest_observes_is_bounded() {
    on_guest_stack(|| {
        let wasm = wat::parse_str(HOSTILE).unwrap();
        let program = Program::load(&wasm, Limits::default(), Selection::default()).unwrap();
        let mut machine = machine(&Arc::new(program));
        let options = Options { steps_max: 2, ..seeded(1) };
        let mut explorer = Explorer::new(&mut machine, options);
        explorer.explore(|progress| progress.runs < 100);
        let known = explorer.knowledge();
        let observed = known.features.iter().filter(|(feature, _)| *feature >= SHOWN).count();
        let kept = known.checkpoints.count(News::Shown);
        let found: Vec<_> = explorer.findings().map(|found| found.failure.to_string()).collect();
        let expected =
            ["abi: a name of 65537 bytes; 65536 are the most", "trap: out of bounds memory access"];
        assert_eq!((observed, kept, found), (413_477, 100, expected.map(str::to_string).to_vec()));
    });
}
