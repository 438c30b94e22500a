//! What stands for `abi.rs` in the tests of this crate: a host that answers from a list and writes down what
//! it was asked.

// Each function is documented in `abi.rs`.
#![allow(missing_docs)]

use std::cell::RefCell;
use std::collections::VecDeque;

#[derive(Default)]
struct Host {
    /// Booleans as 0 and 1, floats as their bits.
    answers: VecDeque<u64>,
    log: Vec<String>,
}

thread_local! {
    static HOST: RefCell<Host> = RefCell::default();
}

/// Runs `f` with these answers to its choices, all of which it must use. Returns its result and the calls.
#[track_caller]
pub(crate) fn play<R>(answers: &[u64], f: impl FnOnce() -> R) -> (R, Vec<String>) {
    HOST.replace(Host { answers: answers.iter().copied().collect(), log: Vec::new() });
    let result = f();
    let Host { answers, log } = HOST.take();
    assert!(answers.is_empty(), "answers left: {answers:?}, after {log:?}");
    (result, log)
}

fn log(call: String) {
    HOST.with_borrow_mut(|host| host.log.push(call));
}

fn answer(question: String) -> u64 {
    log(question.clone());
    HOST.with_borrow_mut(|host| host.answers.pop_front()).unwrap_or_else(|| panic!("no answer to {question}"))
}

pub(crate) fn boolean(probability: f64) -> bool {
    answer(format!("boolean {probability:.2}")) != 0
}

pub(crate) fn index(n: usize) -> usize {
    assert!(n > 0, "deadlock");
    answer(format!("index {n}")) as usize
}

pub(crate) fn integer(min: i64, max: i64, simplest: i64) -> i64 {
    answer(format!("integer {min}..={max} {simplest}")) as i64
}

pub(crate) fn unsigned(min: u64, max: u64, simplest: u64) -> u64 {
    answer(format!("unsigned {min}..={max} {simplest}"))
}

pub(crate) fn float(min: f64, max: f64) -> f64 {
    f64::from_bits(answer(format!("float {min}..={max}")))
}

pub(crate) fn any_float() -> f64 {
    f64::from_bits(answer("float any".into()))
}

pub(crate) fn bytes(min: usize, max: usize) -> Vec<u8> {
    vec![7; answer(format!("bytes {min}..={max}")) as usize]
}

pub(crate) fn span_begin(label: &'static str) {
    log(format!("{label}("));
}

pub(crate) fn span_end(discarded: bool) {
    log(if discarded { ")discarded".into() } else { ")".into() });
}

pub(crate) fn reject() -> ! {
    panic!("reject")
}

pub fn fail(message: &str) -> ! {
    panic!("fail {message}")
}

pub fn always(name: &'static str, condition: bool) {
    log(format!("always {name} {condition}"));
}

pub fn sometimes(name: &'static str, condition: bool) {
    log(format!("sometimes {name} {condition}"));
}

pub fn reachable(name: &'static str) {
    log(format!("reachable {name}"));
}

pub fn never(name: &'static str) {
    log(format!("unreachable {name}"));
}

pub fn verbose() -> bool {
    answer("verbose".into()) != 0
}

pub(crate) fn describe(name: &'static str, value: &str) {
    log(format!("describe {name}={value}"));
}

pub(crate) fn note(text: &str) {
    log(format!("note {text}"));
}

#[path = "outside.rs"]
#[allow(dead_code, unreachable_pub)]
mod outside;
pub(crate) use outside::Shared;
