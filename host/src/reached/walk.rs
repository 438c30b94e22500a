//! Executes the steps to checkpoints, and those of findings, once more, and counts for whatever is of interest how many of them
//! came there.
//!
//! The steps to checkpoints share their beginnings, so they are a tree, which is walked once:
//!
//! ```text
//! start ── steps ──▶ 1 ── steps ──▶ 3      what the steps to 1 reach, three checkpoints reach;
//!                    └─── steps ──▶ 4      what only those from 1 to 4 reach, one
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::budget::Budget;
use crate::choice::Chooser;
use crate::coverage::{FeatureSet, edges_in};
use crate::outcome::{Found, Outcome};
use crate::replay::misfit;
use crate::search::History;
use crate::target::{Target, attempt};
use crate::trace::{Step, Trace};

/// Bytes that saved states hold, at most. Where that is not enough steps are executed again, which changes no result.
const SAVED_BYTES_MAX: usize = 1 << 30;

/// Whose steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The checkpoint with this number.
    Checkpoint(u64),
    /// The finding, by its place in the list.
    Finding(usize),
}

/// Who came somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// How many checkpoints and findings.
    pub count: u64,
    /// The first of them.
    pub first: Option<Who>,
}

impl Hits {
    /// Whether anybody came there.
    pub fn any(&self) -> bool {
        self.count > 0
    }

    /// The checkpoint that alone came there.
    pub fn alone(&self) -> Option<u64> {
        match (self.count, self.first) {
            (1, Some(Who::Checkpoint(id))) => Some(id),
            _ => None,
        }
    }
}

/// What is of interest, each by its number, and by which counters it shows.
#[derive(Clone, Debug, Default)]
pub struct Items {
    /// By counter, where in `items` those are that it shows.
    ends: Vec<u32>,
    items: Vec<u32>,
    len: usize,
}

impl Items {
    /// `shown` says which counter shows which item; there are `counters`, and `len` items.
    pub fn new(mut shown: Vec<(u32, u32)>, counters: usize, len: usize) -> Items {
        shown.sort_unstable();
        shown.dedup();
        let mut ends = vec![0; counters];
        for (slot, _) in &shown {
            ends[*slot as usize] += 1;
        }
        let mut end = 0;
        for count in &mut ends {
            end += *count;
            *count = end;
        }
        Items { ends, items: shown.into_iter().map(|(_, item)| item).collect(), len }
    }

    fn of(&self, slot: u32) -> &[u32] {
        let Some(&end) = self.ends.get(slot as usize) else { return &[] };
        let start = (slot as usize).checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[start as usize..end as usize]
    }
}

/// What the steps came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Walked {
    /// By item.
    pub hits: Vec<Hits>,
    /// Checkpoints and findings whose steps were executed.
    pub checkpoints: u64,
    /// See `checkpoints`.
    pub findings: u64,
    /// How many did not go as they did before, and of the first of them whose steps these are and why.
    pub differing: u64,
    /// See `differing`.
    pub differs: Option<(Who, String)>,
    /// Whether the budget ended before all were executed.
    pub is_stopped: bool,
}

/// Checkpoints by their numbers, each with the steps that lead there, and findings.
pub type Kept<'k> = (&'k [(u64, Arc<History>)], &'k [Arc<Found>]);

/// Executes the steps to these checkpoints, and these findings, within the budget. All counters of the target that are in `items` count.
pub fn walk<T: Target>(
    target: &mut T,
    (checkpoints, findings): Kept<'_>,
    items: &Items,
    budget: &Budget,
) -> Walked {
    target.set_counts(false);
    let walked = Walked { hits: vec![Hits::default(); items.len], ..Walked::default() };
    let path = Path::new(items);
    let mut walk = Walk { target, budget, items, path, walked, steps: Steps::default(), before: 0 };
    walk.begin((checkpoints.len() + findings.len()) as u64);
    walk.tree(&Tree::of(checkpoints));
    for (index, finding) in findings.iter().enumerate() {
        walk.finding(index, &finding.trace);
    }
    walk.walked
}

/// The steps to checkpoints.
struct Tree<'h> {
    /// Each after its parent. The first is the start.
    nodes: Vec<Node<'h>>,
}

#[derive(Default)]
struct Node<'h> {
    steps: Option<&'h Trace>,
    parent: usize,
    children: Vec<usize>,
    /// The checkpoints that it leads to, and how many those beyond it lead to, together with these.
    checkpoints: u64,
    /// The first of them.
    first: Option<u64>,
}

