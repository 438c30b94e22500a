//! `spelunk worker`.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Args;
use spelunk::budget::{Budget, Over};
use spelunk::campaign::Settings;
use spelunk::fleet::{Nats, Server, Shared, ensure_name};
use spelunk::report::counted;
use spelunk::search::Progress;
use spelunk::session::{Caching, Config, Event, Fleet, Job, JobResult, Observer, Session};
use spelunk::store::{Header, Store as _};

use super::FleetArgs;
use crate::cli::{Compiled, INTERRUPTED, Output, PASSED};

/// Serve campaigns that a fleet shares.
#[derive(Args)]
pub(in crate::cli) struct Worker {
    #[command(flatten)]
    fleet: FleetArgs,
    /// Time, at most, such as 90s or 5m. [default: until it is stopped]
    #[arg(long, value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// Threads. [default: one for each core]
    #[arg(long)]
    workers: Option<NonZero<usize>>,
    /// Memory for saved states.
    #[arg(long, value_name = "MIB", default_value_t = Config::explore().memory >> 20, help_heading = "Limits")]
    memory: usize,
    /// How long it stays with one campaign before it looks which needs it most.
    #[arg(long, value_parser = humantime::parse_duration, default_value = "1m")]
    turn: Duration,
    #[command(flatten)]
    compiled: Compiled,
}

/// It is looked so often whether there is a campaign.
const LOOK: Duration = Duration::from_secs(2);
/// And so often whether it is time to stop.
const POLL: Duration = Duration::from_millis(50);
/// A finding that is being shrunk is left after so many turns: it would be shrunk from its beginning again, by whoever comes next.
const SHRINKING_TURNS: u32 = 10;

impl Worker {
    pub(in crate::cli) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let server = self.fleet.server().context("say where the fleet meets: --nats, or --nats-context")?;
        self.fleet.campaign().map_or(Ok(()), ensure_name)?;
        if let Some(time) = self.time {
            budget.limit(time);
        }
        let nats = Nats::connect(&server, budget)?;
        output.console.status("Connected", nats.addresses());
        let folder = tempfile::tempdir().context("there is no room for findings")?;
        let (mut is_waiting, mut served) = (false, BTreeMap::new());
        while !budget.is_over() {
            let picked = self.pick(&nats, &served).unwrap_or_else(|error| {
                output.console.warning(&format!("{error:#}"));
                None
            });
            let Some((name, header)) = picked else {
                if !std::mem::replace(&mut is_waiting, true) {
                    output.console.status("Waiting", "for a campaign, which `spelunk explore --nats` begins");
                }
                pause(budget, LOOK);
                continue;
            };
            is_waiting = false;
            *served.entry(name.clone()).or_insert(0u64) += 1;
            if let Err(error) = self.serve(&nats, &server, (&name, header), folder.path(), output, budget) {
                output.console.warning(&format!("{name}: {error:#}"));
                pause(budget, LOOK);
            }
        }
        Ok(if budget.over() == Some(Over::Interrupt) { INTERRUPTED } else { PASSED })
    }

    /// The campaign with the fewest workers, of those the one that was served least here.
    fn pick(&self, nats: &Arc<Nats>, served: &BTreeMap<String, u64>) -> Result<Option<(String, Header)>> {
        let mut best: Option<((usize, u64), String, Header)> = None;
        for name in nats.campaigns()? {
            if self.fleet.campaign().is_some_and(|wanted| wanted != name) {
                continue;
            }
            // One that is half made, or removed just now.
            let Ok(Some(hub)) = nats.open(&name) else { continue };
            let shared = Shared::new(Arc::new(hub), 0);
            // One of another version is not for this worker.
            let Ok(Some(header)) = shared.header() else { continue };
            // Whoever wants to help with a check has the target, and checks it too.
            if header.settings.get("check").is_some() {
                continue;
            }
            let Ok(alive) = shared.alive() else { continue };
            let need = (alive, served.get(&name).copied().unwrap_or_default());
            if best.as_ref().is_none_or(|(least, ..)| need < *least) {
                best = Some((need, name, header));
            }
        }
        Ok(best.map(|(_, name, header)| (name, header)))
    }

    /// Explores one campaign for a turn.
    fn serve(
        &self,
        nats: &Arc<Nats>,
        server: &Server,
        (name, header): (&str, Header),
        folder: &Path,
        output: &mut Output,
        budget: &Budget,
    ) -> Result<()> {
        let hub = nats.open(name)?.context("it is gone")?;
        let wasm = Shared::new(Arc::new(hub), 0).module()?;
        let settings: Settings =
            serde_json::from_value(header.settings).context("its settings are of another version")?;
        let turn = Budget::of(self.turn.saturating_mul(SHRINKING_TURNS));
        let config = Config {
            limits: settings.limits,
            selection: settings.selection.clone(),
            environment: settings.environment.clone(),
            findings_max: 0,
            workers: self.workers,
            memory: self.memory.saturating_mul(1 << 20),
            out: folder.to_path_buf(),
            fleet: Some(Fleet { server: server.clone(), campaign: Some(name.to_string()) }),
            cache: Caching::from(&self.compiled),
            ..Config { job: Job::Explore(settings), ..Config::explore() }
        };
        let session = Session::of_module(name, wasm).config(config).budget(turn.clone());
        let (is_done, is_shrinking) = (AtomicBool::new(false), AtomicBool::new(false));
        let since = Instant::now();
        let summary = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    if budget.is_over() {
                        turn.interrupt();
                        return;
                    }
                    if since.elapsed() >= self.turn && !is_shrinking.load(Ordering::Relaxed) {
                        turn.limit(Duration::ZERO);
                        return;
                    }
                    std::thread::sleep(POLL);
                }
            });
            let summary = session.run(&mut Quiet { output, is_shrinking: &is_shrinking });
            is_done.store(true, Ordering::Relaxed);
            summary
        })?;
        if let JobResult::Explored(explored) = &summary.result {
            let Progress { runs, edges, .. } = explored.progress;
            let text = format!("{name} for a turn: {}, {} edges", counted(runs, "run"), edges);
            output.console.status("Served", &text);
        }
        Ok(())
    }
}

/// Waits, but no longer than the budget lasts.
fn pause(budget: &Budget, time: Duration) {
    let since = Instant::now();
    while since.elapsed() < time && !budget.is_over() {
        std::thread::sleep(POLL);
    }
}

/// Tells on stderr what is done, and what fails; findings are told where the campaign was begun.
struct Quiet<'o> {
    output: &'o mut Output,
    is_shrinking: &'o AtomicBool,
}

impl Observer for Quiet<'_> {
    fn on(&mut self, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Found { .. } => self.is_shrinking.store(true, Ordering::Relaxed),
            Event::Finding(_) | Event::Flaky { .. } => self.is_shrinking.store(false, Ordering::Relaxed),
            _ => {}
        }
        match event {
            Event::Finding(finding) if !finding.was_known && finding.is_minimal => {
                self.output.console.status("Shrunk", &finding.failure.to_string());
                Ok(())
            }
            Event::Finding(_) | Event::Saved(_) | Event::End(_) => Ok(()),
            event => self.output.console.on(event),
        }
    }
}
