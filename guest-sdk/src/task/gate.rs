//! What tasks wait at until something is so: a mutex is free, a channel holds a message.
//!
//! A task that waits can go on as long as the gate is open, and cannot once another shut it. So it is
//! not woken to find that it came too late, which would be a choice without a difference.

use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};

use super::executor::{self, NOBODY, Wait};
use super::set::Set;

#[derive(Debug)]
pub(super) struct Gate {
    is_open: Cell<bool>,
    tasks: RefCell<Set>,
    /// Of futures that other futures poll with wakers of their own, and of tasks that wait here twice.
    others: RefCell<Vec<Waker>>,
}

impl Gate {
    pub(super) const fn new(is_open: bool) -> Gate {
        Gate {
            is_open: Cell::new(is_open),
            tasks: RefCell::new(Set::new()),
            others: RefCell::new(Vec::new()),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open.get()
    }

    /// What tells it from others.
    fn place(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }

    pub(super) fn set(&self, is_open: bool) {
        if self.is_open.replace(is_open) == is_open {
            return;
        }
        self.tasks.borrow().iter().for_each(|task| executor::gate_changed(task, self.place(), is_open));
        if is_open {
            self.others.borrow().iter().for_each(Waker::wake_by_ref);
        }
    }

    /// Opens or shuts it because this task, or [`NOBODY`], holds what it guards now.
    pub(super) fn set_holder(&self, holder: usize, is_open: bool) {
        self.set(is_open);
        self.tasks.borrow().iter().for_each(|task| executor::holder_changed(task, holder));
    }
}

/// What one future has to do with a gate. It must [`leave`](Entry::leave) before it is dropped.
///
/// No enum, so that nothing is left in it of what it was; see the executor.
#[derive(Debug)]
pub(super) struct Entry {
    /// The task that waits, or [`NOBODY`], or [`OTHER`].
    task: usize,
    other: Waker,
}

/// In place of a task: whom the waker wakes.
const OTHER: usize = NOBODY - 1;

impl Entry {
    /// That of a future that does not wait.
    pub(super) fn new() -> Entry {
        Entry { task: NOBODY, other: Waker::noop().clone() }
    }

    fn waits(&self) -> bool {
        self.task != NOBODY
    }

    /// Ready when the gate is open and others had a chance to go first: other tasks, or futures that the same task polls.
    pub(super) fn pass(&mut self, gate: &Gate, context: &Context, wait: Wait) -> Poll<()> {
        self.poll(gate, context, wait, self.waits())
    }

    /// Ready when the gate is open.
    pub(super) fn pass_at_once(&mut self, gate: &Gate, context: &Context, wait: Wait) -> Poll<()> {
        self.poll(gate, context, wait, true)
    }

    fn poll(&mut self, gate: &Gate, context: &Context, wait: Wait, may_pass: bool) -> Poll<()> {
        if may_pass && gate.is_open() {
            self.leave(gate);
            return Poll::Ready(());
        }
        self.enter(gate, context.waker());
        executor::waits(wait);
        Poll::Pending
    }

    /// Waits at the gate, for whom `waker` wakes.
    fn enter(&mut self, gate: &Gate, waker: &Waker) {
        let task = executor::current_woken_by(waker);
        let waits_already = match self.task {
            NOBODY => false,
            OTHER => self.other.will_wake(waker),
            before => task == Some(before),
        };
        if waits_already {
            if let Some(task) = task.filter(|_| self.task != OTHER) {
                executor::gate_entered(task, gate.place(), gate.is_open());
            }
            return;
        }
        // If it waits, the future has another owner now.
        self.leave(gate);
        match task {
            Some(task) if gate.tasks.borrow_mut().insert(task) => {
                self.task = task;
                executor::hold(task);
                executor::gate_entered(task, gate.place(), gate.is_open());
            }
            _ => {
                self.task = OTHER;
                self.other = waker.clone();
                gate.others.borrow_mut().push(waker.clone());
                if gate.is_open() {
                    waker.wake_by_ref();
                }
            }
        }
    }

    pub(super) fn leave(&mut self, gate: &Gate) {
        match std::mem::replace(&mut self.task, NOBODY) {
            NOBODY => {}
            OTHER => {
                let mut others = gate.others.borrow_mut();
                // Of two that wake the same it may not be known that they do. Then one stays, which wakes in vain.
                if let Some(place) = others.iter().position(|other| other.will_wake(&self.other)) {
                    others.remove(place);
                    others.shrink_to_fit();
                }
                self.other = Waker::noop().clone();
            }
            task => {
                gate.tasks.borrow_mut().remove(task);
                executor::gate_left(task, gate.place(), gate.is_open());
                executor::let_go(task);
            }
        }
    }
}
