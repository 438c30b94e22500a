//! `spelunk worker`, `push` and `pull`, and the flags that say where a fleet meets.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::json;
use spelunk::budget::{Budget, Over};
use spelunk::campaign::{Campaign, Settings};
use spelunk::file::{Shrinking, TraceFile};
use spelunk::fleet::{FleetStatus, Nats, Server, Shared, ensure_name, name_of};
use spelunk::machine::Snapshot;
use spelunk::report::counted;
use spelunk::search::{Knowledge, Progress};
use spelunk::session::{
    Caching, Config, Event, Fleet, Job, JobResult, Observer, Place, Session, write_trace,
};
use spelunk::store::{Header, Store as _};
use spelunk::text;

use super::campaign::{One, Opened, size};
use super::{Compiled, INTERRUPTED, Output, PASSED};

/// Where a fleet meets.
#[derive(Args)]
pub(super) struct FleetArgs {
    /// The NATS server where machines that share a campaign meet: an address such as nats://host:4222, or several with commas between.
    #[arg(long, value_name = "URL", help_heading = "Fleet")]
    nats: Option<String>,
    /// A context of the `nats` command that says where the server is and what lets one in: its name, or its file.
    #[arg(long, value_name = "NAME", help_heading = "Fleet")]
    nats_context: Option<String>,
    /// A file of credentials for the server.
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    nats_creds: Option<PathBuf>,
    /// A file of certificates of those who signed that of the server.
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    nats_ca: Option<PathBuf>,
    /// Copies that a cluster keeps of a campaign that begins.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5), help_heading = "Fleet")]
    nats_replicas: u8,
    /// Room at the server for the states of a campaign that begins; the oldest go first. [default: any]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Fleet")]
    nats_states: Option<u64>,
    /// The name of the campaign at the server. [default: one that the target's gives]
    #[arg(id = "shared", long = "campaign", value_name = "NAME", help_heading = "Fleet")]
    campaign: Option<String>,
}

impl FleetArgs {
    /// The server, where one is named.
    pub(super) fn server(&self) -> Option<Server> {
        let server = Server {
            url: self.nats.clone(),
            creds: self.nats_creds.clone(),
            context: self.nats_context.clone(),
            authority: self.nats_ca.clone(),
            replicas: self.nats_replicas.into(),
            parts_max: self.nats_states.map(|mib| mib.saturating_mul(1 << 20)),
        };
        server.is_named().then_some(server)
    }

    /// The campaign that was named.
    pub(super) fn campaign(&self) -> Option<&str> {
        self.campaign.as_deref()
    }

    /// The fleet to join, where a server is named. `is_own` says that what is done is to be begun anew, or kept nowhere.
    pub(super) fn fleet(&self, is_own: bool) -> Result<Option<Fleet>> {
        let Some(server) = self.server() else {
            ensure!(self.campaign.is_none(), "--campaign names one at a server: say which with --nats");
            return Ok(None);
        };
        ensure!(
            !is_own,
            "what a fleet shares is no file: leave out --fresh and --in-memory, and give another --campaign to begin anew"
        );
        Ok(Some(Fleet { server, campaign: self.campaign.clone() }))
    }
}

/// Serve campaigns that a fleet shares.
#[derive(Args)]
pub(super) struct Worker {
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

impl Worker {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
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
        let turn = Budget::of(self.turn);
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
        let is_done = AtomicBool::new(false);
        let summary = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    if budget.is_over() {
                        turn.interrupt();
                        return;
                    }
                    std::thread::sleep(POLL);
                }
            });
            let summary = session.run(&mut Quiet(output));
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
struct Quiet<'o>(&'o mut Output);

impl Observer for Quiet<'_> {
    fn on(&mut self, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Finding(finding) if finding.was_known => Ok(()),
            Event::Finding(finding) => {
                self.0.console.status("Shrunk", &finding.failure.to_string());
                Ok(())
            }
            Event::Saved(_) | Event::End(_) => Ok(()),
            event => self.0.console.on(event),
        }
    }
}

/// Have a fleet take in what a campaign on disk knows.
#[derive(Args)]
pub(super) struct Push {
    #[command(flatten)]
    one: One,
    #[command(flatten)]
    fleet: FleetArgs,
}

/// Have a campaign on disk take in what a fleet knows.
#[derive(Args)]
pub(super) struct Pull {
    /// The folder of the campaign, which is begun where there is none.
    folder: PathBuf,
    #[command(flatten)]
    fleet: FleetArgs,
}

