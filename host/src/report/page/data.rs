//! What the page shows, as JSON.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value as Json, json};

use super::lineage::Lineage;
use super::told::{Told, told};
use crate::budget::Budget;
use crate::campaign::Campaign;
use crate::changes::Change;
use crate::coverage::{FeatureKind, slot_of};
use crate::machine::{Machine, Snapshot};
use crate::report::{end, story};
use crate::search::{Called, Knowledge};
use crate::session::{Guest, Status};
use crate::story::Line;
use crate::symbols::{Frame, context};
use crate::target::Target;
use crate::text;

/// Findings that are shown, steps of one, and characters of a text in it.
const FINDINGS_MAX: usize = 200;
const STEPS_MAX: usize = 1000;
const TEXT_MAX: usize = 2000;
/// Points of the curve, and functions that are listed.
const POINTS_MAX: usize = 1000;
const FUNCTIONS_MAX: usize = 10_000;
/// Lines of the source above and below the one that is at fault.
const CONTEXT: u32 = 5;

/// All that the page shows.
pub(super) fn of(
    guest: &Guest<'_>,
    campaign: &Campaign,
    machine: &mut Machine,
    known: &Knowledge<Snapshot>,
    budget: &Budget,
) -> Result<Json> {
    let shown = known.findings.iter().take(FINDINGS_MAX);
    let findings: Vec<Json> = shown.map(|found| finding(&told(guest, machine, found, budget))).collect();
    let lineage = Lineage::of(machine, known, &|| budget.is_over());
    let program = machine.program().clone();
    let status = Status::of(campaign, known, &program)?;
    let functions = functions(machine, known);
    let shown = functions.len().min(FUNCTIONS_MAX);
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "target": shown_line(&status.target),
        "folder": shown_line(&status.folder.display().to_string()),
        "module": String::from(status.module),
        "settings": settings(&status),
        "runs": status.runs, "rejected": status.rejected, "steps": status.steps,
        "edges": status.edges, "edges_hit": status.edges_hit,
        "checkpoints": { "kept": status.checkpoints.kept, "saved": status.checkpoints.saved },
        "is_function": machine.is_function(),
        "discovery": status.discovery.map(end::discovery_text),
        "bytes": status.bytes,
        "findings_left_out": known.findings.len() - findings.len(),
        "findings": findings,
        "curve": curve(known),
        "tree": tree(&lineage),
        "called": called(machine, &known.tally.called),
        "properties": properties(known),
        "functions": &functions[..shown],
        "functions_left_out": functions.len() - shown,
        "is_cut": budget.is_over(),
    }))
}

/// As a part of a line, and not longer than is shown.
fn shown_line(text: &str) -> String {
    cut(&text::line(text))
}

/// As lines.
fn shown_block(text: &str) -> String {
    cut(&text::printable(text))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_string(),
    }
}

/// What the campaign was begun with, and what is not as usual.
fn settings(status: &Status) -> Json {
    let usual = serde_json::to_value(crate::campaign::Settings::default()).unwrap_or_default();
    let own = serde_json::to_value(&status.settings).unwrap_or_default();
    let Json::Object(own) = own else { return Json::Null };
    let changed = own.into_iter().filter(|(name, value)| name == "seed" || usual[name] != *value);
    changed.map(|(name, value)| (name, Json::String(shown_line(&value.to_string())))).collect()
}

fn finding(told: &Told) -> Json {
    let Told { finding, remark } = told;
    let lines: Vec<&Line> = story::told(&finding.story).collect();
    let (file, first, context) = match &finding.excerpt {
        Some(excerpt) => {
            let (first, lines) = context(excerpt, CONTEXT);
            (Some(shown_line(&excerpt.file.display().to_string())), first, lines)
        }
        None => (None, 0, Vec::new()),
    };
    json!({
        "id": finding.failure.id(),
        "kind": finding.failure.kind.to_string(),
        "failure": shown_block(&finding.failure.to_string()),
        "place": finding.failure.place.as_deref().map(shown_line),
        "run": finding.run,
        "minimal": finding.is_minimal,
        "steps_before": finding.steps_before,
        "steps": lines.iter().take(STEPS_MAX).map(|line| step(line)).collect::<Vec<_>>(),
        "steps_left_out": lines.len().saturating_sub(STEPS_MAX),
        "cause": finding.cause.as_ref().map(|cause| shown_block(&cause.failure.to_string())),
        "stack": finding.stack().iter().map(frame).collect::<Vec<_>>(),
        "source": { "file": file, "first": first, "at": finding.excerpt.as_ref().map(|excerpt| excerpt.line),
            "lines": context.iter().map(|line| cut(&text::line(&line.replace('\t', "    ")))).collect::<Vec<_>>() },
        "trace": shown_line(&finding.trace.display().to_string()),
        "reproduce": cut(&finding.reproduce),
        "remark": remark.as_deref().map(shown_line),
    })
}

