//! What is refused and why, and what holds of every instrumented module.

use spelunk_instrumenter::{Edges, Obstacle, Options, instrument};

fn check_refused(source: &str, expected: &str) {
    check_bytes_refused(&wat::parse_str(source).unwrap(), expected);
}

fn check_bytes_refused(wasm: &[u8], expected: &str) {
    let error = instrument(wasm, &Options::default()).expect_err("it should be refused");
    assert_eq!(format!("{error:#}"), expected);
}

#[test]
fn what_is_not_a_module_is_refused() {
    check_bytes_refused(
        b"",
        "not a WebAssembly module: a module begins with the bytes 00 61 73 6d, this is empty",
    );
    check_bytes_refused(
        b"\x7fELF\x02",
        "not a WebAssembly module: a module begins with the bytes 00 61 73 6d, this with 7f 45 4c 46",
    );
    check_bytes_refused(b"\0asm\x01", "not a valid WebAssembly module: unexpected end-of-file at 0x4");
    check_refused(
        "(component)",
        "this is a component, not a module; explore the core modules that it is made of \
         (`wasm-tools component unbundle` takes them out)",
    );
}

#[test]
fn a_malformed_module_is_refused_with_the_place() {
    let wasm = wat::parse_str("(module (func (result i32) (i32.const 7)))").unwrap();
    check_bytes_refused(
        &wasm[..wasm.len() - 1],
        "not a valid WebAssembly module: unexpected end-of-file at 0x17",
    );
    let mut mistyped = wasm.clone();
    let constant = mistyped.iter().rposition(|&byte| byte == 0x41).unwrap();
    mistyped[constant] = 0x42;
    check_bytes_refused(
        &mistyped,
        "not a valid WebAssembly module: type mismatch: expected i32, found i64 at 0x1a",
    );
}

#[test]
fn threads_are_refused() {
    let why = "a run has one thread, so that it can be repeated; compile without threads and atomics";
    check_refused("(module (memory 1 2 shared))", &format!("memory 0 at 0xb is shared: {why}"));
    check_refused(
        r#"(module (import "env" "memory" (memory 1 2 shared)))"#,
        &format!("memory 0 at 0xb is shared: {why}"),
    );
    check_refused(
        "(module (memory 1) (func (drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))))",
        "the operator `I32AtomicRmwAdd` at 0x20 is not supported (threads support is not enabled); \
         compile for WebAssembly 3.0 without threads",
    );
}

#[test]
fn other_proposals_are_refused_by_name() {
    check_refused(
        "(module (func (i64.add128 (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)) drop drop))",
        "the operator `I64Add128` at 0x1f is not supported (wide arithmetic support is not enabled); \
         compile for WebAssembly 3.0 without threads",
    );
    check_refused(
        "(module (memory 1 (pagesize 1)))",
        "an item at 0xb is not supported (the custom page sizes proposal must be enabled to customize a \
         memory's page size); compile for WebAssembly 3.0 without threads",
    );
}

#[test]
fn reserved_names_are_refused() {
    let why = "begins with `__spelunk`, which is reserved for the instrumentation; rename it, or give the \
               original module if this one is instrumented already";
    check_refused(
        r#"(module (func (export "__spelunk:private")))"#,
        &format!("the export `__spelunk:private` at 0x15 {why}"),
    );
    check_refused(
        r#"(module (import "__spelunk" "f" (func)))"#,
        &format!("the import `__spelunk` `f` at 0x11 {why}"),
    );
    let once = instrument(&wat::parse_str("(module (memory 1))").unwrap(), &Options::default()).unwrap();
    let twice = instrument(&once.wasm, &Options::default()).err().unwrap();
    assert!(format!("{twice:#}").starts_with("the export `__spelunk:memory:0`"), "{twice:#}");
}

#[test]
fn what_is_valid_only_before_it_is_instrumented_is_refused() {
    let beyond = |what: &str| {
        format!(
            "instrumented, the module is beyond what WebAssembly engines take: {what}; make what is so large smaller, or leave \
             functions out of counting (`--exclude`)"
        )
    };
    let memories = "(memory 0)".repeat(100);
    check_refused(&format!("(module {memories})"), &beyond("memories count exceeds limit of 100"));
    let body = "(if (local.get 0) (then (call 0 (local.get 0))))".repeat(600_000);
    check_refused(
        &format!("(module (func (param i32) {body}))"),
        &beyond("function body size count exceeds limit of 7654321"),
    );
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let wasm = wat::parse_str("(module (memory 3))").unwrap();
    let check = |options: Options, expected: &str| {
        assert_eq!(instrument(&wasm, &options).err().unwrap().to_string(), expected);
    };
    for page_bytes in [0, 256, 1000, 131_072] {
        let expected = format!("`page_bytes` is {page_bytes}; it must be a power of two from 512 to 65536");
        check(Options { page_bytes, ..Options::default() }, &expected);
    }
    check(
        Options { memory_bytes_max: 131_072, ..Options::default() },
        "memory 0 begins with 3 pages of 64 KiB, more than the limit allows (2); raise `memory_bytes_max`, or --memory-max",
    );
}

