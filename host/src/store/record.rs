//! What is saved of a campaign, and what is loaded.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::file::Hex;
use crate::machine::{Program, Snapshot};
use crate::search::energy::News;
use crate::trace::Trace;

/// What a campaign explores, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The hash of the module.
    pub module: Hex,
    /// The target's name.
    pub target: String,
    /// The settings that it was begun with.
    pub settings: serde_json::Value,
}

/// A checkpoint but for its state and the steps that lead to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its number, from 1 in the order in which checkpoints were saved.
    pub id: u64,
    /// The checkpoint that the run was at before.
    pub parent: Option<u64>,
    /// The hash of what of the state can still matter.
    pub state: Option<u128>,
    /// Which faults are on.
    pub faults: Vec<bool>,
    /// How promising it is.
    pub energy: f64,
    /// How many edges were new when it was saved.
    pub new_edges: u32,
    /// The step of its run after which it was saved.
    pub step: u32,
    /// The run that reached it.
    pub run: u64,
    /// How often a run started from it.
    pub selected: u64,
    /// The history that leads to it.
    pub history: u64,
    /// What made it worth keeping.
    pub news: News,
    /// Guest steps that an input takes.
    pub work: u64,
}

/// A campaign as it is now, to be saved.
pub struct Saved<'s> {
    /// Names the rules and faults in histories.
    pub program: &'s Program,
    /// How far the campaign is.
    pub counters: serde_json::Value,
    /// All that are kept now; those that were saved before and are not here are deleted.
    pub checkpoints: Vec<(Record, Option<&'s Snapshot>)>,
    /// Those not stored yet: the number, that of the history it continues, which is lower, and the steps since.
    pub histories: Vec<(u64, Option<u64>, &'s Trace)>,
    /// Those seen since the last time: the stable hash, and the run that saw it first.
    pub edges: &'s [(u64, u64)],
    /// All findings, by id.
    pub findings: Vec<(String, serde_json::Value)>,
    /// Productive values, best scores, counts of properties and events.
    pub lists: serde_json::Value,
}

/// A campaign as it was saved.
pub struct Loaded {
    /// How far the campaign is.
    pub counters: serde_json::Value,
    /// In the order of their numbers.
    pub checkpoints: Vec<(Record, Option<Snapshot>)>,
    /// In the order of their numbers, so that each comes after the one that it continues.
    pub histories: Vec<(u64, Option<u64>, Trace)>,
    /// In the order in which they were saved.
    pub edges: Vec<(u64, u64)>,
    /// In the order of their ids.
    pub findings: Vec<(String, serde_json::Value)>,
    /// Productive values, best scores, counts of properties and events.
    pub lists: serde_json::Value,
    /// Edges that an input got to first, where the lists do not say which is the champion of each.
    pub first: Vec<(u32, u64)>,
}

/// What collecting garbage did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Bytes of the file before.
    pub before: u64,
    /// Bytes of the file after.
    pub after: u64,
    /// Parts of snapshots that were dropped.
    pub blobs: u64,
    /// Histories that were dropped.
    pub histories: u64,
}

/// A [`Record`] in the file. JSON would round the energy, so its bits are given.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    parent: Option<u64>,
    state: Option<Hex>,
    faults: Vec<bool>,
    energy: u64,
    new_edges: u32,
    step: u32,
    run: u64,
    selected: u64,
    history: u64,
    #[serde(default)]
    news: News,
    #[serde(default)]
    work: u64,
}

impl Record {
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(&Line {
            parent: self.parent,
            state: self.state.map(Hex),
            faults: self.faults.clone(),
            energy: self.energy.to_bits(),
            new_edges: self.new_edges,
            step: self.step,
            run: self.run,
            selected: self.selected,
            history: self.history,
            news: self.news,
            work: self.work,
        })?)
    }

    pub(super) fn of(id: u64, bytes: &[u8]) -> Result<Record> {
        let line: Line = serde_json::from_slice(bytes)?;
        Ok(Record {
            id,
            parent: line.parent,
            state: line.state.map(|state| state.0),
            faults: line.faults,
            energy: f64::from_bits(line.energy),
            new_edges: line.new_edges,
            step: line.step,
            run: line.run,
            selected: line.selected,
            history: line.history,
            news: line.news,
            work: line.work,
        })
    }
}
