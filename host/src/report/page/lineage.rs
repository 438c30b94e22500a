//! The tree of a campaign's checkpoints, each with the steps that lead to it from the one before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::data::bytes;
use crate::file::name_of;
use crate::machine::{Machine, Snapshot};
use crate::search::energy::Checkpoint;
use crate::search::{History, Knowledge};
use crate::story::{self, Line};
use crate::target::Target;
use crate::text;
use crate::trace::{Step, Trace};

/// Checkpoints that are shown, those of the most energy and those that they came from.
const NODES_MAX: usize = 20_000;
/// Steps of all of them that are shown, and bytes that what they are called takes on the page.
const STEPS_MAX: usize = 200_000;
const TEXTS_MAX: usize = 2 << 20;
/// Characters of a step that are shown.
const STEP_MAX: usize = 200;

/// The tree.
pub(super) struct Lineage<'k> {
    /// In the order in which they were saved, so that a parent comes before its children.
    pub(super) nodes: Vec<Node<'k>>,
    /// What steps are called; nodes hold indices.
    pub(super) texts: Vec<String>,
    /// Checkpoints that are kept and not shown.
    pub(super) left_out: usize,
}

/// A checkpoint.
pub(super) struct Node<'k> {
    pub(super) checkpoint: &'k Checkpoint<Snapshot>,
    /// The nearest one that it came from and that is kept, by its index.
    pub(super) parent: Option<usize>,
    /// The steps from there; none where there was no room for them.
    pub(super) steps: Option<Vec<u32>>,
}

/// Texts, each once.
#[derive(Default)]
struct Texts {
    known: BTreeMap<String, u32>,
    bytes: usize,
    steps: usize,
}

impl<'k> Lineage<'k> {
    /// The tree of what is known. Steps are executed to be told, until `is_over` says that no time is left; then they are named only, with
    /// what they drew.
    pub(super) fn of(
        machine: &mut Machine,
        known: &'k Knowledge<Snapshot>,
        is_over: &dyn Fn() -> bool,
    ) -> Lineage<'k> {
        let all: Vec<&Checkpoint<Snapshot>> = known.checkpoints.iter().collect();
        let (chosen, parents) = chosen(&all, machine.is_function());
        let places: BTreeMap<u64, usize> = chosen.iter().map(|at| all[*at].id).zip(0..).collect();
        let nodes = chosen.iter().map(|at| Node {
            checkpoint: all[*at],
            parent: parents[*at].and_then(|parent| places.get(&all[parent].id).copied()),
            steps: None,
        });
        let mut lineage =
            Lineage { nodes: nodes.collect(), texts: Vec::new(), left_out: all.len() - chosen.len() };
        lineage.tell(machine, is_over);
        lineage
    }

    /// Tells the steps of all nodes, from the roots on.
    fn tell(&mut self, machine: &mut Machine, is_over: &dyn Fn() -> bool) {
        let mut texts = Texts::default();
        let mut children: Vec<Vec<usize>> = self.nodes.iter().map(|_| Vec::new()).collect();
        let mut next: Vec<(usize, Option<Snapshot>)> = Vec::new();
        machine.reset();
        let start = machine.snapshot();
        for (index, node) in self.nodes.iter().enumerate().rev() {
            match node.parent {
                Some(parent) => children[parent].push(index),
                None => next.push((index, start.clone())),
            }
        }
        while let Some((index, from)) = next.pop() {
            let steps = self.steps_of(index, machine.is_function());
            let has_room = texts.steps + steps.len() <= STEPS_MAX;
            let mut named: Option<Vec<u32>> = has_room.then(Vec::new);
            let mut add = |text: String| {
                let Some(list) = &mut named else { return };
                match texts.add(&text) {
                    Some(text) => list.push(text),
                    None => named = None,
                }
            };
            // What an input is given is all that there is to tell of it.
            let from = from.filter(|_| has_room && !machine.is_function() && !is_over());
            let mut state = None;
            if let Some(from) = from {
                machine.restore(&from);
                let is_there = story::tell_on(machine, &steps, is_over, |line| add(of_line(&line)));
                state = if is_there { machine.snapshot() } else { None };
            } else if has_room {
                steps.steps().iter().for_each(|step| add(of_step(machine, &steps, step)));
            }
            self.nodes[index].steps = named;
            next.extend(children[index].drain(..).map(|child| (child, state.clone())));
        }
        let mut all: Vec<(u32, String)> = texts.known.into_iter().map(|(text, at)| (at, text)).collect();
        all.sort_unstable();
        self.texts = all.into_iter().map(|(_, text)| text).collect();
    }

    /// The steps from the parent of a node.
    fn steps_of(&self, index: usize, is_function: bool) -> Trace {
        let node = &self.nodes[index];
        let end = node.parent.filter(|_| !is_function).map(|parent| self.nodes[parent].checkpoint.id);
        let mut chain: Vec<&History> = Vec::new();
        let mut at = Some(&node.checkpoint.history);
        while let Some(history) = at.filter(|history| Some(history.id) != end) {
            chain.push(history);
            at = history.parent.as_ref();
        }
        let mut steps = Trace::default();
        for history in chain.into_iter().rev() {
            if steps.len() > STEPS_MAX {
                break;
            }
            steps.extend(&history.steps, history.steps.len());
        }
        steps
    }
}

