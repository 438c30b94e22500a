//! As [`std::sync::mpsc`].

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::cell::Shared;
use super::order::{self, Link};
use super::scheduler::{Wait, What, current, is_notified, notify, point, sleep, stop};

pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

/// What both ends share.
struct Channel<T> {
    queue: Shared<Vec<(T, u32)>>,
    head: Shared<Head>,
    /// Whoever finds that all senders are gone, or the receiver, sees what they did.
    no_senders: Link,
    no_receiver: Link,
}

/// What decides who can go on.
#[derive(Clone, Copy)]
struct Head {
    messages: usize,
    /// Messages that it has room for. With none, one that sends waits until it is received.
    room: usize,
    senders: usize,
    has_receiver: bool,
}

impl Head {
    /// Whether one that sends may wait for room.
    fn is_bounded(&self) -> bool {
        (1..usize::MAX).contains(&self.room)
    }
}

impl<T> Channel<T> {
    fn new(room: usize) -> Arc<Self> {
        let head = Head { messages: 0, room, senders: 1, has_receiver: true };
        let queue = Shared::new(Vec::new());
        let (no_senders, no_receiver) = (Link::new(), Link::new());
        let channel = Arc::new(Self { queue, head: Shared::new(head), no_senders, no_receiver });
        order::forget_messages(channel.object().addr());
        channel
    }

    fn object(&self) -> *const () {
        self.head.as_ptr().cast_const().cast()
    }

    fn update(&self, f: impl FnOnce(&mut Head)) {
        let mut head = self.head.get();
        f(&mut head);
        self.head.set(head);
    }

    fn queue<R>(&self, f: impl FnOnce(&mut Vec<(T, u32)>) -> R) -> R {
        // SAFETY: what is called with it moves messages, and calls nothing of theirs.
        let result = f(unsafe { self.queue.write() });
        let messages = unsafe { self.queue.read() }.len();
        self.update(|head| head.messages = messages);
        result
    }

    fn put(&self, value: T) {
        self.queue(|queue| {
            queue.reserve_exact(1);
            queue.push((value, current()));
        });
        let head = self.head.get();
        if head.is_bounded() {
            order::filled(self.object().addr());
        }
        order::sent(self.object().addr(), head.messages - 1);
    }

    /// The first message. Whoever waits until it is received goes on.
    fn take(&self) -> Option<T> {
        if self.head.get().messages == 0 && self.head.get().senders == 0 {
            self.no_senders.follow();
        }
        let (value, sender) = self.queue(|queue| {
            let first = (!queue.is_empty()).then(|| queue.remove(0));
            // What is behind the last message would make equal states differ.
            queue.shrink_to_fit();
            first
        })?;
        let head = self.head.get();
        order::taken(self.object().addr(), 0, true);
        if head.is_bounded() {
            order::made_room(self.object().addr(), head.room - head.messages - 1);
        }
        if head.room == 0 {
            // It is handed over: each sees what the other did.
            order::let_on(sender);
            notify(sender);
        }
        Some(value)
    }

    /// Waits for room, and sends.
    fn send(&self, value: T, at: &'static Location<'static>) -> Result<(), SendError<T>> {
        let can_go_on = |head| has_room(of(head)) || !of(head).has_receiver;
        stop(Wait { what: What::Send, object: self.object(), can_go_on, at });
        let Head { has_receiver, room, .. } = self.head.get();
        if !has_receiver {
            self.no_receiver.follow();
            return Err(SendError(value));
        }
        self.put(value);
        if room > 0 {
            return Ok(());
        }
        let sending = Sending { thread: current(), head: self.object() };
        let can_go_on = |sending: *const ()| {
            // SAFETY: it lies on the stack of the thread that waits.
            let Sending { thread, head } = unsafe { *sending.cast::<Sending>() };
            is_notified(thread) || !of(head).has_receiver
        };
        let object = (&raw const sending).cast();
        match sleep(Wait { what: What::Send, object, can_go_on, at }, self.object()) {
            true => Ok(()),
            false => {
                self.no_receiver.follow();
                Err(SendError(self.take_back()))
            }
        }
    }

    /// The message of the thread that runs, which nobody received.
    fn take_back(&self) -> T {
        let (value, at) = self.queue(|queue| {
            let at = queue.iter().position(|(_, sender)| *sender == current());
            let at = at.expect("it is there as long as nobody receives it");
            (queue.remove(at).0, at)
        });
        order::taken(self.object().addr(), at, false);
        value
    }

