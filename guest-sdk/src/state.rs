//! The state of a harness, for a check to compare in place of the memory.

mod order;
pub(crate) mod shared;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, LinkedList, VecDeque};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::{NonZero, Wrapping};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU8, AtomicU16, AtomicU32,
    AtomicU64, AtomicUsize, Ordering,
};
use std::sync::{Mutex, PoisonError, RwLock, TryLockError};
use std::time::Duration;

use order::{in_any_order, in_order};

use crate::scalar::{canonical, record};
use crate::{Bag, Pool, abi, sync, task};

/// Bytes that go to the host at once: with their length, some of the blocks that it hashes.
const BUFFER: usize = 504;
/// A value that asks for the hash of what was written so far would be told apart by that, which only the host makes.
const NO_HASH: &str = "`Hash` and `State` may write to this hasher, and not `finish` it: write the parts of the value, or hash them with a hasher of your own";

/// A type whose values are told apart by what they hold, and not by where or how.
///
/// `spelunk check` compares states of a harness that is `State`, or `Hash`, by this in place of the memory. It is there for the types
/// of the standard library that are not `Hash` too: hash tables, floats by their bits, what is behind cells, locks and pointers, and which
/// `Rc` and `Arc` share that. Of a hash table the order does not count: what depends on it, as which entry `keys().next()` gives, is for
/// a check the same in states that have the same entries.
///
/// ```
/// use std::collections::HashMap;
/// use spelunk_guest::prelude::*;
///
/// #[derive(Default, State)]
/// struct Cache {
///     entries: HashMap<String, f64>,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "values of `{Self}` cannot be told apart by what they hold",
    note = "write `#[derive(State)]` on it. `#[derive(Hash)]` does as well, but not behind an `Rc` or `Arc`: who shares a value is told by `State` alone"
)]
pub trait State {
    /// Gives all that tells values apart to a hasher.
    fn state<H: Hasher>(&self, hasher: &mut H);

    /// Describes its parts where a finding is reported, each by its name below `path`; whether it has any.
    #[doc(hidden)]
    fn describe_parts(&self, _path: &str) -> bool {
        false
    }
}

/// As [`Hash`] does it.
macro_rules! as_hash {
    ($($ty:ty,)*) => {
        $(impl State for $ty {
            fn state<H: Hasher>(&self, hasher: &mut H) {
                self.hash(hasher);
            }
        })*
    };
}

as_hash! {
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, bool, char, str, String, (), Duration,
    std::cmp::Ordering, NonZero<u8>, NonZero<u16>, NonZero<u32>, NonZero<u64>, NonZero<u128>, NonZero<usize>, NonZero<i8>,
    NonZero<i16>, NonZero<i32>, NonZero<i64>, NonZero<i128>, NonZero<isize>,
}

/// As the value that a method gives.
macro_rules! as_given {
    ($($ty:ty, $value:ident => $given:expr;)*) => {
        $(impl State for $ty {
            fn state<H: Hasher>(&self, hasher: &mut H) {
                let $value = self;
                $given.state(hasher);
            }
        })*
    };
}

as_given! {
    f32, float => float.to_bits();
    f64, float => float.to_bits();
    AtomicBool, atomic => atomic.load(Ordering::Relaxed);
    AtomicU8, atomic => atomic.load(Ordering::Relaxed);
    AtomicU16, atomic => atomic.load(Ordering::Relaxed);
    AtomicU32, atomic => atomic.load(Ordering::Relaxed);
    AtomicU64, atomic => atomic.load(Ordering::Relaxed);
    AtomicUsize, atomic => atomic.load(Ordering::Relaxed);
    AtomicI8, atomic => atomic.load(Ordering::Relaxed);
    AtomicI16, atomic => atomic.load(Ordering::Relaxed);
    AtomicI32, atomic => atomic.load(Ordering::Relaxed);
    AtomicI64, atomic => atomic.load(Ordering::Relaxed);
    AtomicIsize, atomic => atomic.load(Ordering::Relaxed);
}

/// As what is behind it.
macro_rules! as_behind {
    ($($ty:ty, $value:ident => $behind:expr;)*) => {
        $(impl<T: State + ?Sized> State for $ty {
            fn state<H: Hasher>(&self, hasher: &mut H) {
                let $value = self;
                $behind.state(hasher);
            }
        })*
    };
}

as_behind! {
    &T, value => **value;
    &mut T, value => **value;
    Box<T>, value => **value;
    Mutex<T>, mutex => *mutex.lock().unwrap_or_else(PoisonError::into_inner);
}

/// Stands before what is read for good: a guard was forgotten, and nobody may write.
const IS_READ: &[u8] = b"a guard was forgotten";

