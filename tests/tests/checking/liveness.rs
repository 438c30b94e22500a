//! What must come at last: fair runs without end on which it does not.

use std::sync::Arc;

use spelunk::budget::Budget;
use spelunk::check::{self, Checked, Limit, Options, Order};
use spelunk::file::{Conditions, Environment};
use spelunk::machine::{Machine, Program};
use spelunk::replay::{Replayed, replay};
use spelunk::trace::{Action, Trace};
use spelunk_tests::{check_replays, machine, on_guest_stack};

/// A module whose state is a number: `claims` are lines of the section `spelunk:properties`, `fair` of `spelunk:fairness`, and `body`
/// has the rules and an invariant.
fn guest(claims: &str, fair: &str, body: &str) -> String {
    format!(
        r#"(module
          (import "spelunk" "eventually" (func $eventually (param i32 i32 i32)))
          (import "spelunk" "always_eventually" (func $always_eventually (param i32 i32 i32)))
          (import "spelunk" "leads_to" (func $leads_to (param i32 i32 i32 i32)))
          (import "spelunk" "index" (func $index (param i32) (result i32)))
          (import "spelunk" "way" (func $way (param i64)))
          (import "spelunk" "state" (func $state (param i32 i32)))
          (import "spelunk" "reject" (func $reject))
          (memory 1) (data (i32.const 100) "it")
          (global $at (mut i32) (i32.const 0))
          (@custom "spelunk:properties" "{claims}") (@custom "spelunk:fairness" "{fair}")
          {body})"#
    )
}

/// The rule with this name leads from one number to another.
fn step(name: &str, from: u32, to: u32) -> String {
    format!(
        r#"(func (export "precondition:{name}") (result i32) (i32.eq (global.get $at) (i32.const {from})))
           (func (export "rule:{name}") (global.set $at (i32.const {to})))"#
    )
}

