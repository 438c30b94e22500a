//! What an exploration is like at one moment: plain data of bounded size, for those who draw it.

use std::collections::{BTreeMap, BTreeSet};

use super::Left;
use super::status::{CalledRule, called_rules, health};
use crate::campaign::Settings;
use crate::file::Names;
use crate::machine::{Program, Snapshot};
use crate::search::{Discovery, History, Knowledge, Progress, Symptom};

/// Checkpoints, the newest ones.
const NODES_MAX: usize = 512;
/// Points of the curve.
const POINTS_MAX: usize = 256;
/// Rules and faults.
const RULES_MAX: usize = 256;
const FAULTS_MAX: usize = 16;
/// Findings, the latest ones.
const FINDINGS_MAX: usize = 64;
/// Characters of a name or a message.
const TEXT_MAX: usize = 200;
/// Of a chain of checkpoints that are not kept so many are passed over.
const CHAIN_MAX: usize = 64;

/// An exploration at one moment. Text that comes from the guest is as the guest gave it, but cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// What was counted.
    pub progress: Progress,
    /// Edges in the module.
    pub edges: usize,
    /// What it may still take.
    pub left: Left,
    /// How many edges were seen after which run, some of them in order, the first and the last always.
    pub curve: Vec<(u64, u32)>,
    /// Checkpoints, each after the one that it came from.
    pub nodes: Vec<Node>,
    /// How many more are kept.
    pub nodes_left_out: usize,
    /// The faults.
    pub faults: Vec<String>,
    /// The rules.
    pub rules: Vec<Row>,
    /// How many more there are.
    pub rules_left_out: usize,
    /// The run of each finding and what failed, the latest first.
    pub findings: Vec<(u64, String)>,
    /// What is wrong.
    pub health: Vec<Symptom>,
    /// How likely the next run goes through a new edge.
    pub discovery: Option<Discovery>,
}

/// A checkpoint in the tree of those that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Node {
    /// Its number.
    pub id: u64,
    /// How many are above it.
    pub level: usize,
    /// How promising it is.
    pub energy: f64,
    /// How often a run started from it.
    pub selected: u64,
    /// How many edges were new when it was saved.
    pub new_edges: u32,
    /// Steps from the start of its run.
    pub step: u32,
    /// The run that reached it.
    pub run: u64,
}

/// What calling a rule came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// In all.
    pub rule: CalledRule,
    /// Calls while each fault was on, and those that found an edge; nothing where faults are not told apart.
    pub faults: Vec<[u64; 2]>,
}

impl View {
    /// Of an exploration of a program under these settings.
    pub(super) fn of(
        known: &Knowledge<Snapshot>,
        (program, settings): (&Program, &Settings),
        (left, is_flaky): (Left, bool),
    ) -> View {
        let nodes = nodes(known);
        let findings = known.findings.iter().rev().take(FINDINGS_MAX);
        View {
            progress: known.progress(),
            edges: program.edges().edges.len(),
            left,
            curve: curve(known.runs_with_new_edges(), known.tally.runs),
            nodes_left_out: known.checkpoints.len() - nodes.len(),
            nodes,
            faults: program.faults().iter().take(FAULTS_MAX).map(|fault| cut(fault)).collect(),
            rules: rows(known, program),
            rules_left_out: program.rules().len().saturating_sub(RULES_MAX),
            findings: findings.map(|found| (found.run, cut(&found.failure.to_string()))).collect(),
            health: health(known, program, settings, is_flaky),
            discovery: known.discovery(),
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

/// How many edges were seen after the runs that saw new ones, and after the last of all.
fn curve(runs_with_new: impl Iterator<Item = u64>, runs: u64) -> Vec<(u64, u32)> {
    let mut points = BTreeMap::from([(0, 0)]);
    let mut new: Vec<u64> = runs_with_new.collect();
    new.sort_unstable();
    points.extend(new.into_iter().zip(1..));
    let last = points.values().last().copied().unwrap_or(0);
    points.insert(runs, last);
    let stride = points.len().div_ceil(POINTS_MAX - 1);
    let end = points.len() - 1;
    let is_kept = |at: &usize| at.is_multiple_of(stride) || *at == end;
    points.into_iter().enumerate().filter(|(at, _)| is_kept(at)).map(|(_, point)| point).collect()
}

fn rows(known: &Knowledge<Snapshot>, program: &Program) -> Vec<Row> {
    let size = (program.rules().len(), program.faults().len());
    let faults = |rule| {
        let of_fault =
            (1..=size.1.min(FAULTS_MAX)).map_while(|fault| known.tally.called.of(rule, fault, size));
        of_fault.collect()
    };
    let rules = called_rules(known, program).into_iter().take(RULES_MAX).enumerate();
    rules
        .map(|(at, rule)| Row { rule: CalledRule { name: cut(&rule.name), ..rule }, faults: faults(at) })
        .collect()
}

/// The newest checkpoints, each after the nearest above it that is among them.
fn nodes(known: &Knowledge<Snapshot>) -> Vec<Node> {
    let checkpoints = &known.checkpoints;
    let first = checkpoints.len().saturating_sub(NODES_MAX);
    let shown = (first..checkpoints.len()).map(|index| checkpoints.get(index));
    let ids: BTreeSet<u64> = shown.clone().map(|checkpoint| checkpoint.id).collect();
    let mut below: BTreeMap<u64, Vec<Node>> = BTreeMap::new();
    for checkpoint in shown {
        let above =
            std::iter::successors(checkpoint.history.parent.as_ref(), |history| history.parent.as_ref());
        let mut above = above.take(CHAIN_MAX).map(|history: &std::sync::Arc<History>| history.id);
        let parent = above.find(|id| *id < checkpoint.id && ids.contains(id)).unwrap_or(0);
        below.entry(parent).or_default().push(Node {
            id: checkpoint.id,
            level: 0,
            energy: checkpoint.energy,
            selected: checkpoint.selected,
            new_edges: checkpoint.new_edges,
            step: checkpoint.step,
            run: checkpoint.run,
        });
    }
    in_order(below)
}

/// The nodes below number 0, each followed by those below it.
fn in_order(mut below: BTreeMap<u64, Vec<Node>>) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut waiting: Vec<Node> = below.remove(&0).unwrap_or_default().into_iter().rev().collect();
    while let Some(node) = waiting.pop() {
        let children = below.remove(&node.id).unwrap_or_default().into_iter().rev();
        waiting.extend(children.map(|child| Node { level: node.level + 1, ..child }));
        nodes.push(node);
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_has_its_ends_and_no_more_points_than_there_is_room_for() {
        assert_eq!(curve(std::iter::empty(), 0), [(0, 0)]);
        assert_eq!(curve([1, 1, 5].into_iter(), 9), [(0, 0), (1, 2), (5, 3), (9, 3)]);
        let many = curve((1..=100_000).chain([7]), 200_000);
        assert!(many.len() <= POINTS_MAX, "{}", many.len());
        assert_eq!((many[0], many[many.len() - 1]), ((0, 0), (200_000, 100_001)));
        assert!(many.is_sorted());
    }

    #[test]
    fn each_node_comes_after_the_one_above_it() {
        let node = |id| Node { id, ..Node::default() };
        let below = [(0, vec![node(1), node(4)]), (1, vec![node(2), node(5)]), (2, vec![node(3)])];
        let nodes = in_order(BTreeMap::from(below));
        let found: Vec<(u64, usize)> = nodes.iter().map(|node| (node.id, node.level)).collect();
        assert_eq!(found, [(1, 0), (2, 1), (3, 2), (5, 1), (4, 0)]);
    }
}
