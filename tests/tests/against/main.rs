//! Two versions of a module are given the same calls, and what they do differently is found.

mod outside;
mod states;
mod versions;

use std::sync::Arc;

use spelunk::budget::Budget;
use spelunk::check::{Checked, Options, check};
use spelunk::file::{Against, Conditions, Ignored};
use spelunk::machine::{Limits, Program};
use spelunk::outcome::{Failure, FailureKind};
use spelunk::story;
use spelunk::trace::Action;
use spelunk_tests::{explore, first_story, found_either_way, machine, on_guest_stack, seeded};

/// A module with what it is compared with, of which this is not compared.
fn pair_of(one: &str, other: &str, ignored: &[&str], conditions: Conditions) -> anyhow::Result<Arc<Program>> {
    let [one, other] = [one, other].map(|text| wat::parse_str(format!("(module {text})")).unwrap());
    let ignored = ignored.iter().map(|name| Ignored::named(name)).collect();
    let wasm = Against { wasm: other, ignored }.put_into(&one)?;
    Ok(Arc::new(Program::load_in(&wasm, conditions, None, &Budget::unlimited())?))
}

fn pair(one: &str, other: &str, ignored: &[&str]) -> Arc<Program> {
    let program = pair_of(one, other, ignored, Conditions::default());
    program.unwrap_or_else(|error| panic!("{error:#}"))
}

/// What the first finding says, where it is, and its steps; the same with and without snapshots.
fn first(program: &Arc<Program>) -> String {
    on_guest_stack(|| {
        if program.obstacles().is_empty() {
            found_either_way(program, 1000);
        }
        let (failure, story) = first_story(program, 1);
        assert_eq!(failure.kind, FailureKind::Difference);
        format!("{} @ {}\n{story}", failure.message, failure.place.unwrap_or_default())
    })
}

#[track_caller]
fn finds(program: &Arc<Program>, expected: &str) {
    assert_eq!(first(program), expected);
}

#[track_caller]
fn finds_nothing(program: &Arc<Program>, runs: u64) {
    on_guest_stack(|| {
        let (found, progress) = explore(&mut machine(program), seeded(1), runs);
        assert_eq!((found, progress.runs), (None, runs));
    });
}

/// A check of both, breadth-first, of paths of so many steps.
fn checked(program: &Arc<Program>, steps: Option<u32>) -> Checked {
    on_guest_stack(|| {
        let options = Options { steps_max: steps, ..Options::default() };
        let machines = &mut [machine(program), machine(program)];
        check(machines, &options, &|_| None, &mut |_, _| ()).unwrap()
    })
}

/// A stack of which only the size is known, and that forgets it after so many.
fn stack(wrong: &str) -> String {
    format!(
        r#"(memory 1) (global $n (mut i32) (i32.const 0))
          (func (export "push") (global.set $n (i32.add (global.get $n) (i32.const 1))))
          (func (export "clear") (global.set $n (i32.const 0)))
          (func (export "size") (result i32) (if (result i32) {wrong} (then (i32.const 7)) (else (global.get $n))))"#
    )
}

const NEVER: &str = "(i32.const 0)";
const AT_TWO: &str = "(i32.eq (global.get $n) (i32.const 2))";

#[test]
fn the_calls_are_as_few_as_show_a_difference() {
    let (right, wrong) = (stack(NEVER), stack(AT_TWO));
    let steps = "\npush\npush\nsize";
    finds(
        &pair(&right, &wrong, &[]),
        &format!("`size` returns 2, and against it 7 @ the result of size{steps}"),
    );
    finds(
        &pair(&wrong, &right, &[]),
        &format!("`size` returns 7, and against it 2 @ the result of size{steps}"),
    );
    let program = pair(&right, &wrong, &[]);
    let found = checked(&program, Some(5)).findings;
    let lengths: Vec<_> = found.iter().map(|found| (&*found.failure.message, found.trace.len())).collect();
    assert_eq!(lengths, [("`size` returns 2, and against it 7", 3)]);
    assert_eq!(checked(&program, Some(2)).findings, []);
}

#[test]
fn a_module_does_what_it_does_itself() {
    let same = stack(AT_TWO);
    finds_nothing(&pair(&same, &same, &[]), 100_000);
    // Of as many states as it has by itself.
    let bounded = same.replace(
        "(func (export \"push\") ",
        "(func (export \"push\") (if (i32.ge_u (global.get $n) (i32.const 3)) (then (return)))",
    );
    let checked = checked(&pair(&bounded, &bounded, &[]), None);
    assert_eq!((checked.findings.len(), checked.limit, checked.census.states), (0, None, 4));
}

