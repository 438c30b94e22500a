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
use crate::coverage::{FeatureKind, SHOWN};
use crate::file::{self, Hex, Names as _, StepLine};
use crate::machine::{Elsewhere as _, Program};
use crate::outcome::Failure;
use crate::search::Tally;
use crate::search::energy::News;
use crate::store::pack::{packed, packed_json, unpacked};
use crate::store::{Claim, Collected, Header, Loaded, Record, Saved, Steps, Store};
use crate::trace::Trace;

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
/// Bits of the number of a run in the store; see `campaign`.
const RUN_BITS: u32 = 59;

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

/// A checkpoint on its way.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointLine {
    state: Option<Hex>,
    faults: Vec<bool>,
    new_edges: u32,
    step: u32,
    news: News,
    work: u64,
    /// What its run saw first, as far as its worker knew.
    features: Vec<Item>,
    steps: Vec<StepLine>,
}

/// A finding on its way.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FindingValue {
    /// As the store has it.
    pub(super) finding: serde_json::Value,
    /// The worker that shrinks it.
    #[serde(default)]
    pub(super) shrinks: Option<String>,
    /// The file of its trace, once it is shrunk.
    #[serde(default)]
    pub(super) trace: Option<String>,
}

/// What must stand in a finding.
#[derive(Deserialize)]
struct Told {
    failure: Failure,
    #[allow(dead_code)]
    run: u64,
    steps: Vec<StepLine>,
}

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
    /// The histories of this worker.
    histories: BTreeMap<u64, (Option<u64>, Vec<StepLine>)>,
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

/// How far a worker is, as it says itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct WorkerLine {
    /// The name of the machine.
    pub host: String,
    pub process: u32,
    pub version: String,
    pub runs: u64,
    pub steps: u64,
    pub edges: u64,
    pub runs_a_second: f64,
    pub steps_a_second: f64,
    /// Values of others that it has not read.
    pub lag: u64,
    pub sent: u64,
    pub received: u64,
    /// Seconds since it joined.
    pub seconds: u64,
}

impl WorkerLine {
    /// Of this process, which has done nothing yet.
    pub fn now() -> WorkerLine {
        WorkerLine {
            host: host(),
            process: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            ..WorkerLine::default()
        }
    }
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
            histories: BTreeMap::new(),
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

