//! Modules that know nothing of Spelunk are called as their signatures say.

use std::path::Path;
use std::sync::Arc;

use spelunk::check::{Options, check};
use spelunk::file::Described;
use spelunk::load::{Build, load};
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_tests::{explore, first_story, machine, on_guest_stack, seeded, tools};

fn with(wat: &str, signatures: &str) -> anyhow::Result<Program> {
    let wasm = wat::parse_str(format!("(module {wat})")).unwrap();
    let described = Described::parse(signatures)?;
    Program::load(&described.signatures.put_into(&wasm)?, Limits::default(), Selection::default())
}

/// The simplest minimal failure of a module with signatures, and its story.
fn finds(wat: &str, signatures: &str, expected: &str) {
    on_guest_stack(|| {
        let program = Arc::new(with(wat, signatures).unwrap_or_else(|error| panic!("{error:#}")));
        let (failure, story) = first_story(&program, 1);
        assert_eq!(format!("{failure}\n{story}"), expected);
    });
}

/// What is said of signatures that do not fit.
fn refuses(wat: &str, signatures: &str, expected: &str) {
    let error = with(wat, signatures).err().expect("they do not fit");
    assert_eq!(format!("{error:#}"), expected);
}

/// Memory, an allocator that gives one address after another, and a function that traps where its argument is 0.
const BASE: &str = r#"
  (memory (export "memory") 1) (global $top (mut i32) (i32.const 1024)) (global $freed (mut i32) (i32.const 0))
  (func (export "malloc") (param i32) (result i32)
    (global.get $top) (global.set $top (i32.add (global.get $top) (local.get 0))))
  (func (export "free") (param i32) (global.set $top (local.get 0)))
  (func $fail (if (i32.const 1) (then unreachable)))"#;

#[test]
fn text_bytes_and_numbers_are_passed_as_their_parameters_say() {
    let parse = |body: &str| format!("{BASE} (func (export \"f\") (param i32 i32 i32 i64) {body})");
    // "bc" and its zero byte, two bytes of which the second is not zero, and two of the flags.
    let body = r#"
      (br_if 0 (i32.ne (i32.load16_u (local.get 0)) (i32.const 0x6362)))
      (br_if 0 (i32.load8_u offset=2 (local.get 0)))
      (br_if 0 (i32.ne (local.get 2) (i32.const 2)))
      (br_if 0 (i32.eqz (i32.load8_u offset=1 (local.get 1))))
      (br_if 0 (i64.ne (local.get 3) (i64.const 5))) (call $fail)"#;
    let signature = r#"
      [exports.f]
      params = [
        { name = "s", type = "cstring", alphabet = "abc", max = 4 },
        { name = "data", type = "bytes", max = 4 },
        { type = "flags", values = { one = 1, two = 2, four = 4 } },
      ]"#;
    finds(
        &parse(body),
        signature,
        "trap: wasm `unreachable` instruction executed\nf s=\"bc\" data=b\"\\x00\\x01\" arg2=one|four",
    );
}

#[test]
fn the_length_of_a_text_is_without_its_zero_byte() {
    let body = r#"(func (export "f") (param i32 i32)
      (br_if 0 (i32.ne (i32.load16_u (local.get 0)) (i32.const 0x61)))
      (br_if 0 (i32.ne (local.get 1) (i32.const 1))) (call $fail))"#;
    finds(
        &format!("{BASE} {body}"),
        "[exports.f]\nparams = [{ name = 's', type = 'cstring', alphabet = 'ab' }, 'length:s']",
        "trap: wasm `unreachable` instruction executed\nf s=\"a\"",
    );
}

/// Open, then put under two handles of which one was closed in between.
const HANDLES: &str = r#"
  (global $next (mut i32) (i32.const 0)) (global $open (mut i32) (i32.const 0))
  (func (export "open") (param $out i32) (result i32)
    (global.set $next (i32.add (global.get $next) (i32.const 1)))
    (global.set $open (i32.add (global.get $open) (i32.const 1)))
    (i32.store (local.get $out) (global.get $next)) (i32.const 0))
  (func (export "close") (param i32) (result i32) (global.set $open (i32.sub (global.get $open) (i32.const 1))) (i32.const 0))
  (func (export "use") (param i32) (if (i32.eq (local.get 0) (i32.const 2)) (then unreachable)))"#;
