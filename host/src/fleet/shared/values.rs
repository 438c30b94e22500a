//! What stands at a hub under its keys.

use super::*;

/// A checkpoint on its way.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckpointLine {
    pub(super) state: Option<Hex>,
    pub(super) faults: Vec<bool>,
    pub(super) new_edges: u32,
    pub(super) step: u32,
    pub(super) news: News,
    pub(super) work: u64,
    /// What its run saw first, as far as its worker knew.
    pub(super) features: Vec<Item>,
    pub(super) steps: Vec<StepLine>,
}

/// A finding on its way.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::fleet) struct FindingValue {
    /// As the store has it.
    pub(in crate::fleet) finding: serde_json::Value,
    /// The worker that shrinks it.
    #[serde(default)]
    pub(in crate::fleet) shrinks: Option<String>,
    /// The file of its trace, once it is shrunk.
    #[serde(default)]
    pub(in crate::fleet) trace: Option<String>,
}

/// What must stand in a finding.
#[derive(Deserialize)]
pub(super) struct Told {
    pub(super) failure: Failure,
    pub(super) steps: Vec<StepLine>,
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
    /// Values of others that it could not read.
    pub unreadable: u64,
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

impl CheckpointLine {
    pub(super) fn record(self, id: u64) -> Record {
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

fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_".contains(&byte)
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
            let name = std::str::from_utf8(name).ok().filter(|name| name.bytes().all(is_in_name));
            let object = hub.object(name.with_context(|| format!("`{key}` is no value"))?)?;
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
pub(super) fn checkpoint_bytes(line: &CheckpointLine, snapshot: &[u8]) -> Result<Vec<u8>> {
    let line = serde_json::to_vec(line)?;
    Ok([&(line.len() as u64).to_le_bytes()[..], &line, snapshot].concat())
}

/// The line of a checkpoint, and whether its state is there.
pub(super) fn checkpoint_of(bytes: &[u8]) -> Result<(CheckpointLine, bool)> {
    let (line, snapshot) = split(bytes)?;
    Ok((serde_json::from_slice(line)?, !snapshot.is_empty()))
}

/// The line and the record of the state.
pub(in crate::fleet) fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk().context("a checkpoint is cut off")?;
    let len = usize::try_from(u64::from_le_bytes(*len))?;
    rest.split_at_checked(len).context("a checkpoint is cut off")
}

/// The object with a module.
pub(super) fn module_name(hash: u128) -> String {
    format!("module-{hash:032x}")
}

pub(super) fn finding_key(id: &str) -> String {
    format!("f.{id}")
}

/// What names the way to an input.
pub(super) fn way_of(steps: &[StepLine]) -> Result<u128> {
    let hash = blake3::hash(&serde_json::to_vec(steps)?);
    Ok(u128::from_le_bytes(*hash.as_bytes().first_chunk().context("a hash has 32 bytes")?))
}

/// What a worker counted, of what it saves.
pub(super) fn tally_of(counters: &serde_json::Value, lists: &serde_json::Value) -> Result<Tally> {
    let mut tally = counters.clone();
    let fields = tally.as_object_mut().context("counters have names")?;
    fields.remove("checkpoints");
    fields.insert("counts".to_string(), lists["counts"].clone());
    Ok(serde_json::from_value(tally)?)
}

/// A feature as a campaign stores it, seen by no run of this worker.
pub(super) fn stored(item: Item, program: &Program) -> Result<(u64, u64)> {
    let (slot, bucket) = (item.slot(), item.bucket());
    if slot >= SHOWN {
        ensure!(bucket == 0, "what is shown has no bucket");
        return Ok((u64::from(slot) << 32, 0));
    }
    ensure!((slot as usize) < program.edges().edges.len(), "there is no edge {slot}");
    Ok((name_of(slot, program), u64::from(bucket) << RUN_BITS))
}

/// All steps to the history with this number, by the history that each continues and the steps since.
pub(super) fn steps_to(
    history: u64,
    histories: &BTreeMap<u64, (Option<u64>, &Trace)>,
    program: &Program,
) -> Result<Vec<StepLine>> {
    let (mut chain, mut next) = (Vec::new(), Some(history).filter(|id| *id > 0));
    while let Some(id) = next {
        let (parent, steps) = histories.get(&id).with_context(|| format!("history {id} is missing"))?;
        chain.push(*steps);
        next = parent.filter(|id| *id > 0);
    }
    Ok(chain.into_iter().rev().flat_map(|steps| file::lines_of(program, steps)).collect())
}

/// The name of this machine.
pub(super) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    name.trim().to_string()
}
