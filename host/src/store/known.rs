//! What stands in a campaign's file, so that a save writes only what changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use anyhow::{Result, bail};
use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::embedded::{
    BLOBS, CHECKPOINTS, COUNTERS, EDGES, FINDINGS, FORMAT, HISTORIES, LISTS, META, Misuse, SNAPSHOTS, VERSION,
};
use super::pack::{packed, packed_json};
use super::reading::Writing;
use super::record::Saved;
use crate::file;

/// What stands in the file, as far as it must be known to write what changed only.
#[derive(Default)]
pub(super) struct Known {
    pub(super) checkpoints: BTreeMap<u64, Vec<u8>>,
    pub(super) snapshots: BTreeSet<u64>,
    pub(super) histories: BTreeSet<u64>,
    pub(super) findings: BTreeMap<String, Vec<u8>>,
    /// The version that it says it has.
    pub(super) format: Vec<u8>,
    pub(super) lists: Vec<u8>,
    pub(super) edges: u64,
    /// Parts that are surely there; others may be.
    pub(super) blobs: HashSet<u128>,
}

impl Known {
    pub(super) fn of(reading: &ReadTransaction) -> Result<Known> {
        let mut known = Known::default();
        for record in reading.open_table(CHECKPOINTS)?.iter()? {
            let (id, bytes) = record?;
            known.checkpoints.insert(id.value(), bytes.value().to_vec());
        }
        for snapshot in reading.open_table(SNAPSHOTS)?.iter()? {
            known.snapshots.insert(snapshot?.0.value());
        }
        for history in reading.open_table(HISTORIES)?.iter()? {
            known.histories.insert(history?.0.value());
        }
        for finding in reading.open_table(FINDINGS)?.iter()? {
            let (id, bytes) = finding?;
            known.findings.insert(id.value().to_string(), bytes.value().to_vec());
        }
        let meta = reading.open_table(META)?;
        if let Some(format) = meta.get(FORMAT)? {
            known.format = format.value().to_vec();
        }
        if let Some(lists) = meta.get(LISTS)? {
            known.lists = lists.value().to_vec();
        }
        known.edges = reading.open_table(EDGES)?.last()?.map_or(0, |(order, _)| order.value() + 1);
        Ok(known)
    }

    pub(super) fn meta(&mut self, writing: &WriteTransaction, state: &Saved<'_>) -> Result<()> {
        let mut meta = writing.open_table(META)?;
        // An earlier version would read what it does not know wrongly.
        let format = packed_json(&VERSION)?;
        if format != self.format {
            meta.insert(FORMAT, &*format)?;
            self.format = format;
        }
        meta.insert(COUNTERS, &*packed_json(&state.counters)?)?;
        let lists = packed_json(&state.lists)?;
        if lists != self.lists {
            meta.insert(LISTS, &*lists)?;
            self.lists = lists;
        }
        Ok(())
    }

    pub(super) fn histories(&mut self, writing: &WriteTransaction, state: &Saved<'_>) -> Result<()> {
        let mut table = writing.open_table(HISTORIES)?;
        for (id, parent, steps) in &state.histories {
            if let Some(parent) = parent
                && (parent >= id || !self.histories.contains(parent))
            {
                bail!(Misuse(format!("history {id} continues {parent}, which is not stored before it")));
            }
            if !self.histories.insert(*id) {
                continue;
            }
            let lines = packed_json(&file::lines_of(state.program, steps))?;
            table.insert(*id, (*parent, &*lines))?;
        }
        Ok(())
    }

    pub(super) fn checkpoints(&mut self, writing: &WriteTransaction, state: &Saved<'_>) -> Result<()> {
        let mut records = writing.open_table(CHECKPOINTS)?;
        let mut snapshots = writing.open_table(SNAPSHOTS)?;
        let mut blobs = Writing { table: writing.open_table(BLOBS)?, known: &mut self.blobs };
        let mut gone: BTreeSet<u64> = self.checkpoints.keys().copied().collect();
        for (record, snapshot) in &state.checkpoints {
            let id = record.id;
            gone.remove(&id);
            if !self.histories.contains(&record.history) {
                let history = record.history;
                bail!(Misuse(format!("checkpoint {id} has history {history}, which is not stored")));
            }
            let bytes = record.to_bytes()?;
            if self.checkpoints.get(&id) != Some(&bytes) {
                records.insert(id, &*bytes)?;
                self.checkpoints.insert(id, bytes);
            }
            match snapshot {
                Some(snapshot) if !self.snapshots.contains(&id) => {
                    snapshots.insert(id, &*packed(&snapshot.write(&mut blobs)?))?;
                    self.snapshots.insert(id);
                }
                None if self.snapshots.remove(&id) => drop(snapshots.remove(id)?),
                _ => {}
            }
        }
        for id in gone {
            records.remove(id)?;
            self.checkpoints.remove(&id);
            if self.snapshots.remove(&id) {
                snapshots.remove(id)?;
            }
        }
        Ok(())
    }

    pub(super) fn edges(&mut self, writing: &WriteTransaction, edges: &[(u64, u64)]) -> Result<()> {
        let mut table = writing.open_table(EDGES)?;
        for edge in edges {
            table.insert(self.edges, *edge)?;
            self.edges += 1;
        }
        Ok(())
    }

    pub(super) fn findings(&mut self, writing: &WriteTransaction, state: &Saved<'_>) -> Result<()> {
        let mut table = writing.open_table(FINDINGS)?;
        let mut now = BTreeMap::new();
        for (id, finding) in &state.findings {
            let bytes = serde_json::to_vec(finding)?;
            if self.findings.get(id) != Some(&bytes) {
                table.insert(&**id, &*bytes)?;
            }
            now.insert(id.clone(), bytes);
        }
        for id in self.findings.keys().filter(|id| !now.contains_key(*id)) {
            table.remove(&**id)?;
        }
        self.findings = now;
        Ok(())
    }
}
