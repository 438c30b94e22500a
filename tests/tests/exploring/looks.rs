//! Closer looks, in the second build of a guest: what they lead to, that it is the same with any number of workers, and that no guest
//! makes them take much.

use std::fmt::Write as _;
use std::sync::Arc;

use spelunk::coverage::{FeatureKind, SHOWN};
use spelunk::machine::{Limits, Program, Selection};
use spelunk::replay::{Replayed, replay};
use spelunk::search::energy::News;
use spelunk::search::{Explorer, Options};
use spelunk::target::Target;
use spelunk::trace::Trace;
use spelunk_tests::{exact, explore, known, machine, on_guest_stack, seeded};

/// A lock of 16 keys: how many were right is a number in memory, on which no branch depends but the last.
const LOCK: &str = r#"(module (memory 1)
  (data (i32.const 1024) "\17\e2\0e\a9\40\1b\c5\5d\03\bf\68\91\2c\f6\7a\34")
  (func (export "rule:turn") (param $key i32) (local $at i32) (local $next i32)
    (local.set $at (i32.load (i32.const 64)))
    (local.set $next (select (i32.add (local.get $at) (i32.const 1)) (i32.const 0)
      (i32.eq (local.get $key) (i32.load8_u offset=1024 (local.get $at)))))
    (i32.store (i32.const 64) (local.get $next))
    (if (i32.eq (local.get $next) (i32.const 16)) (then unreachable)))
  (func (export "rule:reset") (i32.store (i32.const 64) (i32.const 0))))"#;

/// Two such locks of 8 keys, which one function turns. What it stores is too large to be seen together with what the other lock has.
const TWO: &str = r#"(module (memory 1)
  (data (i32.const 1024) "\17\e2\0e\a9\40\1b\c5\5d\00")
  (func $turn (param $key i32) (param $lock i32) (local $at i32)
    (local.set $at (i32.div_u (i32.load (local.get $lock)) (i32.const 100)))
    (i32.store (local.get $lock) (i32.mul (i32.const 100)
      (select (i32.add (local.get $at) (i32.lt_u (local.get $at) (i32.const 8))) (i32.const 0)
        (i32.eq (local.get $key) (i32.load8_u offset=1024 (local.get $at)))))))
  (func (export "rule:first") (param $key i32) (call $turn (local.get $key) (i32.const 64)))
  (func (export "rule:second") (param $key i32)
    (if (i32.lt_u (i32.load (i32.const 64)) (i32.const 800)) (then (return)))
    (call $turn (local.get $key) (i32.const 128))
    (if (i32.eq (i32.load (i32.const 128)) (i32.const 800)) (then unreachable))))"#;

/// A fuzz target that wants a word, a text, and a number that is computed.
const WORDS: &str = r#"(module (memory (export "memory") 2)
  (data (i32.const 64) "spelunking")
  (func $memcmp (param $p i32) (param $q i32) (param $n i32) (result i32) (local $by i32)
    (loop $next
      (if (i32.eqz (local.get $n)) (then (return (i32.const 0))))
      (local.set $by (i32.sub (i32.load8_u (local.get $p)) (i32.load8_u (local.get $q))))
      (if (local.get $by) (then (return (local.get $by))))
      (local.set $p (i32.add (local.get $p) (i32.const 1)))
      (local.set $q (i32.add (local.get $q) (i32.const 1)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br $next))
    unreachable)
  (func (export "LLVMFuzzerTestOneInput") (param $data i32) (param $len i32) (result i32)
    (if (i32.lt_u (local.get $len) (i32.const 18)) (then (return (i32.const 0))))
    (if (i32.ne (i32.load (local.get $data)) (i32.const 0x5eed1e55)) (then (return (i32.const 0))))
    (if (call $memcmp (i32.add (local.get $data) (i32.const 4)) (i32.const 64) (i32.const 10)) (then (return (i32.const 0))))
    (if (i32.ne (i32.mul (i32.load offset=14 (local.get $data)) (i32.const 3)) (i32.const 0x12345678))
      (then (return (i32.const 0))))
    unreachable))"#;

fn program(text: &str) -> Arc<Program> {
    let wasm = wat::parse_str(text).unwrap();
    Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap())
}

