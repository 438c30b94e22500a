//! Components that import functions of WASI as others than they are, or call them with what nobody else would.

use std::sync::Arc;

use spelunk::file::StubImports;
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk_tests::{explore, on_guest_stack, seeded};

/// What comes of a component: the first failure, or the error of loading it.
fn comes_to(wat: &str, stub_imports: StubImports) -> String {
    let wasm = wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}\n{wat}"));
    let limits = Limits { stub_imports, ..Limits::default() };
    on_guest_stack(|| {
        let program = Program::load(&wasm, limits, Selection::default());
        match program.and_then(|program| Machine::new(Arc::new(program))) {
            Err(error) => format!("{error:#}"),
            Ok(mut machine) => {
                let (found, _) = explore(&mut machine, seeded(1), 100);
                found.map_or("no finding".to_string(), |found| found.failure.to_string())
            }
        }
    })
}

/// A component that imports this instance, of which `f` is called with these core instructions.
fn with(
    interface: &str,
    instance: &str,
    (name, ty): (&str, &str),
    (core_type, body): (&str, &str),
) -> String {
    format!(
        r#"(component
        (import "{interface}" (instance $from {instance} (export "{name}" (func {ty}))))
        (core module $memory (memory (export "memory") 2)
          (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
        (core instance $memory (instantiate $memory))
        (core func $f (canon lower (func $from "{name}") (memory $memory "memory") (realloc (func $memory "realloc"))))
        (core module $m (import "from" "f" (func $f {core_type})) (import "from" "memory" (memory 2))
          (func (export "f") {body}))
        (core instance $i (instantiate $m
          (with "from" (instance (export "f" (func $f)) (export "memory" (memory $memory "memory"))))))
        (func (export "f") (canon lift (core func $i "f"))))"#
    )
}

#[track_caller]
fn check(interface: &str, instance: &str, function: (&str, &str), core: (&str, &str), expected: &str) {
    assert_eq!(comes_to(&with(interface, instance, function, core), StubImports::None), expected);
}

#[test]
fn a_function_must_have_its_type() {
    let wrong =
        |interface: &str, instance: &str, function: (&str, &str), core: &str, is: &str, must: &str| {
            let name = function.0;
            let expected = format!("the component imports `{interface}#{name}` as `{is}`; it is `{must}`");
            check(interface, instance, function, (core, ""), &expected);
            // Stubs are not for what is provided.
            let wat = with(interface, instance, function, (core, ""));
            assert_eq!(comes_to(&wat, StubImports::Zero), expected);
        };
    let (random, random_type) = ("wasi:random/random@0.2.3", "func() -> u64");
    wrong(random, "", ("get-random-u64", "(result u32)"), "(result i32)", "func() -> u32", random_type);
    wrong(random, "", ("get-random-u64", ""), "", "func()", random_type);
    let bytes = "func(len: u64) -> list<u8>";
    let function = ("get-random-bytes", r#"(param "length" u64) (result (list u8))"#);
    wrong(random, "", function, "(param i64 i32)", "func(length: u64) -> list<u8>", bytes);
    let function = ("get-random-bytes", r#"(param "len" u64) (result (list u16))"#);
    wrong(random, "", function, "(param i64 i32)", "func(len: u64) -> list<u16>", bytes);
    let function = ("get-stdout", "(result u32)");
    let must = "func() -> output-stream";
    wrong("wasi:cli/stdout@0.2.0", "", function, "(result i32)", "func() -> u32", must);
    let instance = r#"(export "descriptor" (type $d (sub resource)))"#;
    let write = ("[method]descriptor.sync", r#"(param "self" (borrow $d))"#);
    let must = "func(self: borrow<descriptor>) -> result<_, error-code>";
    let is = "func(self: borrow<descriptor>)";
    wrong("wasi:filesystem/types@0.2.6", instance, write, "(param i32)", is, must);
    let now = ("now", "(result (tuple u64 u32))");
    let is = "func() -> tuple<u64, u32>";
    wrong("wasi:clocks/wall-clock@0.2.10", "", now, "(param i32)", is, "func() -> datetime");
}

#[test]
fn what_nobody_provides_is_listed_with_its_type() {
    let refused = |lines: &str| {
        format!(
            "the component imports what Spelunk does not provide:{lines}\nbuild it without them, name a component that \
             exports them with --compose, or pass --stub-imports to have such functions return the simplest value of their type, \
             or --stub-imports=drawn to have them return drawn values"
        )
    };
    let instance = r#"(type $v (variant (case "a" (tuple u8 char)) (case "b"))) (export "v" (type $v' (eq $v)))
        (type $r (record (field "x" $v') (field "y" (option string)))) (export "r" (type $r' (eq $r)))
        (type $e (enum "c" "d")) (export "e" (type $e' (eq $e))) (type $f (flags "g" "h")) (export "f" (type $f' (eq $f)))
        (export "res" (type $res (sub resource)))"#;
    let ty = r#"(param "a" $r') (param "b" (list $e')) (param "c" (result)) (param "d" (result (error s16)))
        (param "e" (result f32)) (param "f" (borrow $res)) (result (result (tuple $f' (own $res)) (error f64)))"#;
    let core = "(param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 f32 i32 i32)";
    let line = "\n  `a:b/c@1.0.0#many`, `func(a: record { x: variant { a(tuple<u8, char>), b }, y: option<string> }, \
                b: list<enum { c, d }>, c: result, d: result<_, s16>, e: result<f32>, f: borrow<res>) \
                -> result<tuple<flags { g, h }, res>, f64>`";
    check("a:b/c@1.0.0", instance, ("many", ty), (core, ""), &refused(line));
    // Other versions have other functions.
    for interface in ["wasi:random/random@0.3.0", "wasi:random/random@0.2.0-rc-1", "wasi:random/random"] {
        let line = format!("\n  `{interface}#get-random-u64`, `func() -> u64`");
        check(interface, "", ("get-random-u64", "(result u64)"), ("(result i64)", ""), &refused(&line));
    }
    let unknown =
        with("wasi:random/random@0.2.0", "", ("new", "(result u64)"), ("(result i64)", "(drop (call $f))"));
    let line = "\n  `wasi:random/random@0.2.0#new`, `func() -> u64`";
    assert_eq!(comes_to(&unknown, StubImports::None), refused(line));
    assert_eq!(comes_to(&unknown, StubImports::Zero), "no finding");
    assert_eq!(comes_to(&unknown, StubImports::Drawn), "no finding");
}

#[test]
fn so_many_random_bytes_are_too_many() {
    let function = ("get-random-bytes", r#"(param "len" u64) (result (list u8))"#);
    let ask = |len: &str, expected: &str| {
        let body = format!("(call $f (i64.const {len}) (i32.const 16))");
        check("wasi:random/random@0.2.0", "", function, ("(param i64 i32)", &body), expected);
    };
    ask("-1", "abi: it asks for 18446744073709551615 random bytes at once; 16777216 are the most");
    ask("16777217", "abi: it asks for 16777217 random bytes at once; 16777216 are the most");
    ask("60000", "no finding");
    ask("16777216", "abi: its realloc gave 0x400 as room for 16777216 bytes, which is outside of memory");
}

#[test]
fn it_is_the_same_time_everywhere() {
    let instance = r#"(type $d (record (field "seconds" u64) (field "nanoseconds" u32))) (export "datetime" (type $d' (eq $d)))
        (type $t (record (field "utc-offset" s32) (field "name" string) (field "in-daylight-saving-time" bool)))
        (export "timezone-display" (type $t' (eq $t)))"#;
    let timezone = "wasi:clocks/timezone@0.2.0";
    let function = ("utc-offset", r#"(param "when" $d') (result s32)"#);
    let body = "(if (call $f (i64.const -1) (i32.const -1)) (then unreachable))";
    check(timezone, instance, function, ("(param i64 i32) (result i32)", body), "no finding");
    let function = ("display", r#"(param "when" $d') (result $t')"#);
    let body = r#"(call $f (i64.const 0) (i32.const 0) (i32.const 16))
        (if (i32.ne (i32.load (i32.const 16)) (i32.const 0)) (then unreachable))
        (if (i32.ne (i32.load (i32.const 24)) (i32.const 3)) (then unreachable))
        (if (i32.ne (i32.load16_u (i32.load (i32.const 20))) (i32.const 0x5455)) (then unreachable))"#;
    check(timezone, instance, function, ("(param i64 i32 i32)", body), "no finding");
}

/// A component that gets handles of standard output, and does this with them.
fn with_output(body: &str) -> String {
    format!(
        r#"(component
        (import "wasi:io/streams@0.2.5" (instance $streams (export "output-stream" (type (sub resource)))))
        (alias export $streams "output-stream" (type $out))
        (import "wasi:cli/stdout@0.2.5" (instance $stdout
          (alias outer 1 $out (type $o)) (export "output-stream" (type $e (eq $o)))
          (export "get-stdout" (func (result (own $e))))))
        (core func $get (canon lower (func $stdout "get-stdout")))
        (core func $drop (canon resource.drop $out))
        (core module $m (import "from" "get" (func $get (result i32))) (import "from" "drop" (func $drop (param i32)))
          (func (export "f") (local i32) {body}))
        (core instance $i (instantiate $m
          (with "from" (instance (export "get" (func $get)) (export "drop" (func $drop))))))
        (func (export "f") (canon lift (core func $i "f"))))"#
    )
}

#[test]
fn handles_are_used_as_they_may_be() {
    let check = |body: &str, expected: &str| {
        assert_eq!(comes_to(&with_output(body), StubImports::None), expected, "{body}");
    };
    check("(call $drop (call $get))", "no finding");
    check(
        "(local.set 0 (call $get)) (call $drop (local.get 0)) (call $drop (local.get 0))",
        "abi: there is no handle 1",
    );
    check("(call $drop (i32.const -1))", "abi: there is no handle 4294967295");
    let many = "abi: it has more than 1024 streams, pollables, errors and listings at once";
    check("(loop (drop (call $get)) (br 0))", many);
    check(
        "(loop (call $drop (call $get)) (br 0))",
        "hang: the step did not end within its budget (--step-budget), in f+0x5",
    );
    // Steps that keep one each are as many.
    check("(drop (call $get))", "no finding");
}

#[test]
fn without_a_network_calls_are_refused() {
    let code = r#"(type $c (enum "unknown" "access-denied" "not-supported")) (export "error-code" (type $c' (eq $c)))"#;
    let sockets = "wasi:sockets/tcp@0.2.0";
    let function = ("bind", "(result (result u32 (error $c')))");
    // The error, and which.
    let body = r#"(call $f (i32.const 16)) (if (i32.ne (i32.load8_u (i32.const 16)) (i32.const 1)) (then unreachable))
        (if (i32.ne (i32.load8_u (i32.const 20)) (i32.const 2)) (then unreachable))"#;
    check(sockets, code, function, ("(param i32)", body), "no finding");
    check(sockets, code, ("listens", "(result bool)"), ("(result i32)", ""), "no finding");
    let expected = "abi: it calls `wasi:sockets/tcp@0.2.0#listens`, and there is no network";
    check(sockets, code, ("listens", "(result bool)"), ("(result i32)", "(drop (call $f))"), expected);
    let http = r#"(type $c (variant (case "DNS-timeout") (case "HTTP-request-denied"))) (export "error-code" (type $c' (eq $c)))"#;
    let function = ("handle", "(result (result (error $c')))");
    let body = r#"(call $f (i32.const 16)) (if (i32.ne (i32.load16_u (i32.const 16)) (i32.const 0x101)) (then unreachable))"#;
    check("wasi:http/outgoing-handler@0.2.4", http, function, ("(param i32)", body), "no finding");
    // With stubs they are stubs.
    let wat = with(
        sockets,
        code,
        ("listens", "(result bool)"),
        ("(result i32)", "(if (call $f) (then unreachable))"),
    );
    assert_eq!(comes_to(&wat, StubImports::Zero), "no finding");
    assert!(comes_to(&wat, StubImports::Drawn).starts_with("trap: "));
}
