//! Which pointers share what is behind them: each value behind one has a number, in the order in which they are first met.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Of the values that were met, by their addresses, the number of each.
type Numbers = BTreeMap<usize, usize>;

thread_local! {
    /// Nothing where they are not told apart.
    static NUMBERS: RefCell<Option<Numbers>> = const { RefCell::new(None) };
    /// There were some where they were not told apart.
    static WERE_MET: Cell<bool> = const { Cell::new(false) };
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
    WERE_MET.set(false);
    let _before = Before(NUMBERS.replace(Some(Numbers::new())));
    f()
}

/// They are not within `f`.
pub(super) fn untold<R>(f: impl FnOnce() -> R) -> R {
    let _before = Before(NUMBERS.take());
    f()
}

/// Whether there were some where they were not told apart, since they are.
pub(super) fn were_met() -> bool {
    WERE_MET.get()
}

/// The number of the value at an address, and whether it is met for the first time; nothing where they are not told apart.
pub(super) fn number(address: usize) -> Option<(usize, bool)> {
    NUMBERS.with_borrow_mut(|numbers| {
        let Some(numbers) = numbers else {
            WERE_MET.set(true);
            return None;
        };
        let next = numbers.len();
        let number = *numbers.entry(address).or_insert(next);
        Some((number, number == next))
    })
}