    fn try_send(&self, value: T, at: &'static Location<'static>) -> Result<(), TrySendError<T>> {
        point(What::Send, self.object(), at);
        let head = self.head.get();
        match head {
            Head { has_receiver: false, .. } => {
                self.no_receiver.follow();
                Err(TrySendError::Disconnected(value))
            }
            // Nobody is known to wait for it.
            head if head.room == 0 || !has_room(head) => Err(TrySendError::Full(value)),
            _ => {
                self.put(value);
                Ok(())
            }
        }
    }

    fn drop_sender(&self) {
        self.no_senders.leave();
        self.update(|head| head.senders -= 1);
    }
}

/// A thread that waits until its message is received.
#[derive(Clone, Copy)]
struct Sending {
    thread: u32,
    head: *const (),
}

/// The object is the head of a channel.
fn of(head: *const ()) -> Head {
    // SAFETY: whoever waits for a channel refers to it.
    unsafe { *head.cast::<Head>() }
}

fn has_room(head: Head) -> bool {
    head.messages < head.room.max(1)
}

/// As [`std::sync::mpsc::channel`].
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let channel = Channel::new(usize::MAX);
    (Sender(channel.clone()), Receiver(channel))
}

/// As [`std::sync::mpsc::sync_channel`].
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let channel = Channel::new(bound);
    (SyncSender(channel.clone()), Receiver(channel))
}

macro_rules! sender {
    ($name:ident) => {
        #[doc = concat!("As [`std::sync::mpsc::", stringify!($name), "`].")]
        pub struct $name<T>(Arc<Channel<T>>);

        impl<T> $name<T> {
            /// Sends, if the receiver is still there, once there is room.
            #[track_caller]
            pub fn send(&self, value: T) -> Result<(), SendError<T>> {
                self.0.send(value, Location::caller())
            }
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                self.0.update(|head| head.senders += 1);
                Self(self.0.clone())
            }
        }

        impl<T> Drop for $name<T> {
            #[track_caller]
            fn drop(&mut self) {
                point(What::NoSender, self.0.object(), Location::caller());
                self.0.drop_sender();
            }
        }

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

sender!(Sender);
sender!(SyncSender);

impl<T> SyncSender<T> {
    /// Sends, if there is room.
    #[track_caller]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.0.try_send(value, Location::caller())
    }
}

/// As [`std::sync::mpsc::Receiver`].
pub struct Receiver<T>(Arc<Channel<T>>);

impl<T> Receiver<T> {
    /// Waits for a message; an error if there is none and nobody is left who could send one.
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        self.recv_at(Location::caller())
    }

    fn recv_at(&self, at: &'static Location<'static>) -> Result<T, RecvError> {
        let can_go_on = |head| of(head).messages > 0 || of(head).senders == 0;
        stop(Wait { what: What::Receive, object: self.0.object(), can_go_on, at });
        self.0.take().ok_or(RecvError)
    }

    /// A message, if there is one.
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        point(What::Receive, self.0.object(), Location::caller());
        self.0.take().ok_or(match self.0.head.get().senders {
            0 => TryRecvError::Disconnected,
            _ => TryRecvError::Empty,
        })
    }

    /// Waits for a message, or until the time is up: that may be at any moment.
    #[track_caller]
    pub fn recv_timeout(&self, _timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.try_recv().map_err(|error| match error {
            TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            TryRecvError::Empty => RecvTimeoutError::Timeout,
        })
    }

    /// The messages, until nobody is left who could send one.
    #[track_caller]
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        let at = Location::caller();
        std::iter::from_fn(move || self.recv_at(at).ok())
    }

    /// The messages that are there.
    pub fn try_iter(&self) -> impl Iterator<Item = T> + '_ {
        std::iter::from_fn(|| self.try_recv().ok())
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

/// As [`std::sync::mpsc::IntoIter`].
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> Drop for Receiver<T> {
    #[track_caller]
    fn drop(&mut self) {
        point(What::NoReceiver, self.0.object(), Location::caller());
        self.0.no_receiver.leave();
        self.0.update(|head| head.has_receiver = false);
        // Those that wait until their message is received take it back themselves.
        if self.0.head.get().room > 0 {
            let left = self.0.queue(std::mem::take);
            order::forget_messages(self.0.object().addr());
            drop(left);
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
