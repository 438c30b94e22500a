//! Errors of the heap are found where they are, and nowhere else.

use std::fs;
use std::sync::Arc;

use spelunk::choice::Chooser;
use spelunk::machine::{Limits, Machine, Program, Sanitizer, Selection};
use spelunk::outcome::{Failure, FailureKind, Outcome};
use spelunk::search::Explorer;
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_tests::checks::{default_options, run};
use spelunk_tests::{
    check_replays, found_either_way, machine, on_guest_stack, seeded, steps_of, tools, wasm,
};

fn heap() -> Selection {
    Selection { sanitize: vec![Sanitizer::Heap], ..Selection::default() }
}

/// A program in C below `guests/heap`.
fn compiled(name: &str, flags: &[&str]) -> Option<Vec<u8>> {
    tools::compiled(&format!("heap/{name}"), flags)
}

fn load(wasm: &[u8], selection: Selection) -> Arc<Program> {
    Arc::new(Program::load(wasm, Limits::default(), selection).unwrap_or_else(|error| panic!("{error:#}")))
}

/// What calling a rule once from the start comes to.
fn call(machine: &mut Machine, rule: &str) -> Outcome {
    machine.reset();
    if machine.has_setup() {
        machine.step(Action::Setup, &mut Chooser::default());
    }
    let rule = machine.rules().iter().position(|known| known.name == rule).unwrap();
    machine.step(Action::Rule(rule as u16), &mut Chooser::default())
}

/// By rule, which is the function that the place is in: a part of the message. How much is written at once depends on the
/// library.
const ERRORS: &[(&str, FailureKind, &str)] = {
    use FailureKind::*;
    &[
        (
            "write_after",
            HeapBufferOverflow,
            "write of 1 byte, 0 bytes after a block of 16 bytes allocated in write_after",
        ),
        (
            "read_after",
            HeapBufferOverflow,
            "read of 4 bytes, 0 bytes after a block of 20 bytes allocated in read_after",
        ),
        (
            "write_before",
            HeapBufferUnderflow,
            "write of 1 byte, 1 byte before a block of 16 bytes allocated in write_before",
        ),
        (
            "across_the_end",
            HeapBufferOverflow,
            "write of 8 bytes, 0 bytes after a block of 13 bytes allocated in across_the_end",
        ),
        (
            "read_of_freed",
            UseAfterFree,
            "read of 1 byte, 3 bytes into a block of 8 bytes allocated in read_of_freed, freed in read_of_freed",
        ),
        (
            "read_after_realloc",
            UseAfterFree,
            "write of 1 byte, 0 bytes into a block of 8 bytes allocated in read_after_realloc, freed in read_after_realloc",
        ),
        (
            "copy_too_much",
            HeapBufferOverflow,
            ", 0 bytes after a block of 24 bytes allocated in copy_too_much",
        ),
        (
            "copy_from_too_little",
            HeapBufferOverflow,
            ", 0 bytes after a block of 4 bytes allocated in copy_from_too_little",
        ),
        (
            "ascii_word",
            HeapBufferOverflow,
            "read of 4 bytes, 0 bytes after a block of 1 byte allocated in ascii_word",
        ),
        (
            "string_too_long",
            HeapBufferOverflow,
            "write of 1 byte, 0 bytes after a block of 5 bytes allocated in string_too_long",
        ),
        (
            "fill_too_much",
            HeapBufferOverflow,
            ", 0 bytes after a block of 40 bytes allocated in fill_too_much",
        ),
        (
            "freed_again",
            DoubleFree,
            "free of a block of 8 bytes allocated in freed_again, freed in freed_again",
        ),
        (
            "free_of_interior",
            InvalidFree,
            "free, 4 bytes into a block of 32 bytes allocated in free_of_interior",
        ),
        (
            "realloc_of_freed",
            DoubleFree,
            "free of a block of 8 bytes allocated in realloc_of_freed, freed in realloc_of_freed",
        ),
        (
            "aligned_after",
            HeapBufferOverflow,
            "write of 1 byte, 0 bytes after a block of 64 bytes allocated in aligned_after",
        ),
        (
            "write_to_nothing",
            HeapBufferOverflow,
            "write of 1 byte, 0 bytes after a block of 0 bytes allocated in write_to_nothing",
        ),
    ]
};

