//! What `#[harness]` writes calls to: the state of the harness, and the arguments of its rules.

use std::fmt::Debug;

use crate::{Strategy, abi, panic};

/// The state of a harness: nothing before `setup`, and nothing after a `teardown` that takes it.
#[doc(hidden)]
pub struct Slot<T>(abi::Shared<T>);

#[doc(hidden)]
impl<T> Slot<T> {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Slot<T> {
        Slot(abi::Shared::new())
    }

    pub fn start(&self, setup: impl FnOnce() -> T) {
        panic::install_hook();
        self.0.set(setup());
    }

    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.0.with(f)
    }

    pub fn take(&self) -> T {
        self.0.take()
    }
}

/// Draws an argument, in a span of its name.
#[doc(hidden)]
pub fn argument<S: Strategy>(name: &'static str, strategy: S) -> S::Value {
    abi::span_begin(name);
    let value = strategy.draw();
    abi::span_end(false);
    value
}

/// Tells an argument. Formats, so: only where a finding is told.
#[doc(hidden)]
pub fn describe(name: &'static str, value: &dyn Debug) {
    abi::describe(name, &format!("{value:?}"));
}

/// What a rule may return.
#[diagnostic::on_unimplemented(
    message = "a rule returns nothing or a `Result<(), E>` whose error has `Debug`, not `{Self}`"
)]
pub trait RuleResult {
    /// Ends the run as a finding if this is an error.
    fn finish(self);
}

impl RuleResult for () {
    fn finish(self) {}
}

impl<E: Debug> RuleResult for Result<(), E> {
    fn finish(self) {
        if let Err(error) = self {
            abi::fail(&format!("{error:?}"));
        }
    }
}
