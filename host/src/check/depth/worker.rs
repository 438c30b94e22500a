//! What a worker does: it walks a part of the tree, and gives some of it away where another has nothing to do.

use std::sync::atomic::Ordering;

use super::level::{Level, Place, Seen, bit, place_of, trace_further, trace_of};
use super::{Failed, POLL, Shared, Task, is_alone};
use crate::check::commute::{self, Trial, Trials};
use crate::check::differ::Bounds;
use crate::check::path::is_step;
use crate::check::sleep::{self, Rules};
use crate::check::visit::{Here, Visit, Visitor};
use crate::check::visited::Visited;
use crate::check::{Census, End, Limit, Trouble, TroubleKind, lock};
use crate::choice::{Past, mix};
use crate::target::{Target, follows_preconditions};
use crate::trace::{Action, Trace};

/// What is known of a state that was met, where states are compared.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The fewest steps that led there.
    pub(super) depth: u32,
    /// It was met at the bound, with something left to do.
    pub(super) is_bound: bool,
    /// The rules that were left out there.
    pub(super) sleep: Rules,
}

/// Up to so many steps from the start every state is one in which independence is tested.
const NEAR: u32 = 2;

/// What to explore of a state.
enum Part {
    All(Rules),
    /// Only these rules: the others were explored before.
    Only(Rules, Rules),
    Nothing,
}

pub(super) struct Worker<'t, 's, 'o, T: Target> {
    visitor: Visitor<'t, T>,
    shared: &'s Shared<'o, T::Snapshot>,
    /// The levels of the path are the first `top`; the others keep their buffers.
    levels: Vec<Level<T::Snapshot>>,
    top: usize,
    /// The target is in the `ready` state of the last level.
    is_in_place: bool,
    visited: Visited<Known>,
    /// Scratch: which faults are on.
    on: Vec<bool>,
    task: Task,
    polls: u32,
    /// What this task has reported so far.
    told: Census,
    told_position: f64,
    seen: Seen,
    /// States in which independence may have been tested.
    tested: u64,
}

