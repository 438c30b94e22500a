//! Lock-free and blocking code as it is written for threads, with `use spelunk_guest::sync` in the place of `std`. Each feature is a
//! guest; with `bug` it has the mistake that is known of it, and
//! with `relaxed` it lacks an order.

#![forbid(unsafe_code)]
// One of the modules is the guest.
#![allow(dead_code)]

#[cfg(feature = "random")]
mod apart;
#[cfg(feature = "async_mutex")]
mod async_mutex;
#[cfg(feature = "bakery")]
mod bakery;
#[cfg(feature = "counters")]
mod counters;
#[cfg(feature = "ending")]
mod ending;
#[cfg(feature = "failing")]
mod failing;
#[cfg(feature = "files")]
mod files;
#[cfg(feature = "handles")]
mod handles;
#[cfg(feature = "harness")]
mod harness;
#[cfg(feature = "initialized")]
mod initialized;
#[cfg(feature = "litmus")]
mod litmus;
#[cfg(feature = "locks")]
mod locks;
#[cfg(feature = "moved")]
mod moved;
#[cfg(feature = "mutexes")]
mod mutexes;
#[cfg(feature = "once")]
mod once;
#[cfg(feature = "outside")]
mod outside;
#[cfg(feature = "peterson")]
mod peterson;
#[cfg(feature = "poll")]
mod poll;
#[cfg(feature = "litmus")]
mod programs;
#[cfg(feature = "publish")]
mod publish;
#[cfg(feature = "queue")]
mod queue;
#[cfg(feature = "random")]
mod random;
#[cfg(feature = "scope")]
mod scope;
#[cfg(feature = "stack")]
mod stack;
#[cfg(feature = "stale")]
mod stale;
#[cfg(feature = "ticket")]
mod ticket;
#[cfg(feature = "timeout")]
mod timeout;
#[cfg(feature = "treiber")]
mod treiber;
#[cfg(feature = "wakeup")]
mod wakeup;

#[cfg(feature = "litmus")]
use spelunk_guest::sync;
