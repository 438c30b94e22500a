//! Says now and then that it is time for something. It is asked after each run, so it costs one load: a thread looks at the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Progress is reported this often, at most.
const PROGRESS: Duration = Duration::from_millis(100);

pub(super) struct Pace {
    is_due: Arc<AtomicBool>,
    /// The thread ends with it.
    _held: Sender<()>,
}

impl Pace {
    /// For progress.
    pub(super) fn new() -> Pace {
        Pace::every(PROGRESS)
    }

    /// Due after each such time. Where no thread can be started it never is.
    pub(super) fn every(interval: Duration) -> Pace {
        let is_due = Arc::new(AtomicBool::new(false));
        let (held, ended) = mpsc::channel();
        let due = is_due.clone();
        let watch = move || {
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                due.store(true, Ordering::Relaxed);
            }
        };
        // Nothing but progress, and what is saved before the end, depends on it.
        drop(std::thread::Builder::new().name("pace".to_string()).spawn(watch));
        Pace { is_due, _held: held }
    }

    /// Whether the time has come; not again until the next.
    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed) && self.is_due.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_once_each_time() {
        let pace = Pace::every(Duration::from_millis(20));
        assert!(!pace.is_due());
        std::thread::sleep(Duration::from_millis(200));
        assert!(pace.is_due());
        let pace = Pace::every(Duration::from_secs(1000));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!pace.is_due());
    }
}
