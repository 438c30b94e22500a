//! `spelunk replay`.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;
use spelunk::budget::Budget;
use spelunk::file::{Hex, Shrinking, TraceFile};
use spelunk::replay::{Replayed, replay};
use spelunk::report::counted;
use spelunk::session::{Caching, Finding, cause, describe, steps_of};
use spelunk::story;
use spelunk::trace::Trace;

use super::{Compiled, FOUND, Guest, NONDETERMINISM, Output, PASSED};

#[derive(Args)]
pub(super) struct Replay {
    #[command(flatten)]
    guest: Guest,
    #[command(flatten)]
    compiled: Compiled,
    /// The saved trace.
    trace: PathBuf,
    /// Replay this many times, and compare the states of all.
    #[arg(long, default_value_t = 1)]
    times: u64,
}

impl Replay {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        ensure!(self.times > 0, "--times must be at least 1");
        let file = TraceFile::read(&self.trace)?;
        let (mut machine, wasm) = self.guest.machine(&file, &self.compiled, &output.console, budget)?;
        let is_same_build = machine.program().hash() == file.module.0;
        if !is_same_build {
            output.console.warning(
                "the trace was recorded on another build of this target; its steps are replayed, and states are \
                 not compared",
            );
        }
        let trace = file.trace(&machine).with_context(|| self.guest.misfit(&self.trace, is_same_build))?;
        let (replayed, again) = replay(&mut machine, &trace, is_same_build);
        for _ in 1..self.times {
            budget.check()?;
            let (other, states) = replay(&mut machine, &again, true);
            if let Some(why) = difference(&replayed, &other, &again, &states) {
                return self.diverged(output, &why);
            }
        }
        let state = again.steps().last().and_then(|step| step.state).map(|state| String::from(Hex(state)));
        let data = |outcome: &str| json!({ "outcome": outcome, "times": self.times, "state": state });
        match replayed {
            Replayed::Failed(failure) => {
                if !file.failure.as_ref().is_some_and(|recorded| failure.is_same(recorded)) {
                    let has_moved = file.failure.as_ref().is_some_and(|recorded| failure.has_moved(recorded));
                    let recorded = file.failure.map_or("none".to_string(), |recorded| recorded.to_string());
                    if is_same_build {
                        return self
                            .diverged(output, &format!("it fails with {failure}, recorded was {recorded}"));
                    }
                    if !has_moved {
                        output
                            .console
                            .warning(&format!("another failure than recorded, which was {recorded}"));
                    }
                }
                output.report.event("replay", data("failed"))?;
                // Another build may fail sooner.
                let story = story::tell_until(&mut machine, &again, &|| budget.is_over());
                let cache = Caching::from(&self.compiled).open().and_then(Result::ok);
                let cause = cause(&wasm, &machine, &again, cache.as_ref(), budget);
                let finding = self.guest.finding(*failure, story, steps_of(&again), &self.trace);
                let is_minimal = matches!(file.shrinking, None | Some(Shrinking::Minimal));
                output.report.finding(&Finding { cause, is_minimal, ..finding })?;
                Ok(FOUND)
            }
            Replayed::Passed => {
                output.report.event("replay", data("passed"))?;
                output.report.text(&passed(file.failure.is_some(), trace.len()))?;
                // The same module did fail here once.
                Ok(PASSED)
            }
            Replayed::Stopped => Err(budget.check().expect_err("only a budget stops a guest").into()),
            diverged @ Replayed::Diverged { .. } => {
                let why = describe(&machine, &trace, &diverged);
                self.diverged(output, &why)
            }
        }
    }

    fn diverged(&self, output: &mut Output, why: &str) -> Result<u8> {
        output.report.event("replay", json!({ "outcome": "diverged", "why": why }))?;
        output.report.text(&format!("The run differs from the recorded one: {why}"))?;
        Ok(NONDETERMINISM)
    }
}

/// How a second replay differs from the first.
fn difference(first: &Replayed, second: &Replayed, states: &Trace, others: &Trace) -> Option<String> {
    let differs = states.steps().iter().zip(others.steps()).position(|(a, b)| a.state != b.state);
    match differs {
        Some(step) => Some(format!("step {} leads to another state from one replay to the next", step + 1)),
        None => (first != second).then(|| "one replay ends differently from the next".to_string()),
    }
}

/// What to say where all steps pass of a trace that failed, or did not.
fn passed(has_failed: bool, steps: usize) -> String {
    let said = if has_failed { "It did not reproduce: all" } else { "As recorded, all" };
    let verb = if steps == 1 { "passes" } else { "pass" };
    format!("{said} {} {verb}.", counted(steps as u64, "step"))
}
