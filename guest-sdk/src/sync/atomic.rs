//! As [`std::sync::atomic`]. Each operation is a step of its own, and all are sequentially consistent.

use std::fmt;
use std::panic::Location;

use super::cell::Shared;
use super::scheduler::{What, point};

pub use std::sync::atomic::Ordering;

/// As [`std::sync::atomic::fence`]: all is in one order as it is.
pub fn fence(_order: Ordering) {}

/// As [`std::sync::atomic::compiler_fence`].
pub fn compiler_fence(_order: Ordering) {}

#[track_caller]
fn check_load(order: Ordering) {
    match order {
        Ordering::Release => panic!("there is no such thing as a release load"),
        Ordering::AcqRel => panic!("there is no such thing as an acquire-release load"),
        _ => {}
    }
}

#[track_caller]
fn check_store(order: Ordering) {
    match order {
        Ordering::Acquire => panic!("there is no such thing as an acquire store"),
        Ordering::AcqRel => panic!("there is no such thing as an acquire-release store"),
        _ => {}
    }
}

macro_rules! atomic {
    ($name:ident$(<$of:ident>)?, $value:ty) => {
        #[doc = concat!("As [`std::sync::atomic::", stringify!($name), "`].")]
        #[repr(transparent)]
        pub struct $name$(<$of>)? {
            value: Shared<$value>,
        }

        impl$(<$of>)? $name$(<$of>)? {
            /// One that holds this.
            pub const fn new(value: $value) -> Self {
                Self { value: Shared::new(value) }
            }

            #[track_caller]
            fn stop(&self, what: What) {
                point(what, self.value.as_ptr().cast_const().cast(), Location::caller());
            }

            fn put(&self, f: impl FnOnce($value) -> $value) -> $value {
                let old = self.value.get();
                self.value.set(f(old));
                old
            }

            /// What it holds.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                check_load(order);
                self.stop(What::Load);
                self.value.get()
            }

            /// Makes it hold this.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                check_store(order);
                self.stop(What::Store);
                self.value.set(value);
            }

            /// Makes it hold this; what it held.
            #[track_caller]
            pub fn swap(&self, value: $value, _order: Ordering) -> $value {
                self.stop(What::Swap);
                self.put(|_| value)
            }

            /// Makes it hold `new` if it holds `current`. What it held.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                _success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                check_load(failure);
                self.stop(What::Swap);
                let old = self.value.get();
                if old != current {
                    return Err(old);
                }
                self.value.set(new);
                Ok(old)
            }

            /// As [`compare_exchange`](Self::compare_exchange): it does not fail without a reason.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// Makes it hold what `f` makes of what it holds, as often as others come between.
            #[track_caller]
            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                mut f: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut held = self.load(fetch);
                while let Some(new) = f(held) {
                    match self.compare_exchange_weak(held, new, set, fetch) {
                        Ok(old) => return Ok(old),
                        Err(now) => held = now,
                    }
                }
                Err(held)
            }

            /// What it holds, for its only owner.
            pub fn get_mut(&mut self) -> &mut $value {
                self.value.get_mut()
            }

            /// What it held.
            pub fn into_inner(self) -> $value {
                self.value.into_inner()
            }

            /// Where the value is.
            pub fn as_ptr(&self) -> *mut $value {
                self.value.as_ptr()
            }
        }

        impl$(<$of>)? From<$value> for $name$(<$of>)? {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }

        impl$(<$of>)? fmt::Debug for $name$(<$of>)? {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                fmt::Debug::fmt(&self.value.get(), f)
            }
        }
    };
}

macro_rules! fetch {
    ($value:ty: $($name:ident $text:literal |$a:ident, $b:ident| $result:expr;)*) => {
        $(
            #[doc = concat!("Makes it hold ", $text, "; what it held.")]
            #[track_caller]
            pub fn $name(&self, value: $value, _order: Ordering) -> $value {
                self.stop(What::Swap);
                self.put(|$a| {
                    let $b = value;
                    $result
                })
            }
        )*
    };
}

macro_rules! integer {
    ($($name:ident $value:ident;)*) => {
        $(
            atomic!($name, $value);

            impl $name {
                fetch! {
                    $value:
                    fetch_add "the sum, which wraps" |a, b| a.wrapping_add(b);
                    fetch_sub "the difference, which wraps" |a, b| a.wrapping_sub(b);
                    fetch_and "the bits of both" |a, b| a & b;
                    fetch_nand "the complement of the bits of both" |a, b| !(a & b);
                    fetch_or "the bits of either" |a, b| a | b;
                    fetch_xor "the bits of one alone" |a, b| a ^ b;
                    fetch_max "the greater" |a, b| a.max(b);
                    fetch_min "the less" |a, b| a.min(b);
                }
            }

            impl Default for $name {
                fn default() -> Self {
                    Self::new(0)
                }
            }
        )*
    };
}

integer! {
    AtomicI8 i8; AtomicU8 u8; AtomicI16 i16; AtomicU16 u16; AtomicI32 i32; AtomicU32 u32;
    AtomicI64 i64; AtomicU64 u64; AtomicIsize isize; AtomicUsize usize;
}

atomic!(AtomicBool, bool);

impl AtomicBool {
    fetch! {
        bool:
        fetch_and "whether both are true" |a, b| a & b;
        fetch_nand "whether not both are true" |a, b| !(a & b);
        fetch_or "whether either is true" |a, b| a | b;
        fetch_xor "whether they differ" |a, b| a ^ b;
    }

    /// Makes it hold the opposite; what it held.
    #[track_caller]
    pub fn fetch_not(&self, order: Ordering) -> bool {
        self.fetch_xor(true, order)
    }
}

impl Default for AtomicBool {
    fn default() -> Self {
        Self::new(false)
    }
}

atomic!(AtomicPtr<T>, *mut T);

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}