/// An invariant that makes the claim `it` in a way.
fn claim(call: &str) -> String {
    format!(r#"(func (export "invariant:live") {call})"#)
}

/// Whether the number is this one.
fn is(number: u32) -> String {
    format!("(i32.eq (global.get $at) (i32.const {number}))")
}

fn always_eventually(number: u32) -> String {
    claim(&format!("(call $always_eventually (i32.const 100) (i32.const 2) {})", is(number)))
}

fn loaded(wat: &str) -> anyhow::Result<Arc<Program>> {
    let environment = Environment { allows_deadlock: true, ..Environment::default() };
    let conditions = Conditions { environment, ..Conditions::default() };
    let wasm = wat::parse_str(wat).unwrap();
    Ok(Arc::new(Program::load_in(&wasm, conditions, None, &Budget::unlimited())?))
}

fn checked(program: &Arc<Program>, options: &Options) -> Checked {
    let check = |workers| {
        let mut machines: Vec<Machine> = (0..workers).map(|_| machine(program)).collect();
        check::check(&mut machines, options, &|_| None, &mut |_, _| ()).unwrap()
    };
    let one = check(1);
    assert_eq!(check(3), one);
    one
}

/// The steps of each run without end that is found, as letters: rules by the number, `(` where the loop begins, `)` where it ends.
fn loops(wat: &str) -> Vec<String> {
    let program = loaded(wat).unwrap();
    let checked = checked(&program, &Options { findings_max: 0, ..Options::default() });
    assert_eq!(checked.limit, None);
    let letter = |action: Action| match action {
        Action::Rule(rule) => rule.to_string(),
        Action::Loop => "(".to_string(),
        Action::Again(_) => ")".to_string(),
        Action::Fault(_, on) => if on { "+" } else { "-" }.to_string(),
        _ => String::new(),
    };
    let of = |found: &spelunk::outcome::Found| {
        check_replays(&program, &found.trace, &found.failure);
        found.trace.steps().iter().map(|step| letter(step.action)).collect()
    };
    checked.findings.iter().map(of).collect()
}

const ALWAYS: &str = "always-eventually it\\n";

#[test]
fn a_loop_that_is_left_in_the_end_is_none() {
    on_guest_stack(|| {
        // 0 -> 1 -> 0, and out to 2 from 1, where it stays.
        let steps = [step("a", 0, 1), step("b", 1, 0), step("c", 1, 2)].concat();
        let body = steps + &always_eventually(2);
        // `c` may be called again and again, and not always.
        assert_eq!(loops(&guest(ALWAYS, "", &body)), ["(01)"]);
        assert_eq!(loops(&guest(ALWAYS, "strong c\\n", &body)), [""; 0]);
        assert_eq!(loops(&guest(ALWAYS, "strong c\\nunfair a\\n", &body)), ["()"]);
        assert_eq!(loops(&guest(ALWAYS, "unfair a\\nunfair b\\nunfair c\\n", &body)), ["()"]);
    });
}

#[test]
fn what_is_owed_is_told_by_kind() {
    on_guest_stack(|| {
        // 0 -> 1 -> 2 -> 1.
        let steps = [step("a", 0, 1), step("b", 1, 2), step("c", 2, 1)].concat();
        let claimed = |line: &str, call: &str| loops(&guest(line, "", &format!("{steps}{}", claim(call))));
        let name = "(i32.const 100) (i32.const 2)";
        assert_eq!(claimed("eventually it\\n", &format!("(call $eventually {name} {})", is(0))), [""; 0]);
        assert_eq!(claimed("eventually it\\n", &format!("(call $eventually {name} {})", is(3))), ["0(12)"]);
        let again = |number| format!("(call $always_eventually {name} {})", is(number));
        assert_eq!(claimed(ALWAYS, &again(0)), ["0(12)"]);
        assert_eq!(claimed(ALWAYS, &again(2)), [""; 0]);
        let leads = |from, to| format!("(call $leads_to {name} {} {})", is(from), is(to));
        assert_eq!(claimed("leads-to it\\n", &leads(2, 1)), [""; 0]);
        assert_eq!(claimed("leads-to it\\n", &leads(2, 0)), ["01(21)"]);
        assert_eq!(claimed("leads-to it\\n", &leads(3, 0)), [""; 0]);
        // It is here already.
        assert_eq!(claimed("leads-to it\\n", &leads(2, 2)), [""; 0]);
        // What an invariant does not say does not hold.
        assert_eq!(claimed(ALWAYS, ""), ["(012)"; 0].into_iter().chain(["0(12)"]).collect::<Vec<_>>());
    });
}

#[test]
fn a_step_that_ends_the_run_is_enabled_and_one_that_is_rejected_is_not() {
    on_guest_stack(|| {
        let out = |body: &str| {
            format!("{}(func (export \"rule:b\") {body})", step("a", 0, 0)) + &always_eventually(1)
        };
        // It is called in the end, and fails, which is told by itself.
        let program = loaded(&guest(ALWAYS, "", &out("unreachable"))).unwrap();
        let failed = checked(&program, &Options::default());
        let kinds: Vec<String> = failed.findings.iter().map(|found| found.failure.kind.to_string()).collect();
        assert_eq!(kinds, ["trap"]);
        assert_eq!(loops(&guest(ALWAYS, "", &out("(call $reject)"))), ["()"]);
    });
}

#[test]
fn a_rule_may_be_fair_in_each_of_its_steps() {
    on_guest_stack(|| {
        // It goes to one of three numbers; the claim is about the last.
        let rule = |way: &str| {
            let body = format!(
                r#"(local $to i32) (local.set $to (call $index (i32.const 3))) {way} (global.set $at (local.get $to))"#
            );
            format!("(func (export \"rule:a\") {body})") + &always_eventually(2)
        };
        assert_eq!(loops(&guest(ALWAYS, "", &rule(""))), ["(00)"]);
        assert_eq!(loops(&guest(ALWAYS, "each a\\n", &rule(""))), [""; 0]);
        let way = "(call $way (i64.extend_i32_u (local.get $to)))";
        assert_eq!(loops(&guest(ALWAYS, "each a\\n", &rule(way))), [""; 0]);
        // All of them are one.
        assert_eq!(loops(&guest(ALWAYS, "each a\\n", &rule("(call $way (i64.const 1))"))), ["(00)"]);
    });
}

#[test]
fn faults_are_toggled_for_ever_where_nothing_else_is_owed() {
    on_guest_stack(|| {
        let fault = r#"(func (export "fault:f") (param i32) (global.set $at (local.get 0)))"#;
        let stays = format!("{fault} {}", step("a", 2, 0)) + &always_eventually(1);
        assert_eq!(loops(&guest(ALWAYS, "", &stays)), ["()"]);
        let never = format!("{fault} {}", step("a", 2, 0)) + &always_eventually(3);
        assert_eq!(loops(&guest(ALWAYS, "", &never)), ["()"]);
    });
}

#[test]
fn what_a_state_says_counts_where_states_are_compared() {
    on_guest_stack(|| {
        // The state that it hands over leaves out where it is.
        let steps = [step("a", 0, 1), step("b", 1, 1)].concat();
        let state = r#"(func (export "state") (call $state (i32.const 0) (i32.const 4)))"#;
        let body = format!("{steps}{state}") + &always_eventually(0);
        let program = loaded(&guest(ALWAYS, "", &body)).unwrap();
        let checked = checked(&program, &Options::default());
        assert_eq!((checked.census.states, checked.findings.len()), (2, 1));
    });
}

#[test]
fn where_it_is_not_judged_the_verdict_is_unknown() {
    on_guest_stack(|| {
        let steps = [step("a", 0, 1), step("b", 1, 0)].concat();
        let program = loaded(&guest(ALWAYS, "", &(steps + &always_eventually(2)))).unwrap();
        let limit = |options: &Options| {
            let checked = checked(&program, options);
            (checked.findings.len(), checked.limit)
        };
        let steps_max = Some(3);
        assert_eq!(limit(&Options::default()), (1, None));
        let depth = Options { order: Order::Depth, ..Options::default() };
        assert_eq!(limit(&depth), (0, Some(Limit::Liveness)));
        assert_eq!(limit(&Options { reduces: true, ..Options::default() }), (0, Some(Limit::Liveness)));
        let all = Options { prunes: false, steps_max, ..Options::default() };
        assert_eq!(limit(&all), (0, Some(Limit::Steps)));
        // A loop within the bound is one; beyond it nothing is known.
        assert_eq!(limit(&Options { steps_max, ..Options::default() }), (1, None));
        let steps_max = Some(1);
        assert_eq!(limit(&Options { steps_max, ..Options::default() }), (0, Some(Limit::Steps)));
    });
}

#[test]
fn a_loop_that_does_not_close_diverges() {
    on_guest_stack(|| {
        let steps = [step("a", 0, 1), step("b", 1, 0)].concat();
        let program = loaded(&guest(ALWAYS, "", &(steps + &always_eventually(2)))).unwrap();
        let replayed = |actions: &[Action]| {
            let mut trace = Trace::default();
            trace.push(Action::Setup, 0);
            actions.iter().for_each(|action| trace.push(*action, 0));
            replay(&mut machine(&program), &trace, false).0
        };
        let (a, b) = (Action::Rule(0), Action::Rule(1));
        assert!(matches!(replayed(&[Action::Loop, a, b, Action::Again(0)]), Replayed::Failed(_)));
        for open in [
            vec![Action::Loop, a, Action::Again(0)],
            vec![a, b, Action::Again(0)],
            vec![Action::Loop, Action::Again(1)],
        ] {
            let Replayed::Diverged { step, why } = replayed(&open) else { panic!("{open:?}") };
            assert_eq!((step, &why[..24]), (open.len(), "the steps since the loop"));
        }
    });
}

#[test]
fn claims_that_are_not_declared_and_words_that_mean_nothing_are_refused() {
    on_guest_stack(|| {
        let body = step("a", 0, 1) + &always_eventually(0);
        let program = loaded(&guest("", "", &body)).unwrap();
        let checked = checked(&program, &Options::default());
        let told = checked.findings[0].failure.to_string();
        let expected = "a custom section `spelunk:properties` must declare it: `always-eventually it`";
        assert!(told.contains(expected), "{told}");
        let refused =
            |claims: &str, fair: &str| format!("{:#}", loaded(&guest(claims, fair, &body)).err().unwrap());
        assert!(
            refused(ALWAYS, "quick a\\n").contains("it must be `strong RULE`, `unfair RULE` or `each RULE`")
        );
        assert!(refused(ALWAYS, "strong z\\n").contains("names no rule that the module exports"));
        let many: String = (0..65).map(|n| format!("eventually c{n}\\n")).collect();
        assert!(refused(&many, "").contains("declares 65 properties of runs without end; 64 are the most"));
    });
}
