//! `spelunk check`.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use spelunk::check::{self, Options, Schedules};
use spelunk::machine::Selection;
use spelunk::session::{Caching, Config, Job, Keep};

use super::fleet::FleetArgs;
use super::system::System;
use super::{Compiled, ForTools, Guest, GuestLimits, Sanitizers};

#[derive(Args)]
pub(super) struct Check {
    #[command(flatten)]
    pub(super) guest: Guest,
    /// Depth-first (the first alternative first), or breadth-first (the fewest steps first). [default: dfs for a
    /// guest that exports `check`, else bfs]
    #[arg(long, value_enum)]
    order: Option<Order>,
    /// Rules called and faults toggled on a path, at most. Without a bound a check ends where every path does, or
    /// leads to states that were met before.
    #[arg(long)]
    steps: Option<u32>,
    /// Paths, at most.
    #[arg(long)]
    runs: Option<u64>,
    /// Time, at most, such as 90s or 5m, from when the target is built.
    #[arg(long, value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// Stop after this many different failures; 0 is as many as are kept, 10,000.
    #[arg(long, default_value_t = Options::default().findings_max)]
    max_findings: usize,
    /// Threads. No result depends on how many, but for how far a check gets within --memory and --time. Depth-first there is one where
    /// states are compared, where paths are listed, and with --runs. [default: one for each core]
    #[arg(long)]
    workers: Option<NonZero<usize>>,
    /// Begin anew. Else a breadth-first check goes on where the same command ended before it was complete, be it by a signal.
    #[arg(long, conflicts_with = "in_memory")]
    fresh: bool,
    /// Keep nothing of a check that ends before it is complete. Findings are saved.
    #[arg(long)]
    in_memory: bool,
    /// Print what each path noted, in the order of the visits.
    #[arg(long)]
    list: bool,
    /// Leave out orders of threads that touch nothing in common, and explore one of two orders of rules that the guest declares
    /// independent.
    #[arg(long, help_heading = "Search")]
    reduce: bool,
    /// Threads of the guest that are preempted in a run, at most: others go on only where the one that runs waits, yields or ends.
    /// Smaller bounds are tried first.
    #[arg(long, value_name = "N", conflicts_with = "graph", help_heading = "Search")]
    preemptions: Option<u32>,
    /// Threads of the guest that are passed over in a run, at most: else the one that runs goes on, and where it waits, yields or ends, the
    /// one with the next number. Smaller bounds are tried first. With many threads this leaves out more than --preemptions.
    #[arg(long, value_name = "N", conflicts_with_all = ["graph", "preemptions"], help_heading = "Search")]
    delays: Option<u32>,
    /// Explore a state again that was met before. States of a guest that exports `check` are never compared.
    #[arg(long, help_heading = "Search")]
    no_prune: bool,
    /// Candidates that shrinking a finding may try, depth-first; 0 leaves findings as they are. Breadth-first the
    /// path to a finding is a shortest one already.
    #[arg(long, default_value_t = Config::check().shrink_budget, help_heading = "Search")]
    shrink_budget: u64,
    /// Replay every path from the start instead of restoring snapshots. Slower; the results are the same.
    #[arg(long, help_heading = "Search")]
    no_snapshots: bool,
    /// Alternatives that a choice may have.
    #[arg(long, value_name = "N", default_value_t = Options::default().alternatives_max, help_heading = "Limits")]
    domain_max: u32,
    /// Memory for saved states, breadth-first; those beyond are replayed instead.
    #[arg(long, value_name = "MIB", default_value_t = Config::check().memory >> 20, help_heading = "Limits")]
    memory: usize,
    #[command(flatten)]
    system: System,
    #[command(flatten)]
    limits: GuestLimits,
    #[command(flatten)]
    sanitizers: Sanitizers,
    #[command(flatten)]
    compiled: Compiled,
    /// Print of each rule in how many states it was called, how often, how many states it led to first, and after how few
    /// steps it was called; and after how few steps each property was seen. Breadth-first.
    #[arg(long, help_heading = "Output")]
    coverage: bool,
    /// Write the graph of the states that were met to this file, for Graphviz (`.dot`) or as JSON (`.json`).
    #[arg(long, value_name = "FILE", conflicts_with = "reduce", help_heading = "Output")]
    graph: Option<PathBuf>,
    /// The folder that findings are saved in, below one named after the target.
    #[arg(long, default_value = ".spelunk", help_heading = "Output")]
    out: PathBuf,
    #[command(flatten)]
    fleet: FleetArgs,
    #[command(flatten)]
    pub(super) files: ForTools,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    Dfs,
    Bfs,
}

impl Check {
    pub(super) fn config(&self) -> Result<Config> {
        let options = Options {
            steps_max: self.steps,
            alternatives_max: self.domain_max,
            prunes: !self.no_prune,
            reduces: self.reduce,
            lists: self.list,
            schedules: self.preemptions.map(Schedules::Preemptions).or(self.delays.map(Schedules::Delays)),
            ..Options::default()
        };
        Ok(Config {
            limits: (&self.limits).into(),
            environment: self.system.environment(self.guest.files_bytes_max())?,
            selection: Selection { sanitize: (&self.sanitizers).into(), ..Selection::default() },
            order: self.order.map(|order| match order {
                Order::Dfs => check::Order::Depth,
                Order::Bfs => check::Order::Breadth,
            }),
            runs: self.runs,
            time: self.time,
            findings_max: self.max_findings,
            workers: self.workers,
            memory: self.memory.saturating_mul(1 << 20),
            shrink_budget: self.shrink_budget,
            coverage: self.coverage,
            graph: self.graph.clone(),
            uses_snapshots: !self.no_snapshots,
            fleet: self.fleet.fleet(self.fresh || self.in_memory)?,
            out: self.out.clone(),
            keep: Keep::of(self.in_memory, self.fresh),
            cache: Caching::from(&self.compiled),
            ..self.guest.config(Config { job: Job::Check(options), ..Config::check() })
        })
    }
}
