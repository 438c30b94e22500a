//! Which functions end the run for whoever calls them: `die`, `abort`, the cold half of a check.
//!
//! Two bugs that end in one such function are told apart by who called it. A function is one if no path through it
//! reaches its end or a `return`; a call that was inlined is one if no path leaves its code.

use std::ops::Range;

use wasmparser::{BinaryReader, FunctionBody, Operator};

use super::flow::{is_in, leaves};

/// How often all of the code may be looked at; beyond that, functions count as returning.
const PASSES_MAX: usize = 4;
/// Calls that are kept; those who call a function beyond that are not looked at again.
const CALLS_MAX: usize = 1 << 23;
/// Bytes of a function in which inlined calls are looked at.
pub(super) const BODY_MAX: usize = 1 << 18;

/// The functions that never return.
#[derive(Debug, Default)]
pub(super) struct Endings {
    /// By index, those that are imported first.
    never_returning: Vec<bool>,
    /// How many places call each, up to 255.
    callers: Vec<u8>,
}

impl Endings {
    /// `imports` says of the imported functions whether they never return. A function that is exported or in a table is
    /// called from there once more, as often as `mentioned` has it.
    pub(super) fn of(imports: &[bool], bodies: &[FunctionBody<'_>], mentioned: &[u32]) -> Endings {
        let mut never_returning = imports.to_vec();
        never_returning.resize(imports.len() + bodies.len(), false);
        let mut calls = Calls { callers: vec![0; never_returning.len()], pairs: Vec::new() };
        mentioned.iter().for_each(|&function| calls.count(function));
        let bytes: usize = bodies.iter().map(|body| body.as_bytes().len()).sum();
        let mut bytes_left = PASSES_MAX * bytes;
        let mut next: Vec<usize> = (0..bodies.len()).collect();
        let mut is_first = true;
        // Functions may call others that come later. Those are looked at again that call one that proved to be an end.
        while !next.is_empty() {
            let mut found = Vec::new();
            for index in std::mem::take(&mut next) {
                let (function, body) = (imports.len() + index, &bodies[index]);
                let Some(left) = bytes_left.checked_sub(body.as_bytes().len()) else { break };
                bytes_left = left;
                let called = |callee| {
                    if is_first {
                        calls.add(callee, index as u32);
                    }
                };
                if leaves(body, &[body.range()], &never_returning, called) == Some(false) {
                    never_returning[function] = true;
                    found.push(function as u32);
                }
            }
            if std::mem::take(&mut is_first) {
                calls.pairs.sort_unstable();
            }
            next = found.iter().flat_map(|&function| calls.to(function)).collect();
            next.sort_unstable();
            next.dedup();
            next.retain(|index| !never_returning[imports.len() + index]);
        }
        Endings { never_returning, callers: calls.callers }
    }

    /// Whether a function ends the run for whoever calls it, and several do; or whether it is `declared` to. One that is
    /// called from one place only, such as a main loop, hides no bug behind another.
    pub(super) fn is_end(&self, function: u32, declared: bool) -> bool {
        self.has_callers(function) && (declared || is_in(&self.never_returning, function))
    }

    /// Whether several places call a function.
    pub(super) fn has_callers(&self, function: u32) -> bool {
        self.callers.get(function as usize).is_some_and(|&count| count > 1)
    }

    /// Whether no path leaves the code at these offsets of a body, which begins at `start` in the file: it is that of an
    /// inlined call.
    pub(super) fn is_inlined_end(&self, body: &[u8], start: usize, code: &[Range<usize>]) -> bool {
        let body = FunctionBody::new(BinaryReader::new(body, start));
        body.as_bytes().len() <= BODY_MAX && leaves(&body, code, &self.never_returning, |_| ()) == Some(false)
    }
}

/// Who calls whom.
struct Calls {
    /// Of each function, how many places call it, up to 255.
    callers: Vec<u8>,
    /// Functions that are called, and who calls them by its place among the bodies.
    pairs: Vec<(u32, u32)>,
}

impl Calls {
    fn add(&mut self, function: u32, caller: u32) {
        self.count(function);
        if self.pairs.last() != Some(&(function, caller)) && self.pairs.len() < CALLS_MAX {
            self.pairs.push((function, caller));
        }
    }

    fn count(&mut self, function: u32) {
        if let Some(callers) = self.callers.get_mut(function as usize) {
            *callers = callers.saturating_add(1);
        }
    }