    /// How many workers are there.
    ///
    /// # Errors
    /// The hub cannot be reached.
    pub fn alive(&self) -> Result<usize> {
        let values = self.hub.changes(&["w"], 0, u64::MAX)?.values;
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

    /// All steps to the history with this number.
    fn steps_to(&self, history: u64) -> Result<Vec<StepLine>> {
        let (mut chain, mut next) = (Vec::new(), Some(history).filter(|id| *id > 0));
        while let Some(id) = next {
            let (parent, lines) =
                self.histories.get(&id).with_context(|| format!("history {id} is missing"))?;
            chain.push(lines);
            next = parent.filter(|id| *id > 0);
        }
        Ok(chain.into_iter().rev().flatten().cloned().collect())
    }

    /// Hands over the checkpoints that lead to what is new to all.
    fn send_checkpoints(&mut self, state: &Saved<'_>, runs: &BTreeMap<u64, Vec<Item>>) -> Result<()> {
        for (record, snapshot) in &state.checkpoints {
            if self.handled.contains(&record.id) {
                continue;
            }
            if let Some(features) = runs.get(&record.run) {
                let steps = self.steps_to(record.history)?;
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
                new.into_iter().for_each(|item| self.there.coverage.tell(item));
                loaded.edges.extend(features);
                loaded.histories.push((id, Some(0), steps));
                let state = line.state.filter(|_| has_state && self.fetches);
                let state = state.and_then(|state| self.states.state(state.0));
                loaded.checkpoints.push((line.record(id), state));
            }
            "f" => {
                let found: FindingValue = serde_json::from_slice(&whole(&*self.hub, key, &value.bytes)?)?;
                let Told { failure, run: _, steps } = serde_json::from_value(found.finding.clone())?;
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

impl CheckpointLine {
    fn record(self, id: u64) -> Record {
        Record {
            id,
            parent: None,
            state: self.state.map(|state| state.0),
            faults: self.faults,
            energy: 1.0,
            new_edges: self.new_edges,
            step: self.step,
            run: 0,
            selected: 0,
            history: id,
            news: self.news,
            work: self.work,
        }
    }
}

/// Whether a worker of this name has said something lately; `own` is the name of who asks.
///
/// # Errors
/// The hub cannot be reached.
pub fn is_alive(hub: &dyn Hub, (own, worker): (&str, &str)) -> Result<bool> {
    // That one was written lately, and so says what time it is at the server.
    hub.get(&format!("w.{own}"))?;
    Ok(hub.get(&format!("w.{worker}"))?.is_some_and(|value| value.age < ALIVE))
}

/// What a worker with this number is called.
pub fn worker_name(worker: u64) -> String {
    format!("{worker:016x}")
}

/// The bytes of a value, which may lie among the objects.
///
/// # Errors
/// The hub cannot be reached; it is no value.
pub fn whole(hub: &dyn Hub, key: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    match bytes.split_first() {
        Some((0, rest)) => unpacked(rest),
        Some((1, name)) => {
            let object = hub.object(std::str::from_utf8(name)?)?;
            unpacked(&object.with_context(|| format!("the object of {key} is missing"))?)
        }
        _ => bail!("`{key}` is no value"),
    }
}

/// A value as it is kept: a long one among the objects, by what it holds.
///
/// # Errors
/// The hub cannot be reached, or has no room.
pub fn wrapped(hub: &dyn Hub, key: &str, content: &[u8]) -> Result<Vec<u8>> {
    let content = packed(content);
    if content.len() <= VALUE_MAX {
        return Ok([&[0][..], &content].concat());
    }
    let name = format!("{key}-{}", &blake3::hash(&content).to_hex()[..16]);
    hub.put_object(&name, &content)?;
    Ok([&[1][..], name.as_bytes()].concat())
}

/// A checkpoint as bytes: the length of the line, the line, and the record of its state.
fn checkpoint_bytes(line: &CheckpointLine, snapshot: &[u8]) -> Result<Vec<u8>> {
    let line = serde_json::to_vec(line)?;
    Ok([&(line.len() as u64).to_le_bytes()[..], &line, snapshot].concat())
}

/// The line of a checkpoint, and whether its state is there.
fn checkpoint_of(bytes: &[u8]) -> Result<(CheckpointLine, bool)> {
    let (line, snapshot) = split(bytes)?;
    Ok((serde_json::from_slice(line)?, !snapshot.is_empty()))
}

/// The line and the record of the state.
pub(super) fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk().context("a checkpoint is cut off")?;
    let len = usize::try_from(u64::from_le_bytes(*len))?;
    rest.split_at_checked(len).context("a checkpoint is cut off")
}

/// The object with a module.
fn module_name(hash: u128) -> String {
    format!("module-{hash:032x}")
}

fn finding_key(id: &str) -> String {
    format!("f.{id}")
}

/// What names the way to an input.
fn way_of(steps: &[StepLine]) -> Result<u128> {
    let hash = blake3::hash(&serde_json::to_vec(steps)?);
    Ok(u128::from_le_bytes(*hash.as_bytes().first_chunk().context("a hash has 32 bytes")?))
}

/// What a worker counted, of what it saves.
fn tally_of(counters: &serde_json::Value, lists: &serde_json::Value) -> Result<Tally> {
    let mut tally = counters.clone();
    let fields = tally.as_object_mut().context("counters have names")?;
    fields.remove("checkpoints");
    fields.insert("counts".to_string(), lists["counts"].clone());
    Ok(serde_json::from_value(tally)?)
}

/// A feature as a campaign stores it, seen by no run of this worker.
fn stored(item: Item, program: &Program) -> Result<(u64, u64)> {
    let (slot, bucket) = (item.slot(), item.bucket());
    if slot >= SHOWN {
        ensure!(bucket == 0, "what is shown has no bucket");
        return Ok((u64::from(slot) << 32, 0));
    }
    let edge =
        program.edges().edges.get(slot as usize).with_context(|| format!("there is no edge {slot}"))?;
    Ok((u64::from(slot) << 32 | u64::from(edge.hash), u64::from(bucket) << RUN_BITS))
}

/// The name of this machine.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    name.trim().to_string()
}

impl Store for Shared {
    fn begin(&mut self, header: &Header, wasm: &[u8]) -> Result<()> {
        // The module comes first: where a header is, it is.
        let name = module_name(header.module.0);
        if self.hub.object(&name)?.is_none() {
            self.hub.put_object(&name, &packed(wasm))?;
        }
        let version = env!("CARGO_PKG_VERSION").to_string();
        let head = Head { format: FORMAT, version, header: header.clone() };
        if self.hub.replace("header", &serde_json::to_vec(&head)?, 0)?.is_none() {
            let found = self.header()?;
            ensure!(
                found.as_ref() == Some(header),
                "another campaign has just begun as {}: use another --campaign",
                self.hub.name()
            );
        }
        Ok(())
    }

    fn module(&self) -> Result<Vec<u8>> {
        let name = self.hub.name();
        let header = self.header()?.with_context(|| format!("the campaign {name} has not begun"))?;
        let module = self
            .hub
            .object(&module_name(header.module.0))?
            .with_context(|| format!("{name} has no module"))?;
        let wasm = unpacked(&module)?;
        let is_same = xxhash_rust::xxh3::xxh3_128(&wasm) == header.module.0;
        ensure!(is_same, "the module of {name} is not the one that the campaign was begun with");
        Ok(wasm)
    }

    fn has_history(&self, id: u64) -> bool {
        self.histories.contains_key(&id)
    }

    /// Hands over what is new to all. What fails is handed over the next time.
    fn save(&mut self, state: &Saved<'_>) -> Result<()> {
        for (id, parent, steps) in &state.histories {
            let lines = file::lines_of(state.program, steps);
            self.histories.entry(*id).or_insert((*parent, lines));
        }
        let seen = state.edges.iter().map(|(name, run)| {
            let slot = (name >> 32) as u32;
            match slot >= SHOWN {
                true => (Item::new(slot, 0), *run),
                false => (Item::new(slot, (run >> RUN_BITS) as u32), run & ((1 << RUN_BITS) - 1)),
            }
        });
        // What closer looks show has no end, and would drown all else.
        let is_shared =
            |item: Item| item.slot() < SHOWN || FeatureKind::of(item.slot()) == FeatureKind::Observed;
        let is_new = |item: Item| is_shared(item) && !self.there.coverage.has(item);
        let new: Vec<(Item, u64)> = seen.filter(|(item, _)| is_new(*item)).collect();
        (self.counters, self.lists) = (state.counters.clone(), state.lists.clone());
        let mut runs: BTreeMap<u64, Vec<Item>> = BTreeMap::new();
        new.iter().for_each(|(item, run)| runs.entry(*run).or_default().push(*item));
        self.send_checkpoints(state, &runs)?;
        self.send_findings(state)?;
        self.send_coverage(&new.iter().map(|(item, _)| *item).collect())?;
        self.send_tally(false)
    }

    fn load(&mut self, program: &Program) -> Result<Loaded> {
        let (mut values, mut read) = (Vec::new(), self.read);
        loop {
            let changes = self.hub.changes(&PREFIXES, read, u64::MAX)?;
            let Some((_, last)) = changes.values.last() else { break };
            read = last.revision;
            values.extend(changes.values);
            if changes.left == 0 {
                break;
            }
        }
        Ok(self.loaded(values, program))
    }

    fn load_steps(&self, program: &Program) -> Result<Steps> {
        let mut shared = Shared::new(self.hub.clone(), self.worker);
        let Loaded { checkpoints, histories, findings, .. } = shared.load(program)?;
        Ok((checkpoints.into_iter().map(|(record, _)| record).collect(), histories, findings))
    }

    fn load_traces(&self, program: &Program) -> Result<Vec<(Record, Result<Trace>)>> {
        let (records, histories, _) = self.load_steps(program)?;
        let steps: BTreeMap<u64, Trace> = histories.into_iter().map(|(id, _, steps)| (id, steps)).collect();
        let trace = |record: &Record| steps.get(&record.history).cloned().context("a history is missing");
        Ok(records.into_iter().map(|record| (record.clone(), trace(&record))).collect())
    }

    fn collect_garbage(&mut self) -> Result<Collected> {
        let before = self.bytes()?;
        let blobs = super::states::collect(&*self.hub)?;
        Ok(Collected { before, after: self.bytes()?, blobs, histories: 0 })
    }

    fn bytes(&self) -> Result<u64> {
        let held = self.hub.held()?;
        Ok(held.values + held.parts + held.objects)
    }

    fn news(&mut self, program: &Program) -> Result<Option<Loaded>> {
        let changes = self.hub.changes(&PREFIXES, self.read, READ_MAX)?;
        self.left = changes.left;
        let loaded = self.loaded(changes.values, program);
        let is_empty = loaded.edges.is_empty() && loaded.checkpoints.is_empty() && loaded.findings.is_empty();
        Ok((!is_empty).then_some(loaded))
    }

    fn claim(&mut self, id: &str, finding: &serde_json::Value) -> Result<Claim> {
        let (key, name) = (finding_key(id), self.name());
        for _ in 0..TRIES {
            let (value, revision) = match self.finding(id)? {
                Some((FindingValue { trace: Some(trace), .. }, _)) => return Ok(Claim::Done(trace)),
                Some((FindingValue { shrinks: Some(other), .. }, _))
                    if other != name && is_alive(&*self.hub, (&name, &other))? =>
                {
                    return Ok(Claim::Theirs);
                }
                Some((value, revision)) => (value, revision),
                None => (FindingValue { finding: finding.clone(), shrinks: None, trace: None }, 0),
            };
            let value = FindingValue { shrinks: Some(name.clone()), ..value };
            let bytes = wrapped(&*self.hub, &key, &serde_json::to_vec(&value)?)?;
            if self.hub.replace(&key, &bytes, revision)?.is_some() {
                self.there.findings.insert(id.to_string());
                return Ok(Claim::Ours);
            }
        }
        Err(self.busy())
    }

    fn is_of_others(&self, id: &str) -> bool {
        self.there.theirs.contains(id)
    }

    fn settle(&mut self, id: &str, trace: String) {
        self.shrunk.insert(id.to_string(), trace);
    }

    fn trace_of(&self, id: &str) -> Result<Option<String>> {
        Ok(self.finding(id)?.and_then(|(value, _)| value.trace))
    }

    fn others(&self) -> Result<Vec<(u128, Tally)>> {
        let own = format!("t.{}", self.name());
        let changes = self.hub.changes(&["t"], 0, u64::MAX)?;
        let others = changes.values.iter().filter(|(key, _)| *key != own);
        let tally = |(key, value): &(String, Value)| {
            let name = u128::from_str_radix(key.strip_prefix("t.")?, 16).ok()?;
            Some((name, serde_json::from_slice(&unpacked(&value.bytes).ok()?).ok()?))
        };
        Ok(others.filter_map(tally).collect())
    }

    fn leave(&mut self) -> Result<()> {
        self.send_tally(true)?;
        self.hub.remove(&format!("w.{}", self.name()))
    }
}

/// What is read of others.
const PREFIXES: [&str; 3] = [coverage::PREFIX, "c", "f"];
