//! A session: one job on one target, from loading the module to the last finding.
//!
//! It finds failures, runs each again, shrinks, explains and saves it, and resumes the next day. The command line is one
//! user; a test of another crate can be the next:
//!
//! ```no_run
//! use spelunk::{Config, Session};
//!
//! let summary = Session::open("guest.wasm")?.config(Config::explore()).run(&mut ())?;
//! assert!(summary.findings.is_empty(), "{}", summary.findings[0]);
//! # Ok::<(), spelunk::Error>(())
//! ```
//!
//! [`Config`] says what to do, a [`Budget`] how long, and an [`Observer`] is called with each [`Event`]. A finding goes down
//! once, from the search to its file, and comes up once, as an event. [`Summary`] holds all of them at the end.

mod cause;
mod check;
mod config;
mod error;
mod event;
mod explore;
mod finding;
mod fleet;
mod input;
mod kept;
mod leftover;
mod no_verdict;
mod pace;
mod place;
mod rounds;
mod saved;
mod sorted;
mod start;
mod status;
mod together;
mod view;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::Context;

use crate::budget::{Budget, Over};
use crate::file::Conditions;
use crate::load;
use crate::machine::{Cache, Edges, Machine, Program, Selection};

pub use cause::{Cause, cause};
pub use check::CheckedTarget;
pub use config::{Caching, Config, FINDINGS_MAX, Fleet, Job, Keep};
pub use error::{Error, ErrorKind};
pub use event::{Begin, Event, Left, Observer};
pub use explore::{End, Explored};
pub use finding::{Finding, FoundAfter, Guest, describe, source_folders, steps_of, write_input, write_trace};
pub use input::{Inputs, input_of, write_named_input};
pub use leftover::Leftover;
pub use place::Place;
pub use saved::{Fate, Saved};
pub use status::{CalledRule, Status, backups, called_rules};
pub use view::{Node, Row, View};

/// One job on one target.
pub struct Session {
    target: PathBuf,
    /// The target, where it is none that lies there.
    module: Option<Vec<u8>>,
    config: Config,
    budget: Budget,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing failed; of a check: it holds.
    Passed,
    /// Something fails.
    Found,
    /// A check came to a limit before it was complete.
    Unknown,
    /// The guest is not deterministic.
    Nondeterministic,
    /// The user asked to stop.
    Interrupted,
}

impl Verdict {
    /// The exit code of a process that did this and nothing else.
    pub fn exit_code(self) -> u8 {
        match self {
            Verdict::Passed => 0,
            Verdict::Found => 1,
            Verdict::Unknown => 3,
            Verdict::Nondeterministic => 4,
            Verdict::Interrupted => 130,
        }
    }
}

/// What a session came to.
#[derive(Clone, Debug)]
pub struct Summary {
    /// In one word.
    pub verdict: Verdict,
    /// What fails: what was found now, and what was found before and still fails.
    pub findings: Vec<Finding>,
    /// What became of traces that were saved before.
    pub saved: Vec<Saved>,
    /// The rest, which depends on the job.
    pub result: JobResult,
}

/// What an exploration or a check came to.
#[derive(Clone, Debug)]
pub enum JobResult {
    /// See [`Job::Explore`].
    Explored(Box<Explored>),
    /// See [`Job::Check`].
    Checked(Box<CheckedTarget>),
    /// A check that found its guest not to be deterministic: which step, its name, and how it differs.
    NotRepeated {
        /// From 1.
        step: usize,
        /// Of the step.
        name: String,
        /// How it differs.
        why: String,
    },
}

impl Session {
    /// A session with the target at this path: a `.wasm`, a `.wat`, or a folder with a Rust package.
    ///
    /// # Errors
    /// There is nothing at the path.
    pub fn open(target: impl AsRef<Path>) -> Result<Session, Error> {
        let target = target.as_ref().to_path_buf();
        let found = std::fs::metadata(&target);
        found
            .with_context(|| format!("cannot read the target `{}`", target.display()))
            .map_err(|error| Error::new(ErrorKind::Target, error))?;
        Ok(Session { target, module: None, config: Config::explore(), budget: Budget::unlimited() })
    }

    /// A session with a module that is called so.
    pub fn of_module(name: &str, wasm: Vec<u8>) -> Session {
        let (config, budget) = (Config::explore(), Budget::unlimited());
        Session { target: PathBuf::from(name), module: Some(wasm), config, budget }
    }

    /// What to do; by default what [`Config::explore`] says.
    pub fn config(mut self, config: Config) -> Session {
        self.config = config;
        self
    }

    /// A budget that the caller may interrupt. [`Config::time`] is taken from it.
    pub fn budget(mut self, budget: Budget) -> Session {
        self.budget = budget;
        self
    }

