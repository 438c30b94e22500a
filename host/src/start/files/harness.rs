//! A harness: what can be done with the code under test, and what must always hold.
//!
//! ```sh
//! spelunk explore FOLDER     # finds the fewest calls that break it
//! spelunk check FOLDER       # tries all calls; once the bug in recent.rs is fixed, it says that all holds
//! ```

mod recent;

use std::collections::VecDeque;

use recent::Recent;
use spelunk_guest::prelude::*;

/// The code under test, and a model of it, the same in the plainest way. `Hash` has a check explore equal states once, and `Clone` fast.
#[derive(Clone, Default, Hash)]
struct Harness {
    recent: Recent,
    model: VecDeque<u8>,
}

#[harness]
impl Harness {
    /// A rule is a step. Spelunk decides which comes next, and draws its arguments.
    #[rule]
    fn push(&mut self, #[draw(0..=2)] number: u8) {
        self.recent.push(number);
        self.model.push_back(number);
        if self.model.len() > Recent::ROOM {
            self.model.pop_front();
        }
    }

    #[rule]
    fn pop(&mut self) {
        let (popped, expected) = (self.recent.pop(), self.model.pop_front());
        assert!(popped == expected, "popped {popped:?}, expected {expected:?}");
    }

    /// An invariant holds after every step.
    #[invariant]
    fn has_as_many_as_the_model(&self) {
        assert_eq!(self.recent.len(), self.model.len());
    }
}
