//! A mutex whose lock is awaited.

use std::cell::{Cell, RefCell, RefMut};
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::executor::{self, NOBODY, Wait};
use super::gate::{Entry, Gate};

/// A value that one task at a time may have. Which of those that wait gets it next is the explorer's choice.
///
/// To share one, put it into an `Rc` (or an `Arc`).
#[derive(Debug)]
pub struct Mutex<T> {
    value: RefCell<T>,
    /// Open while nobody has the value.
    gate: Gate,
    /// The task that has it, or [`NOBODY`].
    holder: Cell<usize>,
}

impl<T> Mutex<T> {
    /// A mutex that is free.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { value: RefCell::new(value), gate: Gate::new(true), holder: Cell::new(NOBODY) }
    }

    /// Waits until the mutex is free, and takes it. Other tasks may go first.
    #[track_caller]
    pub fn lock(&self) -> Lock<'_, T> {
        Lock { mutex: self, entry: Entry::new(), at: Location::caller() }
    }

    /// Takes the mutex if it is free. No other task can go first.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let value = self.value.try_borrow_mut().ok()?;
        let holder = executor::current();
        self.holder.set(holder);
        self.gate.set_holder(holder, false);
        Some(MutexGuard { value, mutex: self })
    }

    /// The value, for whom owns the mutex.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

/// What [`Mutex::lock`] returns.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Lock<'a, T> {
    mutex: &'a Mutex<T>,
    entry: Entry,
    at: &'static Location<'static>,
}

impl<'a, T> Future for Lock<'a, T> {
    type Output = MutexGuard<'a, T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<MutexGuard<'a, T>> {
        let mutex = self.mutex;
        let wait = Wait::for_mutex(self.at, mutex.holder.get());
        ready!(self.entry.pass(&mutex.gate, context, wait));
        Poll::Ready(mutex.try_lock().expect("its gate is open"))
    }
}

impl<T> Drop for Lock<'_, T> {
    fn drop(&mut self) {
        self.entry.leave(&self.mutex.gate);
    }
}

/// The value of a [`Mutex`], which is free again when this is dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    value: RefMut<'a, T>,
    mutex: &'a Mutex<T>,
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // Nobody runs between this and the end of the borrow.
        self.mutex.holder.set(NOBODY);
        self.mutex.gate.set_holder(NOBODY, true);
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
