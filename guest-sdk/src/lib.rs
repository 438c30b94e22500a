//! Harnesses for Spelunk that read like Hypothesis' stateful tests.
//!
//! A **harness** says what can be done with the code under test and what must always hold. Spelunk runs it
//! as WebAssembly, in every order it can think of, and tells the shortest story in which something breaks.
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
//! - [`assume`] gives up a run that does not count, [`fail!`] ends it as a finding, [`note!`] adds a line to
//!   the story.
//!
//! # Native builds
//!
//! Code that uses faults and properties builds and runs everywhere: outside WebAssembly no fault is ever
//! active and properties do nothing. To draw there is a panic that says so. A WebAssembly build always
//! imports from Spelunk, so it is one for exploration and not one to ship.
//!
//! This crate is a thin layer over the page `guest-sdk/ABI.md`, and depends on nothing but its macros.

#![deny(missing_docs)]

// The macros write `::spelunk_guest`, here too.
extern crate self as spelunk_guest;

#[cfg(target_family = "wasm")]
mod abi;
#[cfg(all(not(target_family = "wasm"), not(test)))]
#[path = "outside.rs"]
mod abi;
#[cfg(all(not(target_family = "wasm"), test))]
#[path = "script.rs"]
mod abi;

mod arbitrary;
mod collections;
mod fault;
mod harness;
mod number;
mod outcome;
mod panic;
mod property;
mod strategy;
mod text;

pub use arbitrary::{Any, Arbitrary, any};
pub use collections::{Bytes, SampledFrom, Samples, Size, VecOf, bytes, sampled_from, vec};
pub use fault::Fault;
pub use harness::RuleResult;
pub use number::Number;
pub use outcome::assume;
pub use spelunk_guest_macros::harness;
pub use strategy::{
    Boxed, Composite, Filter, FlatMap, Just, Map, OneOf, OptionOf, Strategy, Weighted, boolean, composite,
    draw, just, one_of, option, weighted,
};
pub use text::{Text, text};

/// Everything a harness needs: `use spelunk_guest::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Arbitrary, Boxed, Fault, Strategy, any, assume, boolean, bytes, composite, draw, just, one_of,
        option, sampled_from, text, vec, weighted,
    };
    pub use crate::{always, fail, fault, harness, never, note, reachable, sometimes};
}

/// What the macros of this crate write calls to. Not for use by hand: it may change at any time.
#[doc(hidden)]
pub mod __private {
    pub use crate::abi::{always, fail, never, reachable, sometimes, verbose};
    pub use crate::harness::{RuleResult, Slot, argument, describe};
    pub use crate::outcome::{fail_with, note};
    pub use crate::property::declaration;
}
