//! The tree breadth-first: all states at n steps before those at n + 1, so the first path to a failure is a
//! shortest one. Within a step a queue of prefixes, each of which stops the guest at the first choice past it.
//!
//! Workers share a level: each takes the next few states of it, and what they found is merged in the order of the
//! states. A new state belongs to the first state in this order that leads to it, whichever worker was faster.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::path::{self, is_step};
use super::sleep::{self, Independence, Rules};
use super::visit::{Ends, Visit, Visitor, follows_preconditions};
use super::visited::Visited;
use super::{
    Census, Checked, End, Findings, GoesOn, Limit, Options, Progress, Stop, Told, Trouble, TroubleKind,
    in_parallel, lock,
};
use crate::choice::{Kind, Past, Scripted};
use crate::target::Target;
use crate::trace::{Action, Trace};

/// Visits between two looks at the clock.
const POLL: u32 = 16;
/// States that a worker takes at once, and that all take before the results are merged.
const CHUNK: usize = 16;
const ROUND: usize = 4096;
/// The parent of the root.
const NONE: u32 = u32::MAX;

/// A state, by the step that led to it first.
struct Node {
    parent: u32,
    /// Where its script begins; it ends where that of the next begins.
    script: u32,
    action: Action,
}

/// Where a state is explored again, or only in part.
#[derive(Clone, Copy)]
struct Asleep {
    sleep: Rules,
    /// The rules to explore.
    rules: Rules,
    /// It was explored before, but for these rules.
    is_again: bool,
}

impl Asleep {
    fn but(sleep: Rules) -> Asleep {
        Asleep { sleep, rules: !sleep, is_again: false }
    }
}

/// The states that were met, in the order of the check.
struct Nodes<S> {
    list: Vec<Node>,
    /// Answers, with the index of what was asked.
    scripts: Vec<(u32, u32)>,
    kinds: Vec<Kind>,
    /// Saved states of nodes that wait, and of others that some below them are reached from.
    saved: Vec<Option<S>>,
    /// Of each node, where rules are declared independent.
    asleep: Vec<Asleep>,
    /// The node of each state, where rules are declared independent and states compared.
    visited: Visited<u32>,
}

/// The states that were met, by hash, and the first node known to lead to each.
struct Claims(Vec<Mutex<Visited<u32>>>);

/// So many that workers seldom wait for one another.
const SHARDS: usize = 64;

impl Claims {
    fn new() -> Claims {
        Claims((0..SHARDS).map(|_| Mutex::new(Visited::new())).collect())
    }

    fn shard(&self, state: u128) -> &Mutex<Visited<u32>> {
        &self.0[(state >> 64) as usize % SHARDS]
    }

    /// Claims a state for a node; whether no node before it, nor this one, has claimed it.
    fn claim(&self, state: u128, node: u32) -> bool {
        let mut shard = lock(self.shard(state));
        let is_first = shard.get(state).is_none_or(|first| node < first);
        if is_first {
            shard.insert(state, node);
        }
        is_first
    }

    fn belongs_to(&self, state: u128, node: u32) -> bool {
        lock(self.shard(state)).get(state) == Some(node)
    }

    /// Takes a claim back.
    fn forget(&self, state: u128, node: u32) {
        let mut shard = lock(self.shard(state));
        if shard.get(state) == Some(node) {
            shard.insert(state, NONE);
        }
    }
}

impl<S> Nodes<S> {
    fn new() -> Nodes<S> {
        Nodes {
            list: Vec::new(),
            scripts: Vec::new(),
            kinds: Vec::new(),
            saved: Vec::new(),
            asleep: Vec::new(),
            visited: Visited::new(),
        }
    }

    fn push(&mut self, parent: u32, action: Action, script: &[Scripted], saved: Option<S>) -> u32 {
        let index = self.list.len() as u32;
        assert!(index < NONE, "there are fewer than 2^32 states");
        self.list.push(Node { parent, script: self.scripts.len() as u32, action });
        for scripted in script {
            let kind = index_of(&mut self.kinds, scripted.kind);
            self.scripts.push((kind, scripted.number));
        }
        self.saved.push(saved);
        index
    }

