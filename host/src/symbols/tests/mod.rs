//! Modules with and without debug information.

mod code;
mod hostile;
mod variables;
mod written;

use gimli::constants;
use gimli::write::AttributeValue;

use super::{Frame, Role, Symbols};
use written::Written;

/// `own bank::post at src/lib.rs:4:2`.
fn text(frame: &Frame) -> String {
    let role = match frame.role {
        Role::Own => "own",
        Role::End => "end",
        Role::Library => "library",
    };
    format!("{role} {frame}")
}

#[track_caller]
fn check(symbols: &Symbols, function: u32, offset: usize, expected: &[&str]) {
    let frames = symbols.frames(function, offset as u32);
    assert_eq!(frames.iter().map(text).collect::<Vec<_>>(), expected);
    assert_eq!(symbols.frames(function, offset as u32), frames);
}

/// A module without debug information: what its last function is called at its second instruction.
#[track_caller]
fn plain(fields: &str, function: u32, expected: &str) {
    let wasm = wat::parse_str(format!("(module {fields})")).unwrap();
    let (_, offsets) = written::offsets(&wasm);
    check(&Symbols::of(wasm), function, offsets.last().unwrap()[2], &[expected]);
}

#[test]
fn without_debug_information_names_and_offsets_are_left() {
    plain("(func $post nop unreachable)", 0, "own post+0x2");
    plain(r#"(func $post (export "rule:post") nop unreachable)"#, 0, "own post+0x2");
    plain(r#"(func (export "rule:post") nop unreachable)"#, 0, "own rule:post+0x2");
    plain(r#"(import "a" "b" (func)) (func nop unreachable)"#, 1, "own func[1]+0x2");
    plain("(func $_ZN4bank4postEi (param i32) nop unreachable)", 0, "own bank::post+0x2");
    plain("(func $abort nop unreachable)", 0, "library abort+0x2");
}

#[test]
fn what_is_not_there_has_a_place_too() {
    let wasm = wat::parse_str(r#"(module (import "spelunk" "fail" (func)) (func call 0))"#).unwrap();
    let symbols = Symbols::of(wasm);
    check(&symbols, 0, 0, &["own fail+0x0"]);
    check(&symbols, 9, 7, &["own func[9]+0x7"]);
    check(&symbols, 1, 1_000_000, &["own func[1]+0xf4218"]);
    check(&Symbols::of(&b"not wasm"[..]), 0, 0, &["own func[0]+0x0"]);
    check(&Symbols::of(&[][..]), 0, 0, &["own func[0]+0x0"]);
}

/// One function of four instructions. Calls of `index`, and in it of `panic`, were inlined in the middle.
fn inlined_calls(version: u16) -> Written {
    let mut written = Written::of("(module (func nop nop nop nop))", version);
    let origins = [
        written.entry(None, constants::DW_TAG_subprogram, "_ZN4core9panicking5panicE"),
        written.entry(None, constants::DW_TAG_subprogram, "_ZN4bank5indexEv"),
    ];
    let function = written.function(0, "_ZN4bank4postEv");
    let (outer, inner) = (written.offsets(0, 1..3), written.offsets(0, 2..3));
    let block = written.entry(Some(function), constants::DW_TAG_lexical_block, "");
    let index = written.inlined(block, origins[1], &[outer], ("src/lib.rs", 20));
    written.inlined(index, origins[0], &[inner], ("src/index.rs", 30));
    let library = "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/panicking.rs";
    let rows = [(0, 1, 5), (1, 2, 5), (2, 3, 0), (3, 4, 5)];
    written.lines(0, library, &rows);
    written
}

fn with_inlined_calls(version: u16) -> (Symbols, [usize; 4]) {
    let mut written = inlined_calls(version);
    (written.symbols(), [0, 1, 2, 3].map(|instruction| written.offset(0, instruction)))
}

#[test]
fn inlined_calls_have_the_place_of_the_call() {
    for version in [4, 5] {
        let (symbols, at) = with_inlined_calls(version);
        let library = "library/core/src/panicking.rs";
        check(&symbols, 0, at[0], &[&format!("library bank::post at {library}:1:5")]);
        let index = format!("library bank::index at {library}:2:5");
        check(&symbols, 0, at[1], &[&index, "own bank::post at src/lib.rs:20:7"]);
        let panic = format!("library core::panicking::panic at {library}:3");
        let index = "own bank::index at src/index.rs:30:7";
        check(&symbols, 0, at[2], &[&panic, index, "own bank::post at src/lib.rs:20:7"]);
        check(&symbols, 0, at[3], &[&format!("library bank::post at {library}:4:5")]);
    }
}

#[test]
fn the_culprit_of_a_stack() {
    let (symbols, at) = with_inlined_calls(4);
    let stack = [(0, at[2] as u32), (0, at[3] as u32)];
    assert_eq!(symbols.stack(stack).len(), 4);
    assert_eq!(symbols.culprit(stack, None).unwrap().place(), "src/index.rs:30:7");
    assert_eq!(symbols.culprit(stack, Some("src/lib.rs:20:1")).unwrap().place(), "src/lib.rs:20:7");
    assert_eq!(symbols.culprit([], None), None);
    let recursion = std::iter::repeat_n((0, at[2] as u32), 1_000_000);
    assert_eq!(symbols.stack(recursion).len(), 64 * 3);
}

#[test]
fn names_are_those_of_the_module_first() {
    let mut written = Written::of("(module (func $bank::post<u32> nop) (func nop))", 4);
    written.function(0, "post");
    written.function(1, "open");
    written.lines(0, "src/lib.rs", &[(0, 4, 2)]);
    let (symbols, at) = (written.symbols(), [written.offset(0, 0), written.offset(1, 0)]);
    check(&symbols, 0, at[0], &["own bank::post<u32> at src/lib.rs:4:2"]);
    check(&symbols, 1, at[1], &["own open+0x1"]);
}

#[test]
fn lines_alone_are_enough() {
    let mut written = Written::of("(module (func $post nop nop) (func $open nop))", 4);
    // The linker dropped a function, whose lines begin at address 0 and seem to be those of everything.
    written.dropped_lines("src/dropped.rs");
    written.lines(0, "src/lib.rs", &[(0, 4, 2), (1, 0, 0)]);
    let (symbols, at) = (written.symbols(), [(0, 0), (0, 1), (1, 0)].map(|(f, i)| written.offset(f, i)));
    check(&symbols, 0, at[0], &["own post at src/lib.rs:4:2"]);
    // Line 0 is code that has no line.
    check(&symbols, 0, at[1], &["own post+0x2 at src/lib.rs"]);
    check(&symbols, 1, at[2], &["own open+0x1"]);
}

#[test]
fn what_another_tool_left_behind_is_not_believed() {
    let mut written = Written::of("(module (func $post nop nop) (func $open nop nop))", 4);
    let entry = written.function(0, "post");
    // The function was shorter once, so this one now begins in its code.
    let length = (written.offset(1, 1) - written.offset(0, 0)) as u64;
    written.set(entry, constants::DW_AT_high_pc, AttributeValue::Udata(length));
    written.lines(0, "src/lib.rs", &[(0, 4, 2)]);
    let (symbols, at) = (written.symbols(), [written.offset(0, 0), written.offset(1, 0)]);
    check(&symbols, 0, at[0], &["own post+0x1"]);
    check(&symbols, 1, at[1], &["own open+0x1"]);
}

#[test]
fn the_name_may_be_in_another_unit() {
    let mut written = Written::of("(module (func nop nop))", 5);
    let declared = written.entry(None, constants::DW_TAG_subprogram, "_ZN4bank3dieEv");
    written.set(declared, constants::DW_AT_noreturn, AttributeValue::Flag(true));
    let origin = gimli::write::DebugInfoRef::Entry(written.id(), declared);
    let code = written.offsets(0, 0..2);
    written.add_unit(5, code);
    let function = written.function(0, "post");
    let part = written.offsets(0, 1..2);
    let call = written.inlined(function, function, &[part], ("src/lib.rs", 20));
    written.set(call, constants::DW_AT_abstract_origin, AttributeValue::DebugInfoRef(origin));
    written.lines(0, "src/die.rs", &[(0, 3, 1)]);
    let (symbols, at) = (written.symbols(), written.offset(0, 1));
    check(&symbols, 0, at, &["end bank::die at src/die.rs:3:1", "own post at src/lib.rs:20:7"]);
}

#[test]
fn an_inlined_call_that_nothing_leaves_is_passed_over() {
    // `$post` holds what was `die` or `index`: instructions 2 to 4.
    let code = |inlined: &str| {
        format!("(module (func $post (param i32) (block (br_if 0 (local.get 0)) {inlined} nop) nop))")
    };
    for (inlined, file, calls, expected) in [
        ("nop unreachable", "src/die.c", 2, "end"),
        // Where one call is inlined, it may be what was left of a check that the compiler merged with what its caller does.
        ("nop unreachable", "src/die.c", 1, "own"),
        // Rust says of all that never return that they do not; this is what was left of one that does.
        ("nop unreachable", "src/die.rs", 2, "own"),
        ("br_if 0 (i32.const 1)", "src/die.c", 2, "own"),
        ("nop nop", "src/die.c", 2, "own"),
    ] {
        let mut written = Written::of(&code(inlined), 4);
        let origin = written.entry(None, constants::DW_TAG_subprogram, "inlined");
        let function = written.function(0, "post");
        let part = written.offsets(0, 3..5);
        written.inlined(function, origin, &[part], ("src/lib.rs", 20));
        if calls > 1 {
            let part = written.offsets(0, 6..7);
            written.inlined(function, origin, &[part], ("src/lib.rs", 21));
        }
        written.lines(0, file, &[(0, 3, 1)]);
        let (symbols, at) = (written.symbols(), written.offset(0, 3));
        let inner = format!("{expected} inlined at {file}:3:1");
        check(&symbols, 0, at, &[&inner, "own post at src/lib.rs:20:7"]);
    }
}

#[test]
fn two_bugs_that_end_in_one_function_differ() {
    let text = r#"(module (import "spelunk" "fail" (func $fail)) (func $die call $fail)
        (func $a call $die) (func $b call $die) (func $main call $a call $b))"#;
    let wasm = wat::parse_str(text).unwrap();
    let (_, offsets) = written::offsets(&wasm);
    let symbols = Symbols::of(wasm);
    let at = |function: u32| (function, offsets[function as usize - 1][1] as u32);
    let place = |stack: &[(u32, u32)]| symbols.culprit(stack.iter().copied(), None).unwrap().place();
    assert_eq!(place(&[at(1), at(2), at(4)]), "a+0x1");
    assert_eq!(place(&[at(1), at(3), at(4)]), "b+0x1");
    assert_eq!(place(&[at(1)]), "die+0x1");
}

#[test]
fn frames_can_be_saved() {
    let (symbols, at) = with_inlined_calls(4);
    let frames = symbols.stack([(0, at[2] as u32)]);
    let saved = serde_json::to_string(&frames).unwrap();
    assert!(saved.contains(
        r#"{"function":"bank::post","file":"src/lib.rs","line":20,"column":7,"offset":3,"role":"own"}"#
    ));
    // But for what differs from one checkout to the next.
    let same = frames.into_iter().map(|frame| Frame { compiled: None, ..frame });
    assert_eq!(serde_json::from_str::<Vec<Frame>>(&saved).unwrap(), same.collect::<Vec<_>>());
}
