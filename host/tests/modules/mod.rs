//! Modules that try to exhaust or hang the host.

mod files;
mod kept;
mod places;
mod signed;

/// The imports of `spelunk` that these modules use.
const IMPORTS: &str = r#"
  (import "spelunk" "bytes" (func $bytes (param i32 i32 i32) (result i32)))
  (import "spelunk" "integer" (func $integer (param i64 i64 i64) (result i64)))
  (import "spelunk" "index" (func $index (param i32) (result i32)))
  (import "spelunk" "span_begin" (func $begin (param i32 i32)))
  (import "spelunk" "span_end" (func $end (param i32)))
  (import "spelunk" "panic" (func $panic (param i32 i32 i32 i32 i32 i32)))
  (import "spelunk" "sometimes" (func $sometimes (param i32 i32 i32)))
  (import "spelunk" "reachable" (func $reachable (param i32 i32)))
  (import "spelunk" "target" (func $target (param f64 i32 i32)))
  (import "spelunk" "event" (func $event (param i32 i32)))
  (import "spelunk" "note" (func $note (param i32 i32)))
  (import "spelunk" "describe" (func $describe (param i32 i32 i32 i32)))
  (import "spelunk" "fault" (func $fault (param i32 i32) (result i32)))
  (import "spelunk" "reject" (func $reject))
  (import "spelunk" "state" (func $state (param i32 i32)))
  (import "spelunk" "eventually" (func $eventually (param i32 i32 i32)))
  (import "spelunk" "leads_to" (func $leads_to (param i32 i32 i32 i32)))
  (import "spelunk" "way" (func $way (param i64)))
  (import "spelunk" "verbose" (func $verbose (result i32)))"#;

fn module(text: &str) -> Vec<u8> {
    wat::parse_str(format!("(module {text})")).unwrap_or_else(|error| panic!("{error}"))
}

/// A module with the imports, memory, and this.
fn guest(text: &str) -> Vec<u8> {
    module(&format!("{IMPORTS} (memory (export \"memory\") 32) (global $n (mut i32) (i32.const 0)) {text}"))
}

/// A rule with this body, again and again for ever.
fn endless(body: &str) -> Vec<u8> {
    guest(&format!(
        "(func (export \"rule:a\") (local $i i32) (local $x i64) (loop $l {NEXT} {body} (br $l)))"
    ))
}

/// A rule with this body, so many times.
fn times(count: u32, body: &str) -> Vec<u8> {
    guest(&format!(
        "(func (export \"rule:a\") (local $i i32) (local $x i64)
           (loop $l {NEXT} {body} (br_if $l (i32.lt_u (local.get $i) (i32.const {count})))))"
    ))
}

/// Counts, and makes a name of four bytes of the count.
const NEXT: &str = "(local.set $i (i32.add (local.get $i) (i32.const 1)))
  (global.set $n (i32.add (global.get $n) (i32.const 1))) (i32.store (i32.const 0) (global.get $n))";

/// A value through so many operators.
fn through(count: usize, op: &str, start: &str, other: &str) -> String {
    format!("{}{start}{}", format!("({op} ").repeat(count), format!(" {other})").repeat(count))
}

/// A claim of runs without end, declared and made in an invariant, and a rule that is fair in each way.
const LIVE: &str = r#"(@custom "spelunk:properties" "leads-to live\n") (@custom "spelunk:fairness" "")
  (data (i32.const 0) "live") (func (export "invariant:i") (call $leads_to (i32.const 0) (i32.const 4) (i32.const 1) (i32.const 0)))"#;

const LOOP: &str = "(loop $l (br $l))";
const RULE: &str = "(func (export \"rule:a\"))";