/// Which checkpoints are shown, in order, and of each of all the nearest one that it came from and that is kept.
fn chosen(all: &[&Checkpoint<Snapshot>], is_function: bool) -> (Vec<usize>, Vec<Option<usize>>) {
    let places: BTreeMap<u64, usize> = all.iter().map(|checkpoint| checkpoint.id).zip(0..).collect();
    let mut known: BTreeMap<usize, Option<usize>> = BTreeMap::new();
    let parent = |checkpoint: &&Checkpoint<Snapshot>| match is_function {
        true => checkpoint.parent.and_then(|id| places.get(&id).copied()),
        false => nearest(&checkpoint.history, &places, &mut known),
    };
    // Whatever a file says, a parent comes before its children.
    let parents = all.iter().map(parent).enumerate();
    let parents: Vec<Option<usize>> =
        parents.map(|(at, parent)| parent.filter(|parent| *parent < at)).collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| all[*b].energy.total_cmp(&all[*a].energy).then(a.cmp(b)));
    let mut chosen = BTreeSet::new();
    for at in order {
        let mut line = Vec::new();
        let mut next = Some(at);
        while let Some(at) = next.filter(|at| !chosen.contains(at)) {
            line.push(at);
            next = parents[at];
        }
        if chosen.len() + line.len() <= NODES_MAX {
            chosen.extend(line);
        }
    }
    (chosen.into_iter().collect(), parents)
}

/// The nearest checkpoint above this one that is kept. `known` says it of those in between.
fn nearest(
    history: &Arc<History>,
    places: &BTreeMap<u64, usize>,
    known: &mut BTreeMap<usize, Option<usize>>,
) -> Option<usize> {
    let mut between = Vec::new();
    let mut at = history.parent.as_ref();
    let found = loop {
        let Some(history) = at else { break None };
        let address = Arc::as_ptr(history) as usize;
        if let Some(found) = places.get(&history.id).copied().or_else(|| *known.get(&address)?) {
            break Some(found);
        }
        if known.contains_key(&address) {
            break None;
        }
        between.push(address);
        at = history.parent.as_ref();
    };
    known.extend(between.into_iter().map(|address| (address, found)));
    found
}

impl Texts {
    /// The number of a text; none where there is no room for it.
    fn add(&mut self, text: &str) -> Option<u32> {
        self.steps += 1;
        let text = match text.char_indices().nth(STEP_MAX) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_string(),
        };
        if let Some(known) = self.known.get(&text) {
            return Some(*known);
        }
        let bytes = bytes(&Json::from(&*text));
        if self.bytes + bytes > TEXTS_MAX {
            return None;
        }
        self.bytes += bytes;
        let at = self.known.len() as u32;
        self.known.insert(text, at);
        Some(at)
    }
}

/// `put  key=1 value=3  chose 5`
fn of_line(line: &Line) -> String {
    let mut text = line.name.clone();
    for (name, value) in &line.told.args {
        text += &format!("  {name}={value}");
    }
    if !line.told.chosen.is_empty() {
        text += &format!("  chose {}", line.told.chosen.join(", "));
    }
    text::line(&text).into_owned()
}

/// `put  1, 3`
fn of_step(machine: &Machine, trace: &Trace, step: &Step) -> String {
    let name = name_of(machine, step.action);
    let name = name.strip_prefix("rule ").unwrap_or(&name);
    let mut text = name.to_string();
    for (number, choice) in trace.choices(step).iter().enumerate() {
        if text.len() > 4 * STEP_MAX {
            break;
        }
        let value = match &choice.value {
            // The rest of what is long is not made a text in vain.
            crate::choice::Value::Bytes(bytes) if bytes.len() > STEP_MAX => {
                format!("b\"{}\"… {} bytes", bytes[..STEP_MAX / 2].escape_ascii(), bytes.len())
            }
            value => value.to_string(),
        };
        text += &format!("{}{value}", if number == 0 { "  " } else { ", " });
    }
    text::line(&text).into_owned()
}