    fn script(&self, node: u32, script: &mut Vec<Scripted>) {
        let start = self.list[node as usize].script as usize;
        let end = self.list.get(node as usize + 1).map_or(self.scripts.len(), |next| next.script as usize);
        let scripted = |&(kind, number): &(u32, u32)| Scripted { kind: self.kinds[kind as usize], number };
        script.clear();
        script.extend(self.scripts[start..end].iter().map(scripted));
    }

    /// The nodes on the path to `node`, the root left out, the last first.
    fn path(&self, node: u32) -> impl Iterator<Item = u32> {
        let parent = |node: &u32| Some(self.list[*node as usize].parent);
        std::iter::successors(Some(node), parent).take_while(|node| self.list[*node as usize].parent != NONE)
    }

    fn trace(&self, node: u32) -> Trace {
        let mut path: Vec<u32> = self.path(node).collect();
        path.reverse();
        let (mut trace, mut script) = (Trace::default(), Vec::new());
        for node in path {
            self.script(node, &mut script);
            path::push(&mut trace, self.list[node as usize].action, &script);
        }
        trace
    }

    fn asleep(&self, node: u32) -> Asleep {
        self.asleep.get(node as usize).copied().unwrap_or(Asleep::but(sleep::NONE))
    }
}

/// The index of what is asked, among the last few. What is not there is added, be it for the second time: few
/// different questions are asked.
fn index_of(kinds: &mut Vec<Kind>, kind: Kind) -> u32 {
    let recent = kinds.iter().enumerate().rev().take(8).find(|(_, known)| **known == kind);
    if let Some((index, _)) = recent {
        return index as u32;
    }
    kinds.push(kind);
    kinds.len() as u32 - 1
}

/// What the states of a chunk led to.
struct Grown<S> {
    /// The index of the first state within its round.
    first: usize,
    nodes: Vec<GrownNode>,
    children: Vec<Child<S>>,
    runs: Vec<Run>,
    scripts: Vec<Scripted>,
    trouble: Option<Box<Trouble>>,
}

/// What one state led to; children and runs are the next ones in the chunk.
#[derive(Clone, Copy, Default)]
struct GrownNode {
    census: Census,
    children: usize,
    runs: usize,
    /// Something could be done here, and the bound on steps forbids it.
    is_bound: bool,
    /// The bound on runs ended it.
    is_cut: bool,
}

/// A state that may be new.
struct Child<S> {
    action: Action,
    /// The length of its script, which is the next one in the chunk.
    script: usize,
    state: Option<u128>,
    sleep: Rules,
    saved: Option<S>,
}

/// A path that ended.
struct Run {
    /// The step after the node's state, and the length of its script; nothing where the path ended in that state.
    step: Option<(Action, Vec<Scripted>)>,
    end: End,
    /// Which of the node's, from 1.
    number: u64,
}