/// What a story notes below its last step.
fn notes(program: &Arc<Program>) -> Vec<String> {
    on_guest_stack(|| {
        let mut machine = machine(program);
        let (found, _) = explore(&mut machine, seeded(1), 1000);
        let mut story = story::tell(&mut machine, &found.unwrap().trace);
        story.pop().unwrap().told.notes
    })
}

#[test]
fn the_story_shows_what_both_return() {
    let notes = notes(&pair(&stack(NEVER), &stack(AT_TWO), &[]));
    assert_eq!(notes, ["returns 2", "against: returns 7"]);
}

/// A rule `f` that does this, of a module with this.
fn rule(ty: &str, body: &str) -> String {
    format!(r#"(memory (export "memory") 1) (func (export "f") {ty} {body}) (func (export "g"))"#)
}

#[track_caller]
fn results(ty: &str, one: &str, other: &str, expected: Option<&str>) {
    let program = pair(&rule(ty, one), &rule(ty, other), &[]);
    match expected {
        Some(expected) => finds(&program, &format!("`f` {expected} @ the result of f\nf")),
        None => finds_nothing(&program, 200),
    }
}

#[test]
fn numbers_are_compared_by_their_bits_and_every_nan_is_the_same() {
    let f64 = "(result f64)";
    results(f64, "(f64.const 0)", "(f64.const -0)", Some("returns 0.0, and against it -0.0"));
    results(f64, "(f64.const nan)", "(f64.const -nan:0x8000000000001)", None);
    results(f64, "(f64.const nan)", "(f64.const 1)", Some("returns NaN, and against it 1.0"));
    let two = "(result i32 i64)";
    let expected = Some("returns (1, 2), and against it (1, 3)");
    results(two, "(i32.const 1) (i64.const 2)", "(i32.const 1) (i64.const 3)", expected);
    let funcref = "(result funcref)";
    results(funcref, "(ref.null func)", "(ref.null func)", None);
    let (null, some) = (rule(funcref, "(ref.null func)"), rule(funcref, "(ref.func 0)"));
    finds(&pair(&null, &some, &[]), "`f` returns null, and against it a reference @ the result of f\nf");
    finds_nothing(&pair(&null, &some, &["f"]), 200);
}

#[test]
fn one_failure_is_a_difference_and_two_that_are_alike_are_none() {
    let divide = |by: i32| rule("(result i32)", &format!("(i32.div_s (i32.const 6) (i32.const {by}))"));
    let (two, zero) = (divide(2), divide(0));
    let trap = "fails (trap: integer divide by zero)";
    finds(&pair(&zero, &two, &[]), &format!("`f` {trap}, and against it returns 3 @ f+0x5\nf"));
    finds(
        &pair(&two, &zero, &[]),
        &format!("`f` returns 3, and against it {trap} @ f+0x5 of the module against it\nf"),
    );
    let unreachable = rule("(result i32)", "unreachable");
    let other = "fails (trap: wasm `unreachable` instruction executed)";
    finds(&pair(&zero, &unreachable, &[]), &format!("`f` {trap}, and against it {other} @ f+0x5\nf"));
    // Wherever it is.
    let later = zero.replace("(i32.div_s", "(nop) (i32.div_s");
    finds_nothing(&pair(&zero, &later, &[]), 200);
    finds_nothing(&pair(&zero, &unreachable, &["messages"]), 200);
    let forever = rule("(result i32)", "(loop (br 0)) unreachable");
    let limits = Limits { step_budget: 4, ..Limits::default() };
    let limited = |one: &str, other: &str| {
        pair_of(one, other, &[], Conditions { limits, ..Conditions::default() }).unwrap()
    };
    finds_nothing(&limited(&forever, &forever.replace("(loop", "(nop) (loop")), 200);
    let hang = "fails (hang: the step did not end within its budget (--step-budget), in f+0x1)";
    finds(
        &limited(&two, &forever),
        &format!("`f` returns 3, and against it {hang} @ f of the module against it\nf"),
    );
    // A check ends such a path there.
    let checked = checked(&pair(&zero, &later, &[]), None);
    assert_eq!((checked.findings.len(), checked.limit), (0, None));
}

#[test]
fn messages_count_without_their_numbers() {
    let fails = |text: &str| {
        let import = r#"(import "spelunk" "fail" (func $fail (param i32 i32)))"#;
        format!(
            r#"{import} (memory 1) (data (i32.const 0) "{text}") (func (export "f") (call $fail (i32.const 0) (i32.const 6)))"#
        )
    };
    finds_nothing(&pair(&fails("late 7"), &fails("late 9"), &[]), 200);
    let found = first(&pair(&fails("late 7"), &fails("soon 7"), &[]));
    assert_eq!(
        found.lines().next().unwrap(),
        "`f` fails (fail: late 7), and against it fails (fail: soon 7) @ f+0x5"
    );
}

#[test]
fn invariants_and_preconditions_are_held_of_both() {
    let with = |more: &str| {
        format!(
            r#"(global $n (mut i32) (i32.const 0))
      (func (export "rule:a") (global.set $n (i32.add (global.get $n) (i32.const 1)))) (func (export "rule:b")) {more}"#
        )
    };
    let invariant = |below: u32| {
        with(&format!(
            r#"(func (export "invariant:low") (result i32) (i32.lt_u (global.get $n) (i32.const {below})))"#
        ))
    };
    finds(
        &pair(&invariant(2), &invariant(3), &[]),
        "`a` fails (invariant low: it does not hold), and against it returns @ the result of a\na\na",
    );
    let precondition = |at: u32| {
        with(&format!(
            r#"(func (export "precondition:b") (result i32) (i32.ge_u (global.get $n) (i32.const {at})))"#
        ))
    };
    let found = first(&pair(&precondition(1), &precondition(2), &[]));
    let lines: Vec<&str> = found.lines().collect();
    let expected = "`b` may be called, and against it may not be called @ whether b may be called";
    assert_eq!(lines[..2], [expected, "a"]);
    finds_nothing(&pair(&precondition(1), &precondition(1), &[]), 1000);
    let traps = precondition(2)
        .replace("(i32.ge_u", "(call 0) (i32.ge_u")
        .replace("(func (export \"rule:b\"))", "(func (export \"rule:b\") unreachable)");
    finds_nothing(&pair(&traps, &traps, &[]), 1000);
    let fails = precondition(1)
        .replace("(i32.ge_u", "(if (i32.eq (global.get $n) (i32.const 1)) (then unreachable)) (i32.ge_u");
    let found = first(&pair(&precondition(2), &fails, &[]));
    let expected =
        "no precondition fails, and against it one does (trap: wasm `unreachable` instruction executed)";
    assert!(found.starts_with(expected), "{found}");
    finds_nothing(&pair(&fails, &fails, &[]), 1000);
}

#[test]
fn both_are_asked_the_same_and_answered_the_same() {
    let asks = |text: &str| {
        format!(
            r#"(import "spelunk" "index" (func $index (param i32) (result i32)))
          (import "spelunk" "reject" (func $reject))
          (func (export "f") (param i32) (result i32) {text})"#
        )
    };
    let one = asks("(call $index (i32.const 5))");
    finds_nothing(&pair(&one, &one, &[]), 2000);
    let wider = asks("(call $index (i32.const 6))");
    finds(
        &pair(&one, &wider, &[]),
        "`f` asks for an index below 5, and against it asks for an index below 6 @ the result of f\nf arg0=0",
    );
    let twice = asks("(drop (call $index (i32.const 5))) (call $index (i32.const 5))");
    let found = first(&pair(&one, &twice, &[]));
    assert!(found.starts_with("`f` returns "), "{found}");
    assert!(found.contains(", and against it asks for an index below 5 @ the result of f"), "{found}");
    let found = first(&pair(&twice, &one, &[]));
    assert!(found.starts_with("`f` asks for an index below 5, and against it returns "), "{found}");
    let rejects = asks("(call $reject) unreachable");
    finds_nothing(&pair(&rejects, &rejects, &[]), 100);
    let found = first(&pair(&rejects, &one, &[]));
    assert!(found.starts_with("`f` rejects the run, and against it asks for an index below 5 @"), "{found}");
}

#[test]
fn other_answers_of_a_check_are_no_difference() {
    let asks = |n: i32| {
        format!(
            r#"(import "spelunk" "index" (func $index (param i32) (result i32)))
          (func (export "rule:f") (result i32) (i32.mul (call $index (i32.const 3)) (call $index (i32.const {n}))))"#
        )
    };
    let checked_of = |one: i32, other: i32| {
        let checked = checked(&pair(&asks(one), &asks(other), &[]), Some(2));
        checked.findings.iter().map(|found| found.failure.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(checked_of(4, 4), [] as [&str; 0]);
    assert_eq!(checked_of(4, 5), ["`f` asks for an index below 4, and against it asks for an index below 5"]);
}

/// What is found, by its place, in so many runs.
fn places(program: &Arc<Program>, runs: u64) -> Vec<String> {
    on_guest_stack(|| {
        let mut machine = machine(program);
        let mut explorer = spelunk::search::Explorer::new(&mut machine, seeded(1));
        explorer.explore(|progress| progress.runs < runs);
        let place = |failure: &Failure| failure.place.clone().unwrap_or_default();
        let mut places: Vec<String> = explorer.findings().map(|found| place(&found.failure)).collect();
        places.sort();
        places
    })
}

#[test]
fn each_difference_is_found_once() {
    let of = |f: i32, g: i32| {
        format!(
            r#"(func (export "f") (param i32) (result i32) (i32.add (local.get 0) (i32.const {f})))
          (func (export "g") (param i32) (result i32) (i32.mul (local.get 0) (i32.const {g})))
          (func (export "h") (param i32) (result i32) (local.get 0))"#
        )
    };
    assert_eq!(places(&pair(&of(1, 2), &of(2, 3), &[]), 500), ["the result of f", "the result of g"]);
    assert_eq!(places(&pair(&of(1, 2), &of(2, 3), &["f"]), 500), ["the result of g"]);
    assert_eq!(places(&pair(&of(1, 2), &of(2, 3), &["f", "g"]), 500), [] as [&str; 0]);
}

/// The rules of both have the order of the first, and those that one has by itself can be left out.
#[test]
fn rules_are_the_same_by_their_names() {
    let one = r#"(func (export "f") (result i32) (i32.const 1)) (func (export "old") unreachable)
      (func (export "g") (result i32) (i32.const 2))"#;
    let other = r#"(func (export "new") unreachable) (func (export "g") (result i32) (i32.const 2))
      (func (export "f") (result i32) (i32.const 1))"#;
    let program = pair(one, other, &["old", "rule:new"]);
    finds_nothing(&program, 1000);
    let names: Vec<_> = spelunk::file::Names::rules(&*program).iter().map(|rule| rule.name.clone()).collect();
    assert_eq!(names, ["f", "g"]);
    let action = |name: &str| Action::Rule(names.iter().position(|known| known == name).unwrap() as u16);
    assert_eq!((action("f"), action("g")), (Action::Rule(0), Action::Rule(1)));
}

#[track_caller]
fn refuses(one: &str, other: &str, ignored: &[&str], expected: &str) {
    let error = pair_of(one, other, ignored, Conditions::default()).err().expect("they differ");
    assert_eq!(format!("{error:#}"), expected);
}

#[test]
fn modules_that_cannot_be_given_the_same_calls_are_refused() {
    let one = r#"(func (export "rule:a") (param i32) (result i32) (i32.const 1)) (func (export "rule:b"))
      (func (export "rule:c")) (func (export "setup")) (func (export "fault:f") (param i32))"#;
    let other = r#"(func (export "rule:a") (param i64) (result i32) (i32.const 1)) (func (export "rule:b"))
      (func (export "rule:d")) (func (export "invariant:i")) (func (export "precondition:b") (result i32) (i32.const 1))
      (func (export "_initialize"))"#;
    let all = "the modules cannot be given the same calls:
  fault `f` is in the target alone
  rule `a` is (i32) -> i32 in the target, and (i64) -> i32 in the other
  rule `c` is in the target alone
  setup is in the target alone
  invariant `i` is in the other alone
  precondition `b` is in the other alone
  rule `d` is in the other alone
let both export the same, or leave rules out that only one has, with --ignore NAME";
    refuses(one, other, &[], all);
    let (a, b) = (r#"(func (export "rule:a"))"#, r#"(func (export "rule:b"))"#);
    refuses(a, b, &["a", "b"], "no rule is left that both modules have");
    refuses(a, a, &["c"], "--ignore names the rule `c`, which neither module has; did you mean `a`?");
    let near = "--ignore names the rule `stdot`, which neither module has; did you mean `stdout`?";
    refuses(a, a, &["stdot"], near);
    let none = "--ignore names the import `log`, which neither module has; there are none";
    refuses(a, a, &["import:log"], none);
    let check = r#"(func (export "check"))"#;
    let plain = r#"(func (export "check") (param i32))"#;
    let kinds = "the modules cannot be given the same calls:
  rule `check` is all of the module, () -> (), in the target, and (i32) -> () in the other
let both export the same, or leave rules out that only one has, with --ignore NAME";
    refuses(check, plain, &[], kinds);
    refuses(
        a,
        "",
        &[],
        "the module that the target is compared with cannot be explored: the module exports no rule: export a \
        function `rule:NAME`, or any function whose parameters are numbers",
    );
}
