//! A desk at which people wait. A check has it copied, which is right as long as a copy is like it.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::atomic::{AtomicU8, Ordering};

use spelunk_guest::prelude::*;

/// Who was served last, where the desk does not hold it.
static LAST: AtomicU8 = AtomicU8::new(0);

#[derive(Default, State)]
struct Desk {
    waiting: Vec<u8>,
    /// Who was served last.
    last: Rc<Cell<u8>>,
    /// The largest of those who wait, once it was asked for.
    most: Memo,
}

/// What follows from the rest. A copy begins without it.
#[derive(Default)]
struct Memo(Option<u8>);

impl Hash for Memo {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Clone for Desk {
    fn clone(&self) -> Desk {
        let last = if cfg!(feature = "forgets") { 0 } else { self.last.get() };
        let last = if cfg!(feature = "shares") { self.last.clone() } else { Rc::new(Cell::new(last)) };
        Desk { waiting: self.waiting.clone(), last, most: Memo::default() }
    }
}

#[derive(Debug, Arbitrary)]
enum Call {
    Nobody,
    Number(Even),
    Off,
}

#[derive(Debug)]
struct Even(u8);

impl Arbitrary for Even {
    fn arbitrary() -> Even {
        let number = draw(0u8..8);
        assume(number % 2 == 0);
        Even(number)
    }
}

#[harness]
impl Desk {
    #[rule]
    fn arrive(&mut self, #[draw(0u8..4)] who: u8) {
        let is_lost = cfg!(feature = "room")
            && self.waiting == [2, 1]
            && self.waiting.len() < self.waiting.capacity()
            && who == 3;
        if !is_lost {
            self.waiting.push(who);
        }
        assert!(!is_lost, "there was room");
        // In the middle of the call, after something was changed.
        assume(self.waiting.len() <= 3 && (self.waiting.len() < 2 || self.last.get() != who));
    }

    #[rule]
    #[precondition(!self.waiting.is_empty())]
    fn serve(&mut self) {
        let who = self.waiting.remove(0);
        let after =
            if cfg!(feature = "global") { LAST.swap(who, Ordering::Relaxed) } else { self.last.get() };
        sometimes!(after == who, "somebody is served twice in a row");
        self.last.set(if after == 3 { 0 } else { who });
    }

    #[rule]
    #[precondition(cfg!(feature = "memo"))]
    fn ask(&mut self) {
        let most = self.waiting.iter().max().copied().unwrap_or_default();
        // Nobody forgets it when somebody leaves.
        assert_eq!(*self.most.0.get_or_insert(most), most);
    }

    /// Of which not all ways make as many choices.
    #[rule]
    #[precondition(!self.waiting.is_empty())]
    fn leave(&mut self, is_last: bool) {
        let at = if is_last { self.waiting.len() - 1 } else { choose(self.waiting.len()) };
        self.waiting.remove(at);
    }

    /// In more ways than are tried in one call.
    #[rule]
    #[precondition(cfg!(feature = "wide"))]
    fn close(&mut self, #[draw(0u16..5000)] minutes: u16) {
        if minutes == 4999 {
            self.waiting.clear();
        }
    }

    /// Comes last from each state, and is rejected in most.
    #[rule]
    #[precondition(cfg!(feature = "last"))]
    fn wait(&mut self) {
        assume(self.waiting.len() == 2);
    }

    /// Which is rejected while it is drawn, so that what counts how deep values nest is not left again.
    #[rule]
    #[precondition(cfg!(feature = "nested"))]
    fn call(&mut self, call: Call) {
        match call {
            Call::Number(Even(number)) => assert!(number < 8),
            Call::Off => assert!(self.waiting.len() < 3, "it is off"),
            Call::Nobody => {}
        }
    }

    #[invariant]
    fn two_are_never_alike(&self) {
        if cfg!(feature = "fails") {
            assert!(self.waiting != [2, 1, 2], "{:?}", self.waiting);
        }
        if cfg!(feature = "tells") {
            sometimes!(self.waiting == [3, 1], "three and one wait");
        }
        if cfg!(feature = "draws") && self.waiting == [1, 2] {
            assert!(choose(2usize) < 2);
        }
        if cfg!(feature = "bars") {
            assume(self.waiting != [1, 3]);
        }
        if cfg!(feature = "changes") && self.waiting == [3] {
            self.last.set(1);
        }
    }
}
