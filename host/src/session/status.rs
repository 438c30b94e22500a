//! How far a campaign is, as `spelunk status` says it: of one that is open elsewhere too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::place::Place;
use crate::campaign::{Campaign, Settings};
use crate::disk;
use crate::file::{Hex, Names, TraceFile};
use crate::machine::{Edges, Program, Snapshot};
use crate::outcome::Failure;
use crate::property::PropertyKind;
use crate::search::energy::Strategy;
use crate::search::{Discovery, Knowledge, Symptom, Vitals};
use crate::store::FILE;

/// The file that a session keeps up to date while it has the campaign open.
const RUNNING: &str = "running.json";
/// Bytes that it may have.
const RUNNING_BYTES_MAX: u64 = 64 << 20;

/// How far a campaign is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Status {
    pub folder: PathBuf,
    pub target: String,
    pub module: Hex,
    pub settings: Settings,
    pub runs: u64,
    pub rejected: u64,
    pub steps: u64,
    pub edges: usize,
    pub edges_hit: u32,
    #[serde(default)]
    pub discovery: Option<Discovery>,
    pub checkpoints: Checkpoints,
    pub findings: Vec<Found>,
    /// Traces of findings that are saved beside these: what was fixed since, say.
    #[serde(default)]
    pub left: Vec<PathBuf>,
    pub bytes: u64,
    pub unmet: Vec<Unmet>,
    /// The rules, and what calling them comes to.
    #[serde(default)]
    pub rules: Vec<CalledRule>,
    /// What is wrong with the exploration.
    #[serde(default)]
    pub health: Vec<Symptom>,
    /// The process that has the campaign open, where another one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Earlier campaigns that were backed up, and their bytes.
    #[serde(default)]
    pub backups: Vec<(PathBuf, u64)>,
}

/// How many checkpoints there are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoints {
    /// That are kept.
    pub kept: usize,
    /// That were saved, the evicted ones too.
    pub saved: u64,
    /// Of those kept, that have their state.
    pub states: usize,
}

/// A finding of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Found {
    pub id: String,
    pub failure: Failure,
    pub run: u64,
    pub trace: PathBuf,
}

/// How often a rule was called, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalledRule {
    /// Its name.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// How many of the calls found an edge.
    pub found: u64,
    /// How likely the next call finds one, where enough ended.
    pub discovery: Option<Discovery>,
}

/// A property that was not seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Unmet {
    pub kind: PropertyKind,
    pub name: String,
}

impl Status {
    /// The status of a campaign that is open here.
    ///
    /// # Errors
    /// Its file is gone.
    pub fn of(campaign: &Campaign, known: &Knowledge<Snapshot>, program: &Program) -> Result<Status> {
        let progress = known.progress();
        let place = Place::at(campaign.folder());
        let found = |failure: &Failure, run| Found {
            id: failure.id(),
            failure: failure.clone(),
            run,
            trace: place.trace(failure),
        };
        let unmet = known.tally.counts.properties.iter().filter(|property| property.is_unmet());
        let states = known.checkpoints.iter().filter(|checkpoint| checkpoint.snapshot.is_some()).count();
        Ok(Status {
            folder: campaign.folder().to_path_buf(),
            target: campaign.target().to_string(),
            module: Hex(campaign.module_hash()),
            settings: campaign.settings().clone(),
            runs: progress.runs,
            rejected: progress.rejected,
            steps: progress.steps,
            edges: program.edges().edges.len(),
            edges_hit: progress.edges,
            discovery: known.discovery(),
            checkpoints: Checkpoints { kept: known.checkpoints.len(), saved: progress.checkpoints, states },
            findings: known.findings.iter().map(|finding| found(&finding.failure, finding.run)).collect(),
            left: Vec::new(),
            bytes: campaign.bytes()?,
            unmet: unmet.map(|p| Unmet { kind: p.kind, name: p.name.clone() }).collect(),
            rules: called_rules(known, program),
            health: health(known, program, campaign.settings(), false),
            process: None,
            backups: backups(campaign.folder())?,
        })
    }

