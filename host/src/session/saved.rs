//! Findings that an earlier session saved.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::finding::{Finding, describe, steps_of, write_trace};
use super::{Event, Job, Work};
use crate::check::Options;
use crate::disk;
use crate::file::{Shrinking, TraceFile};
use crate::machine::{Machine, Program};
use crate::outcome::{Failure, FailureKind, Found};
use crate::replay::{Replayed, replay};
use crate::target::Target as _;
use crate::text;
use crate::trace::{Action, Trace};

/// A trace that an earlier session saved.
#[derive(Clone, Debug)]
pub struct Saved {
    /// Its file.
    pub path: PathBuf,
    /// What became of it.
    pub fate: Fate,
    /// How it failed, where it fails in another way now.
    pub was: Option<Failure>,
    /// The steps, where they could be read.
    pub(super) trace: Trace,
    /// How far it was shrunk.
    pub(super) shrinking: Option<Shrinking>,
    /// It was recorded on this build.
    pub(super) is_of_this: bool,
}

/// What became of a finding.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It fails as it did.
    StillFails(Failure),
    /// Every step passes.
    Fixed,
    /// Its trace can no longer be followed; why.
    Stale(String),
    /// It was found under other settings, under which it may still fail; which.
    Elsewhere(String),
    /// There was no time to look.
    Unknown,
}

impl Saved {
    /// The failure, if it still happens.
    pub fn still_fails(&self) -> Option<&Failure> {
        match &self.fate {
            Fate::StillFails(failure) => Some(failure),
            _ => None,
        }
    }

    /// Whether it still fails, and was not shrunk to the end.
    pub(super) fn is_pending(&self) -> bool {
        self.still_fails().is_some() && self.shrinking == Some(Shrinking::Pending)
    }

    /// Whether it still fails as it did, at another place than its file is named after.
    fn is_moved(&self) -> bool {
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let is_id = name.len() == Failure::ID_LEN && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id && self.was.is_none() && self.still_fails().is_some_and(|failure| failure.id() != name)
    }

    /// Whether it leads to its loop again. Whether that is fair, on another build than it was recorded on, a check alone can say.
    pub(super) fn is_loop(&self) -> bool {
        self.still_fails().is_some_and(|failure| failure.kind == FailureKind::Liveness)
    }

    /// What became of a loop that the check did not find, whether or not that `has_judged` all loops.
    pub(super) fn unfair(has_judged: bool) -> Fate {
        match has_judged {
            true => Fate::Stale("its loop is no longer fair".to_string()),
            false => Fate::Elsewhere(
                "it was recorded on another build, and a whole check tells whether its loop is fair on this one".to_string(),
            ),
        }
    }

    /// Whether it still fails in this way.
    pub(super) fn fails_with(&self, failure: &Failure) -> bool {
        self.still_fails().is_some_and(|known| known.is_same(failure))
    }
}

impl Saved {
    /// Replays the traces in a folder of findings, in the order of their names. `tell` sees each.
    ///
    /// # Errors
    /// The folder cannot be read; what `tell` says.
    pub fn replay_all(
        machine: &mut Machine,
        folder: &Path,
        mut tell: impl FnMut(&mut Saved) -> Result<()>,
    ) -> Result<Vec<Saved>> {
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let files = disk::files(folder, Some("json"));
        let files = files.with_context(|| format!("cannot read the findings in `{}`", folder.display()))?;
        let mut all = Vec::new();
        for path in files {
            let mut saved = match machine.program().budget().is_over() {
                true => Saved::without_trace(path, Fate::Unknown),
                false => Saved::at(machine, path),
            };
            tell(&mut saved)?;
            all.push(saved);
        }
        Ok(all)
    }
}

impl Work<'_> {
    /// Replays what was found before, in the order of its names, and reports what became of it.
    pub(super) fn replay_saved(&self, machine: &mut Machine) -> Result<Vec<Saved>> {
        let folder = self.guest.place.findings();
        let mut moved = Vec::new();
        let rules: Vec<String> = machine.rules().iter().map(|rule| rule.name.clone()).collect();
        let mut all = Saved::replay_all(machine, &folder, |saved| {
            self.bound(saved, &rules);
            moved.extend(saved.is_moved().then(|| saved.path.clone()));
            self.observer.on(Event::Saved(saved))
        })?;
        for saved in all.iter_mut().filter(|saved| moved.contains(&saved.path)) {
            self.rename(machine, saved);
        }
        Ok(all)
    }

    /// Saves a finding of another build anew, under the name that it has in this one, in which its place is another: all else finds it by
    /// that. It stays as it is where that cannot be.
    fn rename(&self, machine: &Machine, saved: &mut Saved) {
        let Some(failure) = saved.still_fails() else { return };
        let to = self.guest.place.trace(failure);
        if to.exists() || write_trace(machine, &saved.trace, (Some(failure), saved.shrinking), &to).is_err() {
            return;
        }
        for path in [saved.path.with_extension("input"), saved.path.clone()] {
            drop(std::fs::remove_file(path));
        }
        let text =
            format!("{} to {}: the same failure, at another place", saved.path.display(), to.display());
        self.observer.status("Renamed", &text);
        saved.path = to;
    }

    /// A check within a bound of steps says nothing of what takes more, an exploration nothing of loops of another build, nor of what calls
    /// rules that it does not.
    fn bound(&self, saved: &mut Saved, rules: &[String]) {
        if saved.still_fails().is_none() {
            return;
        }
        match &self.guest.config.job {
            Job::Check(Options { steps_max: Some(max), .. }) if steps_of(&saved.trace) > *max as usize => {
                let steps = steps_of(&saved.trace);
                saved.fate = Fate::Elsewhere(format!("it takes {steps} steps, and --steps is {max}"));
            }
            Job::Check(_) => {}
            Job::Explore(_) if saved.is_loop() && !saved.is_of_this => saved.fate = Saved::unfair(false),
            Job::Explore(settings) => {
                let mut called = saved.trace.steps().iter().filter_map(|step| match step.action {
                    Action::Rule(rule) => rules.get(usize::from(rule)),
                    _ => None,
                });
                let is_left_out =
                    |rule: &&String| !settings.rules.is_empty() && !settings.rules.contains(rule);
                if let Some(rule) = called.find(is_left_out) {
                    let why = format!("it calls `{}`, and --rule names others", text::line(rule));
                    saved.fate = Fate::Elsewhere(why);
                }
            }
        }
    }

    /// Tells a finding that was saved before in full, as the first time; one that was not shrunk to the end is shrunk
    /// further. Nothing where it did not happen again.
    pub(super) fn tell_saved(
        &self,
        machine: &mut Machine,
        saved: &Saved,
        run: u64,
    ) -> Result<Option<Finding>> {
        let Some(failure) = saved.still_fails() else { return Ok(None) };
        if saved.shrinking == Some(Shrinking::Pending) {
            let found = Found { failure: failure.clone(), run, trace: saved.trace.clone() };
            return self.tell(machine, &found, None, false);
        }
        let story = self.explain(machine, &saved.trace, failure);
        let finding = Finding {
            cause: self.cause(machine, &saved.trace),
            run,
            is_minimal: saved.shrinking != Some(Shrinking::Limited),
            was_known: true,
            ..self.guest.finding(failure.clone(), story, steps_of(&saved.trace), &saved.path)
        };
        self.observer.on(Event::Finding(&finding))?;
        Ok(Some(finding))
    }
}

