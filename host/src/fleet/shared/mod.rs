//! A campaign that a fleet shares, through a hub. Each worker explores by itself, hands over what is new to all, and takes over what
//! others found. No two of them need to agree on an order: sets grow, and what has a hash stays what it is.
//!
//! | key | what stands there |
//! |---|---|
//! | `header` | what is explored, and how: the first who comes decides |
//! | `k.<shard>` | features that anybody saw |
//! | `c.<hash>` | a checkpoint: its steps, and the parts of its state |
//! | `f.<failure>` | a finding: its steps, who shrinks it, and its trace once it is shrunk |
//! | `w.<worker>` | how far a worker is; it is written again for as long as that lives |
//! | `t.<worker>` | what it counted |
//!
//! What is seen is written last: whoever reads that something was seen can read how to get there.

mod store;
#[cfg(test)]
mod tests;
mod values;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};

use super::coverage::{self, Coverage, Item, Shard, bytes_of, items_of, key_of};
use super::hub::{Hub, Value};
use super::nats::NotReached;
use super::states::{States, write_state};
use crate::campaign::{RUN_BITS, name_of};
use crate::coverage::{FeatureKind, SHOWN};
use crate::file::{self, Hex, Names as _, StepLine};
use crate::machine::{Elsewhere as _, Program};
use crate::outcome::Failure;
use crate::search::Tally;
use crate::search::energy::News;
use crate::store::pack::{packed, packed_json, unpacked};
use crate::store::{Claim, Collected, Header, Loaded, Record, Saved, Steps, Store};
use crate::trace::Trace;

use values::{
    CheckpointLine, Told, checkpoint_bytes, checkpoint_of, finding_key, module_name, steps_to, stored,
    tally_of, way_of,
};
pub(super) use values::{FindingValue, split};
pub use values::{WorkerLine, is_alive, whole, worker_name, wrapped};

/// Bytes of what others found that are read at a time; the rest the next time.
const READ_MAX: u64 = 1 << 20;
/// What a worker counted is written so often.
const TALLY_INTERVAL: Duration = Duration::from_secs(5);
/// A worker that has said nothing for so many seconds is not there any more.
pub(super) const ALIVE: u64 = 20;
/// A value that is longer lies among the objects.
const VALUE_MAX: usize = 256 << 10;
/// Others may be faster so many times.
const TRIES: usize = 16;

/// What [`Header`] holds, and what must be the same for all that share it.
#[derive(Serialize, Deserialize)]
struct Head {
    /// The format of all that is here.
    format: u32,
    /// The version that instruments the module, on which the numbers of edges depend.
    version: String,
    #[serde(flatten)]
    header: Header,
}

const FORMAT: u32 = 1;

/// What is known to be on the hub.
#[derive(Default)]
struct There {
    coverage: Coverage,
    checkpoints: HashSet<u128>,
    findings: BTreeSet<String>,
    /// Of those, the ones that others found.
    theirs: BTreeSet<String>,
}

/// A campaign on a hub, as one worker sees it.
pub struct Shared {
    hub: Arc<dyn Hub>,
    worker: u64,
    states: Arc<States>,
    there: There,
    /// The revision up to which all was read, and how much was left.
    read: u64,
    left: u64,
    /// The checkpoints of this worker that were looked at.
    handled: HashSet<u64>,
    began: Instant,
    /// When it was last said what was counted, and runs and steps by then.
    tally_at: Option<(Instant, u64, u64)>,
    counters: serde_json::Value,
    lists: serde_json::Value,
    /// Traces that are shrunk and not handed over.
    shrunk: BTreeMap<String, String>,
    /// What of others could not be read.
    unreadable: u64,
    /// The states of checkpoints are had as soon as these are read.
    fetches: bool,
}

impl Shared {
    /// A worker at a hub, by a number that no other has.
    pub fn new(hub: Arc<dyn Hub>, worker: u64) -> Shared {
        Shared {
            states: Arc::new(States::new(hub.clone())),
            hub,
            worker,
            there: There::default(),
            read: 0,
            left: 0,
            handled: HashSet::new(),
            began: Instant::now(),
            tally_at: None,
            counters: serde_json::Value::Null,
            lists: serde_json::Value::Null,
            shrunk: BTreeMap::new(),
            unreadable: 0,
            fetches: false,
        }
    }