    /// Those who call a function.
    fn to(&self, function: u32) -> impl Iterator<Item = usize> {
        let first = self.pairs.partition_point(|&(callee, _)| callee < function);
        let pairs = self.pairs[first..].iter().take_while(move |(callee, _)| *callee == function);
        pairs.map(|&(_, caller)| caller as usize)
    }
}

/// Whether a function that Go compiled has no `return`. Its code returns a number, 0 to its caller and else to the scheduler, and
/// has a loop around it, so what it never does cannot be seen by its paths.
pub(super) fn is_go_end(body: &[u8], start: usize) -> bool {
    let body = FunctionBody::new(BinaryReader::new(body, start));
    let Ok(operators) = body.get_operators_reader() else { return false };
    let mut is_zero = false;
    for operator in operators.into_iter().map_while(Result::ok) {
        if is_zero && matches!(operator, Operator::Return) {
            return false;
        }
        is_zero = matches!(operator, Operator::I32Const { value: 0 });
    }
    true
}

/// Whether an import never returns, by what WASI, C libraries, AssemblyScript and Spelunk call theirs.
pub(super) fn import_is_end(module: &str, name: &str) -> bool {
    match module {
        "spelunk" => matches!(name, "fail" | "panic" | "reject" | "unreachable"),
        _ => matches!(
            name,
            "proc_exit"
                | "abort"
                | "_abort_js"
                | "exit"
                | "_exit"
                | "__assert_fail"
                | "__cxa_throw"
                | "__cxa_rethrow"
                | "emscripten_throw_longjmp"
                | "_emscripten_throw_longjmp"
                | "__resumeException"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmparser::{Parser, Payload};

    fn bodies(wasm: &[u8]) -> Vec<FunctionBody<'_>> {
        let payloads = Parser::new(0).parse_all(wasm).map(Result::unwrap);
        let bodies = payloads.filter_map(|payload| match payload {
            Payload::CodeSectionEntry(body) => Some(body),
            _ => None,
        });
        bodies.collect()
    }

    /// Whether the last function of a module never returns; the first is an import that does not, the second one that
    /// does.
    #[track_caller]
    fn check(functions: &str, expected: bool) {
        let text = format!(
            r#"(module (import "spelunk" "reject" (func $die)) (import "x" "y" (func $go)) (tag $e) {functions})"#
        );
        let wasm = wat::parse_str(&text).unwrap();
        let bodies = bodies(&wasm);
        let last = 1 + bodies.len() as u32;
        let endings = Endings::of(&[true, false], &bodies, &[last, last]);
        assert_eq!(endings.is_end(last, false), expected, "{functions}");
    }

    fn body(code: &str, never_returns: bool) {
        check(&format!("(func (param i32) {code})"), never_returns);
    }

    #[test]
    fn straight_code() {
        body("", false);
        body("unreachable", true);
        body("call $die", true);
        body("call $go", false);
        body("call $die return", true);
        body("return unreachable", false);
        body("throw $e", true);
        body("return_call $die", true);
        body("return_call $go", false);
        body("(return_call_indirect (i32.const 0)) ", false);
    }

    #[test]
    fn branches() {
        body("(block br 0) ", false);
        body("(block br 0 unreachable)", false);
        body("(block br 0) unreachable", true);
        body("(block (block br 1) unreachable)", false);
        body("(block (block br 0) unreachable)", true);
        body("(block unreachable br 0)", true);
        body("local.get 0 br_if 0 unreachable", false);
        body("(block local.get 0 br_if 0 unreachable) call $die", true);
        body("(block (block local.get 0 br_table 0 1) unreachable)", false);
        body("(block (block local.get 0 br_table 0 0) unreachable)", true);
        body("(block local.get 0 br_table 1 0) unreachable", false);
        body("unreachable (block br 0)", true);
    }

    #[test]
    fn alternatives() {
        body("(if (local.get 0) (then call $die))", false);
        body("(if (local.get 0) (then call $die) (else unreachable))", true);
        body("(if (local.get 0) (then call $die) (else))", false);
        body("(if (local.get 0) (then) (else call $die))", false);
        body("(if (local.get 0) (then return)) unreachable", false);
    }

    #[test]
    fn loops() {
        body("(loop br 0)", true);
        body("(loop local.get 0 br_if 0)", false);
        body("(loop local.get 0 br_if 1 br 0)", false);
        body("(block (loop local.get 0 br_if 1 br 0)) unreachable", true);
        body("(loop (loop local.get 0 br_if 1 br 0))", true);
    }

    #[test]
    fn exceptions() {
        body("(block (try_table (catch_all 0) call $die) call $die)", false);
        body("(block (try_table (catch_all 0) call $die)) call $die", true);
        body("(try_table call $die)", true);
        body("unreachable (block (try_table (catch_all 0)))", true);
    }

    #[test]
    fn what_calls_such_a_function_is_one_too() {
        check("(func $a call $b) (func $b call $die) (func call $a)", true);
        check("(func $b call $die) (func $a call $b) (func call $a)", true);
        check("(func $a call $b) (func $b call $go) (func call $a)", false);
        // Neither ever returns, but no one dies there.
        check("(func $a call 3) (func call $a)", false);
    }

    #[test]
    fn one_caller_is_no_reason() {
        let wasm = wat::parse_str("(module (func unreachable) (func call 0) (func call 0 call 1))").unwrap();
        let bodies = bodies(&wasm);
        let check = |mentioned: &[u32], expected: [bool; 3]| {
            let endings = Endings::of(&[], &bodies, mentioned);
            assert_eq!([0, 1, 2].map(|function| endings.is_end(function, false)), expected);
        };
        check(&[], [true, false, false]);
        check(&[1], [true, true, false]);
        check(&[2, 2, 9], [true, false, true]);
        let endings = Endings::of(&[], &bodies, &[1]);
        assert!(endings.is_end(1, true) && !endings.is_end(2, true));
    }

    #[test]
    fn imports_by_name() {
        assert!(import_is_end("spelunk", "fail") && import_is_end("wasi_snapshot_preview1", "proc_exit"));
        assert!(!import_is_end("spelunk", "always") && !import_is_end("env", "fail"));
        assert!(import_is_end("env", "abort"));
    }
}