const HANDLE_SIGNATURES: &str = r#"
  [exports.open]
  params = ["out-handle:h"]
  [exports.close]
  params = [{ name = "h", type = "takes:h" }]
  [exports.use]
  params = [{ name = "h", type = "handle:h" }]"#;

#[test]
fn a_handle_comes_from_one_export_and_goes_to_another() {
    let expected = "trap: wasm `unreachable` instruction executed\nopen\nopen\nuse h=2";
    finds(&format!("{BASE} {HANDLES}"), HANDLE_SIGNATURES, expected);
}

#[test]
fn a_rule_without_a_handle_is_not_called_and_one_without_room_neither() {
    on_guest_stack(|| {
        let signatures = format!("{HANDLE_SIGNATURES}\n[pools]\nh = {{ max = 1 }}");
        let mut machine = machine(&Arc::new(with(&format!("{BASE} {HANDLES}"), &signatures).unwrap()));
        let names: Vec<String> = machine.rules().iter().map(|rule| rule.name.clone()).collect();
        let enabled = |machine: &mut Machine| {
            let mut rules = Vec::new();
            machine.enabled(&mut rules).unwrap();
            rules.iter().map(|rule| &*names[usize::from(*rule)]).collect::<Vec<_>>().join(" ")
        };
        machine.reset();
        assert_eq!(enabled(&mut machine), "open");
        let rule = |name: &str| Action::Rule(names.iter().position(|rule| rule == name).unwrap() as u16);
        let before = machine.snapshot().unwrap();
        machine.step(rule("open"), &mut Default::default());
        assert_eq!(enabled(&mut machine), "close use");
        let opened = machine.snapshot().unwrap();
        assert_ne!(opened.hash(), before.hash());
        machine.step(rule("close"), &mut Default::default());
        assert_eq!(enabled(&mut machine), "open");
        machine.restore(&opened);
        assert_eq!(enabled(&mut machine), "close use");
        machine.restore(&before);
        assert_eq!(enabled(&mut machine), "open");
    });
}

/// Handles are part of the states that a check compares: here all else of them is equal.
#[test]
fn a_check_tells_states_by_their_handles() {
    on_guest_stack(|| {
        let wat = r#"(func (export "open") (param i32) (result i32) (local.get 0))
          (func (export "use") (param i32) (if (i32.eq (local.get 0) (i32.const 3)) (then unreachable)))"#;
        let signatures = r#"
          [exports.open]
          params = [{ type = "int", min = 1, max = 3 }]
          returns = "handle:h"
          [exports.use]
          params = ["handle:h"]"#;
        let program = Arc::new(with(wat, signatures).unwrap());
        let checked =
            check(&mut [machine(&program)], &Options::default(), &|_| None, &mut |_, _| ()).unwrap();
        // The orders in which any of three handles are added.
        assert_eq!((checked.findings.len(), checked.census.states), (1, 16));
        assert_eq!(checked.findings[0].trace.steps().len(), 2);
    });
}

#[test]
fn results_say_what_failed_and_what_is_no_handle() {
    let wat = r#"(func (export "open") (param i32) (result i32) (local.get 0))
      (func (export "use") (param i32) (result i32) (local.get 0))"#;
    let signatures = |error: &str| {
        format!(
            r#"
            pools.h = {{ null = "nothing" }}
            [exports.open]
            params = [{{ name = "n", type = "enum", values = [0, -1, 7] }}]
            returns = "handle:h"
            {error}
            [exports.use]
            params = [{{ name = "h", type = "handle:h" }}]
            fails-when = "nonzero""#
        )
    };
    let expected = |n: i32| {
        format!("fail: `use` returned {n}, which its signature calls a failure\nopen n={n}\nuse h={n}")
    };
    finds(wat, &signatures(""), &expected(-1));
    finds(wat, &signatures("error-when = \"negative\""), &expected(7));
}