impl<'h> Tree<'h> {
    fn of(checkpoints: &'h [(u64, Arc<History>)]) -> Tree<'h> {
        let mut nodes = vec![Node::default()];
        let mut known: BTreeMap<*const History, usize> = BTreeMap::new();
        for (id, history) in checkpoints {
            let (mut chain, mut next) = (Vec::new(), Some(history));
            while let Some(history) = next.filter(|history| !known.contains_key(&Arc::as_ptr(history))) {
                chain.push(history);
                next = history.parent.as_ref();
            }
            let mut at = next.map_or(0, |history| known[&Arc::as_ptr(history)]);
            for history in chain.into_iter().rev() {
                let node = nodes.len();
                nodes.push(Node { steps: Some(&history.steps), parent: at, ..Node::default() });
                nodes[at].children.push(node);
                known.insert(Arc::as_ptr(history), node);
                at = node;
            }
            nodes[at].checkpoints += 1;
            nodes[at].first.get_or_insert(*id);
        }
        for index in (1..nodes.len()).rev() {
            let Node { parent, checkpoints, first, .. } = nodes[index];
            let parent = &mut nodes[parent];
            parent.checkpoints += checkpoints;
            parent.first = parent.first.into_iter().chain(first).min();
        }
        Tree { nodes }
    }
}

/// What was reached on the way from the start.
struct Path {
    slots: Vec<bool>,
    items: Vec<bool>,
    /// What is marked in `slots` and `items`, in the order in which it was.
    log: Vec<Mark>,
}

#[derive(Clone, Copy)]
enum Mark {
    Slot(u32),
    Item(u32),
}

impl Path {
    fn new(items: &Items) -> Path {
        Path { slots: vec![false; items.ends.len()], items: vec![false; items.len], log: Vec::new() }
    }

    /// Marks a counter, and calls `new` with what it shows that was not shown before.
    fn mark(&mut self, slot: u32, items: &Items, mut new: impl FnMut(u32)) {
        if self.slots.get_mut(slot as usize).is_none_or(|known| std::mem::replace(known, true)) {
            return;
        }
        self.log.push(Mark::Slot(slot));
        for &item in items.of(slot) {
            if !std::mem::replace(&mut self.items[item as usize], true) {
                self.log.push(Mark::Item(item));
                new(item);
            }
        }
    }

    /// Forgets all but the first marks.
    fn back_to(&mut self, len: usize) {
        for mark in self.log.drain(len..) {
            match mark {
                Mark::Slot(slot) => self.slots[slot as usize] = false,
                Mark::Item(item) => self.items[item as usize] = false,
            }
        }
    }
}

/// What executing steps needs.
#[derive(Default)]
struct Steps {
    chooser: Chooser,
    enabled: Vec<u16>,
    seen: Vec<u32>,
}

struct Walk<'w, T: Target> {
    target: &'w mut T,
    budget: &'w Budget,
    items: &'w Items,
    path: Path,
    walked: Walked,
    steps: Steps,
    /// Of the path so many marks are of what is executed before the first step.
    before: usize,
}

/// For whom steps count: so many, of whom this is the first.
#[derive(Clone, Copy)]
struct Counting {
    count: u64,
    first: Option<Who>,
}

/// A node whose children are being walked.
struct Frame<S> {
    node: usize,
    next: usize,
    /// Of the path so many marks are older.
    log: usize,
    snapshot: Option<S>,
}

/// Why steps were not executed to their end.
enum Ended {
    Stopped,
    Differs(String),
}