impl Push {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let server = self.fleet.server().context("say where the fleet meets: --nats, or --nats-context")?;
        let opened = Opened::open(&self.one.campaign, budget)?;
        let (campaign, program) = (&opened.campaign, opened.machine.program());
        let name = self.fleet.campaign().map_or_else(|| name_of(campaign.target()), str::to_string);
        ensure_name(&name)?;
        let nats = Nats::connect(&server, budget)?;
        let hub = match nats.open(&name)? {
            Some(hub) => hub,
            None => nats.make(&name, &server)?,
        };
        // The same for each time that it is pushed, so that nothing is counted twice.
        let worker = campaign.name() as u64;
        let to = (campaign.folder(), campaign.target());
        let settings = campaign.settings().clone();
        let shared = Shared::new(Arc::new(hub), worker);
        let mut fleet = Campaign::join(shared, worker, to, &campaign.module()?, settings)?;
        fleet.news_all(program)?;
        for finding in &opened.known.findings {
            let path = Place::at(campaign.folder()).trace(&finding.failure);
            let file = TraceFile::read(&path).ok().filter(|file| file.shrinking != Some(Shrinking::Pending));
            if let Some(text) = file.and_then(|_| std::fs::read_to_string(&path).ok()) {
                fleet.settle(&finding.failure, text);
            }
        }
        fleet.save(&opened.known, program)?;
        fleet.leave()?;
        told(output, "push", &name, &opened.known)
    }
}

impl Pull {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let server = self.fleet.server().context("say where the fleet meets: --nats, or --nats-context")?;
        let name = self
            .fleet
            .campaign()
            .context("say which campaign: --campaign; `spelunk status --nats` lists them")?;
        ensure_name(name)?;
        let nats = Nats::connect(&server, budget)?;
        let hub = nats.open(name)?.with_context(|| format!("{} has no campaign {name}", nats.addresses()))?;
        let mut shared = Shared::new(Arc::new(hub), 0);
        let header = shared.header()?.with_context(|| format!("the campaign {name} has not begun"))?;
        ensure!(
            header.settings.get("check").is_none(),
            "{name} is a check: `spelunk check --nats` says its verdict"
        );
        let wasm = shared.module()?;
        let settings: Settings =
            serde_json::from_value(header.settings).context("its settings are of another version")?;
        let place = Place::at(&self.folder);
        let mut campaign = match Campaign::open(&self.folder)? {
            Some(campaign) => campaign,
            None => {
                place.make()?;
                Campaign::begin(&self.folder, &header.target, &wasm, settings.clone())?
            }
        };
        ensure!(
            campaign.module_hash() == header.module.0,
            "the campaign in `{}` is of another module, or another build of it",
            self.folder.display()
        );
        let machine = campaign.machine(budget)?;
        let program = machine.program().clone();
        let mut known = campaign.load(&program)?;
        shared.fetch_states();
        shared.states().are_of(&program, Config::explore().memory);
        let mut fleet = Campaign::join(shared, 0, (&self.folder, &header.target), &wasm, settings)?;
        let theirs = fleet.load(&program)?;
        known.take_news(&theirs);
        let (others, _) = fleet.others()?;
        // What this one pushed is its own, unless it was begun by this and counted nothing itself.
        let own = if known.own_tally().runs > 0 { u128::from(campaign.name() as u64) } else { 0 };
        known.count_others(others.into_iter(), own);
        campaign.save(&known, &program)?;
        for finding in &theirs.findings {
            let path = place.trace(&finding.failure);
            if path.exists() {
                continue;
            }
            let shrunk = fleet.trace_of(&finding.failure)?;
            match shrunk.and_then(|text| TraceFile::parse(text.as_bytes()).ok()) {
                Some(file)
                    if file.failure.as_ref().is_some_and(|failure| failure.is_same(&finding.failure)) =>
                {
                    file.write(&path)?;
                }
                _ => {
                    let how = (Some(&finding.failure), Some(Shrinking::Pending));
                    write_trace(&machine, &finding.trace, how, &path)?;
                }
            }
        }
        told(output, "pull", name, &known)
    }
}

/// Says what both sides know now.
fn told(output: &mut Output, verb: &str, name: &str, known: &Knowledge<Snapshot>) -> Result<u8> {
    let Progress { runs, edges, findings, .. } = known.progress();
    let checkpoints = known.checkpoints.len();
    let event = json!({
        "campaign": name, "runs": runs, "edges": edges, "checkpoints": checkpoints, "findings": findings,
    });
    output.report.event(verb, event)?;
    output.report.text(&format!(
        "{name}: {}, {}, {}, {}",
        counted(runs, "run"),
        counted(edges.into(), "edge"),
        counted(checkpoints as u64, "checkpoint"),
        counted(findings as u64, "finding")
    ))?;
    Ok(PASSED)
}

