//! Guests whose states are files: each step makes others, which the host keeps.

use super::kept::new_edge;
use super::module;

/// Two rules with this body, for `$i` below a count, each time with a name of four letters at 0 that was not there before. Each
/// of the first steps meets an edge that is new.
fn steps(count: u32, body: &str) -> Vec<u8> {
    module(&format!(
        r#"(import "wasi_snapshot_preview1" "path_create_directory" (func $mkdir (param i32 i32 i32) (result i32)))
           (import "wasi_snapshot_preview1" "path_symlink" (func $symlink (param i32 i32 i32 i32 i32) (result i32)))
           (import "wasi_snapshot_preview1" "path_unlink_file" (func $unlink (param i32 i32 i32) (result i32)))
           (import "wasi_snapshot_preview1" "path_rename" (func $rename (param i32 i32 i32 i32 i32 i32) (result i32)))
           (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
           (import "wasi_snapshot_preview1" "fd_pwrite" (func $pwrite (param i32 i32 i32 i64 i32) (result i32)))
           (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
           (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
           (memory (export "memory") 32) (global $n (mut i32) (i32.const 0))
           (data (i32.const 56) "\00\10\00\00\04\00\00\00") (data (i32.const 64) "\00\10\00\00\00\00\10\00") (data (i32.const 128) "long")
           (func (export "rule:a") (call $do (i32.const 0)))
           (func (export "rule:b") (call $do (i32.const 5000)))
           (func $do (param $p i32) (local $i i32)
             (loop $l
               (local.set $i (i32.add (local.get $i) (i32.const 1)))
               (global.set $n (i32.add (global.get $n) (i32.const 1)))
               (i32.store (i32.const 0) (i32.or (i32.const 0x20202020) (i32.and (i32.const 0x1f1f1f1f)
                 (i32.mul (i32.add (global.get $n) (local.get $p)) (i32.const 0x9e3779b1)))))
               {body}
               (br_if $l (i32.lt_u (local.get $i) (i32.const {count}))))
             (i32.store (i32.const 200) (i32.add (i32.load (i32.const 200)) (i32.const 1)))
             {edge})"#,
        edge = new_edge().replace("(global.get $n)", "(i32.load (i32.const 200))")
    ))
}

const OPEN: &str = "(drop (call $open (i32.const 3) (i32.const 0) (i32.const 128) (i32.const 4) (i32.const 1) (i64.const 127) (i64.const 0) (i32.const 0) (i32.const 32)))";

pub(super) fn all() -> Vec<(String, Vec<u8>)> {
    let name = "(i32.const 0) (i32.const 4)";
    let written = |place: &str| {
        format!(
            "{OPEN} (i32.store (i32.const 4096) (global.get $n)) (drop (call $pwrite (i32.const 4) (i32.const 64) (i32.const 1) {place} (i32.const 32)))"
        )
    };
    let all = [
        ("directories-each-step", steps(500, &format!("(drop (call $mkdir (i32.const 3) {name}))"))),
        (
            "long-links-each-step",
            steps(
                100,
                &format!("(drop (call $symlink (i32.const 4096) (i32.const 4096) (i32.const 3) {name}))"),
            ),
        ),
        (
            "names-each-step",
            steps(
                200,
                &format!(
                    "(drop (call $mkdir (i32.const 3) {name})) (drop (call $rename (i32.const 3) {name} (i32.const 3) (i32.const 128) (i32.const 1)))"
                ),
            ),
        ),
        ("a-file-each-step", steps(1, &written("(i64.const 0)"))),
        (
            "a-sparse-file-each-step",
            steps(
                300,
                &written("(i64.mul (i64.extend_i32_u (global.get $n)) (i64.const 99999))")
                    .replace("(i32.const 64) (i32.const 1)", "(i32.const 56) (i32.const 1)"),
            ),
        ),
        (
            "input-that-is-written-back",
            steps(
                3,
                &format!(
                    "{OPEN} (drop (call $read (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 32))) (drop (call $write (i32.const 4) (i32.const 64) (i32.const 1) (i32.const 32)))"
                ),
            ),
        ),
    ];
    all.map(|(name, wasm)| (name.to_string(), wasm)).to_vec()
}
