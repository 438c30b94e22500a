//! What a worker does: it looks at states of a level, and says what they lead to.

use std::ops::Range;

use super::grown::{Child, Grown, GrownNode, Led, Run, Sizes};
use super::nodes::{NONE, Nodes, index_of};
use super::start::{Prefix, Start};
use super::{POLL, Shared};
use crate::check::differ::Bounds;
use crate::check::equal::{Arrival, Equals};
use crate::check::path::is_step;
use crate::check::sleep;
use crate::check::visit::{Here, Visit, Visitor};
use crate::check::{Census, End, Limit, Trouble, TroubleKind, lock};
use crate::choice::{Kind, Past, Scripted, advance, mix};
use crate::target::{Successors, Target, follows_preconditions};
use crate::trace::{Action, Trace};

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

pub(super) struct Worker<'t, 's, T: Target> {
    pub(super) visitor: Visitor<'t, T>,
    pub(super) shared: &'s Shared<'s>,
    /// Where states are compared by what the guest says.
    pub(super) equals: Option<&'s Equals<T::Snapshot>>,
    on: Vec<bool>,
    actions: Vec<Action>,
    pub(super) script: Vec<Scripted>,
    /// Scratch: answers of a step, depth-first.
    answers: Vec<Scripted>,
    pub(super) path: Vec<u32>,
    prefixes: Vec<Prefix>,
    kinds: Vec<Kind>,
    /// States on the way to the node that was reached last, the first of them first, where they are not saved with their nodes.
    pub(super) reached: Vec<(u32, T::Snapshot)>,
    /// What the step that is being tried led to.
    pub(super) led: Led<T::Snapshot>,
    /// Scratch: where all steps from a state lead, their order, with where their scripts are, the states, and which of those are new.
    pub(super) found: Successors,
    pub(super) order: Vec<(usize, Range<usize>)>,
    pub(super) states: Vec<u128>,
    pub(super) are_new: Vec<bool>,
    /// What failed in a step that is tried anew.
    undone: Vec<Run>,
    /// Of the last chunk.
    sizes: Sizes,
    polls: u32,
    /// What was tried and not reported; some of it in vain.
    untold: Census,
    /// The states that were looked at, where it is not known what becomes of those that they lead to.
    pub(super) passed: Option<Vec<(u32, T::Snapshot)>>,
}

impl<'t, 's, T: Target> Worker<'t, 's, T> {
    pub(super) fn new(
        target: &'t mut T,
        shared: &'s Shared<'s>,
        equals: &'s Equals<T::Snapshot>,
        root: Option<T::Snapshot>,
    ) -> Worker<'t, 's, T> {
        Worker {
            equals: (shared.options.prunes && target.says_state()).then_some(equals),
            on: vec![false; target.faults().len()],
            visitor: Visitor::new(target, shared.options, root),
            shared,
            actions: Vec::new(),
            script: Vec::new(),
            answers: Vec::new(),
            path: Vec::new(),
            prefixes: Vec::new(),
            kinds: Vec::new(),
            reached: Vec::new(),
            led: Led::default(),
            found: Successors::default(),
            order: Vec::new(),
            states: Vec::new(),
            are_new: Vec::new(),
            undone: Vec::new(),
            sizes: Sizes::default(),
            polls: 0,
            untold: Census::default(),
            passed: None,
        }
    }

    /// The hash of the state that the target is in, where states are compared. Where something is claimed of runs without end, what the
    /// state says of that counts too.
    pub(super) fn state(&mut self) -> Result<Option<u128>, TroubleKind> {
        if !self.shared.options.prunes {
            return Ok(None);
        }
        self.visitor.state(self.shared.keeps_steps)
    }

    /// Compares the state, which has this hash, with others that have it.
    pub(super) fn met(&mut self, met: Arrival, trace: impl FnOnce() -> Trace) -> Result<(), TroubleKind> {
        let Some(equals) = self.equals else { return Ok(()) };
        let room = self.shared.met.room(self.shared.options);
        let is_over = || (self.shared.goes_on)(&lock(&self.shared.progress)).is_some();
        let bounds = Bounds { room, is_over: &is_over, with_holds: self.shared.keeps_steps };
        equals.met(&mut self.visitor, (met, bounds), trace)
    }

