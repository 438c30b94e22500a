//! From a failure to a finding: run again, shrunk, explained, saved.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::input::input_of;
use super::pace::Pace;
use super::place::Place;
use super::saved::{Fate, Saved};
use super::{Cause, Config, Event, Job, Work};
use crate::disk;
use crate::file::{self, Conditions, Environment, Hex, Shrinking, TraceFile};
use crate::load::Folder;
use crate::machine::Machine;
use crate::outcome::Failure;
use crate::outcome::Found;
use crate::replay::Replayed;
use crate::report;
use crate::shrink::{NotReproduced, Shrunk, shrink};
use crate::story::{self, Line};
use crate::symbols::{Excerpt, Frame, excerpt};
use crate::target::Target as _;
use crate::text;
use crate::trace::{Action, Step, Trace};

/// A failure with the simplest trace that is known to cause it, and where it was saved.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What went wrong.
    pub failure: Failure,
    /// The run that hit it first, from 1; 0 where no exploration did.
    pub run: u64,
    /// When it was found, where it was found now.
    pub found_after: Option<FoundAfter>,
    /// Rules called and faults toggled before shrinking.
    pub steps_before: usize,
    /// The error of memory that the same steps lead to where that is sanitized, if they do.
    pub cause: Option<Cause>,
    /// What happens.
    pub story: Vec<Line>,
    /// Where the trace was saved.
    pub trace: PathBuf,
    /// The command that shows it again; nothing where the trace could not be saved.
    pub reproduce: String,
    /// Whether shrinking ended before its budget did.
    pub is_minimal: bool,
    /// It was found by an earlier session, and still fails.
    pub was_known: bool,
    /// How the target was built, where that may matter.
    pub built: Option<String>,
    /// The line of the source where it failed, and a mark below it, where that file is there.
    pub excerpt: Option<Excerpt>,
}

impl Finding {
    /// Where the guest was when it failed, the innermost frame first.
    pub fn stack(&self) -> &[Frame] {
        self.story.last().map(|line| &line.told.stack[..]).unwrap_or_default()
    }
}

/// When a finding was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundAfter {
    /// Steps of the campaign up to it.
    pub steps: u64,
    /// Seconds of this session.
    pub seconds: f64,
}

impl fmt::Display for Finding {
    /// The story, as the terminal shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&report::story_text(self))
    }
}

/// Traces that one failure may have, those of what was fixed included.
const ASIDE_MAX: u32 = 9;
/// Traces that a target may have for further ones to be saved which are met while one is shrunk.
const KEPT_MAX: usize = 64;

/// What a finding is of.
#[derive(Clone, Debug)]
pub struct Guest<'s> {
    /// The target, as the user named it.
    pub target: &'s Path,
    /// How it is built, and what reproduces its findings.
    pub config: &'s Config,
    /// Where its findings are kept.
    pub place: Place,
}

impl Guest<'_> {
    /// The command that replays a trace.
    pub fn replay_command(&self, trace: &Path) -> String {
        let Config {
            program,
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
            ..
        } = self.config;
        let (target, trace) = (argument(self.target), argument(trace));
        let features = guest_features.join(",");
        let mut words = vec![program.as_str(), "replay", &target, &trace];
        if !features.is_empty() {
            words.extend(["--guest-features", &features]);
        }
        let options = [("--guest-target", guest_target), ("--guest-profile", guest_profile)];
        for (flag, value) in options.into_iter().filter_map(|(flag, value)| Some((flag, value.as_ref()?))) {
            words.extend([flag, value]);
        }
        let folders: Vec<String> = folders.iter().map(Folder::to_string).collect();
        folders.iter().for_each(|folder| words.extend(["--dir", folder]));
        let files = [("--signatures", signatures), ("--link", link), ("--against", against)];
        let files = files.into_iter().filter_map(|(flag, file)| Some((flag, file.as_ref()?)));
        let files = files.chain(compose.iter().map(|file| ("--compose", file)));
        let files: Vec<_> = files.map(|(flag, file)| (flag, argument(file))).collect();
        files.iter().for_each(|(flag, file)| words.extend([flag, file.as_str()]));
        ignored.iter().for_each(|name| words.extend(["--ignore", name]));
        let files_max = (environment.files_bytes_max >> 20).to_string();
        if !folders.is_empty() && environment.files_bytes_max != Environment::default().files_bytes_max {
            words.extend(["--files-max", &files_max]);
        }
        report::command_line(words)
    }

    /// A finding as a replay has it: shrunk as far as it goes, from steps that were as many before, with its trace at a path.
    pub fn finding(&self, failure: Failure, story: Vec<Line>, steps_before: usize, trace: &Path) -> Finding {
        let excerpt = self.excerpt(&failure, &story);
        Finding {
            excerpt,
            failure,
            run: 0,
            found_after: None,
            steps_before,
            cause: None,
            story,
            trace: trace.to_path_buf(),
            reproduce: self.replay_command(trace),
            is_minimal: true,
            was_known: false,
            built: self.built(),
        }
    }

    /// The line where it failed, of a file in the current folder, in the target's, or in the workspace that is of.
    fn excerpt(&self, failure: &Failure, story: &[Line]) -> Option<Excerpt> {
        let stack = &story.last()?.told.stack;
        let frame = stack.iter().find(|frame| failure.place == Some(frame.place()))?;
        let roots = source_folders(self.target);
        let roots: Vec<&Path> = roots.iter().map(PathBuf::as_path).collect();
        excerpt(frame, &roots)
    }

    /// What a build adds to the package's own profile.
    fn built(&self) -> Option<String> {
        let is_changed = self.target.is_dir() && self.config.guest_profile.is_none();
        is_changed.then(|| {
            "with overflow checks and debug assertions; --guest-profile release builds as the package says".to_string()
        })
    }
}

