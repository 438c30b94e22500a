//! Exhaustive checking: every answer within bounds is tried, and the verdict says whether something fails.
//!
//! The answers form one tree: which rule or fault toggle is next, then each choice that this step makes. It is
//! walked depth-first ([`depth`], in the order of rseq: the first alternative first, and the last choice that has
//! another one changes first) or breadth-first ([`breadth`], in the order of eXplode: a queue of prefixes, and all
//! states at n steps before those at n + 1). A state that was met before is not explored again, where states are
//! compared at all. Snapshots save the way from the start to a state and change no result.

mod breadth;
mod commute;
mod depth;
mod differ;
mod equal;
mod keeping;
mod leftover;
mod liveness;
mod met;
mod path;
mod sleep;
#[cfg(test)]
mod soundness;
#[cfg(test)]
mod tests;
mod visit;
mod visited;

pub use crate::schedules::Schedules;
pub use breadth::graph::{Picture, Step, To};
pub use breadth::{Helpers, News, Part, Round, Soundness, Source};
pub use keeping::{Bytes, Hashes, Keeper, Keeping, Walked, help};
pub use leftover::{Leftover, leftover};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::choice::Kind;
use crate::outcome::{Failure, Found, Halt};
use crate::property::{Counts, PropertyKind};
use crate::target::Target;
use crate::threads;
use crate::trace::{Action, Trace};
use met::Met;

/// What to walk first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// One path to its end before the next.
    Depth,
    /// All states at n steps before those at n + 1.
    Breadth,
}

/// How to check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// What to walk first.
    pub order: Order,
    /// Rules called and faults toggled on a path, at most.
    pub steps_max: Option<u32>,
    /// Paths, at most.
    pub runs_max: Option<u64>,
    /// Different failures after which the check stops; 0 is never.
    pub findings_max: usize,
    /// Bytes that saved states may hold while they wait, about; those beyond are reached again instead.
    pub saved_bytes_max: usize,
    /// Bytes that the states which were met, and the steps that lead to them, may hold; the check stops beyond, and saves less
    /// as they grow.
    pub met_bytes_max: usize,
    /// Alternatives that a choice may have.
    pub alternatives_max: u32,
    /// A state that was met before is not explored again.
    pub prunes: bool,
    /// Of two orders of independent rules only one is explored.
    pub reduces: bool,
    /// Every path is reported, not only those that fail.
    pub lists: bool,
    /// The graph of states is wanted, breadth-first and without reduction.
    pub draws: bool,
    /// Runs whose schedule costs more are left out.
    pub schedules: Option<Schedules>,
    /// Not all orders of threads are tried: loops are looked for, and not judged.
    #[serde(skip)]
    pub leaves_out_orders: bool,
    /// Breadth-first, the guest may copy its states by itself, where it can: see [`TroubleKind::Copies`].
    #[serde(skip)]
    pub copies: bool,
}

impl Options {
    /// Whether a guest may copy its states by itself in such a check.
    pub(crate) fn may_copy(&self) -> bool {
        self.copies && self.prunes && !self.reduces && !self.lists && self.runs_max.is_none()
    }

    /// Whether so many different failures are as many as wanted.
    pub(crate) fn are_enough(&self, failures: usize) -> bool {
        self.findings_max > 0 && failures >= self.findings_max
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            order: Order::Breadth,
            steps_max: None,
            runs_max: None,
            findings_max: 10,
            saved_bytes_max: 1 << 30,
            met_bytes_max: 1 << 30,
            alternatives_max: 1 << 16,
            prunes: true,
            reduces: false,
            lists: false,
            draws: false,
            schedules: None,
            leaves_out_orders: false,
            copies: true,
        }
    }
}

/// What was counted. The counts of a check that finished depend neither on the number of workers nor on
/// snapshots, nor on the order but for `depth`; where states are compared depth-first under a bound on steps, or
/// with reduction, states alone do not: they may be entered more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Census {
    /// Paths that ended: the guest failed or rejected the run, or, where it has a teardown, that was performed, once in
    /// every state; where it has none, no rule may be called or the bound was reached. Those that led to a known state
    /// are not among them.
    pub runs: u64,
    /// Runs that the guest rejected.
    pub rejected: u64,
    /// Different states, the first included. Without comparison, nodes of the tree.
    pub states: u64,
    /// Steps that led to a known state.
    pub pruned: u64,
    /// Rules called and faults toggled, each once for each state and answers.
    pub steps: u64,
    /// Choices met: nodes of the tree with answers of the guest's questions as branches.
    pub choices: u64,
    /// The most rules called and faults toggled on a path that was walked.
    pub depth: u32,
}

impl Census {
    fn add(&mut self, other: &Census) {
        self.runs += other.runs;
        self.rejected += other.rejected;
        self.states += other.states;
        self.pruned += other.pruned;
        self.steps += other.steps;
        self.choices += other.choices;
        self.depth = self.depth.max(other.depth);
    }
}

