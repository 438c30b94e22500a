//! What a component's exports mean by their names, and what it asks of Spelunk.

use std::sync::Arc;

use spelunk::file::{Environment, Names as _};
use spelunk::machine::{Limits, Program, Selection};
use spelunk::{budget::Budget, file::Conditions};
use spelunk_tests::{checks, first_story, on_guest_stack};

fn load(wat: &str, environment: Environment) -> anyhow::Result<Program> {
    let wasm = wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}\n{wat}"));
    let conditions = Conditions { limits: Limits::default(), selection: Selection::default(), environment };
    Program::load_in(&wasm, conditions, None, &Budget::unlimited())
}

#[track_caller]
fn finds(wat: &str, environment: Environment, expected: &str) {
    on_guest_stack(|| {
        let program = Arc::new(load(wat, environment).unwrap_or_else(|error| panic!("{error:#}")));
        let (failure, story) = first_story(&program, 1);
        assert_eq!(format!("{failure}\n{story}"), expected);
    });
}

#[track_caller]
fn refuses(wat: &str, environment: Environment, expected: &str) {
    let error = load(wat, environment).err().expect("it is refused");
    assert_eq!(format!("{error:#}"), expected);
}

/// A turnstile: coins open it, and who goes through closes it again, but where it is stuck.
const TURNSTILE: &str = r#"(component
  (import "spelunk:guest/choices@0.1.0" (instance $choices
    (export "integer" (func (param "min" s64) (param "max" s64) (result s64)))))
  (import "spelunk:guest/faults@0.1.0" (instance $faults (export "is-on" (func (param "name" string) (result bool)))))
  (import "spelunk:guest/properties@0.1.0" (instance $properties
    (export "always" (func (param "holds" bool) (param "name" string)))
    (export "observe" (func (param "number" s64) (param "name" string)))))
  (core module $Memory (memory (export "memory") 1) (data (i32.const 0) "stuckclosed"))
  (core instance $memory (instantiate $Memory))
  (core func $integer (canon lower (func $choices "integer")))
  (core func $is-on (canon lower (func $faults "is-on") (memory $memory "memory")))
  (core func $always (canon lower (func $properties "always") (memory $memory "memory")))
  (core func $observe (canon lower (func $properties "observe") (memory $memory "memory")))
  (core module $M
    (import "" "integer" (func $integer (param i64 i64) (result i64)))
    (import "" "is-on" (func $is-on (param i32 i32) (result i32)))
    (import "" "always" (func $always (param i32 i32 i32)))
    (import "" "observe" (func $observe (param i64 i32 i32)))
    (global $coins (mut i64) (i64.const 0)) (global $passed (mut i64) (i64.const 0))
    (func (export "setup") (global.set $coins (i64.const 1)))
    (func (export "pay") (global.set $coins (i64.add (global.get $coins) (call $integer (i64.const 1) (i64.const 3)))))
    (func (export "may-pass") (result i32) (i64.gt_s (global.get $coins) (global.get $passed)))
    (func (export "pass") (global.set $passed (i64.add (global.get $passed)
      (select (i64.const 2) (i64.const 1) (call $is-on (i32.const 0) (i32.const 5))))))
    (func (export "stuck") (param i32) (call $observe (i64.extend_i32_u (local.get 0)) (i32.const 0) (i32.const 5)))
    (func (export "holds") (result i32) (i64.le_s (global.get $passed) (global.get $coins)))
    (func (export "end") (call $always (i64.lt_s (global.get $passed) (i64.const 4)) (i32.const 5) (i32.const 6))))
  (core instance $m (instantiate $M (with "" (instance
    (export "integer" (func $integer)) (export "is-on" (func $is-on)) (export "always" (func $always))
    (export "observe" (func $observe))))))
  (func $setup (canon lift (core func $m "setup"))) (export "setup" (func $setup))
  (func $pay (canon lift (core func $m "pay"))) (export "pay" (func $pay))
  (func $may (result bool) (canon lift (core func $m "may-pass"))) (export "precondition-pass" (func $may))
  (func $pass (canon lift (core func $m "pass"))) (export "pass" (func $pass))
  (func $end (canon lift (core func $m "end"))) (export "teardown" (func $end))
  FAULT
  (func $holds (result bool) (canon lift (core func $m "holds"))) (export "invariant-paid" (func $holds)))"#;

