//! A campaign: an exploration that is kept on disk, goes on where it stopped, and can be merged with another.

mod place;
mod settings;
mod shared;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::choice::Value;
use crate::coverage::{SHOWN, feature_of, slot_of};
use crate::file::{self, Hex, Names as _};
use crate::machine::{Cache, Edges, Machine, Program, Snapshot};
use crate::outcome::Found;
use crate::property::Counts;
use crate::search::History;
use crate::search::energy::{Checkpoint, Checkpoints};
use crate::search::{Called, Knowledge, Luck, Tally, Turn, Values, Ways};
use crate::store::{Collected, Embedded, Header, Loaded, Record, Saved, Store};
use crate::trace::Trace;

pub use settings::{Settings, ensure_alike};
pub use steps::Steps;

use steps::{FindingLine, findings, histories};

/// A campaign's folder, open.
pub struct Campaign {
    store: Box<dyn Store>,
    folder: PathBuf,
    settings: Settings,
    /// The name of the target.
    target: String,
    /// The hash of its module.
    module: u128,
    /// Edges that are in the store.
    edges: usize,
    /// The most bytes that the store may have.
    bytes_max: u64,
    /// The most states that are saved, since more did not fit.
    states_max: usize,
    /// Others save to it too.
    is_shared: bool,
}

/// What is counted, as it is stored.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Counters {
    runs: u64,
    rejected: u64,
    steps: u64,
    rules: u64,
    checkpoints: u64,
    #[serde(default)]
    ways: Ways,
    #[serde(default)]
    called: Called,
}

/// What else is known, as it is stored.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Lists {
    productive: Vec<Vec<Vec<Value>>>,
    /// The bits of the highest score of each label, by the label's hash.
    scores: Vec<(u64, u64)>,
    counts: Counts,
    /// See [`Knowledge::merged`].
    #[serde(default)]
    merged: Vec<(Hex, Tally)>,
    /// The bits of [`Knowledge::luck`].
    #[serde(default)]
    luck: Vec<u64>,
    /// The checkpoint that is the best way to each edge.
    #[serde(default)]
    champions: Vec<u64>,
    /// How many inputs get to each edge.
    #[serde(default)]
    holders: Vec<u32>,
    #[serde(default)]
    turn: Option<Turn>,
    /// Of states too it is told apart how often steps go through edges.
    #[serde(default)]
    tells_hits: bool,
}

impl Campaign {
    /// Opens the campaign in `folder`; `None` where there is none.
    ///
    /// # Errors
    /// A file that is damaged, of a newer version, open in another process, or that cannot be written.
    pub fn open(folder: &Path) -> Result<Option<Campaign>> {
        if !folder.join(crate::store::FILE).exists() {
            return Ok(None);
        }
        let opened = Embedded::open(folder)?;
        let Some(header) = opened.found else { return Ok(None) };
        let cannot = || {
            format!(
                "the settings of the campaign in `{}` cannot be read: `--fresh` begins anew",
                folder.display()
            )
        };
        let settings: Settings = serde_json::from_value(header.settings).with_context(cannot)?;
        settings.validate().with_context(cannot)?;
        Ok(Some(Campaign {
            store: Box::new(opened.store),
            folder: folder.to_path_buf(),
            settings,
            target: header.target,
            module: header.module.0,
            edges: 0,
            bytes_max: u64::MAX,
            states_max: usize::MAX,
            is_shared: false,
        }))
    }

    /// Begins a campaign in `folder`, in which there is none.
    ///
    /// # Errors
    /// A folder that cannot be written; a campaign that another process has open.
    pub fn begin(folder: &Path, target: &str, wasm: &[u8], settings: Settings) -> Result<Campaign> {
        let mut store: Box<dyn Store> = Box::new(Embedded::open(folder)?.store);
        let module = xxhash_rust::xxh3::xxh3_128(wasm);
        let header = Header {
            module: Hex(module),
            target: target.to_string(),
            settings: serde_json::to_value(&settings).context("settings are JSON")?,
        };
        store.begin(&header, wasm)?;
        let (folder, target) = (folder.to_path_buf(), target.to_string());
        Ok(Campaign {
            store,
            folder,
            settings,
            target,
            module,
            edges: 0,
            bytes_max: u64::MAX,
            states_max: usize::MAX,
            is_shared: false,
        })
    }

