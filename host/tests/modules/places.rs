//! What a rule can do without end, done in every other place that the host calls.

use super::{LOOP, NEXT, RULE, guest, through};

/// A place, and exports with a body there.
type Place = (&'static str, fn(&str) -> String);

/// Where the host calls something else than a rule.
fn places() -> Vec<Place> {
    fn func(export: &str, signature: &str, body: &str, end: &str) -> String {
        let locals = "(local $i i32) (local $x i64)";
        format!("(func (export \"{export}\") {signature} {locals} {body} {end})")
    }
    vec![
        ("setup", |body| format!("{RULE} {}", func("setup", "", body, ""))),
        ("teardown", |body| format!("{RULE} {}", func("teardown", "", body, ""))),
        ("invariant", |body| {
            format!("{RULE} {}", func("invariant:i", "(result i32)", body, "(i32.const 1)"))
        }),
        ("fault", |body| format!("{RULE} {}", func("fault:f", "(param i32)", body, ""))),
        ("precondition", |body| {
            format!("{RULE} {}", func("precondition:a", "(result i32)", body, "(i32.const 1)"))
        }),
        ("check", |body| func("check", "", body, "")),
        ("state", |body| format!("{RULE} {}", func("state", "", body, ""))),
        ("input", |body| {
            func("LLVMFuzzerTestOneInput", "(param i32 i32) (result i32)", body, "(i32.const 0)")
        }),
    ]
}

/// What to do again and again.
fn deeds() -> Vec<(&'static str, String)> {
    let name = "(i32.const 0) (i32.const 4)";
    let plain = [
        ("draws", "(drop (call $integer (i64.const 0) (i64.const 99) (i64.const 0)))".to_string()),
        ("bytes", "(drop (call $bytes (i32.const 65536) (i32.const 1) (i32.const 100000)))".to_string()),
        ("spans", format!("(call $begin {name}) (call $end (i32.const 0))")),
        ("events", format!("(call $event {name})")),
        ("scores", format!("(call $target (f64.convert_i32_u (local.get $i)) {name})")),
        ("properties", format!("(call $sometimes {name} (i32.const 1))")),
        ("notes", "(call $note (i32.const 0) (i32.const 65536))".to_string()),
        (
            "divisions",
            format!("(local.set $x {})", through(20_000, "i64.div_u", "(local.get $x)", "(i64.const 3)")),
        ),
        ("fill", "(memory.fill (i32.const 0) (local.get $i) (i32.const 2097152))".to_string()),
        ("grow", "(drop (memory.grow (i32.const 1)))".to_string()),
    ];
    plain.map(|(name, deed)| (name, format!("(loop $l {NEXT} {deed} (br $l))"))).to_vec()
}

/// Every deed in every place.
pub(super) fn all() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for (place, export) in places() {
        for (deed, body) in deeds() {
            all.push((format!("{deed}-in-{place}"), guest(&export(&body))));
        }
    }
    all.push(("loop-in-state".to_string(), guest(&format!("{RULE} (func (export \"state\") {LOOP})"))));
    all
}
