//! What is read of a campaign's file: records, histories, and the parts of snapshots.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use anyhow::{Context, Result, bail, ensure};
use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, Table};

use super::embedded::{BLOBS, CHECKPOINTS, FINDINGS, HISTORIES, SNAPSHOTS};
use super::pack::{packed, unpacked};
use super::record::Record;
use crate::file::{self, StepLine};
use crate::machine::{Blobs, PART_MAX, Program, Reader, leaves_of, pages_of};
use crate::trace::Trace;

/// The parts of snapshots in a file that is being written.
pub(super) struct Writing<'t, 'k> {
    pub(super) table: Table<'t, u128, &'static [u8]>,
    pub(super) known: &'k mut HashSet<u128>,
}

impl Blobs for Writing<'_, '_> {
    fn put(&mut self, hash: u128, bytes: &[u8]) -> Result<()> {
        self.table.insert(hash, &*packed(bytes))?;
        self.known.insert(hash);
        Ok(())
    }

    fn has(&mut self, hash: u128) -> Result<bool> {
        if self.known.contains(&hash) {
            return Ok(true);
        }
        let has = self.table.get(hash)?.is_some();
        if has {
            self.known.insert(hash);
        }
        Ok(has)
    }

    fn get(&mut self, hash: u128) -> Result<Vec<u8>> {
        part(&self.table, hash)
    }
}

