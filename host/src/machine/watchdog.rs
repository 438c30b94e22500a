//! Ends calls into the guest that the step budget does not end in time.
//!
//! One thread wakes every few milliseconds and looks at what each machine is doing. Where the time is up, the user asked
//! to stop, or a call takes longer than any should, it makes the call's step budget negative from outside; the guest finds
//! that at the next loop or call that pays and traps, as it does when it spent its budget itself. So compiled code costs
//! nothing more, and only code between two payments runs on, which is short.
//!
//! The guest may be about to write the budget itself, and undo what was done; so it is done again until the call ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::Program;
use super::memory::{Mapping, Memories};
use crate::budget::Budget;

/// How often the thread looks.
const TICK: Duration = Duration::from_millis(10);
/// The longest that a call into the guest may take, with the default step budget. That ends a call within a few seconds
/// whatever it does; what takes longer waits for memory, say, on a machine that has too little.
pub(super) const CALL_MAX: Duration = Duration::from_secs(10);

/// What the watchdog knows of a machine.
pub(super) struct Watched {
    budget: Budget,
    call_max: Duration,
    place: Mutex<Place>,
    /// Odd while the guest runs.
    calls: AtomicU64,
}

/// Where the step budget of a machine is.
pub(super) enum Place {
    /// Nowhere: there is none.
    None,
    /// In a private memory of so many bytes, among those that were made and that no machine has claimed yet.
    Among(Arc<Memories>, usize, usize),
    /// In this memory, at this address.
    At(Arc<Mapping>, usize),
}

impl Watched {
    /// As [`Watched::new`], of a machine of this program.
    pub(super) fn of(program: &Program) -> Result<Arc<Watched>> {
        let watched = Watched::new(program.budget().clone(), program.call_max());
        watched.context("no thread can be started to watch the guest")
    }

    /// Has the watchdog watch a machine until that lets go of what is returned.
    ///
    /// # Errors
    /// There is no thread to be had.
    fn new(budget: Budget, call_max: Duration) -> std::io::Result<Arc<Watched>> {
        let place = Mutex::new(Place::None);
        let watched = Arc::new(Watched { budget, call_max, place, calls: AtomicU64::new(0) });
        let mut watching = watching();
        if !watching.has_thread {
            std::thread::Builder::new().name("watchdog".to_string()).spawn(watch)?;
            watching.has_thread = true;
        }
        watching.all.push((Arc::downgrade(&watched), 0, Instant::now()));
        Ok(watched)
    }

    /// Says where the budget is now.
    pub(super) fn set_place(&self, place: Place) {
        *self.place() = place;
    }

    /// To be called before the guest is, and when it returned.
    pub(super) fn turn(&self) {
        let calls = self.calls.load(Ordering::Relaxed);
        self.calls.store(calls + 1, Ordering::Release);
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_call(&self) {
        match &*self.place() {
            Place::None => {}
            Place::Among(memories, size, at) => memories.end_calls(*size, *at),
            Place::At(mapping, at) => mapping.end_call(*at),
        }
    }
}

/// What the thread watches.
struct Watching {
    has_thread: bool,
    /// Each machine, its call that was seen last, and since when.
    all: Vec<(Weak<Watched>, u64, Instant)>,
}

static WATCHING: Mutex<Watching> = Mutex::new(Watching { has_thread: false, all: Vec::new() });

fn watching() -> MutexGuard<'static, Watching> {
    WATCHING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch() {
    loop {
        std::thread::sleep(TICK);
        let mut watching = watching();
        watching.all.retain_mut(|(watched, call, since)| {
            let Some(watched) = watched.upgrade() else { return false };
            let now = watched.calls.load(Ordering::Acquire);
            if now != *call {
                (*call, *since) = (now, Instant::now());
            }
            let is_inside = now % 2 == 1;
            if is_inside && (watched.budget.is_over() || since.elapsed() > watched.call_max) {
                watched.end_call();
            }
            true
        });
        if watching.all.is_empty() {
            watching.has_thread = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::memory::was_ended;

    /// Whether the watchdog ends a call within this time that takes steps from its budget for ever.
    fn ends(watched: &Watched, within: Duration) -> bool {
        let mapping = Arc::new(Mapping::new(65536, 65536, 65536).unwrap());
        watched.set_place(Place::At(mapping.clone(), 64));
        let mut left = 1 << 40;
        mapping.set_budget(64, left);
        let began = Instant::now();
        watched.turn();
        while left >= 0 && began.elapsed() < within {
            // As the guest does it: what comes between reading and writing is lost.
            left = mapping.budget(64) - 1;
            std::hint::spin_loop();
            mapping.set_budget(64, left);
        }
        watched.turn();
        was_ended(left)
    }

    #[test]
    fn a_call_ends_when_the_budget_does() {
        let budget = Budget::unlimited();
        let watched = Watched::new(budget.clone(), CALL_MAX).unwrap();
        assert!(!ends(&watched, Duration::from_millis(100)));
        budget.interrupt();
        assert!(ends(&watched, Duration::from_secs(5)));
    }

    #[test]
    fn a_call_ends_that_takes_too_long() {
        let watched = Watched::new(Budget::unlimited(), Duration::from_millis(50)).unwrap();
        assert!(ends(&watched, Duration::from_secs(5)));
        // The next one begins anew.
        assert!(!ends(&watched, Duration::from_millis(20)));
        assert!(ends(&watched, Duration::from_secs(5)));
    }
}