/// How far a check is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// What was counted so far.
    pub census: Census,
    /// Of that, what an earlier process counted.
    pub before: Census,
    /// States that wait to be explored, breadth-first.
    pub waiting: u64,
    /// The part of the tree that is done, depth-first: the sum over finished subtrees of the products of
    /// 1 / branches (Knuth 1975).
    pub done: f64,
}

/// What ended a check, or bounded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The bound on steps, with something left to do there.
    Steps,
    /// The bound on runs.
    Runs,
    /// The time.
    Time,
    /// The bytes that it may hold.
    Memory,
    /// The user.
    Interrupt,
    /// One of two orders of independent rules was left out, and something was not seen that may be seen there.
    Reduction,
    /// Properties of runs without end were not judged.
    Liveness,
    /// Runs whose schedule costs more than this were left out.
    Schedules(Schedules),
}

impl Limit {
    /// Whether it ended the check from outside, so that the check might go on.
    pub fn is_from_outside(self) -> bool {
        matches!(self, Limit::Time | Limit::Memory | Limit::Interrupt)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Steps => "steps",
            Limit::Runs => "runs",
            Limit::Time => "time",
            Limit::Memory => "memory",
            Limit::Interrupt => "interrupt",
            Limit::Reduction => "reduction",
            Limit::Liveness => "liveness",
            Limit::Schedules(bound) => bound.name(),
        })
    }
}

/// How a path ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// Nothing more can be done.
    Leaf,
    /// The bound on steps was reached.
    Bound,
    /// The guest rejected it.
    Rejected,
    /// The guest failed.
    Failed(Box<Failure>),
}

/// What a breadth-first check saw of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCover {
    /// States in which it was called.
    pub enabled: u64,
    /// Calls that were not rejected, one for each state and answers.
    pub taken: u64,
    /// States that it led to first.
    pub states: u64,
    /// The fewest steps after which it was taken, itself among them.
    pub depth: Option<u32>,
}

/// What a check found out.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// What was counted.
    pub census: Census,
    /// Different failures, each with the path that came to it first in the order of the check.
    pub findings: Vec<Found>,
    /// What kept the check from being complete; among several, the one that ended it.
    pub limit: Option<Limit>,
    /// Each rule, breadth-first.
    pub rules: Vec<RuleCover>,
    /// After how few steps each property was evaluated first, and held first; breadth-first.
    pub first: First,
    /// The graph of states, where it was wanted.
    pub picture: Option<Picture>,
    /// A path comes back to where it was; looked for where orders are left out.
    pub has_loop: bool,
    /// Steps of threads that were left out, since another order of them makes no difference.
    pub steps_left_out: u64,
}

/// After how few steps properties were evaluated first, and where they did hold, by kind and name.
pub type First = BTreeMap<(PropertyKind, String), (u32, Option<u32>)>;

impl Checked {
    /// A check that was ended by this, or by nothing, and did not look at rules one by one.
    fn of(census: Census, findings: Findings, limit: Option<Limit>) -> Checked {
        let (rules, first, findings) = (Vec::new(), First::new(), findings.0);
        Checked { census, findings, limit, rules, first, picture: None, has_loop: false, steps_left_out: 0 }
    }

    /// Why the check says nothing, where it found nothing because nothing could be done. The target of the check is
    /// `has_teardown`.
    pub fn vacuity(&self, has_teardown: bool) -> Option<&'static str> {
        let Census { runs, rejected, states, pruned, steps, depth, .. } = self.census;
        if self.limit.is_some() || !self.findings.is_empty() {
            return None;
        }
        // A step that passes leads to a known state, to one with steps of its own, or to the end of a run.
        let has_passed = runs > rejected || !has_teardown && (pruned > 0 || depth > 1);
        if states == 0 {
            Some("setup rejects every run, so nothing was checked")
        } else if steps == 0 {
            Some("no rule may ever be called, so nothing was checked")
        } else if !has_passed {
            Some("the guest rejects every run: what it assumes never holds")
        } else {
            None
        }
    }
}

/// Why there can be no verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble {
    /// The steps up to the one in which it happened.
    pub trace: Trace,
    /// What happened.
    pub kind: TroubleKind,
}

