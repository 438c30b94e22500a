//! What stands for `abi.rs` in the tests of this crate: a host that answers as a test says, and writes down
//! what it was asked.

// Each function is documented in `abi.rs`.
#![allow(missing_docs)]

use std::cell::RefCell;
use std::collections::VecDeque;

#[derive(Default)]
struct Host {
    answers: Answers,
    log: Vec<String>,
}

/// Booleans are 0 and 1, floats their bits, bytes how many they are.
enum Answers {
    These(VecDeque<u64>),
    /// The simplest to each question.
    Simplest,
    /// Any that is possible, from this state of a generator on.
    Random(u64),
    /// These to the first, with how many alternatives each had; the first alternative to the others.
    Path(Vec<(u64, u64)>, usize),
}

impl Default for Answers {
    fn default() -> Answers {
        Answers::These(VecDeque::new())
    }
}

thread_local! {
    static HOST: RefCell<Host> = RefCell::default();
}

/// Runs `f` with these answers to its choices, all of which it must use. Returns its result and the calls.
#[track_caller]
pub(crate) fn play<R>(answers: &[u64], f: impl FnOnce() -> R) -> (R, Vec<String>) {
    HOST.set(Host { answers: Answers::These(answers.iter().copied().collect()), log: Vec::new() });
    let result = f();
    let Host { answers, log } = HOST.take();
    if let Answers::These(left) = answers {
        assert!(left.is_empty(), "answers left: {left:?}, after {log:?}");
    }
    (result, log)
}

/// Runs `f` with the simplest answer to each choice.
pub(crate) fn play_simplest<R>(f: impl FnOnce() -> R) -> R {
    HOST.set(Host { answers: Answers::Simplest, log: Vec::new() });
    f()
}

/// Runs `f` often with answers of all kinds.
pub(crate) fn play_random(mut f: impl FnMut()) {
    HOST.set(Host { answers: Answers::Random(1), log: Vec::new() });
    (0..500).for_each(|_| f());
}

/// Runs `f` once for each way in which its choices can be answered, depth-first, the simplest first, and tells all
/// notes. Each run gives its calls, of which a deadlock is the last.
pub(crate) fn play_all(mut f: impl FnMut()) -> Vec<Vec<String>> {
    let (mut runs, mut path) = (Vec::new(), Vec::new());
    loop {
        HOST.set(Host { answers: Answers::Path(path, 0), log: Vec::new() });
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut f)).is_err() {
            let is_deadlock = HOST.with_borrow(|host| host.log.last().is_some_and(|call| call == "index 0"));
            assert!(is_deadlock, "another panic than a deadlock");
        }
        crate::task::reset();
        let Host { answers, log } = HOST.take();
        runs.push(log);
        let Answers::Path(answered, _) = answers else { unreachable!("it was set") };
        path = answered;
        while path.pop_if(|(answer, alternatives)| *answer + 1 == *alternatives).is_some() {}
        match path.last_mut() {
            Some((answer, _)) => *answer += 1,
            None => return runs,
        }
    }
}

fn log(call: String) {
    HOST.with_borrow_mut(|host| host.log.push(call));
}

/// `possible` makes a possible answer of any number.
fn answer(question: String, simplest: u64, possible: impl FnOnce(u64) -> u64) -> u64 {
    let alternatives = match question.split_once(' ') {
        Some(("index", n)) => n.parse().expect("a number"),
        Some(("boolean", _)) => 2,
        _ => 1,
    };
    HOST.with_borrow_mut(|Host { answers, log }| {
        log.push(question);
        match answers {
            Answers::These(answers) => {
                answers.pop_front().unwrap_or_else(|| panic!("no answer to {}", log[log.len() - 1]))
            }
            Answers::Simplest => simplest,
            Answers::Random(state) => {
                // A linear congruential generator (Knuth, MMIX), of which the upper bits are good.
                *state =
                    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                possible(*state >> 33)
            }
            Answers::Path(..) if log[log.len() - 1] == "verbose" => 1,
            Answers::Path(..) if alternatives == 1 => simplest,
            Answers::Path(path, at) => {
                if *at == path.len() {
                    path.push((0, alternatives));
                }
                let (answer, before) = path[*at];
                assert_eq!(before, alternatives, "the runs are deterministic");
                *at += 1;
                answer
            }
        }
    })
}

pub(crate) fn boolean(probability: f64) -> bool {
    let (always, never) = (probability >= 1.0, probability <= 0.0);
    answer(format!("boolean {probability:.2}"), always.into(), |any| {
        u64::from(always || !never && any % 2 == 0)
    }) != 0
}

pub(crate) fn index(n: usize) -> usize {
    if n == 0 {
        log("index 0".into());
        panic!("deadlock");
    }
    answer(format!("index {n}"), 0, |any| any % n as u64) as usize
}

pub(crate) fn integer(min: i64, max: i64, simplest: i64) -> i64 {
    let at = |any: u64| (i128::from(min) + i128::from(any) % (i128::from(max) - i128::from(min) + 1)) as u64;
    answer(format!("integer {min}..={max} {simplest}"), simplest.clamp(min, max) as u64, at) as i64
}

pub(crate) fn unsigned(min: u64, max: u64, simplest: u64) -> u64 {
    let at = |any: u64| (u128::from(min) + u128::from(any) % (u128::from(max) - u128::from(min) + 1)) as u64;
    answer(format!("unsigned {min}..={max} {simplest}"), simplest.clamp(min, max), at)
}

pub(crate) fn float(min: f64, max: f64, nan: bool, infinite: bool) -> f64 {
    let name = |flag, name| if flag { name } else { "" };
    let question = format!("float {min}..={max}{}{}", name(nan, " nan"), name(infinite, " infinite"));
    let simplest = 0f64.clamp(min, max);
    let possible = [simplest, min.max(f64::MIN), max.min(f64::MAX)];
    f64::from_bits(answer(question, simplest.to_bits(), |any| possible[any as usize % 3].to_bits()))
}

pub(crate) fn bytes(min: usize, max: usize) -> Vec<u8> {
    let len = answer(format!("bytes {min}..={max}"), min as u64, |any| {
        (min + any as usize % (max - min + 1)) as u64
    });
    vec![7; len as usize]
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

pub fn eventually(name: &'static str, condition: bool) {
    log(format!("eventually {name} {condition}"));
}

pub fn always_eventually(name: &'static str, condition: bool) {
    log(format!("always-eventually {name} {condition}"));
}

pub fn leads_to(name: &'static str, from: bool, to: bool) {
    log(format!("leads-to {name} {from} {to}"));
}

pub(crate) fn way(way: u64) {
    log(format!("way {way}"));
}

pub fn never(name: &'static str) {
    log(format!("unreachable {name}"));
}

pub(crate) fn target(score: f64, label: &str) {
    log(format!("target {label} {score}"));
}

pub(crate) fn observe(name: &str, number: i64) {
    log(format!("observe {name} {number}"));
}

pub(crate) fn event(text: &str) {
    log(format!("event {text}"));
}

pub(crate) fn claims() -> bool {
    false
}

pub fn verbose() -> bool {
    answer("verbose".into(), 0, |any| any % 2) != 0
}

pub(crate) fn state(bytes: &[u8]) {
    log(format!("state {bytes:?}"));
}

pub(crate) fn describe(name: &str, value: &str) {
    log(format!("describe {name}={value}"));
}

pub(crate) fn note(text: &str) {
    log(format!("note {text}"));
}

#[path = "native/abi.rs"]
#[allow(dead_code, unreachable_pub)]
mod native;
pub(crate) use native::{Shared, is_unseen, waker, watched};
