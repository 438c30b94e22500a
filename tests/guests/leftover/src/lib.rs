//! A stack in an array, which leaves what was in it. Its harness is compared by memory, or by content with the feature `content`.

#![forbid(unsafe_code)]

use spelunk_guest::prelude::*;

#[derive(Default)]
struct Stack {
    items: [u32; 3],
    len: usize,
}

#[derive(Default)]
#[cfg_attr(feature = "content", derive(State))]
struct Harness {
    stack: Stack,
    ticks: u32,
}

#[cfg(feature = "content")]
impl State for Stack {
    fn state<H: std::hash::Hasher>(&self, hasher: &mut H) {
        self.items[..self.len].state(hasher);
    }
}

#[harness]
impl Harness {
    #[rule]
    #[precondition(self.stack.len < 3)]
    fn push(&mut self, #[draw(1..=2)] item: u32) {
        self.stack.items[self.stack.len] = item;
        self.stack.len += 1;
    }

    #[rule]
    #[precondition(self.stack.len > 0)]
    fn pop(&mut self) -> Result<(), String> {
        self.stack.len -= 1;
        let item = self.stack.items[self.stack.len];
        if item > 2 { Err(format!("{item} was never pushed")) } else { Ok(()) }
    }

    #[rule]
    fn tick(&mut self) {
        self.ticks = (self.ticks + 1) % 25;
    }
}
