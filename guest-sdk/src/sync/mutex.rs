//! As `std`'s mutex.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use super::cell::Shared;
use super::order::Link;
use super::scheduler::{Wait, What, current, point, stop};
use super::{LockResult, TryLockError, TryLockResult, touch};

/// As [`std::sync::Mutex`]. It is never poisoned.
pub struct Mutex<T: ?Sized> {
    /// 1 more than the number of the thread that holds it, or 0.
    holder: Shared<u32>,
    link: Link,
    value: Shared<T>,
}

/// Who holds it outside of threads.
const OUTSIDE: u32 = u32::MAX;

impl<T> Mutex<T> {
    /// One that holds this.
    pub const fn new(value: T) -> Self {
        Self { holder: Shared::new(0), link: Link::new(), value: Shared::new(value) }
    }

    /// What it held.
    pub fn into_inner(self) -> LockResult<T> {
        Ok(self.value.into_inner())
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until nobody else holds it.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let at = Location::caller();
        stop(self.wait(at));
        Ok(self.take(at))
    }

    /// Takes it if nobody holds it.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let at = Location::caller();
        point(What::TryLock, self.object(), at);
        if self.holder.get() == 0 { Ok(self.take(at)) } else { Err(TryLockError::WouldBlock) }
    }

    /// False: a panic ends the run.
    pub fn is_poisoned(&self) -> bool {
        false
    }

    /// Nothing: it is not poisoned.
    pub fn clear_poison(&self) {}

    /// What it holds, for its only owner.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        Ok(self.value.get_mut())
    }

    fn object(&self) -> *const () {
        self.holder.as_ptr().cast_const().cast()
    }

    fn wait(&self, at: &'static Location<'static>) -> Wait {
        Wait { what: What::Lock, object: self.object(), can_go_on: is_free, at }
    }

    fn free(&self) {
        self.link.leave();
        self.holder.set(0);
    }

    /// Takes what is free.
    fn take(&self, at: &'static Location<'static>) -> MutexGuard<'_, T> {
        self.holder.set(current().checked_add(1).unwrap_or(OUTSIDE));
        self.link.follow();
        MutexGuard { mutex: self, at }
    }
}

/// The object is the word of a mutex.
pub(super) fn is_free(holder: *const ()) -> bool {
    // SAFETY: whoever waits for a mutex refers to it.
    unsafe { *holder.cast::<u32>() == 0 }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        touch::also_reads(self.object());
        let mut text = f.debug_struct("Mutex");
        match self.holder.get() {
            // SAFETY: nobody holds it.
            0 => text.field("data", &unsafe { self.value.read() }),
            _ => text.field("data", &format_args!("<locked>")),
        };
        text.field("poisoned", &false).finish_non_exhaustive()
    }
}

/// As [`std::sync::MutexGuard`].
#[must_use = "it is unlocked at once if this is not kept"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// Where it was locked: where it is unlocked is seldom a line of the program.
    at: &'static Location<'static>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The word of the mutex.
    pub(super) fn object(&self) -> *const () {
        self.mutex.object()
    }

    /// Lets the mutex go, without a stop. How to wait for it again.
    pub(super) fn leave(self, at: &'static Location<'static>) -> (Left<'a, T>, Wait) {
        let mutex = self.mutex;
        std::mem::forget(self);
        mutex.free();
        (Left(mutex, at), mutex.wait(at))
    }
}

/// A mutex that was let go for a while.
pub(super) struct Left<'a, T: ?Sized>(&'a Mutex<T>, &'static Location<'static>);

impl<'a, T: ?Sized> Left<'a, T> {
    /// Takes it again, which is free.
    pub(super) fn back(self) -> MutexGuard<'a, T> {
        self.0.take(self.1)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: whoever has the guard has the value alone.
        unsafe { self.mutex.value.read() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: whoever has the guard has the value alone.
        unsafe { self.mutex.value.write() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        point(What::Unlock, self.mutex.object(), self.at);
        self.mutex.free();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}
