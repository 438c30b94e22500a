//! Allocations that may fail.

use std::cell::Cell;

#[cfg(any(target_family = "wasm", test))]
use crate::{abi, note};

/// How likely one allocation fails in generation: not so often that nothing ever gets far.
#[cfg(any(target_family = "wasm", test))]
const FAILURE_PROBABILITY: f64 = 0.05;

thread_local! {
    static CAN_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`, in which each allocation may fail: the explorer chooses, and that none does is the simplest.
///
/// `Vec::try_reserve` and its like return an error then. What cannot return one, as `Vec::push`, aborts, which is
/// a finding.
///
/// Needs the feature `allocator` of this crate. On native targets nothing fails.
///
/// ```
/// use spelunk_guest::prelude::*;
///
/// let mut buffer: Vec<u8> = Vec::new();
/// let reserved = alloc_can_fail(|| buffer.try_reserve(100));
/// // … the buffer must be as before if this is an error.
/// # reserved.unwrap();
/// ```
pub fn alloc_can_fail<R>(f: impl FnOnce() -> R) -> R {
    with(true, f)
}

/// Runs `f`, in which no allocation fails although it is called by [`alloc_can_fail`]: for what belongs to the
/// test, and not to the code under test.
pub fn alloc_cannot_fail<R>(f: impl FnOnce() -> R) -> R {
    with(false, f)
}

fn with<R>(can_fail: bool, f: impl FnOnce() -> R) -> R {
    struct Before(bool);

    impl Drop for Before {
        fn drop(&mut self) {
            set_can_fail(self.0);
        }
    }

    let _before = Before(set_can_fail(can_fail));
    f()
}

/// Whether allocations may fail from now on; whether they could. Where the heap is sanitized, only the allocator and what is called so may use
/// what it keeps.
#[inline(never)]
pub(crate) fn set_can_fail(can_fail: bool) -> bool {
    CAN_FAIL.replace(can_fail)
}

/// None may fail any more: a call was left in its middle.
pub(crate) fn begin_anew() {
    set_can_fail(false);
}

/// Whether this allocation is to fail.
#[cfg(any(target_family = "wasm", test))]
#[inline]
pub(crate) fn fails(len: usize) -> bool {
    CAN_FAIL.get() && ask(len)
}

#[cfg(any(target_family = "wasm", test))]
#[cold]
fn ask(len: usize) -> bool {
    let fails = abi::boolean(FAILURE_PROBABILITY);
    if fails {
        alloc_cannot_fail(|| note!("an allocation of {len} bytes fails"));
    }
    fails
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;

    #[test]
    fn only_what_may_fail_is_asked_for() {
        let (answers, log) = play(&[0, 1, 1], || {
            let before = fails(1);
            let within = alloc_can_fail(|| {
                (fails(2), alloc_cannot_fail(|| (fails(3), alloc_can_fail(|| fails(4)))), CAN_FAIL.get())
            });
            (before, within, fails(5))
        });
        assert_eq!(answers, (false, (false, (false, true), true), false));
        assert_eq!(
            log.join(", "),
            "boolean 0.05, boolean 0.05, verbose, note an allocation of 4 bytes fails"
        );
    }
}
