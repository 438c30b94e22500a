//! Asynchronous tasks on one thread, of which the explorer chooses who runs next.
//!
//! Where several tasks can go on, which one does is a choice among them, in the order of their numbers. So an
//! exhaustive check runs every interleaving, and a finding shows the one that breaks.
//!
//! ```
//! use std::rc::Rc;
//! use spelunk_guest::task::{self, Mutex};
//! use spelunk_guest::prelude::*;
//!
//! #[check]
//! fn two_locks() {
//!     let (a, b) = (Rc::new(Mutex::new(1)), Rc::new(Mutex::new(2)));
//!     task::run(async move {
//!         let (a2, b2) = (a.clone(), b.clone());
//!         task::spawn(async move {
//!             let first = a.lock().await;
//!             assert_eq!(*first + *b.lock().await, 3);
//!         })
//!         .named("left");
//!         task::spawn(async move {
//!             let first = b2.lock().await;
//!             assert_eq!(*first + *a2.lock().await, 3);
//!         })
//!         .named("right");
//!     });
//! }
//! # fn main() {}
//! ```
//!
//! ```text
//! FAIL  deadlock: a choice among nothing: no alternative is left
//!   1  check
//!        main runs
//!        left runs
//!        right runs
//!        left runs
//!        …
//!        deadlock: left waits at src/lib.rs:11:41 for a mutex that right holds
//!        deadlock: right waits at src/lib.rs:16:43 for a mutex that left holds
//! ```
//!
//! # Where a task may be interrupted
//!
//! What lies between two awaits is one step, as on one thread. The awaits at which others may go first are
//! [`Mutex::lock`], the channels' `send` and `recv`, and [`yield_now`]: there the task stops, and can go on when the
//! mutex is free, there is room, or there is a message. That is every interleaving of tasks that
//! share nothing else, on several threads too; where they share more, put a [`yield_now`] before it is touched. To
//! await what has come to its end already, as a [`JoinHandle`] or the answer of a [`oneshot`], does not stop.
//!
//! A task that waits for a mutex can go on as long as that is free, and cannot once another took it, so there are no
//! choices but those that matter. Who gets a mutex, or room in a channel, is the choice of who runs: no order of
//! arrival is kept. Where one task alone can go on there is no choice, and none is made; it stops all the same, since
//! futures that it polls together come between one another.
//!
//! # Time
//!
//! The clock stands still while a task can go on. When none can, it goes to the next instant at which a [`sleep`]
//! ends, and wakes all that end there.
//!
//! # The end
//!
//! [`run`] returns when all tasks have come to their ends. If none can go on and no `sleep` is left, that is a
//! finding, a deadlock, which notes what each of them waits for.
//!
//! Any future may be awaited that is content with one thread and no reactor, as those of the crate `futures`; but what
//! draws random numbers, as its `select!`, is not deterministic: use `select_biased!`.
//!
//! # Steps
//!
//! In a harness [`step`] lets one task go on, so that each decision is a step of its own: states between them are
//! compared, and invariants are checked. A rule that is `#[fair(each)]` is fair to each task. What this module keeps is
//! the same in equal states, but what the compiler keeps of an `async` block need not be: where too many states
//! differ, let a `#[state]` say what counts.
//!
//! ```
//! use spelunk_guest::prelude::*;
//! use spelunk_guest::task;
//!
//! struct Workers;
//!
//! #[harness]
//! impl Workers {
//!     #[setup]
//!     fn new() -> Workers {
//!         (0..3).for_each(|_| drop(task::spawn(async { task::yield_now().await })));
//!         Workers
//!     }
//!
//!     #[rule]
//!     #[precondition(!task::all_are_done())]
//!     fn step(&mut self) {
//!         task::step();
//!     }
//! }
//! # fn main() {}
//! ```

mod channel;
mod executor;
mod gate;
mod join;
mod mutex;
pub mod oneshot;
mod set;
mod slot;
mod time;
mod turn;

pub use channel::{
    Receive, Receiver, Send, SendError, Sender, TrySendError, UnboundedSender, channel, unbounded,
};
#[cfg(target_family = "wasm")]
pub(crate) use executor::hold;
#[cfg(any(test, not(target_family = "wasm")))]
pub(crate) use executor::reset;
pub use executor::{all_are_done, run, step};
pub(crate) use executor::{begin_anew, is_any, let_go, wake};
pub use join::{JoinHandle, spawn, spawn_background};
pub use mutex::{Lock, Mutex, MutexGuard};
pub use time::{Elapsed, Sleep, now, sleep, timeout};
pub use turn::{Yield, yield_now};

#[cfg(test)]
mod tests;
