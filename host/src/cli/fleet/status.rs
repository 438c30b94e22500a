//! `spelunk status --nats` and `spelunk gc --nats`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use spelunk::budget::Budget;
use spelunk::fleet::{FleetStatus, FleetWorker, Nats, Shared};
use spelunk::report::counted;
use spelunk::store::Store as _;
use spelunk::text;

use super::FleetArgs;
use crate::cli::campaign::size;
use crate::cli::{Output, PASSED};

/// What a server holds: all campaigns, or the one that is named.
pub(in crate::cli) fn status(fleet: &FleetArgs, output: &mut Output, budget: &Budget) -> Result<u8> {
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
    let is_one = fleet.campaign().is_some();
    for name in names {
        let status = match status_of(&nats, &name) {
            // One that is damaged says nothing of the others.
            Err(error) if !is_one && !budget.is_over() => {
                let removes = "`spelunk gc --remove`, with --nats and its --campaign, removes it";
                output.console.warning(&format!("{}: {error:#}; {removes}", text::line(&name)));
                continue;
            }
            status => status?,
        };
        let Some(status) = status else {
            output.report.text(&format!("{name} has not begun"))?;
            continue;
        };
        output.report.event("fleet", &status)?;
        output.report.text(&status_text(&status))?;
    }
    Ok(PASSED)
}

fn status_of(nats: &Arc<Nats>, name: &str) -> Result<Option<FleetStatus>> {
    let hub = nats.open(name)?.with_context(|| format!("{} has no campaign {name}", nats.addresses()))?;
    FleetStatus::of(Arc::new(hub))
}

fn check_text(status: &FleetStatus, rounds: u64, state: &str) -> String {
    let alive = status.workers.iter().filter(|worker| worker.is_alive).count();
    format!(
        "{}: a check of {}, module {}\n{} at the server; {state}; {alive} {} alive",
        text::line(&status.campaign),
        text::line(&status.target),
        String::from(status.module),
        counted(rounds, "round"),
        if alive == 1 { "process" } else { "processes" },
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
    status.workers.iter().for_each(|worker| text += &worker_text(worker));
    for finding in &status.findings {
        text += &format!("\n{}: {}", finding.state, text::line(&finding.failure));
    }
    text
}

/// Drops what nothing of a fleet's campaign needs, or all of it.
pub(in crate::cli) fn collect(
    fleet: &FleetArgs,
    removes: bool,
    output: &mut Output,
    budget: &Budget,
) -> Result<u8> {
    let server = fleet.server().context("say where the fleet meets: --nats, or --nats-context")?;
    let name =
        fleet.campaign().context("say which campaign: --campaign; `spelunk status --nats` lists them")?;
    let nats = Nats::connect(&server, budget)?;
    let has_none = || format!("{} has no campaign {name}", nats.addresses());
    if removes {
        // What is damaged cannot be opened.
        ensure!(nats.remove(name)?, has_none());
        output.report.text(&format!("{name} is removed from {}", nats.addresses()))?;
        return Ok(PASSED);
    }
    let hub = nats.open(name)?.with_context(has_none)?;
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

fn worker_text(worker: &FleetWorker) -> String {
    let line = &worker.line;
    let state = match worker.is_alive {
        true => format!("{:.0} runs a second", line.runs_a_second),
        false => format!("lost {} ago", humantime::format_duration(Duration::from_secs(worker.silent))),
    };
    let mut text = format!(
        "\n  {} on {}, process {}: {state}, {}, {} behind, {} sent, {} received",
        text::line(&worker.name),
        text::line(&line.host),
        line.process,
        counted(line.edges, "edge"),
        counted(line.lag, "value"),
        size(line.sent),
        size(line.received)
    );
    if line.unreadable > 0 {
        text += &format!(", {} that cannot be read", counted(line.unreadable, "value"));
    }
    text
}
