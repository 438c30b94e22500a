//! A module that knows nothing of Spelunk is explored by another one, which it is linked with.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spelunk::check::{Options, check};
use spelunk::choice::Chooser;
use spelunk::file::{Conditions, Environment, HostFault, Parts};
use spelunk::load::{Build, load};
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::outcome::Outcome;
use spelunk::target::Target;
use spelunk::trace::Action;
use spelunk_tests::{check_replays, explore, first_story, machine, on_guest_stack, seeded, tools};

/// A target and a harness in text, as one module.
fn linked(target: &str, harness: &str) -> anyhow::Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let (target_path, harness_path) = (folder.path().join("target.wat"), folder.path().join("harness.wat"));
    fs::write(&target_path, format!("(module {target})"))?;
    fs::write(&harness_path, format!("(module {harness})"))?;
    let build = Build { link: Some(&harness_path), ..Build::default() };
    load(&target_path, &build, &mut |_, _| {})
}

fn program(target: &str, harness: &str) -> Arc<Program> {
    let wasm = linked(target, harness).unwrap_or_else(|error| panic!("{error:#}"));
    let program = Program::load(&wasm, Limits::default(), Selection::default());
    Arc::new(program.unwrap_or_else(|error| panic!("{error:#}")))
}

/// The names of the rules.
fn rules(machine: &Machine) -> Vec<String> {
    machine.rules().iter().map(|rule| rule.name.clone()).collect()
}

/// What each of the steps comes to, from the start: setup and rules by their names.
fn run(target: &str, harness: &str, steps: &[&str]) -> Vec<String> {
    on_guest_stack(|| {
        let mut machine = machine(&program(target, harness));
        let rules = rules(&machine);
        machine.reset();
        let step = |name: &&str| {
            let action = match rules.iter().position(|rule| rule == name) {
                Some(rule) => Action::Rule(rule as u16),
                None => Action::Setup,
            };
            match machine.step(action, &mut Chooser::default()) {
                Outcome::Pass => "passes".to_string(),
                Outcome::Fail(failure) => failure.to_string(),
                other => format!("{other:?}"),
            }
        };
        steps.iter().map(step).collect()
    })
}

/// A sum that does not hold negative numbers, and says so by a trap.
const SUM: &str = r#"(memory (export "memory") 1) (global $sum (mut i32) (i32.const 0))
  (func (export "add") (param i32) (result i32)
    (global.set $sum (i32.add (global.get $sum) (local.get 0)))
    (if (i32.lt_s (global.get $sum) (i32.const 0)) (then (call $negative)))
    (global.get $sum))
  (func $negative unreachable) (func (export "rule:reset")) (func (export "setup") unreachable)
  (func (export "_start") unreachable) (func (export "main") (result i32) unreachable)"#;

#[test]
fn a_harness_calls_what_the_target_exports() {
    on_guest_stack(|| {
        let harness = r#"(import "target" "add" (func $add (param i32) (result i32)))
          (func (export "rule:add") (param i32) (drop (call $add (i32.and (local.get 0) (i32.const 0xff)))))
          (func (export "rule:sub") (drop (call $add (i32.const -1))))"#;
        let program = program(SUM, harness);
        // What the target exports is no rule, and none of it is called by itself.
        assert_eq!(rules(&machine(&program)), ["add", "sub"]);
        let (failure, story) = first_story(&program, 1);
        assert_eq!(format!("{failure}\n{story}"), "trap: wasm `unreachable` instruction executed\nsub");
        assert_eq!(failure.place.as_deref(), Some("negative+0x1"));
    });
}

