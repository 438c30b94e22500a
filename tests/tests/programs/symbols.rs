//! What the debug information of rustc says about calls, by modules that it compiles here.

use std::path::Path;
use std::process::Command;

use spelunk::symbols::{Symbols, excerpt};
use wasmparser::{Operator, Parser, Payload, TypeRef};

/// `die` is called from two places. Lines are found by the comments at their ends.
const GUEST: &str = r#"
use std::cell::RefCell;

thread_local! { static ACCOUNTS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) }; }

#[inline(never)]
fn die(why: &str) -> ! {
    panic!("fatal: {why}"); // in die
}

#[inline(always)]
fn balance(accounts: &[u32], index: usize) -> u32 {
    accounts[index] // in balance
}

#[unsafe(no_mangle)]
pub extern "C" fn read(index: usize) -> u32 {
    ACCOUNTS.with_borrow(|accounts| balance(accounts, index))
}

#[unsafe(no_mangle)]
pub extern "C" fn post(amount: u32) {
    if amount == 0 {
        die("nothing"); // in post
    }
    ACCOUNTS.with_borrow_mut(|accounts| accounts.push(amount));
}

#[unsafe(no_mangle)]
pub extern "C" fn close(index: usize) {
    if index > 9 {
        die("no account"); // in close
    }
    ACCOUNTS.with_borrow_mut(|accounts| accounts[index] = 0);
}
"#;

fn line_of(comment: &str) -> usize {
    1 + GUEST.lines().position(|line| line.ends_with(&format!("// {comment}"))).unwrap()
}

/// The guest, with so much debug information.
fn compile(folder: &Path, debug: &str) -> Vec<u8> {
    let source = folder.join("guest.rs");
    std::fs::write(&source, GUEST).unwrap();
    let mut rustc = Command::new("rustc");
    rustc.args([
        "--edition",
        "2024",
        "--crate-type",
        "cdylib",
        "--target",
        "wasm32-unknown-unknown",
        "-Copt-level=3",
    ]);
    rustc.arg(format!("-Cdebuginfo={debug}")).args(["guest.rs", "-o", "guest.wasm"]).current_dir(folder);
    let output = rustc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(folder.join("guest.wasm")).unwrap()
}

/// All calls that a module has: the function, the offset of the call, and the function that is called.
fn calls(wasm: &[u8]) -> Vec<(u32, u32, u32)> {
    let (mut calls, mut function) = (Vec::new(), 0);
    for payload in Parser::new(0).parse_all(wasm).map(Result::unwrap) {
        match payload {
            Payload::ImportSection(imports) => {
                let imports = imports.into_imports().map(Result::unwrap);
                function += imports.filter(|import| matches!(import.ty, TypeRef::Func(_))).count() as u32;
            }
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader().unwrap().into_iter_with_offsets() {
                    if let (Operator::Call { function_index }, offset) = operator.unwrap() {
                        calls.push((function, offset as u32, function_index));
                    }
                }
                function += 1;
            }
            _ => {}
        }
    }
    calls
}

/// The culprits of all stacks that end in a call of a function with such a name: its own call, its caller's, and so on.
fn culprits(symbols: &Symbols, wasm: &[u8], name: &str) -> Vec<String> {
    let calls = calls(wasm);
    let is_named = |function: u32| symbols.frames(function, 0).last().unwrap().function.ends_with(name);
    let ends = calls.iter().filter(|(_, _, called)| is_named(*called));
    let mut stacks: Vec<Vec<(u32, u32)>> =
        ends.map(|&(function, offset, _)| vec![(function, offset)]).collect();
    let mut culprits = Vec::new();
    while let Some(stack) = stacks.pop() {
        let outermost = stack.last().unwrap().0;
        let callers = calls.iter().filter(|(_, _, called)| *called == outermost);
        let longer: Vec<_> =
            callers.map(|&(function, offset, _)| [&stack[..], &[(function, offset)]].concat()).collect();
        if longer.is_empty() || stack.len() == 6 {
            let culprit = symbols.culprit(stack, None).unwrap();
            culprits.extend(culprit.place().starts_with("guest.rs").then(|| culprit.to_string()));
        }
        // Recursion has no outermost call.
        stacks.extend(longer.into_iter().filter(|longer| longer.len() <= 6));
    }
    culprits.sort();
    culprits.dedup();
    culprits
}

fn check(debug: &str, balance: &str) {
    let folder = tempfile::tempdir().unwrap();
    let wasm = compile(folder.path(), debug);
    let symbols = Symbols::of(&wasm[..]);
    let place = |comment: &str, column: usize| format!("guest.rs:{}:{column}", line_of(comment));
    let out_of_bounds = culprits(&symbols, &wasm, "core::panicking::panic_bounds_check");
    let in_balance = format!("{balance} at {}", place("in balance", 5));
    assert!(out_of_bounds.contains(&in_balance), "{out_of_bounds:?}");
    let dead = culprits(&symbols, &wasm, "guest::die");
    let expected = [format!("close at {}", place("in close", 9)), format!("post at {}", place("in post", 9))];
    assert_eq!(dead, expected);
}

#[test]
fn full_debug_information() {
    check("2", "guest::balance");
}

#[test]
fn lines_alone() {
    check("line-tables-only", "balance");
}

#[test]
fn the_line_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let wasm = compile(folder.path(), "2");
    let symbols = Symbols::of(&wasm[..]);
    let calls = calls(&wasm);
    let frames = calls.iter().flat_map(|&(function, offset, _)| symbols.frames(function, offset).to_vec());
    let mut frames =
        frames.filter(|frame| frame.function == "post" && frame.line == Some(line_of("in post") as u32));
    let frame = frames.next().unwrap();
    let found = excerpt(&frame, &[folder.path()]).unwrap();
    assert_eq!((found.line, &*found.text), (line_of("in post") as u32, "die(\"nothing\"); // in post\n^"));
    assert_eq!(excerpt(&frame, &[&folder.path().join("target")]), None);
}
