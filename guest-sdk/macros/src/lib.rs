//! `#[harness]`, the attribute of `spelunk-guest` that turns an `impl` block
//! into the exports of a guest.
//!
//! The macro has two halves: `parse` reads the block into a `Harness` and refuses what cannot work, at the
//! place where it stands; `expand` writes the exports. Neither knows the host: what an export does, beyond
//! calling the method, stands in `spelunk_guest::__private`.

mod expand;
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
/// | `#[precondition(expression)]` | on a rule | the rule may be chosen only where this is true; the expression may use `self`, but not the rule's arguments |
/// | `#[invariant]` | `fn(&self)` or `fn(&self) -> bool` | runs after every step; a panic or `false` is a failure |
/// | `#[teardown]` | `fn(self)` or `fn(&mut self)` | runs after the last step of a run that did not fail |
///
/// Each argument of a rule or of `#[setup]` is drawn: by the strategy in its `#[draw(strategy)]`, or else by
/// `any::<Type>()`. A strategy may use `self` and the arguments before its own.
///
/// A module has one harness: its exports would collide with those of another.
#[proc_macro_attribute]
pub fn harness(arguments: TokenStream, block: TokenStream) -> TokenStream {
    expand::harness(arguments.into(), block.into()).into()
}
