//! Which pointers share what is behind them: each value behind one has a number, in the order in which they are first met.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Of the values that were met, by their addresses, the number of each.
type Numbers = BTreeMap<usize, usize>;

thread_local! {
    /// Nothing where they are not told apart.
    static NUMBERS: RefCell<Option<Numbers>> = const { RefCell::new(None) };
}

/// A state held something behind such a pointer: ever, and since it was asked last.
static WAS_MET: AtomicBool = AtomicBool::new(false);
static IS_MET: AtomicBool = AtomicBool::new(false);

/// Whether a state ever held something that others may share.
pub(crate) fn was_met() -> bool {
    WAS_MET.load(Ordering::Relaxed)
}

/// Whether one did since this was asked last.
pub(crate) fn is_met() -> bool {
    IS_MET.swap(false, Ordering::Relaxed)
}

/// Puts back what was there.
struct Before(Option<Numbers>);

impl Drop for Before {
    fn drop(&mut self) {
        NUMBERS.set(self.0.take());
    }
}

/// Values behind pointers are told apart within `f`, which begins anew to number them.
pub(super) fn told_apart<R>(f: impl FnOnce() -> R) -> R {
    let _before = Before(NUMBERS.replace(Some(Numbers::new())));
    f()
}

/// As [`told_apart`], beside what is told already: of a value whose place among others is not known yet. What `f` returns, and whether there
/// were some.
pub(super) fn alone<R>(f: impl FnOnce() -> R) -> (R, bool) {
    let _before = Before(NUMBERS.replace(Some(Numbers::new())));
    let result = f();
    (result, NUMBERS.with_borrow(|numbers| numbers.as_ref().is_some_and(|numbers| !numbers.is_empty())))
}

/// The number of the value at an address, and whether it is met for the first time; nothing where they are not told apart.
pub(super) fn number(address: usize) -> Option<(usize, bool)> {
    WAS_MET.store(true, Ordering::Relaxed);
    IS_MET.store(true, Ordering::Relaxed);
    NUMBERS.with_borrow_mut(|numbers| {
        let numbers = numbers.as_mut()?;
        let next = numbers.len();
        let number = *numbers.entry(address).or_insert(next);
        Some((number, number == next))
    })
}
