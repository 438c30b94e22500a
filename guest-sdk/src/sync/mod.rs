//! Threads, atomics and locks with the names and signatures of `std`, of which the explorer chooses who runs next.
//!
//! Code that is written for `std::sync` and `std::thread` needs another `use`, and nothing else:
//!
//! ```
//! use spelunk_guest::sync::atomic::{AtomicU32, Ordering};
//! use spelunk_guest::sync::{Arc, thread};
//!
//! #[spelunk_guest::threads]
//! fn two_threads_count() {
//!     let count = Arc::new(AtomicU32::new(0));
//!     let other = {
//!         let count = count.clone();
//!         thread::spawn(move || count.store(count.load(Ordering::SeqCst) + 1, Ordering::SeqCst))
//!     };
//!     count.store(count.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
//!     other.join().unwrap();
//!     assert_eq!(count.load(Ordering::SeqCst), 2);
//! }
//! # fn main() {}
//! ```
//!
//! `spelunk check` tries every interleaving, and this fails: both may read 0. On native targets this module is `std`'s, so that the
//! same code runs there.
//!
//! # What is a step
//!
//! A thread stops before each operation on an atomic, a lock or a channel, before what it initialized is there, before
//! [`thread::yield_now`] and [`hint::spin_loop`], and where it waits. Who goes on is a choice among those that can; it does that
//! operation, and all up to the next.
//! So in a check states are compared at each operation: threads that spin come back to a state that is known, and need no bound. A
//! thread that cannot go on, because a mutex is held or a channel is empty, is not among those that are chosen from.
//!
//! Where threads are left but none can go on, the run ends as a deadlock, and notes what each of them waits for. Threads that
//! spin for ever, although each that can go on again and again does so, are a failure of kind `liveness`: "every thread ends".
//! The run goes on after `main` until all threads have ended.
//!
//! # Orderings
//!
//! A load may read any store that the standard of C++ allows: one that others were not told of, by an order that releases and
//! one that acquires, a fence, a lock, a message, or the end of a thread, may be seen late. Which one is a choice, the newest first. So a `Relaxed`
//! that should be a `Release`, and a barrier that is missing, are found. Some things are left out:
//!
//! - Stores of one place are seen in the order in which they are executed, and no store is read before that.
//! - What is `SeqCst` is so in the order in which it is executed. The standard also allows another order where an operation that is
//!   `Relaxed` told a thread of a store: a `SeqCst` load after it may then come before that store's. A missing `Acquire` is found if that load is
//!   less than `SeqCst`.
//! - The 8 stores before the newest are kept. A thread reads the same store twice in a row, at most, though there is a newer one, and what it
//!   read late it sees once it yields: so every loop ends that waits for a store.
//! - A `compare_exchange` that fails has read the newest store, and a `try_recv` that finds nothing has looked at the newest messages.
//!
//! Where all is `SeqCst` this costs nothing.
//!
//! With `check --reduce` orders of operations are left out that touch nothing in common; `docs/threads.md` says what it needs.
//!
//! # What is not like on a machine
//!
//! - What threads share beside this module is touched without a stop, and is never seen late. It must not be a data race: use atomics
//!   or locks.
//! - `Arc` is that of `std`: to drop one, or to ask how many there are, is no operation and tells nothing. What depends on `try_unwrap`,
//!   `get_mut` or `strong_count`, or on what the last owner sees, is not explored.
//! - A `compare_exchange_weak` does not fail without a reason, and a [`Condvar`] or [`thread::park`] does not wake without one. Time passes
//!   in no way that can be relied on: a wait with a timeout may time out at any moment, and [`thread::sleep`] is a yield.
//! - A `try_send` to a channel without room finds it full, whether somebody waits for a message or not.
//! - No lock prefers writers: a second `read` of the same thread is not a deadlock.
//! - The last operation of a thread, where it has any, and its end are one step, as `is_finished` sees them. The number of a thread
//!   that has ended is used again, also as `ThreadId`, once nobody has its handle or its [`thread::Thread`].
//! - A panic ends the run, as a failure. So no mutex is ever poisoned.
//! - A thread has 252 KiB of stack, whatever [`thread::Builder::stack_size`] asks for.
//! - One thread runs tasks: [`task::run`](crate::task::run) is not for two at a time.
//! - `thread_local!` of `std` is one for all threads.
//!
//! # In a harness
//!
//! [`step`] lets one thread go on. What is called outside of threads, as in a setup or an invariant, does not stop; where it would
//! have to wait, the run ends as a failure.
//!
//! ```
//! use spelunk_guest::prelude::*;
//! use spelunk_guest::sync::{self, Arc, Mutex, thread};
//!
//! struct Counting(Arc<Mutex<u32>>);
//!
//! #[harness]
//! impl Counting {
//!     #[setup]
//!     fn new() -> Counting {
//!         let total = Arc::new(Mutex::new(0));
//!         for _ in 0..2 {
//!             let total = total.clone();
//!             thread::spawn(move || *total.lock().unwrap() += 1);
//!         }
//!         Counting(total)
//!     }
//!
//!     #[rule]
//!     #[precondition(!sync::all_are_done())]
//!     fn run(&mut self) {
//!         sync::step();
//!     }
//!
//!     #[terminal]
//!     fn is_over(&self) -> bool {
//!         sync::all_are_done()
//!     }
//!
//!     #[teardown]
//!     fn end(self) {
//!         if sync::all_are_done() {
//!             assert_eq!(*self.0.lock().unwrap(), 2);
//!         }
//!     }
//! }
//! # fn main() {}
//! ```

#[cfg(target_family = "wasm")]
pub mod atomic;
#[cfg(target_family = "wasm")]
mod barrier;
#[cfg(target_family = "wasm")]
mod cell;
#[cfg(target_family = "wasm")]
mod condvar;
#[cfg(target_family = "wasm")]
pub mod hint;
#[cfg(target_family = "wasm")]
pub mod mpsc;
#[cfg(target_family = "wasm")]
mod mutex;
#[cfg(target_family = "wasm")]
mod once;
#[cfg(target_family = "wasm")]
mod order;
#[cfg(target_family = "wasm")]
mod rwlock;
#[cfg(target_family = "wasm")]
mod scheduler;
#[cfg(target_family = "wasm")]
mod stack;
#[cfg(target_family = "wasm")]
pub mod thread;
#[cfg(target_family = "wasm")]
mod touch;

#[cfg(target_family = "wasm")]
pub use self::{
    barrier::{Barrier, BarrierWaitResult},
    condvar::{Condvar, WaitTimeoutResult},
    mutex::{Mutex, MutexGuard},
    once::{LazyLock, Once, OnceLock},
    rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard},
    scheduler::{all_are_done, step},
};
#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub use scheduler::begin;
#[cfg(target_family = "wasm")]
pub(crate) use scheduler::is_any;
#[cfg(target_family = "wasm")]
pub use std::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult, Weak};

#[cfg(not(target_family = "wasm"))]
mod native;
#[cfg(not(target_family = "wasm"))]
pub use native::*;
