//! On native targets all is that of `std`, and threads run by themselves.

pub use std::hint;
pub use std::sync::*;
pub use std::thread;

/// Lets one thread go on up to its next operation; which one is chosen. False if there was none, because all are done.
///
/// On native targets threads run by themselves, and this is for a guest.
pub fn step() -> bool {
    panic!("threads run by themselves here: build it for `wasm32-unknown-unknown` and run `spelunk check`")
}

/// Whether every thread that was spawned has ended. On native targets nobody knows.
pub fn all_are_done() -> bool {
    panic!("threads run by themselves here: build it for `wasm32-unknown-unknown` and run `spelunk check`")
}

/// Nothing is left of threads.
pub(crate) fn is_any() -> bool {
    false
}