/// The folders in which source files may be read: the current one, that of a target that is built, and its workspace.
pub fn source_folders(target: &Path) -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from(".")];
    // A module may come from anywhere.
    if target.join("Cargo.toml").is_file()
        && let Ok(folder) = target.canonicalize()
    {
        let workspace = folder.ancestors().find(|above| above.join("Cargo.lock").is_file());
        folders.extend(workspace.map(Path::to_path_buf));
        folders.push(folder);
    }
    folders
}

/// A path that is not taken for a flag.
fn argument(path: &Path) -> String {
    let shown = path.display().to_string();
    if shown.starts_with('-') { format!("./{shown}") } else { shown }
}

/// Rules called and faults toggled.
pub fn steps_of(trace: &Trace) -> usize {
    let is_one = |step: &&Step| matches!(step.action, Action::Rule(_) | Action::Fault(..));
    trace.steps().iter().filter(is_one).count()
}

/// What a replay came to, for a reader.
pub fn describe(machine: &Machine, trace: &Trace, replayed: &Replayed) -> String {
    match replayed {
        Replayed::Failed(failure) => format!("it fails with {failure}"),
        Replayed::Passed => "every step passes".to_string(),
        Replayed::Stopped => "it was stopped before its end".to_string(),
        Replayed::Diverged { step, why } => {
            let name = file::name_of(machine, trace.steps()[*step].action);
            let name = text::line(&name);
            format!("step {} ({name}) differs: {why}", step + 1)
        }
    }
}

/// Saves a trace, and beside it the input of a fuzz target.
///
/// # Errors
/// The folder cannot be written to.
pub fn write_trace(
    machine: &Machine,
    trace: &Trace,
    (failure, shrinking): (Option<&Failure>, Option<Shrinking>),
    path: &Path,
) -> Result<()> {
    disk::refuse_links_below(path)?;
    let Conditions { limits, selection, environment } = machine.program().conditions().clone();
    let file = TraceFile {
        spelunk: file::VERSION,
        module: Hex(machine.program().hash()),
        limits,
        selection,
        environment,
        built: machine.program().build_flags().clone(),
        failure: failure.cloned(),
        shrinking,
        steps: file::lines_of(machine, trace),
    };
    file.write(path)?;
    write_input(machine, trace, path)
}

/// Saves the input of a fuzz target's trace beside the file of the trace; nothing of another target.
///
/// # Errors
/// The folder cannot be written to.
pub fn write_input(machine: &Machine, trace: &Trace, path: &Path) -> Result<()> {
    let Some(bytes) = input_of(machine.program(), trace) else { return Ok(()) };
    let path = path.with_extension("input");
    disk::write(&path, bytes).with_context(|| format!("cannot write `{}`", path.display()))
}