    /// Looks at some states of a round.
    pub(super) fn chunk(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        (first, len): (usize, usize),
    ) -> Grown<T::Snapshot> {
        let mut grown = Grown::new(first, self.sizes);
        for index in first..(first + len).min(job.round.len()) {
            if self.shared.stop.is_set() {
                break;
            }
            grown.nodes.push(GrownNode::default());
            if let Err(mut trouble) = self.node(job, (job.round.start + index) as u32, &mut grown) {
                self.led = Led::default();
                match trouble.kind {
                    // Whatever it is, it may come of that.
                    _ if job.nodes.is_broken() => self.shared.ended(Limit::Memory),
                    TroubleKind::Stopped => self.shared.stopped(),
                    // Without copies the check comes to it too, if it is one of the guest.
                    _ if self.visitor.target.is_copying() => {
                        trouble.kind = trouble.kind.of_copies();
                        grown.trouble = Some(trouble);
                    }
                    // The others finish the round, so that it does not depend on them which trouble comes first.
                    _ => grown.trouble = Some(trouble),
                }
                break;
            }
        }
        self.sizes = grown.sizes();
        grown
    }

    /// Looks at what a state leads to.
    pub(super) fn leads(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        node: u32,
        grown: &mut Grown<T::Snapshot>,
    ) -> Result<(), Box<Trouble>> {
        if self.successors(job, node, grown)? {
            return Ok(());
        }
        self.reach(job.nodes, node)?;
        self.pass(job.nodes, node);
        let before = if self.on.is_empty() { None } else { self.visitor.target.snapshot() };
        self.faults(job.nodes, node);
        job.nodes.is_read()?;
        let mut actions = std::mem::take(&mut self.actions);
        let asleep = job.nodes.asleep(node);
        if job.is_start {
            actions.clear();
            actions.push(Action::Setup);
        } else {
            let bound = (job.depth, self.shared.options.steps_max);
            let here = self.visitor.alternatives(bound, &self.on, &mut actions);
            let here = here.map_err(|kind| Box::new(Trouble { trace: job.nodes.trace(node), kind }))?;
            if asleep.is_again {
                actions.retain(|action| matches!(action, Action::Rule(_)));
            } else {
                let here = self.confirmed(job, node, here)?;
                self.ended_here(here, grown);
            }
        }
        let is_saved = actions.len() > 1 || matches!(actions[..], [Action::Rule(_) | Action::Fault(..)]);
        let is_marked = is_saved && !job.is_start && self.visitor.target.bookmark();
        let mut start = Start { node, before, is_marked, is_in_place: true, sleep: asleep.sleep };
        if !job.is_start && !asleep.is_again && !self.shared.independence.is_empty() && !actions.is_empty() {
            self.test_independence(job, &mut start)?;
        }
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

    /// A path may end in the state itself.
    fn ended_here(&mut self, here: Here, grown: &mut Grown<T::Snapshot>) {
        self.led.is_bound = here.is_bound;
        self.led.fails = matches!(here.end, Some(End::Failed(_)));
        if let Some(end) = here.end {
            let further = Here::further(&end).map(|action| (action, Vec::new()));
            self.led.ended(end, self.shared.options, || further);
            self.untold.runs += 1;
        }
        self.record(grown, None);
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
            if let Action::Fault(fault, on) = nodes.node(*node).action {
                self.on[usize::from(fault)] = on;
            }
        }
    }

    /// Tries all answers of one step, the shortest scripts first, and records what it led to.
    fn action(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        start: &mut Start<T::Snapshot>,
        action: Action,
        grown: &mut Grown<T::Snapshot>,
    ) -> Result<(), Box<Trouble>> {
        self.undone.clear();
        let can_be_undone = self.shared.options.runs_max.is_none();
        let tried = match can_be_undone.then(|| self.in_order(job, start, action)) {
            Some(Ok(true)) => Ok(()),
            Some(Err(trouble)) => Err(trouble),
            Some(Ok(false)) | None => self.queue(job, start, action, grown.runs_so_far(job)),
        };
        // What failed counts, also where there was no time for the rest.
        if tried.as_ref().err().is_none_or(|trouble| matches!(trouble.kind, TroubleKind::Stopped)) {
            self.led.failed_before(&mut self.undone, tried.is_err() || self.shared.stop.is_set());
            self.record(grown, Some(action));
        }
        tried
    }