fn loops() -> Vec<(&'static str, Vec<u8>)> {
    let x = "(local.get $x)";
    let set = |value: String| format!("(local.set $x (i64.or (i64.const 3) {value}))");
    vec![
        ("loop", endless("")),
        ("loop-setup", guest(&format!("{RULE} (func (export \"setup\") {LOOP})"))),
        ("loop-teardown", guest(&format!("{RULE} (func (export \"teardown\") {LOOP})"))),
        ("loop-start", guest(&format!("{RULE} (func $s {LOOP}) (start $s)"))),
        ("loop-initialize", guest(&format!("{RULE} (func (export \"_initialize\") {LOOP})"))),
        ("loop-invariant", guest(&format!("{RULE} (func (export \"invariant:i\") {LOOP})"))),
        ("loop-fault", guest(&format!("{RULE} (func (export \"fault:f\") (param i32) {LOOP})"))),
        (
            "loop-precondition",
            guest(&format!("{RULE} (func (export \"precondition:a\") (result i32) {LOOP} (i32.const 1))")),
        ),
        ("loop-check", guest(&format!("(func (export \"check\") {LOOP})"))),
        ("divisions", endless(&set(through(30_000, "i64.div_u", x, x)))),
        ("remainders", endless(&set(through(30_000, "i64.rem_s", x, x)))),
        ("multiplications", endless(&set(through(30_000, "i64.mul", x, x)))),
        (
            "square-roots",
            endless(&format!(
                "(local.set $x (i64.reinterpret_f64 {}(f64.reinterpret_i64 {x}){}))",
                "(f64.sqrt ".repeat(20_000),
                ")".repeat(20_000)
            )),
        ),
        ("vectors", endless(&format!("(drop {})", through(5_000, "i64x2.mul", "(v128.load (i32.const 0))", "(v128.load (i32.const 8))")))),
        ("loads", endless(&set(format!("(i64.load (i32.wrap_i64 {}))", through(2_000, "i64.add", x, "(i64.load (i32.const 8))"))))),
        ("many-short-loops", guest(&format!(
            "(func (export \"rule:a\") (local $i i32) {})",
            "(local.set $i (i32.const 255)) (loop (br_if 0 (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))".repeat(20_000)
        ))),
        ("switch", endless(&format!(
            "{} (br_table {} (local.get $i)) {}",
            "(block ".repeat(1000),
            (0..1000).map(|n| format!("{n} ")).collect::<String>(),
            ")".repeat(1000)
        ))),
        ("nested-loops", guest(&format!("(func (export \"rule:a\") {} (br 0) {})", "(loop ".repeat(500), ")".repeat(500)))),
        ("calls", guest(&format!(
            "{} (func $f40) (func (export \"rule:a\") (call $f0))",
            (0..40).map(|n| format!("(func $f{n} (call $f{m}) (call $f{m}))", m = n + 1)).collect::<String>()
        ))),
        ("leaf-calls", guest(&format!("(func $leaf) (func (export \"rule:a\") (loop $l {} (br $l)))", "(call $leaf)".repeat(3_000)))),
        ("heavy-leaf-calls", {
            let leaf = format!("(func $leaf (local $x i64) (local.set $x (i64.const 9)) (i64.store (i32.const 8) {}))", through(5_000, "i64.div_u", "(i64.load (i32.const 16))", "(local.get $x)"));
            guest(&format!("{leaf} (func (export \"rule:a\") (loop $l {} (br $l)))", "(call $leaf)".repeat(2_000)))
        }),
        ("recursion", guest("(func $f (export \"rule:a\") (call $f))")),
        ("deep-recursion", guest("(func $f (param i64 i64 i64 i64) (result i64) (i64.add (i64.load (i32.const 8)) (call $f (local.get 3) (local.get 2) (local.get 1) (local.get 0)))) (func (export \"rule:a\") (drop (call $f (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4))))")),
        ("tail-calls", guest("(func $f (export \"rule:a\") (return_call $f))")),
        ("indirect-recursion", guest("(table 1 funcref) (elem (i32.const 0) $f) (func $f (export \"rule:a\") (call_indirect (i32.const 0)))")),
        ("exceptions", guest("(tag $e) (func (export \"rule:a\") (loop $l (block (try_table (catch_all 0) (throw $e))) (br $l)))")),
        ("exceptions-from-deep", guest("(tag $e) (func $dive (param i32) (if (local.get 0) (then (call $dive (i32.sub (local.get 0) (i32.const 1)))) (else (throw $e)))) (func (export \"rule:a\") (loop $l (block (try_table (catch_all 0) (call $dive (i32.const 9000)))) (br $l)))")),
        ("rethrow", guest("(tag $e) (func (export \"rule:a\") (loop $l (drop (block (result exnref) (try_table (catch_all_ref 0) (throw $e)) (unreachable))) (br $l)))")),
        ("choices-for-ever", endless("(drop (call $index (i32.const 7)))")),
        ("rejects", guest("(func (export \"rule:a\") (call $reject))")),
    ]
}

