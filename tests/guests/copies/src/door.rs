//! A door that is opened after a hundred steps, for all copies at once.

use std::cell::Cell;
use std::rc::Rc;

use spelunk_guest::prelude::*;

const STEPS: u32 = 100;

#[derive(Clone, Default, State)]
struct Door {
    steps: u32,
    is_open: Rc<Cell<bool>>,
    is_done: bool,
}

impl Door {
    fn is_there(&self) -> bool {
        self.steps == STEPS && !self.is_done
    }
}

#[harness]
impl Door {
    #[rule]
    #[precondition(self.steps < STEPS)]
    fn walk(&mut self) {
        self.steps += 1;
    }

    #[rule]
    #[precondition(self.is_there())]
    fn admit(&mut self) {
        self.is_open.set(true);
        self.is_done = true;
    }

    /// It fails, since nobody may be there once it is open.
    #[rule]
    #[precondition(self.is_there())]
    fn pass(&mut self) {
        assert!(self.is_open.get(), "the door is shut");
    }

    /// Nothing is left of what `admit` did to copies.
    #[rule]
    #[precondition(self.is_there())]
    fn shut(&mut self) {
        self.is_open.set(false);
        self.is_done = true;
    }

    #[rule]
    fn rest(&mut self) {}
}