    /// Tries all answers of one step, depth-first. Where all scripts are of one length, as they mostly are, that is
    /// the order of the queue too, without stopping the guest at every choice. Otherwise all is forgotten, and `false`.
    fn in_order(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        start: &mut Start<T::Snapshot>,
        action: Action,
    ) -> Result<bool, Box<Trouble>> {
        let mut len = None;
        // Not `self.script`, which reaching a state may overwrite.
        let mut script = std::mem::take(&mut self.answers);
        script.clear();
        let is_done = loop {
            self.poll();
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
            self.asked(choices as u64);
            self.done(job, start, action, visit)?;
            std::mem::swap(&mut self.script, &mut script);
            if !advance(&mut script, 0) {
                break true;
            }
        };
        self.answers = script;
        if !is_done {
            let led = std::mem::take(&mut self.led);
            self.undone = led.runs;
            for state in led.children.iter().filter_map(|child| child.state) {
                self.shared.claims.forget(state, start.node);
            }
        }
        Ok(is_done)
    }

    /// Tries all answers of one step by a queue of prefixes, after so many `runs`.
    fn queue(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        start: &mut Start<T::Snapshot>,
        action: Action,
        runs: u64,
    ) -> Result<(), Box<Trouble>> {
        self.prefixes.clear();
        self.kinds.clear();
        self.prefixes.push(Prefix { parent: NONE, number: 0, asks: 0 });
        let mut at = 0;
        while at < self.prefixes.len() {
            self.poll();
            if self.shared.stop.is_set() {
                return Ok(());
            }
            if self.shared.options.runs_max.is_some_and(|max| runs + self.led.census.runs >= max) {
                self.led.is_cut = true;
                return Ok(());
            }
            self.place(job.nodes, start, action)?;
            Prefix::script(&self.prefixes, at, &self.kinds, &mut self.script);
            let visited = self.visitor.visit(action, &mut self.script, Past::Stop);
            let (visit, _) = visited.map_err(|kind| self.trouble(job.nodes, start.node, action, kind))?;
            if let Visit::Asks(kind) = visit {
                self.asked(1);
                self.prefixes[at].asks = index_of(&mut self.kinds, kind);
                let count = kind.alternatives().expect("it was found to be bounded") as u32;
                let prefix = |number| Prefix { parent: at as u32, number, asks: 0 };
                self.prefixes.extend((0..count).map(prefix));
            } else {
                self.done(job, start, action, visit)?;
            }
            at += 1;
        }
        Ok(())
    }

    /// Records what the step led to.
    pub(super) fn record(&mut self, grown: &mut Grown<T::Snapshot>, action: Option<Action>) {
        self.shared.met.add(self.led.bytes);
        grown.record(&mut self.led, action, self.shared.options);
    }

    pub(super) fn asked(&mut self, choices: u64) {
        self.led.census.choices += choices;
        self.untold.choices += choices;
    }

    /// Puts the target into the state that the step starts from.
    pub(super) fn place(
        &mut self,
        nodes: &Nodes<T::Snapshot>,
        start: &mut Start<T::Snapshot>,
        action: Action,
    ) -> Result<(), Box<Trouble>> {
        let follows = follows_preconditions(action);
        if std::mem::take(&mut start.is_in_place) && follows {
            return Ok(());
        }
        if follows && start.is_marked && self.visitor.target.to_bookmark() {
            return Ok(());
        }
        if let Some(before) = start.before.as_ref().filter(|_| !follows) {
            self.visitor.target.restore(before);
            return Ok(());
        }
        self.reach(nodes, start.node)?;
        self.visitor.ready(action).map_err(|kind| self.trouble(nodes, start.node, action, kind))?;
        if follows && start.is_marked {
            start.is_marked = self.visitor.target.bookmark();
        }
        Ok(())
    }

    pub(super) fn trouble(
        &self,
        nodes: &Nodes<T::Snapshot>,
        node: u32,
        action: Action,
        kind: TroubleKind,
    ) -> Box<Trouble> {
        let trace = nodes.trace_with(node, action, &self.script);
        Box::new(Trouble { trace, kind })
    }

