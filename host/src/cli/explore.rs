//! `spelunk explore`.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;
use spelunk::campaign::{Campaign, Settings};
use spelunk::energy::{Energies, Strategy};
use spelunk::explore::{self, Explorer, Options};
use spelunk::file::Hex;
use spelunk::machine::Machine;
use spelunk::report::Finding;
use spelunk::target::Target;

use super::found;
use super::input;
use super::report;
use super::saved::Saved;
use super::start::Start;
use super::{
    Compiled, EdgeMode, Edges, FOUND, Guest, GuestLimits, INTERRUPTED, NONDETERMINISM, Output, PASSED,
};

/// How often a campaign is saved; first after a tenth of that.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(super) struct Explore {
    #[command(flatten)]
    guest: Guest,
    #[command(flatten)]
    compiled: Compiled,
    /// Decides every draw: one seed and number of runs give one result.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Runs, at most, those of the campaign so far counted. [default: 100000, or none with --time]
    #[arg(long)]
    runs: Option<u64>,
    /// Time, at most, such as 90s or 5m.
    #[arg(long, value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// Stop after this many different failures, those of the campaign so far counted; 0 is never.
    #[arg(long, default_value_t = 1)]
    max_findings: usize,
    /// Start from the files in this folder too, each an input of an LLVMFuzzerTestOneInput.
    #[arg(long, value_name = "FOLDER")]
    seeds: Option<PathBuf>,
    /// Call only these rules.
    #[arg(long, value_name = "NAME")]
    rule: Vec<String>,
    /// What runs start from.
    #[arg(long, value_enum, default_value_t = Options::default().strategy)]
    strategy: Strategy,
    /// Steps in a run, at most.
    #[arg(long, default_value_t = Options::default().steps_max)]
    steps_per_run: u32,
    /// How often a run starts from a checkpoint, where there is one.
    #[arg(long, value_parser = rate, default_value_t = Options::default().checkpoint_rate)]
    checkpoint_rate: f64,
    /// How often a step toggles a fault, where there is one.
    #[arg(long, value_parser = rate, default_value_t = Options::default().fault_rate)]
    fault_rate: f64,
    /// How often a rule gets a changed copy of arguments that once found an edge.
    #[arg(long, value_parser = rate, default_value_t = Options::default().mutation_rate)]
    mutation_rate: f64,
    /// How often a run from a checkpoint begins with a changed copy of steps that once led to one.
    #[arg(long, value_parser = rate, default_value_t = Options::default().continuation_rate)]
    continuation_rate: f64,
    /// How often a run leaves out some of the rules.
    #[arg(long, value_parser = rate, default_value_t = Options::default().swarm_rate)]
    swarm_rate: f64,
    /// Checkpoints kept, at most.
    #[arg(long, default_value_t = Options::default().checkpoints_max)]
    max_checkpoints: usize,
    /// Memory for saved states; those of the lowest energy beyond it are reached again instead.
    #[arg(long, value_name = "MIB", default_value_t = Options::default().saved_bytes_max >> 20)]
    memory: usize,
    /// Energy added to a checkpoint for each new edge that a run from it found.
    #[arg(long, default_value_t = Energies::default().reward)]
    energy_reward: f64,
    /// What the energy of a checkpoint is multiplied by after a run that found none.
    #[arg(long, value_parser = rate, default_value_t = Energies::default().decay)]
    energy_decay: f64,
    /// Threads. No result depends on how many. [default: one for each core]
    #[arg(long)]
    workers: Option<NonZero<usize>>,
    /// Candidates that shrinking a finding may try; 0 leaves findings as they are.
    #[arg(long, default_value_t = 100_000)]
    shrink_budget: u64,
    /// Replay every run from the start instead of restoring snapshots. Slower; the results are the same.
    #[arg(long)]
    no_snapshots: bool,
    #[command(flatten)]
    edges: Edges,
    #[command(flatten)]
    limits: GuestLimits,
    /// The folder that the campaign and its findings are saved in, below one named after the target.
    #[arg(long, default_value = ".spelunk")]
    out: PathBuf,
    /// Keep no campaign on disk, and go on with none.
    #[arg(long)]
    in_memory: bool,
    /// Begin anew. The campaign that there is, is kept aside.
    #[arg(long, conflicts_with = "in_memory")]
    fresh: bool,
    /// Disk for the campaign; saved states of the lowest energy beyond it are left out, and reached again when the
    /// campaign goes on.
    #[arg(long, value_name = "MIB")]
    store_max: Option<u64>,
    /// Write a report of coverage, checkpoints, properties and findings to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Explore {
    fn settings(&self, machine: &Machine) -> Settings {
        Settings {
            seed: self.seed,
            rules: self.rule.clone(),
            strategy: self.strategy,
            steps_per_run: self.steps_per_run,
            checkpoint_rate: self.checkpoint_rate,
            fault_rate: self.fault_rate,
            mutation_rate: self.mutation_rate,
            continuation_rate: self.continuation_rate,
            swarm_rate: self.swarm_rate,
            max_checkpoints: self.max_checkpoints,
            energy_reward: self.energy_reward,
            energy_decay: self.energy_decay,
            limits: machine.program().limits().into(),
            selection: machine.program().selection().into(),
        }
    }

    pub(super) fn run(&self, output: &mut Output, interrupted: &AtomicBool) -> Result<u8> {
        ensure!(self.steps_per_run > 0, "--steps-per-run must be at least 1");
        ensure!(self.max_checkpoints > 0, "--max-checkpoints must be at least 1");
        self.time.into_iter().for_each(|time| super::budget().limit(time));
        let workers = self.workers.or_else(|| std::thread::available_parallelism().ok());
        let workers = workers.map_or(1, NonZero::get);
        let wasm = self.guest.load(&output.console)?;
        let mut machines = self.guest.machines_of(
            &wasm,
            workers,
            (&self.limits).into(),
            (&self.edges).into(),
            &self.compiled,
        )?;
        if self.no_snapshots {
            for machine in &mut machines {
                machine.set_uses_snapshots(false)?;
            }
        }
        self.begin(&machines[0], output)?;
        if let Some(path) = &self.report {
            write_report(path, "")?;
        }
        let settings = self.settings(&machines[0]);
        let options = Options {
            saved_bytes_max: if self.no_snapshots { 0 } else { self.memory.saturating_mul(1 << 20) },
            ..settings.options(machines[0].program())?
        };
        let saved = found::replay_saved(&mut machines[0], &self.findings(), output)?;
        let place = found::campaign_folder(&self.guest, &self.out);
        let opened = match self.in_memory {
            true => Start::InMemory,
            false => {
                let program = machines[0].program();
                Start::open(&place, self.fresh, &self.guest, &wasm, &settings, program, output)?
            }
        };
        let (explorer, campaign) = opened.explorer(&mut machines, options, output)?;
        self.explore(explorer, campaign, saved, output, interrupted)
    }

    fn explore(
        &self,
        mut explorer: Explorer<'_, Machine>,
        mut campaign: Option<Campaign>,
        saved: Vec<Saved>,
        output: &mut Output,
        interrupted: &AtomicBool,
    ) -> Result<u8> {
        if let Some(campaign) = &mut campaign {
            campaign.set_bytes_max(self.store_max.map_or(u64::MAX, |mib| mib.saturating_mul(1 << 20)));
        }
        let program = explorer.target().program().clone();
        let edges = program.edges().edges.len();
        output.console.restart(explorer.progress().steps);
        let started = Instant::now();
        let runs_max = self.runs.or(self.time.is_none().then_some(100_000)).unwrap_or(u64::MAX);
        let is_over = |runs: u64, now: Instant| {
            runs >= runs_max
                || self.time.is_some_and(|time| now - started >= time)
                || interrupted.load(Ordering::Relaxed)
                || super::budget().is_over()
        };
        let (known_before, runs_before) = (explorer.findings().count(), explorer.progress().runs);
        if let Some(folder) = &self.seeds {
            input::plant_seeds(&mut explorer, folder, output)?;
        }
        let mut reported: Vec<Finding> = Vec::new();
        let mut is_flaky = false;
        while self.max_findings == 0 || known_before + reported.len() < self.max_findings {
            let found = known_before + reported.len();
            let saved_at = Instant::now();
            let interval = SAVE_INTERVAL.min((saved_at - started).max(SAVE_INTERVAL / 10));
            let console = Mutex::new((&mut output.console, started));
            explorer.explore(|progress| {
                let now = Instant::now();
                if let Ok(mut console) = console.try_lock()
                    && now - console.1 > Duration::from_millis(100)
                {
                    console.1 = now;
                    console.0.progress(progress, edges);
                }
                let is_to_be_saved = campaign.is_some() && now - saved_at >= interval;
                progress.findings == found && !is_over(progress.runs, now) && !is_to_be_saved
            });
            if let Some(campaign) = &mut campaign {
                campaign.save(explorer.knowledge(), &program)?;
            }
            let Some(finding) = explorer.findings().nth(found).cloned() else {
                if is_over(explorer.progress().runs, Instant::now()) {
                    break;
                }
                continue;
            };
            let place = (&self.guest, &*self.findings());
            let budget = Some(self.shrink_budget);
            match found::told(explorer.target(), &finding, place, budget, output, interrupted)? {
                Some(finding) => reported.push(finding),
                None => {
                    is_flaky = true;
                    break;
                }
            }
        }
        output.console.clear();
        let exit = if is_flaky {
            NONDETERMINISM
        } else if interrupted.load(Ordering::Relaxed) {
            INTERRUPTED
        } else if explorer.progress().findings == 0 && !saved.iter().any(Saved::still_fails) {
            PASSED
        } else {
            FOUND
        };
        if let Some(path) = &self.report {
            write_report(path, &report::report(&mut explorer, &reported, self.seed))?;
        }
        let progress = explorer.progress();
        let unmet: Vec<_> =
            explorer.counts().properties.iter().filter(|property| property.is_unmet()).collect();
        hint(&progress, output);
        if runs_before > 0 && progress.runs == runs_before && !interrupted.load(Ordering::Relaxed) {
            let (what, flag) = match progress.runs >= runs_max {
                true => ("runs", "--runs"),
                false => ("findings", "--max-findings"),
            };
            let text =
                format!("the campaign has had its {what}: a larger {flag} goes on, --fresh begins anew");
            output.console.status("Complete", &text);
        }
        found::tell_saved(&saved, &self.guest, output)?;
        let seconds = started.elapsed().as_secs_f64();
        let saved: Vec<_> = saved.iter().map(Saved::json).collect();
        output.report.end(&progress, edges, seconds, exit, &unmet, &saved)?;
        Ok(exit)
    }

    /// Says what is explored, and what hinders it.
    fn begin(&self, machine: &Machine, output: &mut Output) -> Result<()> {
        if let Some(obstacle) = machine.program().obstacles().first() {
            let inside = obstacle.function.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
            output.console.warning(&format!(
                "runs are replayed from the start, since snapshots cannot hold this: {}{inside} at {:#x}",
                obstacle.what, obstacle.offset
            ));
        }
        let edges = machine.program().edges().edges.len();
        let rules: Vec<&str> = machine.rules().iter().map(|rule| rule.name.as_str()).collect();
        output.report.event(
            "begin",
            json!({
                "target": self.guest.target, "seed": self.seed, "edges": edges, "rules": rules,
                "faults": machine.faults(), "module": String::from(Hex(machine.program().hash())),
            }),
        )?;
        let is_counted = edges > 0 || matches!(self.edges.edges, EdgeMode::Hashed);
        if !is_counted && self.strategy != Strategy::Random {
            output
                .console
                .warning("no edge is counted, so nothing guides the search: see --include and --exclude");
        }
        Ok(())
    }

    /// The folder of the target's findings.
    fn findings(&self) -> PathBuf {
        found::folder(&self.guest, &self.out)
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(format!("{value} is not in 0..=1")) }
}

fn write_report(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write the report `{}`", path.display()))
}

/// Says so where an exploration cannot have found much.
fn hint(progress: &explore::Progress, output: &Output) {
    if progress.findings > 0 || progress.runs == 0 {
        return;
    }
    if progress.rejected == progress.runs {
        output.console.warning("the guest rejected every run: what it assumes never holds");
    } else if progress.rules == 0 {
        output.console.warning("no rule was ever called: no precondition holds after setup");
    }
}
