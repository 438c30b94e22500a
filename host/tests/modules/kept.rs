//! Guests that do little in one step, and have the host keep more with each.

use super::{NEXT, guest, module};

/// A way through a hundred edges, by the count of steps, so that each of the first steps is worth a checkpoint.
pub(super) fn new_edge() -> String {
    format!(
        "{} (br_table {} (global.get $n)) {}",
        "(block ".repeat(100),
        (0..100).map(|n| format!("{n} ")).collect::<String>(),
        ")".repeat(100)
    )
}

/// A rule that draws so often, and each time meets an edge that is new.
fn draws(count: u32, draw: &str) -> Vec<u8> {
    guest(&format!(
        "(func (export \"rule:a\") (local $i i32)
           (loop $l {NEXT_LOCAL} {draw} (br_if $l (i32.lt_u (local.get $i) (i32.const {count}))))
           (global.set $n (i32.add (global.get $n) (i32.const 1))) {})",
        new_edge()
    ))
}

const NEXT_LOCAL: &str = "(local.set $i (i32.add (local.get $i) (i32.const 1)))";
const INTEGER: &str = "(drop (call $integer (i64.const 0) (i64.const 99) (i64.const 0)))";

pub(super) fn all() -> Vec<(String, Vec<u8>)> {
    let steps = |body: &str| guest(&format!("(func (export \"rule:a\") (param i32) (local $i i32) {body})"));
    let panic = |name: u32| {
        format!(
            "(call $panic (i32.const 0) (i32.const 65536) (i32.const 0) (i32.const {name}) (local.get 0) (i32.const 1))"
        )
    };
    let all = [
        ("long-ways", draws(99_999, INTEGER)),
        ("ways-of-bytes", draws(1, "(drop (call $bytes (i32.const 65536) (i32.const 1000000) (i32.const 1000000)))")),
        ("ways-of-spans", draws(99_999, "(call $begin (i32.const 0) (i32.const 4)) (call $end (i32.const 0))")),
        (
            "rising-scores",
            guest(&format!(
                "(func (export \"rule:a\") (local $i i32) (loop $l {NEXT} {INTEGER}
                   (call $target (f64.convert_i32_u (global.get $n)) (i32.const 8) (i32.const 4))
                   (br_if $l (i32.lt_u (local.get $i) (i32.const 50000)))))"
            )),
        ),
        ("failures-of-long-messages", steps(&panic(4))),
        (
            "failures-after-long-ways",
            steps(&format!(
                "(loop $l {NEXT_LOCAL} {INTEGER} (br_if $l (i32.lt_u (local.get $i) (i32.const 90000)))) {}",
                panic(4)
            )),
        ),
        (
            "failures-after-bytes",
            steps(&format!(
                "(drop (call $bytes (i32.const 65536) (i32.const 1000000) (i32.const 1000000))) {}",
                panic(4)
            )),
        ),
        (
            "a-large-state",
            module(
                "(import \"spelunk\" \"state\" (func $state (param i32 i32))) (memory 512) (global $n (mut i32) (i32.const 0))
                 (func (export \"rule:a\") (global.set $n (i32.add (global.get $n) (i32.const 1))))
                 (func (export \"state\") (i32.store (i32.const 0) (global.get $n)) (call $state (i32.const 0) (i32.const 33554432)))",
            ),
        ),
        (
            "states-for-ever",
            module(
                "(import \"spelunk\" \"state\" (func $state (param i32 i32))) (memory 512) (func (export \"rule:a\"))
                 (func (export \"state\") (loop $l (call $state (i32.const 0) (i32.const 33554432)) (br $l)))",
            ),
        ),
    ];
    all.map(|(name, wasm)| (name.to_string(), wasm)).to_vec()
}