/// After how many runs the failure is found, with closer looks and without; at most `max`.
fn runs(text: &str, seed: u64, max: u64) -> [u64; 2] {
    [true, false].map(|looks| {
        let (found, progress) = explore(&mut machine(&program(text)), Options { looks, ..seeded(seed) }, max);
        assert_eq!(found.is_some(), looks);
        progress.runs
    })
}

#[test]
fn they_lead_where_edges_do_not() {
    on_guest_stack(|| {
        assert_eq!(runs(LOCK, 1, 20_000), [1_264, 20_000]);
        assert!(runs(WORDS, 2, 4_000_000)[0] < 4_000_000);
    });
}

#[test]
fn what_a_small_function_does_is_told_apart_by_who_calls_it() {
    on_guest_stack(|| {
        let program = program(TWO);
        let runs = [true, false].map(|contexts| {
            let mut machine = machine(&program);
            let mut explorer = Explorer::new(&mut machine, Options { contexts, ..seeded(1) });
            explorer.explore(|progress| progress.runs < 20_000 && progress.findings == 0);
            let kinds = explorer.knowledge().features_by_kind();
            assert_eq!(kinds.contains_key(&FeatureKind::Context), contexts);
            (explorer.progress().runs, explorer.progress().findings)
        });
        assert_eq!(runs, [(1_226, 1), (20_000, 0)]);
    });
}

#[test]
fn workers_and_breaks_change_no_result() {
    on_guest_stack(|| {
        for text in [LOCK, TWO, WORDS] {
            let of = |workers, parts: &[u64]| known(&program(text), &seeded(1), workers, parts);
            let one = of(1, &[4_000]);
            assert!(one.features.iter().any(|(feature, _)| *feature >= SHOWN));
            assert!(one.checkpoints.count(News::Shown) > 0);
            let one = exact(&one);
            assert!(exact(&of(4, &[4_000])) == one, "4 workers");
            assert!(exact(&of(1, &[1, 300, 1_000, 4_000])) == one, "in parts");
            assert!(exact(&of(4, &[700, 4_000])) == one, "4 workers, in parts");
        }
    });
}

/// How many features so many runs show in closer looks.
fn shown(text: &str, runs: u64) -> usize {
    on_guest_stack(|| {
        let mut machine = machine(&program(text));
        let mut explorer = Explorer::new(&mut machine, Options { steps_max: 4, ..seeded(1) });
        explorer.explore(|progress| progress.runs < runs);
        assert_eq!(explorer.findings().count(), 0);
        let features = &explorer.knowledge().features;
        features.iter().filter(|(feature, _)| *feature >= SHOWN).count()
    })
}

/// A guest that is a rule, and one that is a fuzz target.
fn both(body: &str, rest: &str) -> [String; 2] {
    let rule = format!(
        r#"(module (memory (export "memory") 2) {rest} (func (export "rule:do") (param $x i64) (local $i i32) {body}))"#
    );
    let target = format!(
        r#"(module (memory (export "memory") 2) {rest}
          (func (export "LLVMFuzzerTestOneInput") (param $data i32) (param $len i32) (result i32) (local $i i32) (local $x i64)
            (if (local.get $len) (then (local.set $x (i64.load8_u (local.get $data)))))
            {body} (i32.const 0)))"#
    );
    [rule, target]
}

/// Comparisons and stores of ever other numbers, at thousands of places, in a loop.
#[test]
fn many_comparisons_take_little() {
    let mut body = String::from("(loop $next ");
    for place in 0..500 {
        let (factor, at) = (place * 2 + 3, 512 + place * 8);
        write!(
            body,
            "(local.set $x (i64.add (i64.mul (local.get $x) (i64.const {factor})) (i64.const 12345)))
             (drop (i64.eq (local.get $x) (i64.const {place})))
             (i64.store (i32.const {at}) (i64.rem_u (local.get $x) (i64.const 64)))"
        )
        .unwrap();
    }
    body += "(br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))";
    let [rule, target] = both(&body, "");
    assert_eq!((shown(&rule, 300), shown(&target, 3_000)), (70_891, 76_530));
}

