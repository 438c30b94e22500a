//! What guests do to the world outside is compared: what they write, their files, how they end, and what they import.

use std::sync::Arc;

use spelunk::budget::Budget;
use spelunk::file::{Against, Conditions, Described, Environment, HostFault, Ignored, Stdin, StubImports};
use spelunk::machine::{Limits, Program};

use super::{finds, finds_nothing, first, pair, pair_of};

/// A module that does this with WASI, and has these texts at 100, 200 and so on. `$say` writes so many bytes from an address on to
/// a descriptor.
fn wasi(texts: &[&str], body: &str, export: &str) -> String {
    let data = (1..).zip(texts).map(|(at, text)| format!(r#"(data (i32.const {}) "{text}")"#, 100 * at));
    let import =
        |name: &str, ty: &str| format!(r#"(import "wasi_snapshot_preview1" "{name}" (func ${name} {ty}))"#);
    let imports = [
        import("fd_write", "(param i32 i32 i32 i32) (result i32)"),
        import("fd_read", "(param i32 i32 i32 i32) (result i32)"),
        import("proc_exit", "(param i32)"),
        import("path_open", "(param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)"),
        import("random_get", "(param i32 i32) (result i32)"),
    ];
    format!(
        r#"{} (memory (export "memory") 1) {}
          (func $say (param $fd i32) (param $at i32) (param $len i32)
            (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $len))
            (if (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable)))
          (func $open (param $name i32) (param $len i32) (result i32)
            (if (call $path_open (i32.const 3) (i32.const 0) (local.get $name) (local.get $len) (i32.const 1)
                (i64.const 0x40) (i64.const 0) (i32.const 0) (i32.const 16)) (then unreachable))
            (i32.load (i32.const 16)))
          (func (export "{export}") {body})"#,
        imports.concat(),
        data.collect::<String>()
    )
}

/// Writes the first text, in parts of so many bytes.
fn says(fd: u32, text: &str, part: usize) -> String {
    let len = text.replace("\\n", "n").len();
    let parts = (0..len).step_by(part).map(|at| {
        format!("(call $say (i32.const {fd}) (i32.const {}) (i32.const {}))", 100 + at, part.min(len - at))
    });
    wasi(&[text], &parts.collect::<String>(), "f")
}

#[test]
fn what_is_written_is_compared_however_it_is_cut() {
    finds_nothing(&pair(&says(1, "abcdef", 2), &says(1, "abcdef", 5), &[]), 300);
    let found =
        "`f` writes \"abcdef\" to standard output, and against it \"abXdef\" @ standard output of f\nf";
    let (one, other) = (says(1, "abcdef", 6), says(1, "abXdef", 6));
    finds(&pair(&one, &other, &[]), found);
    finds_nothing(&pair(&one, &other, &["stdout"]), 300);
    let found = "`f` writes \"abcdef\" to standard error, and against it nothing @ standard error of f\nf";
    let (one, none) = (says(2, "abcdef", 6), says(2, "", 1));
    finds(&pair(&one, &none, &[]), found);
    finds_nothing(&pair(&one, &none, &["stderr"]), 300);
    finds(
        &pair(&says(1, "a\\nab\\n", 9), &says(1, "a\\nac\\n", 9), &["stderr"]),
        "`f` writes \"ab\\n\" to standard output, and against it \"ac\\n\", in line 2 @ standard output of f\nf",
    );
}

/// A program that ends itself with a code where standard input begins with a byte.
fn program(byte: char, code: u32) -> String {
    let body = format!(
        r#"(i32.store (i32.const 0) (i32.const 32)) (i32.store (i32.const 4) (i32.const 8))
          (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
          (call $say (i32.const 1) (i32.const 100) (i32.const 3))
          (if (i32.eq (i32.load8_u (i32.const 32)) (i32.const {})) (then (call $proc_exit (i32.const {code}))))"#,
        byte as u32
    );
    wasi(&["ok\\n"], &body, "_start")
}

#[test]
fn programs_end_alike_and_write_alike() {
    let (one, other) = (program('x', 3), program('x', 4));
    finds_nothing(&pair(&one, &one, &[]), 2000);
    let ends = "`_start` ends the program with code 3, and against it ends the program with code 4 @ the result of _start";
    finds(&pair(&one, &other, &[]), &format!("{ends}\n_start stdin=b\"x\""));
    // With code 0 it ended as one does that returns.
    finds_nothing(&pair(&program('x', 0), &program('y', 0), &[]), 2000);
    let ends = "`_start` returns, and against it ends the program with code 4 @ the result of _start";
    finds(&pair(&program('x', 0), &other, &[]), &format!("{ends}\n_start stdin=b\"x\""));
    // Where such a code is a failure, those of both are.
    let environment = Environment { fails_on_exit: Some(true), ..Environment::default() };
    let conditions = || Conditions { environment: environment.clone(), ..Conditions::default() };
    finds_nothing(&pair_of(&one, &one, &[], conditions()).unwrap(), 2000);
    let found = first(&pair_of(&one, &other, &[], conditions()).unwrap());
    let fails = "`_start` fails (exit 3: the program ended with code 3), and against it fails (exit 4: the program ended with \
        code 4)";
    assert!(found.starts_with(fails), "{found}");
}

/// One that asks nothing of a system is given the same input.
#[test]
fn a_program_without_a_system_is_compared_with_one_that_has_one() {
    let silent = wasi(&[], "", "_start");
    let bare = r#"(func (export "_start"))"#;
    finds_nothing(&pair(&silent, bare, &[]), 300);
    finds_nothing(&pair(bare, &silent, &[]), 300);
    let found = "`_start` returns, and against it fails (trap: wasm `unreachable` instruction executed) @ _start+0x1 of the module against it";
    finds(
        &pair(&silent, r#"(func (export "_start") unreachable)"#, &[]),
        &format!("{found}\n_start stdin=b\"\""),
    );
}

/// Writes the first text into the file of this name.
fn writes(name: &str, text: &str) -> String {
    let body = format!(
        "(call $say (call $open (i32.const 200) (i32.const {})) (i32.const 100) (i32.const {}))",
        name.len(),
        text.len()
    );
    wasi(&[text, name], &body, "f")
}

#[test]
fn the_files_that_are_left_are_compared() {
    let (one, other) = (writes("a", "text"), writes("a", "test"));
    finds_nothing(&pair(&one, &one, &[]), 300);
    let byte =
        "`f` leaves a file with the byte 0x78 at 2 as `/a`, and against it a file with the byte 0x73 at 2";
    finds(&pair(&one, &other, &[]), &format!("{byte} @ files after f\nf"));
    finds_nothing(&pair(&one, &other, &["files"]), 300);
    let file = "`f` leaves a file of 4 bytes as `/a`, and against it nothing @ files after f\nf";
    finds(&pair(&one, &writes("b", "text"), &[]), file);
}

/// The same numbers are random to both.
#[test]
fn randomness_is_shared() {
    let body = "(drop (call $random_get (i32.const 100) (i32.const 5))) (call $say (i32.const 1) (i32.const 100) (i32.const 5))";
    let draws = wasi(&[], body, "f");
    finds_nothing(&pair(&draws, &draws, &[]), 300);
}

/// Calls an import, twice.
fn logs(last: &str, more: &str) -> String {
    format!(
        r#"(import "env" "log" (func $log (param i32 f64))) (import "env" "get" (func $get (result i32)))
          (func (export "f") (result i32) {more} (call $log (i32.const 1) (f64.const nan)) (call $log (i32.const 2) (f64.const {last}))
            (call $get))"#
    )
}

#[test]
fn imports_that_nobody_provides_are_called_alike() {
    let stubbed = |one: &str, other: &str, ignored: &[&str], stub_imports| {
        let limits = Limits { stub_imports, ..Limits::default() };
        pair_of(one, other, ignored, Conditions { limits, ..Conditions::default() }).unwrap()
    };
    for stubs in [StubImports::Zero, StubImports::Drawn] {
        let draws = if stubs == StubImports::Drawn { " get=0" } else { "" };
        let (one, other) = (logs("1.5", ""), logs("2.5", ""));
        finds_nothing(&stubbed(&one, &one, &[], stubs), 500);
        finds(
            &stubbed(&one, &other, &[], stubs),
            &format!(
                "`f` calls `log`(2, 1.5) as its import number 2, and against it `log`(2, 2.5) @ imports of f\nf{draws}"
            ),
        );
        finds_nothing(&stubbed(&one, &other, &["import:log"], stubs), 500);
    }
    let twice = logs("1.5", "(call $log (i32.const 0) (f64.const 0)) (drop (call $get))");
    let calls = "`f` calls `log`(1, NaN), and against it `log`(0, 0.0) @ imports of f\nf";
    finds(&stubbed(&logs("1.5", ""), &twice, &[], StubImports::Zero), calls);
    let more = logs("1.5", "").replace("(call $get))", "(drop (call $get)) (call $get))");
    let calls = "`f` calls nothing as its import number 4, and against it `get`() @ imports of f\nf";
    finds(&stubbed(&logs("1.5", ""), &more, &[], StubImports::Zero), calls);
    // Drawn values are the same for both, so one that asks for more of them differs.
    let found = first(&stubbed(&logs("1.5", ""), &twice, &["import:log", "import:get"], StubImports::Drawn));
    assert!(found.contains("and against it asks for an integer"), "{found}");
}

/// Two modules with signatures of their own.
fn signed(one: &str, other: &str, signatures: &str) -> Arc<Program> {
    let [one, other] = [one, other].map(|text| {
        let wasm = wat::parse_str(format!("(module {text})")).unwrap();
        Described::parse(signatures).unwrap().signatures.put_into(&wasm).unwrap()
    });
    let wasm = Against { wasm: other, ignored: Vec::new() }.put_into(&one).unwrap();
    Arc::new(Program::load_in(&wasm, Conditions::default(), None, &Budget::unlimited()).unwrap())
}

#[test]
fn texts_are_compared_by_what_they_say_and_handles_by_whether_there_is_one() {
    let names = |at: u32, first: &str| {
        format!(
            r#"(memory (export "memory") 1) (data (i32.const {at}) "{first}\00") (global $next (mut i32) (i32.const {at}))
              (func (export "name") (result i32) (i32.const {at}))
              (func (export "open") (result i32)
                (global.set $next (i32.add (global.get $next) (i32.const {at}))) (global.get $next))
              (func (export "use") (param i32) (result i32) (i32.const 5))"#
        )
    };
    let signatures = "rules = ['name', 'open', 'use']\n[exports.name]\nreturns = 'cstring'\n[exports.open]\nreturns = 'handle:h'\n\
        [exports.use]\nparams = ['handle:h']\n";
    finds_nothing(&signed(&names(40, "one"), &names(88, "one"), signatures), 2000);
    let texts = "`name` returns \"one\", and against it \"two\" @ the result of name\nname";
    finds(&signed(&names(40, "one"), &names(88, "two"), signatures), texts);
    let none = names(40, "one").replace("(global.get $next))", "(i32.const 0))");
    let handles = "`open` returns a handle, and against it no handle @ the result of open\nopen";
    finds(&signed(&names(40, "one"), &none, signatures), handles);
}

#[test]
fn faults_of_the_system_cannot_strike_both() {
    let environment = Environment { faults: vec![HostFault::Eio], ..Environment::default() };
    let conditions = Conditions { environment, ..Conditions::default() };
    let one = says(1, "a", 1);
    let error = pair_of(&one, &one, &[], conditions).err().unwrap().to_string();
    let expected = "--faults would not strike the same calls of two modules, which may call their system differently; leave out \
        --faults, or --against";
    assert_eq!(error, expected);
}

/// What one is given as standard input, the other is.
#[test]
fn standard_input_is_shared() {
    let echo = |len: u32| {
        let body = format!(
            r#"(i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const {len}))
              (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
              (call $say (i32.const 1) (i32.const 100) (i32.load (i32.const 8)))"#
        );
        wasi(&[], &body, "f")
    };
    let stdin = Some(Stdin::Bytes(Arc::from(*b"abcdef")));
    let environment = Environment { stdin, ..Environment::default() };
    let conditions = || Conditions { environment: environment.clone(), ..Conditions::default() };
    finds_nothing(&pair_of(&echo(4), &echo(4), &[], conditions()).unwrap(), 300);
    let found = first(&pair_of(&echo(4), &echo(3), &[], conditions()).unwrap());
    assert_eq!(
        found,
        "`f` writes \"abcd\" to standard output, and against it \"abc\" @ standard output of f\nf"
    );
    assert_eq!(Ignored::named("stdout"), Ignored::Stdout);
}