    /// Has the states of checkpoints handed over with them, and not when they are needed.
    pub fn fetch_states(&mut self) {
        self.fetches = true;
    }

    /// Where states of others are to be had.
    pub fn states(&self) -> Arc<States> {
        self.states.clone()
    }

    /// What the campaign explores; `None` where it has not begun.
    ///
    /// # Errors
    /// The hub cannot be reached; a campaign of another version.
    pub fn header(&self) -> Result<Option<Header>> {
        let Some(value) = self.hub.get("header")? else { return Ok(None) };
        let name = self.hub.name();
        let head: Head = serde_json::from_slice(&value.bytes)
            .with_context(|| format!("the campaign {name} says nothing that can be understood of itself"))?;
        let ours = env!("CARGO_PKG_VERSION");
        ensure!(
            head.format == FORMAT && head.version == ours,
            "the campaign {name} is of Spelunk {}, and this is {ours}: use that, or another --campaign",
            head.version
        );
        Ok(Some(head.header))
    }

    /// How many workers are there; of thousands, not all are counted.
    ///
    /// # Errors
    /// The hub cannot be reached.
    pub fn alive(&self) -> Result<usize> {
        let values = self.hub.changes(&["w"], 0, READ_MAX)?.values;
        Ok(values.iter().filter(|(_, value)| value.age < ALIVE).count())
    }

    /// Removes what workers said of themselves that are not there any more; how many.
    ///
    /// # Errors
    /// The hub cannot be reached.
    pub fn forget_lost(&self) -> Result<u64> {
        let values = self.hub.changes(&["w"], 0, u64::MAX)?.values;
        let lost = values.iter().filter(|(_, value)| value.age >= ALIVE);
        lost.map(|(key, _)| self.hub.remove(key).map(|()| 1)).sum()
    }

    /// What the campaign is called, for a reader.
    pub fn name_of_campaign(&self) -> String {
        self.hub.name()
    }

    /// The name of the worker.
    fn name(&self) -> String {
        worker_name(self.worker)
    }

    /// Hands over the checkpoints that lead to what is new to all.
    fn send_checkpoints(&mut self, state: &Saved<'_>, runs: &BTreeMap<u64, Vec<Item>>) -> Result<()> {
        let histories: BTreeMap<u64, (Option<u64>, &Trace)> =
            state.histories.iter().map(|(id, parent, steps)| (*id, (*parent, *steps))).collect();
        for (record, snapshot) in &state.checkpoints {
            if self.handled.contains(&record.id) {
                continue;
            }
            if let Some(features) = runs.get(&record.run) {
                let steps = steps_to(record.history, &histories, state.program)?;
                let key = match record.state {
                    Some(state) => state,
                    None => way_of(&steps)?,
                };
                if !self.there.checkpoints.contains(&key) {
                    let snapshot = match (snapshot, record.state) {
                        (Some(snapshot), Some(state)) => write_state(&self.states, state, snapshot)?,
                        _ => Vec::new(),
                    };
                    let line = CheckpointLine {
                        state: record.state.map(Hex),
                        faults: record.faults.clone(),
                        new_edges: record.new_edges,
                        step: record.step,
                        news: record.news,
                        work: record.work,
                        features: features.clone(),
                        steps,
                    };
                    let name = format!("c.{key:032x}");
                    let bytes = wrapped(&*self.hub, &name, &checkpoint_bytes(&line, &snapshot)?)?;
                    // The first who came there has it.
                    self.hub.replace(&name, &bytes, 0)?;
                    self.there.checkpoints.insert(key);
                }
            }
            self.handled.insert(record.id);
        }
        Ok(())
    }

    fn send_findings(&mut self, state: &Saved<'_>) -> Result<()> {
        for (id, finding) in &state.findings {
            if !self.there.findings.contains(id) {
                let value = FindingValue { finding: finding.clone(), shrinks: None, trace: None };
                let bytes = wrapped(&*self.hub, &finding_key(id), &serde_json::to_vec(&value)?)?;
                self.hub.replace(&finding_key(id), &bytes, 0)?;
                self.there.findings.insert(id.clone());
            }
        }
        for (id, trace) in self.shrunk.clone() {
            self.send_shrunk(&id, trace)?;
            self.shrunk.remove(&id);
        }
        Ok(())
    }