const FAULT: &str = r#"(func $stuck (param "on" bool) (canon lift (core func $m "stuck"))) (export "fault-stuck" (func $stuck))"#;

#[test]
fn exports_mean_what_their_names_say_and_imports_choose_and_assert() {
    let with_fault = TURNSTILE.replace("FAULT", FAULT);
    let without_end = with_fault.replace(r#"(export "teardown" (func $end))"#, "");
    finds(&without_end, Environment::default(), "invariant paid: it does not hold\nfault stuck on\npass");
    // Without the fault that it asks for, and without asking: four that pass.
    let quiet = TURNSTILE.replace("FAULT", "").replace(
        "(select (i64.const 2) (i64.const 1) (call $is-on (i32.const 0) (i32.const 5)))",
        "(i64.const 1)",
    );
    let expected = "always closed: the condition does not hold\npay\npass\npass\npass\npass";
    finds(&quiet, Environment::default(), expected);
    let asking = TURNSTILE.replace("FAULT", "");
    finds(&asking, Environment::default(), "abi: fault `stuck`: no export `fault-stuck` declares it\npass");
}

#[test]
fn an_error_is_a_failure_where_that_is_asked_for() {
    let component = r#"(component
      (core module $M (func (export "f") (param i32) (result i32) (i32.gt_u (local.get 0) (i32.const 100))))
      (core instance $m (instantiate $M))
      (func $f (param "many" u8) (result (result)) (canon lift (core func $m "f")))
      (instance $i (export "take" (func $f)))
      (export "test:shop/till@1.2.3" (instance $i)))"#;
    let fails =
        |name: &str| Environment { errors_that_fail: vec![name.to_string()], ..Environment::default() };
    finds(component, fails("till#take"), "fail: it returned err\ntill#take many=101");
    refuses(
        component,
        fails("till#tak"),
        "the component exports no function `till#tak`, which --error-is-failure names; did you mean `till#take`?",
    );
}

/// Fails with texts of `LEN` bytes and more that begin with so many of ASCII.
const TEXTS: &str = r#"(component
  (core module $M (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (func (export "f") (param $at i32) (param $len i32) (result i32)
      (if (i32.lt_u (local.get $len) (i32.const LEN)) (then (return (i32.const 0))))
      (i32.eqz (i32.and (i32.load (local.get $at)) (i32.const MASK)))))
  (core instance $m (instantiate $M))
  (func $f (param "text" string) (result (result))
    (canon lift (core func $m "f") (memory $m "memory") (realloc (func $m "realloc"))))
  (export "f" (func $f)))"#;

/// Whether a text is one that programs trip over or is made of letters is a choice before these.
#[test]
fn a_text_that_programs_trip_over_is_shrunk_to_letters() {
    let environment = || Environment { errors_that_fail: vec!["f".to_string()], ..Environment::default() };
    on_guest_stack(|| {
        for (len, mask, expected) in [("1", "0x80", "f text=\"a\""), ("3", "0x808080", "f text=\"aaa\"")] {
            let texts = TEXTS.replace("LEN", len).replace("MASK", mask);
            let program = Arc::new(load(&texts, environment()).unwrap());
            for seed in 1..=100 {
                assert_eq!(first_story(&program, seed).1, expected, "seed {seed}");
            }
        }
    });
}

