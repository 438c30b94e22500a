//! What is refused, and what is said of it. What linked modules do is tested across the crates.

use super::*;

fn linked(target: &str, harness: &str) -> Result<Linked> {
    let wasm = |text: &str| wat::parse_str(format!("(module {text})")).unwrap();
    let nearest = |_: &str, names: &[&str]| format!("there are {}", names.join(" "));
    let (target, harness) = (wasm(target), wasm(harness));
    let has_meaning = |name: &str| name.starts_with("rule:");
    link(&Parts { target: &target, harness: &harness, has_meaning: &has_meaning, nearest: &nearest })
}

#[track_caller]
fn refuses(target: &str, harness: &str, expected: &str) {
    let error = linked(target, harness).unwrap_err();
    assert_eq!(format!("{error:#}"), expected);
}

const TARGET: &str = r#"(memory (export "memory") 2) (global (export "g") (mut i32) (i32.const 5))
  (table (export "t") 2 funcref) (func (export "f") (param i32) (result i32) (local.get 0))"#;

#[test]
fn imports_that_do_not_fit_are_named() {
    refuses(
        TARGET,
        r#"(import "target" "fn" (func))"#,
        "the harness imports `fn` from `target`, which exports nothing of that name; there are memory g t f",
    );
    let check = |module: &str, import: &str, expected: &str| {
        refuses(
            TARGET,
            &format!(r#"(import "{module}" {import})"#),
            &format!("the harness imports {expected} under this name"),
        );
    };
    check(
        "env",
        r#""f" (func (param i32 f64))"#,
        "`f` from `env` as a function (i32, f64) -> (); the target has a function (i32) -> (i32)",
    );
    check(
        "lib",
        r#""g" (global i32)"#,
        "`g` from `lib` as a global i32; the target has a mutable global i32",
    );
    check(
        "target",
        r#""memory" (func)"#,
        "`memory` from `target` as a function () -> (); the target has a memory",
    );
    check(
        "target",
        r#""t" (table 1 externref)"#,
        "`t` from `target` as a table of externref; the target has a table of funcref",
    );
}

#[test]
fn what_cannot_be_copied_is_refused() {
    refuses(
        TARGET,
        "(memory 1)",
        "the harness has a memory of its own; have it import that of the target: with clang and zig -Wl,--import-memory, \
         with rustc -C link-arg=--import-memory, with asc --importMemory",
    );
    refuses(
        TARGET,
        "(tag (param i32))",
        "the harness has exceptions of its own, which cannot be linked; compile it without (-fno-exceptions)",
    );
    let types = "the harness has types of its own beside functions of numbers, funcref and externref, which cannot be linked; \
                 compile it without garbage collection";
    refuses(TARGET, "(type (struct))", types);
    refuses(TARGET, "(type $f (func)) (func (param (ref null $f)))", types);
    refuses(
        TARGET,
        r#"(@custom "dylink.0" (before first) "")"#,
        "the harness is a shared library, which may be loaded anywhere; link it without -shared and -fPIC, with \
         -Wl,--import-memory and a -Wl,--global-base",
    );
    refuses(
        TARGET,
        r#"(func (export "_start"))"#,
        "the harness is a program (it exports `_start`); build it as a library: with clang -mexec-model=reactor or \
         -nostartfiles -Wl,--no-entry, with zig -fno-entry",
    );
    refuses(
        TARGET,
        r#"(func (export "_initialize") (param i32))"#,
        "the harness exports `_initialize`, which must be a function that takes and returns nothing",
    );
    refuses(
        TARGET,
        r#"(func (export "memory"))"#,
        "the target and the harness both export `memory`, and not the same kind of thing; rename it in the harness",
    );
    refuses(
        r#"(memory 1) (memory (export "memory") 1)"#,
        r#"(import "target" "memory" (memory 1))"#,
        "the harness shares a memory of the target that is not its first, in which Spelunk looks for what is given by address",
    );
    refuses(
        r#"(memory (export "memory") i64 1)"#,
        r#"(import "target" "memory" (memory 1))"#,
        "the target and the harness share the memory `memory`, which has 64-bit addresses or pages of another size in one of \
         them; these cannot be linked",
    );
}

#[test]
fn broken_modules_are_errors() {
    let (target, harness) = (wat::parse_str("(module)").unwrap(), b"{}".to_vec());
    let check = |target: &[u8], harness: &[u8], expected: &str| {
        let nearest = |_: &str, _: &[&str]| String::new();
        let parts = Parts { target, harness, has_meaning: &|_| false, nearest: &nearest };
        assert_eq!(format!("{:#}", link(&parts).unwrap_err()), expected);
    };
    let begins =
        "not a WebAssembly module: a module begins with the bytes 00 61 73 6d, this with the bytes 7b 7d";
    check(
        &target,
        &harness,
        &format!("the harness cannot be linked: {}", begins.replace("the bytes 7b", "7b")),
    );
    check(
        &harness,
        &target,
        &format!("the target cannot be linked: {}", begins.replace("the bytes 7b", "7b")),
    );
}

/// A target of two pages.
fn lies(harness: &str, expected: &str) {
    refuses(TARGET, &format!(r#"(import "env" "memory" (memory 1)) {harness}"#), expected);
}

const BASE: &str = "link the harness with -Wl,--global-base=131072 (rustc: -C link-arg=--global-base=131072)";

#[test]
fn a_harness_within_the_target_is_refused() {
    let within = |what: &str, at: u32| {
        format!(
            "the {what} of the harness would lie at {at}, within the first 131072 bytes, which are the target's; {BASE}"
        )
    };
    lies(r#"(data (i32.const 1024) "x")"#, &within("data", 1024));
    lies(r#"(data (i32.const 131072) "x") (data (i32.const 131071) "x")"#, &within("data", 131_071));
    lies(
        r#"(global (export "__heap_base") i32 (i32.const 4096)) (data (i32.const 131072) "x")"#,
        &within("heap", 4096),
    );
    lies(
        "(global $__stack_pointer (mut i32) (i32.const 70000))",
        &format!(
            "nothing says where the variables of the harness lie, which has no data; {BASE}, and -Wl,--export=__global_base"
        ),
    );
    lies(
        r#"(global (export "__global_base") i32 (i32.const 1024)) (global $__stack_pointer (mut i32) (i32.const 200000))"#,
        &within("data", 1024),
    );
    lies(
        r#"(global (mut i32) (i32.const 70000)) (data (i32.const 131072) "x")"#,
        "the harness has no names, so that its stack cannot be found; link it without --strip-all, or with \
         -Wl,--export=__stack_pointer",
    );
    lies(
        r#"(global $__stack_pointer (mut i32) (i32.const 70000)) (data (i32.const 131072) "x")
           (func (export "f") (result i32) memory.size)"#,
        "the harness has its stack in front of its variables, and looks how large the memory is; link it without \
         --stack-first (-Wl,--no-stack-first)",
    );
    lies(
        r#"(func (export "f") (result i32) (memory.grow (i32.const 1)))"#,
        &format!(
            "the harness imports a memory of 1 pages, or sizes it, and has no data; that of the target has 2; {BASE}, and \
             -Wl,--export=__global_base"
        ),
    );
    lies(
        r#"(data (i32.const 0xfffffff0) "x")"#,
        "the target and the harness need more than 4 GiB of memory together",
    );
    lies(
        r#"(import "env" "at" (global i32)) (data (global.get 0) "x")"#,
        "the harness has data whose address is not a constant; link it without -shared and -fPIC",
    );
}

#[test]
fn a_target_that_grows_is_given_room() {
    refuses(
        r#"(memory (export "memory") 1) (func (export "f") (result i32) (memory.grow (i32.const 1)))"#,
        r#"(import "env" "memory" (memory 1)) (data (i32.const 0) "x")"#,
        "the data of the harness would lie at 0, within the first 65536 bytes, which are the target's; link the harness with \
         -Wl,--global-base=16842752 (rustc: -C link-arg=--global-base=16842752)",
    );
}

#[test]
fn functions_in_the_targets_table_stand_behind_its_own() {
    let harness = |at: u32| {
        format!(r#"(import "target" "t" (table 1 funcref)) (func $a) (elem (i32.const {at}) func $a $a)"#)
    };
    refuses(
        TARGET,
        &harness(1),
        "the harness has functions in the target's table from 1 on, of which the first 2 elements are the target's; link the \
         harness with -Wl,--table-base=2",
    );
    let wasm = linked(TARGET, &harness(3)).unwrap().wasm;
    assert_eq!(Module::from_buffer(&wasm).unwrap().tables.iter().next().unwrap().initial, 5);
    refuses(
        TARGET,
        &harness(5_000_000),
        "the target and the harness need a table of 5000002 elements, more than 4194304",
    );
}

#[test]
fn the_same_modules_give_the_same_bytes() {
    let harness = r#"(import "target" "f" (func $f (param i32) (result i32))) (type $u (func (param f64)))
      (func (export "rule:a") (drop (call $f (i32.const 1))))"#;
    let (a, b) = (linked(TARGET, harness).unwrap(), linked(TARGET, harness).unwrap());
    assert_eq!((a.wasm, a.origins), (b.wasm, b.origins));
}
