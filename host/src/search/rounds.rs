//! Several workers, and the result of one.
//!
//! Most runs learn nothing, so the workers execute the next runs ahead of time as if none of them did: a round.
//! What a run starts from is decided for all of a round at once, in their order. After the round the runs count in
//! their order up to the first that learned something; what it learned is then known, and the runs after it are
//! forgotten and decided anew. So every run knew what it would have known had there been one worker, and the
//! result is the same, whatever the number of workers and however fast each is.
//!
//! Workers take the runs in their order, so what is forgotten is no more than what the others were at when one
//! learned something.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError, RwLock};

use super::knowledge::Plan;
use super::run::{Held, Known, Ran, Runner};
use super::{Explorer, Knowledge, Options, Progress};
use crate::property::Counts;
use crate::target::Target;
use crate::threads;

/// A round has so many times as many runs as learned nothing since the last that did. Few rounds are needed then until
/// there are long ones, and what is planned in vain costs less than a round.
const GROWTH: u64 = 8;
/// Runs in a round, at most.
const ROUND_MAX: u64 = 4096;

/// What the workers of a round share.
struct Shared<S> {
    /// Locked for writing between rounds.
    round: RwLock<Round<S>>,
    /// Holds the workers before and after a round.
    gate: Barrier,
    /// The first run that nobody has taken yet.
    next: AtomicUsize,
    /// Runs from here on need not be executed.
    end: AtomicUsize,
    /// What the runs did, in any order.
    done: Mutex<Vec<Done<S>>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

struct Round<S> {
    /// `None` where there is no further round.
    known: Option<Knowledge<S>>,
    plans: Vec<Plan>,
}

/// A run that was executed: its place in the round, and what it did.
type Done<S> = (usize, Ran<S>, Option<Box<Counts>>);

impl<'t, T> Explorer<'t, T>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    /// Explores with all workers.
    pub(super) fn explore_in_rounds(&mut self, goes_on: &(impl Fn(&Progress) -> bool + Sync)) {
        let mut idle = self.runners.split_off(1);
        // Fewer workers come to the same result.
        let stack_bytes = idle[0].target.stack_bytes();
        let mut others = idle.split_off(idle.len() - threads::available(idle.len(), stack_bytes));
        let shared = Shared {
            round: RwLock::new(Round { known: None, plans: Vec::new() }),
            gate: Barrier::new(others.len() + 1),
            next: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            done: Mutex::new(Vec::new()),
            panic: Mutex::new(None),
        };
        let (options, workers) = (self.options.clone(), others.len() as u64 + 1);
        std::thread::scope(|scope| {
            for runner in &mut others {
                let (shared, options) = (&shared, &options);
                let work = move || while execute(runner, shared, options, goes_on) {};
                threads::with_stack(stack_bytes).spawn_scoped(scope, work).expect("a thread can be started");
            }
            let explored = catch_unwind(AssertUnwindSafe(|| {
                while goes_on(&self.progress()) {
                    match self.width(workers) {
                        1 => self.run(),
                        width => self.round(&shared, width, goes_on),
                    }
                }
            }));
            // A round in which nothing is known sends the others home.
            write(&shared.round).known = None;
            shared.gate.wait();
            if let Err(panic) = explored {
                resume_unwind(panic);
            }
        });
        self.runners.append(&mut idle);
        self.runners.append(&mut others);
    }

    /// How many runs to execute at once.
    fn width(&self, workers: u64) -> u64 {
        let width = (self.barren * GROWTH).min(ROUND_MAX);
        if width < 2 * workers { 1 } else { width }
    }

    /// Executes runs ahead, and counts those that knew all that they should have.
    fn round(
        &mut self,
        shared: &Shared<T::Snapshot>,
        width: u64,
        goes_on: &(impl Fn(&Progress) -> bool + Sync),
    ) {
        // What this target counted in runs of its own belongs to them.
        self.count();
        let first = self.known.tally.runs + 1;
        let plans: Vec<Plan> =
            (first..first + width).map(|number| self.known.plan(&self.options, number)).collect();
        let empty = Knowledge::new(&self.options, (0, false), Counts::default());
        shared.next.store(0, Ordering::Relaxed);
        shared.end.store(plans.len(), Ordering::Relaxed);
        *write(&shared.round) = Round { known: Some(std::mem::replace(&mut self.known, empty)), plans };
        execute(&mut self.runners[0], shared, &self.options, goes_on);
        if let Some(panic) = lock(&shared.panic).take() {
            resume_unwind(panic);
        }
        let Round { known, plans } = &mut *write(&shared.round);
        self.known = known.take().expect("it was just put there");
        let mut done = std::mem::take(&mut *lock(&shared.done));
        done.sort_unstable_by_key(|(at, ..)| *at);
        let mut counted = 0;
        for (at, ran, counts) in done {
            // Where one was not executed, those after it do not count.
            if at != counted {
                break;
            }
            counted += 1;
            self.add(&ran);
            if let Some(counts) = counts {
                self.known.tally.counts.add(&counts);
            }
            if let Some(learned) = ran.learned {
                let tally = std::mem::take(&mut self.known.tally);
                self.known = Knowledge { tally, ..*learned };
                self.shed();
                return;
            }
        }
        self.known.take_back(&plans[counted..]);
    }
}

/// What one worker does in a round; whether there will be another.
fn execute<T: Target>(
    runner: &mut Runner<'_, T>,
    shared: &Shared<T::Snapshot>,
    options: &Options,
    goes_on: &(impl Fn(&Progress) -> bool + Sync),
) -> bool {
    shared.gate.wait();
    let round = shared.round.read().unwrap_or_else(PoisonError::into_inner);
    let Some(known) = &round.known else { return false };
    let mut done = Vec::new();
    let executed = catch_unwind(AssertUnwindSafe(|| {
        loop {
            let at = shared.next.fetch_add(1, Ordering::Relaxed);
            if at >= shared.end.load(Ordering::Relaxed) {
                break;
            }
            let plan = &round.plans[at];
            if !goes_on(&Progress { runs: plan.number - 1, ..known.progress() }) {
                shared.end.fetch_min(at, Ordering::Relaxed);
                break;
            }
            let ran = runner.run(Known::new(options, plan, &round.plans[at + 1..], Held::Shared(known)));
            if ran.is_stopped {
                drop(runner.target.take_counts());
                shared.end.fetch_min(at, Ordering::Relaxed);
                break;
            }
            if ran.has_learned {
                shared.end.fetch_min(at + 1, Ordering::Relaxed);
            }
            done.push((at, ran, runner.target.take_counts()));
        }
    }));
    lock(&shared.done).append(&mut done);
    if let Err(panic) = executed {
        shared.end.store(0, Ordering::Relaxed);
        *lock(&shared.panic) = Some(panic);
    }
    drop(round);
    shared.gate.wait();
    true
}

fn write<T>(shared: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    shared.write().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