    /// With what each finding says once it is shrunk, as its trace has it, and the other traces.
    pub fn with_shrunk(mut self) -> Status {
        let place = Place::at(&self.folder);
        for found in &mut self.findings {
            found.trace = place.saved(&found.failure);
            let shrunk = TraceFile::read(&found.trace).ok().and_then(|file| file.failure);
            if let Some(shrunk) =
                shrunk.filter(|shrunk| shrunk.is_same(&found.failure) || shrunk.has_moved(&found.failure))
            {
                found.failure = shrunk;
            }
        }
        let saved = disk::files(&place.findings(), Some("json")).unwrap_or_default().into_iter();
        let found: BTreeSet<&PathBuf> = self.findings.iter().map(|found| &found.trace).collect();
        self.left = saved.filter(|path| !found.contains(path)).collect();
        self
    }

    /// The status of a campaign that another process has open, as of its last save.
    ///
    /// # Errors
    /// It has not been saved yet, or what it says cannot be read.
    pub fn running(folder: &Path) -> Result<Status> {
        let path = folder.join(RUNNING);
        let text = disk::read_at_most(&path, RUNNING_BYTES_MAX)
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("`{}` is not a status", path.display()))
    }

    /// Says to other processes how far the campaign is.
    pub(super) fn publish(campaign: &Campaign, known: &Knowledge<Snapshot>, program: &Program) {
        let published = Status::of(campaign, known, program).and_then(|status| {
            let status = Status { process: Some(std::process::id()), ..status };
            Ok(disk::write(&campaign.folder().join(RUNNING), &serde_json::to_vec(&status)?)?)
        });
        // It helps, and nothing depends on it: what matters is in the campaign.
        drop(published);
    }

    /// Takes back what was published.
    pub(super) fn withdraw(folder: &Path) {
        drop(std::fs::remove_file(folder.join(RUNNING)));
    }
}

/// What calling each rule of a program came to.
pub fn called_rules(known: &Knowledge<Snapshot>, program: &Program) -> Vec<CalledRule> {
    let size = (program.rules().len(), program.faults().len());
    let called = &known.tally.called;
    let rule = |(index, name): (usize, &str)| {
        let [calls, found] = called.of(index, 0, size).unwrap_or_default();
        CalledRule { name: name.to_string(), calls, found, discovery: called.discovery(index, size) }
    };
    program.rules().iter().map(|rule| &*rule.name).enumerate().map(rule).collect()
}

/// What is wrong with an exploration of a program under these settings, of which may be known that a failure did not happen again.
pub(super) fn health(
    known: &Knowledge<Snapshot>,
    program: &Program,
    settings: &Settings,
    is_flaky: bool,
) -> Vec<Symptom> {
    let (rules, edges) = (program.rules(), program.edges().edges.len());
    let size = (rules.len(), program.faults().len());
    let is_called = |name: &String| settings.rules.is_empty() || settings.rules.contains(name);
    let calls = |index| known.tally.called.of(index, 0, size).map_or(0, |[calls, _]| calls);
    let may_be_called = rules.iter().enumerate().filter(|(_, rule)| is_called(&rule.name));
    let is_counted = edges > 0 || program.conditions().selection.edges == Edges::Hashed;
    let vitals = Vitals {
        progress: known.progress(),
        last_new: known.last_new(),
        edges,
        is_uncounted: !is_counted && settings.strategy != Strategy::Random,
        is_function: program.is_function(),
        takes_input: program.takes_input(),
        lacks_args: program.lacks_args(),
        is_constant: known.is_constant(),
        is_flaky,
        calls: may_be_called.map(|(index, rule)| (&*rule.name, calls(index))).collect(),
    };
    vitals.symptoms()
}

/// The campaigns in `folder` that were backed up, and their bytes, in the order of their names.
///
/// # Errors
/// The folder cannot be read.
pub fn backups(folder: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let files = disk::files(folder, None);
    let files = files.with_context(|| format!("cannot read the folder `{}`", folder.display()))?;
    let is_backup = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(FILE).is_some_and(|rest| rest.starts_with(".old") || rest == ".before")
    };
    let sized =
        |path: PathBuf| Some((std::fs::metadata(&path).ok()?.len(), path)).map(|(len, path)| (path, len));
    Ok(files.into_iter().filter(is_backup).filter_map(sized).collect())
}