/// See [`super::check`].
pub(super) fn check<T>(
    targets: &mut [T],
    options: &Options,
    goes_on: GoesOn<'_>,
    told: Told<'_>,
) -> Result<Checked, Box<Trouble>>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    let stack_bytes = targets[0].stack_bytes();
    targets[0].reset();
    let root = targets[0].snapshot();
    let shared = Shared {
        options,
        goes_on,
        independence: Independence::of(&targets[0], options.reduces),
        claims: Claims::new(),
        stop: Stop::default(),
        limit: Mutex::new(None),
        progress: Mutex::new(Progress::default()),
    };
    let mut workers: Vec<Worker<'_, '_, T>> =
        targets.iter_mut().map(|target| Worker::new(target, &shared, root.clone())).collect();
    let mut check = Check {
        shared: &shared,
        told,
        nodes: Nodes::new(),
        census: Census::default(),
        findings: Findings::default(),
        bounds: 0,
    };
    let mut level = check.start(&mut workers[0], root)?;
    let mut depth = 0;
    // The node before setup is a level of its own, before that of 0 steps.
    let mut is_start = workers[0].visitor.target.has_setup();
    while !level.is_empty() && !check.is_over() {
        let next = check.nodes.list.len();
        let mut first = level.start;
        while first < level.end && !check.is_over() {
            let round = first..(first + ROUND).min(level.end);
            let job =
                Job { nodes: &check.nodes, round: round.clone(), depth, is_start, runs: check.census.runs };
            let grown = grow(&mut workers, stack_bytes, &job);
            check.merge(round.start, grown, next)?;
            first = round.end;
            check.report((level.end - first) + (check.nodes.list.len() - next));
        }
        if first < level.end && check.is_out_of_runs() {
            check.limited(Limit::Runs);
        }
        level = next..check.nodes.list.len();
        depth += u32::from(!is_start);
        is_start = false;
        if !level.is_empty() && check.is_out_of_runs() {
            check.limited(Limit::Runs);
        }
    }
    let limit = *lock(&shared.limit);
    let limit = limit.or((check.bounds > 0).then_some(Limit::Steps));
    let limit = if check.findings.is_full(options) { None } else { limit };
    Ok(Checked { census: check.census, findings: check.findings.0, limit })
}

/// Has the workers look at every state of a round; the results in order.
fn grow<T>(
    workers: &mut [Worker<'_, '_, T>],
    stack_bytes: Option<usize>,
    job: &Job<'_, T::Snapshot>,
) -> Vec<Grown<T::Snapshot>>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    let count = workers.len().min(job.round.len().div_ceil(CHUNK));
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    in_parallel(&mut workers[..count], stack_bytes, |worker| {
        loop {
            let first = next.fetch_add(CHUNK, Ordering::Relaxed);
            if first >= job.round.len() {
                break;
            }
            let grown = worker.chunk(job, first);
            lock(&results).push(grown);
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|grown| grown.first);
    results
}

/// What is the same for all workers.
struct Shared<'a> {
    options: &'a Options,
    goes_on: GoesOn<'a>,
    independence: Independence,
    claims: Claims,
    stop: Stop,
    limit: Mutex<Option<Limit>>,
    progress: Mutex<Progress>,
}

/// The check, as far as it was merged.
struct Check<'a, S> {
    shared: &'a Shared<'a>,
    told: Told<'a>,
    nodes: Nodes<S>,
    census: Census,
    findings: Findings,
    bounds: u64,
}

