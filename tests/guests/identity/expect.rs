//! Two bugs at which the standard library panics for its caller.

use std::cell::RefCell;

thread_local! {
    static ITEMS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

#[unsafe(no_mangle)]
pub extern "C" fn push(item: u32) {
    ITEMS.with_borrow_mut(|items| items.push(item % 3));
}

#[unsafe(no_mangle)]
pub extern "C" fn one() -> u32 {
    ITEMS.with_borrow(|items| *items.last().unwrap())
}

#[unsafe(no_mangle)]
pub extern "C" fn two() {
    ITEMS.with_borrow_mut(|items| drop(items.drain(2..)));
}