/// Three steps to a state in which none may be taken.
const STEPS: &str = r#"(component
  (core module $M (global $at (mut i32) (i32.const 0))
    (func (export "step") (global.set $at (i32.add (global.get $at) (i32.const 1))))
    (func (export "may-step") (result i32) (i32.lt_u (global.get $at) (i32.const 3)))
    (func (export "says") (result i32) (i32.const ENDS)))
  (core instance $m (instantiate $M))
  (func $step (canon lift (core func $m "step")))
  (func $may (result bool) (canon lift (core func $m "may-step")))
  (func $says (result bool) (canon lift (core func $m "says")))
  (instance $i (export "step" (func $step)) (export "precondition-step" (func $may)) OTHER)
  (export "test:steps/walk" (instance $i))
  (func $rest (canon lift (core func $m "step"))) (export "rest" (func $rest)) (export "precondition-rest" (func $may))
  (export "terminal" (func $says)))"#;

#[test]
fn a_component_says_where_a_run_may_end() {
    let of = |ends: &str| STEPS.replace("ENDS", ends).replace("OTHER", "");
    on_guest_stack(|| {
        let program = Arc::new(load(&of("1"), Environment::default()).unwrap());
        let rules: Vec<String> = program.rules().iter().map(|rule| rule.name.clone()).collect();
        assert_eq!(rules, ["walk#step", "rest"]);
        let checked = |ends: &str| {
            let program = Arc::new(load(&of(ends), Environment::default()).unwrap());
            checks::run(&program, 1, &checks::default_options(&program))
        };
        assert!(checked("1").findings.is_empty());
        let findings = checked("0").findings;
        let messages: Vec<&str> = findings.iter().map(|found| &*found.failure.message).collect();
        assert_eq!(messages, ["no rule may be called; `terminal` says that no run may end so"]);
    });
    let twice = STEPS.replace("ENDS", "1").replace("OTHER", r#"(export "terminal" (func $says))"#);
    let expected =
        "`walk#terminal` and `terminal` say the same of the component: have one of them say it for all";
    refuses(&twice, Environment::default(), expected);
}

#[test]
fn an_entry_needs_no_preconditions_of_others() {
    let entry = |name: &str| Environment { entry: Some(name.to_string()), ..Environment::default() };
    let wat = STEPS.replace("ENDS", "1").replace("OTHER", "");
    assert!(load(&wat, entry("rest")).is_ok());
    let error = load(&wat, entry("res")).err().expect("there is none").to_string();
    assert!(
        error.starts_with("the component exports no function `res`, which --entry names; it has "),
        "{error}"
    );
}

/// Two interfaces have a resource of one name.
#[test]
fn what_drops_a_resource_is_where_that_comes_from() {
    let of = |name: &str| {
        format!(
            r#"(type $r{name} (resource (rep i32)))
            (core func $new{name} (canon resource.new $r{name}))
            (core module $M{name} (import "" "new" (func $new (param i32) (result i32)))
              (func (export "make") (result i32) (call $new (i32.const 7))))
            (core instance $m{name} (instantiate $M{name} (with "" (instance (export "new" (func $new{name}))))))
            (component $C{name} (import "r" (type $r (sub resource)))
              (import "make" (func $make (result (own $r))))
              (export $out "r" (type $r))
              (export "[constructor]r" (func $make) (func (result (own $out)))))
            (func $make{name} (result (own $r{name})) (canon lift (core func $m{name} "make")))
            (instance $i{name} (instantiate $C{name} (with "r" (type $r{name})) (with "make" (func $make{name}))))
            (export "test:two/{name}" (instance $i{name}))"#
        )
    };
    on_guest_stack(|| {
        let wat = format!("(component {} {})", of("a"), of("b"));
        let program = load(&wat, Environment::default()).unwrap();
        let rules: Vec<&str> = program.rules().iter().map(|rule| &*rule.name).collect();
        assert_eq!(rules, ["a#r.new", "b#r.new", "a#r.drop", "b#r.drop"]);
    });
}

#[test]
fn what_its_names_do_not_say_is_refused() {
    let with = |import: &str, export: &str| {
        format!(
            r#"(component {import}
            (core module $M (func (export "f")) (func (export "g") (param i32) (result i32) (local.get 0)))
            (core instance $m (instantiate $M)) {export})"#
        )
    };
    let plain = r#"(func $f (canon lift (core func $m "f"))) (export "f" (func $f))"#;
    let wrong =
        r#"(func $g (param "a" u32) (result u32) (canon lift (core func $m "g"))) (export "NAME" (func $g))"#;
    let none = Environment::default;
    for (name, must) in [
        ("invariant-a", "`func() -> bool`, `func() -> result<_, string>` or `func()`"),
        ("precondition-f", "`func() -> bool`"),
        ("fault-a", "`func(on: bool)`"),
        ("setup", "`func()`"),
    ] {
        let expected = format!("`{name}` has another type than its name says; it must be {must}");
        refuses(&with("", &wrong.replace("NAME", name)), none(), &expected);
    }
    let guard =
        r#"(func $g (result bool) (canon lift (core func $m "h"))) (export "precondition-other" (func $g))"#;
    let component = with("", &format!("{plain} {guard}")).replace(
        "(func (export \"f\"))",
        "(func (export \"f\")) (func (export \"h\") (result i32) (i32.const 1))",
    );
    refuses(
        &component,
        none(),
        "`precondition-other` is the precondition of a rule `other`, which the component does not export",
    );
}

