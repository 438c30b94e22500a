//! What the page shows, as JSON.

use anyhow::Result;
use serde_json::{Value as Json, json};

use super::embedded;
use super::lineage::Lineage;
use super::told::{Told, told};
use crate::budget::Budget;
use crate::campaign::Campaign;
use crate::changes::Change;
use crate::machine::{Machine, Snapshot};
use crate::report::coverage::by_function;
use crate::report::{end, story};
use crate::search::{Called, Knowledge};
use crate::session::{Guest, Status};
use crate::story::Line;
use crate::symbols::{Frame, context};
use crate::target::Target;
use crate::text;

/// Findings that are shown, and bytes of all that is said of them; steps of one, bytes of those of all; characters of a text, and bytes
/// of a stack.
const FINDINGS_MAX: usize = 200;
const FINDINGS_BYTES_MAX: usize = 3 << 20;
const STEPS_MAX: usize = 1000;
const TEXT_MAX: usize = 2000;
const STEPS_BYTES_MAX: usize = 2 << 20;
const STACK_BYTES_MAX: usize = 64 << 10;
/// Points of the curve; functions, rules, faults and properties that are listed, what bytes they take, and characters of a name.
const POINTS_MAX: usize = 1000;
const FUNCTIONS_MAX: usize = 10_000;
const FUNCTIONS_BYTES_MAX: usize = 1 << 20;
const RULES_MAX: usize = 1000;
const RULES_BYTES_MAX: usize = 1 << 19;
const FAULTS_MAX: usize = 32;
const PROPERTIES_MAX: usize = 1000;
const PROPERTIES_BYTES_MAX: usize = 1 << 19;
const NAME_MAX: usize = 200;
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
    let mut room = STEPS_BYTES_MAX;
    let shown = shown.map(|found| finding(&told(guest, machine, found, budget), &mut room));
    let findings = fitting(shown, FINDINGS_BYTES_MAX);
    let lineage = Lineage::of(machine, known, &|| budget.is_over());
    let program = machine.program().clone();
    let status = Status::of(campaign, known, &program)?;
    let (functions, functions_left_out) = functions(machine, known);
    let (properties, properties_left_out) = properties(known);
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
        "health": status.health.iter().map(|symptom| cut(&symptom.text)).collect::<Vec<_>>(),
        "findings_left_out": known.findings.len() - findings.len(),
        "findings": findings,
        "curve": curve(known),
        "tree": tree(&lineage),
        "called": called(machine, &known.tally.called),
        "properties": properties, "properties_left_out": properties_left_out,
        "functions": functions, "functions_left_out": functions_left_out,
        "is_cut": budget.is_over(),
    }))
}

/// As many values, from the first on, as so many bytes of a page hold.
fn fitting(values: impl Iterator<Item = Json>, mut room: usize) -> Vec<Json> {
    let fits = |value: Json| {
        room = room.checked_sub(bytes(&value))?;
        Some(value)
    };
    values.map_while(fits).collect()
}

/// Bytes that a value takes in a list on the page.
pub(super) fn bytes(value: &Json) -> usize {
    embedded(value).len() + 1
}

/// As a part of a line, and not longer than is shown.
pub(super) fn shown_line(text: &str) -> String {
    cut(&text::line(text))
}

/// As lines.
fn shown_block(text: &str) -> String {
    cut(&text::printable(text))
}

fn cut(text: &str) -> String {
    cut_at(text, TEXT_MAX)
}

/// A name, of which there may be many.
pub(super) fn name(text: &str) -> String {
    cut_at(&text::line(text), NAME_MAX)
}