/// Functions with the names of those that compare, given what those never are, or of other types.
#[test]
fn wild_pointers_are_not_followed() {
    let (mut rest, mut body) = (String::new(), String::new());
    for name in ["memcmp", "bcmp", "strncmp", "strncasecmp"] {
        write!(rest, "(func ${name} (param i32 i32 i32) (result i32) (i32.const 0))").unwrap();
        for (p, q, n) in [(-1, 131_071, -1), (0, 131_072, i32::MAX), (64, 64, i32::MIN), (131_060, -8, 0)] {
            write!(body, "(drop (call ${name} (i32.const {p}) (i32.const {q}) (i32.const {n})))").unwrap();
        }
    }
    rest += "(func $memmem (param i32 i32 i32 i32) (result i32) (i32.const 0))";
    rest += "(func $strstr (param i32 i32) (result i32) (i32.const 0))";
    rest += "(func $strcmp (param i64) (result i64) (local.get 0)) (func $strcoll)";
    body += "(drop (call $memmem (i32.const -4) (i32.const -1) (i32.const 131070) (i32.const -1)))";
    body += "(drop (call $strstr (i32.const 131071) (i32.const -1)))";
    body += "(drop (call $strcmp (i64.const 1))) (call $strcoll)";
    let [rule, target] = both(&body, &rest);
    assert_eq!((shown(&rule, 300), shown(&target, 3_000)), (0, 15));
}

/// A branch with as many cases as the compiler takes.
#[test]
fn many_cases_take_little() {
    let cases = "0 ".repeat(65_000);
    let body =
        format!("(block (block (br_table {cases} 1 (i32.wrap_i64 (local.get $x)))) (drop (i32.const 1)))");
    let [rule, target] = both(&body, "");
    assert_eq!((shown(&rule, 300), shown(&target, 3_000)), (0, 21));
}

/// A door that is opened by a number, and that only who finds it open may close. Each time is another edge.
const DOOR: &str = r#"(module
  (memory 1)
  (func $times (param $at i32) (local $n i32)
    (local.set $n (i32.load (local.get $at)))
    (i32.store (local.get $at) (i32.add (local.get $n) (i32.const 1)))
    (block $a (block $b (block $c (block $d (block $e
      (br_table $a $b $c $d $e (local.get $n))) (i32.store (i32.const 100) (i32.const 5))) (i32.store (i32.const 104) (i32.const 4)))
      (i32.store (i32.const 108) (i32.const 3))) (i32.store (i32.const 112) (i32.const 2))) (i32.store (i32.const 116) (i32.const 1)))
  (func (export "precondition:open") (result i32) (i32.eqz (i32.load (i32.const 0))))
  (func (export "rule:open") (param $key i32)
    (if (i32.load (i32.const 0)) (then unreachable))
    (if (i32.eq (i32.and (local.get $key) (i32.const 0xff)) (i32.const 77)) (then
      (i32.store (i32.const 0) (i32.const 1))
      (call $times (i32.const 8)))))
  (func (export "precondition:close") (result i32) (i32.load (i32.const 0)))
  (func (export "rule:close") (param $key i32)
    (if (i32.eqz (i32.load (i32.const 0))) (then unreachable))
    (if (i32.eq (i32.and (local.get $key) (i32.const 0xff)) (i32.const 99)) (then
      (i32.store (i32.const 0) (i32.const 0))
      (call $times (i32.const 16))))))"#;

#[test]
fn what_they_suggest_is_tried_where_it_may_be() {
    on_guest_stack(|| {
        for seed in 1..=10 {
            let mut machine = machine(&program(DOOR));
            let (found, _) = explore(&mut machine, seeded(seed), 3_000);
            assert!(found.is_none(), "seed {seed}: {found:#?}");
        }
    });
}

/// Were a rule called that may not be, or a state wrong, its steps would not lead there.
#[test]
fn every_checkpoint_is_reached_by_its_steps() {
    on_guest_stack(|| {
        let examples = ["kv", "priority-queue", "bank"].map(|example| spelunk_tests::program(example, &[]));
        for program in examples.into_iter().chain([program(DOOR)]) {
            let mut explored = machine(&program);
            let mut explorer = Explorer::new(&mut explored, seeded(1));
            explorer.explore(|progress| progress.runs < 2_000);
            assert!(explorer.checkpoints().len() > 2);
            let mut replaying = machine(&program);
            for checkpoint in explorer.checkpoints().iter() {
                let mut trace = Trace::default();
                checkpoint.history.flatten(&mut trace);
                let (replayed, _) = replay(&mut replaying, &trace, false);
                assert!(matches!(replayed, Replayed::Passed), "{replayed:?}");
                assert_eq!(replaying.live_state(), checkpoint.state);
            }
        }
    });
}