    /// A step has been performed to its end.
    fn done(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        start: &Start<T::Snapshot>,
        action: Action,
        visit: Visit,
    ) -> Result<(), Box<Trouble>> {
        if matches!(visit, Visit::LeftOut) {
            return Ok(());
        }
        self.stepped(job, action);
        let end = match visit {
            Visit::Passed if action != Action::Teardown => return self.arrive(job, start, action),
            Visit::Passed | Visit::Exited => End::Leaf,
            Visit::Rejected => End::Rejected,
            Visit::Failed(failure) => {
                let script = std::mem::take(&mut self.script);
                let confirmed = self.confirm(failure, || job.nodes.trace_with(start.node, action, &script));
                self.script = script;
                End::Failed(confirmed?)
            }
            Visit::LeftOut | Visit::Asks(_) => unreachable!("it was performed to its end"),
        };
        if self.shared.keeps_steps && end != End::Rejected && matches!(action, Action::Rule(_)) {
            let (script, way, fails) = (
                self.script.len(),
                self.way(action, self.visitor.target.way()),
                matches!(end, End::Failed(_)),
            );
            let child = Child { is_end: true, fails, way, ..Child::new(action, script) };
            self.led.arrived(child, &self.script);
        }
        self.ended(end, action);
        Ok(())
    }

    /// Counts a step.
    pub(super) fn stepped(&mut self, job: &Job<'_, T::Snapshot>, action: Action) {
        let counts = u32::from(is_step(action));
        self.led.census.steps += u64::from(counts);
        self.untold.steps += u64::from(counts);
        self.led.census.depth = self.led.census.depth.max(job.depth + counts);
    }

    /// A path ended in a step.
    pub(super) fn ended(&mut self, end: End, action: Action) {
        self.untold.runs += 1;
        self.led.ended(end, self.shared.options, || Some((action, self.script.clone())));
    }

    /// A step led to another state.
    fn arrive(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        start: &Start<T::Snapshot>,
        action: Action,
    ) -> Result<(), Box<Trouble>> {
        // Before the state is asked for and compared, where the guest may say more.
        let holds = self.visitor.target.holds();
        let way = self.way(action, self.visitor.target.way());
        let work = self.visitor.target.work();
        let state = self.state().map_err(|kind| self.trouble(job.nodes, start.node, action, kind))?;
        let sleep = match action {
            Action::Rule(rule) => self.shared.independence.after(rule, start.sleep),
            _ => sleep::NONE,
        };
        let mut is_known = false;
        if let Some(state) = state {
            let script = std::mem::take(&mut self.script);
            let arrived = self.equals.and_then(|all| all.arrives(&*self.visitor.target, state, Some(action)));
            let trace = || job.nodes.trace_with(start.node, action, &script);
            let met = arrived.map_or(Ok(()), |arrived| self.met(arrived, trace));
            self.script = script;
            met.map_err(|kind| self.trouble(job.nodes, start.node, action, kind))?;
            is_known = match self.shared.options.reduces {
                // What sleeps there differs from one arrival to the next, which merging puts together.
                true => {
                    let known = job.nodes.visited.get(state);
                    known.is_some_and(|known| job.nodes.asleep(known).sleep & !sleep == 0)
                }
                false => !self.shared.claims.claim(state, start.node),
            };
            // Where the graph is kept, each step counts.
            if is_known && !self.shared.keeps_steps {
                self.led.census.pruned += 1;
                return Ok(());
            }
        }
        let saved = if !is_known && self.is_saved(job.nodes, start.node, work) {
            self.visitor.target.snapshot()
        } else {
            None
        };
        let new = Child::new(action, self.script.len());
        let child = Child { state, sleep, holds, way, saved, ..new };
        self.led.arrived(child, &self.script);
        Ok(())
    }

    /// Which of the steps of its rule the last one was, of a rule that is fair in each.
    pub(super) fn way(&self, action: Action, said: Option<u64>) -> Option<u64> {
        let Action::Rule(rule) = action else { return None };
        let script = || self.script.iter().fold(0, |hash, scripted| mix(hash, scripted.number.into()));
        self.visitor.target.fairness(rule).1.then(|| said.unwrap_or_else(script))
    }

    /// Now and then reports how far this worker is, and asks whether to go on.
    pub(super) fn poll(&mut self) {
        self.polls += 1;
        if !self.polls.is_multiple_of(POLL) {
            return;
        }
        let mut progress = lock(&self.shared.progress);
        progress.census.add(&std::mem::take(&mut self.untold));
        let beside = self.led.bytes + size_of_val(&*self.prefixes) + size_of_val(&*self.script);
        let limit = self.shared.met.limit(beside, self.shared.options);
        if let Some(limit) = limit.or_else(|| (self.shared.goes_on)(&progress)) {
            lock(&self.shared.limit).get_or_insert(limit);
            self.shared.stop.set();
        }
    }
}