impl<'t, 's, 'o, T: Target> Worker<'t, 's, 'o, T> {
    pub(super) fn new(target: &'t mut T, shared: &'s Shared<'o, T::Snapshot>) -> Worker<'t, 's, 'o, T> {
        let on = vec![false; target.faults().len()];
        Worker {
            visitor: Visitor::new(target, shared.options, shared.root.clone()),
            shared,
            levels: Vec::new(),
            top: 0,
            is_in_place: false,
            visited: Visited::new(),
            on,
            task: Task::new(Place::new()),
            polls: 0,
            told: Census::default(),
            told_position: 0.0,
            seen: Seen::default(),
            tested: 0,
        }
    }

    /// Explores a part of the tree. No level at all is all of it.
    pub(super) fn task(&mut self, levels: Vec<Level<T::Snapshot>>) -> Task {
        self.task = Task::new(place_of(&levels));
        self.told = Census::default();
        self.seen = Seen::of(&levels);
        self.told_position = self.seen.position;
        self.is_in_place = false;
        self.top = levels.len();
        self.levels = levels;
        let explored = if self.top == 0 { self.start() } else { Ok(()) };
        match explored.and_then(|()| self.explore()) {
            Ok(()) => {}
            Err((TroubleKind::Stopped, _)) => self.shared.stopped(),
            Err((kind, levels)) => {
                self.shared.cut_at(place_of(&self.levels[..levels]));
                self.task.trouble = Some(Box::new(Trouble { trace: self.trace(levels), kind }));
            }
        }
        self.poll();
        std::mem::replace(&mut self.task, Task::new(Place::new()))
    }

    /// Begins at the root of the tree.
    fn start(&mut self) -> Result<(), (TroubleKind, usize)> {
        self.visitor.restart();
        if !self.visitor.target.has_setup() {
            return self.arrive(0, sleep::NONE);
        }
        let level = self.buffer();
        level.actions.push(Action::Setup);
        level.end = 1;
        self.top = 1;
        Ok(())
    }

    /// The level after the last, emptied.
    fn buffer(&mut self) -> &mut Level<T::Snapshot> {
        if self.levels.len() == self.top {
            self.levels.push(Level {
                ready: None,
                before: None,
                actions: Vec::new(),
                at: 0,
                end: 0,
                script: Vec::new(),
                fixed: 0,
                is_fresh: true,
                depth: 0,
                sleep: sleep::NONE,
            });
        }
        let level = &mut self.levels[self.top];
        level.actions.clear();
        level.script.clear();
        (level.at, level.fixed, level.is_fresh) = (0, 0, true);
        level
    }

    /// Explores until the task is done, or all are to stop. A step that is in trouble is named by the number of
    /// levels up to it.
    fn explore(&mut self) -> Result<(), (TroubleKind, usize)> {
        while self.top > 0 {
            self.polls += 1;
            if self.polls.is_multiple_of(POLL) {
                self.poll();
            }
            if self.shared.stop.is_set() || self.is_cut() {
                return Ok(());
            }
            if self.shared.wanted.load(Ordering::Relaxed) > 0 {
                self.donate();
            }
            let level = &mut self.levels[self.top - 1];
            if !std::mem::take(&mut level.is_fresh) && !level.advance() {
                (level.ready, level.before) = (None, None);
                self.top -= 1;
                continue;
            }
            if self.shared.options.runs_max.is_some_and(|max| self.task.census.runs >= max) {
                lock(&self.shared.limit).get_or_insert(Limit::Runs);
                self.shared.stop.set();
                return Ok(());
            }
            self.step()?;
        }
        Ok(())
    }

    /// Performs the step of the last level.
    fn step(&mut self) -> Result<(), (TroubleKind, usize)> {
        let last = self.top - 1;
        let action = self.levels[last].action();
        if !(self.is_in_place && follows_preconditions(action)) {
            self.place()?;
        }
        self.is_in_place = false;
        let level = &mut self.levels[last];
        let (visit, choices) =
            self.visitor.visit(action, &mut level.script, Past::First).map_err(|kind| (kind, self.top))?;
        self.seen.gains(level);
        let depth = level.depth + u32::from(is_step(action));
        let census = &mut self.task.census;
        census.choices += choices as u64;
        census.steps += u64::from(is_step(action));
        census.depth = census.depth.max(depth);
        match visit {
            Visit::Exited => self.ended(End::Leaf, None),
            Visit::Passed if action == Action::Teardown => self.ended(End::Leaf, None),
            Visit::Passed => {
                let sleep = match action {
                    Action::Rule(rule) => self.shared.independence.after(rule, level.sleep),
                    _ => sleep::NONE,
                };
                self.arrive(depth, sleep)?;
            }
            Visit::Rejected | Visit::LeftOut => self.ended(End::Rejected, None),
            Visit::Failed(failure) => self.ended(End::Failed(failure), None),
            Visit::Asks(_) => unreachable!("choices past the script are answered"),
        }
        Ok(())
    }

    /// Puts the target into the state that the step of the last level starts from: that itself where it is saved,
    /// or by repeating the steps from the nearest one that is.
    fn place(&mut self) -> Result<(), (TroubleKind, usize)> {
        self.place_at(self.levels[self.top - 1].action())
    }

    /// As [`Worker::place`], before `action` in the state of the last level.
    fn place_at(&mut self, action: Action) -> Result<(), (TroubleKind, usize)> {
        let last = self.top - 1;
        let saved = |index: usize, levels: &[Level<T::Snapshot>]| match index == last {
            true => levels[index].saved_before(action).is_some(),
            false => levels[index].saved().is_some(),
        };
        let nearest = (0..=last).rev().find(|index| saved(*index, &self.levels));
        let first = match nearest {
            Some(index) => {
                let level = &self.levels[index];
                let saved = if index == last { level.saved_before(action) } else { level.saved() };
                self.visitor.target.restore(saved.expect("it was just found"));
                index
            }
            None => {
                self.visitor.restart();
                0
            }
        };
        for index in first..=last {
            let action = if index == last { action } else { self.levels[index].action() };
            if nearest != Some(index) {
                self.visitor.ready(action).map_err(|kind| (kind, index + 1))?;
            }
            if index < last {
                let script = &mut self.levels[index].script;
                self.visitor.repeat(action, script).map_err(|kind| (kind, index + 1))?;
            }
        }
        Ok(())
    }

    /// Looks at the state that a step led to, `depth` steps from the start.
    fn arrive(&mut self, depth: u32, sleep: Rules) -> Result<(), (TroubleKind, usize)> {
        let (state, part) = self.part(depth, sleep)?;
        let (sleep, only) = match part {
            Part::Nothing => {
                self.task.census.pruned += 1;
                return Ok(());
            }
            Part::All(sleep) => (sleep, !sleep::NONE),
            Part::Only(rules, sleep) => (sleep, rules),
        };
        self.on.fill(false);
        if !self.on.is_empty() {
            for level in &self.levels[..self.top] {
                if let Action::Fault(fault, on) = level.action() {
                    self.on[usize::from(fault)] = on;
                }
            }
        }
        let has_room = self.shared.met.has_room(self.visitor.target, self.shared.options);
        let saves_before = has_room && !self.on.is_empty();
        let before = if saves_before { self.visitor.target.snapshot() } else { None };
        let bound = (depth, self.shared.options.steps_max);
        let mut actions = std::mem::take(&mut self.buffer().actions);
        let here =
            self.visitor.alternatives(bound, &self.on, &mut actions).map_err(|kind| (kind, self.top))?;
        let is_again = only != !sleep::NONE;
        if is_again {
            actions.retain(|action| bit(*action) & only != 0);
        } else {
            if here.is_bound {
                self.bound(state, depth, sleep);
            }
            if let Some(end) = here.end {
                let further = Here::further(&end);
                self.ended(end, further);
            }
        }
        actions.retain(|action| bit(*action) & sleep == 0);
        // Teardown comes back here only if it makes choices, which it seldom does.
        let is_saved = !actions.is_empty() && actions != [Action::Teardown];
        let ready = if is_saved && has_room { self.visitor.target.snapshot() } else { None };
        let has_actions = !actions.is_empty();
        self.is_in_place = has_actions;
        let level = &mut self.levels[self.top];
        (level.ready, level.before, level.depth, level.sleep) = (ready, before, depth, sleep);
        level.end = actions.len();
        level.actions = actions;
        self.top += usize::from(has_actions);
        if has_actions && !is_again && !self.shared.independence.is_empty() {
            self.test_independence()?;
        }
        Ok(())
    }

    /// In some states tries both orders of rules that are declared independent; the last level is that of the state.
    fn test_independence(&mut self) -> Result<(), (TroubleKind, usize)> {
        // A number that does not depend on the number of workers.
        let state = match is_alone(self.shared.options) {
            true => self.tested,
            false => {
                let path = place_of(&self.levels[..self.top - 1]);
                path.iter().fold(0, |hash, at| mix(hash, u64::from(*at) + 1))
            }
        };
        self.tested += 1;
        let is_near = self.levels[self.top - 1].depth <= NEAR;
        if self.visitor.enabled.is_empty() || !(is_near || commute::is_sampled(state)) {
            return Ok(());
        }
        let to_state = self.top - 1;
        let enabled = self.visitor.enabled.clone();
        let mut trials = Trials::new(&self.shared.independence, &enabled, state);
        while let Some(trial) = trials.next() {
            let run = |worker: &mut Self, trial: &Trial| {
                worker.place_at(Action::Rule(enabled[0]))?;
                worker.visitor.run(trial).map_err(|kind| (kind, to_state))
            };
            let one = run(self, &trial)?;
            let other = trial.swapped().map(|trial| run(self, &trial)).transpose()?;
            if let Some(why) = trials.differs(&trial, &one, other.as_ref()) {
                return Err((TroubleKind::Dependent { rules: trial.rules, why }, to_state));
            }
            self.is_in_place = false;
        }
        Ok(())
    }

    /// What of the state is to be explored, and its hash where states are compared.
    fn part(&mut self, depth: u32, sleep: Rules) -> Result<(Option<u128>, Part), (TroubleKind, usize)> {
        let options = self.shared.options;
        let state = match options.prunes {
            true => self.visitor.target.compared_state().map_err(|halt| (halt.into(), self.top))?,
            false => None,
        };
        let Some(hash) = state else {
            self.task.census.states += 1;
            return Ok((None, Part::All(sleep)));
        };
        if let Some(equals) = &self.shared.equals
            && let Some(arrived) = equals.arrives(
                &*self.visitor.target,
                hash,
                self.levels[..self.top].last().map(|level| level.action()),
            )
        {
            let room = self.shared.met.room(options);
            let is_over = || (self.shared.goes_on)(&lock(&self.shared.progress)).is_some();
            let bounds = Bounds { room, is_over: &is_over, with_holds: false };
            let (levels, top) = (&self.levels, self.top);
            equals
                .met(&mut self.visitor, (arrived, bounds), || trace_of(&levels[..top]))
                .map_err(|kind| (kind, top))?;
        }
        let Some(known) = self.visited.get(hash) else {
            self.task.census.states += 1;
            // The table is there twice while it grows.
            self.shared.met.add(Visited::<Known>::BYTES * 3 / 2);
            self.visited.insert(hash, Known { depth, is_bound: false, sleep });
            return Ok((state, Part::All(sleep)));
        };
        // Under a bound, fewer steps to a state leave more for what comes after it.
        let is_nearer = options.steps_max.is_some() && depth < known.depth;
        let is_farther = options.steps_max.is_some() && depth > known.depth;
        let missing = known.sleep & !sleep;
        let both = known.sleep & sleep;
        let part = if is_nearer {
            self.task.bounds -= u64::from(known.is_bound);
            self.visited.insert(hash, Known { depth, is_bound: false, sleep });
            Part::All(sleep)
        } else if missing == sleep::NONE {
            Part::Nothing
        } else if is_farther {
            Part::Only(missing, both)
        } else {
            self.visited.insert(hash, Known { sleep: both, ..known });
            Part::Only(missing, both)
        };
        Ok((state, part))
    }

    /// Something is left to do in this state, and the bound on steps forbids it.
    fn bound(&mut self, state: Option<u128>, depth: u32, sleep: Rules) {
        self.task.bounds += 1;
        if let Some(state) = state {
            self.visited.insert(state, Known { depth, is_bound: true, sleep });
        }
    }

    /// The path ended; `further` is a step that failed before it began.
    fn ended(&mut self, end: End, further: Option<Action>) {
        self.task.census.runs += 1;
        self.task.census.rejected += u64::from(end == End::Rejected);
        if !self.shared.options.lists && !matches!(end, End::Failed(_)) {
            return;
        }
        let is_known = |failure| self.task.failed.iter().any(|known| known.failure.is_same(failure));
        let is_told = self.shared.options.lists;
        let is_new = matches!(&end, End::Failed(failure) if !is_known(failure));
        if !is_told && !is_new {
            return;
        }
        let mut trace = self.trace(self.top);
        trace_further(&mut trace, further);
        (lock(&self.shared.told))(&trace, &end);
        if let End::Failed(failure) = end
            && is_new
        {
            let place = place_of(&self.levels[..self.top]);
            self.shared.failed(failure.id(), &place);
            let census = self.task.census;
            self.shared.met.add(trace.bytes() as usize + failure.message.len());
            self.task.failed.push(Failed { place, failure, trace, census });
        }
    }

    /// The path up to a level.
    fn trace(&self, levels: usize) -> Trace {
        trace_of(&self.levels[..levels])
    }

    /// Gives away the shallowest alternatives that were not begun.
    fn donate(&mut self) {
        for index in 0..self.top {
            let level = &mut self.levels[index];
            let mut other = None;
            if level.has_alternative() {
                let mut given = level.clone();
                given.sleep |= bit(given.action());
                given.at += 1;
                given.script.clear();
                given.fixed = 0;
                level.end = level.at + 1;
                other = Some(given);
            } else {
                let open = (level.fixed..level.script.len()).find(|at| level.script[*at].has_next());
                if let Some(at) = open {
                    let mut given = level.clone();
                    given.script.truncate(at + 1);
                    given.script[at].number += 1;
                    given.fixed = at;
                    level.fixed = at + 1;
                    other = Some(given);
                }
            }
            let Some(mut given) = other else { continue };
            given.is_fresh = true;
            let mut task: Vec<Level<T::Snapshot>> = self.levels[..index].iter().map(Level::frozen).collect();
            task.push(given);
            return self.shared.give(task);
        }
    }

    /// Whether all that is left comes after the last failure that is wanted.
    fn is_cut(&self) -> bool {
        self.shared.has_cut.load(Ordering::Relaxed) && {
            let cut = lock(&self.shared.cut);
            cut.as_ref().is_some_and(|cut| place_of(&self.levels[..self.top]) >= *cut)
        }
    }

    /// Tells how far this worker is, and asks whether to go on.
    fn poll(&mut self) {
        let is_full = |seen: &Seen| self.shared.met.limit(seen.bytes, self.shared.options);
        self.seen.look(&self.levels[..self.top], is_full(&self.seen).is_some());
        let limit = is_full(&self.seen);
        let mut progress = lock(&self.shared.progress);
        let (now, told) = (self.task.census, self.told);
        progress.census.add(&Census {
            runs: now.runs - told.runs,
            rejected: now.rejected - told.rejected,
            states: now.states - told.states,
            pruned: now.pruned - told.pruned,
            steps: now.steps - told.steps,
            choices: now.choices - told.choices,
            depth: now.depth,
        });
        progress.done += self.seen.position - std::mem::replace(&mut self.told_position, self.seen.position);
        self.told = now;
        if let Some(limit) = limit.or_else(|| (self.shared.goes_on)(&progress)) {
            lock(&self.shared.limit).get_or_insert(limit);
            self.shared.stop.set();
        }
        drop(progress);
        if self.shared.stop.is_set() {
            let _queue = lock(&self.shared.queue);
            self.shared.changed.notify_all();
        }
    }
}