/// The exported function of `errors.c` that this line, from 1, is of.
fn function_at(line: usize) -> &'static str {
    let source = include_str!("../../guests/heap/errors.c");
    let names = source.lines().take(line).filter_map(|line| line.strip_prefix("RULE(")?.split(')').next());
    names.last().expect("a function is before it")
}

#[test]
fn each_error_of_a_c_program_is_found_and_told() {
    for flags in [&["-O1"][..], &["-O0"], &["-O2", "-mbulk-memory", "-msimd128"]] {
        let Some(wasm) = compiled("errors.c", flags) else { return };
        on_guest_stack(|| {
            let mut machine = machine(&load(&wasm, heap()));
            for (rule, kind, message) in ERRORS {
                let Outcome::Fail(failure) = call(&mut machine, rule) else {
                    panic!("{rule} passes, {flags:?}")
                };
                let Failure { place, .. } = *failure.clone();
                assert!(failure.kind == *kind && failure.message.contains(message), "{failure:?}, {flags:?}");
                let line = place.as_deref().and_then(|place| place.strip_prefix("guests/heap/errors.c:"));
                let line = line.and_then(|line| line.split(':').next()?.parse::<usize>().ok());
                let line = line.unwrap_or_else(|| panic!("{failure:?}"));
                assert_eq!(function_at(line), *rule, "{failure:?}");
            }
            for rule in ["none", "string_that_fits"] {
                assert_eq!(call(&mut machine, rule), Outcome::Pass, "{flags:?}");
            }
        });
    }
}

#[test]
fn a_library_function_that_met_an_error_is_named() {
    let Some(wasm) = compiled("errors.c", &["-O1"]) else { return };
    on_guest_stack(|| {
        let mut machine = machine(&load(&wasm, heap()));
        for (rule, library) in [("copy_too_much", "memcpy"), ("string_too_long", "c.string.strcpy")] {
            let Outcome::Fail(failure) = call(&mut machine, rule) else { panic!("{rule} passes") };
            assert!(failure.message.ends_with(&format!(", in {library}")), "{failure:?}");
        }
    });
}

/// So many steps of the rule, what then is said of the content, and the state.
fn operated(machine: &mut Machine, steps: usize, restores: bool) -> (Vec<String>, u128) {
    machine.reset();
    for _ in 0..steps {
        assert_eq!(machine.step(Action::Rule(0), &mut Chooser::default()), Outcome::Pass);
        if restores {
            let saved = machine.snapshot().unwrap();
            assert_eq!(machine.step(Action::Rule(0), &mut Chooser::default()), Outcome::Pass);
            machine.restore(&saved);
        }
    }
    let state = machine.state();
    assert_eq!(machine.state_from_scratch(), state);
    (machine.tell(Action::Rule(1), &mut Chooser::default()).notes, state)
}

#[test]
fn a_hundred_thousand_operations_give_the_same_content_and_no_finding() {
    for flags in [&["-O2"][..], &["-O0"]] {
        let Some(wasm) = compiled("random.c", flags) else { return };
        on_guest_stack(|| {
            let (mut plain, mut sanitized) =
                (machine(&load(&wasm, Selection::default())), machine(&load(&wasm, heap())));
            let (expected, _) = operated(&mut plain, 100, false);
            assert_eq!(expected[0].len(), 8, "{flags:?}");
            let (notes, state) = operated(&mut sanitized, 100, false);
            assert_eq!(notes, expected);
            assert_eq!(operated(&mut sanitized, 100, true), (notes, state));
        });
    }
}

#[test]
fn snapshots_change_no_finding() {
    let Some(wasm) = compiled("errors.c", &["-O1"]) else { return };
    on_guest_stack(|| {
        let program = load(&wasm, heap());
        let findings = found_either_way(&program, 500);
        assert_eq!(findings.len(), ERRORS.len());
        for found in &findings {
            check_replays(&program, &found.trace, &found.failure);
            assert!(steps_of(&found.trace) > 0);
        }
    });
}