impl<S: Clone> Check<'_, S> {
    /// Adds the root of the tree.
    fn start<T: Target<Snapshot = S>>(
        &mut self,
        worker: &mut Worker<'_, '_, T>,
        root: Option<S>,
    ) -> Result<std::ops::Range<usize>, Box<Trouble>> {
        self.nodes.push(NONE, Action::Setup, &[], root);
        if self.shared.options.reduces {
            self.nodes.asleep.push(Asleep::but(sleep::NONE));
        }
        if !worker.visitor.target.has_setup() {
            worker.visitor.restart();
            let state = worker.state().map_err(|kind| Box::new(Trouble { trace: Trace::default(), kind }))?;
            if let Some(state) = state {
                self.nodes.visited.insert(state, 0);
                self.shared.claims.claim(state, 0);
            }
            self.census.states = 1;
        }
        Ok(0..1)
    }

    fn is_out_of_runs(&self) -> bool {
        self.shared.options.runs_max.is_some_and(|max| self.census.runs >= max)
    }

    fn is_over(&self) -> bool {
        self.is_out_of_runs() || self.shared.stop.is_set() || self.findings.is_full(self.shared.options)
    }

    fn limited(&self, limit: Limit) {
        lock(&self.shared.limit).get_or_insert(limit);
    }

    /// Tells how far the check is.
    fn report(&self, waiting: usize) {
        let mut progress = lock(&self.shared.progress);
        progress.census = self.census;
        progress.waiting = waiting as u64;
    }

    /// Adds what a round led to. The nodes from `next` on wait.
    fn merge(&mut self, start: usize, round: Vec<Grown<S>>, next: usize) -> Result<(), Box<Trouble>> {
        for grown in round {
            let first = (start + grown.first) as u32;
            let (mut children, mut runs) = (grown.children.into_iter(), grown.runs.into_iter());
            let mut script = 0;
            for (node, grown_node) in (first..).zip(grown.nodes) {
                if self.is_over() && !self.shared.stop.is_set() {
                    if self.is_out_of_runs() {
                        self.limited(Limit::Runs);
                    }
                    return Ok(());
                }
                for run in runs.by_ref().take(grown_node.runs) {
                    self.ended(node, run);
                }
                self.census.add(&grown_node.census);
                self.bounds += u64::from(grown_node.is_bound);
                if grown_node.is_cut {
                    self.limited(Limit::Runs);
                }
                let mut all_saved = true;
                for child in children.by_ref().take(grown_node.children) {
                    let answers = &grown.scripts[script..script + child.script];
                    script += child.script;
                    all_saved &= child.saved.is_some();
                    self.met(node, child, answers, next);
                }
                if all_saved {
                    self.nodes.saved[node as usize] = None;
                }
            }
            if let Some(trouble) = grown.trouble {
                return Err(trouble);
            }
        }
        Ok(())
    }

    fn ended(&mut self, node: u32, run: Run) {
        let is_known = |failure| self.findings.0.iter().any(|known| known.failure.is_same(failure));
        let is_new = matches!(&run.end, End::Failed(failure) if !is_known(failure));
        if !is_new && !self.shared.options.lists {
            return;
        }
        let mut trace = self.nodes.trace(node);
        if let Some((action, script)) = &run.step {
            path::push(&mut trace, *action, script);
        }
        if self.shared.options.lists {
            (self.told)(&trace, &run.end);
        }
        if let End::Failed(failure) = &run.end
            && is_new
            && !self.findings.is_full(self.shared.options)
        {
            self.findings.add(failure, self.census.runs + run.number, || trace);
        }
    }

    /// A state that a node led to: it is new, or known.
    fn met(&mut self, parent: u32, child: Child<S>, script: &[Scripted], next: usize) {
        let reduces = self.shared.options.reduces;
        if let Some(state) = child.state
            && !reduces
            && !self.shared.claims.belongs_to(state, parent)
        {
            self.census.pruned += 1;
            return;
        }
        let known = child.state.and_then(|state| self.nodes.visited.get(state));
        let asleep = match known {
            None => {
                self.census.states += 1;
                Asleep::but(child.sleep)
            }
            Some(known) => {
                let before = self.nodes.asleep(known);
                let (missing, both) = (before.sleep & !child.sleep, before.sleep & child.sleep);
                if missing == sleep::NONE {
                    self.census.pruned += 1;
                    return;
                }
                if known as usize >= next {
                    // It waits, so what sleeps there can still be changed.
                    let rules = before.rules | missing;
                    self.nodes.asleep[known as usize] = Asleep { sleep: both, rules, ..before };
                    self.census.pruned += 1;
                    return;
                }
                Asleep { sleep: both, rules: missing, is_again: true }
            }
        };
        let node = self.nodes.push(parent, child.action, script, child.saved);
        if reduces {
            self.nodes.asleep.push(asleep);
            if let Some(state) = child.state {
                self.nodes.visited.insert(state, node);
            }
        }
    }
}

/// A round: states of one level.
struct Job<'a, S> {
    nodes: &'a Nodes<S>,
    round: std::ops::Range<usize>,
    depth: u32,
    /// The only state is the one before setup.
    is_start: bool,
    /// Runs before this round.
    runs: u64,
}

/// A prefix of answers of one step. They are visited in the order in which they are added.
struct Prefix {
    parent: u32,
    number: u32,
    /// The index of what is asked after it.
    asks: u32,
}

