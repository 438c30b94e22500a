//! When to stop: one budget, which every phase of a job polls.
//!
//! Time decides only when to stop, never what to try. Polling costs one load, so it may be done anywhere; a thread of the
//! budget's own looks at the clock.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;

/// Why a budget is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The time is up.
    Time,
    /// The user asked to stop.
    Interrupt,
    /// This machine has no more of what is needed: memory, address space, threads. [`Budget::exhaustion`] says what.
    Exhausted,
}

/// The error of a job whose budget ended before it had anything to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Why it ended.
    pub over: Over,
    why: String,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Stopped {}

/// Time, and whether the user asked to stop. Clones are the same budget.
#[derive(Clone, Debug, Default)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    over: AtomicU8,
    compiling_max: AtomicU64,
    /// What the thread that looks at the clock waits for.
    deadline: Mutex<Option<Instant>>,
    changed: Condvar,
    exhaustion: Mutex<Option<String>>,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            over: AtomicU8::new(0),
            compiling_max: AtomicU64::new(COMPILING_MAX),
            deadline: Mutex::default(),
            changed: Condvar::default(),
            exhaustion: Mutex::default(),
        }
    }
}

/// Bytes that may be held while a module is compiled, unless [`Budget::limit_compiling`] says otherwise.
pub const COMPILING_MAX: u64 = 4 << 30;

const TIME: u8 = 1;
const INTERRUPT: u8 = 2;
const EXHAUSTED: u8 = 3;

impl Budget {
    /// A budget that ends when it is interrupted, and not before.
    pub fn unlimited() -> Budget {
        Budget::default()
    }

    /// A budget of so much time from now on.
    pub fn of(time: Duration) -> Budget {
        let budget = Budget::unlimited();
        budget.limit(time);
        budget
    }

    /// Ends the budget after so much time from now on, instead of when it was to end before.
    pub fn limit(&self, time: Duration) {
        // With no time at all the first who polls sees it, whenever the thread starts.
        if time.is_zero() {
            self.end(TIME);
        }
        // What cannot be reckoned with is never reached.
        let deadline = Instant::now().checked_add(time);
        let has_thread = std::mem::replace(&mut *self.deadline(), deadline).is_some();
        if has_thread {
            self.0.changed.notify_all();
        } else if deadline.is_some() {
            let budget = self.clone();
            let thread = std::thread::Builder::new().name("budget".to_string());
            // Without a thread nobody would look at the clock.
            if thread.spawn(move || budget.watch()).is_err() {
                self.end(TIME);
            }
        }
    }

    /// The user asked to stop; whether for the second time. To be called from anywhere.
    pub fn interrupt(&self) -> bool {
        let interrupt = |over| (over != EXHAUSTED).then_some(INTERRUPT);
        let before = self.0.over.fetch_update(Ordering::Relaxed, Ordering::Relaxed, interrupt);
        before.is_ok_and(|before| before == INTERRUPT)
    }

    /// Why it is over, once it is.
    pub fn over(&self) -> Option<Over> {
        match self.0.over.load(Ordering::Relaxed) {
            TIME => Some(Over::Time),
            INTERRUPT => Some(Over::Interrupt),
            EXHAUSTED => Some(Over::Exhausted),
            _ => None,
        }
    }

