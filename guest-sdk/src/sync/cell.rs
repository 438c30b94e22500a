//! What threads share. They take turns, so nothing is ever touched by two at once.

use std::cell::UnsafeCell;

/// A value that several threads touch.
#[repr(transparent)]
pub(super) struct Shared<T: ?Sized>(UnsafeCell<T>);

// SAFETY: a guest has one thread in the sense of this trait: those of this module stop only in `suspend`.
unsafe impl<T: ?Sized> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized> Send for Shared<T> {}

impl<T> Shared<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    pub(super) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: Copy> Shared<T> {
    pub(super) fn get(&self) -> T {
        // SAFETY: no reference to the inside is kept where `get` and `set` are used.
        unsafe { *self.0.get() }
    }

    pub(super) fn set(&self, value: T) {
        // SAFETY: as above.
        unsafe { *self.0.get() = value }
    }
}

impl<T: ?Sized> Shared<T> {
    pub(super) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    pub(super) fn as_ptr(&self) -> *mut T {
        self.0.get()
    }

    /// What is inside, for one that may read it.
    ///
    /// # Safety
    /// Nobody has a `&mut` of it meanwhile.
    pub(super) unsafe fn read(&self) -> &T {
        // SAFETY: the caller promises it.
        unsafe { &*self.0.get() }
    }

    /// What is inside, for one that has it alone.
    ///
    /// # Safety
    /// Nobody else has a reference of it meanwhile.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn write(&self) -> &mut T {
        // SAFETY: the caller promises it.
        unsafe { &mut *self.0.get() }
    }
}
