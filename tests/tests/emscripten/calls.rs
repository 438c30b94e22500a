//! Calls that are left, memory that is given, and the start of programs, in small modules.

use std::sync::Arc;

use spelunk::choice::Chooser;
use spelunk::file::{Conditions, Environment, HostFault};
use spelunk::machine::{Limits, Program, Selection};
use spelunk::outcome::{Failure, FailureKind, Outcome};
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_tests::{explore, machine, seeded};

fn load(text: &str, environment: Environment) -> anyhow::Result<Arc<Program>> {
    let wasm = wat::parse_str(format!("(module {text})")).unwrap_or_else(|error| panic!("{error}"));
    let conditions = Conditions { limits: Limits::default(), selection: Selection::default(), environment };
    Program::load_in(&wasm, conditions, None, &spelunk::Budget::unlimited()).map(Arc::new)
}

/// How 20 runs of a guest fail.
fn failure_in(text: &str, environment: Environment) -> Option<Failure> {
    let program = load(text, environment).unwrap_or_else(|error| panic!("{error:#}"));
    explore(&mut machine(&program), seeded(1), 20).0.map(|found| found.failure)
}

fn failure(text: &str) -> Option<Failure> {
    failure_in(text, Environment::default())
}

fn check_passes(text: &str) {
    let failure = failure(text);
    assert!(failure.is_none(), "{failure:?}");
}

/// A module whose calls can be left, with the functions of its table, which begins at 1.
fn leaving(imports: &str, table: &str, rest: &str) -> String {
    format!(
        r#"(import "env" "invoke_v" (func $invoke (param i32))) {imports}
        (table (export "__indirect_function_table") 4 funcref) (elem (i32.const 1) {table})
        (memory (export "memory") 1) (global $stack (mut i32) (i32.const 900)) (global $threw (mut i32) (i32.const 0))
        (func (export "setThrew") (param i32 i32) (global.set $threw (local.get 0)))
        (func (export "emscripten_stack_get_current") (result i32) (global.get $stack))
        (func (export "_emscripten_stack_restore") (param i32) (global.set $stack (local.get 0)))
        (func $same (param i32 i32) (if (i32.ne (local.get 0) (local.get 1)) (then unreachable)))
        {rest}"#
    )
}

const LONGJMP: &str = r#"(import "env" "_emscripten_throw_longjmp" (func $throw))"#;

#[test]
fn a_call_that_is_left_returns_to_the_nearest_invoke() {
    check_passes(&leaving(
        LONGJMP,
        "$leaves $returns $nests",
        r#"(func $leaves
            (global.set $stack (i32.const 50)) (i32.store (i32.const 0) (i32.const 7)) (call $throw))
        (func $returns (global.set $stack (i32.const 60)))
        (func $nests (call $invoke (i32.const 1)) (call $same (global.get $threw) (i32.const 1)))
        (func (export "check")
            (call $invoke (i32.const 1))
            (call $same (global.get $threw) (i32.const 1)) (call $same (global.get $stack) (i32.const 900))
            (call $same (i32.load (i32.const 0)) (i32.const 7))
            (global.set $threw (i32.const 0)) (call $invoke (i32.const 2))
            (call $same (global.get $threw) (i32.const 0)) (call $same (global.get $stack) (i32.const 60))
            (call $invoke (i32.const 3)))"#,
    ));
}

/// However deep it is, it ends at the same depth on every machine.
#[test]
fn recursion_through_the_host_overflows() {
    let recursive = r#"(func $f (global.set $depth (i32.add (global.get $depth) (i32.const 1)))
            (if (i32.lt_u (global.get $depth) (global.get $until)) (then (call $invoke (i32.const 1)))))
        (global $depth (mut i32) (i32.const 0)) (global $until i32 (i32.const UNTIL))
        (func (export "check") (call $f))"#;
    let deep = |until: &str| failure(&leaving("", "$f", &recursive.replace("UNTIL", until)));
    // Each takes one level of its own, and two of the host's.
    assert_eq!(deep("3333"), None);
    assert_eq!(deep("3334").unwrap().kind, FailureKind::StackOverflow);
}

