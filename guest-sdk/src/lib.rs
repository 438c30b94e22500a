//! Harnesses for Spelunk that read like Hypothesis' stateful tests.
//!
//! A **harness** says what can be done with the code under test and what must always hold. Spelunk runs it
//! as WebAssembly, in every order it can think of, and reports the shortest story in which something breaks.
//!
//! ```
//! use spelunk_guest::prelude::*;
//!
//! fault!(pub DISK_FULL, "disk_full");
//!
//! #[derive(Default)]
//! struct Till {
//!     coins: Vec<u32>,
//!     total: u32,
//! }
//!
//! #[harness]
//! impl Till {
//!     #[rule]
//!     fn put(&mut self, #[draw(sampled_from([1, 2, 5]))] coin: u32) {
//!         self.coins.push(coin);
//!         if !DISK_FULL.is_active() {
//!             self.total += coin;
//!         }
//!     }
//!
//!     #[rule]
//!     #[precondition(!self.coins.is_empty())]
//!     fn take(&mut self, #[draw(0..self.coins.len())] place: usize) {
//!         self.total -= self.coins.remove(place);
//!         sometimes!(self.coins.is_empty(), "the till is emptied");
//!     }
//!
//!     #[invariant]
//!     fn conserved(&self) {
//!         let counted: u32 = self.coins.iter().sum();
//!         assert!(self.total == counted, "total is {}, expected {counted}", self.total);
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! Make it a library with `crate-type = ["cdylib"]`, build it for `wasm32-unknown-unknown`, and run
//! `spelunk explore`. The answer:
//!
//! ```text
//! FAIL  invariant conserved: total is 0, expected 1
//!   1  fault disk_full on
//!   2  put         coin=1
//! ```
//!
//! # What a harness is made of
//!
//! - [`#[harness]`](macro@harness) marks rules, preconditions, invariants, setup and teardown.
//! - A [`Strategy`] says how a value is drawn. It stands in a `#[draw]`, or in [`draw`] anywhere in a rule or
//!   in the code below it: a fake disk may draw whether it fails. Every value is made of *choices* that the
//!   explorer knows, so that it can repeat, vary and simplify them.
//! - [`fault!`] declares what the explorer may break, [`Fault::is_active`] asks whether it has.
//! - [`always!`], [`sometimes!`], [`reachable!`] and [`never!`] are properties, to be stated in the code under
//!   test. Those that were never reached are reported.
//! - [`eventually!`], [`always_eventually!`] and [`leads_to!`] are properties of runs without end, to be stated in an
//!   invariant. `spelunk check` judges them.
//! - A [`Pool`] holds what rules make, for others to use.
//! - A [`Bag`] holds the messages between simulated nodes, to be delivered in any order.
//! - [`assume`] gives up a run that does not count, [`fail!`] ends it as a finding, [`note!`] adds a line to
//!   the story, [`target`] and [`observe`] say where it gets interesting, and [`event!`] counts what happens.
//!
//! # Strategies
//!
//! | strategy | draws | simplest |
//! |---|---|---|
//! | `0..=100`, `1..`, `..5u128` | integers | the nearest to 0 |
//! | `0.0..1.0`, [`floats`] | floats; with NaN and infinities where that is said | the nearest to 0 |
//! | `Duration::ZERO..Duration::from_secs(1)` | durations | the shortest |
//! | `'a'..='z'`, `'a'..` | characters | the first |
//! | [`boolean`], [`weighted`] | `true` or `false` | `false` |
//! | [`just`], [`sampled_from`], [`permutation`] | a value, one of several, all in some order | the first, the order that is given |
//! | [`one_of()`], [`one_of!`], [`weighted_one_of`] | what one of several strategies draws | of the first |
//! | [`option`], [`result`] | `None` or `Some`, `Ok` or `Err` | `None`, `Ok` |
//! | [`text`], a string as `"[a-c]{2}"` in a `#[draw]`, [`matching`] | text of letters, or of a form | the shortest, of the first letters |
//! | [`bytes`], [`vec()`], [`set`], [`map`] | collections | the shortest |
//! | tuples and arrays of strategies | a value of each | of each |
//! | [`composite`], [`recursive`] and the methods of [`Strategy`] | what is made of drawn values | |
//! | [`any`], and an argument without `#[draw]` | any value of a type: numbers, text, collections, times, addresses, paths, ranges, cells, locks and the like of `std`, and types that [derive](derive@Arbitrary) it | 0, empty, the first variant |
//! | [`from_arbitrary!`], [`from_proptest!`] | what these crates make of bytes | what they make of none |
//!
//! # To check everything
//!
//! `spelunk check` runs a harness, or a single function marked [`#[check]`](macro@check), with every answer that
//! its choices can have, and says that it holds, or fails.
//!
//! ```
//! use spelunk_guest::prelude::*;
//!
//! #[check]
//! fn coins() {
//!     if flip() {
//!         assert!(roll(6) < 6);
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! - [`flip`], [`roll`], [`choose`] and [`choose_from`] are choices by themselves. They are tried in order, `false`
//!   and the first alternative first. Any other strategy will do whose values are not too many.
//! - [`sync`] has the threads, atomics and locks of `std`, of which it tries every interleaving.
//! - [`task`] runs asynchronous code in every interleaving, on a clock of its own.
//! - [`alloc_can_fail`] lets allocations fail, each in turn.
//! - Equal states are explored once. The allocator of this crate helps: it wipes what is freed. A harness may also
//!   say what is to be compared, by a method marked `#[state]`, and which rules commute
//!   (see [`#[harness]`](macro@harness)).
//! - A [`Scalar`] is one of several interchangeable ids: states are equal whoever is who.
//!
//! # Features
//!
//! `allocator`, on by default, makes the allocator of this crate that of the guest. A guest that brings
//! its own, or links a C library with a `malloc`, turns it off (`default-features = false`). `alloc_can_fail` goes with it.
//! In a build for WASI, it is the allocator of WASI's libc, with what is freed wiped.
//!
//! # WASI
//!
//! Code that needs a clock, files or random numbers of the system is built for `wasm32-wasip1` instead, and Spelunk gets the
//! `.wasm`. A harness stays as it is.
//!
//! # Native builds
//!
//! Code that uses faults and properties builds and runs everywhere: outside WebAssembly no fault is ever
//! active and properties do nothing. To draw there is a panic that says so. The module `native` runs a harness there, as a part of a
//! test: what it draws is answered by a trace or drawn. A WebAssembly build always
//! imports from Spelunk, so it is one for exploration and not one to ship.
//!
//! This crate is a thin layer over the page `guest-sdk/ABI.md`, and depends on nothing but its macros.