    fn send_shrunk(&self, id: &str, trace: String) -> Result<()> {
        let key = finding_key(id);
        for _ in 0..TRIES {
            let found = match self.finding(id) {
                // One that cannot be read is nobody's.
                Err(error) if !error.is::<NotReached>() => return Ok(()),
                found => found?,
            };
            let Some((value, revision)) = found else { return Ok(()) };
            if value.trace.is_some() {
                return Ok(());
            }
            let value = FindingValue { trace: Some(trace.clone()), shrinks: None, ..value };
            let bytes = wrapped(&*self.hub, &key, &serde_json::to_vec(&value)?)?;
            if self.hub.replace(&key, &bytes, revision)?.is_some() {
                return Ok(());
            }
        }
        Err(self.busy())
    }

    fn busy(&self) -> anyhow::Error {
        anyhow!("{} is written by too many at a time: it is tried again", self.hub.name())
    }

    /// A finding, and its revision.
    fn finding(&self, id: &str) -> Result<Option<(FindingValue, u64)>> {
        let key = finding_key(id);
        let Some(Value { bytes, revision, .. }) = self.hub.get(&key)? else { return Ok(None) };
        let value = serde_json::from_slice(&whole(&*self.hub, &key, &bytes)?)?;
        Ok(Some((value, revision)))
    }

    /// Adds what was seen here first to what was seen.
    fn send_coverage(&mut self, new: &BTreeSet<Item>) -> Result<()> {
        for (index, new) in self.there.coverage.by_shard(new.iter().copied()) {
            let (revision, has_all) = self.send_shard(index, &new)?;
            let shard = &mut self.there.coverage.shards[index];
            shard.items.extend(new);
            // What others wrote meanwhile is still to be read: it is news to the search. Until then the next write comes upon it again.
            if has_all {
                shard.revision = revision;
            }
        }
        Ok(())
    }

    /// The revision that was written, and whether all that stands there is known.
    fn send_shard(&self, index: usize, new: &BTreeSet<Item>) -> Result<(u64, bool)> {
        let key = key_of(index);
        let Shard { items, revision } = &self.there.coverage.shards[index];
        let (mut items, mut revision) = (Cow::Borrowed(items), *revision);
        for tries in 0..TRIES {
            if let Some(revision) = self.hub.replace(&key, &bytes_of(items.union(new)), revision)? {
                return Ok((revision, tries == 0));
            }
            // One that is gone, or cannot be read, is written anew.
            let value = self.hub.get(&key)?;
            revision = value.as_ref().map_or(0, |value| value.revision);
            let there = value.and_then(|value| items_of(&value.bytes).ok()).unwrap_or_default();
            items = Cow::Owned(there.into_iter().collect());
        }
        Err(self.busy())
    }

    /// Says that this worker lives and how far it is, and now and then what it counted.
    fn send_tally(&mut self, is_last: bool) -> Result<()> {
        let is_due = self.tally_at.is_none_or(|(at, ..)| at.elapsed() >= TALLY_INTERVAL);
        if !(is_due || is_last) || self.counters.is_null() {
            return Ok(());
        }
        let tally = tally_of(&self.counters, &self.lists)?;
        let traffic = self.hub.traffic();
        let (since, runs, steps) = self.tally_at.unwrap_or((self.began, 0, 0));
        let a_second =
            |now: u64, before: u64| (now - before) as f64 / since.elapsed().as_secs_f64().max(0.001);
        let line = WorkerLine {
            runs: tally.runs,
            steps: tally.steps,
            edges: self.there.coverage.edges(),
            runs_a_second: a_second(tally.runs, runs),
            steps_a_second: a_second(tally.steps, steps),
            lag: self.left,
            unreadable: self.unreadable,
            sent: traffic.sent,
            received: traffic.received,
            seconds: self.began.elapsed().as_secs(),
            ..WorkerLine::now()
        };
        let key = format!("t.{}", self.name());
        // What was counted under this name before is not taken back.
        let is_more =
            self.tally_at.is_some() || self.tally_there(&key)?.is_none_or(|there| tally.runs >= there.runs);
        if is_more {
            self.hub.put(&key, &packed_json(&tally)?)?;
        }
        if !is_last {
            self.hub.keep_writing(&format!("w.{}", self.name()), serde_json::to_vec(&line)?);
        }
        self.tally_at = Some((Instant::now(), tally.runs, tally.steps));
        Ok(())
    }

