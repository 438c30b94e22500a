//! What a check has come to, so that another process can go on where this one ended. The states themselves are not kept: they are
//! reached again by their steps.

use serde::{Deserialize, Serialize};

use super::graph::{Drawn, GraphSizes, States};
use super::grown::Run;
use super::nodes::{Asleep, Node, Nodes};
use super::{Check, Shared};
use crate::check::sleep::Rules;
use crate::check::{Census, First, Keeping, Options, Order, RuleCover, lock};
use crate::choice::{Kind, Scripted};
use crate::outcome::{Failure, Found};
use crate::property::{Counts, Room};
use crate::trace::Action;

/// What part of the memory the hashes of states may take before they are moved, and what part the steps to them.
const STORED: usize = 4;

impl Options {
    /// Whether another process can go on where a check was ended.
    pub fn can_be_kept(&self) -> bool {
        self.order == Order::Breadth && self.runs_max.is_none() && self.schedules.is_none() && !self.lists
    }
}

/// The states of a level that wait, which are `depth` steps from the start, or the one before setup. Those of the next level follow.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Frontier {
    pub(super) first: u32,
    pub(super) end: u32,
    pub(super) depth: u32,
    pub(super) is_start: bool,
}

/// What came to be known since the last time.
#[derive(Serialize, Deserialize)]
pub struct News {
    frontier: Frontier,
    census: Census,
    bounds: u64,
    /// Of each node its parent, the step from there and how many answers that has.
    pub(super) nodes: Vec<(u32, Action, u32)>,
    scripts: Vec<(u32, u32)>,
    kinds: Vec<Kind>,
    /// Of each node the hash of its state, where states are compared.
    states: Vec<Option<u128>>,
    /// Nodes of which something else sleeps than was kept.
    asleep: Vec<(u32, Rules, Rules, bool)>,
    graph: Option<Drawn>,
    findings: Vec<Failed>,
    rules: Vec<RuleCover>,
    first: First,
    counts: Counts,
}

/// A finding: its steps are those to a node, and one more.
#[derive(Serialize, Deserialize)]
struct Failed {
    /// As JSON, which says what it leaves out.
    failure: String,
    run: u64,
    node: u32,
    step: Option<(Action, Vec<Scripted>)>,
}

impl News {
    /// States that were met before, and how many steps they are from the start.
    pub fn progress(&self) -> (u64, u32) {
        (self.census.states, self.frontier.depth)
    }
}

/// Whether what somebody else kept can be taken over, part after part.
pub struct Soundness {
    rules: usize,
    faults: usize,
    nodes: usize,
    kinds: usize,
    /// Where steps are kept.
    graph: Option<GraphSizes>,
}

impl Soundness {
    /// Of a check of a target with so many rules and faults, of which nothing was kept; whether something is claimed of its runs
    /// without end.
    pub fn new((rules, faults): (usize, usize), has_liveness: bool) -> Soundness {
        Soundness { rules, faults, nodes: 1, kinds: 0, graph: has_liveness.then(GraphSizes::new) }
    }

    /// Whether the next part fits what came before it, which it counts with then.
    pub fn takes(&mut self, news: &News) -> bool {
        let first = self.nodes;
        let (nodes, kinds) = (first + news.nodes.len(), self.kinds + news.kinds.len());
        let (rules, faults) = (self.rules, self.faults);
        let is_known = |action: Action| match action {
            Action::Rule(rule) => usize::from(rule) < rules,
            Action::Fault(fault, _) => usize::from(fault) < faults,
            _ => true,
        };
        let mut scripts = 0usize;
        let are_nodes = (first..).zip(&news.nodes).all(|(number, (parent, action, len))| {
            scripts = scripts.saturating_add(*len as usize);
            (*parent as usize) < number && is_known(*action)
        });
        let failed = |failed: &Failed| {
            (failed.node as usize) < nodes
                && failed.step.as_ref().is_none_or(|(action, _)| is_known(*action))
                && serde_json::from_str::<Failure>(&failed.failure).is_ok()
        };
        let fits = match (&mut self.graph, &news.graph) {
            (Some(sizes), Some(drawn)) => drawn.fits(sizes, (nodes, kinds), is_known),
            (None, None) => true,
            _ => false,
        };
        let Frontier { first: waiting, end, .. } = news.frontier;
        let is_sound = are_nodes
            && fits
            && scripts == news.scripts.len()
            && news.states.len() == news.nodes.len()
            && news.scripts.iter().all(|(kind, _)| (*kind as usize) < kinds)
            && news.asleep.iter().all(|(node, ..)| (*node as usize) < nodes)
            && news.findings.iter().all(failed)
            && news.rules.len() == self.rules
            && waiting <= end
            && end as usize <= nodes
            && u32::try_from(nodes).is_ok_and(|nodes| nodes < u32::MAX);
        (self.nodes, self.kinds) = (nodes, kinds);
        is_sound
    }
}

/// What is not kept yet.
#[derive(Default)]
pub(super) struct Unkept {
    /// The nodes that are kept, the root among them, and their answers and questions.
    nodes: usize,
    scripts: usize,
    kinds: usize,
    states: Vec<Option<u128>>,
    changed: Vec<u32>,
    failed: Vec<Failed>,
}

impl Unkept {
    /// How many nodes and answers are kept.
    pub(super) fn steps(&self) -> (usize, usize) {
        (self.nodes, self.scripts)
    }

    /// A node was added.
    pub(super) fn added(&mut self, state: Option<u128>) {
        self.states.push(state);
    }

    /// Something else sleeps in a node.
    pub(super) fn changed(&mut self, node: u32) {
        self.changed.push(node);
    }

