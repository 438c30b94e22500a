//! Modules with signatures that try to exhaust or hang the host.

use spelunk::file::Described;

use super::{LOOP, guest};

fn signed(text: &str, signatures: &str) -> Vec<u8> {
    let described = Described::parse(signatures).unwrap_or_else(|error| panic!("{error:#}"));
    described.signatures.put_into(&guest(text)).unwrap_or_else(|error| panic!("{error:#}"))
}

pub(super) fn all() -> Vec<(String, Vec<u8>)> {
    const TAKES: &str = r#"(func (export "f") (param i32 i32))"#;
    const BYTES: &str = "[exports.f]\nparams = [{ type = 'bytes', max = 1_000_000 }]";
    let malloc = |body: &str| {
        format!("{TAKES} (func (export \"malloc\") (param i32) (result i32) {body} (i32.const 64))")
    };
    let free = |body: &str| format!("{} (func (export \"free\") (param i32) {body})", malloc(""));
    let named = vec![
        ("signed-malloc-loop", signed(&malloc(LOOP), BYTES)),
        ("signed-malloc-recursion", signed(&malloc("(drop (call 16 (local.get 0)))"), BYTES)),
        ("signed-malloc-grow", signed(&malloc("(drop (memory.grow (i32.const 100)))"), BYTES)),
        ("signed-free-loop", signed(&free(LOOP), BYTES)),
        ("signed-text", signed(TAKES, "[exports.f]\nparams = [{ type = 'text', max = 16384, min = 16384 }]")),
        (
            "signed-pool",
            signed(
                r#"(func (export "f") (result i32) (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n))
                   (func (export "g") (param i32))"#,
                "[exports.f]\nreturns = 'handle:h'\n[exports.g]\nparams = ['handle:h']",
            ),
        ),
        // Starts of other types than they have.
        (
            "start-of-vectors",
            guest(
                r#"(func (export "__wasm_call_ctors") (param v128)) (func (export "stackSave") (result i32) (i32.const 0))
                   (func (export "f") (param i32))"#,
            ),
        ),
        (
            "signed-result",
            signed(r#"(func (export "f") (result i32) (i32.const -1))"#, "[exports.f]\nreturns = 'cstring'"),
        ),
    ];
    named.into_iter().map(|(name, wasm)| (name.to_string(), wasm)).collect()
}