impl<T: State + ?Sized> State for RefCell<T> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        if self.try_borrow_mut().is_err() {
            hasher.write(IS_READ);
        }
        self.borrow().state(hasher);
    }
}

impl<T: State + ?Sized> State for RwLock<T> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        if let Err(TryLockError::WouldBlock) = self.try_write() {
            hasher.write(IS_READ);
        }
        self.read().unwrap_or_else(PoisonError::into_inner).state(hasher);
    }
}

/// As what is behind it, and with whom it shares that.
macro_rules! as_shared {
    ($($pointer:ident,)*) => {
        $(impl<T: State + ?Sized> State for $pointer<T> {
            fn state<H: Hasher>(&self, hasher: &mut H) {
                let Some((number, is_first)) = shared::number($pointer::as_ptr(self).cast::<()>().addr())
                else {
                    return (**self).state(hasher);
                };
                if record::is_recorded::<H>() {
                    return record::behind(number, is_first.then_some(|| (**self).state(hasher)));
                }
                hasher.write_usize(number);
                if is_first {
                    (**self).state(hasher);
                }
            }
        })*
    };
}

as_shared! { Rc, Arc, }

impl<T: State + Copy> State for Cell<T> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        self.get().state(hasher);
    }
}

impl<T: State> State for Wrapping<T> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        self.0.state(hasher);
    }
}

impl<T: State> State for Reverse<T> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        self.0.state(hasher);
    }
}

impl<T: ?Sized> State for PhantomData<T> {
    fn state<H: Hasher>(&self, _: &mut H) {}
}

impl<T: State> State for Option<T> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u8(self.is_some().into());
        if let Some(value) = self {
            value.state(hasher);
        }
    }
}

impl<T: State, E: State> State for Result<T, E> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u8(self.is_ok().into());
        match self {
            Ok(value) => value.state(hasher),
            Err(error) => error.state(hasher),
        }
    }
}

impl<T: State, const N: usize> State for [T; N] {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        self.iter().for_each(|value| value.state(hasher));
    }
}

macro_rules! collections {
    ($($ty:ty,)*) => {
        $(impl<T: State> State for $ty {
            fn state<H: Hasher>(&self, hasher: &mut H) {
                in_order(self.iter(), hasher);
            }
        })*
    };
}

collections! { [T], Vec<T>, VecDeque<T>, LinkedList<T>, BTreeSet<T>, Pool<T>, Bag<T>, }

impl<K: State, V: State> State for BTreeMap<K, V> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        in_order(self.iter(), hasher);
    }
}

impl<T: State, S> State for HashSet<T, S> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        in_any_order(self.iter(), hasher);
    }
}

impl<K: State, V: State, S> State for HashMap<K, V, S> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        in_any_order(self.iter(), hasher);
    }
}

macro_rules! tuples {
    ($(($($part:ident)*))*) => {
        $(impl<$($part: State),*> State for ($($part,)*) {
            fn state<HASHER: Hasher>(&self, hasher: &mut HASHER) {
                #[allow(non_snake_case)]
                let ($($part,)*) = self;
                $($part.state(hasher);)*
            }
        })*
    };
}

tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H) }

/// What is known of how values of a type are told apart.
pub struct Told<T: ?Sized>(PhantomData<T>);

/// That they are not `Hash`.
pub trait NotHash {
    #[doc(hidden)]
    const BY_HASH: bool = false;
}

impl<T: ?Sized> NotHash for Told<T> {}

/// That they are not `State`.
pub trait NotState {
    #[doc(hidden)]
    const BY_STATE: bool = false;
}

impl<T: ?Sized> NotState for Told<T> {}

/// That they are `State`: an inherent constant is taken before that of a trait.
impl<T: State + ?Sized> Told<T> {
    #[doc(hidden)]
    pub const BY_STATE: bool = true;
}

/// That they are `Hash`.
impl<T: Hash + ?Sized> Told<T> {
    #[doc(hidden)]
    pub const BY_HASH: bool = true;
}

/// That they are not `Clone`.
pub trait NotClone {
    #[doc(hidden)]
    const CLONES: bool = false;
}

impl<T: ?Sized> NotClone for Told<T> {}

/// That they are `Clone`.
impl<T: Clone> Told<T> {
    #[doc(hidden)]
    pub const CLONES: bool = true;
}

/// A value that gives what tells it apart in the best way that there is: by the method of the trait for which fewest references are taken
/// off.
pub struct Tell<'v, T: ?Sized>(pub &'v T);

/// By [`State`].
pub trait ByState {
    #[doc(hidden)]
    fn tell<H: Hasher>(&self, hasher: &mut H);
    /// Hands it to the host; whether that is all that there is. Where it `is_symmetric`, interchangeable ids are not told apart.
    #[doc(hidden)]
    fn send(&self, is_symmetric: bool) -> bool;
}

