//! `spelunk status`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use spelunk::budget::Budget;
use spelunk::report::{counted, discovery_text, rules_text};
use spelunk::session::Status;
use spelunk::store::Embedded;
use spelunk::text;

use super::{Opened, folder_of, shown, size};
use crate::cli::fleet::{self, FleetArgs};
use crate::cli::{INTERRUPTED, Output, PASSED};

/// It is looked so often whether something changed.
const EVERY: Duration = Duration::from_secs(1);
/// And so often whether it is time to stop.
const POLL: Duration = Duration::from_millis(50);

#[derive(Args)]
pub(in crate::cli) struct StatusOf {
    /// The folder of a campaign, or the target, where its campaign is below `.spelunk`. Without, one at a server.
    #[arg(required_unless_present_any = ["nats", "nats_context"])]
    campaign: Option<PathBuf>,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Show it each second while a process explores it, and at the end; without a terminal, a line where something changed.
    #[arg(long)]
    watch: bool,
}

impl StatusOf {
    pub(in crate::cli) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let Some(path) = &self.campaign else {
            return fleet::status(&self.fleet, output, budget);
        };
        let folder = folder_of(path)?;
        if self.watch && !watch(&folder, output, budget)? {
            return Ok(INTERRUPTED);
        }
        let status = match Opened::open(path, budget) {
            Ok(Opened { campaign, machine, known }) => Status::of(&campaign, &known, machine.program())?,
            // Another process has it open, and says how far it is.
            Err(error) => Status::running(&folder).map_err(|_| error)?,
        }
        .with_shrunk();
        output.report.event("status", &status)?;
        match self.watch {
            true => output.report.redraw(&status_text(&status), None)?,
            false => output.report.text(&status_text(&status))?,
        }
        Ok(PASSED)
    }
}

/// Shows how far a campaign is while another process has it open; whether that ended before the user asked to stop.
fn watch(folder: &Path, output: &mut Output, budget: &Budget) -> Result<bool> {
    let mut last = None;
    let mut is_waiting = false;
    while Embedded::is_open_elsewhere(folder) {
        match Status::running(folder) {
            Ok(status) if last.as_ref() != Some(&status) => {
                output.report.event("status", &status)?;
                output.report.redraw(&status_text(&status), Some(&status_line(&status)))?;
                last = Some(status);
            }
            Ok(_) => {}
            // It begins, or ends.
            Err(_) if last.is_none() && !is_waiting => {
                is_waiting = true;
                output.console.status("Waiting", "until the process that has the campaign open saves it");
            }
            Err(_) => {}
        }
        let since = Instant::now();
        while since.elapsed() < EVERY {
            if budget.is_over() {
                return Ok(false);
            }
            std::thread::sleep(POLL);
        }
    }
    Ok(!budget.is_over())
}

/// `runs 100  steps 2548  edges 1/1  checkpoints 0  findings 0`
fn status_line(status: &Status) -> String {
    let Status { runs, steps, edges, edges_hit, checkpoints, findings, .. } = status;
    format!(
        "runs {runs}  steps {steps}  edges {edges_hit}/{edges}  checkpoints {}  findings {}",
        checkpoints.saved,
        findings.len()
    )
}

fn status_text(status: &Status) -> String {
    let Status { runs, rejected, steps, edges, edges_hit, checkpoints, .. } = status;
    let mut text = format!(
        "{} of {}, module {}, seed {}\n{} ({rejected} rejected) and {}; {edges_hit} of {}; {} kept of {}, {} with \
         their state; {} on disk",
        shown(&status.folder),
        text::line(&status.target),
        String::from(status.module),
        status.settings.seed,
        counted(*runs, "run"),
        counted(*steps, "step"),
        counted(*edges as u64, "edge"),
        counted(checkpoints.kept as u64, "checkpoint"),
        checkpoints.saved,
        checkpoints.states,
        size(status.bytes),
    );
    if let Some(discovery) = status.discovery.filter(|_| (*edges_hit as usize) < *edges) {
        text += &format!("\n{}", discovery_text(discovery));
    }
    if let Some(process) = status.process {
        text += &format!("\nprocess {process} explores it now; this is what it saved last");
    }
    for found in &status.findings {
        let when = match found.run <= *runs {
            true => format!("in run {}", found.run),
            false => "in steps that were kept or given, before a run".to_string(),
        };
        let failure = found.failure.to_string();
        let (first, more) = failure.split_once('\n').map_or((&*failure, ""), |(first, _)| (first, " …"));
        text += &format!("\nfound {when}: {first}{more}  {}", shown(&found.trace));
    }
    for path in &status.left {
        text += &format!(
            "\nsaved, and not found by these runs: {} (`spelunk replay` says whether it still fails)",
            shown(path)
        );
    }
    for property in &status.unmet {
        text += &format!("\nnot seen in these runs: {} {}", property.kind, text::line(&property.name));
    }
    for symptom in &status.health {
        text += &format!("\nwarning: {}", symptom.text);
    }
    for (path, bytes) in &status.backups {
        text += &format!("\nbackup: {}, {} (`spelunk gc --backups` removes it)", shown(path), size(*bytes));
    }
    if !status.rules.is_empty() {
        text += &rules_text(&status.rules);
    }
    text
}
