//! What a worker does: it looks at states of a level, and says what they lead to.

use super::nodes::{NONE, Nodes, index_of};
use super::{CHUNK, POLL, Shared};
use crate::check::path::{self, is_step};
use crate::check::sleep::{self, Rules};
use crate::check::visit::{Ends, Visit, Visitor, follows_preconditions};
use crate::check::{Census, End, Trouble, TroubleKind, lock};
use crate::choice::{Kind, Past, Scripted};
use crate::target::Target;
use crate::trace::Action;

/// What the states of a chunk led to.
pub(super) struct Grown<S> {
    /// The index of the first state within its round.
    pub(super) first: usize,
    pub(super) nodes: Vec<GrownNode>,
    pub(super) children: Vec<Child<S>>,
    pub(super) runs: Vec<Run>,
    pub(super) scripts: Vec<Scripted>,
    pub(super) trouble: Option<Box<Trouble>>,
}

/// What one state led to; children and runs are the next ones in the chunk.
#[derive(Clone, Copy, Default)]
pub(super) struct GrownNode {
    pub(super) census: Census,
    pub(super) children: usize,
    pub(super) runs: usize,
    /// Something could be done here, and the bound on steps forbids it.
    pub(super) is_bound: bool,
    /// The bound on runs ended it.
    pub(super) is_cut: bool,
}

/// A state that may be new.
pub(super) struct Child<S> {
    pub(super) action: Action,
    /// The length of its script, which is the next one in the chunk.
    pub(super) script: usize,
    pub(super) state: Option<u128>,
    pub(super) sleep: Rules,
    pub(super) saved: Option<S>,
}

/// A path that ended.
pub(super) struct Run {
    /// The step after the node's state, and the length of its script; nothing where the path ended in that state.
    pub(super) step: Option<(Action, Vec<Scripted>)>,
    pub(super) end: End,
    /// Which of the node's, from 1.
    pub(super) number: u64,
}

/// A round: states of one level.
pub(super) struct Job<'a, S> {
    pub(super) nodes: &'a Nodes<S>,
    pub(super) round: std::ops::Range<usize>,
    pub(super) depth: u32,
    /// The only state is the one before setup.
    pub(super) is_start: bool,
    /// Runs before this round.
    pub(super) runs: u64,
}

/// A prefix of answers of one step. They are visited in the order in which they are added.
struct Prefix {
    pub(super) parent: u32,
    pub(super) number: u32,
    /// The index of what is asked after it.
    pub(super) asks: u32,
}

pub(super) struct Worker<'t, 's, T: Target> {
    pub(super) visitor: Visitor<'t, T>,
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
    pub(super) fn new(
        target: &'t mut T,
        shared: &'s Shared<'s>,
        root: Option<T::Snapshot>,
    ) -> Worker<'t, 's, T> {
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
    pub(super) fn state(&mut self) -> Result<Option<u128>, TroubleKind> {
        match self.shared.options.prunes {
            true => self.visitor.target.compared_state().map_err(TroubleKind::from),
            false => Ok(None),
        }
    }

    /// Looks at some states of a round.
    pub(super) fn chunk(&mut self, job: &Job<'_, T::Snapshot>, first: usize) -> Grown<T::Snapshot> {
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
                match trouble.kind {
                    TroubleKind::Stopped => self.shared.stopped(),
                    _ => grown.trouble = Some(trouble),
                }
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
            let ends = ends.map_err(|kind| Box::new(Trouble { trace: job.nodes.trace(node), kind }))?;
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
    pub(super) node: u32,
    pub(super) before: Option<S>,
    pub(super) ready: Option<S>,
    /// The target is there, with the preconditions evaluated.
    pub(super) is_in_place: bool,
    /// The rules that sleep, those that were explored here included.
    pub(super) sleep: Rules,
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
