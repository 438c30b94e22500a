//! A guest that runs on is stopped when the time is up, whatever of it runs, and what it did does not count.

use std::sync::Arc;
use std::time::{Duration, Instant};

use spelunk::budget::Budget;
use spelunk::choice::Chooser;
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::outcome::{Halt, Outcome};
use spelunk::target::Target;
use spelunk::trace::Action;

const TIME: Duration = Duration::from_millis(300);
/// What may be added to it: two ticks of the watchdog, and what a busy machine needs. A guest that is not stopped takes a lifetime.
const LATE: Duration = Duration::from_secs(3);

/// A step budget that does not end in a lifetime.
fn limits() -> Limits {
    Limits { step_budget: i32::MAX as u32, ..Limits::default() }
}

fn program(source: &str) -> Arc<Program> {
    let wasm = wat::parse_str(format!("(module {source})")).unwrap();
    Arc::new(Program::load_with(&wasm, limits(), Selection::default(), None, &Budget::unlimited()).unwrap())
}

/// What `f` gives, which takes as long as the budget lasts.
fn until_stopped<T>(program: &Program, f: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    program.budget().limit(TIME);
    let result = f();
    let took = began.elapsed();
    assert!((TIME..TIME + LATE).contains(&took), "it took {took:?}");
    result
}

const LOOP: &str = "(loop $l (br $l))";

fn check(source: &str, action: Action) {
    let program = program(source);
    let mut machine = Machine::new(program.clone()).unwrap();
    let outcome = until_stopped(&program, || machine.step(action, &mut Chooser::default()));
    assert_eq!(outcome, Outcome::Stopped, "{source}");
    // Nothing runs any more.
    assert_eq!(machine.step(action, &mut Chooser::default()), Outcome::Stopped, "{source}");
}

