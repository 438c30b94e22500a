//! A count that stays below 30. Each line that is reached is marked, and so are those that are not.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

static COUNT: AtomicU32 = AtomicU32::new(0);

#[unsafe(no_mangle)]
pub extern "C" fn add(number: u32) -> u32 {
    let count = COUNT.load(Relaxed); // yes
    if number > 9 { // yes
        return count; // yes
    }
    if count > 40 { // yes
        return never(count); // no
    }
    COUNT.store((count + number) % 30, Relaxed); // yes
    COUNT.load(Relaxed) // yes
}

fn never(count: u32) -> u32 {
    count + 1 // no
}