const MODES: [Edges; 4] = [Edges::None, Edges::Static, Edges::Hashed, Edges::Blocks];

#[test]
fn the_same_input_gives_the_same_bytes() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    for entry in std::fs::read_dir(folder).unwrap() {
        let wasm = wat::parse_file(entry.unwrap().path()).unwrap();
        for edges in MODES {
            let options = Options { edges, ..Options::default() };
            let first = instrument(&wasm, &options).map_err(|error| error.to_string());
            assert_eq!(first, instrument(&wasm, &options).map_err(|error| error.to_string()));
        }
    }
}

#[test]
fn nesting_costs_no_stack() {
    let depth = 50_000;
    let mut wasm = wat::parse_str("(module (func (export \"f\") (param i32)))").unwrap();
    let body: Vec<u8> = [0u8]
        .into_iter()
        .chain((0..depth).flat_map(|level| [if level % 2 == 0 { 0x02 } else { 0x03 }, 0x40]))
        .chain([0x20, 0x00, 0x0d, 0x01])
        .chain((0..depth).flat_map(|_| [0x20, 0x00, 0x0d, 0x00, 0x0b]))
        .chain([0x0b])
        .collect();
    wasm.truncate(wasm.len() - 6);
    let size = |size: usize| [size as u8 | 0x80, (size >> 7) as u8 | 0x80, (size >> 14) as u8];
    wasm.push(0x0a);
    wasm.extend(size(body.len() + 4));
    wasm.push(1);
    wasm.extend(size(body.len()));
    wasm.extend(body);
    let mut lens = Vec::new();
    for edges in MODES {
        let work = {
            let wasm = wasm.clone();
            move || instrument(&wasm, &Options { edges, ..Options::default() }).unwrap().wasm.len()
        };
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap();
        lens.push(thread.join().unwrap());
    }
    assert_eq!(lens, [1_742_116, 2_614_835, 4_904_204, 4_200_793]);
}

#[test]
fn custom_sections_start_and_exports_are_kept() {
    let source = r#"(module
        (@custom "spelunk:properties" "sometimes full\n")
        (@custom ".debug_info" "\ff\ff")
        (global $g (mut i32) (i32.const 0))
        (func $main (global.set $g (i32.const 1)))
        (start $main)
        (export "main" (func $main)) (export "same" (func $main)))"#;
    let done = instrument(&wat::parse_str(source).unwrap(), &Options::default()).unwrap();
    let mut found = Vec::new();
    for payload in wasmparser::Parser::new(0).parse_all(&done.wasm) {
        match payload.unwrap() {
            wasmparser::Payload::CustomSection(section) => found.push(section.name().to_string()),
            wasmparser::Payload::StartSection { func, .. } => found.push(format!("start {func}")),
            wasmparser::Payload::ExportSection(section) => {
                found.extend(section.into_iter().map(|export| export.unwrap().name.to_string()));
            }
            _ => {}
        }
    }
    let expected =
        ["main", "same", "__spelunk:global:0", "__spelunk:private", "start 0", "name", "producers"];
    assert_eq!(found, [&expected[..], &["spelunk:properties"]].concat());
}

fn check_obstacles(source: &str, expected: &[(&str, Option<&str>, u32)]) {
    let done = instrument(&wat::parse_str(source).unwrap(), &Options::default()).unwrap();
    let expected: Vec<Obstacle> = expected
        .iter()
        .map(|&(what, function, offset)| Obstacle {
            what: what.to_string(),
            function: function.map(str::to_string),
            offset,
        })
        .collect();
    assert_eq!(done.layout.obstacles, expected);
}

#[test]
fn state_that_cannot_be_saved_is_named() {
    check_obstacles("(module (memory 1) (global (mut i32) (i32.const 0)) (table 1 funcref))", &[]);
    check_obstacles(
        "(module (global (mut externref) (ref.null extern)))",
        &[("externref global", None, 0xb)],
    );
    check_obstacles("(module (global (mut nullref) (ref.null none)))", &[]);
    // Nothing is known of what is from outside, but what is made here is an object as any other.
    check_obstacles(
        r#"(module (global $g (import "" "") externref) (global externref (ref.null extern)) (global externref (global.get $g)))"#,
        &[],
    );
    check_obstacles(
        "(module (type $s (struct (field (mut i32)))) (global (ref extern) (extern.convert_any (struct.new_default $s))))",
        &[("(ref extern) global", None, 0x12)],
    );
    check_obstacles("(module (table 1 externref))", &[("externref table", None, 0xb)]);
    check_obstacles(
        "(module (type $s (struct (field (mut i32)))) (global (ref $s) (struct.new_default $s)))",
        &[("typed reference global", None, 0x12)],
    );
    check_obstacles(
        "(module (table 1 funcref) (func $f (drop (table.grow 0 (ref.null func) (i32.const 1)))))",
        &[("table.grow", Some("f"), 0x21)],
    );
    check_obstacles(
        r#"(module (type $a (array i8)) (data $d "ab") (func $f
             (data.drop $d) (drop (array.new_data $a $d (i32.const 0) (i32.const 1)))))"#,
        &[("data.drop", Some("f"), 0x1d)],
    );
}

