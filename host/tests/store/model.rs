//! All that a campaign is, kept naively beside the store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use serde_json::json;
use spelunk::file::Hex;
use spelunk::machine::{Machine, Program, Snapshot};
use spelunk::search::energy::News;
use spelunk::store::{Embedded, Header, Loaded, Record, Saved, Store as _};
use spelunk::target::Target;
use spelunk::trace::Trace;

use super::guest::step;

pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("store").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

pub(crate) fn header(program: &Program) -> Header {
    Header { module: Hex(program.hash()), target: "everything".into(), settings: json!({"seed": 1}) }
}

/// All that a campaign is, kept naively.
#[derive(Clone)]
pub(crate) struct Model {
    counters: serde_json::Value,
    pub(crate) checkpoints: BTreeMap<u64, (Record, Option<Snapshot>)>,
    pub(crate) histories: BTreeMap<u64, (Option<u64>, Trace)>,
    edges: Vec<(u64, u64)>,
    findings: BTreeMap<String, serde_json::Value>,
    lists: serde_json::Value,
}

impl Model {
    pub(crate) fn new() -> Model {
        Model {
            counters: json!(null),
            checkpoints: BTreeMap::new(),
            histories: BTreeMap::new(),
            edges: Vec::new(),
            findings: BTreeMap::new(),
            lists: json!(null),
        }
    }

    /// Goes on for a while; returns the edges that are new.
    pub(crate) fn advance(&mut self, machine: &mut Machine, rng: &mut Xoshiro256PlusPlus) -> Vec<(u64, u64)> {
        self.counters = json!({"runs": rng.random::<u32>(), "steps": u64::MAX});
        let parents: Vec<u64> = self.checkpoints.keys().copied().collect();
        for _ in 0..rng.random_range(0..6) {
            let parent = parents.get(rng.random_range(0..parents.len().max(1))).copied();
            let mut steps = Trace::default();
            match parent {
                Some(parent) => machine.restore(self.checkpoints[&parent].1.as_ref().unwrap()),
                None => machine.reset(),
            }
            (0..rng.random_range(1..5)).for_each(|_| step(machine, rng, &mut steps));
            steps.set_state(machine.state());
            let id = 1 + self.histories.keys().last().copied().unwrap_or_default();
            let history = parent.map(|parent| self.checkpoints[&parent].0.history);
            self.histories.insert(id, (history, without_spans(&steps)));
            let record = Record {
                id,
                parent,
                state: rng.random_bool(0.9).then(|| rng.random()),
                faults: vec![rng.random()],
                energy: rng.random::<f64>() / 3.0,
                new_edges: rng.random_range(0..4),
                step: rng.random(),
                run: rng.random(),
                selected: 0,
                history: id,
                news: News::Edges,
                work: 0,
            };
            self.checkpoints.insert(id, (record, machine.snapshot()));
        }
        for (record, _) in self.checkpoints.values_mut() {
            if rng.random_bool(0.3) {
                record.selected += 1;
                record.energy *= 0.95;
            }
        }
        self.checkpoints.retain(|_, _| rng.random_bool(0.9));
        let edges: Vec<(u64, u64)> = (0..rng.random_range(0..5)).map(|_| rng.random()).collect();
        self.edges.extend(&edges);
        if rng.random_bool(0.3) {
            self.findings.insert(format!("f{}", rng.random_range(0..5)), json!({"run": rng.random::<u32>()}));
        }
        if rng.random_bool(0.1) {
            self.findings.pop_first();
        }
        self.lists = json!([rng.random_range(0..2)]);
        edges
    }

    pub(crate) fn save(&self, store: &mut Embedded, program: &Program, edges: &[(u64, u64)]) -> Result<()> {
        store.save(&Saved {
            program,
            counters: self.counters.clone(),
            checkpoints: self.checkpoints.values().map(|(r, s)| (r.clone(), s.as_ref())).collect(),
            histories: self
                .histories
                .iter()
                .filter(|(id, _)| !store.has_history(**id))
                .map(|(id, (parent, steps))| (*id, *parent, steps))
                .collect(),
            edges,
            findings: self.findings.clone().into_iter().collect(),
            lists: self.lists.clone(),
        })
    }

    /// Whether this is what was loaded; of a store that is new, `null` stands for what there is none of.
    pub(crate) fn is(&self, loaded: &Loaded) -> bool {
        let checkpoints = self.checkpoints.values().map(|(record, snapshot)| (record, hash(snapshot)));
        let loaded_checkpoints = loaded.checkpoints.iter().map(|(record, snapshot)| (record, hash(snapshot)));
        let histories = self.histories.iter().map(|(id, (parent, steps))| (*id, *parent, steps));
        let loaded_histories = loaded.histories.iter().map(|(id, parent, steps)| (*id, *parent, steps));
        checkpoints.eq(loaded_checkpoints)
            && histories.eq(loaded_histories)
            && self.counters == loaded.counters
            && self.edges == loaded.edges
            && self.findings.iter().eq(loaded.findings.iter().map(|(id, finding)| (id, finding)))
            && self.lists == loaded.lists
    }
}

fn hash(snapshot: &Option<Snapshot>) -> Option<u128> {
    snapshot.as_ref().map(Snapshot::hash)
}

pub(crate) fn without_spans(trace: &Trace) -> Trace {
    let mut copy = Trace::default();
    for step in trace.steps() {
        copy.push(step.action, step.seed);
        copy.chose(&mut trace.choices(step).to_vec(), &mut Vec::new());
        if let Some(state) = step.state {
            copy.set_state(state);
        }
    }
    copy
}
