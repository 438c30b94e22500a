//! What a session tells while it works.

use std::path::Path;
use std::time::Duration;
use std::{fmt, io};

use super::{Finding, Saved, Summary, View};
use crate::check::{self, End};
use crate::outcome::Failure;
use crate::report::counted;
use crate::search::Progress;

/// Sees what happens in a session, as it happens. Text that comes from the guest is as the guest gave it.
pub trait Observer: Send {
    /// Something happened.
    ///
    /// # Errors
    /// It cannot be passed on; the session then ends.
    fn on(&mut self, event: Event<'_>) -> io::Result<()>;

    /// Whether it is to be told of each [`View`] of an exploration.
    fn wants_views(&self) -> bool {
        false
    }
}

/// Nobody listens.
impl Observer for () {
    fn on(&mut self, _: Event<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// Something that happened in a session.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// What is being done, or was: `Building`, and what.
    Status {
        /// In one word.
        verb: &'e str,
        /// What.
        text: &'e str,
    },
    /// Something that the user should know.
    Warning(&'e str),
    /// The target is loaded, and the search begins.
    Begin(&'e Begin<'e>),
    /// What became of a trace that was saved before.
    Saved(&'e Saved),
    /// An exploration resumed a campaign.
    Resumed {
        /// Runs so far.
        runs: u64,
        /// Edges seen.
        edges: u32,
    },
    /// A check goes on where an earlier one of the same target ended.
    CheckResumed {
        /// States so far.
        states: u64,
        /// How many steps they are from the start.
        depth: u32,
    },
    /// An exploration followed the steps of a campaign of another build.
    Rebuilt {
        /// The hash of the module.
        module: u128,
        /// Checkpoints of the other build.
        checkpoints: usize,
        /// Of which the steps fit this one.
        kept: u64,
        /// Edges that they reach.
        edges: u32,
    },
    /// Seed inputs were executed.
    Seeded {
        /// How many.
        inputs: usize,
        /// Of which reached new edges.
        kept: u64,
        /// How many were left, since there was no time, or there were enough findings.
        left: usize,
    },
    /// The search itself begins now.
    Searching {
        /// What earlier sessions counted.
        before: &'e Progress,
        /// What it may take.
        left: Left,
    },
    /// How far an exploration is.
    Exploring {
        /// What was counted.
        progress: &'e Progress,
        /// Edges in the module.
        edges: usize,
        /// What it may still take.
        left: Left,
    },
    /// What an exploration is like, about each second, for those who want to know.
    View(&'e View),
    /// How far a check is.
    Checking {
        /// What was counted.
        progress: &'e check::Progress,
        /// What it walks first.
        order: check::Order,
    },
    /// How far shrinking is.
    Shrinking {
        /// Candidates executed.
        executions: u64,
        /// Steps that are left.
        steps: usize,
    },
    /// A path of a check ended, where paths are listed.
    Path {
        /// What the guest noted.
        notes: &'e [String],
        /// How it ended.
        end: &'e End,
    },
    /// A failure as it was found; it is shrunk next.
    Found {
        /// What went wrong.
        failure: &'e Failure,
        /// The run that hit it first, from 1; 0 where no exploration did.
        run: u64,
        /// Rules called and faults toggled.
        steps: usize,
    },
    /// A failure with the simplest trace that is known.
    Finding(&'e Finding),
    /// A failure that did not happen again.
    Flaky {
        /// What went wrong once.
        failure: &'e Failure,
        /// What happened instead.
        why: &'e str,
        /// The trace.
        trace: &'e Path,
    },
    /// The end.
    End(&'e Summary),
}

/// What is left of the bounds of a search. No bound is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Runs.
    pub runs: Option<u64>,
    /// Time.
    pub time: Option<Duration>,
}

impl fmt::Display for Left {
    /// `69900 runs or 1m 1s left`, the time in whole seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.runs.map(|runs| counted(runs, "run"));
        let whole = |time: Duration| Duration::from_secs(time.as_secs());
        let time = self.time.map(|time| humantime::format_duration(whole(time)).to_string());
        match (runs, time) {
            (None, None) => f.write_str("no bound"),
            (Some(one), None) | (None, Some(one)) => write!(f, "{one} left"),
            (Some(runs), Some(time)) => write!(f, "{runs} or {time} left"),
        }
    }
}

/// What a search begins with.
#[derive(Clone, Debug)]
pub struct Begin<'e> {
    /// The target, as the user named it.
    pub target: &'e Path,
    /// The hash of its module.
    pub module: u128,
    /// The names of its rules.
    pub rules: Vec<&'e str>,
    /// The names of its faults.
    pub faults: Vec<&'e str>,
    /// Edges that are counted; 0 in a check.
    pub edges: usize,
    /// Of an exploration.
    pub seed: Option<u64>,
    /// Of a check: what it walks first, and the bound on steps.
    pub check: Option<(check::Order, Option<u32>)>,
}
