//! The tree depth-first, by one worker or several.
//!
//! A worker keeps the path that it is on as a stack of levels, each with its saved state. A worker that has
//! nothing to do is given the shallowest alternatives that a busy one has not begun, so the tasks are parts of the
//! tree that follow one another in its order; results are put together in this order, however they came about.

mod level;
mod worker;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use super::equal::Equals;
use super::sleep::Independence;
use super::{
    Census, Checked, Findings, GoesOn, Limit, Met, Options, Progress, Stop, Told, Trouble, in_parallel, lock,
};
use crate::outcome::Failure;
use crate::target::Target;
use crate::trace::Trace;
use level::{Level, Place};
use worker::Worker;

/// Visits between two looks at the clock and at the other workers.
const POLL: u32 = 16;

/// What became of a part of the tree.
struct Task {
    /// Where it begins.
    place: Place,
    census: Census,
    failed: Vec<Failed>,
    /// States at the bound in which something could still be done.
    bounds: u64,
    trouble: Option<Box<Trouble>>,
}

/// A path that failed.
struct Failed {
    place: Place,
    failure: Box<Failure>,
    trace: Trace,
    /// What was counted in the task, this path included.
    census: Census,
}

/// What the workers share.
struct Shared<'a, S> {
    options: &'a Options,
    goes_on: GoesOn<'a>,
    told: Mutex<Told<'a>>,
    independence: Independence,
    root: Option<S>,
    workers: usize,
    queue: Mutex<Queue<S>>,
    changed: Condvar,
    /// Tasks that are waited for and not in the queue yet.
    wanted: AtomicUsize,
    met: Met,
    stop: Stop,
    limit: Mutex<Option<Limit>>,
    tasks: Mutex<Vec<Task>>,
    /// The first place of each failure.
    failures: Mutex<BTreeMap<String, Place>>,
    /// The place after which nothing counts, where there are as many failures as wanted, or trouble; and whether there
    /// is one.
    cut: Mutex<Option<Place>>,
    has_cut: AtomicBool,
    progress: Mutex<Progress>,
    /// Where states are compared by what the guest says.
    equals: Option<Equals<S>>,
}

/// Parts of the tree that nobody has begun, and how many workers wait for one.
struct Queue<S> {
    tasks: Vec<Vec<Level<S>>>,
    waiting: usize,
}

/// One worker where states are compared, where runs are counted down or reported: what comes first would depend on chance
/// otherwise.
fn is_alone(options: &Options) -> bool {
    options.prunes || options.lists || options.runs_max.is_some()
}

/// See [`super::check`].
pub(super) fn check<T>(
    targets: &mut [T],
    options: &Options,
    goes_on: GoesOn<'_>,
    told: Told<'_>,
) -> Result<Checked, Box<Trouble>>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    let targets = if is_alone(options) { &mut targets[..1] } else { targets };
    targets[0].reset();
    let shared = Shared {
        options,
        goes_on,
        told: Mutex::new(told),
        independence: Independence::of(&targets[0], options.reduces),
        root: targets[0].snapshot(),
        workers: targets.len(),
        queue: Mutex::new(Queue { tasks: vec![Vec::new()], waiting: 0 }),
        changed: Condvar::new(),
        wanted: AtomicUsize::new(0),
        met: Met::default(),
        stop: Stop::default(),
        limit: Mutex::new(None),
        tasks: Mutex::new(Vec::new()),
        failures: Mutex::new(BTreeMap::new()),
        cut: Mutex::new(None),
        has_cut: AtomicBool::new(false),
        progress: Mutex::new(Progress::default()),
        equals: (options.prunes && targets[0].says_state()).then(Equals::new),
    };
    let stack_bytes = targets[0].stack_bytes();
    in_parallel(targets, stack_bytes, |target| work(target, &shared));
    shared.result()
}

