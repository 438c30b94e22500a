//! Tasks, and what they return.

use std::borrow::Cow;
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use super::executor::{self, Wait};
use super::gate::{Entry, Gate};

/// Adds a task, which runs whether its handle is awaited or not.
///
/// It starts when it is chosen, not here. A panic in it is a finding, as anywhere.
pub fn spawn<F: Future<Output: 'static> + 'static>(future: F) -> JoinHandle<F::Output> {
    spawn_as(future, false)
}

/// Adds a task for whose end nobody waits: a server, say, that serves for ever. It goes on as long as others do,
/// and is dropped by [`run`](super::run) when these are done. It is no deadlock if it waits in vain. One that sleeps
/// again and again keeps the clock going, though, so that others that wait in vain never are one.
pub fn spawn_background<F: Future<Output: 'static> + 'static>(future: F) -> JoinHandle<F::Output> {
    spawn_as(future, true)
}

fn spawn_as<F: Future<Output: 'static> + 'static>(future: F, is_background: bool) -> JoinHandle<F::Output> {
    let end = Rc::new(End { result: RefCell::new(None), gate: Gate::new(false) });
    let task = Box::pin({
        let end = end.clone();
        async move {
            let result = future.await;
            end.result.replace(Some(result));
            end.gate.set(true);
        }
    });
    JoinHandle { end, task: executor::spawn(task, is_background), entry: Entry::new() }
}

/// A task. To await it is to wait for its end, and gives what it returned; to drop it changes nothing.
#[derive(Debug)]
pub struct JoinHandle<T> {
    end: Rc<End<T>>,
    task: usize,
    entry: Entry,
}

#[derive(Debug)]
struct End<T> {
    result: RefCell<Option<T>>,
    /// Open once the task is done.
    gate: Gate,
}

impl<T> JoinHandle<T> {
    /// Gives the task a name, that findings name it by. Without one it has its number.
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> JoinHandle<T> {
        executor::set_name(self.task, name.into());
        self
    }

    /// Whether the task is done.
    pub fn is_done(&self) -> bool {
        self.end.gate.is_open()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<T> {
        let JoinHandle { end, task, entry } = &mut *self;
        ready!(entry.pass_at_once(&end.gate, context, Wait::for_end_of(*task)));
        Poll::Ready(end.result.take().expect("a task returns once: its handle is not polled again"))
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        self.entry.leave(&self.end.gate);
    }
}
