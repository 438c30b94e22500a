//! From a failure to a finding that is saved and told.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use serde_json::json;
use spelunk::explore;
use spelunk::machine::Machine;
use spelunk::outcome::Failure;
use spelunk::report::Finding;
use spelunk::shrink::NotReproduced;
use spelunk::trace::Trace;
use spelunk::{load, story};

use super::saved::{self, Fate, Saved, describe, save, steps_of};
use super::shrink::shrunk;
use super::{Guest, Output};

/// The folder of a target's campaign, below `out`.
pub(super) fn campaign_folder(guest: &Guest, out: &Path) -> PathBuf {
    out.join(load::name_of(&guest.target))
}

/// The folder of a target's findings, below `out`.
pub(super) fn folder(guest: &Guest, out: &Path) -> PathBuf {
    campaign_folder(guest, out).join("findings")
}

/// Replays what was found before, and says what became of it.
pub(super) fn replay_saved(machine: &mut Machine, folder: &Path, output: &mut Output) -> Result<Vec<Saved>> {
    let saved = saved::replay_saved(machine, folder)?;
    for Saved { path, fate } in &saved {
        let path = path.display();
        let text = match fate {
            Fate::StillFails(failure) => format!("{path} still fails: {failure}"),
            Fate::Fixed => format!("{path} passes now: it is fixed"),
            Fate::Stale(why) => format!("{path} is stale: {why}"),
        };
        output.console.status("Saved", &text);
    }
    Ok(saved)
}

/// Says of those that still fail how to reproduce them.
pub(super) fn tell_saved(saved: &[Saved], guest: &Guest, output: &mut Output) -> Result<()> {
    for saved in saved.iter().filter(|saved| saved.still_fails()) {
        let command = guest.replay_command(&saved.path);
        output.report.text(&format!("A finding saved before still fails.  Reproduce:  {command}"))?;
    }
    Ok(())
}

/// Shrinks, saves and tells a finding; nothing where it does not happen again. Shrinking calls `rules`; none is all. With
/// `budget` `None` it is the simplest one already.
pub(super) fn told(
    machine: &mut Machine,
    finding: &explore::Finding,
    (guest, folder): (&Guest, &Path),
    (rules, budget): (&[u16], Option<u64>),
    output: &mut Output,
    interrupted: &AtomicBool,
) -> Result<Option<Finding>> {
    let explore::Finding { failure, run, trace } = finding;
    let path = folder.join(format!("{}.json", failure.id()));
    // As it was found first, so that it is not lost whatever happens while it is shrunk.
    let saved = save(machine, trace, Some(failure), &path);
    let limits = (rules, budget.unwrap_or(0));
    let shrunk = shrunk(machine, trace, failure, limits, &mut output.console, interrupted);
    let shrunk = match shrunk {
        Ok(shrunk) => shrunk,
        Err(NotReproduced(replayed)) => {
            saved?;
            let why = describe(machine, trace, &replayed);
            output
                .report
                .text(&format!("FLAKY  {failure}\n  the same steps did not fail the same way: {why}"))?;
            output.report.event("flaky", json!({ "message": failure.message, "why": why, "trace": path }))?;
            return Ok(None);
        }
    };
    for (failure, trace) in &shrunk.others {
        keep(machine, trace, failure, folder, output)?;
    }
    let saved = saved.and_then(|()| save(machine, &shrunk.trace, Some(&shrunk.failure), &path));
    output.console.clear();
    let finding = Finding {
        story: story::explain(machine, &shrunk.trace, &shrunk.failure),
        failure: shrunk.failure,
        run: *run,
        steps_before: steps_of(trace),
        reproduce: guest.replay_command(&path),
        trace: path,
        is_minimal: budget.is_none() || shrunk.is_minimal,
    };
    // Told first: what was found must not be lost where it cannot be saved.
    output.report.finding(&finding)?;
    saved?;
    Ok(Some(finding))
}

/// Saves another failure that was met while one was shrunk, unless it is saved already.
pub(super) fn keep(
    machine: &Machine,
    trace: &Trace,
    failure: &Failure,
    folder: &Path,
    output: &mut Output,
) -> Result<()> {
    let path = folder.join(format!("{}.json", failure.id()));
    if path.exists() {
        return Ok(());
    }
    save(machine, trace, Some(failure), &path)?;
    let text = format!("while it was shrunk, another failure: {failure}; saved in {}", path.display());
    output.console.status("Met", &text);
    Ok(())
}