/// By [`Hash`].
pub trait ByHash {
    #[doc(hidden)]
    fn tell<H: Hasher>(&self, hasher: &mut H);
    #[doc(hidden)]
    fn send(&self, is_symmetric: bool) -> bool;
}

/// By nothing: the memory is compared.
pub trait ByMemory {
    #[doc(hidden)]
    fn send(&self, _is_symmetric: bool) -> bool {
        false
    }
}

impl<T: State + ?Sized> ByState for &&Tell<'_, T> {
    fn tell<H: Hasher>(&self, hasher: &mut H) {
        self.0.state(hasher);
    }

    fn send(&self, is_symmetric: bool) -> bool {
        send_all(&StateOf(self.0), is_symmetric)
    }
}

impl<T: Hash + ?Sized> ByHash for &Tell<'_, T> {
    fn tell<H: Hasher>(&self, hasher: &mut H) {
        self.0.hash(hasher);
    }

    fn send(&self, is_symmetric: bool) -> bool {
        send_all(&HashOf(self.0), is_symmetric)
    }
}

impl<T: ?Sized> ByMemory for Tell<'_, T> {}

/// What can be given to a hasher, as often as wanted.
pub(crate) trait Content {
    fn give<H: Hasher>(&self, hasher: &mut H);
}

struct StateOf<'v, T: ?Sized>(&'v T);

struct HashOf<'v, T: ?Sized>(&'v T);

impl<T: State + ?Sized> Content for StateOf<'_, T> {
    fn give<H: Hasher>(&self, hasher: &mut H) {
        shared::told_apart(|| self.0.state(hasher));
    }
}

impl<T: Hash + ?Sized> Content for HashOf<'_, T> {
    fn give<H: Hasher>(&self, hasher: &mut H) {
        self.0.hash(hasher);
    }
}

/// Hands all that there is to the host, but where there are tasks or threads, of which only the memory tells; whether it did.
fn send_all(content: &impl Content, is_symmetric: bool) -> bool {
    let is_all = !task::is_any() && !sync::is_any();
    if is_all {
        send(content, is_symmetric);
    }
    is_all
}

fn send(content: &impl Content, is_symmetric: bool) {
    let mut stream = Stream { bytes: [0; BUFFER], len: 0 };
    match is_symmetric && canonical::is_needed() {
        true => stream.write(&canonical::canonical(content)),
        false => content.give(&mut stream),
    }
    stream.send();
}

/// Hands what a value hashes to the host.
#[doc(hidden)]
pub fn state(value: impl Hash, is_symmetric: bool) {
    send(&HashOf(&value), is_symmetric);
}

/// A hasher that keeps the bytes.
#[derive(Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        panic!("{NO_HASH}")
    }
}

/// A hasher that hashes nothing, and sends the bytes to the host.
struct Stream {
    bytes: [u8; BUFFER],
    len: usize,
}

impl Stream {
    /// As `write`, of as many bytes as the compiler knows: they are stored in place, where others take a call.
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        let end = self.len.wrapping_add(N);
        let Some(room) = self.bytes.get_mut(self.len..end) else { return self.write(&bytes) };
        room.copy_from_slice(&bytes);
        self.len = end;
    }

    fn send(&mut self) {
        if self.len > 0 {
            abi::state(&self.bytes[..self.len]);
            self.len = 0;
        }
    }
}

impl Hasher for Stream {
    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.len == BUFFER {
                self.send();
            }
            let (now, later) = bytes.split_at(bytes.len().min(BUFFER - self.len));
            self.bytes[self.len..][..now.len()].copy_from_slice(now);
            self.len += now.len();
            bytes = later;
        }
    }

    #[inline(always)]
    fn write_u8(&mut self, value: u8) {
        self.put([value]);
    }

    #[inline(always)]
    fn write_u16(&mut self, value: u16) {
        self.put(value.to_ne_bytes());
    }

    #[inline(always)]
    fn write_u32(&mut self, value: u32) {
        self.put(value.to_ne_bytes());
    }

    #[inline(always)]
    fn write_u64(&mut self, value: u64) {
        self.put(value.to_ne_bytes());
    }

    #[inline(always)]
    fn write_u128(&mut self, value: u128) {
        self.put(value.to_ne_bytes());
    }

    #[inline(always)]
    fn write_usize(&mut self, value: usize) {
        self.put(value.to_ne_bytes());
    }

    fn finish(&self) -> u64 {
        panic!("{NO_HASH}")
    }
}

#[cfg(test)]
mod tests;
