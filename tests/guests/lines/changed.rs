//! Does the same as `counter.rs`, in other words.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

static COUNT: AtomicU32 = AtomicU32::new(0);

#[unsafe(no_mangle)]
pub extern "C" fn add(number: u32) -> u32 {
    if number <= 9 {
        let sum = COUNT.fetch_add(number, SeqCst) + number;
        COUNT.store(sum % 30, SeqCst);
    }
    COUNT.load(SeqCst)
}