    /// The time that is left, where it has an end.
    pub fn left(&self) -> Option<Duration> {
        self.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Goes on only while it is not over.
    ///
    /// # Errors
    /// It is.
    pub fn check(&self) -> Result<(), Stopped> {
        let Some(over) = self.over() else { return Ok(()) };
        let why = match over {
            Over::Time => "the time was up (--time) before there was a result".to_string(),
            Over::Interrupt => "interrupted before there was a result".to_string(),
            Over::Exhausted => self.exhaustion().unwrap_or_default(),
        };
        Err(Stopped { over, why })
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.over().is_some()
    }

    /// Whether the host cannot go on.
    pub fn is_exhausted(&self) -> bool {
        self.0.over.load(Ordering::Relaxed) == EXHAUSTED
    }

    /// The host cannot go on, for the reason that `message` says. What a guest does from then on does not count: it may
    /// have seen that the host failed.
    pub fn exhaust(&self, message: impl Into<String>) {
        let mut exhaustion = self.0.exhaustion.lock().unwrap_or_else(PoisonError::into_inner);
        exhaustion.get_or_insert_with(|| message.into());
        self.0.over.store(EXHAUSTED, Ordering::Relaxed);
    }

    /// Why the host cannot go on, where it cannot: an error, which ends the job.
    pub fn exhaustion(&self) -> Option<String> {
        self.0.exhaustion.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Bytes that may be held from now on while a module is read, parsed or compiled.
    pub fn limit_compiling(&self, bytes: u64) {
        self.0.compiling_max.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that a module may have: reading and compiling it takes several times as many.
    pub(crate) fn module_max(&self) -> u64 {
        self.0.compiling_max.load(Ordering::Relaxed) / 4
    }

    /// Does work on a module that takes unknown time and memory, on a thread of its own.
    ///
    /// # Errors
    /// The budget was over, or what the process holds grew beyond the limit, before the work was done. It goes on then, which
    /// does not keep the process from ending.
    pub(crate) fn compiling<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> anyhow::Result<T> {
        let held = held();
        let (sender, receiver) = mpsc::channel();
        let thread =
            std::thread::Builder::new().name("compiling".to_string()).stack_size(COMPILER_STACK_BYTES);
        let thread = thread.spawn(move || drop(sender.send(work())));
        let thread = thread.context("no thread can be started to compile the module")?;
        loop {
            match receiver.recv_timeout(COMPILER_POLL) {
                Ok(done) => return Ok(done),
                Err(RecvTimeoutError::Timeout) => {
                    self.check().context("compiling the module did not come to its end")?;
                    let max = self.0.compiling_max.load(Ordering::Relaxed);
                    anyhow::ensure!(
                        self::held().saturating_sub(held) <= max,
                        "compiling the module takes more than {} MiB of memory; --compile-memory sets the limit",
                        max >> 20
                    );
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let panic = thread.join().expect_err("a thread that sends nothing panics");
                    std::panic::resume_unwind(panic)
                }
            }
        }
    }

    fn deadline(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, why: u8) {
        let _ = self.0.over.compare_exchange(0, why, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Waits for the deadline, or for the end of the last other owner.
    fn watch(self) {
        let mut deadline = self.deadline();
        while let Some(at) = *deadline {
            let now = Instant::now();
            if now >= at {
                self.end(TIME);
                *deadline = None;
                return;
            }
            if Arc::strong_count(&self.0) == 1 {
                return;
            }
            let wait = (at - now).min(WAIT_MAX);
            deadline = self.0.changed.wait_timeout(deadline, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Bytes that this process holds in memory; 0 where the system does not say.
fn held() -> u64 {
    memory_stats::memory_stats().map_or(0, |stats| stats.physical_mem as u64)
}

/// How often is looked whether compiling may go on.
const COMPILER_POLL: Duration = Duration::from_millis(10);
/// Types and expressions nest, and are read by recursion.
const COMPILER_STACK_BYTES: usize = 16 << 20;
/// The thread looks this often whether anybody still has the budget.
const WAIT_MAX: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn over_after(budget: &Budget, time: Duration) -> Option<Over> {
        std::thread::sleep(time);
        budget.over()
    }

    #[test]
    fn it_ends_when_the_time_is_up_or_the_user_says_so() {
        let budget = Budget::of(Duration::from_millis(20));
        assert_eq!(over_after(&budget, Duration::from_millis(200)), Some(Over::Time));
        budget.interrupt();
        assert_eq!(budget.over(), Some(Over::Interrupt));
        let budget = Budget::unlimited();
        assert_eq!(over_after(&budget, Duration::from_millis(20)), None);
        budget.clone().interrupt();
        assert!(budget.is_over());
    }

    #[test]
    fn the_end_can_be_moved() {
        let budget = Budget::of(Duration::from_millis(20));
        budget.limit(Duration::from_secs(1000));
        assert_eq!(over_after(&budget, Duration::from_millis(200)), None);
        budget.limit(Duration::ZERO);
        assert_eq!(over_after(&budget, Duration::from_millis(200)), Some(Over::Time));
        assert_eq!(Budget::of(Duration::MAX).over(), None);
        assert_eq!(Budget::of(Duration::ZERO).over(), Some(Over::Time));
    }
}
