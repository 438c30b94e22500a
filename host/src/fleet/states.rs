//! States of a campaign that is shared: their parts are on the hub, and are had when a run starts from them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::hub::Hub;
use super::shared::{split, whole};
use crate::machine::{
    Blobs, Elsewhere, PART_MAX, Program, Reader, Snapshot, leaves_of, pages_of, saved_bytes,
};
use crate::store::pack::{packed, unpacked};

/// States that were had lately and are kept.
const KEPT: usize = 1024;
/// Bytes of parts that were had and are kept, as they were sent.
const PARTS_MAX: usize = 64 << 20;
/// Where a state could not be had, none is asked for so long.
const PAUSE: Duration = Duration::from_secs(5);
/// Parts of which it is known that they are there.
const KNOWN_MAX: usize = 1 << 20;

/// The states that are on the hub.
pub struct States {
    hub: Arc<dyn Hub>,
    program: OnceLock<Arc<Program>>,
    /// Bytes that states may hold.
    bytes_max: OnceLock<usize>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The hashes of states that are there.
    there: HashSet<u128>,
    /// The hashes of parts that are there.
    parts: HashSet<u128>,
    /// Parts that were had, which states have in common, and their bytes.
    had: HashMap<u128, Vec<u8>>,
    had_bytes: usize,
    /// Those that were had lately, with when.
    kept: BTreeMap<u128, (u64, Snapshot)>,
    count: u64,
    failed: Option<Instant>,
}

impl States {
    pub(super) fn new(hub: Arc<dyn Hub>) -> States {
        States { hub, program: OnceLock::new(), bytes_max: OnceLock::new(), inner: Mutex::default() }
    }

    /// Of which program they are, and how many bytes all saved states may hold.
    pub fn are_of(&self, program: &Arc<Program>, bytes_max: usize) {
        self.program.get_or_init(|| program.clone());
        self.bytes_max.get_or_init(|| bytes_max);
    }

    fn bytes_max(&self) -> usize {
        self.bytes_max.get().copied().unwrap_or_default()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A state with this hash is on the hub.
    pub(super) fn are_there(&self, state: u128) {
        self.inner().there.insert(state);
    }

    /// Parts, from here as far as they were had before.
    fn parts(&self, hashes: &[u128]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut parts: Vec<Option<Vec<u8>>> = {
            let inner = self.inner();
            hashes.iter().map(|hash| inner.had.get(hash).cloned()).collect()
        };
        let missing: Vec<usize> = (0..parts.len()).filter(|index| parts[*index].is_none()).collect();
        let wanted: Vec<u128> = missing.iter().map(|index| hashes[*index]).collect();
        if wanted.is_empty() {
            return Ok(parts);
        }
        let had = self.hub.parts(&wanted)?;
        let mut inner = self.inner();
        for (index, part) in missing.into_iter().zip(had) {
            if let Some(part) = &part {
                if inner.had_bytes + part.len() > PARTS_MAX {
                    inner.had.clear();
                    inner.had_bytes = 0;
                }
                inner.had_bytes += part.len();
                inner.had.insert(hashes[index], part.clone());
                // What was had need not be sent.
                inner.parts.insert(hashes[index]);
            }
            parts[index] = part;
        }
        Ok(parts)
    }

    fn had(&self, state: u128) -> Result<Option<Snapshot>> {
        let Some(program) = self.program.get() else { return Ok(None) };
        let key = format!("c.{state:032x}");
        let Some(value) = self.hub.get(&key)? else { return Ok(None) };
        let content = whole(&*self.hub, &key, &value.bytes)?;
        let (_, record) = split(&content)?;
        let record = unpacked(record)?;
        let mut parts = Parts { bytes_max: self.bytes_max(), ..Parts::default() };
        let leaves = leaves_of(&record)?;
        parts.fetch(self, leaves.iter().copied())?;
        let pages: Vec<u128> =
            leaves.iter().flat_map(|leaf| pages_of(&parts.known[leaf]).collect::<Vec<_>>()).collect();
        parts.fetch(self, pages.into_iter())?;
        Ok(Some(Reader::new(&mut parts, program)?.read(&record)?))
    }
}

impl Elsewhere for States {
    fn state(&self, state: u128) -> Option<Snapshot> {
        {
            let mut inner = self.inner();
            inner.count += 1;
            let count = inner.count;
            if let Some((at, snapshot)) = inner.kept.get_mut(&state) {
                *at = count;
                return Some(snapshot.clone());
            }
            let is_pausing = inner.failed.is_some_and(|failed| failed.elapsed() < PAUSE);
            if is_pausing || !inner.there.contains(&state) {
                return None;
            }
        }
        let had = self.had(state);
        let mut inner = self.inner();
        match had {
            Ok(Some(snapshot)) => {
                if inner.kept.len() >= KEPT {
                    let oldest = inner.kept.iter().min_by_key(|(_, (at, _))| *at).map(|(state, _)| *state);
                    oldest.map(|oldest| inner.kept.remove(&oldest));
                }
                if saved_bytes() > self.bytes_max() {
                    inner.kept.clear();
                    return Some(snapshot);
                }
                let count = inner.count;
                inner.kept.insert(state, (count, snapshot.clone()));
                Some(snapshot)
            }
            // It was evicted, or is damaged.
            Ok(None) => {
                inner.there.remove(&state);
                None
            }
            Err(_) => {
                inner.there.remove(&state);
                inner.failed = Some(Instant::now());
                None
            }
        }
    }
}

/// Parts that were fetched.
#[derive(Default)]
struct Parts {
    known: BTreeMap<u128, Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
}

impl Parts {
    fn fetch(&mut self, states: &States, hashes: impl Iterator<Item = u128>) -> Result<()> {
        let mut wanted: Vec<u128> = hashes.filter(|hash| !self.known.contains_key(hash)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        for (hash, part) in wanted.iter().zip(states.parts(&wanted)?) {
            let part = part.context("a part of the state is not there any more")?;
            let (len, _) = lz4_flex::block::uncompressed_size(&part)?;
            self.bytes += len;
            ensure!(self.bytes <= self.bytes_max, "the state takes more than --memory");
            ensure!(len <= PART_MAX, "a part has {len} bytes; {PART_MAX} are the most");
            self.known.insert(*hash, unpacked(&part)?);
        }
        Ok(())
    }
}

impl Blobs for Parts {
    fn put(&mut self, _: u128, _: &[u8]) -> Result<()> {
        bail!("it is only read")
    }