    fn tally_there(&self, key: &str) -> Result<Option<Tally>> {
        let value = self.hub.get(key)?;
        Ok(value.and_then(|value| serde_json::from_slice(&unpacked(&value.bytes).ok()?).ok()))
    }

    /// Turns values of others into what can be merged.
    fn loaded(&mut self, values: Vec<(String, Value)>, program: &Program) -> Loaded {
        let mut loaded = Loaded {
            counters: serde_json::Value::Null,
            checkpoints: Vec::new(),
            histories: vec![(0, None, Trace::default())],
            edges: Vec::new(),
            findings: Vec::new(),
            lists: serde_json::Value::Null,
            first: Vec::new(),
        };
        for (key, value) in values {
            match self.take(&key, &value, program, &mut loaded) {
                Ok(()) => {}
                // The rest the next time.
                Err(error) if error.is::<NotReached>() => break,
                // What another wrote and cannot be read is left out: it must not keep this one from its work.
                Err(_) => self.unreadable += 1,
            }
            self.read = self.read.max(value.revision);
        }
        loaded
    }

    fn take(&mut self, key: &str, value: &Value, program: &Program, loaded: &mut Loaded) -> Result<()> {
        let (kind, rest) = key.split_once('.').unwrap_or((key, ""));
        match kind {
            coverage::PREFIX => {
                for item in self.there.coverage.read(key, value)? {
                    loaded.edges.push(stored(item, program)?);
                }
            }
            "c" => {
                let hash = u128::from_str_radix(rest, 16)?;
                if self.there.checkpoints.contains(&hash) {
                    return Ok(());
                }
                let (line, has_state) = checkpoint_of(&whole(&*self.hub, key, &value.bytes)?)?;
                // Of several that came to the same at the same time, the first is enough.
                let new: Vec<Item> = line
                    .features
                    .iter()
                    .copied()
                    .filter(|item| !self.there.coverage.is_told(*item))
                    .collect();
                if new.is_empty() && !line.features.is_empty() {
                    self.there.checkpoints.insert(hash);
                    return Ok(());
                }
                let features = new.iter().map(|item| stored(*item, program)).collect::<Result<Vec<_>>>()?;
                let steps = file::part_of(program, &line.steps)?;
                let id = loaded.checkpoints.len() as u64 + 1;
                ensure!(line.faults.len() == program.faults().len(), "it has other faults");
                if let (true, Some(state)) = (has_state, line.state) {
                    ensure!(state.0 == hash, "it is not what it is called");
                    self.states.are_there(state.0);
                }
                self.there.checkpoints.insert(hash);
                let edges: BTreeSet<u32> = new.iter().map(|item| item.slot()).collect();
                loaded.first.extend(edges.range(..SHOWN).map(|edge| (*edge, id)));
                new.into_iter().for_each(|item| self.there.coverage.tell(item));
                loaded.edges.extend(features);
                loaded.histories.push((id, Some(0), steps));
                let state = line.state.filter(|_| has_state && self.fetches);
                let state = state.and_then(|state| self.states.state(state.0));
                loaded.checkpoints.push((line.record(id), state));
            }
            "f" => {
                let found: FindingValue = serde_json::from_slice(&whole(&*self.hub, key, &value.bytes)?)?;
                let Told { failure, steps } = serde_json::from_value(found.finding.clone())?;
                file::trace_of(program, &steps)?;
                ensure!(failure.id() == rest, "it is not what it is called");
                if self.there.findings.insert(rest.to_string()) {
                    self.there.theirs.insert(rest.to_string());
                    loaded.findings.push((rest.to_string(), found.finding));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// What is read of others.
const PREFIXES: [&str; 3] = [coverage::PREFIX, "c", "f"];