struct Worker<'t, 's, T: Target> {
    visitor: Visitor<'t, T>,
    shared: &'s Shared<'s>,
    on: Vec<bool>,
    actions: Vec<Action>,
    script: Vec<Scripted>,
    /// Scratch: the answers of a step, depth-first.
    answers: Vec<Scripted>,
    path: Vec<u32>,
    prefixes: Vec<Prefix>,
    kinds: Vec<Kind>,
    /// The state of the parent that was reached last because it is not saved.
    reached: Option<(u32, T::Snapshot)>,
    polls: u32,
    told: Census,
}

impl<'t, 's, T: Target> Worker<'t, 's, T> {
    fn new(target: &'t mut T, shared: &'s Shared<'s>, root: Option<T::Snapshot>) -> Worker<'t, 's, T> {
        Worker {
            on: vec![false; target.faults().len()],
            visitor: Visitor::new(target, shared.options, root),
            shared,
            actions: Vec::new(),
            script: Vec::new(),
            answers: Vec::new(),
            path: Vec::new(),
            prefixes: Vec::new(),
            kinds: Vec::new(),
            reached: None,
            polls: 0,
            told: Census::default(),
        }
    }

    /// The hash of the state that the target is in, where states are compared.
    fn state(&mut self) -> Result<Option<u128>, TroubleKind> {
        match self.shared.options.prunes {
            true => self.visitor.target.compared_state().map_err(TroubleKind::State),
            false => Ok(None),
        }
    }

    /// Looks at some states of a round.
    fn chunk(&mut self, job: &Job<'_, T::Snapshot>, first: usize) -> Grown<T::Snapshot> {
        let mut grown = Grown {
            first,
            nodes: Vec::new(),
            children: Vec::new(),
            runs: Vec::new(),
            scripts: Vec::new(),
            trouble: None,
        };
        for index in first..(first + CHUNK).min(job.round.len()) {
            if self.shared.stop.is_set() {
                break;
            }
            grown.nodes.push(GrownNode::default());
            if let Err(trouble) = self.node(job, (job.round.start + index) as u32, &mut grown) {
                grown.trouble = Some(trouble);
                self.shared.stop.set();
                break;
            }
        }
        grown
    }

    /// Looks at what a state leads to.
    fn node(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        node: u32,
        grown: &mut Grown<T::Snapshot>,
    ) -> Result<(), Box<Trouble>> {
        self.told = Census::default();
        self.reach(job.nodes, node)?;
        let before = if self.on.is_empty() { None } else { self.visitor.target.snapshot() };
        self.faults(job.nodes, node);
        let mut actions = std::mem::take(&mut self.actions);
        let asleep = job.nodes.asleep(node);
        if job.is_start {
            actions.clear();
            actions.push(Action::Setup);
        } else {
            let bound = (job.depth, self.shared.options.steps_max);
            let ends = self.visitor.alternatives(bound, &self.on, &mut actions);
            if asleep.is_again {
                actions.retain(|action| matches!(action, Action::Rule(_)));
            } else {
                ended_here(ends, grown, self.shared.options.lists);
            }
        }
        let is_saved = actions.len() > 1 || matches!(actions[..], [Action::Rule(_) | Action::Fault(..)]);
        let ready = if is_saved && !job.is_start { self.visitor.target.snapshot() } else { None };
        let mut start = Start { node, before, ready, is_in_place: true, sleep: asleep.sleep };
        for action in &actions {
            if let Action::Rule(rule) = action {
                if sleep::bit(*rule) & !asleep.rules != 0 {
                    continue;
                }
                self.action(job, &mut start, *action, grown)?;
                start.sleep |= sleep::bit(*rule);
            } else {
                self.action(job, &mut start, *action, grown)?;
            }
        }
        self.actions = actions;
        Ok(())
    }

