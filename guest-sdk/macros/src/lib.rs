//! `#[harness]`, `#[check]`, `#[threads]` and the derives, the macros of `spelunk-guest`.
//!
//! `#[harness]` turns an `impl` block into the exports of a guest. It has two halves: `parse` reads the block
//! into a `Harness` and refuses what cannot work, at the place where it stands; `expand` writes the exports.
//! Neither knows the host: what an export does, beyond calling the method, stands in
//! `spelunk_guest::__private`.

mod check;
mod content;
mod derive;
mod error;
mod expand;
mod harness;
mod marks;
mod native;
mod parse;
mod state;
mod threads;

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
/// | `#[rule(independent_of = other)]` | as the above; several as `[a, b]`, with a comma after `into = pool` | see below |
/// | `#[fair(strong)]`, `#[fair(each)]`, `#[unfair]` | on a rule | how surely it is called in the end, see below |
/// | `#[precondition(expression)]` | on a rule | the rule may be chosen only where this is true; the expression may use `self`, but not the rule's arguments |
/// | `#[steps]` | `fn(&self) -> impl Strategy<Value = Step>` | the steps that are possible now |
/// | `#[execute]` | `fn(&mut self, step: Step)`, may return a `Result<(), E>` | does one of them; both together are a rule `step` |
/// | `#[invariant]` | `fn(&self)` or `fn(&self) -> bool` | runs after every step; a panic or `false` is a failure |
/// | `#[state]` | `fn(&self) -> impl Hash` | what a check compares, see below |
/// | `#[terminal]` | `fn(&self) -> bool` | whether a state in which no rule may be chosen is an end, and no deadlock |
/// | `#[teardown]` | `fn(self)` or `fn(&mut self)` | runs after the last step of a run that did not fail |
///
/// Each argument of a rule or of `#[setup]` is drawn: by the strategy in its `#[draw(strategy)]`, or else by
/// `any::<Type>()`. A strategy may use `self` and the arguments before its own. A string is a regular expression, as
/// `matching` takes it: `#[draw("[a-c]{2}")]`. In a rule `#[from(pool)]` draws
/// a clone of a value in a pool, and `#[take(pool)]` takes one out; the rule is chosen only where the pools hold
/// enough.
///
/// # What a check needs to know
///
/// `spelunk check` explores equal states once. Where the type of the harness is `State` or `Hash`, equal are those that hold
/// the same: derive it where all that can still matter to a rule, an invariant or the teardown is in the harness, and not in a `static`.
/// Otherwise equal are those with equal memories.
///
/// With a method marked `#[state]`, equal are those of which it returns the same: all that can still matter, in an order that does
/// not depend on how it came about. To sort clients that are alike makes one of states that differ only in who is who; where something is
/// claimed of runs without end, do not sort them, since a step between two such states would count as none. The faults that are on are always
/// compared too.
///
/// `#[rule(independent_of = other)]` promises that in every state this rule and the other, each with any
/// arguments, lead to the same state in either order, and that neither makes the other possible or
/// impossible. With `--reduce` one of the two orders is explored. Both are tried in some states, and a promise that is broken there is
/// an error.
///
/// What must come at last (`eventually!`, `always_eventually!`, `leads_to!`) is judged on runs that go on for ever and are fair: a rule
/// that may be called from some state on in every one is called again and again. With `#[fair(strong)]` it is enough that it may be
/// called again and again; with `#[fair(each)]` that is asked of it with each value of its arguments, which have `Hash`, such as of each
/// process that it is called for, and not of the rule as a whole; `#[unfair]` asks nothing, as of a client that need not send a request. Nothing is asked of faults.
///
/// Where no rule may be chosen, a run is in a deadlock, which is a failure. `#[terminal]` says in which of these states a run may end.
/// `#[steps]` are not asked for in a state that it says is terminal.
///
/// A method may have alternatives: several of one name, of which `#[cfg]`s take one. Macros are expanded after the block is read,
/// so none may be called in it: helpers that a macro writes stand in another `impl` block.
///
/// A module has one harness: its exports would collide with those of another.
#[proc_macro_attribute]
pub fn harness(arguments: TokenStream, block: TokenStream) -> TokenStream {
    expand::harness(arguments.into(), block.into()).into()
}

/// Makes a function the whole of a guest: `spelunk check` runs it once for each way in which its choices can be
/// answered, each time from fresh memory.
///
/// A panic in it, or an `Err` that it returns, is a finding. It takes no arguments: it draws what it needs, by `flip`,
/// `choose` or any strategy. A module has one such function, and no harness.
#[proc_macro_attribute]
pub fn check(arguments: TokenStream, function: TokenStream) -> TokenStream {
    check::check(arguments.into(), function.into()).into()
}

/// Makes a function the whole of a guest, with the threads that it spawns: each step lets one of them go on to its next operation.
///
/// See the module `spelunk_guest::sync`. The function takes no arguments; a panic in a thread, or an `Err` that the function
/// returns, is a finding, and so is a deadlock. A module has one such function, and no harness.
#[proc_macro_attribute]
pub fn threads(arguments: TokenStream, function: TokenStream) -> TokenStream {
    threads::threads(arguments.into(), function.into()).into()
}

/// Implements `Arbitrary` for a struct or an enum, so that `any` draws values of it.
///
/// A field is drawn by the strategy in its `#[draw(strategy)]`, which may also be written `#[strategy(strategy)]`, or else by
/// `any::<Type>()`. A strategy may use the fields before its own by their names, those of a tuple as `field_0`,
/// `field_1`, … A string is a regular expression: `#[draw("[a-c]{2}")]`.
///
/// A variant is drawn by its place; the first is the simplest. A type may be a part of itself: values nest up to six deep.
/// There, an enum is its first variant that has no such part, an `Option` is `None`, and collections are empty; collections
/// get shorter on the way.
///
/// The type parameters must be `Arbitrary` where the type is to be.
#[proc_macro_derive(Arbitrary, attributes(draw, strategy))]
pub fn arbitrary(item: TokenStream) -> TokenStream {
    derive::arbitrary(item.into()).into()
}

/// Implements `State` for a struct or an enum, so that a check tells values of it apart by what they hold.
///
/// Each field must be `State`, or else `Hash`, and the type parameters `State` where the type is to be.
#[proc_macro_derive(State)]
pub fn derive_state(item: TokenStream) -> TokenStream {
    state::state(item.into()).into()
}