fn memory() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("grow", endless("(drop (memory.grow (i32.const 1)))")),
        ("grow-and-touch", endless("(drop (memory.grow (i32.const 1))) (i32.store (i32.mul (i32.sub (memory.size) (i32.const 1)) (i32.const 65536)) (i32.const 1))")),
        ("grow-each-step", guest("(func (export \"rule:a\") (drop (memory.grow (i32.const 16))))")),
        ("large-and-untouched", module(&format!("(memory 1024) {RULE}"))),
        ("too-large", module(&format!("(memory 16384) {RULE}"))),
        ("large-and-read", guest("(func (export \"rule:a\") (local $i i32) (drop (memory.grow (i32.const 900))) (loop $l (drop (i32.load (local.get $i))) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4096))) (i32.const 60000000)))))")),
        ("fill", endless("(memory.fill (i32.const 0) (local.get $i) (i32.const 2097152))")),
        ("fill-all", guest("(func (export \"rule:a\") (drop (memory.grow (i32.const 900))) (global.set $n (i32.add (global.get $n) (i32.const 1))) (memory.fill (i32.const 0) (global.get $n) (i32.const 60000000)))")),
        ("fill-and-say-nothing", guest("(func (export \"state\")) (func (export \"rule:a\") (memory.fill (i32.const 0) (call $index (i32.const 200)) (i32.const 2097152)))")),
        ("many-ways-and-say-nothing", guest(&format!("(func (export \"state\")) {}", (0..300).map(|n| format!("(func (export \"rule:r{n}\") (memory.fill (i32.const {n}) (call $index (i32.const 250)) (i32.const 2000000)))")).collect::<String>()))),
        ("deadlock-loops-in-terminal", guest(&format!("{RULE} (func (export \"precondition:a\") (result i32) (i32.const 0)) (func (export \"terminal\") (result i32) {LOOP} (i32.const 0))"))),
        ("claims-undeclared", endless("(call $eventually (i32.const 0) (i32.const 4) (i32.const 0))")),
        ("claims-many", guest(&format!("(@custom \"spelunk:properties\" \"{}\") {RULE}", (0..65).map(|n| format!("eventually c{n}\\n")).collect::<String>()))),
        ("loops-for-ever", guest(&format!("{LIVE} (func (export \"rule:a\") (i32.store (i32.const 64) (call $index (i32.const 100000))) (call $way (i64.extend_i32_u (i32.load (i32.const 64)))))"))),
        ("claims-of-many-states", guest(&format!("{LIVE} (func (export \"rule:a\") (i32.store (i32.const 64) (i32.add (i32.const 1) (i32.load (i32.const 64)))))"))),
        ("claims-of-many-steps", guest(&format!("{LIVE} {}", (0..200).map(|n| format!("(func (export \"rule:r{n}\") (i32.store (i32.const {}) (call $index (i32.const 200))))", 64 + n)).collect::<String>()))),
        ("fill-each-step-anew", guest(&format!("(func (export \"rule:a\") (param i32) (drop (memory.grow (i32.const 600))) (memory.fill (i32.const 0) (local.get 0) (i32.const 40000000)) {})", (0..60).map(|n| format!("(if (i32.eq (i32.rem_u (local.get 0) (i32.const 61)) (i32.const {n})) (then (global.set $n (i32.const {n}))))")).collect::<String>()))),
        ("copy", endless("(memory.copy (i32.const 1) (i32.const 0) (i32.const 2000000))")),
        ("memory-64", module("(memory i64 1) (func (export \"rule:a\") (loop $l (drop (memory.grow (i64.const 1))) (i64.store (i64.sub (i64.mul (memory.size) (i64.const 65536)) (i64.const 8)) (i64.const 7)) (br $l)))")),
        ("memory-64-beyond", module("(memory i64 1) (func (export \"rule:a\") (i64.store (i64.const -9) (i64.const 7)))")),
        ("many-memories", growing(99)),
        ("many-large-memories", module(&format!("{} {RULE}", "(memory 1000)".repeat(50)))),
        ("data", module(&format!("(memory 900) (data (i32.const 0) \"{}\") {RULE}", "x".repeat(8 << 20)))),
        ("many-segments", module(&format!("(memory 1) {} {RULE}", "(data (i32.const 0) \"abc\")".repeat(50_000)))),
        ("passive-segments", guest(&format!("(data $d \"{}\") (func (export \"rule:a\") (loop $l (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1000000)) (br $l)))", "y".repeat(1_000_000)))),
        ("table-grow", module("(table 1 funcref) (func (export \"rule:a\") (loop $l (drop (table.grow (ref.null func) (i32.const 1000))) (br $l)))")),
        ("table-grow-extern", module("(table 1 externref) (func (export \"rule:a\") (loop $l (drop (table.grow (ref.null extern) (i32.const 1000))) (br $l)))")),
        ("table-fill", module("(table 1000000 funcref) (func $f (export \"rule:a\") (loop $l (table.fill (i32.const 0) (ref.func $f) (i32.const 1000000)) (br $l))) (elem declare func $f)")),
        ("table-each-step", module("(table 1000000 funcref) (global $n (mut i32) (i32.const 0)) (func $f (export \"rule:a\") (param i32) (table.set (i32.rem_u (local.get 0) (i32.const 1000000)) (ref.func $f)))  (elem declare func $f)")),
        ("table-copy", module("(table 100000 funcref) (func $f (export \"rule:a\") (loop $l (table.copy (i32.const 0) (i32.const 1) (i32.const 99999)) (br $l)))")),
        ("many-tables", module(&format!("{} {RULE}", "(table 1000000 funcref)".repeat(90)))),
        ("table-64", module("(table i64 1 funcref) (func (export \"rule:a\") (loop $l (drop (table.grow (ref.null func) (i64.const 100000))) (br $l)))")),
        ("arrays", module("(type $a (array (mut i64))) (func (export \"rule:a\") (loop $l (drop (array.new_default $a (i32.const 100000))) (br $l)))")),
        ("huge-array", module("(type $a (array (mut i64))) (func (export \"rule:a\") (drop (array.new_default $a (i32.const 100000000))))")),
        ("kept-arrays", module("(type $a (array (mut i64))) (type $l (struct (field (ref null $l)) (field (ref null $a)))) (global $g (mut (ref null $l)) (ref.null $l)) (func (export \"rule:a\") (loop $l (global.set $g (struct.new $l (global.get $g) (array.new_default $a (i32.const 1000)))) (br $l)))")),
        ("array-fill", module("(type $a (array (mut i64))) (func (export \"rule:a\") (local $a (ref null $a)) (local.set $a (array.new_default $a (i32.const 1000000))) (loop $l (array.fill $a (local.get $a) (i32.const 0) (i64.const 1) (i32.const 1000000)) (br $l)))")),
        ("fixed-arrays", module(&format!("(type $a (array (mut i64))) (func (export \"rule:a\") (loop $l (drop (array.new_fixed $a 1000 {})) (br $l)))", "(i64.const 5)".repeat(1000)))),
        ("structs", module("(type $s (struct (field i64))) (func (export \"rule:a\") (loop $l (drop (struct.new_default $s)) (br $l)))")),
        ("globals", module(&format!("{} {RULE}", "(global (mut i64) (i64.const 0))".repeat(100_000)))),
    ]
}

