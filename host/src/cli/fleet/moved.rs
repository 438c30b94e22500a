//! `spelunk push` and `spelunk pull`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::json;
use spelunk::budget::Budget;
use spelunk::campaign::{Campaign, Settings};
use spelunk::file::{Shrinking, TraceFile};
use spelunk::fleet::{Nats, Shared, ensure_name, name_of};
use spelunk::machine::{Machine, Snapshot};
use spelunk::report::counted;
use spelunk::search::{Knowledge, Progress};
use spelunk::session::{Config, Place, write_trace};
use spelunk::store::Store as _;

use super::FleetArgs;
use crate::cli::campaign::{One, Opened};
use crate::cli::{Output, PASSED};

/// Have a fleet take in what a campaign on disk knows.
#[derive(Args)]
pub(in crate::cli) struct Push {
    #[command(flatten)]
    one: One,
    #[command(flatten)]
    fleet: FleetArgs,
}

/// Have a campaign on disk take in what a fleet knows.
#[derive(Args)]
pub(in crate::cli) struct Pull {
    /// The folder of the campaign, which is begun where there is none.
    folder: PathBuf,
    #[command(flatten)]
    fleet: FleetArgs,
}

impl Push {
    pub(in crate::cli) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let server = self.fleet.server().context("say where the fleet meets: --nats, or --nats-context")?;
        let opened = Opened::open(&self.one.campaign, budget)?;
        let (campaign, program) = (&opened.campaign, opened.machine.program());
        let name = self.fleet.campaign().map_or_else(|| name_of(campaign.target()), str::to_string);
        ensure_name(&name)?;
        let nats = Nats::connect(&server, budget)?;
        let hub = nats.open_or_make(&name, &server)?;
        // The same for each time that it is pushed, so that nothing is counted twice.
        let worker = campaign.name() as u64;
        let to = (campaign.folder(), campaign.target());
        let settings = campaign.settings().clone();
        let shared = Shared::new(Arc::new(hub), worker);
        let mut fleet = Campaign::join(shared, to, &campaign.module()?, settings)?;
        fleet.news_all(program)?;
        for finding in &opened.known.findings {
            let path = Place::at(campaign.folder()).saved(&finding.failure);
            if let Some(file) = TraceFile::read(&path).ok().filter(TraceFile::is_shrunk) {
                fleet.settle(&finding.failure, &file);
            }
        }
        fleet.save(&opened.known, program)?;
        fleet.leave()?;
        told(output, "push", &name, &opened.known)
    }
}

impl Pull {
    pub(in crate::cli) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
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
        let mut fleet = Campaign::join(shared, (&self.folder, &header.target), &wasm, settings)?;
        let theirs = fleet.load(&program)?;
        // What they counted is counted by who counted it, below.
        let name_here = campaign.name();
        known.merge(&theirs, (name_here, name_here));
        let others = fleet.others()?;
        // What this one pushed is its own, unless it was begun by this and counted nothing itself.
        let own = if known.own_tally().runs > 0 { u128::from(campaign.name() as u64) } else { 0 };
        known.count_others(others.into_iter(), own);
        campaign.save(&known, &program)?;
        self.keep_traces(&machine, &theirs, &fleet)?;
        told(output, "pull", name, &known)
    }

    /// Keeps the traces of findings, shrunk where somebody shrank them.
    fn keep_traces(&self, machine: &Machine, theirs: &Knowledge<Snapshot>, fleet: &Campaign) -> Result<()> {
        let place = Place::at(&self.folder);
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
                    write_trace(machine, &finding.trace, how, &path)?;
                }
            }
        }
        Ok(())
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