/// Each of them adds a digit.
#[test]
fn the_target_starts_before_the_harness() {
    let note = "(func $note (param i32) (global.set 0 (i32.add (i32.mul (global.get 0) (i32.const 10)) (local.get 0))))";
    let target = format!(
        r#"(global (export "order") (mut i32) (i32.const 0)) {note}
          (func $start (call $note (i32.const 1))) (start $start)
          (func (export "_initialize") (call $note (i32.const 2)))
          (func (export "__wasm_call_ctors") (call $note (i32.const 9))) (func (export "_start") unreachable)"#
    );
    let harness = |initializes: &str| {
        format!(
            r#"(import "target" "order" (global (mut i32))) {note}
              (func $start (call $note (i32.const 3))) (start $start) {initializes}
              (func (export "setup") (call $note (i32.const 5)))
              (func (export "rule:check") (if (i32.ne (global.get 0) (i32.const ORDER)) (then unreachable)))"#
        )
    };
    let both =
        harness(r#"(func (export "_initialize") (call $note (i32.const 4)))"#).replace("ORDER", "12345");
    assert_eq!(run(&target, &both, &["setup", "check"]), ["passes", "passes"]);
    let one = harness("").replace("ORDER", "1235");
    assert_eq!(run(&target, &one, &["setup", "check"]), ["passes", "passes"]);
    let constructed = target.replace("_initialize", "other");
    let order = harness("").replace("ORDER", "1935");
    assert_eq!(run(&constructed, &order, &["setup", "check"]), ["passes", "passes"]);
}

/// An allocator that takes what lies behind the end of memory for its own, as some do, and fills it.
const GREEDY: &str = r#"(memory (export "memory") 1 40)
  (func (export "take") (param $pages i32) (result i32) (local $end i32)
    (local.set $end (i32.shl (memory.size) (i32.const 16)))
    (if (i32.eq (memory.grow (local.get $pages)) (i32.const -1)) (then (return (i32.const 0))))
    (memory.fill (local.get $end) (i32.const 0xff) (i32.sub (i32.shl (memory.size) (i32.const 16)) (local.get $end)))
    (i32.const 1))"#;
/// A harness from the fourth page on, with a stack in front of its variables.
const BEHIND: &str = r#"(import "target" "take" (func $take (param i32) (result i32))) (import "env" "memory" (memory 4))
  (global $__stack_pointer (mut i32) (i32.const 4096))
  (data (i32.const 196608) "kept")
  (func (export "rule:take") (if (i32.eqz (call $take (i32.const 1))) (then unreachable)))
  (func (export "rule:push") (local $at i32)
    (local.set $at (i32.sub (global.get $__stack_pointer) (i32.const 4096)))
    (if (i32.ne (local.get $at) (i32.const 262144)) (then unreachable))
    (memory.fill (local.get $at) (i32.const 1) (i32.const 4096)))
  (func (export "invariant:kept") (result i32)
    (i32.and (i32.eq (i32.load (i32.const 196608)) (i32.const 0x7470656b)) (i32.eqz (i32.load (i32.const 65532)))))"#;

#[test]
fn the_targets_memory_ends_where_the_harness_begins() {
    let full = "trap: wasm `unreachable` instruction executed";
    let steps = ["push", "take", "take", "push", "take"];
    assert_eq!(run(GREEDY, BEHIND, &steps), ["passes", "passes", "passes", "passes", full]);
    // The target's own maximum counts too.
    let bounded = GREEDY.replace("1 40", "1 2");
    assert_eq!(run(&bounded, BEHIND, &["take", "push", "take"]), ["passes", "passes", full]);
    // Emscripten's modules ask the host.
    let resized = r#"(import "env" "emscripten_resize_heap" (func $resize (param i32) (result i32)))
      (memory (export "memory") 1) (global $end (mut i32) (i32.const 65536))
      (func (export "take") (param $pages i32) (result i32)
        (if (i32.eqz (call $resize (i32.add (global.get $end) (i32.const 1)))) (then (return (i32.const 0))))
        (memory.fill (global.get $end) (i32.const 0xff) (i32.const 65536))
        (global.set $end (i32.add (global.get $end) (i32.const 65536)))
        (i32.eq (memory.size) (i32.shr_u (global.get $end) (i32.const 16))))"#;
    assert_eq!(run(resized, BEHIND, &steps), ["passes", "passes", "passes", "passes", full]);
}

#[test]
fn a_memory_that_does_not_grow_does_not_grow_for_the_target() {
    on_guest_stack(|| {
        let wasm = linked(GREEDY, BEHIND).unwrap();
        let environment = Environment { faults: vec![HostFault::MemoryGrow], ..Environment::default() };
        let conditions =
            Conditions { limits: Limits::default(), selection: Selection::default(), environment };
        let program = Arc::new(Program::load_in(&wasm, conditions, None, &Default::default()).unwrap());
        let (failure, story) = first_story(&program, 1);
        assert_eq!(failure.to_string(), "trap: wasm `unreachable` instruction executed");
        // Without that fault it takes three calls.
        assert_eq!((story.lines().count(), story.starts_with("take")), (1, true), "{story}");
    });
}

#[test]
fn functions_are_called_back_through_the_targets_table() {
    let target = r#"(table (export "__indirect_function_table") 2 2 funcref) (type $f (func (result i32)))
      (func $one (result i32) (i32.const 1)) (elem (i32.const 1) $one)
      (func (export "call") (param i32) (result i32) (call_indirect (type $f) (local.get 0)))"#;
    let harness = r#"(import "env" "__indirect_function_table" (table 1 funcref))
      (import "env" "call" (func $call (param i32) (result i32)))
      (func $two (result i32) (i32.const 2)) (elem (i32.const 2) $two) (table $own 1 1 funcref)
      (elem (table $own) (i32.const 0) func $check) (type $n (func (param i32 i32)))
      (func $check (param i32 i32)
        (block $wrong (block $right (br_table $wrong $right $wrong (i32.eq (call $call (local.get 0)) (local.get 1)))) (return))
        unreachable)
      (func (export "rule:one") (call_indirect $own (type $n) (i32.const 1) (i32.const 1) (i32.const 0)))
      (func (export "rule:two") (call_indirect $own (type $n) (i32.const 2) (i32.const 2) (i32.const 0)))
      (func (export "rule:wrong") (call $check (i32.const 2) (i32.const 1)))"#;
    let wrong = "trap: wasm `unreachable` instruction executed";
    assert_eq!(run(target, harness, &["one", "two", "wrong"]), ["passes", "passes", wrong]);
}

/// Imports that the target does not answer are those of any module, and names mean the target's first.
#[test]
fn what_the_target_does_not_export_stays_an_import() {
    let target = r#"(import "env" "seed" (func $seed (result f64))) (func (export "abort") (param i32 i32 i32 i32))
      (func (export "value") (result i32) (f64.ge (call $seed) (f64.const 0)))"#;
    let harness = r#"(import "env" "abort" (func $abort (param i32 i32 i32 i32)))
      (import "env" "seed" (func $seed (result f64))) (import "spelunk" "index" (func $index (param i32) (result i32)))
      (import "target" "value" (func $value (result i32)))
      (func (export "rule:a") (call $abort (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
        (drop (call $seed)) (drop (call $index (i32.const 3))) (drop (call $value)))"#;
    assert_eq!(run(target, harness, &["a"]), ["passes"]);
    let error = |harness: &str| {
        let wasm = linked(target, harness).unwrap();
        let error = Program::load(&wasm, Limits::default(), Selection::default()).err().unwrap();
        format!("{error:#}").lines().nth(1).map(str::to_string)
    };
    let expected = "  `typo` from `env`, a function () -> ()";
    assert_eq!(error(r#"(import "env" "typo" (func)) (func (export "rule:a"))"#).as_deref(), Some(expected));
}

/// Objects and exceptions are the target's own affair.
#[test]
fn a_target_may_have_what_a_harness_may_not() {
    let target = r#"(type $box (struct (field i32))) (tag $e (param i32)) (memory (export "memory") 1)
      (func (export "caught") (param i32) (result i32)
        (struct.get $box 0 (struct.new $box (block $l (result i32)
          (try_table (catch $e $l) (throw $e (local.get 0))) unreachable))))"#;
    let harness = r#"(import "target" "caught" (func $caught (param i32) (result i32)))
      (func (export "rule:a") (if (i32.ne (call $caught (i32.const 7)) (i32.const 7)) (then unreachable)))"#;
    assert_eq!(run(target, harness, &["a"]), ["passes"]);
}

#[test]
fn one_state_has_one_snapshot_and_a_check_ends() {
    on_guest_stack(|| {
        let harness = r#"(import "target" "add" (func $add (param i32) (result i32))) (import "target" "memory" (memory 1))
          (import "spelunk" "index" (func $index (param i32) (result i32)))
          (func (export "rule:add")
            (i32.store (i32.const 64) (call $add (i32.const 1)))
            (if (i32.gt_u (i32.load (i32.const 64)) (i32.const 4)) (then unreachable)))"#;
        let machines = &mut [machine(&program(SUM, harness))];
        let checked = check(machines, &Options::default(), &|_| None, &mut |_, _| ()).unwrap();
        assert_eq!((checked.findings.len(), checked.census.states), (1, 5));
        assert_eq!(checked.findings[0].trace.steps().len(), 5);
    });
}

/// Functions of both that have no name are told apart.
#[test]
fn a_place_in_the_harness_is_called_so() {
    on_guest_stack(|| {
        let target = r#"(func (param i32) (if (local.get 0) (then unreachable))) (func (export "f") (call 0 (i32.const 1)))"#;
        let harness = r#"(import "target" "f" (func)) (func (param i32) (if (local.get 0) (then unreachable)))
          (func (export "rule:a") (call 1 (i32.const 1)) (call 0))"#;
        let place = |harness: &str| first_story(&program(target, harness), 1).0.place.unwrap();
        assert_eq!(place(harness), "harness func[1]+0x5");
        assert_eq!(place(&harness.replace("(call 1 (i32.const 1))", "")), "func[0]+0x5");
    });
}

#[test]
fn what_is_said_to_spelunk_comes_from_both() {
    let target = r#"(func (export "f")) (@custom "spelunk:properties" "sometimes of the target")"#;
    let harness = r#"(import "target" "f" (func $f)) (func (export "rule:a") (call $f))
      (@custom "spelunk:properties" "sometimes of the harness")"#;
    let declared = program(target, harness).declared();
    let mut names: Vec<&str> = declared.properties.iter().map(|property| &*property.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["of the harness", "of the target"]);
}

#[test]
fn the_same_files_give_the_same_module_which_holds_both() {
    let harness = r#"(import "target" "add" (func $add (param i32) (result i32)))
      (func (export "rule:add") (drop (call $add (i32.const 1))))"#;
    let wasm = linked(SUM, harness).unwrap();
    assert_eq!(linked(SUM, harness).unwrap(), wasm);
    let (parts, _) = Parts::take_from(&wasm).unwrap();
    assert_eq!(parts.unwrap().target, wat::parse_str(format!("(module {SUM})")).unwrap());
}

#[test]
fn what_is_no_harness_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        fs::write(folder.path().join(name), bytes).unwrap();
        folder.path().join(name)
    };
    let refuses = |target: &Path, harness: &Path, expected: &str| {
        let build = Build { link: Some(harness), ..Build::default() };
        let error = format!("{:#}", load(target, &build, &mut |_, _| {}).unwrap_err());
        assert_eq!(error.replace(&*folder.path().to_string_lossy(), "."), expected);
    };
    let target = file("t.wat", br#"(module (func (export "f")))"#);
    let harness = file("h.wat", br#"(module (import "target" "f" (func)) (func (export "rule:a")))"#);
    let plain = file("p.wat", br#"(module (import "target" "f" (func)) (func (export "setup")))"#);
    refuses(
        &target,
        &plain,
        "with the harness `./p.wat`: the harness exports no rule; export a function `rule:NAME` or `rule_NAME`, `check` or \
         `LLVMFuzzerTestOneInput`",
    );
    let trace = file("trace.json", b"{}");
    refuses(
        &target,
        &trace,
        "with the harness `./trace.json`: the harness cannot be linked: not a WebAssembly module: a module begins with the \
         bytes 00 61 73 6d, this with 7b 7d",
    );
    refuses(&target, folder.path(), "--link takes a module, a .wasm or a .wat, and `.` is a folder");
    let build = Build { link: Some(&harness), ..Build::default() };
    let both = file("both.wasm", &load(&target, &build, &mut |_, _| {}).unwrap());
    refuses(&both, &harness, "the target was linked with a harness already; give the original");
    refuses(&target, &both, "the harness was linked with a harness already; give the original");
    let typo = file("typo.wat", br#"(module (import "target" "ff" (func)) (func (export "rule:a")))"#);
    refuses(
        &target,
        &typo,
        "with the harness `./typo.wat`: the harness imports `ff` from `target`, which exports nothing of that name; did you \
         mean `f`?",
    );
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/bank");
    let build = Build { link: Some(&harness), ..Build::default() };
    let error = load(&package, &build, &mut |_, _| {}).unwrap_err().to_string();
    assert!(error.ends_with("is a package, which has its harness in it"), "{error}");
}

/// A module of `guests/link`, compiled with these flags; none where there is no compiler, which is reported.
fn compiled(folder: &Path, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let module = folder.join(name).with_extension("wasm");
    let mut zig = tools::zig().inspect_err(tools::Missing::report).ok()?;
    zig.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    zig.args(["cc", "-O2", "-g", "-Iguest-sdk/c"]).args(flags);
    let output = zig.arg(format!("tests/guests/link/{name}")).arg("-o").arg(&module).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Some(module)
}

#[test]
fn a_library_in_c_is_explored_by_a_harness_in_c() {
    let folder = tempfile::tempdir().unwrap();
    let exports = ["open", "add", "undo", "average"].map(|name| format!("-Wl,--export=ledger_{name}"));
    let mut flags = vec!["--target=wasm32-wasi", "-mexec-model=reactor", "-Wl,-z,stack-size=65536"];
    flags.extend(exports.iter().map(String::as_str));
    let Some(target) = compiled(folder.path(), "ledger.c", &flags) else { return };
    let flags = ["--target=wasm32-freestanding", "-nostdlib", "-Wl,--no-entry", "-Wl,--import-memory"];
    let based = [&flags[..], &["-Wl,--global-base=33554432"]].concat();
    let harness = compiled(folder.path(), "harness.c", &based).unwrap();
    on_guest_stack(|| {
        let build = Build { link: Some(&harness), ..Build::default() };
        let wasm = load(&target, &build, &mut |_, _| {}).unwrap();
        let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap());
        let (failure, story) = first_story(&program, 0);
        assert_eq!(
            format!("{failure}\n{story}\n{}", failure.place.as_deref().unwrap_or_default()),
            "trap: integer divide by zero\nadd amount=0\nundo\naverage\ntests/guests/link/ledger.c:38:16"
        );
        let (found, _) = explore(&mut machine(&program), seeded(0), 1000);
        let found = found.unwrap();
        check_replays(&program, &found.trace, &found.failure);
    });
}