/// A module of so many memories, all of which grow, each to another size in each run.
pub(crate) fn growing(memories: usize) -> Vec<u8> {
    let grow: String = (0..memories).map(|n| format!("(drop (memory.grow {n} (local.get 0)))")).collect();
    let rule = format!(
        "(func (export \"rule:a\") (param i32) (local.set 0 (i32.and (local.get 0) (i32.const 7))) {grow})"
    );
    module(&format!("{} {rule}", "(memory 1)".repeat(memories)))
}

fn asking() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (
            "draws-of-a-mebibyte",
            times(100_000, "(drop (call $bytes (i32.const 65536) (i32.const 1048576) (i32.const 1048576)))"),
        ),
        (
            "a-draw-each-step",
            guest(
                "(func (export \"rule:a\") (drop (call $bytes (i32.const 65536) (i32.const 1000000) (i32.const 1000000))))",
            ),
        ),
        ("short-draws", endless("(drop (call $bytes (i32.const 65536) (i32.const 0) (i32.const 9)))")),
        (
            "choices-each-step",
            guest(
                "(func (export \"rule:a\") (local $i i32) (loop $l (drop (call $integer (i64.const 0) (i64.const 99) (i64.const 0))) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 99999)))))",
            ),
        ),
        ("spans", endless("(call $begin (i32.const 0) (i32.const 4))")),
        (
            "spans-each-step",
            times(190_000, "(call $begin (i32.const 0) (i32.const 4)) (call $end (i32.const 1))"),
        ),
        ("scores", endless("(call $target (f64.convert_i32_u (local.get $i)) (i32.const 0) (i32.const 4))")),
        (
            "one-score",
            endless("(call $target (f64.convert_i32_u (local.get $i)) (i32.const 8) (i32.const 4))"),
        ),
        (
            "long-scores",
            endless("(call $target (f64.convert_i32_u (local.get $i)) (i32.const 0) (i32.const 65536))"),
        ),
        (
            "scores-each-step",
            times(900, "(call $target (f64.convert_i32_u (local.get $i)) (i32.const 0) (i32.const 4))"),
        ),
        ("events", endless("(call $event (i32.const 0) (i32.const 4))")),
        ("long-events", endless("(call $event (i32.const 0) (i32.const 65536))")),
        ("events-each-step", times(9_000, "(call $event (i32.const 0) (i32.const 4))")),
        ("long-events-each-step", times(100, "(call $event (i32.const 0) (i32.const 65536))")),
        (
            "slow-input",
            module(
                "(memory 1) (func (export \"LLVMFuzzerTestOneInput\") (param i32 i32) (result i32) (local $i i32) (loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 9000000)))) (i32.const 0))",
            ),
        ),
    ]
}