#[test]
fn an_invariant_and_the_end_are_called_for_each_handle() {
    let wat = r#"(global $n (mut i32) (i32.const 0))
      (func (export "open") (result i32) (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n))
      (func (export "verify") (param i32) (result i32) (i32.ne (local.get 0) (i32.const 2)))
      (func (export "start") (param i32) (result i32) (global.set $n (i32.sub (local.get 0) (i32.const 10))) (i32.const 0))"#;
    let signatures = r#"
      setup = ["start"]
      invariants = ["verify"]
      [exports.start]
      params = [10]
      [exports.open]
      returns = "handle:h"
      [exports.verify]
      params = ["handle:h"]"#;
    finds(wat, signatures, "invariant verify: it does not hold of the handle 2\nopen\nopen");
}

#[test]
fn without_an_allocator_arguments_are_put_into_memory_of_their_own() {
    let wat = r#"(memory 1) (func (export "f") (param i32 i32)
      (br_if 0 (i32.ne (local.get 0) (i32.const 65536)))
      (br_if 0 (i32.ne (local.get 1) (i32.const 3))) unreachable)"#;
    let signatures = "[exports.f]\nparams = [{ type = 'bytes', max = 3 }]";
    finds(wat, signatures, "trap: wasm `unreachable` instruction executed\nf arg0=b\"\\x00\\x00\\x00\"");
    // What was there is wiped: every call leads to the same state.
    on_guest_stack(|| {
        let wat = r#"(memory 1) (func (export "f") (param i32 i32))"#;
        let signatures = "[exports.f]\nparams = [{ type = 'text', alphabet = 'abcdefgh', max = 3 }]";
        let program = Arc::new(with(wat, signatures).unwrap());
        let checked =
            check(&mut [machine(&program)], &Options::default(), &|_| None, &mut |_, _| ()).unwrap();
        assert_eq!((checked.findings.len(), checked.census.states), (0, 1));
    });
}

#[test]
fn an_allocator_that_has_nothing_left_rejects_and_one_that_lies_fails() {
    on_guest_stack(|| {
        let step = |address: &str| {
            let wat = format!(
                r#"(memory 1) (func (export "malloc") (param i32) (result i32) {address})
                   (func (export "f") (param i32 i32) unreachable)"#
            );
            let program =
                Arc::new(with(&wat, "[exports.f]\nparams = [{ name = 'b', type = 'bytes' }]").unwrap());
            let mut machine = machine(&program);
            machine.reset();
            let outcome = machine.step(Action::Rule(0), &mut Default::default());
            let written = machine.state();
            machine.reset();
            assert_eq!(written, machine.state());
            format!("{outcome:?}")
        };
        assert_eq!(step("(i32.const 0)"), "Reject(Assume)");
        for address in ["(i32.const -1)", "(i32.const 65536)"] {
            let outcome = step(address);
            assert!(
                outcome.contains("Abi") && outcome.contains("of `b` of `f`; the memory ends at 0x10000"),
                "{outcome}"
            );
        }
    });
}

#[test]
fn a_pool_that_never_ends_is_a_failure_that_says_what_to_do() {
    on_guest_stack(|| {
        let wat = r#"(global $n (mut i32) (i32.const 0)) (func (export "open") (result i32)
          (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n))"#;
        let program = Arc::new(with(wat, "[exports.open]\nreturns = 'handle:h'").unwrap());
        let mut machine = machine(&program);
        machine.reset();
        let mut ended = None;
        for _ in 0..1025 {
            ended = Some(format!("{:?}", machine.step(Action::Rule(0), &mut Default::default())));
        }
        let expected = "the pool `h` has more than 1024 handles; set `max` in `[pools.h]`, and rules that add to it are not \
                        called where it is full";
        assert!(ended.as_ref().is_some_and(|ended| ended.contains(expected)), "{ended:?}");
    });
}