#[test]
fn code_is_found_again_in_the_original() {
    let source = r#"(module (memory 1)
        (func $small (param i32) (i32.store (local.get 0) (i32.const 1)))
        (func $large (export "large") (param i32)
          (loop $l (call $small (local.get 0)) (br_if $l (local.get 0)) (unreachable))))"#;
    let wasm = wat::parse_str(source).unwrap();
    let done = instrument(&wasm, &Options::default()).unwrap();
    let (before, after) = (operators(&wasm), operators(&done.wasm));
    let mut located = Vec::new();
    for (function, name, offset) in &after {
        if ["I32Store", "Call", "Unreachable", "BrIf"].contains(&name.as_str()) {
            located.push((name.clone(), done.code.locate(*function, *offset)));
        }
    }
    let original = |function: u32, wanted: &str| {
        before.iter().find(|(f, name, _)| *f == function && name == wanted).unwrap().2
    };
    for (name, function, label) in
        [("Call", 1, "large"), ("I32Store", 0, "small"), ("Unreachable", 1, "large")]
    {
        let expected = original(function, name);
        let found = located.iter().filter(|(found, _)| found == name).filter_map(|(_, at)| at.as_ref());
        let mut found = found.filter(|at| at.offset == expected);
        let at = found.next().unwrap_or_else(|| panic!("{name} in {located:?}"));
        assert_eq!((at.function, at.name.as_deref()), (function, Some(label)));
    }
    assert_eq!(done.code.locate(0, 0), None);
    assert_eq!(done.code.locate(99, 50), None);
}

/// Function index, name and offset of each operator.
fn operators(wasm: &[u8]) -> Vec<(u32, String, u32)> {
    let mut operators = Vec::new();
    let mut function = 0;
    for payload in wasmparser::Parser::new(0).parse_all(wasm) {
        let wasmparser::Payload::CodeSectionEntry(body) = payload.unwrap() else { continue };
        for operator in body.get_operators_reader().unwrap().into_iter_with_offsets() {
            let (operator, offset) = operator.unwrap();
            let name = format!("{operator:?}").split(' ').next().unwrap().to_string();
            operators.push((function, name, offset as u32));
        }
        function += 1;
    }
    operators
}

/// A module whose function `$f` may suspend, with something more.
fn with_threads(more: &str) -> String {
    format!(
        r#"(module
          (import "spelunk" "suspend" (func $suspend))
          (memory 1)
          (global $__stack_pointer (mut i32) (i32.const 65536))
          {more})"#
    )
}

#[test]
fn what_cannot_be_stopped_in_the_middle_is_refused() {
    let threads = "a module with threads (it imports `suspend` or `resume`)";
    check_refused(r#"(module (import "spelunk" "suspend" (func)))"#, &format!("{threads} needs a memory"));
    check_refused(
        r#"(module (import "spelunk" "suspend" (func)) (memory 1))"#,
        &format!(
            "{threads} needs a global called `__stack_pointer`; keep its names (do not strip it), or export it"
        ),
    );
    check_refused(
        r#"(module (import "spelunk" "suspend" (func (param i32))))"#,
        "the module imports `suspend` from `spelunk` as [I32] -> []; it is [] -> []",
    );
    check_refused(
        &with_threads("(tag $t)"),
        &format!("{threads} cannot use exceptions; build it so that a panic aborts"),
    );
    let here = "may be left in the middle";
    check_refused(
        &with_threads("(func $f (return_call $suspend))"),
        &format!(
            "`f` makes a tail call, and {here} there (it may reach `suspend`); build the module without that"
        ),
    );
    let reference = format!(
        "`f` holds or returns a reference where it {here} (it may reach `suspend`), and references cannot be written to memory"
    );
    check_refused(
        &with_threads("(func $f (param externref) (result externref) (call $suspend) (local.get 0))"),
        &reference,
    );
    check_refused(
        &with_threads("(func $f (local externref) (call $suspend) (drop (local.get 0)))"),
        &reference,
    );
    check_refused(
        &with_threads("(func $f (drop (ref.is_null (ref.null func) (call $suspend))))"),
        &reference,
    );
    let deep = format!("(func $f {}(call $suspend){})", "(block ".repeat(1001), ")".repeat(1001));
    check_refused(
        &with_threads(&deep),
        &format!("`f` {here} (it may reach `suspend`), and its blocks nest deeper than 1000"),
    );
}

#[test]
fn imports_that_may_call_back_are_refused_beside_threads() {
    let more = r#"(import "env" "f" (func))"#;
    let source = with_threads("").replace("(memory 1)", &format!("{more} (memory 1)"));
    check_refused(
        &source,
        "a module with threads (it imports `suspend` or `resume`) may import functions from `spelunk` and \
         `wasi_snapshot_preview1` alone, since others may call it back; it imports `f` from `env`",
    );
}