    /// Which faults are on in a state.
    fn faults(&mut self, nodes: &Nodes<T::Snapshot>, node: u32) {
        if self.on.is_empty() {
            return;
        }
        self.on.fill(false);
        self.path.clear();
        self.path.extend(nodes.path(node));
        for node in self.path.iter().rev() {
            if let Action::Fault(fault, on) = nodes.list[*node as usize].action {
                self.on[usize::from(fault)] = on;
            }
        }
    }

    /// Puts the target into the state of a node: as it was saved, or by repeating the steps from the nearest one on
    /// its path that was.
    fn reach(&mut self, nodes: &Nodes<T::Snapshot>, node: u32) -> Result<(), Box<Trouble>> {
        if let Some(saved) = &nodes.saved[node as usize] {
            self.visitor.target.restore(saved);
            return Ok(());
        }
        let parent = nodes.list[node as usize].parent;
        if parent == NONE {
            self.visitor.restart();
            return Ok(());
        }
        match &self.reached {
            Some((reached, saved)) if *reached == parent => self.visitor.target.restore(saved),
            _ => {
                self.path.clear();
                self.path.extend(nodes.path(parent).take_while(|at| nodes.saved[*at as usize].is_none()));
                let nearest = self.path.last().map_or(parent, |last| nodes.list[*last as usize].parent);
                match &nodes.saved[nearest as usize] {
                    Some(saved) => self.visitor.target.restore(saved),
                    None => self.visitor.restart(),
                }
                while let Some(at) = self.path.pop() {
                    self.repeat(nodes, at)?;
                }
                self.reached = self.visitor.target.snapshot().map(|saved| (parent, saved));
            }
        }
        self.repeat(nodes, node)
    }

    /// Performs the step that led to a node again.
    fn repeat(&mut self, nodes: &Nodes<T::Snapshot>, node: u32) -> Result<(), Box<Trouble>> {
        let action = nodes.list[node as usize].action;
        nodes.script(node, &mut self.script);
        let repeated =
            self.visitor.ready(action).and_then(|()| self.visitor.repeat(action, &mut self.script));
        repeated.map_err(|kind| Box::new(Trouble { trace: nodes.trace(node), kind }))
    }

    /// Tries all answers of one step, the shortest scripts first.
    fn action(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        start: &mut Start<T::Snapshot>,
        action: Action,
        grown: &mut Grown<T::Snapshot>,
    ) -> Result<(), Box<Trouble>> {
        let can_be_undone = self.shared.options.runs_max.is_none();
        if can_be_undone && self.in_order(job, start, action, grown)? {
            return Ok(());
        }
        self.queue(job, start, action, grown)
    }

    /// Tries all answers of one step, depth-first. Where all scripts are of one length, as they mostly are, that is
    /// the order of the queue too, without stopping the guest at every choice. Otherwise all is undone, and `false`.
    fn in_order(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        start: &mut Start<T::Snapshot>,
        action: Action,
        grown: &mut Grown<T::Snapshot>,
    ) -> Result<bool, Box<Trouble>> {
        let (children, scripts, runs) = (grown.children.len(), grown.scripts.len(), grown.runs.len());
        let node = grown.nodes.last().expect("it was just begun");
        let before = *node;
        let mut len = None;
        // Not `self.script`, which reaching a state may overwrite.
        let mut script = std::mem::take(&mut self.answers);
        script.clear();
        let is_done = loop {
            self.poll(grown);
            if self.shared.stop.is_set() {
                break true;
            }
            self.place(job.nodes, start, action)?;
            std::mem::swap(&mut self.script, &mut script);
            let visited = self.visitor.visit(action, &mut self.script, Past::First);
            let (visit, choices) =
                visited.map_err(|kind| self.trouble(job.nodes, start.node, action, kind))?;
            if *len.get_or_insert(self.script.len()) != self.script.len() {
                break false;
            }
            grown.nodes.last_mut().expect("it was just begun").census.choices += choices as u64;
            self.done(job, start, action, visit, grown)?;
            std::mem::swap(&mut self.script, &mut script);
            if !path::advance(&mut script, 0) {
                break true;
            }
        };
        self.answers = script;
        if !is_done {
            for state in grown.children.drain(children..).filter_map(|child| child.state) {
                self.shared.claims.forget(state, start.node);
            }
            grown.scripts.truncate(scripts);
            grown.runs.truncate(runs);
            *grown.nodes.last_mut().expect("it was just begun") = before;
        }
        Ok(is_done)
    }