impl<T: Target> Walk<'_, T> {
    /// What a guest executes before its first step, it executes for everybody.
    fn begin(&mut self, count: u64) {
        self.target.reset();
        self.collect(Some(Counting { count, first: None }));
        self.before = self.path.log.len();
    }

    fn tree(&mut self, tree: &Tree<'_>) {
        // Where the target is, if that is the end of a node.
        let mut at = Some(0);
        let (snapshot, log) = (self.snapshot(&tree.nodes[0]), self.before);
        let mut frames = vec![Frame { node: 0, next: 0, log, snapshot }];
        while let Some(frame) = frames.last_mut() {
            let Some(&child) = tree.nodes[frame.node].children.get(frame.next) else {
                self.path.back_to(frame.log);
                frames.pop();
                continue;
            };
            frame.next += 1;
            let (node, log) = (&tree.nodes[child], self.path.log.len());
            let came = match (at == Some(frame.node), &frame.snapshot) {
                (true, _) => Ok(()),
                (false, Some(snapshot)) => {
                    self.target.restore(snapshot);
                    Ok(())
                }
                (false, None) => self.go_to(tree, frame.node),
            };
            at = None;
            let counting = Counting { count: node.checkpoints, first: node.first.map(Who::Checkpoint) };
            match came.and_then(|()| self.execute(node.steps, Some(counting))) {
                Ok(()) => {
                    at = Some(child);
                    let beyond: u64 = node.children.iter().map(|&child| tree.nodes[child].checkpoints).sum();
                    self.walked.checkpoints += node.checkpoints - beyond;
                    frames.push(Frame { node: child, next: 0, log, snapshot: self.snapshot(node) });
                }
                Err(Ended::Stopped) => {
                    self.walked.is_stopped = true;
                    return;
                }
                Err(Ended::Differs(why)) => {
                    self.path.back_to(log);
                    self.differs(counting, why);
                }
            }
        }
    }

    /// The state, where several steps begin in it.
    fn snapshot(&mut self, node: &Node<'_>) -> Option<T::Snapshot> {
        let is_wanted = node.children.len() > 1 && self.target.saved_bytes() < SAVED_BYTES_MAX;
        if is_wanted { self.target.snapshot() } else { None }
    }

    /// Executes all steps that lead to a node once more.
    fn go_to(&mut self, tree: &Tree<'_>, node: usize) -> Result<(), Ended> {
        let (mut chain, mut at) = (Vec::new(), node);
        while at != 0 {
            chain.push(at);
            at = tree.nodes[at].parent;
        }
        self.target.reset();
        chain.into_iter().rev().try_for_each(|node| self.execute(tree.nodes[node].steps, None))
    }

    fn finding(&mut self, index: usize, trace: &Trace) {
        if self.walked.is_stopped {
            return;
        }
        self.path.back_to(self.before);
        self.target.reset();
        let counting = Counting { count: 1, first: Some(Who::Finding(index)) };
        match self.execute(Some(trace), Some(counting)) {
            Ok(()) => self.walked.findings += 1,
            Err(Ended::Stopped) => self.walked.is_stopped = true,
            Err(Ended::Differs(why)) => self.differs(counting, why),
        }
    }

    fn differs(&mut self, Counting { count, first }: Counting, why: String) {
        self.walked.differing += count;
        if let (None, Some(who)) = (&self.walked.differs, first) {
            self.walked.differs = Some((who, why));
        }
    }

    /// Executes steps from where the target is. Only those of a finding may fail, at their end.
    fn execute(&mut self, steps: Option<&Trace>, counting: Option<Counting>) -> Result<(), Ended> {
        let Some(trace) = steps else { return Ok(()) };
        let may_fail = matches!(counting, Some(Counting { first: Some(Who::Finding(_)), .. }));
        let mut again = Trace::default();
        for (index, step) in trace.steps().iter().enumerate() {
            let outcome = self.attempt(trace, step, &mut again);
            // What a step did before it was stopped, or went elsewhere, was reached all the same.
            self.collect(counting);
            if outcome == Outcome::Stopped || self.budget.is_over() {
                return Err(Ended::Stopped);
            }
            let differs = |why: String| Err(Ended::Differs(format!("step {}: {why}", index + 1)));
            if let Outcome::Reject(_) = outcome {
                return differs("it is rejected".to_string());
            }
            if let Some(why) = misfit(&self.steps.chooser, trace, &again, index) {
                return differs(why);
            }
            let is_last = index + 1 == trace.len();
            match outcome {
                Outcome::Fail(failure) if !(is_last && may_fail) => {
                    return differs(format!("it fails: {failure}"));
                }
                Outcome::Exit if !is_last => return differs("the guest ends the run".to_string()),
                _ => {}
            }
        }
        Ok(())
    }

    fn attempt(&mut self, trace: &Trace, step: &Step, again: &mut Trace) -> Outcome {
        let Steps { chooser, enabled, .. } = &mut self.steps;
        attempt(self.target, chooser, enabled, (step.action, step.seed), trace.recorded(step), again)
    }

    /// Takes what was reached since the last time.
    fn collect(&mut self, counting: Option<Counting>) {
        let mut seen = std::mem::take(&mut self.steps.seen);
        seen.clear();
        self.target.coverage(&FeatureSet::default(), &mut seen);
        if let Some(Counting { count, first }) = counting {
            for slot in edges_in(seen.iter().copied()) {
                self.path.mark(slot, self.items, |item| {
                    let hits = &mut self.walked.hits[item as usize];
                    hits.count += count;
                    hits.first = hits.first.or(first);
                });
            }
        }
        self.steps.seen = seen;
    }
}