fn work<T: Target>(target: &mut T, shared: &Shared<'_, T::Snapshot>) {
    let _alarm = Alarm(shared);
    let mut worker = Worker::new(target, shared);
    while let Some(levels) = shared.next_task() {
        let task = worker.task(levels);
        lock(&shared.tasks).push(task);
    }
}

/// Has all workers stop where one panics: it would be waited for in vain.
struct Alarm<'a, 'o, S>(&'a Shared<'o, S>);

impl<S> Drop for Alarm<'_, '_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop.set();
            let _queue = lock(&self.0.queue);
            self.0.changed.notify_all();
        }
    }
}

impl<S> Shared<'_, S> {
    /// A part of the tree; nothing once every worker waits for one, or all are to stop.
    fn next_task(&self) -> Option<Vec<Level<S>>> {
        let mut queue = lock(&self.queue);
        queue.waiting += 1;
        loop {
            if !self.stop.is_set()
                && let Some(task) = queue.tasks.pop()
            {
                queue.waiting -= 1;
                self.want(&queue);
                return Some(task);
            }
            if queue.waiting == self.workers {
                self.stop.set();
            }
            if self.stop.is_set() {
                self.changed.notify_all();
                return None;
            }
            self.want(&queue);
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Hands a part of the tree to a worker that waits.
    fn give(&self, task: Vec<Level<S>>) {
        let mut queue = lock(&self.queue);
        queue.tasks.push(task);
        self.want(&queue);
        self.changed.notify_one();
    }

    fn want(&self, queue: &Queue<S>) {
        self.wanted.store(queue.waiting.saturating_sub(queue.tasks.len()), Ordering::Relaxed);
    }

    /// The host stopped a guest: the check is over, for the reason that it has by now.
    fn stopped(&self) {
        let limit = (self.goes_on)(&lock(&self.progress)).unwrap_or(Limit::Interrupt);
        lock(&self.limit).get_or_insert(limit);
        self.stop.set();
    }

    /// Remembers a failure, and where the check is cut off once there are enough.
    fn failed(&self, id: String, place: &Place) {
        let mut failures = lock(&self.failures);
        if failures.get(&id).is_some_and(|known| known <= place) {
            return;
        }
        failures.insert(id, place.clone());
        if self.options.are_enough(failures.len()) {
            let mut places: Vec<&Place> = failures.values().collect();
            places.sort();
            self.cut_at(places[self.options.findings_max - 1].clone());
        }
    }

    /// Nothing counts after this place. What comes before it is explored to the end, so that it does not depend on
    /// the workers what the check comes to.
    fn cut_at(&self, place: Place) {
        let mut cut = lock(&self.cut);
        if cut.as_ref().is_none_or(|known| place < *known) {
            *cut = Some(place);
        }
        self.has_cut.store(true, Ordering::Relaxed);
    }

    /// Puts the tasks together in the order of the tree.
    fn result(self) -> Result<Checked, Box<Trouble>> {
        let mut tasks = self.tasks.into_inner().unwrap_or_else(PoisonError::into_inner);
        tasks.sort_by(|a, b| a.place.cmp(&b.place));
        let cut = self.cut.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut census, mut findings, mut bounds) = (Census::default(), Findings::default(), 0);
        for task in tasks {
            for failed in &task.failed {
                let run = census.runs + failed.census.runs;
                findings.add(&failed.failure, run, || failed.trace.clone());
                if cut.as_ref() == Some(&failed.place) {
                    census.add(&failed.census);
                    return Ok(Checked::of(census, findings, None));
                }
            }
            if let Some(trouble) = task.trouble {
                return Err(trouble);
            }
            census.add(&task.census);
            bounds += task.bounds;
        }
        let limit = self.limit.into_inner().unwrap_or_else(PoisonError::into_inner);
        let limit = limit.or((bounds > 0).then_some(Limit::Steps));
        Ok(Checked::of(census, findings, limit))
    }
}

impl Task {
    fn new(place: Place) -> Task {
        Task { place, census: Census::default(), failed: Vec::new(), bounds: 0, trouble: None }
    }
}
