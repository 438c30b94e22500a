//! As `std`'s lock for many readers or one writer.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use super::cell::Shared;
use super::order::Link;
use super::scheduler::{Wait, What, point, stop};
use super::{LockResult, TryLockError, TryLockResult, touch};

/// As [`std::sync::RwLock`]. It is never poisoned, and prefers nobody.
pub struct RwLock<T: ?Sized> {
    /// How many read, or [`WRITER`].
    users: Shared<u32>,
    /// Left by writers, and by readers.
    links: [Link; 2],
    value: Shared<T>,
}

const WRITER: u32 = u32::MAX;

impl<T> RwLock<T> {
    /// One that holds this.
    pub const fn new(value: T) -> Self {
        Self { users: Shared::new(0), links: [Link::new(), Link::new()], value: Shared::new(value) }
    }

    /// What it held.
    pub fn into_inner(self) -> LockResult<T> {
        Ok(self.value.into_inner())
    }
}

/// The object is the word of a lock.
fn users(lock: *const ()) -> u32 {
    // SAFETY: whoever waits for a lock refers to it.
    unsafe { *lock.cast::<u32>() }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until nobody writes.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let (what, can_go_on) = (What::Read, |lock| users(lock) != WRITER);
        let at = Location::caller();
        stop(Wait { what, object: self.object(), can_go_on, at });
        Ok(self.take_to_read(at))
    }

    /// Reads if nobody writes.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let at = Location::caller();
        point(What::TryLock, self.object(), at);
        if self.users.get() == WRITER { Err(TryLockError::WouldBlock) } else { Ok(self.take_to_read(at)) }
    }

    /// Waits until nobody reads or writes.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let (what, can_go_on) = (What::Write, |lock| users(lock) == 0);
        let at = Location::caller();
        stop(Wait { what, object: self.object(), can_go_on, at });
        Ok(self.take_to_write(at))
    }

    /// Writes if nobody reads or writes.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let at = Location::caller();
        point(What::TryLock, self.object(), at);
        if self.users.get() == 0 { Ok(self.take_to_write(at)) } else { Err(TryLockError::WouldBlock) }
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
        self.users.as_ptr().cast_const().cast()
    }

    fn take_to_read(&self, at: &'static Location<'static>) -> RwLockReadGuard<'_, T> {
        self.users.set(self.users.get() + 1);
        self.links[0].follow();
        RwLockReadGuard { lock: self, at }
    }

    fn take_to_write(&self, at: &'static Location<'static>) -> RwLockWriteGuard<'_, T> {
        self.users.set(WRITER);
        self.links.iter().for_each(Link::follow);
        RwLockWriteGuard { lock: self, at }
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        touch::also_reads(self.object());
        let mut text = f.debug_struct("RwLock");
        match self.users.get() {
            WRITER => text.field("data", &format_args!("<locked>")),
            // SAFETY: nobody writes.
            _ => text.field("data", &unsafe { self.value.read() }),
        };
        text.field("poisoned", &false).finish_non_exhaustive()
    }
}

/// As [`std::sync::RwLockReadGuard`].
#[must_use = "it is unlocked at once if this is not kept"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    /// Where it was locked.
    at: &'static Location<'static>,
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: nobody writes while there is this guard.
        unsafe { self.lock.value.read() }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        point(What::Unlock, self.lock.object(), self.at);
        self.lock.links[1].leave();
        self.lock.users.set(self.lock.users.get() - 1);
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// As [`std::sync::RwLockWriteGuard`].
#[must_use = "it is unlocked at once if this is not kept"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    /// Where it was locked.
    at: &'static Location<'static>,
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: whoever has the guard has the value alone.
        unsafe { self.lock.value.read() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: whoever has the guard has the value alone.
        unsafe { self.lock.value.write() }
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        point(What::Unlock, self.lock.object(), self.at);
        self.lock.links[0].leave();
        self.lock.users.set(0);
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