#[test]
fn correct_examples_have_no_finding_of_the_heap() {
    // Those after `kv` allocate within the SDK.
    for example in
        ["ranges-cpp", "settings-wasi", "bank", "kv", "../tests/guests/tasks", "one task", "threads"]
    {
        let wasm = match example {
            "ranges-cpp" => match tools::build(example) {
                Some(module) => fs::read(module).unwrap(),
                None => continue,
            },
            "one task" => wasm("../tests/guests/tasks", &["one"]).to_vec(),
            "threads" => wasm("../tests/guests/sync", &["counters"]).to_vec(),
            _ => wasm(example, &[]).to_vec(),
        };
        on_guest_stack(|| {
            let mut machine = machine(&load(&wasm, heap()));
            let mut explorer = Explorer::new(&mut machine, seeded(0));
            explorer.explore(|progress| progress.runs < 2_000);
            let kinds: Vec<FailureKind> = explorer.findings().map(|found| found.failure.kind).collect();
            assert!(!kinds.iter().any(|kind| kind.is_sanitized()), "{example}: {kinds:?}");
        });
    }
}

#[test]
fn a_module_without_an_allocator_is_refused() {
    let wasm = wat::parse_str(r#"(module (memory 1) (func (export "rule:a")))"#).unwrap();
    let error = Program::load(&wasm, Limits::default(), heap()).err().unwrap();
    let expected = "no allocator was found, so the heap cannot be sanitized: the module has no function of its own that is \
                    called `malloc`, `__libc_malloc`, `emscripten_builtin_malloc`, `dlmalloc` (of C), or";
    assert!(error.to_string().starts_with(expected), "{error}");
}

/// What the linker exports calls the allocator, and is none.
#[test]
fn an_allocator_whose_exports_are_wrapped_is_found() {
    let wasm = wat::parse_str(
        r#"(module
        (memory (export "memory") 1)
        (global $end (mut i32) (i32.const 1024))
        (func $dlmalloc (param i32) (result i32)
            (global.set $end (i32.add (global.get $end) (i32.const 64)))
            (i32.sub (global.get $end) (i32.const 64)))
        (func $malloc (param i32) (result i32) (call $dlmalloc (local.get 0)))
        (func $free (param i32))
        (func $malloc.command_export (export "malloc") (param i32) (result i32) (call $malloc (local.get 0)))
        (func $free.command_export (export "free") (param i32) (call $free (local.get 0)))
        (func (export "rule:right") (local $at i32)
            (local.set $at (call $malloc (i32.const 8)))
            (i32.store (local.get $at) (i32.const 1))
            (call $free (local.get $at)))
        (func (export "rule:wrong") (i32.store offset=5 (call $malloc (i32.const 8)) (i32.const 1))))"#,
    )
    .unwrap();
    on_guest_stack(|| {
        let mut machine = machine(&load(&wasm, heap()));
        assert_eq!(call(&mut machine, "right"), Outcome::Pass);
        let Outcome::Fail(failure) = call(&mut machine, "wrong") else { panic!("it passes") };
        assert_eq!(failure.kind, FailureKind::HeapBufferOverflow);
    });
}

/// An allocator of few instructions, whose `free` keeps the address of the next block before a block. The rule frees by a copy
/// of it.
const INLINED: &str = r#"(module
    (memory (export "memory") 1)
    (func $malloc (export "malloc") (param i32) (result i32)
        (i32.store (i32.const 1024) (i32.add (i32.load (i32.const 1024)) (i32.add (local.get 0) (i32.const 8))))
        (i32.sub (i32.load (i32.const 1024)) (local.get 0)))
    (func $free (export "free") (param i32)
        (i32.store (i32.sub (local.get 0) (i32.const 8)) (i32.load (i32.const 1028)))
        (i32.store (i32.const 1028) (local.get 0)))
    (func $use (export "rule:use") (local i32)
        (local.set 0 (call $malloc (i32.const 8)))
        (i32.store (i32.sub (local.get 0) (i32.const 8)) (i32.load (i32.const 1028)))
        (i32.store (i32.const 1028) (local.get 0))))"#;

