//! A task as the executor keeps it: what it waits for, and at which gates.

use std::borrow::Cow;
use std::panic::Location;
use std::task::Waker;

use super::executor::{NOBODY, Task};

/// A task, or room for one.
pub(super) struct Slot {
    /// `None` while it is polled, and in the slot of what `run` was given.
    pub(super) task: Option<Task>,
    pub(super) waker: Waker,
    pub(super) waits: Wait,
    /// Empty where it was given none.
    pub(super) name: Cow<'static, str>,
    /// The gates at which it waits since it ran last, and how many of them are open.
    pub(super) gates: Gates,
    pub(super) open_gates: u16,
    /// Wakers of the task, this one too, and gates that know it: its number stays its own as long.
    pub(super) known: u32,
    pub(super) is_woken: bool,
    pub(super) is_background: bool,
}

impl Slot {
    pub(super) fn free() -> Slot {
        Slot {
            task: None,
            waker: Waker::noop().clone(),
            waits: Wait::new(WaitKind::ToBeUsed),
            name: Cow::Borrowed(""),
            gates: Gates::NONE,
            open_gates: 0,
            known: 0,
            is_woken: false,
            is_background: false,
        }
    }

    /// The task, which is here no more. Its number may be known still.
    pub(super) fn take(&mut self) -> Slot {
        let free = Slot { known: self.known, ..Slot::free() };
        std::mem::replace(self, free)
    }

    /// Whether no task is here.
    pub(super) fn is_free(&self) -> bool {
        matches!(self.waits.kind, WaitKind::ToBeUsed)
    }

    /// Whether a task may get this number.
    pub(super) fn is_unused(&self) -> bool {
        self.is_free() && self.known == 0
    }
}

/// Gates, by where they are. The first, which mostly is the only one, takes no room elsewhere: that would depend on who came first.
pub(super) struct Gates {
    first: *const (),
    others: Vec<*const ()>,
}

impl Gates {
    pub(super) const NONE: Gates = Gates { first: std::ptr::null(), others: Vec::new() };

    pub(super) fn contains(&self, gate: *const ()) -> bool {
        self.first == gate || self.others.contains(&gate)
    }

    /// Adds one that is not there.
    pub(super) fn insert(&mut self, gate: *const ()) {
        if self.first.is_null() {
            self.first = gate;
        } else {
            self.others.reserve_exact(1);
            self.others.push(gate);
        }
    }

    /// Removes one that is there.
    pub(super) fn remove(&mut self, gate: *const ()) {
        if self.first == gate {
            self.first = std::ptr::null();
        } else {
            self.others.retain(|other| *other != gate);
            self.others.shrink_to_fit();
        }
    }
}

/// What a task waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) kind: WaitKind,
    /// Where it was awaited, if that is known.
    pub(super) at: Option<&'static Location<'static>>,
    /// Another task that has to do with it.
    pub(super) task: usize,
    /// When it is over, in nanoseconds: the lower and the upper half.
    pub(super) end: [u32; 2],
}

#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum WaitKind {
    /// The slot is free.
    ToBeUsed,
    /// It did not say.
    Something,
    /// Others may go first.
    Turn,
    Mutex,
    Room,
    Message,
    Answer,
    End,
    Time,
}

impl Wait {
    const fn new(kind: WaitKind) -> Wait {
        Wait { kind, at: None, task: NOBODY, end: [0; 2] }
    }

    pub(super) const fn for_something() -> Wait {
        Wait::new(WaitKind::Something)
    }

    pub(super) fn for_turn() -> Wait {
        Wait::new(WaitKind::Turn)
    }

    pub(super) fn for_mutex(at: &'static Location<'static>, holder: usize) -> Wait {
        Wait { at: Some(at), task: holder, ..Wait::new(WaitKind::Mutex) }
    }

    pub(super) fn for_room(at: &'static Location<'static>) -> Wait {
        Wait { at: Some(at), ..Wait::new(WaitKind::Room) }
    }

    pub(super) fn for_message(at: &'static Location<'static>) -> Wait {
        Wait { at: Some(at), ..Wait::new(WaitKind::Message) }
    }

    pub(super) fn for_answer() -> Wait {
        Wait::new(WaitKind::Answer)
    }

    pub(super) fn for_end_of(task: usize) -> Wait {
        Wait { task, ..Wait::new(WaitKind::End) }
    }

    pub(super) fn until(end: u64) -> Wait {
        Wait { end: [end as u32, (end >> 32) as u32], ..Wait::new(WaitKind::Time) }
    }
}