/// What a server holds: all campaigns, or the one that is named.
pub(super) fn status(fleet: &FleetArgs, output: &mut Output, budget: &Budget) -> Result<u8> {
    let server = fleet.server().context("say where the fleet meets: --nats, or --nats-context")?;
    let nats = Nats::connect(&server, budget)?;
    let names = match fleet.campaign() {
        Some(name) => vec![name.to_string()],
        None => nats.campaigns()?,
    };
    if names.is_empty() {
        output
            .report
            .text(&format!("{} has no campaign: `spelunk explore --nats` begins one", nats.addresses()))?;
    }
    for name in names {
        let hub =
            nats.open(&name)?.with_context(|| format!("{} has no campaign {name}", nats.addresses()))?;
        let status = FleetStatus::of(Arc::new(hub))?;
        let Some(status) = status else {
            output.report.text(&format!("{name} has not begun"))?;
            continue;
        };
        output.report.event("fleet", &status)?;
        output.report.text(&status_text(&status))?;
    }
    Ok(PASSED)
}

fn check_text(status: &FleetStatus, rounds: u64, state: &str) -> String {
    let alive = status.workers.iter().filter(|worker| worker.is_alive).count();
    format!(
        "{}: a check of {}, module {}\n{} at the server; {state}; {} alive",
        text::line(&status.campaign),
        text::line(&status.target),
        String::from(status.module),
        counted(rounds, "round"),
        counted(alive as u64, "process"),
    )
}

fn status_text(status: &FleetStatus) -> String {
    let held = &status.held;
    if let Some((rounds, is_complete)) = status.check {
        let state = if is_complete {
            "it is complete, and `spelunk check` says the verdict"
        } else {
            "it is not complete"
        };
        return check_text(status, rounds, state);
    }
    let alive = status.workers.iter().filter(|worker| worker.is_alive).count();
    let mut text = format!(
        "{} of {}, module {}\n{} and {} by all workers; {} a second, {} a second; {} seen, {}\n{} at the server: \
         {} of states{}, {} of what is known, {} of the module",
        text::line(&status.campaign),
        text::line(&status.target),
        String::from(status.module),
        counted(status.runs, "run"),
        counted(status.steps, "step"),
        counted(status.runs_a_second as u64, "run"),
        counted(status.steps_a_second as u64, "step"),
        counted(status.edges, "edge"),
        counted(status.checkpoints, "checkpoint"),
        size(held.values + held.parts + held.objects),
        size(held.parts),
        match (held.parts_max, held.oldest_part) {
            (Some(max), Some(oldest)) => format!(
                " (at most {}; the oldest, of {} ago, go first)",
                size(max),
                humantime::format_duration(Duration::from_secs(oldest))
            ),
            (Some(max), None) => format!(" (at most {})", size(max)),
            (None, _) => String::new(),
        },
        size(held.values),
        size(held.objects),
    );
    text += &format!("\n{} alive, {} lost", counted(alive as u64, "worker"), status.workers.len() - alive);
    for worker in &status.workers {
        let line = &worker.line;
        let state = match worker.is_alive {
            true => format!("{:.0} runs a second", line.runs_a_second),
            false => format!("lost {} ago", humantime::format_duration(Duration::from_secs(worker.silent))),
        };
        text += &format!(
            "\n  {} on {}, process {}: {state}, {}, {} behind, {} sent, {} received",
            text::line(&worker.name),
            text::line(&line.host),
            line.process,
            counted(line.edges, "edge"),
            counted(line.lag, "value"),
            size(line.sent),
            size(line.received)
        );
    }
    for finding in &status.findings {
        text += &format!("\n{}: {}", finding.state, text::line(&finding.failure));
    }
    text
}

/// Drops what nothing of a fleet's campaign needs, or all of it.
pub(super) fn collect(fleet: &FleetArgs, removes: bool, output: &mut Output, budget: &Budget) -> Result<u8> {
    let server = fleet.server().context("say where the fleet meets: --nats, or --nats-context")?;
    let name =
        fleet.campaign().context("say which campaign: --campaign; `spelunk status --nats` lists them")?;
    let nats = Nats::connect(&server, budget)?;
    let hub = nats.open(name)?.with_context(|| format!("{} has no campaign {name}", nats.addresses()))?;
    if removes {
        nats.remove(name)?;
        output.report.text(&format!("{name} is removed from {}", nats.addresses()))?;
        return Ok(PASSED);
    }
    let mut shared = Shared::new(Arc::new(hub), 0);
    let collected = shared.collect_garbage()?;
    let lost = shared.forget_lost()?;
    let event = json!({
        "campaign": name, "before": collected.before, "after": collected.after, "parts": collected.blobs, "workers": lost,
    });
    output.report.event("gc", event)?;
    output.report.text(&format!(
        "{} before, {} now; {} of saved states and {} dropped",
        size(collected.before),
        size(collected.after),
        counted(collected.blobs, "part"),
        counted(lost, "lost worker"),
    ))?;
    Ok(PASSED)
}
