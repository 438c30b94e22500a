//! A text that is copied as it is written to, unless nobody else has it. That has a mistake, which no copy that shares it comes to.

use std::rc::Rc;

use spelunk_guest::prelude::*;

const LEN_MAX: usize = 9;
const LOST: [u8; 8] = [1, 1, 0, 0, 1, 0, 1, 1];

#[derive(Clone, Default)]
#[cfg_attr(feature = "told", derive(State))]
#[cfg_attr(not(feature = "told"), derive(Hash))]
struct Text {
    bytes: Rc<Vec<u8>>,
    model: Vec<u8>,
}

#[harness]
impl Text {
    #[rule]
    #[precondition(self.model.len() < LEN_MAX)]
    fn push(&mut self, #[draw(0..=1)] byte: u8) {
        let is_shared = Rc::strong_count(&self.bytes) > 1;
        let bytes = Rc::make_mut(&mut self.bytes);
        if is_shared || **bytes != LOST {
            bytes.push(byte);
        }
        self.model.push(byte);
    }

    #[rule]
    fn clear(&mut self) {
        *self = Text::default();
    }

    #[invariant]
    fn nothing_is_lost(&self) {
        assert_eq!(*self.bytes, self.model);
    }
}