    /// Tries all answers of one step by a queue of prefixes.
    fn queue(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        start: &mut Start<T::Snapshot>,
        action: Action,
        grown: &mut Grown<T::Snapshot>,
    ) -> Result<(), Box<Trouble>> {
        self.prefixes.clear();
        self.kinds.clear();
        self.prefixes.push(Prefix { parent: NONE, number: 0, asks: 0 });
        let mut at = 0;
        while at < self.prefixes.len() {
            self.poll(grown);
            let counted = grown.nodes.last_mut().expect("it was just begun");
            if self.shared.stop.is_set() {
                return Ok(());
            }
            if self.shared.options.runs_max.is_some_and(|max| job.runs + counted.census.runs >= max) {
                counted.is_cut = true;
                return Ok(());
            }
            self.place(job.nodes, start, action)?;
            self.write_script(at);
            let visited = self.visitor.visit(action, &mut self.script, Past::Stop);
            let (visit, _) = visited.map_err(|kind| self.trouble(job.nodes, start.node, action, kind))?;
            if let Visit::Asks(kind) = visit {
                counted.census.choices += 1;
                self.prefixes[at].asks = index_of(&mut self.kinds, kind);
                let count = kind.alternatives().expect("it was found to be bounded") as u32;
                let prefix = |number| Prefix { parent: at as u32, number, asks: 0 };
                self.prefixes.extend((0..count).map(prefix));
            } else {
                self.done(job, start, action, visit, grown)?;
            }
            at += 1;
        }
        Ok(())
    }

    /// Puts the target into the state that the step starts from.
    fn place(
        &mut self,
        nodes: &Nodes<T::Snapshot>,
        start: &mut Start<T::Snapshot>,
        action: Action,
    ) -> Result<(), Box<Trouble>> {
        let follows = follows_preconditions(action);
        if std::mem::take(&mut start.is_in_place) && follows {
            return Ok(());
        }
        if let Some(saved) = if follows { &start.ready } else { &start.before } {
            self.visitor.target.restore(saved);
            return Ok(());
        }
        self.reach(nodes, start.node)?;
        self.visitor.ready(action).map_err(|kind| self.trouble(nodes, start.node, action, kind))
    }

    /// The answers that lead to a prefix.
    fn write_script(&mut self, at: usize) {
        self.script.clear();
        let mut prefix = &self.prefixes[at];
        while prefix.parent != NONE {
            let parent = &self.prefixes[prefix.parent as usize];
            self.script.push(Scripted { kind: self.kinds[parent.asks as usize], number: prefix.number });
            prefix = parent;
        }
        self.script.reverse();
    }

    fn trouble(
        &self,
        nodes: &Nodes<T::Snapshot>,
        node: u32,
        action: Action,
        kind: TroubleKind,
    ) -> Box<Trouble> {
        let mut trace = nodes.trace(node);
        path::push(&mut trace, action, &self.script);
        Box::new(Trouble { trace, kind })
    }

    /// A step has been performed to its end.
    fn done(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        start: &Start<T::Snapshot>,
        action: Action,
        visit: Visit,
        grown: &mut Grown<T::Snapshot>,
    ) -> Result<(), Box<Trouble>> {
        let node = grown.nodes.last_mut().expect("it was just begun");
        node.census.steps += u64::from(is_step(action));
        node.census.depth = node.census.depth.max(job.depth + u32::from(is_step(action)));
        let end = match visit {
            Visit::Passed if action != Action::Teardown => return self.arrive(job, start, action, grown),
            Visit::Passed => End::Leaf,
            Visit::Rejected => End::Rejected,
            Visit::Failed(failure) => End::Failed(failure),
            Visit::Asks(_) => unreachable!("it was performed to its end"),
        };
        let is_told = self.shared.options.lists || matches!(end, End::Failed(_));
        let step = is_told.then(|| (action, self.script.clone()));
        ended(grown, step, end, is_told);
        Ok(())
    }

