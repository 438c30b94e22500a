//! Errors of the stack are found where they are, and nowhere else.

use std::fs;
use std::sync::Arc;

use spelunk::choice::Chooser;
use spelunk::machine::{Limits, Machine, Program, Sanitizer, Selection};
use spelunk::outcome::{Failure, FailureKind, Outcome};
use spelunk::search::Explorer;
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_instrumenter::{Options, instrument};
use spelunk_tests::{check_replays, found_either_way, machine, on_guest_stack, seeded, tools, wasm};

fn with(sanitize: &[Sanitizer]) -> Selection {
    Selection { sanitize: sanitize.to_vec(), ..Selection::default() }
}

const STACK: &[Sanitizer] = &[Sanitizer::Stack];
const BOTH: &[Sanitizer] = &[Sanitizer::Heap, Sanitizer::Stack];

fn load(wasm: &[u8], sanitize: &[Sanitizer]) -> Arc<Program> {
    let program = Program::load(wasm, Limits::default(), with(sanitize));
    Arc::new(program.unwrap_or_else(|error| panic!("{error:#}")))
}

fn rule(machine: &Machine, name: &str) -> Action {
    let rule = machine.rules().iter().position(|known| &*known.name == name);
    Action::Rule(rule.unwrap_or_else(|| panic!("no rule {name}")) as u16)
}

/// What calling a rule once from the start comes to.
fn call(machine: &mut Machine, name: &str) -> Outcome {
    machine.reset();
    let rule = rule(machine, name);
    machine.step(rule, &mut Chooser::default())
}

/// By rule: the function whose frame it is, the function that the place is in, and what is beyond it.
const ERRORS: &[(&str, &str, &str)] = &[
    ("write_after", "write_after", "write_after"),
    ("read_after", "read_after", "read_after"),
    ("write_by_pointer", "write_by_pointer", "write_by_pointer"),
    ("off_by_one", "off_by_one", "off_by_one"),
    ("fill_too_much", "fill_too_much", "fill_too_much"),
    ("copy_too_much", "copy_too_much", "copy_too_much"),
    ("string_too_long", "string_too_long", "string_too_long"),
    ("end_of_struct", "end_of_struct", "end_of_struct"),
    ("in_inlined", "in_inlined", "inlined"),
    ("in_recursion", "deeper", "deeper"),
    ("too_few_arguments", "too_few_arguments", "add"),
    ("by_value", "by_value", "total"),
    ("in_large_frame", "in_large_frame", "in_large_frame"),
    ("by_callee", "by_callee", "fills"),
    ("with_variable_size", "variable", "variable"),
    ("aligned", "aligned", "aligned"),
    ("by_the_host", "by_the_host", "by_the_host"),
];

/// The function of `errors.c` that this line, from 1, is of.
fn function_at(line: usize) -> &'static str {
    let source = include_str!("../../guests/stack/errors.c");
    let name = |line: &'static str| {
        let rule = line.strip_prefix("RULE(").and_then(|rest| rest.split(')').next());
        let function = || line.strip_prefix("static ")?.split_once('(')?.0.rsplit([' ', '*']).next();
        rule.or_else(|| line.contains(") {").then(function)?)
    };
    source.lines().take(line).filter_map(name).last().expect("a function is before it")
}

/// What is wrong with what calling a rule comes to.
fn mistold(outcome: &Outcome, (rule, frame, function): (&str, &str, &str)) -> Option<String> {
    let Outcome::Fail(failure) = outcome else { return Some(format!("{rule}: {outcome:?}")) };
    let Failure { kind, message, place, .. } = &**failure;
    let line = place.as_deref().and_then(|place| place.split_once("stack/errors.c:"));
    let line = line.and_then(|(_, line)| line.split(':').next()?.parse().ok());
    let is_told = *kind == FailureKind::StackBufferOverflow
        && message.contains(&format!(" beyond the frame of {frame}"))
        && line.is_some_and(|line| function_at(line) == function);
    (!is_told).then(|| format!("{rule}: {failure:?}"))
}

#[test]
fn each_error_of_a_c_program_is_found_and_told() {
    let plain = &["-O0", "-fno-stack-protector", "-fno-sanitize=undefined"];
    for flags in [&plain[..], &["-O1"], &["-O2"], &["-O2", "-mbulk-memory"]] {
        let Some(wasm) = tools::compiled("stack/errors.c", flags) else { return };
        for sanitize in [STACK, BOTH] {
            let program = load(&wasm, sanitize);
            on_guest_stack(|| {
                let mut machine = machine(&program);
                let told = ERRORS.iter().filter_map(|error| mistold(&call(&mut machine, error.0), *error));
                assert_eq!(told.collect::<Vec<_>>(), [] as [String; 0], "{flags:?}");
                let of_heap = match call(&mut machine, "of_the_heap") {
                    Outcome::Fail(failure) => Some(failure.kind),
                    _ => None,
                };
                assert_eq!(of_heap, (sanitize == BOTH).then_some(FailureKind::HeapBufferOverflow));
                for rule in ["none", "none_by_the_host"] {
                    assert_eq!(call(&mut machine, rule), Outcome::Pass, "{flags:?}");
                }
            });
        }
    }
}

