//! What stands for `abi.rs` on native targets: a run of [`native`](crate::native) answers, if there is one on this thread.
//! Outside of it properties are silent, and whoever draws is told where to.

// Each function is documented in `abi.rs`.
#![allow(missing_docs)]

use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::native::host::{self, Question};

/// The answer to a question.
macro_rules! ask {
    ($question:expr, $value:path) => {
        match host::ask($question) {
            $value(value) => value,
            other => unreachable!("{other:?} is no answer to this question"),
        }
    };
}

pub(crate) fn boolean(probability: f64) -> bool {
    ask!(Question::Boolean { probability }, host::Value::Boolean)
}

#[track_caller]
pub(crate) fn index(n: usize) -> usize {
    if n == 0 && host::is_running() {
        panic!("deadlock: a choice among nothing");
    }
    ask!(Question::Index { n }, host::Value::Index) as usize
}

pub(crate) fn integer(min: i64, max: i64, simplest: i64) -> i64 {
    let simplest = simplest.clamp(min, max);
    ask!(Question::Integer { min, max, simplest }, host::Value::Integer)
}

pub(crate) fn unsigned(min: u64, max: u64, simplest: u64) -> u64 {
    let simplest = simplest.clamp(min, max);
    ask!(Question::Unsigned { min, max, simplest }, host::Value::Unsigned)
}

pub(crate) fn float(min: f64, max: f64, nan: bool, infinite: bool) -> f64 {
    ask!(Question::Float { min, max, nan, infinite }, host::Value::Float)
}

pub(crate) fn bytes(min: usize, max: usize) -> Vec<u8> {
    ask!(Question::Bytes { min, max }, host::Value::Bytes)
}

pub(crate) fn span_begin(_label: &'static str) {}

pub(crate) fn span_end(_discarded: bool) {}

#[track_caller]
pub(crate) fn reject() -> ! {
    if host::is_running() {
        host::reject();
    }
    panic!("what was assumed does not hold")
}

#[track_caller]
pub fn fail(message: &str) -> ! {
    panic!("{message}")
}

#[track_caller]
pub fn always(name: &'static str, condition: bool) {
    if !condition && host::is_running() {
        panic!("always {name}: the condition does not hold");
    }
}

pub fn sometimes(_name: &'static str, _condition: bool) {}

pub fn reachable(_name: &'static str) {}

pub fn eventually(_name: &'static str, _condition: bool) {}

pub fn always_eventually(_name: &'static str, _condition: bool) {}

pub fn leads_to(_name: &'static str, _from: bool, _to: bool) {}

pub(crate) fn way(_way: u64) {}

#[track_caller]
pub fn never(name: &'static str) {
    if host::is_running() {
        panic!("unreachable {name}: it was reached");
    }
}

pub(crate) fn target(_score: f64, _label: &str) {}

pub(crate) fn observe(_name: &str, _number: i64) {}

pub(crate) fn event(_text: &str) {}

pub(crate) fn claims() -> bool {
    false
}

pub fn verbose() -> bool {
    host::is_running()
}

pub(crate) fn state(_bytes: &[u8]) {}

pub(crate) fn describe(name: &str, value: &str) {
    host::describe(name, value);
}

pub(crate) fn note(text: &str) {
    host::note(text);
}

struct Task(usize);

impl Wake for Task {
    fn wake(self: Arc<Task>) {
        crate::task::wake(self.0);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        crate::task::let_go(self.0);
    }
}

pub(crate) fn waker(task: usize) -> Waker {
    Arc::new(Task(task)).into()
}

/// Nothing: the exports that would use it are called by Spelunk alone.
pub(crate) struct Shared<T>(PhantomData<fn() -> T>);

impl<T> Shared<T> {
    pub(crate) const fn new() -> Shared<T> {
        Shared(PhantomData)
    }

    pub(crate) fn set(&self, _value: T) {
        host::outside()
    }

    pub(crate) fn take(&self) -> T {
        host::outside()
    }

    pub(crate) fn with<R>(&self, _f: impl FnOnce(&mut T) -> R) -> R {
        host::outside()
    }

    pub(crate) fn with_or_default<R>(&self, _f: impl FnOnce(&mut T) -> R) -> R {
        host::outside()
    }

    pub(crate) fn copy(&self) -> Option<T> {
        host::outside()
    }

    pub(crate) fn replace(&self, _value: Option<T>) {
        host::outside()
    }

    pub(crate) fn leave(&self) -> Option<T> {
        host::outside()
    }

    pub(crate) fn begin_anew(&self, _value: Option<T>) {
        host::outside()
    }
}

pub(crate) fn is_unseen() {
    host::outside()
}

pub(crate) fn watched<R>(_matters: bool, copy: impl FnOnce() -> R) -> (R, Option<bool>) {
    (copy(), None)
}
