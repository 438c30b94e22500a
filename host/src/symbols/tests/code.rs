//! Which instruction comes from which line.

use super::*;
use crate::symbols::{CodeFunction, Instruction, InstructionKind};

/// `own lib.c:4 begins branch`, of each instruction.
fn texts(symbols: &Symbols) -> Vec<String> {
    let code = symbols.code();
    assert!(!code.is_cut);
    let text = |instruction: &Instruction| {
        let place = match instruction.statement {
            Some(statement) => format!("{}:{}", code.files[statement.file as usize].shown, statement.line),
            None => "-".to_string(),
        };
        let begins = instruction.statement.is_some_and(|statement| statement.begins);
        let kind = match instruction.kind {
            InstructionKind::Mark => " mark",
            InstructionKind::Branch => " branch",
            InstructionKind::Plain => "",
        };
        let begins = if begins { " begins" } else { "" };
        let ends = if instruction.ends { " ends" } else { "" };
        format!("{place}{begins}{kind}{ends}")
    };
    let functions: Vec<CodeFunction> = code.functions().collect();
    functions.iter().flat_map(|function| function.instructions.iter().map(text)).collect()
}

#[test]
fn instructions_have_the_lines_of_their_addresses() {
    for version in [4, 5] {
        let text = "(module (func (param i32) (if (local.get 0) (then nop unreachable)) nop) (func nop))";
        let mut written = Written::of(text, version);
        written.function(0, "post");
        written.lines(0, "/src/lib.c", &[(0, 4, 1), (2, 5, 1), (4, 0, 0), (5, 7, 1)]);
        written.dropped_lines("/src/dropped.c");
        let expected = [
            "src/lib.c:4 begins",
            "src/lib.c:4 begins branch",
            "src/lib.c:5 begins mark ends",
            "src/lib.c:5 begins ends",
            "- mark",
            "src/lib.c:7 begins mark",
            "src/lib.c:7 begins",
            // Another function, of which no line is known.
            "- mark",
            "-",
        ];
        let found = texts(&written.symbols());
        assert_eq!(found.iter().map(|text| text.replace("/src/", "src/")).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn what_is_bound_to_end_the_run_is_known() {
    let ends = |body: &str| {
        let wasm = wat::parse_str(format!("(module (func $die) (func (param i32) {body}))")).unwrap();
        let symbols = Symbols::of(wasm);
        let functions: Vec<CodeFunction> = symbols.code().functions().collect();
        functions[1].instructions.iter().map(|instruction| u8::from(instruction.ends)).collect::<Vec<_>>()
    };
    assert_eq!(ends("call $die unreachable"), [1, 1, 0]);
    assert_eq!(ends("(if (local.get 0) (then call $die) (else unreachable))"), [0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(ends("(block br 0) unreachable"), [0, 0, 1, 1, 0]);
    assert_eq!(ends("return unreachable"), [0, 1, 0]);
}

#[test]
fn what_a_harness_has_for_checks_is_left_out() {
    let names = |section: &str| {
        let functions = r#"(func (export "copy_keep")) (func (export "rule:post")) (func (export "state"))"#;
        let symbols = Symbols::of(wat::parse_str(format!("(module {functions} {section})")).unwrap());
        symbols.code().functions().map(|function| function.name).collect::<Vec<_>>()
    };
    assert_eq!(names(r#"(@custom "spelunk:harness" "harness bank::Bank\n")"#), ["rule:post"]);
    assert_eq!(names(""), ["copy_keep", "rule:post", "state"]);
}

#[test]
fn instructions_are_told_as_text() {
    let wasm =
        wat::parse_str("(module (func (param i32) (drop (i32.load offset=8 (local.get 0)))))").unwrap();
    let (_, offsets) = written::offsets(&wasm);
    let symbols = Symbols::of(wasm);
    let wanted = offsets[0][1..5].iter().map(|offset| *offset as u32).collect();
    let found: Vec<String> = symbols.instruction_texts(&wanted).into_values().collect();
    assert_eq!(found, ["local.get 0", "i32.load offset=8", "drop", "end"]);
    assert!(symbols.instruction_texts(&Default::default()).is_empty());
    assert!(Symbols::of(&b"not wasm"[..]).instruction_texts(&[4].into()).is_empty());
}
