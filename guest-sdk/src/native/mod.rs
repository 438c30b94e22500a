//! A harness as a part of a test, without WebAssembly: for a debugger, a sanitizer, or a test of what was found.
//!
//! [`replay`] does what a trace says that `spelunk explore` or `spelunk check` saved, so that the test fails as the
//! finding does. `spelunk export TARGET --as-test TRACE` writes such a test.
//!
//! ```
//! use spelunk_guest::prelude::*;
//! use spelunk_guest::native;
//!
//! #[derive(Default)]
//! struct Counter(u8);
//!
//! #[harness]
//! impl Counter {
//!     #[rule]
//!     fn add(&mut self, #[draw(0..=9)] n: u8) {
//!         self.0 += n;
//!     }
//! }
//!
//! // #[test]
//! fn nine_can_be_added() -> Result<(), native::Misfit> {
//!     native::replay::<Counter>(
//!         r#"{ "spelunk": 1, "steps": [
//!             { "step": "setup" },
//!             { "step": "rule add", "choices": [ { "integer": { "value": 9 } } ] }
//!         ] }"#,
//!     )
//! }
//!
//! // #[test]
//! fn little_is_added() {
//!     native::explore::<Counter>(1, 100, 5);
//! }
//! # nine_can_be_added().unwrap();
//! # little_is_added();
//! ```
//!
//! Steps, preconditions, invariants, faults, pools and tasks are those of the exploration. Otherwise a run is what the machine
//! makes of it: an address, a `usize` has 64 bits, a `HashMap` has another order each time, what is in a `static` stays from one run to
//! the next, and nothing ends a loop without end. [`alloc_can_fail`](crate::alloc_can_fail) lets nothing fail.
//!
//! These need `spelunk replay`: threads of [`sync`](crate::sync) (`#[threads]`), which are those of the system here; runs without end
//! (`eventually!` and the like); what Spelunk gives a program of a system, and faults in it; components. A trace of them is refused.

// In the tests of this crate `script.rs` answers, and none of these is asked.
#![cfg_attr(test, allow(dead_code))]

pub(crate) mod host;

mod draw;
mod json;
mod run;
mod trace;

use std::any::type_name;
use std::fmt;

use crate::RuleResult;

/// A trace cannot be replayed by this harness: which step does not fit it, and why.
///
/// It says so as `Debug` too, for a test that returns it.
#[derive(Clone, PartialEq, Eq)]
pub struct Misfit(String);

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}

/// What `#[harness]` makes of an `impl` block, on native targets.
pub trait Harness: Sized + 'static {
    #[doc(hidden)]
    fn parts() -> Parts<Self>;
}

/// The methods of a harness, by what they are.
#[doc(hidden)]
pub struct Parts<H> {
    setup: Box<dyn Fn() -> H>,
    rules: Vec<Rule<H>>,
    invariants: Vec<Invariant<H>>,
    terminal: Option<fn(&mut H) -> bool>,
    teardown: Option<fn(H)>,
    /// It is a function, whose run has no setup.
    is_function: bool,
}

/// A name, and whether it holds.
type Invariant<H> = (&'static str, fn(&mut H) -> bool);

struct Rule<H> {
    name: &'static str,
    call: fn(&mut H),
    precondition: Option<fn(&H) -> bool>,
}

#[doc(hidden)]
impl<H> Parts<H> {
    pub fn new(setup: fn() -> H) -> Parts<H>
    where
        H: 'static,
    {
        Parts::of(Box::new(setup))
    }

    fn of(setup: Box<dyn Fn() -> H>) -> Parts<H> {
        let (rules, invariants) = (Vec::new(), Vec::new());
        Parts { setup, rules, invariants, terminal: None, teardown: None, is_function: false }
    }

    pub fn rule(&mut self, name: &'static str, call: fn(&mut H), precondition: Option<fn(&H) -> bool>) {
        self.rules.push(Rule { name, call, precondition });
    }

    pub fn invariant(&mut self, name: &'static str, holds: fn(&mut H) -> bool) {
        self.invariants.push((name, holds));
    }

    pub fn terminal(&mut self, terminal: fn(&mut H) -> bool) {
        self.terminal = Some(terminal);
    }

    pub fn teardown(&mut self, teardown: fn(H)) {
        self.teardown = Some(teardown);
    }
}

/// Does what a trace says, from the text of its file: `replay::<Bank>(include_str!("finding.json"))`.
///
/// What fails is a panic, where it happens and with its own message, so that a debugger stops there; the steps up to it are
/// printed. If all goes well, as after a correction, it returns.
///
/// # Errors
/// The trace does not fit the harness, as when it was changed since: it asks for other choices, a rule is not there, a precondition
/// does not hold. A last step that failed may go further than it did, and is then given the simplest answers.
pub fn replay<H: Harness>(trace: &str) -> Result<(), Misfit> {
    run::replay(&H::parts(), trace)
}

/// As [`replay`], of a function that is marked `#[check]`: `replay_check(orders, include_str!("finding.json"))`.
///
/// # Errors
/// As of [`replay`].
pub fn replay_check<R: RuleResult + 'static>(check: fn() -> R, trace: &str) -> Result<(), Misfit> {
    run::replay(&function(check), trace)
}

/// Draws so many runs of up to `steps_max` steps, and panics at the first failure: `explore::<Bank>(1, 1000, 30)`.
///
/// It prints the steps, and the call that repeats this run alone. Nothing leads it: rules are equally likely, and most values too (one
/// number in four is an end of its range or the simplest). A fault is turned on and off once something has asked for it.
/// `spelunk explore` finds more, and shrinks what it finds.
///
/// # Panics
/// If a run fails, or if all are given up.
pub fn explore<H: Harness>(seed: u64, runs: u64, steps_max: usize) {
    let name = short(type_name::<H>());
    let repeat = |seed| format!("native::explore::<{name}>({seed}, 1, {steps_max})");
    run::explore(&H::parts(), &repeat, (seed, runs, steps_max));
}

/// As [`explore`], of a function that is marked `#[check]`.
///
/// # Panics
/// As [`explore`].
pub fn explore_check<R: RuleResult + 'static>(check: fn() -> R, seed: u64, runs: u64) {
    let repeat = |seed| format!("native::explore_check(FUNCTION, {seed}, 1)");
    run::explore(&function(check), &repeat, (seed, runs, 1));
}

/// The name of a type without its path.
fn short(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// A function is a harness with one rule, which calls what the state is.
fn function<R: RuleResult + 'static>(check: fn() -> R) -> Parts<fn() -> R> {
    let mut parts = Parts::of(Box::new(move || check));
    parts.rule("check", |check| check().finish(), None);
    parts.is_function = true;
    parts
}