#[test]
fn steps_are_stopped() {
    let rule = "(func (export \"rule:a\"))";
    check(&format!("(func (export \"rule:a\") {LOOP})"), Action::Rule(0));
    check(&format!("{rule} (func (export \"setup\") {LOOP})"), Action::Setup);
    check(&format!("{rule} (func (export \"teardown\") {LOOP})"), Action::Teardown);
    check(&format!("{rule} (func (export \"fault:f\") (param i32) {LOOP})"), Action::Fault(0, true));
    check(&format!("{rule} (func (export \"invariant:i\") {LOOP})"), Action::Rule(0));
    check(
        &format!(
            "(memory 1) (func (export \"malloc\") (param i32) (result i32) {LOOP} (i32.const 8))
             (func (export \"LLVMFuzzerTestOneInput\") (param i32 i32) (result i32) (i32.const 0))"
        ),
        Action::Rule(0),
    );
    // Calls of the host in between, and bulk operations.
    check(
        "(import \"spelunk\" \"event\" (func $event (param i32 i32))) (memory 1)
         (func (export \"rule:a\") (loop $l (call $event (i32.const 0) (i32.const 65536)) (br $l)))",
        Action::Rule(0),
    );
    check(
        "(memory 1024) (func (export \"rule:a\")
           (loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 67108864)) (br $l)))",
        Action::Rule(0),
    );
}

#[test]
fn preconditions_and_states_are_stopped() {
    let precondition = program(&format!(
        "(func (export \"rule:a\")) (func (export \"precondition:a\") (result i32) {LOOP} (i32.const 1))"
    ));
    let mut machine = Machine::new(precondition.clone()).unwrap();
    let halt = until_stopped(&precondition, || machine.enabled(&mut Vec::new()));
    assert_eq!(halt, Err(Halt::Stopped));
    let state = program(&format!(
        "(import \"spelunk\" \"state\" (func (param i32 i32))) (memory 1)
         (func (export \"rule:a\")) (func (export \"state\") {LOOP})"
    ));
    let mut machine = Machine::new(state.clone()).unwrap();
    assert_eq!(until_stopped(&state, || machine.compared_state()), Err(Halt::Stopped));
}

#[test]
fn start_functions_are_stopped() {
    let program = program(&format!("(func $s {LOOP}) (start $s) (func (export \"rule:a\"))"));
    let Err(error) = until_stopped(&program, || Machine::new(program.clone())) else { panic!("it started") };
    let expected = "the time was up (--time) before there was a result";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn compiling_is_stopped() {
    let body = "(local.set 0 (i32.add (i32.rotl (local.get 0) (i32.load (local.get 0))) (i32.const 77)))";
    let source =
        format!("(module (memory 1) (func (export \"rule:a\") (param i32) {}))", body.repeat(300_000));
    let wasm = wat::parse_str(source).unwrap();
    let budget = Budget::of(TIME);
    let began = Instant::now();
    let loaded = Program::load_with(&wasm, limits(), Selection::default(), None, &budget);
    let took = began.elapsed();
    let expected =
        "compiling the module did not come to its end: the time was up (--time) before there was a result";
    assert_eq!(format!("{:#}", loaded.err().unwrap()), expected);
    assert!(took < TIME + LATE, "it took {took:?}");
}

/// Work that no loop or call counts one by one is charged, so that the default budget lasts seconds at most.
#[test]
fn the_default_step_budget_lasts_seconds() {
    let divisions = |op: &str, ty: &str| {
        let x = "(local.get $x)";
        let nested = format!("{}{x}{}", format!("({op} ").repeat(30_000), format!("{x})").repeat(30_000));
        format!(
            "(memory 1) (data (i32.const 0) \"\\03\")
             (func (export \"rule:{op}\") (local $x {ty}) (local.set $x ({ty}.load (i32.const 0)))
               (loop $l ({ty}.store (i32.const 8) ({ty}.add {nested} ({ty}.load (i32.const 8)))) (br $l)))"
        )
    };
    let sources = [
        divisions("i32.div_u", "i32"),
        divisions("i64.rem_s", "i64"),
        divisions("f64.div", "f64"),
        divisions("i32.add", "i32"),
        "(tag $e) (func (export \"rule:throw\") (loop $l (block (try_table (catch_all 0) (throw $e))) (br $l)))".into(),
        "(type $a (array (mut i64))) (func (export \"rule:array\")
           (loop $l (drop (array.new_default $a (i32.const 100))) (br $l)))".into(),
        "(type $s (struct (field i64))) (func (export \"rule:struct\")
           (loop $l (drop (struct.new_default $s)) (br $l)))".into(),
        "(memory 1) (func (export \"rule:grow\") (loop $l (drop (memory.grow (i32.const 0))) (br $l)))".into(),
        "(table 4096 funcref) (func (export \"rule:table\")
           (loop $l (table.fill (i32.const 0) (ref.null func) (i32.const 4096)) (br $l)))".into(),
        "(memory 1) (func (export \"rule:copy\")
           (loop $l (memory.copy (i32.const 0) (i32.const 9) (i32.const 1000)) (br $l)))".into(),
        "(import \"spelunk\" \"event\" (func $event (param i32 i32))) (memory 1)
         (func (export \"rule:event\") (loop $l (call $event (i32.const 0) (i32.const 65536)) (br $l)))".into(),
        "(import \"spelunk\" \"sometimes\" (func $p (param i32 i32 i32))) (memory 1)
         (func (export \"rule:property\") (loop $l (call $p (i32.const 0) (i32.const 65536) (i32.const 1)) (br $l)))".into(),
    ];
    for source in sources {
        let wasm = wat::parse_str(format!("(module {source})")).unwrap();
        let program = Program::load(&wasm, Limits::default(), Selection::default()).unwrap();
        let mut machine = Machine::new(Arc::new(program)).unwrap();
        let name = machine.rules()[0].name.clone();
        machine.set_counts(true);
        let began = Instant::now();
        let outcome = machine.step(Action::Rule(0), &mut Chooser::default());
        let took = began.elapsed();
        eprintln!("{name}: {took:?}");
        let Outcome::Fail(failure) = outcome else { panic!("{name}: {outcome:?}") };
        assert_eq!(
            failure.to_string().split(',').next().unwrap(),
            "hang: the step did not end within its budget (--step-budget)",
            "{name}"
        );
        assert!(took < Duration::from_secs(6), "{name}: it took {took:?}");
    }
}