#[test]
fn snapshots_change_no_finding() {
    let Some(wasm) = tools::compiled("stack/errors.c", &["-O1"]) else { return };
    on_guest_stack(|| {
        let program = load(&wasm, STACK);
        let findings = found_either_way(&program, 500);
        assert_eq!(findings.len(), ERRORS.len());
        for found in &findings {
            check_replays(&program, &found.trace, &found.failure);
        }
    });
}

#[test]
fn a_hundred_thousand_operations_give_the_same_content_and_no_finding() {
    for flags in [&["-O2"][..], &["-O0"]] {
        let Some(wasm) = tools::compiled("heap/random.c", flags) else { return };
        let told = |sanitize| {
            let program = load(&wasm, sanitize);
            on_guest_stack(|| {
                let mut machine = machine(&program);
                machine.reset();
                let [operate, tell] = ["operate", "tell"].map(|name| rule(&machine, name));
                for _ in 0..100 {
                    assert_eq!(machine.step(operate, &mut Chooser::default()), Outcome::Pass, "{flags:?}");
                }
                let state = machine.state();
                assert_eq!(machine.state_from_scratch(), state);
                machine.tell(tell, &mut Chooser::default()).notes
            })
        };
        let expected = told(&[]);
        assert_eq!(expected[0].len(), 8);
        assert_eq!((told(STACK), told(BOTH)), (expected.clone(), expected));
    }
}

#[test]
fn correct_examples_have_no_finding_of_the_stack() {
    let rust = ["bank", "kv", "cache", "order", "settings-wasi"];
    let built = ["ranges-cpp", "ring-c", "allocator-zig", "lease-wasi"];
    for example in rust.into_iter().chain(built) {
        let wasm = if built.contains(&example) {
            let Some(module) = tools::build(example) else { continue };
            fs::read(module).unwrap()
        } else {
            wasm(example, &[]).to_vec()
        };
        let program = load(&wasm, STACK);
        on_guest_stack(|| {
            let mut machine = machine(&program);
            let mut explorer = Explorer::new(&mut machine, seeded(0));
            explorer.explore(|progress| progress.runs < 2_000);
            let kinds: Vec<FailureKind> = explorer.findings().map(|found| found.failure.kind).collect();
            assert!(!kinds.iter().any(|kind| kind.is_sanitized()), "{example}: {kinds:?}");
        });
    }
}

/// A module with a stack of 4 KiB, with these functions.
fn module(functions: &str) -> Vec<u8> {
    let text = format!(
        r#"(module (memory (export "memory") 1) (global $__stack_pointer (mut i32) (i32.const 4096))
           (tag $thrown) {functions})"#
    );
    wat::parse_str(text.replace("$sp", "$__stack_pointer")).unwrap_or_else(|error| panic!("{error}"))
}

/// How many functions have a zone beyond their frame, and how many are left alone.
fn counted(wasm: &[u8]) -> (u32, u32) {
    let options = Options { stack: true, ..Options::default() };
    let frames = instrument(wasm, &options).unwrap().layout.sanitizer.unwrap().frames.unwrap();
    (frames.with_zone, frames.left_alone)
}

const DOWN: &str = "(global.set $sp (local.tee $f (i32.sub (global.get $sp) (i32.const 16))))";
const UP: &str = "(global.set $sp (i32.add (local.get $f) (i32.const 16)))";

/// A function with this code beside one with a frame: how many more have a zone and are left alone.
fn check(code: &str, expected: (u32, u32)) {
    let code = code.replace("DOWN", DOWN).replace("UP", UP);
    let wasm = module(&format!(
        r#"(func $g (result i32) (i32.const 7)) (func $h)
           (func $f (param i32) (result i32) (local $f i32) (local $n i32) {code})
           (func (export "rule:a") (local $f i32)
              {DOWN}
              (i32.store (local.get $f) (global.get $sp))
              (if (i32.ne (call $f (i32.const 1)) (i32.const 7)) (then unreachable))
              (if (i32.ne (call $f (i32.const 0)) (i32.const 7)) (then unreachable))
              (if (i32.ne (i32.load (local.get $f)) (global.get $sp)) (then unreachable))
              {UP})"#
    ));
    assert_eq!(counted(&wasm), (expected.0 + 1, expected.1), "{code}");
    for sanitize in [&[], STACK] {
        let program = load(&wasm, sanitize);
        on_guest_stack(|| assert_eq!(call(&mut machine(&program), "a"), Outcome::Pass, "{code}"));
    }
}