    /// A finding was added.
    pub(super) fn failed(&mut self, failure: &Failure, number: u64, (node, run): (u32, &Run)) {
        let failure = serde_json::to_string(failure).unwrap_or_default();
        self.failed.push(Failed { failure, run: number, node, step: run.step.clone() });
    }
}

impl<S: Clone> Check<'_, S> {
    /// Hands over what came to be known since the last time.
    pub(super) fn keep(&mut self, keeping: &Keeping<'_>) {
        let Some(unkept) = &mut self.unkept else { return };
        let Nodes { list, scripts, kinds, asleep, .. } = &self.nodes;
        let added = list.since(unkept.nodes);
        let ends = added.iter().skip(1).map(|next| next.script).chain([scripts.len() as u32]);
        let changed =
            std::mem::take(&mut unkept.changed).into_iter().chain(unkept.nodes as u32..list.len() as u32);
        let changed = changed.filter_map(|node| {
            let Asleep { sleep, rules, is_again } = *asleep.get(node as usize)?;
            Some((node, sleep, rules, is_again))
        });
        let news = News {
            frontier: self.frontier.clone(),
            census: self.census,
            bounds: self.bounds,
            nodes: added
                .iter()
                .zip(ends)
                .map(|(node, end)| (node.parent, node.action, end - node.script))
                .collect(),
            scripts: scripts.since(unkept.scripts).to_vec(),
            kinds: kinds[unkept.kinds..].to_vec(),
            states: std::mem::take(&mut unkept.states),
            asleep: changed.collect(),
            graph: self.states.as_mut().map(States::drawn),
            findings: std::mem::take(&mut unkept.failed),
            rules: self.rules.clone(),
            first: self.first.clone(),
            counts: self.counts.clone(),
        };
        (unkept.nodes, unkept.scripts, unkept.kinds) = (list.len(), scripts.len(), kinds.len());
        self.kept += 1;
        keeping.keeper.keep(&news);
    }

    /// Takes over what an earlier process kept, all of it in order.
    pub(super) fn take_over(&mut self, keeping: &mut Keeping<'_>) {
        while let Some(news) = keeping.before.next() {
            self.take_one(news);
            self.kept += 1;
            self.store(Some(keeping));
            self.taken();
            let over = (self.shared.goes_on)(&lock(&self.shared.progress));
            if let Some(limit) = over {
                self.shared.ended(limit);
                return;
            }
        }
        let Nodes { list, scripts, kinds, .. } = &self.nodes;
        let (nodes, scripts, kinds) = (list.len(), scripts.len(), kinds.len());
        self.unkept = Some(Unkept { nodes, scripts, kinds, ..Unkept::default() });
        self.shared.met.set(self.bytes());
        self.taken();
    }

    /// Tells how far the check is, of which nothing was done by this process.
    fn taken(&self) {
        self.report();
        lock(&self.shared.progress).before = self.census;
    }

    pub(super) fn take_one(&mut self, news: News) {
        let first = self.nodes.list.len() as u32;
        let mut script = self.nodes.scripts.len() as u32;
        self.nodes.scripts.extend(news.scripts);
        self.nodes.kinds.extend(news.kinds);
        for (node, ((parent, action, len), state)) in (first..).zip(news.nodes.into_iter().zip(news.states)) {
            self.nodes.add(Node { parent, script, action }, None);
            script += len;
            let Some(state) = state else { continue };
            if !self.shared.options.reduces {
                self.shared.claims.add(state, parent);
            }
            if self.shared.options.reduces || self.states.is_some() {
                self.nodes.visited.insert(state, node);
            }
        }
        for (node, sleep, rules, is_again) in news.asleep {
            let asleep = Asleep { sleep, rules, is_again };
            match self.nodes.asleep.get_mut(node as usize) {
                Some(known) => *known = asleep,
                None => self.nodes.asleep.push(asleep),
            }
        }
        for Failed { failure, run, node, step } in news.findings {
            let failure: Failure = serde_json::from_str(&failure).expect("it was written by `failed`");
            let Some(trace) = self.trace(node, step.as_ref()) else { return };
            self.findings.0.push(Found { failure, run, trace });
        }
        if let (Some(states), Some(drawn)) = (&mut self.states, news.graph) {
            states.take_over(drawn);
        }
        self.nodes.wait_from(news.frontier.first);
        (self.frontier, self.census, self.bounds) = (news.frontier, news.census, news.bounds);
        (self.rules, self.first) = (news.rules, news.first);
        self.names = Room::new(self.first.keys().map(|(_, name)| name.len()));
        *self.counts = news.counts;
    }

    /// Moves the hashes of what was met, and the steps to it, to places of their own, once they take a share of the memory, and where
    /// there is one.
    pub(super) fn store(&mut self, keeping: Option<&Keeping<'_>>) {
        let Shared { options, claims, goes_on, progress, .. } = self.shared;
        // With reductions, and where steps are kept, the node of each state is looked for in a table of its own.
        let is_set = !options.reduces && self.states.is_none();
        if let Some(keeping) = keeping
            && is_set
            && !self.is_full
        {
            let share = options.met_bytes_max / STORED;
            let goes_on = || goes_on(&lock(progress)).is_none();
            if claims.bytes() > share {
                self.is_full = !claims.store(|| keeping.keeper.hashes(), &goes_on);
            }
            // What is not kept yet is read at once when it is.
            let Nodes { list, scripts, .. } = &self.nodes;
            let kept = self.unkept.as_ref().map_or((list.len(), scripts.len()), Unkept::steps);
            if list.bytes() + scripts.bytes() > share {
                self.is_full |= !self.nodes.move_before(kept, || keeping.keeper.bytes());
            }
            self.shared.met.set(self.bytes());
        }
    }
}
