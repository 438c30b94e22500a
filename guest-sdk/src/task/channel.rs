//! Channels from several tasks to one.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use super::executor::Wait;
use super::gate::{Entry, Gate};

/// A channel in which up to `capacity` messages may lie.
///
/// # Panics
/// If the capacity is 0.
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "a channel has room for at least one message");
    let state = Rc::new(State {
        messages: RefCell::new(Vec::new()),
        capacity,
        senders: Cell::new(1),
        has_receiver: Cell::new(true),
        receivable: Gate::new(false),
        sendable: Gate::new(true),
    });
    (Sender { state: state.clone() }, Receiver { state })
}

/// A channel in which any number of messages may lie.
pub fn unbounded<T>() -> (UnboundedSender<T>, Receiver<T>) {
    let (sender, receiver) = channel(usize::MAX);
    (UnboundedSender { sender }, receiver)
}

#[derive(Debug)]
struct State<T> {
    /// The first was sent first. A ring would remember where it began: another state for the same messages.
    messages: RefCell<Vec<T>>,
    capacity: usize,
    senders: Cell<usize>,
    has_receiver: Cell<bool>,
    /// Open where there is a message, or will never be another.
    receivable: Gate,
    /// Open where there is room, or no receiver.
    sendable: Gate,
}

impl<T> State<T> {
    /// To be called after every change.
    fn set_gates(&self) {
        let len = self.messages.borrow().len();
        self.receivable.set(len > 0 || self.senders.get() == 0);
        self.sendable.set(len < self.capacity || !self.has_receiver.get());
    }

    fn push(&self, value: T) {
        let mut messages = self.messages.borrow_mut();
        messages.reserve_exact(1);
        messages.push(value);
        drop(messages);
        self.set_gates();
    }

    fn pop(&self) -> Option<T> {
        let mut messages = self.messages.borrow_mut();
        let message = (!messages.is_empty()).then(|| messages.remove(0));
        messages.shrink_to_fit();
        drop(messages);
        self.set_gates();
        message
    }
}

/// The end of a [`channel`] that sends; a clone sends too.
#[derive(Debug)]
pub struct Sender<T> {
    state: Rc<State<T>>,
}

/// The message that could not be sent, because the receiver was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// The message that was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room now.
    Full(T),
    /// The receiver was dropped.
    Closed(T),
}

impl<T> Sender<T> {
    /// Waits until there is room, and sends. Other tasks may go first.
    #[track_caller]
    pub fn send(&self, value: T) -> Send<'_, T> {
        Send { state: &self.state, value: Some(value), entry: Entry::new(), at: Location::caller() }
    }

    /// Sends if there is room. No other task can go first.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        if !self.state.has_receiver.get() {
            return Err(TrySendError::Closed(value));
        }
        if !self.state.sendable.is_open() {
            return Err(TrySendError::Full(value));
        }
        self.state.push(value);
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.state.senders.update(|senders| senders + 1);
        Sender { state: self.state.clone() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.state.senders.update(|senders| senders - 1);
        self.state.set_gates();
    }
}

/// What [`Sender::send`] returns.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Send<'a, T> {
    state: &'a State<T>,
    /// `None` once it is sent.
    value: Option<T>,
    entry: Entry,
    at: &'static Location<'static>,
}

// The value is moved, and never pinned.
impl<T> Unpin for Send<'_, T> {}

impl<T> Future for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Self::Output> {
        let (state, wait) = (self.state, Wait::for_room(self.at));
        ready!(self.entry.pass(&state.sendable, context, wait));
        let value = self.value.take().expect("a future that is ready is not polled again");
        if !state.has_receiver.get() {
            return Poll::Ready(Err(SendError(value)));
        }
        state.push(value);
        Poll::Ready(Ok(()))
    }
}

impl<T> Drop for Send<'_, T> {
    fn drop(&mut self) {
        self.entry.leave(&self.state.sendable);
    }
}

/// The end of an [`unbounded`] channel that sends; a clone sends too.
#[derive(Debug)]
pub struct UnboundedSender<T> {
    sender: Sender<T>,
}

impl<T> UnboundedSender<T> {
    /// Sends. No other task can go first: where several send, let a [`yield_now`](super::yield_now) come before.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.sender.try_send(value).map_err(|error| match error {
            TrySendError::Full(value) | TrySendError::Closed(value) => SendError(value),
        })
    }
}

impl<T> Clone for UnboundedSender<T> {
    fn clone(&self) -> UnboundedSender<T> {
        UnboundedSender { sender: self.sender.clone() }
    }
}

/// The end of a [`channel`] or an [`unbounded`] one that receives.
#[derive(Debug)]
pub struct Receiver<T> {
    state: Rc<State<T>>,
}

impl<T> Receiver<T> {
    /// Waits for the next message; `None` when there is none and all senders were dropped. Other tasks may go
    /// first.
    #[track_caller]
    pub fn recv(&mut self) -> Receive<'_, T> {
        Receive { state: &self.state, entry: Entry::new(), at: Location::caller() }
    }

    /// The next message, if it is there. No other task can go first.
    pub fn try_recv(&mut self) -> Option<T> {
        self.state.pop()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.state.has_receiver.set(false);
        self.state.set_gates();
        // What nobody receives is dropped now, with nothing borrowed.
        drop(self.state.messages.take());
    }
}

/// What [`Receiver::recv`] returns.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Receive<'a, T> {
    state: &'a State<T>,
    entry: Entry,
    at: &'static Location<'static>,
}

impl<T> Future for Receive<'_, T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Option<T>> {
        let (state, wait) = (self.state, Wait::for_message(self.at));
        ready!(self.entry.pass(&state.receivable, context, wait));
        Poll::Ready(state.pop())
    }
}

impl<T> Drop for Receive<'_, T> {
    fn drop(&mut self) {
        self.entry.leave(&self.state.receivable);
    }
}