fn step(line: &Line) -> Json {
    let pairs = |pairs: &[(String, String)]| -> Vec<[String; 2]> {
        pairs.iter().map(|(name, value)| [shown_line(name), shown_line(value)]).collect()
    };
    let names: Vec<String> = line.free.iter().map(|at| shown_line(&line.told.args[*at].0)).collect();
    json!({
        "name": shown_line(&line.name),
        "args": pairs(&line.told.args),
        "chosen": line.told.chosen.iter().take(STEPS_MAX).map(|value| shown_line(value)).collect::<Vec<_>>(),
        "changes": line.changes.list.iter().map(Change::to_string).map(|change| cut(&change)).collect::<Vec<_>>(),
        "changes_left_out": line.changes.left_out,
        "notes": line.told.notes.iter().map(|note| shown_block(note)).collect::<Vec<_>>(),
        "free": names,
        "droppable": line.is_droppable,
    })
}

fn frame(frame: &Frame) -> Json {
    json!({ "text": shown_line(&frame.to_string()), "role": frame.role })
}

/// How many edges were seen after which run, at each run that saw one first; of many, some, with the last.
fn curve(known: &Knowledge<Snapshot>) -> Json {
    let mut edges = std::collections::BTreeSet::new();
    let mut points: Vec<(u64, usize)> = Vec::new();
    for (feature, run) in &known.features {
        let is_new = FeatureKind::of(*feature) == FeatureKind::Hits && edges.insert(slot_of(*feature));
        match points.last_mut() {
            Some(last) if is_new && last.0 >= *run => last.1 = edges.len(),
            _ if is_new => points.push((*run, edges.len())),
            _ => {}
        }
    }
    let each = points.len().div_ceil(POINTS_MAX).max(1);
    let last = points.len().saturating_sub(1);
    points
        .iter()
        .enumerate()
        .filter(|(at, _)| at % each == 0 || *at == last)
        .map(|(_, point)| json!(point))
        .collect()
}

/// The tree, an array a property.
fn tree(lineage: &Lineage<'_>) -> Json {
    let nodes = &lineage.nodes;
    let each = |f: &dyn Fn(&super::lineage::Node<'_>) -> Json| nodes.iter().map(f).collect::<Vec<Json>>();
    json!({
        "id": each(&|node| json!(node.checkpoint.id)),
        "parent": each(&|node| node.parent.map_or(json!(-1), |parent| json!(parent))),
        "run": each(&|node| json!(node.checkpoint.run)),
        "depth": each(&|node| json!(node.checkpoint.step)),
        "new": each(&|node| json!(node.checkpoint.new_edges)),
        "energy": each(&|node| json!((node.checkpoint.energy * 1000.0).round() / 1000.0)),
        "selected": each(&|node| json!(node.checkpoint.selected)),
        "steps": each(&|node| json!(node.steps)),
        "texts": lineage.texts,
        "left_out": lineage.left_out,
    })
}

/// How often each rule was called and found an edge: in all, and while each fault was on.
fn called(machine: &Machine, called: &Called) -> Json {
    let faults = machine.faults();
    let size = (machine.rules().len(), faults.len());
    let row = |(rule, name): (usize, &str)| {
        let cells: Vec<[u64; 2]> =
            (0..=faults.len()).map_while(|fault| called.of(rule, fault, size)).collect();
        json!({ "name": shown_line(name), "cells": cells })
    };
    json!({
        "faults": faults.iter().map(|name| shown_line(name)).collect::<Vec<_>>(),
        "rules": machine.rules().iter().map(|rule| &*rule.name).enumerate().map(row).collect::<Vec<_>>(),
    })
}

fn properties(known: &Knowledge<Snapshot>) -> Vec<Json> {
    let property = |property: &crate::property::Property| {
        json!({
            "kind": property.kind.to_string(), "name": shown_line(&property.name), "reached": property.reached,
            "held": property.held, "unmet": property.is_unmet(),
        })
    };
    known.tally.counts.properties.iter().map(property).collect()
}

/// Each function that has edges, how many, and how many of them were seen; those that lack most first.
fn functions(machine: &Machine, known: &Knowledge<Snapshot>) -> Vec<Json> {
    let program = machine.program();
    let map = program.edges();
    let mut counts = BTreeMap::<u32, (u32, u32)>::new();
    for (slot, edge) in (0..).zip(&map.edges) {
        let count = counts.entry(edge.function).or_default();
        count.0 += 1;
        count.1 += u32::from(known.seen.contains(slot));
    }
    let mut all: Vec<(u32, (u32, u32))> = counts.into_iter().collect();
    all.sort_by_key(|(function, (edges, hit))| (std::cmp::Reverse(edges - hit), *function));
    let name = |function: u32| {
        map.functions.get(function as usize).map_or_else(String::new, |f| shown_line(&f.name))
    };
    all.into_iter().map(|(function, (edges, hit))| json!([name(function), edges, hit])).collect()
}