impl Saved {
    /// What becomes of the trace in a file.
    pub(super) fn at(machine: &mut Machine, path: PathBuf) -> Saved {
        let stale = |path, why| Saved::without_trace(path, Fate::Stale(why));
        let file = match TraceFile::read(&path) {
            Ok(file) => file,
            Err(error) => return stale(path, format!("{error:#}")),
        };
        let program = machine.program().clone();
        let differing = file.environment.flags_beside(&program.conditions().environment);
        let is_sanitized_alike = file.selection.sanitize == program.conditions().selection.sanitize;
        let flags: Vec<&str> =
            differing.into_iter().chain((!is_sanitized_alike).then_some("--sanitize")).collect();
        let elsewhere =
            |flags: &[&str]| Fate::Elsewhere(format!("it was found with other {}", flags.join(", ")));
        if !flags.is_empty() {
            return Saved::without_trace(path, elsewhere(&flags));
        }
        // Under other limits it may fail all the same, but that it passes says nothing.
        let limits = file.limits.flags_beside(&program.conditions().limits);
        let trace = match file.trace(machine) {
            Ok(trace) => trace,
            Err(_) if !limits.is_empty() => return Saved::without_trace(path, elsewhere(&limits)),
            Err(error) if file.module.0 != program.hash() => {
                return stale(
                    path,
                    format!("it was recorded on another build, and does not fit this one: {error:#}"),
                );
            }
            Err(error) => return stale(path, format!("{error:#}")),
        };
        let is_of_this = file.module.0 == program.hash();
        let is_same = file.is_of(program.hash(), program.conditions());
        let (replayed, again) = replay(machine, &trace, is_same);
        let is_other = |was: &Failure| match &replayed {
            Replayed::Failed(now) => (was.kind, &was.subject) != (now.kind, &now.subject),
            _ => false,
        };
        let was = file.failure.clone().filter(is_other);
        let (fate, trace) = match replayed {
            // Sooner than it did.
            Replayed::Failed(failure) if again.len() < trace.len() => {
                let shrinking = Some(Shrinking::Pending);
                let fate = Fate::StillFails(*failure);
                return Saved { path, fate, was, trace: again, shrinking, is_of_this };
            }
            Replayed::Failed(failure) => (Fate::StillFails(*failure), again),
            Replayed::Passed | Replayed::Diverged { .. } if !limits.is_empty() => (elsewhere(&limits), trace),
            Replayed::Passed => (passing(&program, &file), trace),
            Replayed::Stopped => (Fate::Unknown, trace),
            diverged @ Replayed::Diverged { .. } => {
                let why = describe(machine, &trace, &diverged);
                (Fate::Stale(format!("{why}; whether it is fixed is not known")), trace)
            }
        };
        Saved { path, fate, was, trace, shrinking: file.shrinking, is_of_this }
    }

    /// Its file is not a trace that can be read: there may as well be none.
    pub(super) fn is_damaged(&self) -> bool {
        matches!(self.fate, Fate::Stale(_)) && TraceFile::read(&self.path).is_err()
    }

    fn without_trace(path: PathBuf, fate: Fate) -> Saved {
        Saved { path, fate, was: None, trace: Trace::default(), shrinking: None, is_of_this: false }
    }
}

/// What becomes of a trace every step of which passes.
fn passing(program: &Program, file: &TraceFile) -> Fate {
    let flags = file.built.flags_beside(program.build_flags());
    let claimed = file.failure.as_ref().filter(|failure| failure.kind == FailureKind::Invariant);
    match claimed.and_then(|failure| failure.subject.as_ref()) {
        _ if !flags.is_empty() => {
            Fate::Elsewhere(format!("it passes, and was found with other {}", flags.join(", ")))
        }
        Some(invariant) if !program.has_invariant(invariant) => {
            Fate::Stale(format!("the target has no invariant `{}`", text::line(invariant)))
        }
        _ => Fate::Fixed,
    }
}