#![deny(missing_docs)]

// The macros write `::spelunk_guest`, here too.
extern crate self as spelunk_guest;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(target_family = "wasm")]
mod abi;
#[cfg(all(not(target_family = "wasm"), not(test)))]
#[path = "native/abi.rs"]
mod abi;
#[cfg(all(not(target_family = "wasm"), test))]
#[path = "script.rs"]
mod abi;

mod alternative;
mod arbitrary;
mod bag;
mod character;
mod check;
mod choose;
mod class;
mod collections;
mod fault;
mod float;
mod guidance;
mod harness;
#[cfg(any(all(feature = "allocator", target_family = "wasm", not(target_os = "wasi")), test))]
mod heap;
mod interop;
mod matching;
#[cfg(any(feature = "allocator", test))]
mod memory;
#[cfg(not(target_family = "wasm"))]
pub mod native;
mod number;
mod outcome;
mod panic;
mod pattern;
mod pool;
mod property;
mod recursive;
mod sample;
mod scalar;
mod shown;
mod state;
mod strategy;
pub mod sync;
pub mod task;
mod text;

pub use alternative::{
    Just, OneOf, OptionOf, ResultOf, Weighted, WeightedOneOf, boolean, just, one_of, option, result,
    weighted, weighted_one_of,
};
pub use arbitrary::{Any, Arbitrary, any};
pub use bag::Bag;
pub use character::Alphabet;
pub use choose::{choose, choose_from, flip, roll};
pub use collections::{Bytes, MapOf, SetOf, Size, UniqueBy, VecOf, bytes, map, set, vec};
pub use fault::Fault;
pub use float::{Float, Floats, floats};
pub use guidance::{observe, target, target_label};
pub use harness::RuleResult;
pub use matching::{Matching, matching};
#[cfg(feature = "allocator")]
pub use memory::{alloc_can_fail, alloc_cannot_fail};
pub use number::Number;
pub use outcome::assume;
pub use pool::{Pool, Produced};
pub use recursive::{Recursive, recursive};
pub use sample::{Permutation, SampledFrom, Samples, permutation, sampled_from};
pub use scalar::{PerScalar, Scalar, ScalarIter, ScalarSet, symmetric};
pub use spelunk_guest_macros::{Arbitrary, State, check, harness, threads};
pub use state::State;
pub use strategy::{Boxed, Composite, Filter, FlatMap, Map, Strategy, composite, draw};
pub use text::{Text, text};

/// Everything a harness needs: `use spelunk_guest::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Arbitrary, Bag, Boxed, Fault, PerScalar, Pool, Scalar, ScalarSet, State, Strategy, any, assume,
        boolean, bytes, choose, choose_from, composite, draw, flip, floats, just, map, matching, observe,
        one_of, option, permutation, recursive, result, roll, sampled_from, set, symmetric, target,
        target_label, text, vec, weighted, weighted_one_of,
    };
    #[cfg(feature = "allocator")]
    pub use crate::{alloc_can_fail, alloc_cannot_fail};
    pub use crate::{
        always, always_eventually, check, event, eventually, fail, fault, harness, leads_to, never, note,
        reachable, sometimes,
    };
}

/// What the macros of this crate write calls to. Not for use by hand: it may change at any time.
#[doc(hidden)]
pub mod __private {
    pub use crate::abi::{
        always, always_eventually, eventually, fail, leads_to, never, reachable, sometimes, verbose,
    };
    pub use crate::arbitrary::{structure, variant};
    pub use crate::check::check;
    pub use crate::guidance::event;
    pub use crate::harness::{
        Copies, Copying, NoCopies, RuleResult, Slot, any_argument, argument, describe, if_told, way,
    };
    pub use crate::interop::{INPUT_MAX, endless, from_bytes};
    pub use crate::outcome::{fail_with, note};
    pub use crate::pool::{produce, taken};
    pub use crate::property::declaration;
    pub use crate::shown::{ByDebug, ByParts, NoDebug, NoParts, Show, path};
    pub use crate::state::{ByHash, ByMemory, ByState, NotClone, NotHash, NotState, Tell, Told, state};
    pub use crate::strategy::spanned;
    #[cfg(target_family = "wasm")]
    pub use crate::sync::begin;
}