/// The parts of snapshots in a file that is only read.
struct Reading(ReadOnlyTable<u128, &'static [u8]>);

impl Blobs for Reading {
    fn put(&mut self, _: u128, _: &[u8]) -> Result<()> {
        bail!("the campaign is only read")
    }

    fn has(&mut self, hash: u128) -> Result<bool> {
        Ok(self.0.get(hash)?.is_some())
    }

    fn get(&mut self, hash: u128) -> Result<Vec<u8>> {
        part(&self.0, hash)
    }
}

pub(super) fn part(table: &impl ReadableTable<u128, &'static [u8]>, hash: u128) -> Result<Vec<u8>> {
    let part = table.get(hash)?.with_context(|| format!("the part {hash:032x} is missing"))?;
    let (len, _) = lz4_flex::block::uncompressed_size(part.value())?;
    ensure!(len <= PART_MAX, "the part {hash:032x} has {len} bytes; {PART_MAX} are the most");
    unpacked(part.value())
}

pub(super) fn records(reading: &ReadTransaction) -> Result<Vec<Record>> {
    let table = reading.open_table(CHECKPOINTS)?;
    let record = |entry: Result<_, redb::StorageError>| {
        let (id, bytes): (redb::AccessGuard<'_, u64>, redb::AccessGuard<'_, &[u8]>) = entry?;
        Record::of(id.value(), bytes.value()).with_context(|| format!("checkpoint {}", id.value()))
    };
    table.iter()?.map(record).collect()
}

pub(super) fn checkpoints(
    reading: &ReadTransaction,
    program: &Program,
) -> Result<Vec<(Record, Option<crate::machine::Snapshot>)>> {
    let snapshots = reading.open_table(SNAPSHOTS)?;
    let mut blobs = Reading(reading.open_table(BLOBS)?);
    let mut reader = None;
    let mut checkpoints = Vec::new();
    for record in records(reading)? {
        let Some(bytes) = snapshots.get(record.id)? else {
            checkpoints.push((record, None));
            continue;
        };
        if reader.is_none() {
            reader = Some(Reader::new(&mut blobs, program)?);
        }
        let reader = reader.as_mut().context("it was just made")?;
        let snapshot = reader.read(&unpacked(bytes.value())?);
        let snapshot = snapshot.with_context(|| format!("the state of checkpoint {}", record.id))?;
        checkpoints.push((record, Some(snapshot)));
    }
    Ok(checkpoints)
}

/// By id: the history that each continues, and its lines.
pub(super) type Histories = BTreeMap<u64, (Option<u64>, Vec<StepLine>)>;

/// All of them, which are so many bytes unpacked, at most.
pub(super) fn histories(reading: &ReadTransaction, unpacked_max: u64) -> Result<Histories> {
    let mut histories = Histories::new();
    let mut unpacked_bytes = 0;
    for entry in reading.open_table(HISTORIES)?.iter()? {
        let (id, history) = entry?;
        let (id, (parent, lines)) = (id.value(), history.value());
        if let Some(parent) = parent {
            ensure!(histories.contains_key(&parent), "history {id} continues {parent}, which is missing");
        }
        let lines = unpacked(lines)?;
        unpacked_bytes += lines.len() as u64;
        ensure!(
            unpacked_bytes <= unpacked_max,
            "steps take {unpacked_bytes} bytes and more, which are too many"
        );
        histories.insert(id, (parent, serde_json::from_slice(&lines)?));
    }
    Ok(histories)
}

/// Histories with their steps, in the order of their numbers.
pub(super) type NamedHistories = Vec<(u64, Option<u64>, Trace)>;

/// The histories, with rules and faults as the program numbers them.
pub(super) fn named_histories(
    reading: &ReadTransaction,
    program: &Program,
    unpacked_max: u64,
) -> Result<NamedHistories> {
    let named = histories(reading, unpacked_max)?.into_iter().map(|(id, (parent, lines))| {
        let steps = file::part_of(program, &lines).with_context(|| format!("history {id}"))?;
        Ok((id, parent, steps))
    });
    named.collect()
}

/// The findings by their ids.
pub(super) fn findings(reading: &ReadTransaction) -> Result<Vec<(String, serde_json::Value)>> {
    let mut findings = Vec::new();
    for finding in reading.open_table(FINDINGS)?.iter()? {
        let (id, text) = finding?;
        findings.push((id.value().to_string(), serde_json::from_slice(text.value())?));
    }
    Ok(findings)
}

/// The parts that the snapshots of checkpoints refer to.
pub(super) fn used_blobs(reading: &ReadTransaction) -> Result<HashSet<u128>> {
    let blobs = reading.open_table(BLOBS)?;
    let mut used = HashSet::new();
    for snapshot in reading.open_table(SNAPSHOTS)?.iter()? {
        for leaf in leaves_of(&unpacked(snapshot?.1.value())?)? {
            if used.insert(leaf) {
                used.extend(pages_of(&part(&blobs, leaf)?));
            }
        }
    }
    Ok(used)
}

/// The histories that lead to checkpoints.
pub(super) fn used_histories(reading: &ReadTransaction) -> Result<BTreeSet<u64>> {
    let histories = reading.open_table(HISTORIES)?;
    let mut used = BTreeSet::new();
    for record in records(reading)? {
        let mut next = Some(record.history);
        while let Some(id) = next
            && used.insert(id)
        {
            next = histories.get(id)?.context("a history is missing")?.value().0;
        }
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use redb::ReadableDatabase;

    use super::*;

    #[test]
    fn steps_that_take_more_than_may_be_are_refused_before_all_are_unpacked() {
        let database =
            redb::Builder::new().create_with_backend(redb::backends::InMemoryBackend::new()).unwrap();
        let writing = database.begin_write().unwrap();
        let lines = packed(format!("[{}]", " ".repeat(998)).as_bytes());
        for id in 0..5 {
            writing.open_table(HISTORIES).unwrap().insert(id, (None, &*lines)).unwrap();
        }
        // What follows is not looked at.
        writing.open_table(HISTORIES).unwrap().insert(5, (None, &b"damaged"[..])).unwrap();
        writing.commit().unwrap();
        let reading = database.begin_read().unwrap();
        let error = histories(&reading, 4999).unwrap_err();
        assert_eq!(error.to_string(), "steps take 5000 bytes and more, which are too many");
        let error = histories(&reading, 5000).unwrap_err();
        assert!(!error.to_string().contains("too many"), "{error:#}");
    }
}