fn cut_at(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
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

/// The finding, the steps of which take what they need of `room`, in bytes.
fn finding(told: &Told, room: &mut usize) -> Json {
    let Told { finding, remark } = told;
    let lines: Vec<&Line> = story::told(&finding.story).collect();
    let mut steps = Vec::new();
    for line in lines.iter().take(STEPS_MAX) {
        let step = step(line);
        let Some(left) = room.checked_sub(bytes(&step)) else { break };
        *room = left;
        steps.push(step);
    }
    let (file, first, context) = match &finding.excerpt {
        Some(excerpt) => {
            let (first, lines) = context(excerpt, CONTEXT);
            (Some(shown_line(&excerpt.file.display().to_string())), first, lines)
        }
        None => (None, 0, Vec::new()),
    };
    let stack = fitting(finding.stack().iter().map(frame), STACK_BYTES_MAX);
    json!({
        "id": finding.failure.id(),
        "kind": finding.failure.kind.to_string(),
        "failure": shown_block(&finding.failure.to_string()),
        "place": finding.failure.place.as_deref().map(shown_line),
        "run": finding.run,
        "minimal": finding.is_minimal,
        "steps_before": finding.steps_before,
        "steps_left_out": lines.len() - steps.len(),
        "steps": steps,
        "cause": finding.cause.as_ref().map(|cause| shown_block(&cause.failure.to_string())),
        "stack_left_out": finding.stack().len() - stack.len(),
        "stack": stack,
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
    let mut points: Vec<(u64, usize)> = Vec::new();
    for (run, edges) in known.runs_with_new_edges().zip(1..) {
        match points.last_mut() {
            Some(last) if last.0 >= run => last.1 = edges,
            _ => points.push((run, edges)),
        }
    }
    let each = points.len().div_ceil(POINTS_MAX).max(1);
    let last = points.len().saturating_sub(1);
    let shown = points.iter().enumerate().filter(|(at, _)| at % each == 0 || *at == last);
    shown.map(|(_, point)| json!(point)).collect()
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
    let (rules, faults) = (machine.rules(), machine.faults());
    let size = (rules.len(), faults.len());
    let row = |(rule, called_by): (usize, &str)| {
        let cells = (0..=faults.len().min(FAULTS_MAX)).map_while(|fault| called.of(rule, fault, size));
        let next = end::next_text(called.discovery(rule, size));
        json!({ "name": name(called_by), "cells": cells.collect::<Vec<[u64; 2]>>(), "next": next })
    };
    let shown = rules.iter().map(|rule| &*rule.name).enumerate().take(RULES_MAX);
    let shown = fitting(shown.map(row), RULES_BYTES_MAX);
    json!({
        "faults": faults.iter().take(FAULTS_MAX).map(|fault| name(fault)).collect::<Vec<_>>(),
        "faults_left_out": faults.len().saturating_sub(FAULTS_MAX),
        "rules_left_out": rules.len() - shown.len(),
        "rules": shown,
    })
}

/// Properties, and how many are not shown.
fn properties(known: &Knowledge<Snapshot>) -> (Vec<Json>, usize) {
    let property = |property: &crate::property::Property| {
        json!({
            "kind": property.kind.to_string(), "name": name(&property.name), "reached": property.reached,
            "held": property.held, "unmet": property.is_unmet(),
        })
    };
    let all = || known.tally.counts.properties.iter();
    let shown = fitting(all().take(PROPERTIES_MAX).map(property), PROPERTIES_BYTES_MAX);
    let left_out = all().count() - shown.len();
    (shown, left_out)
}

/// Each function that has edges, how many, and how many of them were seen, those that lack most first; and how many functions are not
/// shown.
fn functions(machine: &Machine, known: &Knowledge<Snapshot>) -> (Vec<Json>, usize) {
    let map = machine.program().edges();
    let mut all: Vec<(u32, (u32, u32))> = by_function(map, &known.seen).into_iter().collect();
    all.sort_by_key(|(function, (edges, hit))| (std::cmp::Reverse(edges - hit), *function));
    let called = |function: u32| map.functions.get(function as usize).map_or("", |f| &f.name);
    let function =
        |&(function, (edges, hit)): &(u32, (u32, u32))| json!([name(called(function)), edges, hit]);
    let shown = fitting(all.iter().take(FUNCTIONS_MAX).map(function), FUNCTIONS_BYTES_MAX);
    let left_out = all.len() - shown.len();
    (shown, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Changes;
    use crate::outcome::{Failure, FailureKind};
    use crate::session::Finding;
    use crate::trace::Action;

    #[test]
    fn values_are_shown_from_the_first_on_as_far_as_there_is_room() {
        let values = || ["a", "<", "c"].into_iter().map(Json::from);
        // Each with its quotes and a comma, and one escaped.
        for (room, expected) in
            [(17, &["a", "<", "c"][..]), (16, &["a", "<"]), (13, &["a", "<"]), (12, &["a"]), (3, &[])]
        {
            assert_eq!(fitting(values(), room), expected, "{room}");
        }
    }

    /// However much a guest says, the page holds so much of it, and says how much it does not.
    #[test]
    fn steps_take_no_more_than_there_is_room_for() {
        let told = crate::machine::Told {
            args: vec![("<".repeat(5000), "\u{202e}".repeat(5000))],
            ..Default::default()
        };
        let (name, action, changes) = ("a".to_string(), Action::Rule(0), Changes::default());
        let line = Line { name, action, told, changes, free: Vec::new(), is_droppable: false };
        let finding = |steps: usize| Told {
            finding: Finding {
                failure: Failure::new(FailureKind::Panic, "no"),
                run: 1,
                found_after: None,
                steps_before: steps,
                cause: None,
                story: vec![line.clone(); steps],
                trace: "t.json".into(),
                reproduce: String::new(),
                is_minimal: true,
                was_known: false,
                built: None,
                excerpt: None,
            },
            remark: None,
        };
        let mut room = STEPS_BYTES_MAX;
        let whole = super::finding(&finding(10), &mut room);
        assert_eq!((whole["steps"].as_array().unwrap().len(), &whole["steps_left_out"]), (10, &json!(0)));
        let cut = super::finding(&finding(2000), &mut room);
        let shown = cut["steps"].as_array().unwrap().len();
        assert!(shown > 100 && shown < STEPS_MAX, "{shown}");
        assert_eq!(cut["steps_left_out"], 2000 - shown);
        assert!(bytes(&whole) + bytes(&cut) <= STEPS_BYTES_MAX + (8 << 10));
    }
}