#[test]
fn a_call_that_nobody_catches_is_a_failure() {
    let text = leaving(LONGJMP, "$f", r#"(func $f) (func (export "check") (call $throw))"#);
    let failure = failure(&text).unwrap();
    assert_eq!(failure.kind, FailureKind::Panic);
    assert_eq!(failure.message, "a longjmp leads to no setjmp that is active");
}

#[test]
fn calls_through_the_host_count_as_calls() {
    let deep =
        leaving("", "$f", r#"(func $f (call $invoke (i32.const 1))) (func (export "check") (call $f))"#);
    assert_eq!(failure(&deep).unwrap().kind, FailureKind::StackOverflow);
    // The depth is that of the call which catches: it may be left as often as one likes.
    let often = leaving(
        LONGJMP,
        "$f",
        r#"(func $f (param i32) (if (local.get 0) (then (call $f (i32.sub (local.get 0) (i32.const 1))))) (call $throw))
        (func $g (call $f (i32.const 900)))
        (elem (i32.const 2) $g)
        (func (export "check") (local $left i32) (local.set $left (i32.const 100))
            (loop $again (call $invoke (i32.const 2))
                (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))"#,
    );
    check_passes(&often);
    let long = leaving(
        "",
        "$a $b $c",
        r#"(func $a) (func $b (call $invoke (i32.const 1)))
        (func $c (loop $again (call $invoke (i32.const 2)) (br $again))) (func (export "check") (call $c))"#,
    );
    assert_eq!(failure(&long).unwrap().kind, FailureKind::Hang);
}

#[test]
fn elements_that_cannot_be_called_are_traps() {
    for (index, message) in
        [(0, "uninitialized element"), (9, "undefined element"), (2, "indirect call type mismatch")]
    {
        let text = leaving(
            "",
            "$f $g",
            &format!(
                r#"(func $f) (func $g (param i32)) (func (export "check") (call $invoke (i32.const {index})))"#
            ),
        );
        let failure = failure(&text).unwrap();
        assert!(failure.message.contains(message), "{index}: {}", failure.message);
    }
}

#[test]
fn what_cannot_be_caught_is_refused_by_its_name() {
    let text = r#"(import "env" "invoke_v" (func (param i32))) (import "env" "__cxa_throw" (func (param i32 i32 i32)))
        (memory (export "memory") 1) (func (export "check"))"#;
    let program = load(text, Environment::default()).unwrap();
    let refused = spelunk::machine::Machine::new(program).err().unwrap().to_string();
    assert!(refused.contains("`invoke_v` from `env`, a function (i32) -> ()"), "{refused}");
    assert!(refused.contains("`__cxa_throw` from `env`"), "{refused}");
}

#[test]
fn exceptions_are_thrown_caught_and_forgotten() {
    check_passes(&leaving(
        r#"(import "env" "__cxa_throw" (func $throw (param i32 i32 i32)))
        (import "env" "__cxa_find_matching_catch_3" (func $find (param i32) (result i32)))
        (import "env" "__cxa_begin_catch" (func $begin (param i32) (result i32)))
        (import "env" "__cxa_end_catch" (func $end))
        (import "env" "__cxa_rethrow" (func $again))
        (import "env" "__cxa_uncaught_exceptions" (func $uncaught (result i32)))
        (import "env" "getTempRet0" (func $second (result i32)))"#,
        "$throws $throws_again",
        r#"(global $references (mut i32) (i32.const 0))
        (func (export "__cxa_increment_exception_refcount") (param i32)
            (global.set $references (i32.add (global.get $references) (i32.const 1))))
        (func (export "__cxa_decrement_exception_refcount") (param i32)
            (global.set $references (i32.sub (global.get $references) (i32.const 1))))
        (func (export "__cxa_get_exception_ptr") (param i32) (result i32) (local.get 0))
        (func (export "__cxa_can_catch") (param i32 i32 i32) (result i32) (i32.eq (local.get 0) (i32.const 77)))
        (func $throws (call $throw (i32.const 200) (i32.const 70) (i32.const 5)) unreachable)
        (func $throws_again (call $again) unreachable)
        (func $caught (call $same (call $begin (i32.const 200)) (i32.const 200)))
        (func (export "check")
            (call $invoke (i32.const 1))
            (call $same (global.get $threw) (i32.const 1)) (call $same (call $uncaught) (i32.const 1))
            (call $same (call $find (i32.const 71)) (i32.const 200)) (call $same (call $second) (i32.const 70))
            (call $same (call $find (i32.const 77)) (i32.const 200)) (call $same (call $second) (i32.const 77))
            (call $same (i32.load (i32.const 180)) (i32.const 70))
            (call $caught) (call $same (call $uncaught) (i32.const 0))
            (call $invoke (i32.const 2)) (call $same (call $uncaught) (i32.const 1))
            (call $caught) (call $end) (call $end)
            (call $same (global.get $threw) (i32.const 0)) (call $same (global.get $references) (i32.const 0))
            (call $same (call $find (i32.const 77)) (i32.const 0)))"#,
    ));
}

#[test]
fn a_module_that_may_be_loaded_anywhere_is_given_what_it_asks_for() {
    check_passes(
        r#"(@dylink.0 (mem-info (memory 40 3) (table 2 0)))
        (import "env" "memory" (memory 2)) (import "env" "__memory_base" (global $base i32))
        (import "env" "__table_base" (global $elements i32)) (import "env" "__stack_pointer" (global $stack (mut i32)))
        (import "env" "__indirect_function_table" (table 1 funcref))
        (import "GOT.mem" "known" (global $known (mut i32))) (import "GOT.func" "asked" (global $asked (mut i32)))
        (import "GOT.mem" "__heap_base" (global $heap (mut i32))) (import "GOT.mem" "__stack_low" (global $low (mut i32)))
        (type $number (func (result i32)))
        (global (export "known") i32 (i32.const 12))
        (data (global.get $base) "\01\02\03\04") (elem (global.get $elements) $one $two)
        (func $one (result i32) (i32.const 1)) (func $two (result i32) (i32.const 2))
        (func (export "asked") (result i32) (i32.const 3))
        (func (export "__wasm_apply_data_relocs") (i32.store (i32.const 1036) (i32.const 5)))
        (func (export "__wasm_call_ctors")
            (i32.store (i32.const 1040) (i32.add (i32.load (i32.const 1036)) (i32.const 1))))
        (func $same (param i32 i32) (if (i32.ne (local.get 0) (local.get 1)) (then unreachable)))
        (func (export "check")
            (call $same (global.get $base) (i32.const 1024)) (call $same (i32.load (i32.const 1024)) (i32.const 0x04030201))
            (call $same (global.get $known) (i32.const 1036)) (call $same (global.get $low) (i32.const 1072))
            (call $same (global.get $stack) (i32.const 66608)) (call $same (global.get $heap) (i32.const 66608))
            (call $same (i32.load (i32.const 1040)) (i32.const 6))
            (call $same (call_indirect (type $number) (global.get $elements)) (i32.const 1))
            (call $same (call_indirect (type $number) (i32.const 2)) (i32.const 2))
            (call $same (call_indirect (type $number) (global.get $asked)) (i32.const 3)))"#,
    );
}

#[test]
fn addresses_of_what_a_module_does_not_have_are_refused() {
    let text = r#"(@dylink.0 (mem-info (memory 40 3) (table 2 0)))
        (import "GOT.mem" "unknown" (global i32)) (func (export "check"))"#;
    let refused = load(text, Environment::default()).err().unwrap().to_string();
    assert!(refused.contains("`unknown` from `GOT.mem`, a global i32"), "{refused}");
}

#[test]
fn numbers_of_64_bits_may_come_in_halves() {
    check_passes(
        r#"(import "env" "__syscall_openat" (func $open (param i32 i32 i32 i32) (result i32)))
        (import "env" "__syscall_ftruncate64" (func $cut (param i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_seek" (func $seek (param i32 i32 i32 i32 i32) (result i32)))
        (import "a" "fd_close" (func $close (param i32) (result i32)))
        (memory (export "memory") 1) (data (i32.const 0) "/file\00") (data (i32.const 32) "\b6\01\00\00")
        (func $same (param i32 i32) (if (i32.ne (local.get 0) (local.get 1)) (then unreachable)))
        (func (export "check") (local $fd i32)
            (local.set $fd (call $open (i32.const -100) (i32.const 0) (i32.const 66) (i32.const 32)))
            (call $same (call $cut (local.get $fd) (i32.const 5) (i32.const 1)) (i32.const 0))
            (call $same (call $seek (local.get $fd) (i32.const -2) (i32.const -1) (i32.const 2) (i32.const 16)) (i32.const 0))
            (call $same (i32.load (i32.const 16)) (i32.const 3)) (call $same (i32.load (i32.const 20)) (i32.const 1))
            (call $same (call $close (local.get $fd)) (i32.const 0)))"#,
    );
}

#[test]
fn a_program_is_called_with_its_arguments_after_the_constructors() {
    let text = r#"(memory (export "memory") 1) (global $constructed (mut i32) (i32.const 0))
        (func (export "__wasm_call_ctors") (global.set $constructed (i32.const 1)))
        (func (export "malloc") (param i32) (result i32) (i32.const 1024))
        (func (export "stackAlloc") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 64)))
        (func (export "main") (param $count i32) (param $list i32) (result i32)
            (if (i32.eqz (global.get $constructed)) (then unreachable))
            (if (i32.ne (local.get $count) (i32.const 2)) (then unreachable))
            (i32.sub (i32.load8_u (i32.load offset=4 (local.get $list))) (i32.const 120)))"#;
    let args = |arg: &str| Environment {
        args: vec![arg.to_string()],
        fails_on_exit: Some(true),
        ..Environment::default()
    };
    assert!(failure_in(text, args("x")).is_none());
    let failure = failure_in(text, args("y")).unwrap();
    assert_eq!((failure.kind, failure.subject.as_deref()), (FailureKind::Exit, Some("1")));
}

#[test]
fn faults_strike_the_calls() {
    let text = r#"(import "env" "__syscall_openat" (func $open (param i32 i32 i32 i32) (result i32)))
        (import "env" "emscripten_date_now" (func $now (result f64)))
        (memory (export "memory") 1) (data (i32.const 0) "/file\00")
        (func (export "check")
            (if (f64.gt (f64.abs (f64.sub (call $now) (f64.const 1735689600000))) (f64.const 500))
                (then (i32.store (i32.const -1) (i32.const 0))))
            (if (i32.eq (call $open (i32.const -100) (i32.const 0) (i32.const 66) (i32.const 0)) (i32.const -29))
                (then unreachable)))"#;
    let strikes = |faults: &[HostFault]| {
        let environment = Environment { faults: faults.to_vec(), ..Environment::default() };
        let program = load(text, environment).unwrap();
        explore(&mut machine(&program), seeded(1), 1000).0.map(|found| found.failure.message)
    };
    assert_eq!(strikes(&[]), None);
    assert!(strikes(&[HostFault::Eio]).unwrap().contains("unreachable"));
    assert!(strikes(&[HostFault::ClockJump]).unwrap().contains("out of bounds"));
}

#[test]
fn the_working_directory_and_the_mask_are_part_of_the_state() {
    let text = r#"(import "env" "__syscall_chdir" (func $go (param i32) (result i32)))
        (import "env" "__syscall_umask" (func $mask (param i32) (result i32)))
        (memory (export "memory") 1) (data (i32.const 0) "/tmp\00")
        (func (export "rule:stay")) (func (export "rule:go") (drop (call $go (i32.const 0))))
        (func (export "rule:mask") (drop (call $mask (i32.const 7))))"#;
    let mut machine = machine(&load(text, Environment::default()).unwrap());
    let mut states: Vec<u128> = (0..3)
        .map(|rule| {
            machine.reset();
            assert!(matches!(machine.step(Action::Rule(rule), &mut Chooser::default()), Outcome::Pass));
            machine.state()
        })
        .collect();
    states.dedup();
    assert_eq!(states.len(), 3);
}

#[test]
fn directories_are_listed_from_a_place_that_can_be_set() {
    check_passes(
        r#"(import "env" "__syscall_openat" (func $open (param i32 i32 i32 i32) (result i32)))
        (import "env" "__syscall_getdents64" (func $list (param i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_seek" (func $seek (param i32 i64 i32 i32) (result i32)))
        (memory (export "memory") 1) (data (i32.const 0) "/home\00")
        (func $same (param i32 i32) (if (i32.ne (local.get 0) (local.get 1)) (then unreachable)))
        (func (export "check") (local $fd i32)
            (local.set $fd (call $open (i32.const -100) (i32.const 0) (i32.const 0x10000) (i32.const 0)))
            (call $same (call $list (local.get $fd) (i32.const 1024) (i32.const 559)) (i32.const 280))
            (call $same (i32.load8_u (i32.const 1042)) (i32.const 4)) (call $same (i32.load16_u (i32.const 1043)) (i32.const 0x2e))
            (call $same (call $list (local.get $fd) (i32.const 1024) (i32.const 4096)) (i32.const 560))
            (call $same (i32.load16_u (i32.const 1040)) (i32.const 280))
            (call $same (i32.load (i32.const 1323)) (i32.const 0x5f626577))
            (call $same (call $list (local.get $fd) (i32.const 1024) (i32.const 4096)) (i32.const 0))
            (call $same (call $list (local.get $fd) (i32.const 1024) (i32.const 4)) (i32.const 0))
            (call $same (call $seek (local.get $fd) (i64.const 0) (i32.const 0) (i32.const 64)) (i32.const 0))
            (call $same (call $list (local.get $fd) (i32.const 1024) (i32.const 4096)) (i32.const 840))
            (call $same (call $list (i32.const 1) (i32.const 1024) (i32.const 4096)) (i32.const -54)))"#,
    );
}

#[test]
fn descriptors_paths_and_terminals_are_those_of_posix() {
    check_passes(
        r#"(import "env" "__syscall_openat" (func $open (param i32 i32 i32 i32) (result i32)))
        (import "env" "__syscall_dup" (func $dup (param i32) (result i32)))
        (import "env" "__syscall_dup3" (func $dup3 (param i32 i32 i32) (result i32)))
        (import "env" "__syscall_ioctl" (func $control (param i32 i32 i32) (result i32)))
        (import "env" "__syscall_poll" (func $poll (param i32 i32 i32) (result i32)))
        (import "env" "__syscall_renameat" (func $rename (param i32 i32 i32 i32) (result i32)))
        (import "env" "__syscall_symlinkat" (func $link (param i32 i32 i32) (result i32)))
        (import "env" "__syscall_readlinkat" (func $read (param i32 i32 i32 i32) (result i32)))
        (import "env" "__syscall_chdir" (func $go (param i32) (result i32)))
        (import "env" "__syscall_getcwd" (func $here (param i32 i32) (result i32)))
        (import "env" "_mktime_js" (func $seconds (param i32) (result i64)))
        (import "env" "_gmtime_js" (func $date (param i64 i32)))
        (memory (export "memory") 1) (data (i32.const 0) "/tmp/a\00") (data (i32.const 16) "b\00")
        (data (i32.const 32) "/tmp\00") (data (i32.const 48) "a\00") (data (i32.const 64) "\b6\01\00\00\00\02\00\00")
        (data (i32.const 80) "\01\00\00\00\05\00\00\00\63\00\00\00\05\00\00\00")
        (func $same (param i32 i32) (if (i32.ne (local.get 0) (local.get 1)) (then unreachable)))
        (func (export "check") (local $fd i32)
            (local.set $fd (call $open (i32.const -100) (i32.const 0) (i32.const 66) (i32.const 64)))
            (call $same (call $dup (local.get $fd)) (i32.const -138))
            (call $same (call $dup (i32.const 1)) (i32.add (local.get $fd) (i32.const 1)))
            (call $same (call $dup3 (i32.const 1) (i32.const 9) (i32.const 0)) (i32.const 9))
            (call $same (call $dup3 (i32.const 1) (i32.const 1) (i32.const 0)) (i32.const -28))
            (call $same (call $dup (i32.const 77)) (i32.const -8))
            (call $same (call $control (i32.const 9) (i32.const 0x5413) (i32.const 68)) (i32.const 0))
            (call $same (i32.load (i32.const 512)) (i32.const 0x500018))
            (call $same (call $control (local.get $fd) (i32.const 0x5413) (i32.const 68)) (i32.const -59))
            (call $same (call $control (i32.const 9) (i32.const 1) (i32.const 68)) (i32.const -28))
            (call $same (call $poll (i32.const 80) (i32.const 2) (i32.const 0)) (i32.const 2))
            (call $same (i32.load16_u (i32.const 86)) (i32.const 5)) (call $same (i32.load16_u (i32.const 94)) (i32.const 32))
            (call $same (call $go (i32.const 0)) (i32.const -54)) (call $same (call $go (i32.const 32)) (i32.const 0))
            (call $same (call $here (i32.const 600) (i32.const 20)) (i32.const 5))
            (call $same (i32.load (i32.const 600)) (i32.const 0x706d742f))
            (call $same (call $rename (i32.const -100) (i32.const 48) (i32.const -100) (i32.const 16)) (i32.const 0))
            (call $same (call $open (i32.const -100) (i32.const 0) (i32.const 0) (i32.const 0)) (i32.const -44))
            (call $same (call $link (i32.const 16) (i32.const -100) (i32.const 48)) (i32.const 0))
            (call $same (call $open (i32.const -100) (i32.const 0) (i32.const 0) (i32.const 0)) (i32.add (local.get $fd) (i32.const 2)))
            (call $same (call $open (i32.const -100) (i32.const 0) (i32.const 0x20000) (i32.const 0)) (i32.const -32))
            (call $same (call $read (i32.const -100) (i32.const 48) (i32.const 700) (i32.const 9)) (i32.const 1))
            (call $same (i32.load8_u (i32.const 700)) (i32.const 98))
            (call $date (i64.const 951782400) (i32.const 800))
            (call $same (i32.load (i32.const 812)) (i32.const 29))
            (i32.store (i32.const 812) (i32.const 31))
            (call $same (i32.wrap_i64 (call $seconds (i32.const 800))) (i32.const 951955200))
            (call $same (i32.load (i32.const 812)) (i32.const 2)) (call $same (i32.load (i32.const 816)) (i32.const 2)))"#,
    );
}

#[test]
fn a_mapping_is_written_back_and_bad_addresses_are_traps() {
    let mapped = r#"(import "env" "__syscall_openat" (func $open (param i32 i32 i32 i32) (result i32)))
        (import "env" "_mmap_js" (func $map (param i32 i32 i32 i32 i64 i32 i32) (result i32)))
        (import "env" "_munmap_js" (func $unmap (param i32 i32 i32 i32 i32 i64) (result i32)))
        (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 4) (data (i32.const 0) "/tmp/a\00") (data (i32.const 16) "\b6\01\00\00")
        (data (i32.const 32) "\00\04\00\00\00\04\00\00")
        (func (export "emscripten_builtin_memalign") (param i32 i32) (result i32) (i32.const 0x20000))
        (func $same (param i32 i32) (if (i32.ne (local.get 0) (local.get 1)) (then unreachable)))
        (func (export "check") (local $fd i32)
            (local.set $fd (call $open (i32.const -100) (i32.const 0) (i32.const 66) (i32.const 16)))
            (call $same (call $map (i32.const 8) (i32.const 3) (i32.const 1) (local.get $fd) (i64.const 0) (i32.const 64) (i32.const 68))
                (i32.const 0))
            (call $same (i32.load (i32.const 64)) (i32.const 1)) (call $same (i32.load (i32.const 68)) (i32.const 0x20000))
            (i32.store (i32.const 0x20000) (i32.const 77))
            (call $same (call $unmap (i32.const 0x20000) (i32.const LEN) (i32.const 3) (i32.const 1) (local.get $fd) (i64.const 0))
                (i32.const 0))
            (call $same (call $read (local.get $fd) (i32.const 32) (i32.const 1) (i32.const 64)) (i32.const 0))
            (call $same (i32.load (i32.const 64)) (i32.const 8)) (call $same (i32.load (i32.const 1024)) (i32.const 77)))"#;
    check_passes(&mapped.replace("LEN", "8"));
    let trapped = failure(&mapped.replace("LEN", "0x20001")).unwrap();
    assert!(trapped.message.contains("out of bounds"), "{}", trapped.message);
}
