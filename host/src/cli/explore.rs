//! `spelunk explore`.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use spelunk::budget::Budget;
use spelunk::campaign::Settings;
use spelunk::console::tui::Stop;
use spelunk::file::Dictionary;
use spelunk::search::{Part, energy};
use spelunk::session::{Caching, Config, Job, Keep};

use super::fleet::FleetArgs;
use super::system::System;
use super::{Compiled, Edges, ForTools, Guest, GuestLimits, Output};

#[derive(Args)]
pub(super) struct Explore {
    #[command(flatten)]
    guest: Guest,
    /// Runs, at most, those of the campaign so far counted. [default: 100000, or none with --time]
    #[arg(long)]
    runs: Option<u64>,
    /// Time, at most, such as 90s or 5m, from when the target is built.
    #[arg(long, value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// Decides every draw: one seed and number of runs give one result.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Stop after this many different failures, those of the campaign so far counted; 0 is as many as are kept, 10,000.
    #[arg(long, default_value_t = 1)]
    max_findings: usize,
    /// Threads. No result depends on how many. [default: one for each core]
    #[arg(long)]
    workers: Option<NonZero<usize>>,
    /// Start from this file too, or those in this folder: seed inputs of an LLVMFuzzerTestOneInput.
    #[arg(long, value_name = "PATH")]
    seeds: Vec<PathBuf>,
    /// A dictionary as AFL and libFuzzer have them: tokens that are put into inputs, and into bytes and texts of rules.
    #[arg(long, value_name = "FILE")]
    dict: Vec<PathBuf>,
    /// Call only these rules.
    #[arg(long, value_name = "NAME")]
    rule: Vec<String>,
    /// Begin a new campaign. The one that there is, is backed up.
    #[arg(long, conflicts_with = "in_memory")]
    fresh: bool,
    /// What runs start from.
    #[arg(long, value_enum, default_value_t = Strategy::Novel, help_heading = "Search")]
    strategy: Strategy,
    /// Steps in a run, at most. Where much is found late in runs they have up to twice as many, and where nothing new was found for long, some have up to four times as many as that.
    #[arg(long, default_value_t = Settings::default().steps_per_run, help_heading = "Search")]
    steps_per_run: u32,
    /// How often a run starts from a checkpoint, where there is one. Where much is found, and for a function, fewer start fresh, and where nothing was found for long, more.
    #[arg(long, value_parser = rate, default_value_t = Settings::default().checkpoint_rate, help_heading = "Search")]
    checkpoint_rate: f64,
    /// How often a step toggles a fault, where there is one.
    #[arg(long, value_parser = rate, default_value_t = Settings::default().fault_rate, help_heading = "Search")]
    fault_rate: f64,
    /// How often a rule gets a changed copy of arguments that once found an edge.
    #[arg(long, value_parser = rate, default_value_t = Settings::default().mutation_rate, help_heading = "Search")]
    mutation_rate: f64,
    /// How often a run from a checkpoint begins with a changed copy of steps that once led to one.
    #[arg(long, value_parser = rate, default_value_t = Settings::default().continuation_rate, help_heading = "Search")]
    continuation_rate: f64,
    /// How often a run leaves out some of the rules.
    #[arg(long, value_parser = rate, default_value_t = Settings::default().swarm_rate, help_heading = "Search")]
    swarm_rate: f64,
    /// Parts of the search to leave out, to compare.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST", help_heading = "Search")]
    without: Vec<LeftOut>,
    /// Energy added to a checkpoint for each new edge that a run from it found.
    #[arg(long, value_parser = reward, default_value_t = Settings::default().energy_reward, help_heading = "Search")]
    energy_reward: f64,
    /// What the energy of a checkpoint is multiplied by after a run that found none.
    #[arg(long, value_parser = rate, default_value_t = Settings::default().energy_decay, help_heading = "Search")]
    energy_decay: f64,
    /// Candidates that shrinking a finding may try; 0 leaves findings as they are.
    #[arg(long, default_value_t = Config::explore().shrink_budget, help_heading = "Search")]
    shrink_budget: u64,
    /// Replay every run from the start instead of restoring snapshots. Slower; the results are the same.
    #[arg(long, help_heading = "Search")]
    no_snapshots: bool,
    /// Checkpoints kept, at most, of those that took new edges, and of others. [default: 256; of a function as many inputs as there is room for]
    #[arg(long, help_heading = "Limits")]
    max_checkpoints: Option<usize>,
    /// Memory for saved states; those of the lowest energy beyond it are replayed instead.
    #[arg(long, value_name = "MIB", default_value_t = Config::explore().memory >> 20, help_heading = "Limits")]
    memory: usize,
    #[command(flatten)]
    system: System,
    #[command(flatten)]
    limits: GuestLimits,
    #[command(flatten)]
    edges: Edges,
    #[command(flatten)]
    compiled: Compiled,
    /// The folder that campaigns and findings are saved in, each below one named after its target.
    #[arg(long, default_value = ".spelunk", help_heading = "Campaign")]
    out: PathBuf,
    /// Keep no campaign on disk, and resume none. Findings are saved.
    #[arg(long, help_heading = "Campaign")]
    in_memory: bool,
    /// Disk for the campaign; saved states of the lowest energy beyond it are left out, and replayed when it is resumed.
    #[arg(long, value_name = "MIB", help_heading = "Campaign")]
    store_max: Option<u64>,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Write a report of coverage, checkpoints, properties and findings to this file, as JSON.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,
    /// Show the exploration on the whole screen: edges over runs, checkpoints, rules and faults, findings, what is wrong.
    #[arg(long, help_heading = "Output")]
    tui: bool,
    #[command(flatten)]
    files: ForTools,
}

