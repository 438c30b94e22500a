//! As [`std::sync::atomic`]. Each operation is a step of its own; `order.rs` says what a load may read.

use std::fmt;
use std::panic::Location;

use super::cell::Shared;
use super::order::{self, Bits, Stores};
use super::scheduler::{What, point};
use super::touch;

pub use std::sync::atomic::Ordering;

/// As [`std::sync::atomic::fence`].
#[track_caller]
pub fn fence(order: Ordering) {
    assert!(order != Ordering::Relaxed, "there is no such thing as a relaxed fence");
    let at = Location::caller();
    order::fence(order, || point(What::Fence, std::ptr::null(), at));
}

/// As [`std::sync::atomic::compiler_fence`]: nothing is put into another order here.
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
        pub struct $name$(<$of>)? {
            value: Shared<$value>,
            stores: Stores,
        }

        impl$(<$of>)? $name$(<$of>)? {
            /// One that holds this.
            pub const fn new(value: $value) -> Self {
                Self { value: Shared::new(value), stores: Stores::new() }
            }

            #[track_caller]
            fn stop(&self, what: What) {
                if <$value>::IS_ADDRESS {
                    touch::looks_at_what_is_not_told();
                }
                point(what, self.value.as_ptr().cast_const().cast(), Location::caller());
            }

            fn place(&self) -> usize {
                self.value.as_ptr().addr()
            }

            fn put(&self, f: impl FnOnce($value) -> $value, order: Ordering) -> $value {
                let old = self.value.get();
                self.stores.store(self.place(), old.to_bits(), order, true);
                self.value.set(f(old));
                old
            }

            /// What it holds.
            #[inline(always)]
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                order::exists(order);
                self.load_as(order)
            }

            #[track_caller]
            fn load_as(&self, order: Ordering) -> $value {
                check_load(order);
                self.stop(if order == Ordering::SeqCst { What::SequentialLoad } else { What::Load });
                let late = self.stores.load(self.place(), order);
                late.map_or_else(|| self.value.get(), <$value>::of_bits)
            }

            /// Makes it hold this.
            #[inline(always)]
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                order::exists(order);
                self.store_as(value, order);
            }

            #[track_caller]
            fn store_as(&self, value: $value, order: Ordering) {
                check_store(order);
                self.stop(What::Store);
                self.stores.store(self.place(), self.value.get().to_bits(), order, false);
                self.value.set(value);
            }

            /// Makes it hold this; what it held.
            #[inline(always)]
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                order::exists(order);
                self.fetch_as(order, |_| value)
            }

            #[track_caller]
            fn fetch_as(&self, order: Ordering, f: impl FnOnce($value) -> $value) -> $value {
                self.stop(What::Swap);
                self.put(f, order)
            }

            /// Makes it hold `new` if it holds `current`. What it held.
            #[inline(always)]
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                order::exists(success);
                order::exists(failure);
                let old = self.exchange(current, new, (success, failure));
                // Where the caller looks at it, so that nothing of it is left in memory.
                if old == current { Ok(old) } else { Err(old) }
            }

            #[track_caller]
            fn exchange(
                &self,
                current: $value,
                new: $value,
                (success, failure): (Ordering, Ordering),
            ) -> $value {
                check_load(failure);
                self.stop(What::Swap);
                let old = self.value.get();
                if old == current {
                    self.put(|_| new, success)
                } else {
                    self.stores.load_newest(self.place(), failure);
                    old
                }
            }

            /// As [`compare_exchange`](Self::compare_exchange): it does not fail without a reason.
            #[inline(always)]
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
            #[inline(always)]
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
                self.stores.forget();
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
                touch::also_reads(self.value.as_ptr().cast_const().cast());
                fmt::Debug::fmt(&self.value.get(), f)
            }
        }
    };
}

macro_rules! fetch {
    ($value:ty: $($name:ident $text:literal |$a:ident, $b:ident| $result:expr;)*) => {
        $(
            #[doc = concat!("Makes it hold ", $text, "; what it held.")]
            #[inline(always)]
            #[track_caller]
            pub fn $name(&self, value: $value, order: Ordering) -> $value {
                order::exists(order);
                self.fetch_as(order, |$a| {
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
    #[inline(always)]
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
