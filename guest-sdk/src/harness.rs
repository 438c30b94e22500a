//! What `#[harness]` writes calls to: the state of the harness, and the arguments of its rules.

use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::scalar::canonical;
use crate::state::shared;
use crate::{Arbitrary, Strategy, abi, any, panic};

/// The state of a harness: nothing before `setup`, and nothing after a `teardown` that takes it.
#[doc(hidden)]
pub struct Slot<T>(abi::Shared<T>);

#[doc(hidden)]
impl<T> Slot<T> {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Slot<T> {
        Slot(abi::Shared::new())
    }

    pub fn start(&self, setup: impl FnOnce() -> T) {
        panic::install_hook();
        self.0.set(setup());
    }

    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.0.with(f)
    }

    pub fn take(&self) -> T {
        self.0.take()
    }
}

/// Copies of the state, by number, each of nothing before `setup`.
#[doc(hidden)]
pub struct Copies<T>(abi::Shared<Vec<Option<T>>>);

#[doc(hidden)]
impl<T> Copies<T> {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Copies<T> {
        Copies(abi::Shared::new())
    }
}

/// Copies states of a harness that is `Clone`, for a check, which goes back to them.
#[doc(hidden)]
pub struct Copying<'s, T>(pub &'s Slot<T>, pub &'s Copies<T>);

#[doc(hidden)]
impl<T: Clone> Copying<'_, T> {
    /// Keeps a copy of the state, by a number, in place of the one that was there.
    pub fn keep(&self, number: u32) {
        abi::is_unseen();
        canonical::remember();
        self.store(number, self.0.0.copy());
    }

    /// Keeps the state itself by a number, and leaves nothing.
    pub fn put(&self, number: u32) {
        self.store(number, self.0.0.leave());
    }

    fn store(&self, number: u32, state: Option<T>) {
        let number = number as usize;
        self.1.0.with_or_default(|copies| {
            if copies.len() <= number {
                copies.resize_with(number + 1, || None);
            }
            copies[number] = state;
        });
    }

    /// Goes to a copy; from a state that `is_whole`, or else from the middle of a call.
    pub fn load(&self, number: u32, is_whole: bool) {
        settle();
        let copy = self.1.0.with_or_default(|copies| {
            let copy = || copies.get(number as usize).cloned().flatten();
            let (copy, writes) = abi::watched(shared::was_met(), copy);
            IS_WATCHED.store(writes.is_some(), Ordering::Relaxed);
            SHARES.fetch_or(writes == Some(true), Ordering::Relaxed);
            copy
        });
        match is_whole {
            true => self.0.0.replace(copy),
            false => {
                begin_anew();
                self.0.0.begin_anew(copy);
            }
        }
    }

    /// Whether a copy may share something with others that counts by whom: what a step does may depend on that.
    pub fn shares(&self) -> bool {
        settle();
        SHARES.load(Ordering::Relaxed)
    }
}

/// See [`Copying::shares`].
static SHARES: AtomicBool = AtomicBool::new(false);
/// Whether the last copy was looked at as it was made.
static IS_WATCHED: AtomicBool = AtomicBool::new(true);
/// How often a copy of what can be shared was seen to share nothing, and how often is enough.
static ALONE: AtomicUsize = AtomicUsize::new(0);
const ALONE_MIN: usize = 1000;

/// What follows of the last copy, of which the guest has said since what it holds: where nobody looked, it may share what can be shared, unless
/// copies of such states were seen to share nothing.
fn settle() {
    if !shared::is_met() {
        return;
    }
    match IS_WATCHED.load(Ordering::Relaxed) {
        true => _ = ALONE.fetch_add(1, Ordering::Relaxed),
        false => _ = SHARES.fetch_or(ALONE.load(Ordering::Relaxed) < ALONE_MIN, Ordering::Relaxed),
    }
}

/// A call was left in its middle, which has undone nothing: neither has what this crate keeps beside the state.
fn begin_anew() {
    #[cfg(feature = "allocator")]
    crate::memory::begin_anew();
    crate::arbitrary::begin_anew();
    crate::task::begin_anew();
}

/// Of a harness that is not: such a method is taken where there is no inherent one.
#[doc(hidden)]
pub trait NoCopies {
    fn keep(&self, _number: u32) {}
    fn put(&self, _number: u32) {}
    fn load(&self, _number: u32, _is_whole: bool) {}
    fn shares(&self) -> bool {
        false
    }
}

impl<T> NoCopies for Copying<'_, T> {}

/// Draws an argument, in a span of its name. It has one bound, so that what is no strategy is one error.
#[doc(hidden)]
pub fn argument<V>(name: &'static str, strategy: impl Strategy<Value = V>) -> V {
    abi::span_begin(name);
    let value = strategy.draw();
    abi::span_end(false);
    value
}

/// Draws an argument of which only the type is said.
#[doc(hidden)]
pub fn any_argument<T: Arbitrary>(name: &'static str) -> T {
    argument(name, any::<T>())
}

/// Reports an argument. Formats, so: only where a finding is reported.
#[doc(hidden)]
pub fn describe(name: &'static str, value: &dyn Debug) {
    abi::describe(name, &format!("{value:?}"));
}

