//! The guests that are explored, beside those of `tests/cli/guests`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;

use super::place::Place;

/// Fails in the third step, and counts all of them.
pub(crate) const COUNTED: &str = r#"(module
  (import "spelunk" "sometimes" (func $sometimes (param i32 i32 i32)))
  (memory 1) (data (i32.const 0) "two")
  (global $n (mut i32) (i32.const 0))
  (func (export "rule:add") (param i32)
    (if (i32.and (local.get 0) (i32.const 3)) (then (return)))
    (global.set $n (i32.add (global.get $n) (i32.const 1)))
    (call $sometimes (i32.const 0) (i32.const 3) (i32.eq (global.get $n) (i32.const 2)))
    (if (i32.eq (global.get $n) (i32.const 3)) (then unreachable))))"#;

/// A fuzz target that compares words, stores numbers, and says where it is.
pub(crate) const FUZZED: &str = r#"(module
  (import "spelunk" "observe" (func $observe (param i64 i32 i32)))
  (memory (export "memory") 2) (data (i32.const 0) "place")
  (func (export "LLVMFuzzerTestOneInput") (param $data i32) (param $len i32) (result i32)
    (local $i i32) (local $sum i32)
    (if (i32.lt_u (local.get $len) (i32.const 8)) (then (return (i32.const 0))))
    (if (i32.eq (i32.load (local.get $data)) (i32.const 0x4b434f4c)) (then
      (if (i32.eq (i32.load offset=4 (local.get $data)) (i32.const 0x59454b53)) (then unreachable))))
    (loop $next
      (local.set $sum (i32.rotl (i32.xor (local.get $sum)
        (i32.load8_u (i32.add (local.get $data) (local.get $i)))) (i32.const 3)))
      (i32.store (i32.const 16) (local.get $sum))
      (call $observe (i64.extend_i32_u (i32.and (local.get $sum) (i32.const 1023))) (i32.const 0) (i32.const 5))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $len))))
    (i32.const 0)))"#;

/// A lock of so many levels: each opens with the right `bits` bits, leads to an edge of its own, and fills `fill` bytes
/// with noise, in place of those of the eighth level before. At each eighth level something else fails.
pub(crate) fn deep(levels: u32, bits: u32, fill: u32) -> String {
    let mask = (1u32 << bits) - 1;
    let mut wat = format!(
        r#"(module
  (memory {pages})
  (global $at (mut i32) (i32.const 0))
  (func $key (result i32)
    (i32.and (i32.const {mask})
      (i32.shr_u (i32.mul (i32.add (global.get $at) (i32.const 1)) (i32.const 0x9e3779b1)) (i32.const 9))))
  (func $fill (local $i i32) (local $x i32)
    (local.set $x (i32.mul (i32.add (global.get $at) (i32.const 77)) (i32.const 0x2545f491)))
    (loop $next
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 13))))
      (local.set $x (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 17))))
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 5))))
      (i32.store
        (i32.add (i32.mul (i32.and (global.get $at) (i32.const 7)) (i32.const {fill})) (local.get $i))
        (local.get $x))
      (local.set $i (i32.add (local.get $i) (i32.const 4)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const {fill})))))
  (func (export "rule:turn") (param $key i32)
    (if (i32.ne (i32.and (local.get $key) (i32.const {mask})) (call $key)) (then (return)))
    (if (i32.ge_u (global.get $at) (i32.const {levels})) (then (return)))
    (call $fill)
"#,
        pages = (8 * fill).div_ceil(65536),
    );
    arms(&mut wat, levels, "(global.get $at)", "nop");
    wat += "    (global.set $at (i32.add (global.get $at) (i32.const 1))))\n";
    wat += "  (func (export \"rule:pull\")\n";
    wat += "    (if (i32.ne (i32.and (global.get $at) (i32.const 7)) (i32.const 7)) (then (return)))\n";
    arms(&mut wat, levels / 8, "(i32.shr_u (global.get $at) (i32.const 3))", "unreachable");
    wat += "    ))\n";
    wat
}

/// A `br_table` with an arm for each number below `count`, in which `body` stands.
fn arms(wat: &mut String, count: u32, number: &str, body: &str) {
    write!(wat, "    (block $out {}", "(block ".repeat(count as usize)).unwrap();
    write!(wat, "(br_table").unwrap();
    for arm in 0..count {
        write!(wat, " {arm}").unwrap();
    }
    writeln!(wat, " $out {number}))").unwrap();
    for arm in 0..count {
        let end = if arm + 1 < count { ")" } else { "" };
        writeln!(wat, "      {body} (br $out){end}").unwrap();
    }
    *wat += "    )\n";
}

/// The module of the kv example, or of its variant with a bug.
pub(crate) fn kv(features: &str) -> &'static [u8] {
    static BUILT: [OnceLock<Vec<u8>>; 2] = [OnceLock::new(), OnceLock::new()];
    BUILT[usize::from(features.is_empty())].get_or_init(|| example("kv", features))
}

/// The module of an example, built as users build it.
pub(crate) fn example(name: &str, features: &str) -> Vec<u8> {
    // Tests run as processes of one time, each of which builds it.
    let place = Place::new(&format!("built-{name}{features}-{}", std::process::id()));
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    place.run(&format!("explore {} --runs 0 {features}", example.display())).passed();
    let module = place.exported(&example.display().to_string(), "exported").remove("module.wasm").unwrap();
    std::fs::remove_dir_all(place.path("")).unwrap();
    module
}
