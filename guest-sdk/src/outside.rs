//! What stands for `abi.rs` on native targets: properties are silent, and whoever draws is told where to.

// Each function is documented in `abi.rs`.
#![allow(missing_docs)]

use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Wake, Waker};

fn outside() -> ! {
    panic!(
        "this draws its values from Spelunk: build it for `wasm32-unknown-unknown` and run `spelunk explore`"
    )
}

pub(crate) fn boolean(_probability: f64) -> bool {
    outside()
}

pub(crate) fn index(_n: usize) -> usize {
    outside()
}

pub(crate) fn integer(_min: i64, _max: i64, _simplest: i64) -> i64 {
    outside()
}

pub(crate) fn unsigned(_min: u64, _max: u64, _simplest: u64) -> u64 {
    outside()
}

pub(crate) fn float(_min: f64, _max: f64, _nan: bool, _infinite: bool) -> f64 {
    outside()
}

pub(crate) fn bytes(_min: usize, _max: usize) -> Vec<u8> {
    outside()
}

pub(crate) fn span_begin(_label: &'static str) {}

pub(crate) fn span_end(_discarded: bool) {}

#[track_caller]
pub(crate) fn reject() -> ! {
    panic!("what was assumed does not hold")
}

#[track_caller]
pub fn fail(message: &str) -> ! {
    panic!("{message}")
}

pub fn always(_name: &'static str, _condition: bool) {}

pub fn sometimes(_name: &'static str, _condition: bool) {}

pub fn reachable(_name: &'static str) {}

pub fn eventually(_name: &'static str, _condition: bool) {}

pub fn always_eventually(_name: &'static str, _condition: bool) {}

pub fn leads_to(_name: &'static str, _from: bool, _to: bool) {}

pub(crate) fn way(_way: u64) {}

pub fn never(_name: &'static str) {}

pub(crate) fn target(_score: f64, _label: &str) {}

pub(crate) fn observe(_name: &str, _number: i64) {}

pub(crate) fn event(_text: &str) {}

pub fn verbose() -> bool {
    false
}

pub(crate) fn state(_bytes: &[u8]) {}

pub(crate) fn describe(_name: &str, _value: &str) {}

pub(crate) fn note(_text: &str) {}

struct Task(usize);

impl Wake for Task {
    fn wake(self: Arc<Task>) {
        crate::task::wake(self.0);
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
        outside()
    }

    pub(crate) fn take(&self) -> T {
        outside()
    }

    pub(crate) fn with<R>(&self, _f: impl FnOnce(&mut T) -> R) -> R {
        outside()
    }
}
