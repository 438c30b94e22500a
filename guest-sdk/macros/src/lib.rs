//! `#[harness]` and `#[derive(Arbitrary)]`, the macros of `spelunk-guest`.
//!
//! The attribute turns an `impl` block into the exports of a guest. It has two halves: `parse` reads the block
//! into a `Harness` and refuses what cannot work, at the place where it stands; `expand` writes the exports.
//! Neither knows the host: what an export does, beyond calling the method, stands in
//! `spelunk_guest::__private`.

mod derive;
mod error;
mod expand;
mod harness;
mod marks;
mod parse;

use proc_macro::TokenStream;

/// Makes an `impl` block the harness of a guest.
///
/// The methods that are marked become exports; the others stay what they are.
///
/// | attribute | method | meaning |
/// |---|---|---|
/// | `#[setup]` | `fn(arguments) -> Self` | the state at the start of a run; without it, `Default::default()` |
/// | `#[rule]` | `fn(&mut self, arguments)`, may return a `Result<(), E>` | a step; an `Err` is a failure |
/// | `#[rule(into = pool)]` | `fn(&mut self, arguments) -> T`, or an `Option`, `Vec` or `Result` of it | a step whose result goes into the field `pool`, a `Pool<T>` |
/// | `#[precondition(expression)]` | on a rule | the rule may be chosen only where this is true; the expression may use `self`, but not the rule's arguments |
/// | `#[steps]` | `fn(&self) -> impl Strategy<Value = Step>` | the steps that are possible now |
/// | `#[execute]` | `fn(&mut self, step: Step)`, may return a `Result<(), E>` | does one of them; both together are a rule `step` |
/// | `#[invariant]` | `fn(&self)` or `fn(&self) -> bool` | runs after every step; a panic or `false` is a failure |
/// | `#[teardown]` | `fn(self)` or `fn(&mut self)` | runs after the last step of a run that did not fail |
///
/// Each argument of a rule or of `#[setup]` is drawn: by the strategy in its `#[draw(strategy)]`, or else by
/// `any::<Type>()`. A strategy may use `self` and the arguments before its own. In a rule `#[from(pool)]` draws
/// a clone of a value in a pool, and `#[take(pool)]` takes one out; the rule is chosen only where the pools hold
/// enough.
///
/// A module has one harness: its exports would collide with those of another.
#[proc_macro_attribute]
pub fn harness(arguments: TokenStream, block: TokenStream) -> TokenStream {
    expand::harness(arguments.into(), block.into()).into()
}

/// Implements `Arbitrary` for a struct or an enum, so that `any` draws values of it.
///
/// A field is drawn by the strategy in its `#[strategy(expression)]`, or else by `any::<Type>()`. A strategy may
/// use the fields before its own by their names, those of a tuple as `field_0`, `field_1`, …
///
/// A variant is drawn by its place; the first is the simplest. If an enum is a part of itself, only the first
/// is drawn from some depth on, so that should be one without such a part.
///
/// The type parameters must be `Arbitrary` where the type is to be.
#[proc_macro_derive(Arbitrary, attributes(strategy))]
pub fn arbitrary(item: TokenStream) -> TokenStream {
    derive::arbitrary(item.into()).into()
}
