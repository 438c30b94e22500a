//! What keeping a campaign on disk costs.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use spelunk::choice::Chooser;
use spelunk::file::Hex;
use spelunk::machine::{Limits, Machine, Program, Selection, Snapshot};
use spelunk::search::energy::News;
use spelunk::store::{Embedded, Header, Record, Saved, Store as _};
use spelunk::target::{Target, perform};
use spelunk::trace::{Action, Trace};

use super::table::Table;

/// Checkpoints that are saved.
const COUNT: u64 = 10_000;
/// Of how many the file has new ones each time it is saved.
const BATCH: u64 = 500;

const GUEST: &str = include_str!("../../guests/scattered.wat");

/// Checkpoints of 4 MiB, each of which changes three of its places.
pub(crate) fn store(table: &mut Table) -> Result<()> {
    let wasm = wat::parse_str(GUEST)?;
    let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default())?);
    let folder = tempfile::tempdir()?;
    let mut store = Embedded::open(folder.path())?.store;
    let header =
        Header { module: Hex(program.hash()), target: "bench".into(), settings: serde_json::Value::Null };
    store.begin(&header, &wasm)?;
    let (states, histories, held) = states(&program)?;
    let saving = save(&mut store, &program, &states, &histories)?;
    let hashes: Vec<u128> = states.iter().map(Snapshot::hash).collect();
    drop((store, states));
    let what = format!("{COUNT} checkpoints of 4 MiB");
    let start = Instant::now();
    let mut store = Embedded::open(folder.path())?.store;
    let opened = start.elapsed().as_secs_f64();
    let loaded = store.load(&program)?;
    let loading = start.elapsed().as_secs_f64();
    let read = loaded.checkpoints.iter().map(|(_, state)| state.as_ref().map(Snapshot::hash));
    ensure!(read.eq(hashes.into_iter().map(Some)), "what is loaded is what was saved");
    let bytes = store.bytes()? as f64;
    let start = Instant::now();
    let collected = store.collect_garbage()?;
    let collecting = start.elapsed().as_secs_f64();
    let mib = |bytes: f64| format!("{:.1} MiB", bytes / f64::from(1 << 20));
    let size = format!("{:.1} KiB each", bytes / COUNT as f64 / 1024.0);
    table.cost(
        &format!("{what}, in memory"),
        &mib(held as f64),
        "",
        held as f64 / COUNT as f64 / f64::from(4 << 20),
    );
    table.cost(&format!("{what}, the file"), &mib(bytes), &size, bytes / COUNT as f64 / f64::from(4 << 20));
    let each = |seconds: f64| format!("{:.0} µs each", seconds / COUNT as f64 * 1e6);
    table.cost(&format!("{what}, saved {BATCH} at a time"), &format!("{saving:.2} s"), &each(saving), saving);
    let beside = format!("{opened:.2} s of it to open and verify");
    table.cost(&format!("{what}, opened and loaded"), &format!("{loading:.2} s"), &beside, loading / saving);
    let after = collected.after as f64;
    let beside = format!("{} after", mib(after));
    table.cost(&format!("{what}, compacted"), &format!("{collecting:.2} s"), &beside, after / bytes);
    Ok(())
}

/// Saves them a batch at a time; the seconds that it takes.
fn save(store: &mut Embedded, program: &Program, states: &[Snapshot], histories: &[Trace]) -> Result<f64> {
    let mut saving = 0.0;
    for end in (BATCH..=COUNT).step_by(BATCH as usize) {
        let start = Instant::now();
        store.save(&Saved {
            program,
            counters: serde_json::Value::Null,
            checkpoints: (1..=end).zip(states).map(|(id, state)| (record(id), Some(state))).collect(),
            histories: (1..=end)
                .zip(histories)
                .filter(|(id, _)| !store.has_history(*id))
                .map(|(id, steps)| (id, (id > 1).then(|| id - 1), steps))
                .collect(),
            edges: &[],
            findings: Vec::new(),
            lists: serde_json::Value::Null,
        })?;
        saving += start.elapsed().as_secs_f64();
    }
    Ok(saving)
}

/// A chain of states, the step to each, and the bytes that all of them hold.
fn states(program: &Arc<Program>) -> Result<(Vec<Snapshot>, Vec<Trace>, usize)> {
    let mut machine = Machine::new(program.clone())?;
    let mut chooser = Chooser::default();
    machine.step(Action::Rule(0), &mut chooser);
    let (mut states, mut histories) = (Vec::new(), Vec::new());
    for seed in 1..=COUNT {
        let mut steps = Trace::default();
        perform(&mut machine, &mut chooser, (Action::Rule(1), seed), [], &mut steps);
        states.push(machine.snapshot().context("this module has snapshots")?);
        histories.push(steps);
    }
    let held = machine.saved_bytes();
    Ok((states, histories, held))
}

fn record(id: u64) -> Record {
    Record {
        id,
        parent: (id > 1).then(|| id - 1),
        state: Some(u128::from(id)),
        faults: Vec::new(),
        energy: 1.0,
        new_edges: 1,
        step: 1,
        run: id,
        selected: 0,
        history: id,
        news: News::Edges,
        work: 0,
    }
}
