//! As `std`'s condition variable.

use std::panic::Location;
use std::time::Duration;

use super::mutex::is_free;
use super::scheduler::{Wait, What, current, is_notified, notify, point, sleep, stop, waiters, waits_for};
use super::{LockResult, MutexGuard, cell::Shared};
use crate::abi;

/// As [`std::sync::Condvar`]. Nobody wakes without having been notified; who of several is, is a choice. To wait with one mutex while
/// another waits with another one panics.
#[derive(Default)]
pub struct Condvar {
    /// It has an address of its own.
    _word: Word,
}

struct Word(#[allow(dead_code)] Shared<u32>);

impl Default for Word {
    fn default() -> Self {
        Word(Shared::new(0))
    }
}

/// As [`std::sync::WaitTimeoutResult`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the time was up.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

/// What a thread waits for that was notified: it goes on where the mutex is free, too.
#[derive(Clone, Copy)]
pub(super) struct Sleeper {
    thread: u32,
    pub(super) condvar: *const (),
    pub(super) mutex: *const (),
}

impl Condvar {
    /// One for which nobody waits.
    pub const fn new() -> Self {
        Self { _word: Word(Shared::new(0)) }
    }

    fn object(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }

    /// Lets the mutex go until this is notified.
    #[track_caller]
    pub fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        Ok(self.wait_as(guard, false, Location::caller()).0)
    }

    /// Lets the mutex go until this is notified, or the time is up: that may be at any moment.
    #[track_caller]
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        _duration: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let (guard, notified) = self.wait_as(guard, true, Location::caller());
        Ok((guard, WaitTimeoutResult(!notified)))
    }

    /// Waits as long as the condition holds.
    #[track_caller]
    pub fn wait_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits as long as the condition holds, or until the time is up.
    #[track_caller]
    pub fn wait_timeout_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        duration: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        while condition(&mut guard) {
            let result;
            (guard, result) = self.wait_timeout(guard, duration)?;
            if result.timed_out() {
                let result = WaitTimeoutResult(condition(&mut guard));
                return Ok((guard, result));
            }
        }
        Ok((guard, WaitTimeoutResult(false)))
    }

    fn wait_as<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        times_out: bool,
        at: &'static Location<'static>,
    ) -> (MutexGuard<'a, T>, bool) {
        // To let go is an operation; to wake, with the mutex, is another. Where the time is up, to take the mutex is one more.
        let sleeper = Sleeper { thread: current(), condvar: self.object(), mutex: guard.object() };
        let object = (&raw const sleeper).cast();
        point(What::Leave, object, at);
        let has_other = |number: &u32| of(waits_for(*number)).mutex != sleeper.mutex;
        // `std` may do so, too.
        assert!(
            !waiters(self.object()).iter().any(has_other),
            "attempted to use a condition variable with two mutexes"
        );
        let (left, wait) = guard.leave(at);
        let can_go_on: fn(*const ()) -> bool = match times_out {
            true => |_| true,
            false => |sleeper| is_notified(of(sleeper).thread) && is_free(of(sleeper).mutex),
        };
        let notified = sleep(Wait { what: What::Wait, object, can_go_on, at }, self.object());
        if times_out {
            // The time may be up while another has the mutex, and from then on no notification comes here.
            stop(wait);
        }
        (left.back(), notified)
    }

    /// One of those that wait goes on.
    #[track_caller]
    pub fn notify_one(&self) {
        point(What::Notify, self.object(), Location::caller());
        let waiters = waiters(self.object());
        let which = if waiters.len() > 1 { abi::index(waiters.len()) } else { 0 };
        waiters.get(which).into_iter().for_each(|number| notify(*number));
    }

    /// All that wait go on.
    #[track_caller]
    pub fn notify_all(&self) {
        point(What::Notify, self.object(), Location::caller());
        waiters(self.object()).into_iter().for_each(notify);
    }
}

/// What is touched by a thread that begins to wait, or wakes.
pub(super) fn of(sleeper: *const ()) -> Sleeper {
    // SAFETY: it lies on the stack of the thread that waits.
    unsafe { *sleeper.cast::<Sleeper>() }
}

impl std::fmt::Debug for Condvar {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
