//! A harness for `LIBRARY`: what can be done with it, and what must always hold.
//!
//! ```sh
//! spelunk explore FOLDER     # finds the fewest calls that break it
//! ```
//!
//! As it stands, it tests a counter of its own, and its second rule has a bug for you to find. Then put in what you test:
//!
//! 1. Replace `count` by a value of `LIBRARY`, and `expected` by what you know of it: a model, such as a `Vec` or a `BTreeMap`.
//! 2. Write a `#[rule]` for each thing that can be done with it. Do the same to the model, and compare what both return.
//! 3. Say in an `#[invariant]` what must hold after every step.

// Links the code under test, also while nothing here calls it yet.
use LIBRARY as _;
use spelunk_guest::prelude::*;

#[derive(Default)]
struct Harness {
    count: u8,
    expected: u32,
}

#[harness]
impl Harness {
    /// A rule is a step. Spelunk decides which comes next, and draws its arguments.
    #[rule]
    fn add(&mut self, #[draw(0..=100)] amount: u8) {
        self.count = self.count.saturating_add(amount);
        self.expected = (self.expected + u32::from(amount)).min(255);
    }

    /// It may be called where its precondition holds.
    #[rule]
    #[precondition(self.expected > 0)]
    fn halve(&mut self) {
        self.count /= 2;
        // The bug: it should be `/= 2` here too.
        self.expected -= self.expected / 2;
    }

    /// An invariant holds after every step.
    #[invariant]
    fn equals_model(&self) {
        assert_eq!(u32::from(self.count), self.expected);
    }
}
