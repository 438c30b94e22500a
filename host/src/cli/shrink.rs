//! `spelunk shrink`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use spelunk::budget::{Budget, Over};
use spelunk::file::{Shrinking, TraceFile};
use spelunk::machine::Machine;
use spelunk::outcome::Failure;
use spelunk::replay::{Replayed, failure_of};
use spelunk::session::{Event, Finding, Observer, describe, steps_of, write_trace};
use spelunk::shrink::{NotReproduced, Shrunk, shrink};
use spelunk::story;
use spelunk::trace::Trace;

use super::{Compiled, FOUND, Guest, INTERRUPTED, NONDETERMINISM, Output, PASSED};

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
    /// Time, at most, such as 90s or 5m, from when the module is compiled.
    #[arg(long, value_parser = humantime::parse_duration)]
    time: Option<Duration>,
}

impl Shrink {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let file = TraceFile::read(&self.trace)?;
        let Some(failure) = &file.failure else {
            bail!("every step of the trace `{}` passes: there is no failure to shrink", self.trace.display());
        };
        let (mut machine, _) = self.guest.machine(&file, &self.compiled, &output.console, budget)?;
        if let Some(time) = self.time {
            budget.limit(time);
        }
        let is_same_build = machine.program().hash() == file.module.0;
        if !is_same_build {
            output.console.warning("the trace was recorded on another build of this target");
        }
        let trace = file.trace(&machine).with_context(|| self.guest.misfit(&self.trace, is_same_build))?;
        let now = if is_same_build { None } else { failure_of(&mut machine, &trace) };
        let failure = now.as_ref().filter(|now| now.has_moved(failure)).unwrap_or(failure);
        match self.shrunk(&mut machine, &trace, failure, output, budget) {
            Ok(shrunk) => self.end(&mut machine, &trace, shrunk, output, budget),
            Err(NotReproduced(Replayed::Stopped)) => {
                Err(budget.check().expect_err("only a budget stops a guest").into())
            }
            Err(NotReproduced(replayed)) => {
                let why = describe(&machine, &trace, &replayed);
                output.report.event("shrink", json!({ "outcome": "not reproduced", "why": why }))?;
                output.report.text(&format!("It cannot be shrunk: it does not fail as recorded: {why}"))?;
                Ok(if replayed == Replayed::Passed { PASSED } else { NONDETERMINISM })
            }
        }
    }

    /// Shrinks, and shows how far it is.
    fn shrunk(
        &self,
        machine: &mut Machine,
        trace: &Trace,
        failure: &Failure,
        output: &mut Output,
        budget: &Budget,
    ) -> Result<Shrunk, NotReproduced> {
        let mut redrawn = Instant::now();
        shrink(machine, trace, failure, &[], self.shrink_budget, |executions, steps| {
            if redrawn.elapsed() > Duration::from_millis(100) {
                redrawn = Instant::now();
                let _ = output.console.on(Event::Shrinking { executions, steps });
            }
            !budget.is_over()
        })
    }

    /// Saves and reports the result.
    fn end(
        &self,
        machine: &mut Machine,
        trace: &Trace,
        shrunk: Shrunk,
        output: &mut Output,
        budget: &Budget,
    ) -> Result<u8> {
        let path = self.output.as_ref().unwrap_or(&self.trace);
        let folder = path.parent().unwrap_or(Path::new(""));
        for (failure, trace) in &shrunk.others {
            let path = folder.join(format!("{}.json", failure.id()));
            if !path.exists() {
                write_trace(machine, trace, (Some(failure), Some(Shrinking::Pending)), &path)?;
                let path = path.display();
                let text = format!("another failure while this one was shrunk: {failure}; saved in {path}");
                output.console.status("Met", &text);
            }
        }
        let shrinking = match shrunk.is_minimal {
            true => Shrinking::Minimal,
            false if budget.is_over() => Shrinking::Pending,
            false => Shrinking::Limited,
        };
        write_trace(machine, &shrunk.trace, (Some(&shrunk.failure), Some(shrinking)), path)?;
        output.console.clear();
        let story = story::explain(machine, &shrunk.trace, &shrunk.failure, &|| budget.is_over());
        let finding = self.guest.finding(shrunk.failure, story, steps_of(trace), path);
        output.report.finding(&Finding { is_minimal: shrunk.is_minimal, ..finding })?;
        Ok(if budget.over() == Some(Over::Interrupt) { INTERRUPTED } else { FOUND })
    }
}
