//! Harnesses that run as they are, without WebAssembly.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spelunk_guest::native::{Misfit, explore, explore_check, replay, replay_check};
use spelunk_guest::prelude::*;

fault!(DISK_FULL, "disk_full");

/// Each method fails in a way of its own.
#[derive(Default)]
struct Till {
    coins: Pool<u8>,
    total: u64,
    is_closed: bool,
    is_broken: bool,
}

#[harness]
impl Till {
    #[setup]
    fn new(first: bool) -> Till {
        Till { total: first.into(), ..Till::default() }
    }

    #[rule(into = coins)]
    #[precondition(!self.is_closed)]
    fn put(&mut self, #[draw(sampled_from([1, 2, 5]))] coin: u8) -> Option<u8> {
        if !DISK_FULL.is_active() {
            self.total += u64::from(coin);
        }
        note!("it holds {}", self.total);
        Some(coin)
    }

    #[rule]
    fn take(&mut self, #[take(coins)] coin: u8) {
        assert!(coin < 5, "{coin} is too much");
        self.total -= u64::from(coin);
    }

    #[rule]
    #[precondition(!self.is_closed)]
    fn all_kinds(
        &mut self,
        on: bool,
        small: i8,
        #[draw(bytes(..=3))] data: Vec<u8>,
        #[draw(0.0..1.0)] share: f64,
        size: usize,
    ) -> Result<(), String> {
        assume(small != 9);
        if size == 7 { Err(format!("{on} {small} {data:?} {share}")) } else { Ok(()) }
    }

    #[rule]
    #[precondition(!self.is_closed)]
    fn close(&mut self, #[draw(0..=3)] way: u8) {
        always!(way != 2, "no second way");
        if way == 3 {
            never!("no third way");
        }
        self.is_closed = true;
        self.is_broken = way == 1;
    }

    #[invariant]
    fn sound(&self) -> bool {
        self.total < 1000 && !self.is_broken
    }

    #[terminal]
    fn is_over(&self) -> bool {
        self.total.is_multiple_of(2)
    }

    #[teardown]
    fn end(self) {
        assert!(self.total != 2, "two are left");
    }
}

const SETUP: &str = r#"{"step":"setup","seed":1,"choices":[{"boolean":{"value":false,"probability":0.5}}]}"#;