impl Work<'_> {
    /// Runs a failure again, shrinks, explains, saves and reports it; nothing where it does not happen again. `is_simplest`
    /// says that there is nothing to shrink.
    pub(super) fn tell(
        &self,
        machine: &mut Machine,
        found: &Found,
        found_after: Option<FoundAfter>,
        is_simplest: bool,
    ) -> Result<Option<Finding>> {
        let Found { failure, run, trace } = found;
        let path = self.guest.place.trace(failure);
        self.observer.on(Event::Found { failure, run: *run, steps: steps_of(trace) })?;
        let budget = if is_simplest { 0 } else { self.guest.config.shrink_budget };
        // As it was found first, so that it is not lost whatever happens while it is shrunk.
        let saved = self.guest.place.make().and_then(|()| set_aside(machine, &path));
        let pending = if is_simplest { Shrinking::Minimal } else { Shrinking::Pending };
        let saved = saved.and_then(|()| write_trace(machine, trace, (Some(failure), Some(pending)), &path));
        let shrunk = match self.shrunk(machine, trace, failure, budget) {
            Ok(shrunk) => shrunk,
            Err(NotReproduced(Replayed::Stopped)) => unshrunk(trace, failure),
            Err(NotReproduced(replayed)) => {
                saved?;
                let why = describe(machine, trace, &replayed);
                self.observer.on(Event::Flaky { failure, why: &why, trace: &path })?;
                return Ok(None);
            }
        };
        let saved = saved.and_then(|()| {
            shrunk.others.iter().try_for_each(|(failure, trace)| self.keep(machine, trace, failure))
        });
        let shrinking = match shrunk.is_minimal || is_simplest {
            true => Shrinking::Minimal,
            // It is shrunk further the next time.
            false if self.budget.is_over() => Shrinking::Pending,
            false => Shrinking::Limited,
        };
        let saved = saved.and_then(|()| {
            write_trace(machine, &shrunk.trace, (Some(&shrunk.failure), Some(shrinking)), &path)
        });
        let story = self.explain(machine, &shrunk.trace, &shrunk.failure);
        let mut finding = Finding {
            cause: self.cause(machine, &shrunk.trace),
            run: *run,
            found_after,
            is_minimal: is_simplest || shrunk.is_minimal,
            ..self.guest.finding(shrunk.failure, story, steps_of(trace), &path)
        };
        if saved.is_err() {
            finding.reproduce.clear();
        }
        // Told first: what was found must not be lost where it cannot be saved.
        self.observer.on(Event::Finding(&finding))?;
        saved?;
        Ok(Some(finding))
    }

    fn shrunk(
        &self,
        machine: &mut Machine,
        trace: &Trace,
        failure: &Failure,
        budget: u64,
    ) -> Result<Shrunk, NotReproduced> {
        let pace = Pace::new();
        let rules: Vec<u16> = match &self.guest.config.job {
            Job::Check(_) => Vec::new(),
            Job::Explore(settings) => {
                let rules =
                    (0..).zip(machine.rules()).filter(|(_, rule)| settings.rules.contains(&rule.name));
                rules.map(|(index, _)| index).collect()
            }
        };
        shrink(machine, trace, failure, &rules, budget, |executions, steps| {
            if pace.is_due() {
                self.observer.try_on(Event::Shrinking { executions, steps });
            }
            !self.budget.is_over()
        })
    }

    /// The story with what in it does not matter, as far as the budget lasts.
    pub(super) fn explain(&self, machine: &mut Machine, trace: &Trace, failure: &Failure) -> Vec<Line> {
        story::explain(machine, trace, failure, &|| self.budget.is_over())
    }

    /// Saves another failure that was met while one was shrunk, unless it is saved already.
    fn keep(&self, machine: &Machine, trace: &Trace, failure: &Failure) -> Result<()> {
        let path = self.guest.place.trace(failure);
        if path.exists() {
            return Ok(());
        }
        let what = format!("another failure while this one was shrunk: {failure}");
        let kept = disk::files(&self.guest.place.findings(), Some("json"))?.len();
        if kept >= KEPT_MAX {
            self.observer.status("Met", &format!("{what}; not saved, since there are {kept} findings"));
            return Ok(());
        }
        write_trace(machine, trace, (Some(failure), Some(Shrinking::Pending)), &path)?;
        self.observer.status("Met", &format!("{what}; saved in {}", path.display()));
        Ok(())
    }

    /// The seed of the job, where it has one.
    pub(super) fn seed(&self) -> Option<u64> {
        match &self.guest.config.job {
            Job::Explore(settings) => Some(settings.seed),
            Job::Check(_) => None,
        }
    }
}

/// Gives the trace at `path` another name, if every step passes now, since it may be kept as a test of what was fixed, or if it was
/// found under other settings.
pub(super) fn set_aside(machine: &mut Machine, path: &Path) -> Result<()> {
    let is_kept = |saved: Saved| matches!(saved.fate, Fate::Fixed | Fate::Elsewhere(_));
    if !path.exists() || !is_kept(Saved::at(machine, path.to_path_buf())) {
        return Ok(());
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let named = |number: u32| path.with_file_name(format!("{name}-{number}.json"));
    let Some(aside) = (2..=ASIDE_MAX).map(named).find(|aside| !aside.exists()) else { return Ok(()) };
    let input = path.with_extension("input");
    if input.exists() {
        std::fs::rename(&input, aside.with_extension("input"))?;
    }
    std::fs::rename(path, &aside).with_context(|| format!("cannot rename `{}`", path.display()))
}

/// A trace that there was no time to shrink.
fn unshrunk(trace: &Trace, failure: &Failure) -> Shrunk {
    Shrunk {
        trace: trace.clone(),
        failure: failure.clone(),
        executions: 0,
        is_minimal: false,
        others: Vec::new(),
    }
}