fn naming() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("properties", endless("(call $sometimes (i32.const 0) (i32.const 4) (i32.const 1))")),
        ("long-properties", endless("(call $sometimes (i32.const 0) (i32.const 65536) (i32.const 0))")),
        ("properties-each-step", times(5_000, "(call $reachable (i32.const 0) (i32.const 4))")),
        ("long-properties-each-step", times(100, "(call $reachable (i32.const 0) (i32.const 65000))")),
        (
            "properties-by-address",
            endless("(call $reachable (i32.and (local.get $i) (i32.const 1048575)) (i32.const 8))"),
        ),
        ("too-long-names", guest("(func (export \"rule:a\") (call $event (i32.const 0) (i32.const 70000)))")),
        ("notes", endless("(call $note (i32.const 0) (i32.const 1000000))")),
        (
            "notes-of-a-finding",
            guest(
                "(func (export \"rule:a\") (local $i i32) (loop $l (call $note (i32.const 0) (i32.const 65536)) (call $describe (i32.const 0) (i32.const 65536) (i32.const 0) (i32.const 65536)) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 2000)))) unreachable)",
            ),
        ),
        (
            "notes-for-ever-when-told",
            guest(
                "(func (export \"rule:a\") (if (call $verbose) (then (loop $l (call $note (i32.const 0) (i32.const 65536)) (br $l)))) unreachable)",
            ),
        ),
        (
            "note-out-of-range",
            guest("(func (export \"rule:a\") (call $note (i32.const -9) (i32.const 65536)))"),
        ),
        (
            "long-panics",
            guest(
                "(func (export \"rule:a\") (call $panic (i32.const 0) (i32.const 1000000) (i32.const 0) (i32.const 1000000) (i32.const 1) (i32.const 1)))",
            ),
        ),
        (
            "different-panics",
            guest(
                "(func (export \"rule:a\") (param i32) (call $panic (i32.const 0) (i32.const 4) (i32.const 0) (i32.const 4) (local.get 0) (i32.const 1)))",
            ),
        ),
        (
            "different-long-panics",
            guest(
                "(func (export \"rule:a\") (param i32) (call $panic (i32.const 0) (i32.const 65536) (i32.const 0) (i32.const 4) (local.get 0) (i32.const 1)))",
            ),
        ),
        (
            "unknown-fault",
            guest("(func (export \"rule:a\") (drop (call $fault (i32.const 0) (i32.const 60000))))"),
        ),
        ("malloc-that-lies", input("(i32.const 2000000000)")),
        ("malloc-of-nothing", input("(i32.const 0)")),
        ("malloc-for-ever", input("(loop $l (br $l)) (i32.const 8)")),
        ("malloc-that-grows", input("(drop (memory.grow (i32.const 10))) (i32.const 8)")),
    ]
}

