//! As what `std` initializes once.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::panic::Location;
use std::sync::atomic::Ordering;

use super::cell::Shared;
use super::order::Stores;
use super::scheduler::{Wait, What, point, stop};
use super::touch;

/// As [`std::sync::Once`]. It is never poisoned.
pub struct Once {
    state: Shared<u32>,
    stores: Stores,
}

const NEW: u32 = 0;
const RUNS: u32 = 1;
const DONE: u32 = 2;

impl Once {
    /// One that was not called.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self { state: Shared::new(NEW), stores: Stores::new() }
    }

    /// Calls `f` if none was called before, and waits for the one that is.
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        let at = Location::caller();
        self.wait(at);
        if self.state.get() == NEW {
            self.state.set(RUNS);
            f();
            self.done(at);
        }
    }

    /// Whether one has been called, and returned.
    #[track_caller]
    pub fn is_completed(&self) -> bool {
        self.seems_done(Location::caller())
    }

    /// Stops, since others may see what was done before that it is, and then it is.
    fn done(&self, at: &'static Location<'static>) {
        point(What::Initialized, self.object(), at);
        self.stores.store(self.place(), RUNS.into(), Ordering::Release, false);
        self.state.set(DONE);
    }

    /// Whether it is; then what was done is seen.
    fn is_done(&self) -> bool {
        let is_done = self.state.get() == DONE;
        if is_done {
            self.stores.load_newest(self.place(), Ordering::Acquire);
        }
        is_done
    }

    /// Stops, and loads whether it is, which may be seen late.
    fn seems_done(&self, at: &'static Location<'static>) -> bool {
        stop(Wait::free(What::Load, self.object(), at));
        let seen = self.stores.load(self.place(), Ordering::Acquire);
        seen.map_or(self.state.get() == DONE, |seen| seen == DONE.into())
    }

    fn place(&self) -> usize {
        self.object().addr()
    }

    fn object(&self) -> *const () {
        self.state.as_ptr().cast_const().cast()
    }

    /// Stops, and until none runs.
    fn wait(&self, at: &'static Location<'static>) {
        // SAFETY: whoever waits for it refers to it.
        let can_go_on = |state: *const ()| unsafe { *state.cast::<u32>() } != RUNS;
        stop(Wait { what: What::Once, object: self.object(), can_go_on, at });
        self.is_done();
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}

/// As [`std::sync::OnceLock`].
pub struct OnceLock<T> {
    once: Once,
    value: Shared<Option<T>>,
}

impl<T> OnceLock<T> {
    /// One that holds nothing.
    pub const fn new() -> Self {
        Self { once: Once::new(), value: Shared::new(None) }
    }

    fn held(&self) -> Option<&T> {
        // SAFETY: it is written once, and read when that is done.
        if self.once.is_done() { unsafe { self.value.read() }.as_ref() } else { None }
    }

    /// What it holds.
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        if self.once.seems_done(Location::caller()) { self.held() } else { None }
    }

    /// What it holds, for its only owner.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut().as_mut()
    }

    /// Makes it hold this if it holds nothing.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("it is called once"));
        value.map_or(Ok(()), Err)
    }

    /// What it holds, which is what `f` returns if it held nothing.
    #[track_caller]
    pub fn get_or_init<F: FnOnce() -> T>(&self, f: F) -> &T {
        let at = Location::caller();
        self.once.wait(at);
        if self.once.state.get() == NEW {
            self.once.state.set(RUNS);
            let value = f();
            // SAFETY: nobody reads it yet, and nobody else writes.
            *unsafe { self.value.write() } = Some(value);
            self.once.done(at);
        }
        self.held().expect("it was initialized")
    }

    /// What it held.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// What it held, and holds no more.
    pub fn take(&mut self) -> Option<T> {
        self.once = Once::new();
        self.value.get_mut().take()
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        let once = Once { state: Shared::new(DONE), stores: Stores::new() };
        Self { once, value: Shared::new(Some(value)) }
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        touch::also_reads(self.once.object());
        match self.held() {
            Some(value) => f.debug_tuple("OnceLock").field(value).finish(),
            None => f.write_str("OnceLock(<uninit>)"),
        }
    }
}

/// As [`std::sync::LazyLock`].
pub struct LazyLock<T, F = fn() -> T> {
    value: OnceLock<T>,
    f: Shared<Cell<Option<F>>>,
}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// One that holds what `f` returns, once somebody asks.
    pub const fn new(f: F) -> Self {
        Self { value: OnceLock::new(), f: Shared::new(Cell::new(Some(f))) }
    }

    /// What it holds.
    #[track_caller]
    pub fn force(this: &Self) -> &T {
        this.value.get_or_init(|| {
            // SAFETY: a cell is never borrowed.
            let f = unsafe { this.f.read() }.take().expect("it is called once");
            f()
        })
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}