/// See [`Trouble`].
#[derive(Clone, Debug, PartialEq)]
pub enum TroubleKind {
    /// A choice of the last step, by index, asks for one of too many alternatives.
    Unbounded(usize, Kind),
    /// The last step did not go as it did before.
    Nondeterminism(String),
    /// The guest failed to say what its state is.
    State(Box<Failure>),
    /// These rules are declared independent, and are not, in the state after the last step.
    Dependent {
        /// Their indices.
        rules: [u16; 2],
        /// What shows it.
        why: &'static str,
    },
    /// The guest says that the state after the last step is that after the steps of `other`, and they behave differently: after `steps`
    /// from both of them, `last` does.
    Unequal {
        /// Steps to the other state.
        other: Box<Trace>,
        /// What follows in both.
        steps: Vec<Action>,
        /// What then differs.
        last: Action,
        /// How.
        why: &'static str,
    },
    /// What the guest copied by itself behaves differently from what it is a copy of. The check can be made without: see [`Options::copies`].
    Copies,
    /// The check is to be made without states that the guest copies, for this reason, which is no fault of the guest's.
    Without(&'static str),
    /// The host stopped the guest; it is no trouble of the guest's, and never reported as one.
    Stopped,
}

impl From<Halt> for TroubleKind {
    /// Of a guest that was to say what its state is.
    fn from(halt: Halt) -> TroubleKind {
        match halt {
            Halt::Fail(failure) => TroubleKind::State(failure),
            Halt::Stopped => TroubleKind::Stopped,
        }
    }
}

/// Asked now and then by every worker: whether to stop, and why.
pub type GoesOn<'a> = &'a (dyn Fn(&Progress) -> Option<Limit> + Sync);

/// Is handed each path that ended, where all are wanted, and else each that failed as none before it of its worker.
pub type Told<'a> = &'a mut (dyn FnMut(&Trace, &End) + Send);

/// Checks a target on as many workers as there are copies of it. Each path that ended is handed to `told`, in the
/// order of the check, where `options.lists` says so, and else those with new failures, when they are found.
///
/// # Errors
/// A choice with too many alternatives, or a guest that is not deterministic.
pub fn check<T>(
    targets: &mut [T],
    options: &Options,
    goes_on: GoesOn<'_>,
    told: Told<'_>,
) -> Result<Checked, Box<Trouble>>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    check_keeping(targets, options, (goes_on, told), (None, &mut Counts::default()))
}

/// As [`check`]. It goes on after what was kept, and what it comes to is kept, where [`Options::can_be_kept`] says so. What
/// is seen of properties is added to `counts`; how often depends on the number of workers.
///
/// # Errors
/// As those of [`check`].
pub fn check_keeping<T>(
    targets: &mut [T],
    options: &Options,
    (goes_on, told): (GoesOn<'_>, Told<'_>),
    (keeping, counts): (Option<Keeping<'_>>, &mut Counts),
) -> Result<Checked, Box<Trouble>>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    assert!(!targets.is_empty(), "a check needs a target");
    if options.runs_max == Some(0) {
        return Ok(Checked::of(Census::default(), Findings::default(), Some(Limit::Runs)));
    }
    // Fewer workers come to the same result.
    let others = threads::available(targets.len() - 1, targets[0].stack_bytes());
    let targets = &mut targets[..=others];
    for target in targets.iter_mut() {
        target.set_counts(true);
    }
    let checked = match options.order {
        Order::Depth => depth::check(targets, options, goes_on, told),
        Order::Breadth => {
            let keeping = keeping.filter(|_| options.can_be_kept());
            breadth::check(targets, options, (goes_on, told), (keeping, counts))
        }
    };
    for target in targets.iter_mut() {
        target.set_counts(false);
        target.take_counts().iter().for_each(|more| counts.add(more));
    }
    checked.map(|mut checked| {
        if !options.judges()
            && !targets[0].liveness().is_empty()
            && !options.are_enough(checked.findings.len())
        {
            checked.limit.get_or_insert(Limit::Liveness);
        }
        checked
    })
}

/// Different failures in the order of the check.
#[derive(Default)]
struct Findings(Vec<Found>);

impl Findings {
    fn add(&mut self, failure: &Failure, run: u64, trace: impl FnOnce() -> Trace) {
        if !self.0.iter().any(|known| known.failure.is_same(failure)) {
            self.0.push(Found { failure: failure.clone(), run, trace: trace() });
        }
    }

    fn is_full(&self, options: &Options) -> bool {
        options.are_enough(self.0.len())
    }
}

/// Runs `work` with each worker, the first on this thread, the others on threads with a stack of this size. A panic of
/// one is passed on.
fn in_parallel<W: Send>(workers: &mut [W], stack_bytes: Option<usize>, work: impl Fn(&mut W) + Sync) {
    let (first, rest) = workers.split_first_mut().expect("a check has a worker");
    let work = &work;
    std::thread::scope(|scope| {
        let start = |worker| {
            let thread = threads::with_stack(stack_bytes);
            thread.spawn_scoped(scope, move || work(worker)).expect("a thread can be started")
        };
        let threads: Vec<_> = rest.iter_mut().map(start).collect();
        work(first);
        for thread in threads {
            // As it was raised, and not that some thread has panicked.
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

/// The value behind a mutex; what a worker that panicked left there counts too, since its panic is passed on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Set once all workers are to stop.
#[derive(Default)]
struct Stop(AtomicBool);

impl Stop {
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
