//! How many bytes saved states hold: one account, of all machines.

use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Bytes that saved states hold, those of all machines, but for what threads have not told yet.
static SAVED: AtomicIsize = AtomicIsize::new(0);
/// Bytes of which a thread does not tell before there are as many.
const UNTOLD_MAX: isize = 64 << 10;

thread_local! {
    /// Bytes that this thread saved, less those that it let go, and that it has not told yet: threads that share a counter
    /// wait for one another.
    static UNTOLD: Untold = const { Untold(Cell::new(0)) };
}

struct Untold(Cell<isize>);

impl Untold {
    fn count(&self, bytes: isize) {
        let untold = self.0.get() + bytes;
        self.0.set(untold);
        if untold.abs() >= UNTOLD_MAX {
            SAVED.fetch_add(self.0.take(), Ordering::Relaxed);
        }
    }
}

impl Drop for Untold {
    fn drop(&mut self) {
        SAVED.fetch_add(self.0.get(), Ordering::Relaxed);
    }
}

/// Bytes that saved states hold now, those of all machines; about.
pub(in crate::machine) fn saved_bytes() -> usize {
    usize::try_from(SAVED.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Bytes that are counted as saved while this lives.
pub(in crate::machine) struct Held(pub(super) usize);

impl Held {
    pub(in crate::machine) fn new(bytes: usize) -> Held {
        Held::count(bytes as isize);
        Held(bytes)
    }

    fn count(bytes: isize) {
        if UNTOLD.try_with(|untold| untold.count(bytes)).is_err() {
            SAVED.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl Clone for Held {
    fn clone(&self) -> Held {
        Held::new(self.0)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.0 > 0 {
            Held::count(-(self.0 as isize));
        }
    }
}
