//! Saved traces.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use spelunk::file::{self, Hex, TraceFile};
use spelunk::machine::Machine;
use spelunk::outcome::Failure;
use spelunk::replay::{Replayed, replay};
use spelunk::trace::{Action, Trace};

use super::input;

/// Rules called and faults toggled.
pub(super) fn steps_of(trace: &Trace) -> usize {
    trace.steps().iter().filter(|step| !matches!(step.action, Action::Setup | Action::Teardown)).count()
}

/// Saves a trace, and beside it the input of a fuzz target.
pub(super) fn save(machine: &Machine, trace: &Trace, failure: Option<&Failure>, path: &Path) -> Result<()> {
    let file = TraceFile {
        spelunk: file::VERSION,
        module: Hex(machine.program().hash()),
        limits: machine.program().limits().into(),
        selection: machine.program().selection().into(),
        failure: failure.cloned(),
        steps: file::lines_of(machine, trace),
    };
    file.write(path)?;
    input::save(machine, trace, path)
}

/// What a replay came to, for a reader.
pub(super) fn describe(machine: &Machine, trace: &Trace, replayed: &Replayed) -> String {
    match replayed {
        Replayed::Failed(failure) => format!("it fails with {failure}"),
        Replayed::Passed => "every step passes".to_string(),
        Replayed::Stopped => "it was stopped before its end".to_string(),
        Replayed::Diverged { step, why } => {
            let name = file::name_of(machine, trace.steps()[*step].action);
            format!("step {} ({name}) differs: {why}", step + 1)
        }
    }
}

/// A trace that an earlier exploration saved.
pub(super) struct Saved {
    pub(super) path: PathBuf,
    pub(super) fate: Fate,
}

/// What became of a finding.
pub(super) enum Fate {
    StillFails(Failure),
    Fixed,
    /// Its trace can no longer be followed; why.
    Stale(String),
}

impl Saved {
    pub(super) fn json(&self) -> serde_json::Value {
        let fate = match self.fate {
            Fate::StillFails(_) => "fails",
            Fate::Fixed => "fixed",
            Fate::Stale(_) => "stale",
        };
        serde_json::json!({ "trace": self.path, "fate": fate })
    }

    pub(super) fn still_fails(&self) -> bool {
        matches!(self.fate, Fate::StillFails(_))
    }

    pub(super) fn fails_with(&self, failure: &Failure) -> bool {
        matches!(&self.fate, Fate::StillFails(known) if known.is_same(failure))
    }
}

/// Replays the traces in `folder`, in the order of their names.
pub(super) fn replay_saved(machine: &mut Machine, folder: &Path) -> Result<Vec<Saved>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let cannot = || format!("cannot read the findings in `{}`", folder.display());
    let entries: std::io::Result<Vec<_>> = std::fs::read_dir(folder).with_context(cannot)?.collect();
    let paths = entries.with_context(cannot)?.into_iter().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    paths.sort();
    Ok(paths.into_iter().map(|path| Saved { fate: fate(machine, &path), path }).collect())
}

fn fate(machine: &mut Machine, path: &Path) -> Fate {
    let read = TraceFile::read(path).and_then(|file| Ok((file.trace(machine)?, file)));
    let (trace, file) = match read {
        Ok(read) => read,
        Err(error) => return Fate::Stale(format!("{error:#}")),
    };
    let is_same = file.module.0 == machine.program().hash()
        && file.limits == machine.program().limits().into()
        && file.selection == machine.program().selection().into();
    match replay(machine, &trace, is_same).0 {
        Replayed::Failed(failure) => Fate::StillFails(*failure),
        Replayed::Passed => Fate::Fixed,
        diverged => Fate::Stale(describe(machine, &trace, &diverged)),
    }
}
