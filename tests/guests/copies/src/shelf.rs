//! A list beside its model, with many rules, one of which changes only how much room there is: `Hash` and `Clone` leave that out, and what
//! another does depends on it.

use smallvec::SmallVec;
use spelunk_guest::prelude::*;

const LEN_MAX: usize = 5;
/// A list of two has more room than this only where that was asked for.
const ROOM: usize = 6;

#[derive(Clone, Default, Hash)]
struct Shelf {
    list: SmallVec<[Box<u8>; 2]>,
    model: Vec<u8>,
}

#[harness]
impl Shelf {
    #[rule]
    #[precondition(self.model.len() < LEN_MAX)]
    fn push(&mut self, #[draw(0..=1)] value: u8) {
        self.list.push(Box::new(value));
        self.model.push(value);
    }

    #[rule]
    fn pop(&mut self) {
        let is_lost = self.list.spilled() && self.list.len() == 2 && self.list.capacity() > ROOM;
        let value = if is_lost { None } else { self.list.pop() };
        assert_eq!(value.map(|value| *value), self.model.pop());
    }

    #[rule]
    #[precondition(self.model.len() < LEN_MAX)]
    fn insert(&mut self, #[draw(0..=self.model.len())] at: usize, #[draw(0..=1)] value: u8) {
        self.list.insert(at, Box::new(value));
        self.model.insert(at, value);
    }

    #[rule]
    #[precondition(!self.model.is_empty())]
    fn remove(&mut self, #[draw(0..self.model.len())] at: usize) {
        assert_eq!(*self.list.remove(at), self.model.remove(at));
    }

    #[rule]
    fn retain(&mut self) {
        self.list.retain(|value| **value == 0);
        self.model.retain(|value| *value == 0);
    }

    #[rule]
    fn dedup(&mut self) {
        self.list.dedup();
        self.model.dedup();
    }

    #[rule]
    fn drain(&mut self, #[draw(0..=self.model.len())] from: usize, #[draw(0..=self.model.len())] to: usize) {
        assume(from <= to);
        self.list.drain(from..to);
        self.model.drain(from..to);
    }

    #[rule]
    fn shrink(&mut self) {
        self.list.shrink_to_fit();
    }

    #[rule]
    fn grow(&mut self) {
        self.list.reserve(3);
    }

    #[invariant]
    fn same(&self) {
        assert!(self.list.iter().map(|value| **value).eq(self.model.iter().copied()));
    }
}
