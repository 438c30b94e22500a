//! A clock that goes on when nothing else does.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::executor::{self, Wait};

/// The time since the start of the run.
pub fn now() -> Duration {
    Duration::from_nanos(executor::time())
}

/// Ends when this time has passed: not before all other tasks wait. Tasks that wait for the same instant are
/// woken together.
///
/// # Panics
/// If the clock would pass `u64::MAX` nanoseconds, which are 584 years.
pub fn sleep(duration: Duration) -> Sleep {
    let nanoseconds = u64::try_from(duration.as_nanos()).ok();
    let end = nanoseconds.and_then(|nanoseconds| executor::time().checked_add(nanoseconds));
    let end = end.expect("the clock goes on for 584 years");
    Sleep { end, waker: None }
}

/// What [`sleep`] returns.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    /// In nanoseconds since the start.
    end: u64,
    /// Whom a timer wakes.
    waker: Option<Waker>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<()> {
        if executor::time() >= self.end {
            return Poll::Ready(());
        }
        // The timers of a run are gone once that has ended.
        let is_set = |waker: &Waker| waker.will_wake(context.waker()) && executor::has_timer(self.end, waker);
        if !self.waker.as_ref().is_some_and(is_set) {
            self.stop();
            self.waker = Some(context.waker().clone());
            executor::add_timer(self.end, context.waker().clone());
        }
        executor::waits(Wait::until(self.end));
        Poll::Pending
    }
}

impl Sleep {
    fn stop(&mut self) {
        if let Some(waker) = self.waker.take() {
            executor::remove_timer(self.end, &waker);
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        // If it is over, the timer is gone, and one of another sleep might be taken for it.
        if executor::time() < self.end {
            self.stop();
        }
    }
}

/// The time was over before the future was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

/// What `future` returns, or [`Elapsed`] if it does not within this time. It is dropped then.
///
/// Since the clock stands still while any task can go on, the time is over only if all wait.
pub async fn timeout<F: Future>(duration: Duration, future: F) -> Result<F::Output, Elapsed> {
    let (mut future, mut sleep) = (pin!(future), sleep(duration));
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Ok(value)),
        Poll::Pending => Pin::new(&mut sleep).poll(context).map(|()| Err(Elapsed)),
    })
    .await
}