/// See [`energy::Strategy`].
#[derive(Clone, Copy, ValueEnum)]
enum Strategy {
    /// In proportion to energy.
    Energy,
    /// All alike.
    Uniform,
    /// In proportion to the rank by age, the newest highest.
    Recent,
    /// In proportion to `energy * sqrt(1 + index) / sqrt(1 + times selected)`: new ones that were seldom tried come first.
    Frontier,
    /// In proportion to `energy / (1 + times selected)^2`: what was seldom tried comes first, whatever its age.
    Novel,
    /// No guidance: every run is fresh, nothing is saved. For comparison.
    Random,
}

/// See [`Part`].
#[derive(Clone, Copy, ValueEnum)]
enum LeftOut {
    /// How often edges are gone through is no news.
    Hits,
    /// No run is looked at more closely.
    Looks,
    /// What small functions do is the same from wherever they are called.
    Contexts,
    /// What is compared takes the place of nothing.
    Operands,
    /// Texts that stand in the target are put into nothing.
    Texts,
    /// The steps of state machines are always drawn in the same way.
    Manners,
    /// Of threads each is as likely to go on.
    Priorities,
}

impl From<LeftOut> for Part {
    fn from(part: LeftOut) -> Part {
        match part {
            LeftOut::Hits => Part::Hits,
            LeftOut::Looks => Part::Looks,
            LeftOut::Contexts => Part::Contexts,
            LeftOut::Operands => Part::Operands,
            LeftOut::Texts => Part::Texts,
            LeftOut::Manners => Part::Manners,
            LeftOut::Priorities => Part::Priorities,
        }
    }
}

impl From<Strategy> for energy::Strategy {
    fn from(strategy: Strategy) -> energy::Strategy {
        match strategy {
            Strategy::Energy => energy::Strategy::Energy,
            Strategy::Uniform => energy::Strategy::Uniform,
            Strategy::Recent => energy::Strategy::Recent,
            Strategy::Frontier => energy::Strategy::Frontier,
            Strategy::Novel => energy::Strategy::Novel,
            Strategy::Random => energy::Strategy::Random,
        }
    }
}

impl Explore {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget, stop: Stop) -> Result<u8> {
        let config = self.config()?;
        if self.tui {
            output.console.use_screen(stop)?;
        }
        self.files.session(&self.guest, config, output, budget)
    }

    fn config(&self) -> Result<Config> {
        Ok(Config {
            limits: (&self.limits).into(),
            environment: self.system.environment(self.guest.files_bytes_max())?,
            selection: (&self.edges).into(),
            runs: self.runs,
            time: self.time,
            findings_max: self.max_findings,
            workers: self.workers,
            memory: self.memory.saturating_mul(1 << 20),
            shrink_budget: self.shrink_budget,
            uses_snapshots: !self.no_snapshots,
            out: self.out.clone(),
            keep: Keep::of(self.in_memory, self.fresh),
            store_max: self.store_max.map(|mib| mib.saturating_mul(1 << 20)),
            fleet: self.fleet.fleet(self.fresh || self.in_memory)?,
            cache: Caching::from(&self.compiled),
            seeds: self.seeds.clone(),
            report: self.report.clone(),
            ..self.guest.config(Config { job: Job::Explore(self.settings()?), ..Config::explore() })
        })
    }

    fn settings(&self) -> Result<Settings> {
        Ok(Settings {
            seed: self.seed,
            rules: self.rule.clone(),
            strategy: self.strategy.into(),
            steps_per_run: self.steps_per_run,
            checkpoint_rate: self.checkpoint_rate,
            fault_rate: self.fault_rate,
            mutation_rate: self.mutation_rate,
            continuation_rate: self.continuation_rate,
            swarm_rate: self.swarm_rate,
            max_checkpoints: self.max_checkpoints,
            without: self.without.iter().map(|part| Part::from(*part)).collect(),
            energy_reward: self.energy_reward,
            energy_decay: self.energy_decay,
            dict: Dictionary::read(&self.dict)?,
            ..Settings::default()
        })
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(format!("{value} is not in 0..=1")) }
}

fn reward(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (0.0..=1e9).contains(&value) { Ok(value) } else { Err(format!("{value} is not in 0..=1e9")) }
}
