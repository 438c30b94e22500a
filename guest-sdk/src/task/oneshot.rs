//! One value, from one task to another.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use super::executor::Wait;
use super::gate::{Entry, Gate};

/// Two ends of a channel for one value.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = Rc::new(State { value: RefCell::new(None), gate: Gate::new(false) });
    (Sender { state: state.clone() }, Receiver { state, entry: Entry::new() })
}

#[derive(Debug)]
struct State<T> {
    value: RefCell<Option<T>>,
    /// Open once there is a value, or never will be.
    gate: Gate,
}

/// The end that sends.
#[derive(Debug)]
pub struct Sender<T> {
    state: Rc<State<T>>,
}

impl<T> Sender<T> {
    /// Sends the value; gives it back if nobody is there to receive it.
    pub fn send(self, value: T) -> Result<(), T> {
        if self.is_closed() {
            return Err(value);
        }
        self.state.value.replace(Some(value));
        // The gate opens as the sender is dropped.
        Ok(())
    }

    /// Whether the receiver was dropped.
    pub fn is_closed(&self) -> bool {
        Rc::strong_count(&self.state) == 1
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.state.gate.set(true);
    }
}

/// The end that receives: a future of the value.
#[derive(Debug)]
pub struct Receiver<T> {
    state: Rc<State<T>>,
    entry: Entry,
}

/// The sender was dropped without sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl<T> Future for Receiver<T> {
    type Output = Result<T, Closed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Result<T, Closed>> {
        let Receiver { state, entry } = &mut *self;
        ready!(entry.pass_at_once(&state.gate, context, Wait::for_answer()));
        Poll::Ready(state.value.take().ok_or(Closed))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.entry.leave(&self.state.gate);
    }
}