#[test]
fn what_does_not_fit_the_module_is_refused() {
    let f = r#"(memory 1) (func (export "parse") (param i32 i64))"#;
    refuses(
        f,
        "[exports.prse]",
        "the signatures name a function `prse`, which the module does not export; did you mean `parse`?",
    );
    let does_not_fit = "the signature of `parse` does not fit its type, (i32, i64) -> (): ";
    let of = |params: &str, expected: &str| {
        refuses(f, &format!("[exports.parse]\nparams = [{params}]"), &format!("{does_not_fit}{expected}"));
    };
    of("'bytes'", "parameter 1 (`arg0`): its length follows it, and is i64; it must be i32");
    of("'int', 'cstring'", "parameter 2 (`arg1`): it is i64; an address is i32");
    of("'int', 'int', 'int'", "parameter 3 (`arg2`): the function has no such parameter");
    of("4294967296, 1", "parameter 1 (`arg0`): 4294967296 does not fit into i32");
    of(
        "'int'",
        "it says what 1 values are, and the function takes 2; bytes and text are two, their address and their length, unless \
         another parameter is a \"length:NAME\" of them",
    );
    refuses(
        f,
        "[exports.parse]\nreturns = 'cstring'",
        &format!("{does_not_fit}it returns text by an address, which is i32"),
    );
    refuses(
        f,
        "allocator = { malloc = 'parse' }\n[exports.parse]\nparams = ['cstring', 'int']",
        "`allocator`: `parse` has the type (i32, i64) -> (); it must be (i32) -> i32, or (i32, i32) -> i32 with an alignment",
    );
    refuses(
        f,
        "[exports.parse]\nparams = [{ type = 'cstring', keeps = true }, 'int']",
        "`parse` keeps `arg0`, which must stay where it is: name the module's allocator, as in `allocator = { malloc = \
         \"malloc\" }`",
    );
    refuses(
        r#"(func (export "f") (param i32))"#,
        "[exports.f]\nparams = ['cstring']",
        "the module has no memory, in which arguments could be put",
    );
}

#[test]
fn a_library_in_c_without_a_harness() {
    let Some(module) = tools::build("store-c") else { return };
    let signatures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/store-c/store.spelunk.toml");
    on_guest_stack(|| {
        let build = Build { signatures: Some(&signatures), ..Build::default() };
        let wasm = load(&module, &build, &mut |_, _| {}).unwrap();
        let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap());
        let (failure, story) = first_story(&program, 0);
        assert_eq!(
            failure.to_string().split(" of the handle").next(),
            Some("invariant store_verify: it does not hold")
        );
        let lines: Vec<&str> = story.lines().map(|line| line.split(" store=").next().unwrap()).collect();
        assert_eq!(lines, ["store_open name=\"\"", "store_put", "store_put"], "{story}");
        assert_eq!(story.matches("key=\"\" value=\"\"").count(), 2, "{story}");
    });
}

/// A function that ends what a handle stands for returns 0 where that went well, and is no invariant.
#[test]
fn an_end_that_returns_zero_is_no_failure() {
    on_guest_stack(|| {
        let wat = r#"(func (export "open") (result i32) (i32.const 7))
            (func (export "close") (param i32) (result i32) (i32.const 0))"#;
        let signatures = "teardown = ['close']\n[exports.open]\nreturns = 'handle:h'\n[exports.close]\nparams = ['handle:h']";
        let program = Arc::new(with(wat, signatures).unwrap());
        let (found, progress) = explore(&mut machine(&program), seeded(1), 200);
        assert_eq!((found, progress.runs), (None, 200));
    });
}

#[test]
fn what_cannot_be_meant_is_refused() {
    refuses(
        r#"(func (export "f") (param i32)) (func (export "i") (result f64) (f64.const 0))"#,
        "invariants = ['i']",
        "the invariant `i` has the type () -> f64; it returns nothing, or an integer that is 0 where it does not hold",
    );
    let text = "[exports.f]\nparams = [{ type = 'text', max = 4 }]";
    let wat = r#"(memory (export "memory") 1) (func (export "f") (param i32 i32) (drop (memory.grow (i32.const 1))))"#;
    refuses(
        wat,
        text,
        "the module exports no allocator that Spelunk knows, and seems to have one: name it, as in \
         `allocator = { malloc = \"malloc\" }`, or say `allocator = \"region\"` if it has none",
    );
    assert!(with(wat, &format!("allocator = 'region'\n{text}")).is_ok());
    // As much as no stack has.
    let stack = r#"(memory (export "memory") 1) (func (export "f") (param i32 i32))
        (func (export "stackAlloc") (param i32) (result i32) (i32.const 64)) (func (export "stackSave") (result i32) (i32.const 64))
        (func (export "stackRestore") (param i32))"#;
    refuses(
        stack,
        "[exports.f]\nparams = [{ type = 'bytes', max = 100_000 }]",
        "arguments of 100016 bytes do not fit on the stack that `stackAlloc` reserves: name the module's allocator, or let \
         `max` be smaller",
    );
}