fn index(value: u32) -> String {
    format!(r#"{{"index":{{"value":{value},"of":3}}}}"#)
}

fn step(name: &str, choices: &[String]) -> String {
    format!(r#"{{"step":"{name}","seed":3,"choices":[{}]}}"#, choices.join(","))
}

/// A trace that fails, with these steps after the setup.
fn trace(steps: &[String]) -> String {
    let steps: Vec<&str> = std::iter::once(SETUP).chain(steps.iter().map(String::as_str)).collect();
    format!(r#"{{"spelunk":1,"module":"00","failure":{{"kind":"panic"}},"steps":[{}]}}"#, steps.join(","))
}

/// What a replay of these steps comes to: a panic, a misfit, or nothing.
fn check(steps: &[String], expected: &str) {
    let caught = catch_unwind(AssertUnwindSafe(|| replay::<Till>(&trace(steps))));
    let said = match caught {
        Ok(Ok(())) => "passed".to_string(),
        Ok(Err(misfit)) => misfit.to_string(),
        Err(panic) => panic
            .downcast::<String>()
            .map(|message| format!("panic: {message}"))
            .unwrap_or_else(|panic| format!("panic: {}", panic.downcast::<&str>().unwrap())),
    };
    assert_eq!(said, expected);
}

fn put(coin: u32) -> String {
    step("rule put", &[index(coin)])
}

#[test]
fn what_fails_is_a_panic_with_its_message() {
    check(&[put(0)], "passed");
    check(&[put(2), step("rule take", &[index(0)])], "panic: 5 is too much");
    check(&[put(1), step("teardown", &[])], "panic: two are left");
    let close = |way: i64| step("rule close", &[format!(r#"{{"integer":{{"value":{way}}}}}"#)]);
    check(&[close(1)], "panic: invariant sound: it does not hold");
    check(&[close(2)], "panic: always no second way: the condition does not hold");
    check(&[close(3)], "panic: unreachable no third way: it was reached");
    check(&[put(1), close(0), step("rule take", &[index(0)]), step("deadlock", &[])], "passed");
    let taken = [put(0), step("rule put", &[index(2)]), close(0), step("deadlock", &[])];
    check(&taken, "passed");
    let odd = r#"{"step":"setup","choices":[{"boolean":{"value":true}}]}"#;
    let odd = format!(r#"{{"spelunk":1,"steps":[{odd},{},{}]}}"#, close(0), step("deadlock", &[]));
    let caught = catch_unwind(AssertUnwindSafe(|| replay::<Till>(&odd))).unwrap_err();
    assert_eq!(caught.downcast_ref::<&str>(), Some(&"deadlock: no rule may be called"));
}

#[test]
fn each_kind_of_choice_is_answered() {
    let choices = |small: i8| {
        [
            r#"{"boolean":{"value":true,"probability":0.5}}"#.to_string(),
            format!(r#"{{"integer":{{"value":{small},"min":-128,"max":127,"simplest":0}}}}"#),
            r#"{"bytes":{"value":"00ff","min":0,"max":3}}"#.to_string(),
            r#"{"float":{"value":"3fe0000000000000","min":"0","max":"1","nan":false,"infinite":false}}"#
                .into(),
            // In WebAssembly a `usize` has 32 bits.
            r#"{"unsigned":{"value":7,"min":0,"max":4294967295,"simplest":0}}"#.to_string(),
        ]
    };
    check(&[step("rule all_kinds", &choices(-4))], "panic: \"true -4 [0, 255] 0.5\"");
    let rejected = "it gives up the run, as `assume` does, and did not when it was recorded";
    check(
        &[step("rule all_kinds", &choices(9))],
        &format!("the trace does not fit: step 2 (`rule all_kinds`): {rejected}"),
    );
}

#[test]
fn faults_are_what_the_trace_says() {
    let on = step("fault disk_full on", &[]);
    let off = step("fault disk_full off", &[]);
    // What is put in while it is on does not count.
    check(&[on.clone(), put(1), step("teardown", &[])], "passed");
    check(&[on, put(1), off, put(1), step("teardown", &[])], "panic: two are left");
    assert!(!DISK_FULL.is_active());
}

#[test]
fn a_trace_that_does_not_fit_says_where() {
    let misfit = |steps: &[String], expected: &str| {
        check(steps, &format!("the trace does not fit: step {} {expected}", steps.len() + 1));
    };
    let precondition = "its precondition does not hold";
    misfit(&[step("rule take", &[index(0)])], &format!("(`rule take`): {precondition}"));
    let rules = "the harness has no such rule; there are put, take, all_kinds, close";
    misfit(&[step("rule pay", &[])], &format!("(`rule pay`): {rules}"));
    misfit(&[step("restart", &[])], "(`restart`): it is no step that is known here");
    let again = "a run without end is replayed by `spelunk replay` alone";
    misfit(&[put(0), step("loop", &[])], &format!("(`loop`): {again}"));
    misfit(&[SETUP.to_string()], "(`setup`): setup is the first step of a run, and only that, of a harness");
    misfit(&[step("teardown", &[]), put(0)], "(`rule put`): the run was not set up, or was torn down");
    // Other choices.
    misfit(
        &[step("rule close", &[index(0)])],
        "(`rule close`): it asks for an integer in 0..=3, and recorded as choice 1 is the index 0",
    );
    misfit(&[put(3)], "(`rule put`): it asks for an index below 3, and recorded as choice 1 is the index 3");
    // Too few and too many matter but in the last step of a failure.
    check(&[step("rule put", &[])], "passed");
    check(&[step("rule put", &[index(0), index(0)])], "passed");
    check(
        &[step("rule put", &[]), put(0)],
        "the trace does not fit: step 2 (`rule put`): it asks for an index below 3 after the 0 choices that were recorded",
    );
    check(
        &[step("rule put", &[index(0), index(0)]), put(0)],
        "the trace does not fit: step 2 (`rule put`): it makes 1 choices, and 2 were recorded",
    );
}

#[test]
fn runs_are_drawn_until_one_fails() {
    let caught = catch_unwind(|| explore::<Till>(1, 1000, 20)).unwrap_err();
    let message = caught.downcast::<String>().map(|message| *message);
    let message = message.unwrap_or_else(|panic| panic.downcast::<&str>().unwrap().to_string());
    // The same seed comes to the same.
    let again = catch_unwind(|| explore::<Till>(1, 1000, 20)).unwrap_err();
    let again = again.downcast::<String>().map(|message| *message);
    assert_eq!(again.unwrap_or_else(|panic| panic.downcast::<&str>().unwrap().to_string()), message);
}

/// It never fails.
#[derive(Default)]
struct Patient(Vec<u64>);

#[harness]
impl Patient {
    #[rule]
    fn add(&mut self, #[draw(5..=u64::MAX)] n: u64) {
        assert!(n >= 5);
        self.0.push(n);
    }
}

/// It gives up all runs.
#[derive(Default)]
struct Hopeless;

#[harness]
impl Hopeless {
    #[rule]
    fn give_up(&self) {
        assume(false);
    }
}

#[test]
fn runs_that_hold_pass() {
    explore::<Patient>(7, 200, 10);
}

#[test]
#[should_panic = "all of 5 runs were given up by `assume` or a filter, so that nothing was explored"]
fn runs_that_are_all_given_up_are_no_success() {
    explore::<Hopeless>(7, 5, 10);
}

#[check]
fn sums() {
    let (a, b) = (roll(6), choose_from(&[1, 2, 3]));
    assert!(a + b < 8, "{a} + {b}");
}

#[test]
fn a_function_is_replayed_and_explored() -> Result<(), Misfit> {
    let trace = |a: u32, b: u32| {
        let choices = format!(r#"{{"index":{{"value":{a},"of":6}}}},{{"index":{{"value":{b},"of":3}}}}"#);
        format!(r#"{{"spelunk":1,"failure":{{}},"steps":[{{"step":"rule check","choices":[{choices}]}}]}}"#)
    };
    replay_check(sums, &trace(5, 1))?;
    let caught = catch_unwind(|| replay_check(sums, &trace(5, 2))).unwrap_err();
    assert_eq!(caught.downcast_ref::<String>().unwrap(), "5 + 3");
    let caught = catch_unwind(|| explore_check(sums, 1, 1000)).unwrap_err();
    assert_eq!(caught.downcast_ref::<String>().unwrap(), "5 + 3");
    Ok(())
}

#[test]
#[should_panic = "this draws its values from Spelunk: build it for `wasm32-unknown-unknown` and run `spelunk explore`, or run it \
                  by `spelunk_guest::native`"]
fn outside_of_a_run_nobody_answers() {
    draw(0..=9);
}

#[test]
fn two_tests_have_a_run_each() {
    let threads = [1, 2, 3, 4].map(|seed| std::thread::spawn(move || explore::<Patient>(seed, 50, 9)));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