#[test]
fn the_stack_alone_asks_nothing_of_the_allocator() {
    let wasm = module(
        r#"(func $"dlmalloc::Dlmalloc::malloc" (result i32) (i32.const 8))
           (func $"__rustc::__rdl_alloc" (param i32 i32) (result i32) (call $"dlmalloc::Dlmalloc::malloc"))
           (func (export "rule:f") (local i32)
             (global.set $__stack_pointer (local.tee 0 (i32.sub (global.get $__stack_pointer) (i32.const 16))))
             (i32.store (local.get 0) (call $"__rustc::__rdl_alloc" (i32.const 1) (i32.const 1)))
             (global.set $__stack_pointer (i32.add (local.get 0) (i32.const 16))))"#,
    );
    load(&wasm, STACK);
}

#[test]
fn a_function_that_gives_the_stack_pointer_back_has_a_zone() {
    check("DOWN (call $g) UP", (1, 0));
    check("DOWN (if (local.get 0) (then (call $g) UP return)) (call $h) UP (i32.const 7)", (1, 0));
    check("DOWN (call $g) (local.get 0) UP (br_if 0) (br 0)", (1, 0));
    check("DOWN (call $g) UP (local.get 0) (br_table 0 0 0)", (1, 0));
    check("DOWN (call $h) UP (return_call $g)", (1, 0));
    check(
        "DOWN (loop (call $h) (br_if 0 (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 9)))) (i32.const 7) UP",
        (1, 0),
    );
    // Below the stack pointer, which functions may use that call no others.
    check(
        "(i32.store offset=12 (i32.sub (global.get $sp) (i32.const 16)) (i32.const 7)) (i32.load offset=12 (i32.sub (global.get $sp) (i32.const 16)))",
        (1, 0),
    );
    // Room of a size that is computed, and aligned.
    check(
        "(global.set $sp (i32.sub (local.tee $f (global.get $sp)) (i32.shl (local.get 0) (i32.const 5)))) (call $h)
         (i32.const 7) (global.set $sp (local.get $f))",
        (1, 0),
    );
    check(
        "(global.set $sp (i32.and (i32.sub (local.tee $f (global.get $sp)) (i32.const 64)) (i32.const -64))) (call $h)
         (i32.const 7) (global.set $sp (local.get $f))",
        (1, 0),
    );
    check("(if (local.get 0) (then DOWN (call $h) UP)) (i32.const 7)", (1, 0));
}

#[test]
fn a_function_that_does_anything_else_is_left_alone() {
    // What it is given may be what the stack pointer is set to later.
    check("DOWN (local.set $n (global.get $sp)) UP (drop (i32.eqz (global.get $sp))) (i32.const 7)", (0, 1));
    check("DOWN (call $h) UP (i32.store (i32.const 8) (global.get $sp)) (i32.const 7)", (0, 1));
    check(
        "(local.set $f (global.get $sp)) (if (local.get 0) (then (local.set $f (i32.const 0)))) (drop (i32.sub (global.get $sp) (i32.const 16))) (i32.const 8) (local.get $f) i32.store (i32.const 7)",
        (0, 1),
    );
    check(
        "(local.set $f (global.get $sp)) (if (local.get 0) (then (global.set $sp (i32.sub (local.get $f) (i32.const 16))))) (call $h) (global.set $sp (local.get $f)) (call $g)",
        (0, 1),
    );
    // Upwards, where others have their frames, or from there.
    check(
        "(global.set $sp (i32.add (local.tee $f (global.get $sp)) (i32.const 16))) (call $h) (global.set $sp (local.get $f)) (i32.const 7)",
        (0, 1),
    );
    check("(drop (i32.load (global.get $sp))) DOWN (call $h) UP (i32.const 7)", (0, 1));
    check("(call $h) (drop (i32.load (i32.sub (global.get $sp) (i32.const 16)))) (i32.const 7)", (0, 1));
}

/// Frames that an exception left are nobody's, and others have theirs there.
const THROWS: &str = r#"
    (func $throws (param $depth i32) (local $f i32)
      (global.set $sp (local.tee $f (i32.sub (global.get $sp) (i32.const 16))))
      (if (i32.eqz (local.get $depth)) (then (throw $thrown)))
      (call $throws (i32.sub (local.get $depth) (i32.const 1)))
      (global.set $sp (i32.add (local.get $f) (i32.const 16))))
    (func $below (param $bytes i32)
      (drop (i32.eqz (global.get $sp)))
      (memory.fill (i32.sub (global.get $sp) (local.get $bytes)) (i32.const 7) (local.get $bytes)))
    (func $catches (param $bytes i32) (local $f i32)
      (global.set $sp (local.tee $f (i32.sub (global.get $sp) (i32.const 32))))
      (block $caught (try_table (catch $thrown $caught) (call $throws (i32.const 9))))
      (global.set $sp (local.get $f))
      (call $below (i32.const 400))
      (memory.fill (local.get $f) (i32.const 7) (local.get $bytes))
      (global.set $sp (i32.add (local.get $f) (i32.const 32))))
    (func $plain (local $f i32)
      (block $caught (try_table (catch $thrown $caught) (call $throws (i32.const 9)))))
    (func (export "rule:ends") (call $catches (i32.const 32)))
    (func (export "rule:overflows") (call $catches (i32.const 33)))
    (func (export "rule:saved") (local $saved i32)
      (local.set $saved (global.get $sp))
      (call $plain)
      (global.set $sp (local.get $saved))
      (call $below (i32.const 400)))"#;

