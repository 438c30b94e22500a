//! A place on a ring of which a copy leaves something out in one state of many.

use spelunk_guest::prelude::*;

const LEN: u32 = 3_000;
/// The place that is marked.
const MARKED: u32 = 1_777;

#[derive(Default, State)]
struct Ring {
    at: u32,
    is_marked: bool,
}

impl Clone for Ring {
    fn clone(&self) -> Ring {
        Ring { at: self.at, is_marked: self.is_marked && self.at != MARKED }
    }
}

impl Ring {
    fn go(&mut self, steps: u32) {
        self.at = (self.at + steps) % LEN;
        self.is_marked = self.at == MARKED;
    }
}

#[harness]
impl Ring {
    #[rule]
    fn one(&mut self) {
        self.go(1);
    }

    #[rule]
    fn seven(&mut self) {
        assert!(!self.is_marked, "seven steps from a place that is marked");
        self.go(7);
    }
}