#[test]
fn an_allocator_that_was_inlined_is_refused() {
    let wasm = wat::parse_str(INLINED).unwrap();
    let error = Program::load(&wasm, Limits::default(), heap()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the heap cannot be sanitized: a part of the allocator is in `use` too, which uses its data at 0x404; build the \
         module so that the allocator's functions are not inlined"
    );
}

/// Memory that the host makes larger, for Emscripten's `sbrk`, has a shadow too; and a function that a table begins with is
/// replaced as others are.
#[test]
fn memory_that_grows_and_tables_have_what_the_rest_has() {
    let wasm = wat::parse_str(
        r#"(module
          (import "env" "emscripten_resize_heap" (func $resize (param i32) (result i32)))
          (memory (export "memory") 1) (global $top (mut i32) (i32.const 1024))
          (type $free (func (param i32)))
          (table 4 funcref (ref.func $f))
          (func $m (export "malloc") (param i32) (result i32)
            (global.get $top) (global.set $top (i32.and (i32.add (i32.add (global.get $top) (local.get 0)) (i32.const 15)) (i32.const -16))))
          (func $f (export "free") (param i32)
            (if (i32.eq (i32.load (i32.sub (local.get 0) (i32.const 4))) (i32.const 1)) (then unreachable)))
          (func (export "rule:grow")
            (drop (call $resize (i32.const 2_097_152)))
            (i32.store (i32.const 2_097_148) (i32.const 5)))
          (func (export "rule:free")
            (call_indirect (type $free) (call $m (i32.const 40)) (i32.const 1))))"#,
    );
    let wasm = wasm.unwrap();
    on_guest_stack(|| {
        let mut machine = machine(&load(&wasm, heap()));
        assert_eq!(call(&mut machine, "grow"), Outcome::Pass);
        assert_eq!(call(&mut machine, "free"), Outcome::Pass);
    });
}

/// What may fail is asked for once, however large the block is that is taken.
#[test]
fn allocations_fail_as_they_do_without_it() {
    let wasm = wasm("../tests/guests/allocation", &[]);
    on_guest_stack(|| {
        for selection in [Selection::default(), heap()] {
            let program = load(&wasm, selection);
            let checked = run(&program, 1, &default_options(&program));
            assert_eq!((checked.findings.len(), checked.census.runs), (0, 4));
        }
    });
}

/// Who looks for the end of a string in words may read the last word, and no other: a hash table looks for a byte in the same way.
#[test]
fn only_whole_words_may_end_beyond_a_block() {
    let wasm = wat::parse_str(
        r#"(module
          (memory (export "memory") 1) (global $top (mut i32) (i32.const 1024))
          (func $m (export "malloc") (param i32) (result i32)
            (global.get $top) (global.set $top (i32.and (i32.add (i32.add (global.get $top) (local.get 0)) (i32.const 15)) (i32.const -16))))
          (func (export "free") (param i32))
          (func (export "rule:word") (local i32)
            (local.set 0 (i32.load (i32.add (call $m (i32.const 6)) (i32.const 4))))
            (br_if 0 (i32.and
              (i32.and (i32.sub (local.get 0) (i32.const 0x01010101)) (i32.xor (local.get 0) (i32.const -1)))
              (i32.const 0x80808080))))
          (func (export "rule:unaligned") (local i32)
            (local.set 0 (i32.load align=1 (i32.add (call $m (i32.const 6)) (i32.const 4))))
            (br_if 0 (i32.and
              (i32.and (i32.sub (local.get 0) (i32.const 0x01010101)) (i32.xor (local.get 0) (i32.const -1)))
              (i32.const 0x80808080))))
          (func (export "rule:written") (local i32)
            (i32.store (i32.add (call $m (i32.const 6)) (i32.const 4))
              (i32.and (i32.const 0x01010101) (i32.const 0x80808080)))))"#,
    );
    let wasm = wasm.unwrap();
    on_guest_stack(|| {
        let mut machine = machine(&load(&wasm, heap()));
        assert_eq!(call(&mut machine, "word"), Outcome::Pass);
        for rule in ["unaligned", "written"] {
            let Outcome::Fail(failure) = call(&mut machine, rule) else { panic!("{rule} passes") };
            assert_eq!(failure.kind, FailureKind::HeapBufferOverflow);
        }
    });
}
