//! `spelunk shrink`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use spelunk::console::Console;
use spelunk::file::TraceFile;
use spelunk::machine::Machine;
use spelunk::outcome::Failure;
use spelunk::replay::Replayed;
use spelunk::report::Finding;
use spelunk::shrink::{NotReproduced, Shrunk, shrink};
use spelunk::story;
use spelunk::trace::Trace;

use super::found::keep;
use super::saved::{describe, save, steps_of};
use super::{Compiled, FOUND, Guest, NONDETERMINISM, Output, PASSED};

#[derive(Args)]
pub(super) struct Shrink {
    #[command(flatten)]
    guest: Guest,
    #[command(flatten)]
    compiled: Compiled,
    /// The saved trace.
    trace: PathBuf,
    /// Where to write the result. [default: the trace itself]
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Candidates that may be tried.
    #[arg(long, default_value_t = 1_000_000)]
    shrink_budget: u64,
}

impl Shrink {
    pub(super) fn run(&self, output: &mut Output, interrupted: &AtomicBool) -> Result<u8> {
        let file = TraceFile::read(&self.trace)?;
        let Some(failure) = &file.failure else {
            bail!("every step of the trace `{}` passes: there is no failure to shrink", self.trace.display());
        };
        let mut machine = self.guest.machine(&file, &self.compiled, &output.console)?;
        if machine.program().hash() != file.module.0 {
            output.console.warning("the trace was recorded on another build of this target");
        }
        let trace = file.trace(&machine).with_context(|| {
            format!("the trace `{}` does not fit `{}`", self.trace.display(), self.guest.target.display())
        })?;
        let shrunk = match shrunk(
            &mut machine,
            &trace,
            failure,
            (&[], self.shrink_budget),
            &mut output.console,
            interrupted,
        ) {
            Ok(shrunk) => shrunk,
            Err(NotReproduced(replayed)) => {
                let why = describe(&machine, &trace, &replayed);
                output.report.event("shrink", json!({ "outcome": "not reproduced", "why": why }))?;
                output
                    .report
                    .text(&format!("It cannot be shrunk, since it does not fail as recorded: {why}"))?;
                return Ok(if replayed == Replayed::Passed { PASSED } else { NONDETERMINISM });
            }
        };
        let path = self.output.as_ref().unwrap_or(&self.trace);
        for (failure, trace) in &shrunk.others {
            keep(&machine, trace, failure, path.parent().unwrap_or(Path::new("")), output)?;
        }
        save(&machine, &shrunk.trace, Some(&shrunk.failure), path)?;
        output.console.clear();
        output.report.finding(&Finding {
            story: story::explain(&mut machine, &shrunk.trace, &shrunk.failure),
            failure: shrunk.failure,
            run: 0,
            steps_before: steps_of(&trace),
            reproduce: self.guest.replay_command(path),
            trace: path.clone(),
            is_minimal: shrunk.is_minimal,
        })?;
        Ok(FOUND)
    }
}

/// Shrinks with these rules (none is all), and shows how far it is.
pub(super) fn shrunk(
    machine: &mut Machine,
    trace: &Trace,
    failure: &Failure,
    (rules, budget): (&[u16], u64),
    console: &mut Console,
    interrupted: &AtomicBool,
) -> Result<Shrunk, NotReproduced> {
    let mut redrawn = Instant::now();
    shrink(machine, trace, failure, rules, budget, |executions, steps| {
        if redrawn.elapsed() > Duration::from_millis(100) {
            redrawn = Instant::now();
            console.shrinking(executions, steps);
        }
        !interrupted.load(Ordering::Relaxed)
    })
}