    /// Sets the most bytes that the store may have.
    pub fn set_bytes_max(&mut self, bytes: u64) {
        self.bytes_max = bytes;
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it was begun with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The name of the target.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The hash of the module.
    pub fn module_hash(&self) -> u128 {
        self.module
    }

    /// What names it: campaigns of one module with the same settings do the same runs.
    pub fn name(&self) -> u128 {
        let settings = serde_json::to_vec(&self.settings).unwrap_or_default();
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.module.to_le_bytes()).update(&settings);
        let mut name = [0; 16];
        hasher.finalize_xof().fill(&mut name);
        u128::from_le_bytes(name)
    }

    /// The module that it was begun with.
    ///
    /// # Errors
    /// A damaged file.
    pub fn module(&self) -> Result<Vec<u8>> {
        self.store.module()
    }

    /// A machine of the module that it was begun with, compiled within a budget.
    ///
    /// # Errors
    /// A damaged file; a module that takes longer.
    pub fn machine(&self, budget: &Budget) -> Result<Machine> {
        let program = Program::load_in(&self.module()?, self.settings.conditions(), None, budget)?;
        Machine::new(Arc::new(program))
    }

    /// As [`Campaign::machine`], of a build in which each block says that it was entered.
    ///
    /// # Errors
    /// As there.
    pub fn machine_with_blocks(&self, cache: Option<&Cache>, budget: &Budget) -> Result<Machine> {
        let mut conditions = self.settings.conditions();
        conditions.selection.edges = Edges::Blocks;
        let program = Program::load_in(&self.module()?, conditions, cache, budget)?;
        Machine::new(Arc::new(program))
    }

    /// Bytes of the file.
    ///
    /// # Errors
    /// The file is gone.
    pub fn bytes(&self) -> Result<u64> {
        self.store.bytes()
    }

    /// Drops what nothing refers to.
    ///
    /// # Errors
    /// A file that is damaged or cannot be written.
    pub fn collect_garbage(&mut self) -> Result<Collected> {
        self.store.collect_garbage()
    }

    /// All that is known, for the program that it was saved of.
    ///
    /// # Errors
    /// A damaged file; another program.
    pub fn load(&mut self, program: &Program) -> Result<Knowledge<Snapshot>> {
        let loaded = self.store.load(program)?;
        let (knowledge, edges) = knowledge(loaded, &self.settings, program).with_context(|| {
            format!(
                "the campaign in `{}` is damaged: `--fresh` begins anew, and keeps it aside",
                self.folder.display()
            )
        })?;
        self.edges = edges;
        Ok(knowledge)
    }

    /// Saves what changed since the last time: all of it, or nothing.
    ///
    /// # Errors
    /// A file that cannot be written; a store that is too small for the campaign without any saved state.
    pub fn save(&mut self, known: &Knowledge<Snapshot>, program: &Program) -> Result<()> {
        let saved = known.checkpoints.iter().filter(|checkpoint| checkpoint.snapshot.is_some());
        let mut ids: Vec<(f64, u64)> = saved.map(|checkpoint| (checkpoint.energy, checkpoint.id)).collect();
        if self.bytes_max < u64::MAX {
            ids.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        }
        // Half of the states go, those of the lowest energy and of equal ones the oldest, until the rest fits.
        loop {
            ids.truncate(self.states_max);
            self.save_states(known, program, &ids.iter().map(|(_, id)| *id).collect())?;
            if self.bytes_max == u64::MAX || self.store.bytes()? <= self.bytes_max {
                return Ok(());
            }
            self.store.collect_garbage()?;
            if self.store.bytes()? <= self.bytes_max {
                return Ok(());
            }
            ensure!(
                !ids.is_empty(),
                "the campaign in `{}` needs more than --store-max, even without saved states: it is as it was at run {}",
                self.folder.display(),
                known.tally.runs
            );
            // The next time no more are written, to be dropped again.
            self.states_max = ids.len() / 2;
        }
    }