    fn has(&mut self, hash: u128) -> Result<bool> {
        Ok(self.known.contains_key(&hash))
    }

    fn get(&mut self, hash: u128) -> Result<Vec<u8>> {
        self.known.get(&hash).cloned().context("a part of the state is missing")
    }
}

/// Parts to be written.
struct Writing<'s> {
    states: &'s States,
    new: BTreeMap<u128, Vec<u8>>,
}

impl Blobs for Writing<'_> {
    fn put(&mut self, hash: u128, bytes: &[u8]) -> Result<()> {
        self.new.insert(hash, packed(bytes));
        Ok(())
    }

    fn has(&mut self, hash: u128) -> Result<bool> {
        Ok(self.new.contains_key(&hash) || self.states.inner().parts.contains(&hash))
    }

    fn get(&mut self, _: u128) -> Result<Vec<u8>> {
        bail!("it is only written")
    }
}

/// Writes the parts of a state; its record.
pub(super) fn write_state(states: &States, state: u128, snapshot: &Snapshot) -> Result<Vec<u8>> {
    let mut writing = Writing { states, new: BTreeMap::new() };
    let record = packed(&snapshot.write(&mut writing)?);
    let parts: Vec<(u128, Vec<u8>)> = writing.new.into_iter().collect();
    states.hub.put_parts(&parts)?;
    let mut inner = states.inner();
    if inner.parts.len() + parts.len() > KNOWN_MAX {
        inner.parts.clear();
    }
    inner.parts.extend(parts.iter().map(|(hash, _)| *hash));
    inner.there.insert(state);
    Ok(record)
}

/// Drops parts that no checkpoint refers to; how many.
pub(super) fn collect(hub: &dyn Hub) -> Result<u64> {
    let mut used = HashSet::new();
    for (key, value) in hub.changes(&["c"], 0, u64::MAX)?.values {
        let content = whole(hub, &key, &value.bytes);
        let Ok(content) = content else { continue };
        let Ok((_, record)) = split(&content) else { continue };
        let Ok(leaves) = unpacked(record).and_then(|record| leaves_of(&record)) else { continue };
        let parts = hub.parts(&leaves)?;
        for (leaf, part) in leaves.iter().zip(parts) {
            used.insert(*leaf);
            if let Some(Ok(part)) = part.map(|part| unpacked(&part)) {
                used.extend(pages_of(&part));
            }
        }
    }
    hub.retain_parts(&|hash| used.contains(&hash))
}