/// A fuzz target whose `malloc` has this body.
fn input(body: &str) -> Vec<u8> {
    module(&format!(
        "(memory 1) (func (export \"malloc\") (param i32) (result i32) {body})
         (func (export \"LLVMFuzzerTestOneInput\") (param i32 i32) (result i32) (i32.const 0))"
    ))
}

fn shapes() -> Vec<(&'static str, Vec<u8>)> {
    let many = |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<String>();
    vec![
        ("long-export", module(&format!("(func (export \"rule:{}\"))", "n".repeat(1_000_000)))),
        ("many-rules", module(&many(20_000, &|n| format!("(func (export \"rule:{n}\"))")))),
        ("too-many-rules", module(&many(70_000, &|n| format!("(func (export \"rule:{n}\"))")))),
        (
            "many-preconditions",
            module(&format!(
                "{RULE} {}",
                many(2_000, &|n| format!(
                    "(func (export \"rule:r{n}\")) (func (export \"precondition:r{n}\") (result i32) (i32.const 0))"
                ))
            )),
        ),
        (
            "many-invariants",
            guest(&format!("{RULE} {}", many(5_000, &|n| format!("(func (export \"invariant:{n}\"))")))),
        ),
        (
            "many-faults",
            guest(&format!(
                "{} (func (export \"rule:a\") (loop $l (drop (call $fault (i32.const 8) (i32.const 3))) (br $l)))",
                many(5_000, &|n| format!("(func (export \"fault:{n}\") (param i32))"))
            )),
        ),
        (
            "many-functions",
            module(&format!(
                "{RULE} {}",
                many(100_000, &|n| format!(
                    "(func (param i32) (if (local.get 0) (then (drop (i32.const {n})))))"
                ))
            )),
        ),
        (
            "huge-function",
            module(&format!(
                "(memory 1) (func (export \"rule:a\") (param i32) {})",
                "(local.set 0 (i32.add (i32.rotl (local.get 0) (i32.load (local.get 0))) (i32.const 77)))"
                    .repeat(300_000)
            )),
        ),
        (
            "a-state-each",
            guest(
                "(func (export \"rule:a\") (global.set $n (i32.add (global.get $n) (i32.const 1))) (memory.fill (i32.const 0) (global.get $n) (i32.const 2000000)))",
            ),
        ),
    ]
}

fn sections() -> Vec<(&'static str, Vec<u8>)> {
    let many = |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<String>();
    vec![
        (
            "huge-branches",
            module(&format!(
                "(func (export \"rule:a\") (param i32) {})",
                many(60_000, &|n| format!(
                    "(if (i32.eq (local.get 0) (i32.const {n})) (then (local.set 0 (i32.const 5))))"
                ))
            )),
        ),
        (
            "huge-table",
            module(&format!(
                "(func (export \"rule:a\") (param i32) (block $b (loop $l (br_table {} (local.get 0)))))",
                "$b $l ".repeat(50_000)
            )),
        ),
        (
            "many-locals",
            module(&format!(
                "(func (export \"rule:a\") (local {}) (loop $l (br $l)))",
                "i64 ".repeat(49_000)
            )),
        ),
        (
            "deep-blocks",
            module(&format!(
                "(func (export \"rule:a\") {} {})",
                "(block ".repeat(40_000),
                ")".repeat(40_000)
            )),
        ),
        (
            "properties-section",
            module(&format!(
                "(@custom \"spelunk:properties\" \"{}\") {RULE}",
                many(50_000, &|n| format!("sometimes p{n}\\n"))
            )),
        ),
        (
            "reduction-section",
            module(&format!(
                "(@custom \"spelunk:reduction\" \"{}\") {RULE}",
                "independent a a\\n".repeat(200_000)
            )),
        ),
        ("names", names()),
        (
            "many-states",
            guest(
                "(func (export \"rule:a\") (param i32) (i32.store (i32.and (local.get 0) (i32.const 0x1ffff8)) (local.get 0)))",
            ),
        ),
    ]
}

/// Many rules, and much that names them.
fn rules() -> Vec<(&'static str, Vec<u8>)> {
    let exports =
        |count: usize, name: &str| (0..count).map(|n| format!("(export \"{name}{n}\")")).collect::<String>();
    vec![
        (
            "fairness-of-many-rules",
            module(&format!(
                "(@custom \"spelunk:fairness\" \"{}\") (func $f {})",
                "strong r9999\\n".repeat(200_000),
                exports(10_000, "rule:r")
            )),
        ),
        (
            "rules-beside-exports",
            module(&format!("(func $f {} {})", exports(10_000, "rule:r"), exports(50_000, "f"))),
        ),
    ]
}

/// Function names that demangle to a mebibyte each.
fn names() -> Vec<u8> {
    let functions: String = (0..2000)
        .map(|n| {
            let mut name = format!("_RINvC1a{}f{n}TllE", 1 + n.to_string().len());
            let mut at = name.len() - 6;
            for _ in 0..18 {
                let next = name.len() - 2;
                let back = format!("B{}_", base_62(at - 1));
                name.push_str(&format!("T{back}{back}E"));
                at = next;
            }
            format!("(func $n{n} (@name \"{name}E\"))")
        })
        .collect();
    module(&format!("{RULE} {functions}"))
}

fn base_62(number: usize) -> String {
    let digits = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let high = if number >= 62 { base_62(number / 62) } else { String::new() };
    format!("{high}{}", char::from(digits[number % 62]))
}

/// All of them, by name.
pub(crate) fn all() -> Vec<(String, Vec<u8>)> {
    let named = [loops(), memory(), asking(), naming(), shapes(), sections(), rules()].into_iter().flatten();
    let named = named.map(|(name, wasm)| (name.to_string(), wasm));
    named.chain(kept::all()).chain(places::all()).chain(files::all()).chain(signed::all()).collect()
}

/// One in five, where there is not much time.
pub(crate) fn some() -> Vec<(String, Vec<u8>)> {
    let step = if std::env::var_os("HOSTILE_SECONDS").is_some() { 1 } else { 5 };
    all().into_iter().step_by(step).collect()
}