#[test]
fn imports_that_are_not_there_are_refused_with_their_types() {
    let none = Environment::default;
    let plain = r#"(func $f (canon lift (core func $m "f"))) (export "f" (func $f))"#;
    let import = |interface: &str, (name, ty, core): (&str, &str, &str)| {
        format!(
            r#"(component
            (import "{interface}" (instance $i (export "{name}" (func {ty}))))
            (core module $Memory (memory (export "memory") 1)
              (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0)))
            (core instance $memory (instantiate $Memory))
            (core func $lowered (canon lower (func $i "{name}") (memory $memory "memory") (realloc (func $memory "realloc"))))
            (core module $M (import "" "lowered" (func {core})) (func (export "f")))
            (core instance $m (instantiate $M (with "" (instance (export "lowered" (func $lowered)))))) {plain})"#
        )
    };
    let choices = "spelunk:guest/choices@0.1.0";
    let boolean = ("boolean", r#"(param "probability" f32) (result bool)"#, "(param f32) (result i32)");
    refuses(
        &import(choices, boolean),
        none(),
        "the component imports `spelunk:guest/choices@0.1.0#boolean` as `func(probability: f32) -> bool`; it is \
         `func(probability: f64) -> bool`",
    );
    refuses(
        &import(choices, ("dice", "(result bool)", "(result i32)")),
        none(),
        "the component imports `spelunk:guest/choices@0.1.0#dice`, and `spelunk:guest` has nothing of that name",
    );
    let pay = ("pay", r#"(param "sum" u64) (result (result u32 (error string)))"#, "(param i64 i32)");
    let error = load(&import("test:shop/bank@0.1.0", pay), none()).err().expect("nobody provides it");
    let line = "\n  `test:shop/bank@0.1.0#pay`, `func(sum: u64) -> result<u32, string>`";
    assert!(format!("{error:#}").contains(line), "{error:#}");
}

/// What componentize-py calls when it makes a component stays exported, and fails where it is called again.
#[test]
fn what_a_toolchain_left_there_is_no_rule() {
    let component = r#"(component
      (core module $M (func (export "init") (param i32 i32 i32)) (func (export "f")))
      (core instance $m (instantiate $M))
      (func $init (param "app-name" u32) (param "symbols" u32) (param "stub-wasi" bool) (canon lift (core func $m "init")))
      (instance $i (export "init" (func $init)))
      (export "exports" (instance $i))
      (func $f (canon lift (core func $m "f"))) OTHER)"#;
    let rules = |other: &str| {
        let program = load(&component.replace("OTHER", other), Environment::default());
        program.unwrap_or_else(|error| panic!("{error:#}")).listing().rules
    };
    assert_eq!(rules(r#"(export "f" (func $f))"#), [("f".to_string(), "func()".to_string())]);
    refuses(&component.replace("OTHER", ""), Environment::default(), "the component exports no function");
}
