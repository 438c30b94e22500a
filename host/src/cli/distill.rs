//! `spelunk distill`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::json;
use spelunk::budget::Budget;
use spelunk::coverage::edges_in;
use spelunk::disk;
use spelunk::file::Conditions;
use spelunk::machine::Machine;
use spelunk::outcome::{Failure, Outcome};
use spelunk::report::counted;
use spelunk::search::{Distilled, features_of};
use spelunk::session::{self, Caching, Inputs, write_named_input};
use spelunk::text;

use super::system::System;
use super::{Compiled, Edges, FOUND, Guest, GuestLimits, Output, PASSED};

#[derive(Args)]
pub(super) struct Distill {
    #[command(flatten)]
    guest: Guest,
    /// Folders of inputs, or files that are inputs.
    #[arg(required = true)]
    corpus: Vec<PathBuf>,
    /// The folder that the inputs are written to which are kept, named after their content. It does not exist, or is empty.
    #[arg(long, short, value_name = "FOLDER")]
    output: PathBuf,
    /// Time, at most, such as 90s or 5m, from when the target is built. Where it is not enough, nothing is written.
    #[arg(long, value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    #[command(flatten)]
    system: System,
    #[command(flatten)]
    limits: GuestLimits,
    #[command(flatten)]
    edges: Edges,
    #[command(flatten)]
    compiled: Compiled,
}

/// What inputs do.
#[derive(Default)]
struct Executed {
    shown: Distilled,
    inputs: usize,
    /// Bytes that are not given to the function, since the files are too long.
    cut: u64,
    rejected: u64,
    /// By what names it: a failure, the first input that leads to it, and how many do.
    failures: BTreeMap<String, (Failure, PathBuf, u64)>,
}

impl Distill {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let mut machine = self.machine(output, budget)?;
        let program = machine.program().clone();
        let inputs = Inputs::of(&program, &self.corpus, "what is distilled")?;
        let cannot = || format!("cannot write to `{}`", self.output.display());
        disk::make_folder(&self.output, &self.output).with_context(cannot)?;
        let is_empty = std::fs::read_dir(&self.output).with_context(cannot)?.next().is_none();
        ensure!(is_empty, "the folder `{}` is not empty", self.output.display());

        let executed = execute(&mut machine, &inputs, budget)?;
        let kept = executed.shown.kept(|at| {
            ensure_time(budget, &executed, &inputs)?;
            let (bytes, _) = inputs.read(&inputs.files[at])?;
            Ok::<_, anyhow::Error>(features_of(&mut machine, &inputs.trace(&bytes)).1)
        })?;
        // What was kept last may have been stopped.
        ensure_time(budget, &executed, &inputs)?;
        for at in &kept {
            let (bytes, _) = inputs.read(&inputs.files[*at])?;
            write_named_input(&self.output, &bytes)?;
        }
        self.report(output, &executed, kept.len())?;
        Ok(if executed.failures.is_empty() { PASSED } else { FOUND })
    }

    fn machine(&self, output: &Output, budget: &Budget) -> Result<Machine> {
        let wasm = self.guest.load(&output.console, budget)?;
        if let Some(time) = self.time {
            budget.limit(time);
        }
        let conditions = Conditions {
            limits: (&self.limits).into(),
            selection: (&self.edges).into(),
            environment: self.system.environment(self.guest.files_bytes_max())?,
        };
        let cache = Caching::from(&self.compiled).open().and_then(Result::ok);
        let program = session::program(&self.guest.target, &wasm, conditions, cache.as_ref(), budget)?;
        Machine::new(program).with_context(|| format!("cannot run `{}`", self.guest.target.display()))
    }

    fn report(&self, output: &mut Output, executed: &Executed, kept: usize) -> Result<()> {
        let Executed { shown, inputs, cut, rejected, failures } = executed;
        if *cut > 0 {
            let text = format!("{} cut to --input-max {}", counted(*cut, "input"), self.limits.input_max);
            output.console.warning(&text);
        }
        let crashing: u64 = failures.values().map(|(.., times)| times).sum();
        for (failure, path, times) in failures.values() {
            let others = if *times > 1 { format!(" and {} more", times - 1) } else { String::new() };
            let path = path.display().to_string();
            output.console.status("Fails", &format!("{}{others}: {failure}", text::line(&path)));
        }
        let features = shown.features().count();
        let edges = edges_in(shown.features()).collect::<BTreeSet<_>>().len();
        output.report.event(
            "distill",
            json!({
                "to": self.output.display().to_string(), "inputs": inputs, "kept": kept, "features": features, "edges": edges,
                "rejected": rejected, "failing": crashing,
            }),
        )?;
        let mut text = format!(
            "{kept} of {} kept in `{}`, which show all {} of {} that all of them show",
            counted(*inputs as u64, "input"),
            text::line(&self.output.display().to_string()),
            counted(features as u64, "feature"),
            counted(edges as u64, "edge"),
        );
        let left_out = [(crashing, "that fail"), (*rejected, "that the function rejects")];
        for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
            text += &format!("; without {count} {what}");
        }
        Ok(output.report.text(&text)?)
    }
}

/// Executes all inputs.
fn execute(machine: &mut Machine, inputs: &Inputs, budget: &Budget) -> Result<Executed> {
    let mut executed = Executed::default();
    for (at, path) in inputs.files.iter().enumerate() {
        ensure_time(budget, &executed, inputs)?;
        let (bytes, is_cut) = inputs.read(path)?;
        executed.cut += u64::from(is_cut);
        let (outcome, features) = features_of(machine, &inputs.trace(&bytes));
        match outcome {
            Outcome::Pass | Outcome::Exit => executed.shown.add(at, features),
            Outcome::Reject(_) => executed.rejected += 1,
            Outcome::Fail(failure) => executed.failed(*failure, path),
            Outcome::Stopped => {
                ensure_time(budget, &executed, inputs)?;
                bail!("`{}` was stopped before its end", path.display());
            }
        }
        executed.inputs += 1;
    }
    Ok(executed)
}

impl Executed {
    fn failed(&mut self, failure: Failure, path: &Path) {
        let known = self.failures.entry(failure.id()).or_insert_with(|| (failure, path.to_path_buf(), 0));
        known.2 += 1;
    }
}

fn ensure_time(budget: &Budget, executed: &Executed, inputs: &Inputs) -> Result<()> {
    ensure!(
        !budget.is_over(),
        "there was no time for all inputs: {} of {} were executed, and nothing was written",
        executed.inputs,
        inputs.files.len()
    );
    Ok(())
}