    fn save_states(
        &mut self,
        known: &Knowledge<Snapshot>,
        program: &Program,
        kept: &BTreeSet<u64>,
    ) -> Result<()> {
        // Where several save, each says what it counted itself.
        let tally = if self.is_shared { known.own_tally() } else { known.tally.clone() };
        let Tally { runs, rejected, steps, rules, ways, called, counts } = tally;
        let checkpoints = known.checkpoints.saved();
        let counters = Counters { runs, rejected, steps, rules, checkpoints, ways, called };
        let (champions, holders) = known.checkpoints.champions().unzip();
        let lists = Lists {
            productive: known
                .productive
                .iter()
                .map(|rule| rule.iter().map(|values| values.to_vec()).collect())
                .collect(),
            scores: known.scores.iter().map(|(label, score)| (*label, score.to_bits())).collect(),
            counts,
            merged: known.merged.iter().map(|(name, tally)| (Hex(*name), tally.clone())).collect(),
            luck: known.luck.to_bits().to_vec(),
            champions,
            holders,
            turn: known.checkpoints.turn(),
            tells_hits: known.seen.tells_hits(),
        };
        let checkpoints = known.checkpoints.iter().map(|checkpoint| {
            let snapshot = checkpoint.snapshot.as_ref().filter(|_| kept.contains(&checkpoint.id));
            (record(checkpoint), snapshot)
        });
        let edges: Vec<(u64, u64)> = known.features[self.edges..]
            .iter()
            .map(|(feature, run)| stored(*feature, *run, program))
            .collect();
        let findings = known.findings.iter().map(|finding| finding_value(finding, program));
        let findings: Result<Vec<_>> = findings.collect();
        self.store.save(&Saved {
            program,
            counters: serde_json::to_value(counters)?,
            checkpoints: checkpoints.collect(),
            histories: self.new_histories(known),
            edges: &edges,
            findings: findings?,
            lists: serde_json::to_value(lists)?,
        })?;
        self.edges = known.features.len();
        Ok(())
    }

    /// The histories that lead to checkpoints and are not stored yet, in the order of their numbers.
    fn new_histories<'k>(&self, known: &'k Knowledge<Snapshot>) -> Vec<(u64, Option<u64>, &'k Trace)> {
        let mut new = BTreeMap::new();
        for checkpoint in known.checkpoints.iter() {
            let mut next = Some(&checkpoint.history);
            while let Some(history) = next
                && !self.store.has_history(history.id)
                && !new.contains_key(&history.id)
            {
                new.insert(history.id, &**history);
                next = history.parent.as_ref();
            }
        }
        let parent = |history: &History| history.parent.as_ref().map(|parent| parent.id);
        new.into_iter().map(|(id, history)| (id, parent(history), &history.steps)).collect()
    }
}

/// The id of a finding, and the finding as it is stored.
fn finding_value(found: &Found, program: &Program) -> Result<(String, serde_json::Value)> {
    let Found { failure, run, trace } = found;
    let line = FindingLine { failure: failure.clone(), run: *run, steps: file::lines_of(program, trace) };
    Ok((failure.id(), serde_json::to_value(line)?))
}

fn tally(counters: Counters, counts: Counts) -> Tally {
    let Counters { runs, rejected, steps, rules, checkpoints: _, ways, called } = counters;
    Tally { runs, rejected, steps, rules, ways, called, counts }
}

/// Bits of the number of a run in the store; those above say how often an edge was gone through.
pub(crate) const RUN_BITS: u32 = 59;

/// A feature as it is stored: the name of its edge, its bucket, and the run that showed it first.
fn stored(feature: u32, run: u64, program: &Program) -> (u64, u64) {
    if feature >= SHOWN {
        return (u64::from(feature) << 32, run);
    }
    let slot = slot_of(feature);
    let bucket = u64::from(feature - feature_of(slot));
    (name_of(slot, program), bucket << RUN_BITS | run)
}

