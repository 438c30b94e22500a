//! CPU time, as Linux says it of a process. A machine that does other things too takes none of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Milliseconds of a tick of `/proc`.
const TICK_MS: u64 = 10;
/// Where the fields of `/proc/self/stat` are after the name: those of this process, and of the processes that it waited for.
const OWN: usize = 11;
const CHILDREN: usize = 13;

/// The time of all processes that this one has waited for.
pub(super) fn of_children() -> Result<Duration> {
    read(CHILDREN)
}

fn read(field: usize) -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("CPU time is known on Linux alone")?;
    let (_, fields) = stat.rsplit_once(')').context("the name of a process stands in parentheses")?;
    // Both of the user and of the system.
    let ticks = fields.split_whitespace().skip(field).take(2).map(str::parse);
    let ticks: u64 = ticks.collect::<Result<Vec<u64>, _>>()?.iter().sum();
    Ok(Duration::from_millis(ticks * TICK_MS))
}

/// Says when this process has used so much.
pub(super) struct Watch {
    begun: Instant,
    used_before: Duration,
    time: Duration,
    /// Milliseconds by the clock at which it may be so far: before, not so much can have been used by one thread.
    look_ms: AtomicU64,
}

impl Watch {
    pub(super) fn new(time: Duration) -> Result<Watch> {
        let look_ms = AtomicU64::new(time.as_millis() as u64);
        Ok(Watch { begun: Instant::now(), used_before: read(OWN)?, time, look_ms })
    }

    pub(super) fn used(&self) -> Result<Duration> {
        Ok(read(OWN)?.saturating_sub(self.used_before))
    }

    pub(super) fn goes_on(&self) -> bool {
        let now = self.begun.elapsed().as_millis() as u64;
        if now < self.look_ms.load(Ordering::Relaxed) {
            return true;
        }
        let left = self.used().map_or(Duration::ZERO, |used| self.time.saturating_sub(used));
        self.look_ms.store(now + left.as_millis() as u64, Ordering::Relaxed);
        !left.is_zero()
    }
}