#[test]
fn frames_that_an_exception_left_give_no_finding() {
    let wasm = module(THROWS);
    assert_eq!(counted(&wasm), (2, 2));
    let program = load(&wasm, STACK);
    on_guest_stack(|| {
        let mut machine = machine(&program);
        assert_eq!(call(&mut machine, "ends"), Outcome::Pass);
        assert_eq!(call(&mut machine, "saved"), Outcome::Pass);
        let Outcome::Fail(failure) = call(&mut machine, "overflows") else { panic!("it passes") };
        assert_eq!(failure.kind, FailureKind::StackBufferOverflow);
        assert_eq!(failure.message, "write of 33 bytes, 0 bytes beyond the frame of catches");
    });
}

/// Emscripten's `setjmp` returns through the host, which puts the stack pointer back.
const LONGJMP: &str = r#"(module
    (import "env" "invoke_v" (func $invoke (param i32)))
    (import "env" "_emscripten_throw_longjmp" (func $throw))
    (table (export "__indirect_function_table") 4 funcref) (elem (i32.const 1) $leaves)
    (memory (export "memory") 1) (global $__stack_pointer (mut i32) (i32.const 4096))
    (func (export "setThrew") (param i32 i32))
    (func (export "emscripten_stack_get_current") (result i32) (global.get $__stack_pointer))
    (func (export "_emscripten_stack_restore") (param i32) (global.set $__stack_pointer (local.get 0)))
    (func $leaves (local $f i32)
      (global.set $__stack_pointer (local.tee $f (i32.sub (global.get $__stack_pointer) (i32.const 48))))
      (i32.store (local.get $f) (i32.const 1))
      (call $throw)
      (global.set $__stack_pointer (i32.add (local.get $f) (i32.const 48))))
    (func $below (drop (i32.eqz (global.get $__stack_pointer)))
      (memory.fill (i32.sub (global.get $__stack_pointer) (i32.const 400)) (i32.const 7) (i32.const 400)))
    (func (export "check") (local $f i32)
      (global.set $__stack_pointer (local.tee $f (i32.sub (global.get $__stack_pointer) (i32.const 32))))
      (call $invoke (i32.const 1))
      (if (i32.ne (local.get $f) (global.get $__stack_pointer)) (then unreachable))
      (call $below)
      (memory.fill (local.get $f) (i32.const 7) (i32.const 32))
      (global.set $__stack_pointer (i32.add (local.get $f) (i32.const 32)))))"#;

#[test]
fn frames_that_longjmp_left_give_no_finding() {
    let wasm = wat::parse_str(LONGJMP).unwrap();
    assert_eq!(counted(&wasm), (2, 2));
    let program = load(&wasm, STACK);
    on_guest_stack(|| {
        let mut machine = machine(&program);
        let mut explorer = Explorer::new(&mut machine, seeded(0));
        explorer.explore(|progress| progress.runs < 20);
        assert_eq!(explorer.findings().next(), None);
    });
}

#[test]
fn what_has_no_stack_is_refused() {
    let refused = |wasm: &[u8]| {
        let error = Program::load(wasm, Limits::default(), with(STACK)).err().unwrap();
        error.to_string()
    };
    let none = wat::parse_str(r#"(module (memory 1) (func (export "rule:a")))"#).unwrap();
    assert_eq!(
        refused(&none),
        "the stack cannot be sanitized: the module has no global called `__stack_pointer`, which LLVM's compilers give it; \
         keep its names (do not strip it), or export that global"
    );
    let unused = module(r#"(func (export "rule:a"))"#);
    let expected =
        "the stack cannot be sanitized: no function of the module has variables on the stack in memory";
    assert!(refused(&unused).starts_with(expected), "{}", refused(&unused));
    let constant =
        r#"(module (memory 1) (global $__stack_pointer i32 (i32.const 8)) (func (export "rule:a")))"#;
    let constant = refused(&wat::parse_str(constant).unwrap());
    assert_eq!(constant, "the stack cannot be sanitized: the global `__stack_pointer` is not a mutable i32");
}