/// The name of an edge in the store: its slot, and its stable hash.
pub(crate) fn name_of(slot: u32, program: &Program) -> u64 {
    let hash = program.edges().edges.get(slot as usize).map_or(0, |edge| edge.hash);
    u64::from(slot) << 32 | u64::from(hash)
}

fn record(checkpoint: &Checkpoint<Snapshot>) -> Record {
    Record {
        id: checkpoint.id,
        parent: checkpoint.parent,
        state: checkpoint.state,
        faults: checkpoint.faults.clone(),
        energy: checkpoint.energy,
        new_edges: checkpoint.new_edges,
        step: checkpoint.step,
        run: checkpoint.run,
        selected: checkpoint.selected,
        history: checkpoint.history.id,
        news: checkpoint.news,
        work: checkpoint.work,
    }
}

fn parsed<T: Default + for<'de> Deserialize<'de>>(value: serde_json::Value) -> Result<T> {
    if value.is_null() { Ok(T::default()) } else { Ok(serde_json::from_value(value)?) }
}

/// What was stored as an exploration has it, and how many edges there are.
fn knowledge(loaded: Loaded, settings: &Settings, program: &Program) -> Result<(Knowledge<Snapshot>, usize)> {
    let options = settings.options(program)?;
    let counters: Counters = parsed(loaded.counters)?;
    let lists: Lists = parsed(loaded.lists)?;
    let rules = program.rules().len();
    let mut known = Knowledge::new(&options, (rules, program.is_function()), program.declared());
    if lists.tells_hits {
        known.tell_hits();
    }
    for (name, run) in loaded.edges {
        let slot = (name >> 32) as u32;
        if slot >= SHOWN {
            known.saw(slot, run);
            continue;
        }
        ensure!(name_of(slot, program) == name, "an edge is not one of this module");
        known.saw(feature_of(slot) + (run >> RUN_BITS) as u32, run & ((1 << RUN_BITS) - 1));
    }
    let histories = histories(known.start().clone(), loaded.histories)?;
    let mut list = Vec::new();
    for (record, snapshot) in loaded.checkpoints {
        let history = histories.get(&record.history).context("a history is missing")?.clone();
        ensure!(record.faults.len() == program.faults().len(), "a checkpoint has other faults");
        list.push(checkpoint(record, snapshot, history));
    }
    let saved = list.last().map_or(0, |last: &Checkpoint<_>| last.id).max(counters.checkpoints);
    known.checkpoints = Checkpoints::of(&options, program.is_function(), list, saved);
    known.checkpoints.crown_again(lists.champions, lists.holders);
    for (edge, id) in loaded.first.into_iter().filter(|_| program.is_function()) {
        known.checkpoints.crown(id, [(edge, 1)]);
    }
    known.checkpoints.set_turn(lists.turn);
    if !lists.productive.is_empty() {
        ensure!(lists.productive.len() == rules, "there are other rules");
        let is_empty = lists.productive.iter().flatten().any(|values| values.is_empty());
        ensure!(!is_empty, "no choices are said to have found an edge");
        known.productive =
            lists.productive.into_iter().map(|rule| rule.into_iter().map(Arc::from).collect()).collect();
    }
    known.scores = lists.scores.into_iter().map(|(label, bits)| (label, f64::from_bits(bits))).collect();
    known.findings = findings(loaded.findings, program)?;
    known.luck = lists.luck.try_into().ok().and_then(Luck::from_bits).unwrap_or_default();
    known.merged = lists.merged.into_iter().map(|(name, tally)| (name.0, tally)).collect();
    if counters.runs > 0 {
        known.tally = tally(counters, lists.counts);
    }
    let edges = known.features.len();
    Ok((known, edges))
}

fn checkpoint(record: Record, snapshot: Option<Snapshot>, history: Arc<History>) -> Checkpoint<Snapshot> {
    let Record { id, parent, state, faults, energy, new_edges, step, run, selected, history: _, news, work } =
        record;
    Checkpoint {
        id,
        parent,
        snapshot,
        state,
        faults,
        history,
        energy,
        new_edges,
        step,
        run,
        selected,
        news,
        work,
        champion_of: 0,
        rareness: 0,
        given: Values::default(),
        closer: Arc::default(),
    }
}