/// Describes what a step was given, where a finding is told.
#[doc(hidden)]
#[inline(always)]
pub fn if_told(describe: impl FnOnce()) {
    if abi::verbose() {
        describe();
    }
}

/// Tells an argument of a rule that is fair in each way it may be called.
#[doc(hidden)]
pub fn way<T: Hash>(argument: &T) {
    // Its keys are the same in every run.
    let mut hasher = DefaultHasher::new();
    argument.hash(&mut hasher);
    abi::way(hasher.finish());
}

/// What a rule may return.
#[diagnostic::on_unimplemented(
    message = "a rule returns nothing or a `Result<(), E>` whose error has `Debug`, not `{Self}`"
)]
pub trait RuleResult {
    /// Ends the run as a finding if this is an error.
    #[track_caller]
    fn finish(self);
}

impl RuleResult for () {
    fn finish(self) {}
}

impl<E: Debug> RuleResult for Result<(), E> {
    fn finish(self) {
        if let Err(error) = self {
            abi::fail(&format!("{error:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::abi::play;
    use crate::prelude::*;

    #[derive(Default)]
    struct Desk {
        tickets: Pool<u8>,
        next: u8,
        served: Vec<u8>,
    }

    /// What can be done with a ticket.
    #[derive(Clone, Debug)]
    struct Serve(u8);

    #[harness]
    impl Desk {
        #[rule(into = tickets)]
        fn issue(&mut self, limit: u8) -> Option<u8> {
            self.next += 1;
            (self.next <= limit).then_some(self.next)
        }

        #[rule]
        #[precondition(self.next < 9)]
        fn swap(&mut self, #[take(tickets)] a: u8, #[from(tickets)] b: u8) {
            self.served.extend([a, b]);
        }

        #[steps]
        fn steps(&self) -> impl Strategy<Value = Serve> {
            sampled_from(&self.tickets).mapped(Serve)
        }

        #[execute]
        #[precondition(!self.tickets.is_empty())]
        fn serve(&mut self, step: Serve) {
            self.served.push(step.0);
        }
    }

    #[test]
    fn rules_make_what_others_use() {
        let mut desk = Desk::default();
        assert!(!desk.__spelunk_precondition_swap());
        let (_, log) = play(&[9, 0, 0, 9, 0, 0], || {
            desk.__spelunk_rule_issue();
            assert!(!desk.__spelunk_precondition_swap());
            desk.__spelunk_rule_issue();
        });
        assert_eq!(log[3..5], ["verbose", "verbose"]);
        assert!(desk.__spelunk_precondition_swap());
        let (_, log) = play(&[1, 0, 1], || desk.__spelunk_rule_swap());
        let calls = "a( index 2 ) b( index 1 ) verbose describe a=2 describe b=1";
        assert_eq!((log.join(" ").as_str(), desk.served), (calls, vec![2, 1]));
    }

    #[test]
    fn steps_depend_on_the_state() {
        let mut desk = Desk::default();
        assert!(!desk.__spelunk_precondition_serve());
        desk.tickets.push(7);
        let (_, log) = play(&[0, 1], || desk.__spelunk_rule_serve());
        assert_eq!(
            (log.join(" ").as_str(), desk.served),
            ("step( index 1 ) verbose describe step=Serve(7)", vec![7])
        );
    }

    #[derive(Default)]
    struct Names(Vec<String>);

    #[harness]
    impl Names {
        #[rule]
        fn add(&mut self, #[draw("[a-c]{2}")] name: String) {
            self.0.push(name);
        }
    }

    #[test]
    fn a_string_is_a_regular_expression() {
        let mut names = Names::default();
        let (_, log) = play(&[0, 2, 0], || names.__spelunk_rule_add());
        let calls = "name( matching( repeated( element( index 3 ) element( index 3 ) ) ) ) verbose";
        assert_eq!((log.join(" ").as_str(), names.0), (calls, vec!["ac".to_string()]));
    }

    /// One of each two methods is compiled, and what is made of it.
    struct Alternatives(u32);

    #[harness]
    impl Alternatives {
        #[setup]
        #[cfg(test)]
        fn new() -> Self {
            Alternatives(1)
        }

        #[setup]
        #[cfg(not(test))]
        fn new(first: Missing) -> Self {
            Alternatives(first)
        }

        #[rule]
        #[cfg(test)]
        fn put(&mut self, #[draw(2..=9)] value: u32) {
            self.0 = value;
        }

        #[rule]
        #[cfg(not(test))]
        fn put(&mut self, value: Missing) {}

        #[teardown]
        #[cfg(not(test))]
        fn end(self) {
            let _: Missing = self;
        }
    }

    #[test]
    fn alternatives_take_what_their_cfg_says() {
        let mut alternatives = Alternatives::__spelunk_setup();
        assert_eq!(alternatives.0, 1);
        let (_, log) = play(&[5, 0], || alternatives.__spelunk_rule_put());
        assert_eq!(log[log.len() - 1], "verbose");
        assert_eq!(alternatives.0, 5);
    }
}
