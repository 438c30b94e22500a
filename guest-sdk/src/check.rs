//! What `#[check]` writes a call to.

use crate::{RuleResult, panic};

/// Runs the one function of a guest.
#[doc(hidden)]
pub fn check<R: RuleResult>(f: impl FnOnce() -> R) {
    panic::install_hook();
    f().finish();
}
