//! What a guest has the host keep is limited, by what a step or a run does, and not by what came before.

use std::sync::Arc;

use spelunk::choice::Chooser;
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::outcome::Outcome;
use spelunk::search::{Explorer, Options};
use spelunk::target::Target;
use spelunk::trace::Action;

fn program(text: &str) -> Arc<Program> {
    let imports = r#"(import "spelunk" "bytes" (func $bytes (param i32 i32 i32) (result i32)))
      (import "spelunk" "index" (func $index (param i32) (result i32)))
      (import "spelunk" "target" (func $target (param f64 i32 i32)))
      (import "spelunk" "note" (func $note (param i32 i32)))
      (import "spelunk" "describe" (func $describe (param i32 i32 i32 i32)))
      (memory 17)"#;
    let wasm = wat::parse_str(format!("(module {imports} {text})")).unwrap();
    Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap())
}

/// What a step of the only rule comes to.
fn step(body: &str) -> String {
    let program = program(&format!("(func (export \"rule:a\") (local $i i32) {body})"));
    let mut machine = Machine::new(program).unwrap();
    let mut chooser = Chooser::default();
    match machine.step(Action::Rule(0), &mut chooser) {
        Outcome::Fail(failure) => failure.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_step_may_draw_so_many_bytes() {
    let draws = |count: u32, bytes: u32| {
        step(&format!(
            "(loop $l (drop (call $bytes (i32.const 0) (i32.const {bytes}) (i32.const {bytes})))
               (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {count}))))"
        ))
    };
    assert_eq!(draws(4, 1 << 18), "Pass");
    assert_eq!(draws(5, 1 << 18), "abi: the step drew more than 1048576 bytes");
    assert_eq!(draws(1, (1 << 20) + 1), "abi: bytes: more than 1048576 bytes are asked for at once");
}

/// Whether a note is kept does not decide how a step ends.
#[test]
fn notes_out_of_range_trap_always() {
    let out_of_bounds = "trap: out of bounds memory access";
    assert_eq!(step("(call $note (i32.const -9) (i32.const 10))"), out_of_bounds);
    assert_eq!(
        step("(call $describe (i32.const 0) (i32.const 10) (i32.const -9) (i32.const 10))"),
        out_of_bounds
    );
    assert_eq!(step("(call $note (i32.const 0) (i32.const 1000000))"), "Pass");
}

/// All memories of a guest together may have as many bytes as its limit says.
#[test]
fn memories_share_their_limit() {
    let limits = Limits { memory_bytes_max: 1 << 20, ..Limits::default() };
    let grown = |by: [u32; 2]| {
        let wasm = wat::parse_str(format!(
            r#"(module (memory 1) (memory 1) (func (export "rule:a")
              (if (i32.eq (i32.const -1) (memory.grow 0 (i32.const {}))) (then unreachable))
              (if (i32.eq (i32.const -1) (memory.grow 1 (i32.const {}))) (then unreachable))))"#,
            by[0], by[1]
        ));
        let program = Program::load(&wasm.unwrap(), limits, Selection::default()).unwrap();
        let mut machine = Machine::new(Arc::new(program)).unwrap();
        let root = machine.snapshot().unwrap();
        // Whatever was grown before: a restore gives it back.
        let outcomes = [0, 1].map(|_| {
            machine.restore(&root);
            machine.step(Action::Rule(0), &mut Chooser::default()) == Outcome::Pass
        });
        assert_eq!(outcomes[0], outcomes[1]);
        outcomes[0]
    };
    // The instrumentation's own memory does not count.
    assert_eq!([[7, 7], [14, 0], [7, 8], [15, 0]].map(grown), [true, true, false, false]);
}

/// A guest that gives each score a label of its own comes to one result with any number of workers.
#[test]
fn labels_without_end_come_to_one_result() {
    let program = program(
        r#"(func (export "rule:a") (local $n i32) (local $i i32)
             (local.set $n (i32.mul (call $index (i32.const 100000)) (i32.const 20)))
             (loop $l
               (i32.store (i32.const 0) (i32.add (local.get $n) (local.get $i)))
               (call $target (f64.convert_i32_u (local.get $i)) (i32.const 0) (i32.const 4))
               (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 20)))))"#,
    );
    let results = [1, 2, 3].map(|workers| {
        let mut machines: Vec<Machine> =
            (0..workers).map(|_| Machine::new(program.clone()).unwrap()).collect();
        let options = Options { seed: 1, steps_max: 1000, ..Options::default() };
        let mut explorer = Explorer::with_workers(&mut machines, options);
        explorer.explore(|progress| progress.runs < 60);
        let progress = explorer.progress();
        (progress.checkpoints, explorer.knowledge().scores.len(), progress.steps)
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
    assert_eq!(results[0].1, 10_000);
}
