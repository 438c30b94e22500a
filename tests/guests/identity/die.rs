//! Two bugs that panic in one helper.

use std::cell::Cell;

thread_local! {
    static ONES: Cell<u32> = const { Cell::new(0) };
    static TWOS: Cell<u32> = const { Cell::new(0) };
}

#[inline(never)]
fn die(why: &str) -> ! {
    panic!("fatal: {why}")
}

fn count(of: &'static std::thread::LocalKey<Cell<u32>>) -> u32 {
    of.set(of.get() + 1);
    of.get()
}

#[unsafe(no_mangle)]
pub extern "C" fn one() {
    if count(&ONES) == 2 {
        die("it went wrong");
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn two() {
    if count(&TWOS) == 2 {
        die("it went wrong");
    }
}
