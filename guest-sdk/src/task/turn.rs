//! To let others go first.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::executor::{self, Wait};

/// Lets others go first, if any can go on, be it tasks or futures that the same task polls: for code between whose halves they may come.
///
/// ```
/// use std::cell::Cell;
/// use spelunk_guest::task;
///
/// async fn increment(counter: &Cell<u32>) {
///     let value = counter.get();
///     task::yield_now().await;
///     counter.set(value + 1);
/// }
/// ```
pub fn yield_now() -> Yield {
    Yield { has_yielded: false }
}

/// What [`yield_now`] returns.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Yield {
    has_yielded: bool,
}

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<()> {
        if self.has_yielded {
            return Poll::Ready(());
        }
        self.has_yielded = true;
        executor::waits(Wait::for_turn());
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
