//! The report of an exploration: coverage by function, the lineage of checkpoints, properties, findings.

use std::collections::BTreeMap;

use crate::coverage::FeatureSet;
use crate::machine::{Machine, Snapshot};
use crate::search::{Explorer, Knowledge, Way, Ways, Yield};
use crate::session::{CalledRule, Finding, called_rules};
use serde_json::{Value, json};
use spelunk_instrumenter::EdgeMap;

/// The report as JSON.
pub fn coverage(explorer: &mut Explorer<'_, Machine>, findings: &[Finding], seed: Option<u64>) -> String {
    let progress = explorer.progress();
    let checkpoints: Vec<Value> = explorer
        .checkpoints()
        .iter()
        .map(|c| {
            json!({
                "id": c.id, "parent": c.parent, "run": c.run, "step": c.step, "new_edges": c.new_edges,
                "energy": c.energy, "selected": c.selected,
            })
        })
        .collect();
    let findings: Vec<Value> = findings
        .iter()
        .map(|f| {
            let trace = f.trace.display().to_string();
            json!({ "id": f.failure.id(), "failure": f.failure, "run": f.run, "trace": trace })
        })
        .collect();
    let functions = functions(explorer);
    let report = json!({
        "seed": seed,
        "runs": progress.runs,
        "steps": progress.steps,
        "edges": explorer.target().program().edges().edges.len(),
        "edges_hit": progress.edges,
        "discovery": super::end::discovery_json(explorer.knowledge().discovery()),
        "features": features_json(explorer.knowledge()),
        "ways": ways_json(&explorer.knowledge().tally.ways),
        "rules": rules_json(explorer),
        "functions": functions,
        "checkpoints": { "saved": progress.checkpoints, "kept": checkpoints },
        "properties": explorer.counts().properties.iter().collect::<Vec<_>>(),
        "events": explorer.counts().events,
        "findings": findings,
    });
    format!("{report:#}\n")
}

/// The features that were seen, by their kind.
fn features_json(known: &Knowledge<Snapshot>) -> Value {
    known
        .features_by_kind()
        .into_iter()
        .map(|(kind, count)| (format!("{}s", kind.name()), json!(count)))
        .collect()
}

/// What runs came to, by the way in which they began.
fn ways_json(ways: &Ways) -> Vec<Value> {
    let way = |(way, came_to): (Way, Yield)| {
        let Yield { runs, edges, shown } = came_to;
        json!({ "way": way.name(), "runs": runs, "runs_with_new_edges": edges, "runs_with_new_numbers": shown })
    };
    ways.taken().map(way).collect()
}

/// How often each rule was called and found an edge, and how likely the next call does.
fn rules_json(explorer: &mut Explorer<'_, Machine>) -> Vec<Value> {
    let program = explorer.target().program().clone();
    let rules = called_rules(explorer.knowledge(), &program).into_iter();
    let rule = |rule: CalledRule| {
        let discovery = super::end::discovery_json(rule.discovery);
        json!({ "name": rule.name, "calls": rule.calls, "found": rule.found, "discovery": discovery })
    };
    rules.map(rule).collect()
}

/// Edges and edges seen of each function that has some.
fn functions(explorer: &mut Explorer<'_, Machine>) -> Vec<Value> {
    let program = explorer.target().program().clone();
    let map = program.edges();
    let name = |function: u32| map.functions.get(function as usize).map(|f| &f.name);
    by_function(map, explorer.seen())
        .into_iter()
        .map(|(function, (edges, hit))| json!({ "function": name(function), "edges": edges, "hit": hit }))
        .collect()
}

/// The edges of each function that has some, and those of them that were seen.
pub(super) fn by_function(map: &EdgeMap, seen: &FeatureSet) -> BTreeMap<u32, (u32, u32)> {
    let mut counts = BTreeMap::<u32, (u32, u32)>::new();
    for (slot, edge) in (0..).zip(&map.edges) {
        let count = counts.entry(edge.function).or_default();
        count.0 += 1;
        count.1 += u32::from(seen.contains(slot));
    }
    counts
}
