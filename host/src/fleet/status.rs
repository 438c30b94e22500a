//! How far a campaign is that a fleet shares.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::coverage::{self, Coverage};
use super::hub::{Held, Hub};
use super::shared::{ALIVE, FindingValue, Shared, WorkerLine, whole};
use crate::file::Hex;
use crate::search::Tally;
use crate::store::pack::unpacked;

/// How far a campaign is that a fleet shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FleetStatus {
    pub campaign: String,
    pub target: String,
    pub module: Hex,
    /// What all workers counted that ever were.
    pub runs: u64,
    pub steps: u64,
    /// A second, of those that live.
    pub runs_a_second: f64,
    pub steps_a_second: f64,
    /// Seen by anybody.
    pub edges: u64,
    pub checkpoints: u64,
    pub findings: Vec<FleetFinding>,
    pub workers: Vec<FleetWorker>,
    pub held: Held,
    /// Of a check: how many rounds were kept, and whether it is complete.
    pub check: Option<(u64, bool)>,
}

/// A finding of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FleetFinding {
    pub id: String,
    /// What went wrong, in a line.
    pub failure: String,
    /// `found`, `shrinking` or `shrunk`.
    pub state: String,
}

/// A worker of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FleetWorker {
    pub name: String,
    /// Seconds since it said something.
    pub silent: u64,
    /// It has said something lately.
    pub is_alive: bool,
    #[serde(flatten)]
    pub line: WorkerLine,
}

impl FleetStatus {
    /// The status of a campaign at a hub; `None` where it has not begun.
    ///
    /// # Errors
    /// The hub cannot be reached.
    pub fn of(hub: std::sync::Arc<dyn Hub>) -> Result<Option<FleetStatus>> {
        let Some(header) = Shared::new(hub.clone(), 0).header()? else { return Ok(None) };
        let mut coverage = Coverage::default();
        let (mut workers, mut findings) = (Vec::new(), Vec::new());
        let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
        for (key, value) in hub.changes(&[coverage::PREFIX, "f", "t", "w"], 0, u64::MAX)?.values {
            match key.split_once('.') {
                Some((coverage::PREFIX, _)) => drop(coverage.read(&key, &value)),
                Some(("w", name)) => {
                    let line = serde_json::from_slice(&value.bytes).unwrap_or_default();
                    let (silent, is_alive) = (value.age, value.age < ALIVE);
                    workers.push(FleetWorker { name: name.to_string(), silent, is_alive, line });
                }
                Some(("t", name)) => {
                    let tally = unpacked(&value.bytes).and_then(|text| Ok(serde_json::from_slice(&text)?));
                    tallies.extend(tally.ok().map(|tally| (name.to_string(), tally)));
                }
                Some(("f", id)) => {
                    let found = whole(&*hub, &key, &value.bytes).and_then(|text| finding_of(id, &text));
                    findings.extend(found.ok());
                }
                _ => {}
            }
        }
        let alive = || workers.iter().filter(|worker| worker.is_alive);
        Ok(Some(FleetStatus {
            campaign: hub.name(),
            target: header.target,
            module: header.module,
            runs: tallies.values().fold(0, |sum, tally| sum.saturating_add(tally.runs)),
            steps: tallies.values().fold(0, |sum, tally| sum.saturating_add(tally.steps)),
            runs_a_second: alive().fold(0.0, |sum, worker| sum + worker.line.runs_a_second),
            steps_a_second: alive().fold(0.0, |sum, worker| sum + worker.line.steps_a_second),
            edges: coverage.edges(),
            checkpoints: hub.count("c")?,
            findings,
            held: hub.held()?,
            check: match header.settings.get("check") {
                Some(_) => Some((hub.count("n")?, hub.get("v.erdict")?.is_some())),
                None => None,
            },
            workers,
        }))
    }
}

fn finding_of(id: &str, text: &[u8]) -> Result<FleetFinding> {
    let found: FindingValue = serde_json::from_slice(text)?;
    let failure =
        serde_json::from_value(found.finding["failure"].clone()).context("a finding says how it failed");
    let failure: crate::outcome::Failure = failure?;
    let state = match (found.trace, found.shrinks) {
        (Some(_), _) => "shrunk",
        (None, Some(_)) => "shrinking",
        (None, None) => "found",
    };
    Ok(FleetFinding { id: id.to_string(), failure: failure.to_string(), state: state.to_string() })
}