    /// A step led to another state.
    fn arrive(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        start: &Start<T::Snapshot>,
        action: Action,
        grown: &mut Grown<T::Snapshot>,
    ) -> Result<(), Box<Trouble>> {
        let state = self.state().map_err(|kind| self.trouble(job.nodes, start.node, action, kind))?;
        let sleep = match action {
            Action::Rule(rule) => self.shared.independence.after(rule, start.sleep),
            _ => sleep::NONE,
        };
        let node = grown.nodes.last_mut().expect("it was just begun");
        if let Some(state) = state {
            let is_known = match self.shared.options.reduces {
                // What sleeps there differs from one arrival to the next, which merging puts together.
                true => {
                    let known = job.nodes.visited.get(state);
                    known.is_some_and(|known| job.nodes.asleep(known).sleep & !sleep == 0)
                }
                false => !self.shared.claims.claim(state, start.node),
            };
            if is_known {
                node.census.pruned += 1;
                return Ok(());
            }
        }
        node.children += 1;
        let has_room = self.visitor.target.saved_bytes() < self.shared.options.saved_bytes_max;
        let saved = if has_room { self.visitor.target.snapshot() } else { None };
        grown.scripts.extend_from_slice(&self.script);
        grown.children.push(Child { action, script: self.script.len(), state, sleep, saved });
        Ok(())
    }

    /// Now and then tells how far this worker is, and asks whether to go on.
    fn poll(&mut self, grown: &Grown<T::Snapshot>) {
        self.polls += 1;
        if !self.polls.is_multiple_of(POLL) {
            return;
        }
        let Some(GrownNode { census, .. }) = grown.nodes.last() else { return };
        let mut progress = lock(&self.shared.progress);
        progress.census.runs += census.runs - self.told.runs;
        progress.census.steps += census.steps - self.told.steps;
        progress.census.choices += census.choices - self.told.choices;
        self.told = *census;
        if let Some(limit) = (self.shared.goes_on)(&progress) {
            lock(&self.shared.limit).get_or_insert(limit);
            self.shared.stop.set();
        }
    }
}

/// The state that steps start from.
struct Start<S> {
    node: u32,
    before: Option<S>,
    ready: Option<S>,
    /// The target is there, with the preconditions evaluated.
    is_in_place: bool,
    /// The rules that sleep, those that were explored here included.
    sleep: Rules,
}

/// A path may end in the state itself.
fn ended_here<S>(ends: Option<Ends>, grown: &mut Grown<S>, lists: bool) {
    let node = grown.nodes.last_mut().expect("it was just begun");
    match ends {
        Some(Ends::Precondition(failure)) => {
            ended(grown, Some((Action::Rule(0), Vec::new())), End::Failed(failure), true);
        }
        Some(Ends::Bound) => {
            node.is_bound = true;
            ended(grown, None, End::Bound, lists);
        }
        Some(Ends::Final { is_bound, has_teardown }) => {
            node.is_bound = is_bound;
            if !has_teardown {
                ended(grown, None, End::Leaf, lists);
            }
        }
        None => {}
    }
}

/// Counts a path that ended, and keeps it where it is told.
fn ended<S>(grown: &mut Grown<S>, step: Option<(Action, Vec<Scripted>)>, end: End, is_told: bool) {
    let node = grown.nodes.last_mut().expect("it was just begun");
    node.census.runs += 1;
    node.census.rejected += u64::from(end == End::Rejected);
    if is_told {
        node.runs += 1;
        grown.runs.push(Run { step, end, number: node.census.runs });
    }
}