    /// Does the job. The observer sees what happens, as it happens.
    ///
    /// # Errors
    /// A setting, a target, a folder or a file that cannot be used; see [`ErrorKind`]. That the guest fails is none.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Summary, Error> {
        self.config.validate().map_err(|error| Error::new(ErrorKind::Config, error))?;
        let observer = Told(Mutex::new(observer));
        let wasm = self.load(&observer).map_err(|error| Error::new(ErrorKind::Target, error))?;
        if let Some(time) = self.config.time {
            self.budget.limit(time);
        }
        let machines =
            self.machines(&wasm, &observer).map_err(|error| Error::new(ErrorKind::Target, error))?;
        let work = Work {
            guest: Guest {
                target: &self.target,
                config: &self.config,
                place: Place::of_both(&self.target, self.config.against.as_deref(), &self.config.out),
            },
            wasm: &wasm,
            budget: &self.budget,
            observer: &observer,
            sanitized: OnceLock::new(),
        };
        let done = match &self.config.job {
            Job::Explore(settings) => work.explore(machines, settings),
            Job::Check(options) => work.check(machines, options),
        };
        // What a guest did on a host that could not go on does not count.
        if self.budget.over() == Some(Over::Exhausted) {
            self.budget.check().map_err(|error| Error::of(error.into()))?;
        }
        let summary = done.map_err(Error::of)?;
        observer.on(Event::End(&summary)).map_err(Error::of)?;
        Ok(summary)
    }

    fn load(&self, observer: &Told<'_>) -> anyhow::Result<Vec<u8>> {
        if let Some(wasm) = &self.module {
            return Ok(wasm.clone());
        }
        let Config {
            guest_features,
            guest_target,
            guest_profile,
            folders,
            signatures,
            link,
            compose,
            against,
            ignored,
            environment,
            is_quiet,
            ..
        } = &self.config;
        let build = load::Build {
            features: guest_features,
            target: guest_target.as_deref(),
            profile: guest_profile.as_deref(),
            folders: (folders, environment.files_bytes_max),
            signatures: signatures.as_deref(),
            link: link.as_deref(),
            compose,
            against: against.as_deref(),
            ignored,
            is_quiet: *is_quiet,
            budget: self.budget.clone(),
        };
        load::load(&self.target, &build, &mut |verb, text| observer.status(verb, text))
    }

    /// A machine for each worker, and for a check one more, which reports what paths noted.
    fn machines(&self, wasm: &[u8], observer: &Told<'_>) -> anyhow::Result<Vec<Machine>> {
        let workers =
            self.config.workers.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZero::get);
        // No edge counts in a check.
        let (count, conditions) = match self.config.job {
            Job::Explore(_) => (workers, self.config.conditions()),
            Job::Check(_) => {
                let selection = Selection {
                    edges: Edges::None,
                    sanitize: self.config.selection.sanitize.clone(),
                    ..Selection::default()
                };
                (workers + 1, Conditions { selection, ..self.config.conditions() })
            }
        };
        let cache = self.cache(observer);
        let program = program(&self.target, wasm, conditions, cache.as_ref(), &self.budget)?;
        let context = || format!("cannot run `{}`", self.target.display());
        let mut machines = Vec::new();
        for _ in 0..count {
            let mut machine = Machine::new(program.clone()).with_context(context)?;
            if !self.config.uses_snapshots {
                machine.set_uses_snapshots(false)?;
            }
            machines.push(machine);
        }
        Ok(machines)
    }

    fn cache(&self, observer: &Told<'_>) -> Option<Cache> {
        let cache = self.config.cache.open()?;
        let refused = |error: &anyhow::Error| {
            observer
                .warning(format!("the module is compiled anew, and not kept for the next time: {error:#}"));
        };
        cache.inspect_err(refused).ok()
    }
}

/// The program of a target, whose machines the budget stops.
///
/// # Errors
/// A module that cannot be explored.
pub fn program(
    target: &Path,
    wasm: &[u8],
    conditions: Conditions,
    cache: Option<&Cache>,
    budget: &Budget,
) -> anyhow::Result<Arc<Program>> {
    let program = Program::load_in(wasm, conditions, cache, budget);
    Ok(Arc::new(program.with_context(|| format!("cannot run `{}`", target.display()))?))
}

/// The observer, which several threads may report progress to.
struct Told<'o>(Mutex<&'o mut dyn Observer>);

impl<'o> Told<'o> {
    fn lock(&self) -> MutexGuard<'_, &'o mut dyn Observer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on(&self, event: Event<'_>) -> anyhow::Result<()> {
        Ok(self.lock().on(event)?)
    }

    fn wants_views(&self) -> bool {
        self.lock().wants_views()
    }

    /// Of no answer, so that it is no error where nobody listens.
    fn status(&self, verb: &str, text: &str) {
        let _ = self.lock().on(Event::Status { verb, text });
    }

    fn warning(&self, text: String) {
        let _ = self.lock().on(Event::Warning(&text));
    }

    /// Tells of progress, unless another thread does so.
    fn try_on(&self, event: Event<'_>) {
        if let Ok(mut observer) = self.0.try_lock() {
            let _ = observer.on(event);
        }
    }
}

/// A session whose target is loaded.
struct Work<'s> {
    guest: Guest<'s>,
    wasm: &'s [u8],
    budget: &'s Budget,
    observer: &'s Told<'s>,
    /// The program with its heap and stack sanitized, where that can be, once a finding asked for it.
    sanitized: OnceLock<Option<Arc<Program>>>,
}

impl Work<'_> {
    /// What is left of the bounds, with so many runs, where these have one.
    fn left(&self, runs: Option<u64>) -> Left {
        Left { runs, time: self.budget.left() }
    }

    /// Warns of what no snapshot can hold, with what follows from it.
    fn warn_of_obstacles(&self, program: &Program, what_follows: &str) {
        if let Some(obstacle) = program.obstacles().first() {
            let inside = obstacle.function.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
            self.observer.warning(format!(
                "{what_follows}, since snapshots cannot hold this: {}{inside} at {:#x}",
                obstacle.what, obstacle.offset
            ));
        }
    }
}
