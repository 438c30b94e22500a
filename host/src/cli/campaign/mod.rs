//! `spelunk status`, `merge`, `minimize`, `coverage`, `export`, `import` and `gc`.

mod as_test;
mod coverage;
mod exported;
mod gc;
mod status;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;
use spelunk::budget::Budget;
use spelunk::campaign::{Campaign, ensure_alike};
use spelunk::disk;
use spelunk::file::{Shrinking, TraceFile};
use spelunk::machine::{Machine, Snapshot};
use spelunk::outcome::Failure;
use spelunk::report::counted;
use spelunk::search::History;
use spelunk::search::{Knowledge, cover, edges_of};
use spelunk::session::{Place, write_input, write_trace};
use spelunk::store::FILE;
use spelunk::text;
use spelunk::trace::Trace;

use super::{Output, PASSED};

pub(super) use coverage::Coverage;
pub(super) use exported::{Export, Import};
pub(super) use gc::Gc;
pub(super) use status::StatusOf;

#[derive(Args)]
pub(super) struct One {
    /// The folder of a campaign, or the target, where its campaign is below `.spelunk`.
    pub(super) campaign: PathBuf,
}

#[derive(Args)]
pub(super) struct Merge {
    /// The campaign that takes in what the other knows.
    campaign: PathBuf,
    /// The other, which stays as it is.
    other: PathBuf,
}

/// An open campaign, and all that it knows.
pub(super) struct Opened {
    pub(super) campaign: Campaign,
    pub(super) machine: Machine,
    pub(super) known: Knowledge<Snapshot>,
}

impl Opened {
    pub(super) fn open(path: &Path, budget: &Budget) -> Result<Opened> {
        let folder = folder_of(path)?;
        let campaign = Campaign::open(&folder)?;
        let mut campaign =
            campaign.with_context(|| format!("the campaign in `{}` has not begun", folder.display()))?;
        let machine = campaign.machine(budget)?;
        let known = campaign.load(machine.program())?;
        Ok(Opened { campaign, machine, known })
    }

    fn save(&mut self) -> Result<()> {
        self.campaign.save(&self.known, self.machine.program())
    }
}

/// The folder of the campaign that the user names.
fn folder_of(path: &Path) -> Result<PathBuf> {
    // A folder that is not there is not taken for a target of its name, since another campaign would be.
    let is_target = path.exists() || path.components().count() == 1;
    let of_target = is_target.then(|| Place::of(path, Path::new(disk::FOLDER)).folder().to_path_buf());
    let mut folders = std::iter::once(path.to_path_buf()).chain(of_target);
    let found = folders.find(|folder| folder.join(FILE).exists());
    found.with_context(|| {
        let others = Place::beside_others(path, Path::new(disk::FOLDER));
        let hint = match others.first().filter(|_| is_target) {
            Some(other) => format!("one of it and another version is in `{}`", other.display()),
            None => "`spelunk explore` begins one".to_string(),
        };
        format!("there is no campaign in `{}`: {hint}", path.display())
    })
}

impl One {
    pub(super) fn minimize(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let mut opened = Opened::open(&self.campaign, budget)?;
        let before = opened.known.checkpoints.len();
        let mut sets = Vec::new();
        for checkpoint in opened.known.checkpoints.iter() {
            sets.push(edges_of(&mut opened.machine, &trace_of(&checkpoint.history)));
            // A step that was stopped went through fewer.
            ensure!(!budget.is_over(), "minimizing was stopped; all checkpoints are kept");
        }
        let edges = sets.iter().flatten().collect::<std::collections::BTreeSet<_>>().len();
        let kept = cover(&sets);
        let ids: Vec<u64> = kept.iter().map(|index| opened.known.checkpoints.get(*index).id).collect();
        opened.known.checkpoints.retain(|checkpoint| ids.contains(&checkpoint.id));
        opened.save()?;
        if let Err(error) = opened.campaign.collect_garbage() {
            output
                .console
                .warning(&format!("the space is not given back, which `spelunk gc` does: {error:#}"));
        }
        output.report.event("minimize", json!({ "before": before, "kept": ids, "edges": edges }))?;
        output.report.text(&format!(
            "{} of {before} kept, whose steps go through all of the {} that they all went through",
            counted(ids.len() as u64, "checkpoint"),
            counted(edges as u64, "edge")
        ))?;
        Ok(PASSED)
    }
}

/// A path as a part of a line.
fn shown(path: &Path) -> String {
    text::line(&path.display().to_string()).into_owned()
}

impl Merge {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let (into, from) = (folder_of(&self.campaign)?, folder_of(&self.other)?);
        let is_one = into.canonicalize().ok() == from.canonicalize().ok();
        ensure!(!is_one, "`{}` and `{}` are one campaign", self.campaign.display(), self.other.display());
        let mut opened = Opened::open(&into, budget)?;
        let other = Campaign::open(&from)?;
        let mut other =
            other.with_context(|| format!("the campaign in `{}` has not begun", from.display()))?;
        ensure_alike(&opened.campaign, &other)?;
        let before = opened.known.progress();
        let names = (opened.campaign.name(), other.name());
        let other = other.load(opened.machine.program())?;
        opened.known.merge(&other, names);
        opened.save()?;
        for finding in &other.findings {
            let name = format!("{}.json", finding.failure.id());
            let (from, to) = (from.join("findings").join(&name), into.join("findings").join(&name));
            keep_trace(&opened.machine, (&finding.trace, &finding.failure), &from, &to)?;
        }
        let after = opened.known.progress();
        output.report.event(
            "merge",
            json!({
                "runs": after.runs, "edges": after.edges, "new_edges": after.edges - before.edges,
                "checkpoints": opened.known.checkpoints.len(), "findings": after.findings,
                "new_findings": after.findings - before.findings,
            }),
        )?;
        output.report.text(&format!(
            "{} now, {} new; {} kept; {}, {} new",
            counted(after.edges.into(), "edge"),
            after.edges - before.edges,
            counted(opened.known.checkpoints.len() as u64, "checkpoint"),
            counted(after.findings as u64, "finding"),
            after.findings - before.findings
        ))?;
        Ok(PASSED)
    }
}

/// Keeps a finding's trace as a file: a shrunk one where there is one.
fn keep_trace(machine: &Machine, (trace, failure): (&Trace, &Failure), from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        return Ok(());
    }
    let folder = to.parent().context("a trace lies in a folder")?;
    disk::make_folder(folder.parent().unwrap_or(folder), folder)?;
    match TraceFile::read(from) {
        Ok(file) => {
            file.write(to)?;
            // One of another build may not fit; its trace is kept all the same.
            file.trace(machine).map_or(Ok(()), |trace| write_input(machine, &trace, to))
        }
        Err(_) => write_trace(machine, trace, (Some(failure), Some(Shrinking::Pending)), to),
    }
}

fn trace_of(history: &Arc<History>) -> Trace {
    let mut trace = Trace::default();
    history.flatten(&mut trace);
    trace
}

/// `1.5 MiB`
pub(super) fn size(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64)
}
