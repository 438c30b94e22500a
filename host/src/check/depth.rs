//! The tree depth-first, by one worker or several.
//!
//! A worker keeps the path that it is on as a stack of levels, each with its saved state. A worker that has
//! nothing to do is given the shallowest alternatives that a busy one has not begun, so the tasks are parts of the
//! tree that follow one another in its order; results are put together in this order, however they came about.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use super::path::{self, advance, is_step};
use super::sleep::{self, Independence, Rules};
use super::visit::{Ends, Visit, Visitor, follows_preconditions};
use super::visited::Visited;
use super::{
    Census, Checked, End, Findings, GoesOn, Limit, Options, Progress, Stop, Told, Trouble, TroubleKind,
    in_parallel, lock,
};
use crate::choice::{Past, Scripted};
use crate::target::Target;
use crate::trace::{Action, Trace};

/// Visits between two looks at the clock and at the other workers.
const POLL: u32 = 16;

/// A state on the path, and which of its alternatives the path takes.
#[derive(Clone)]
struct Level<S> {
    /// The state with the preconditions evaluated, which rules start from.
    ready: Option<S>,
    /// The state before that, which faults are toggled in; saved where there are faults.
    before: Option<S>,
    actions: Vec<Action>,
    /// The alternative that the path takes, and the end of those that are this task's.
    at: usize,
    end: usize,
    /// The answers of this step; the first `fixed` are not this task's to change.
    script: Vec<Scripted>,
    fixed: usize,
    /// The step has not been performed with this script.
    is_fresh: bool,
    /// Rules called and faults toggled up to this state.
    depth: u32,
    /// The rules that sleep here, those before `at` included.
    sleep: Rules,
}

impl<S> Level<S> {
    fn action(&self) -> Action {
        self.actions[self.at]
    }

    /// Goes on to the next script, or to the next alternative; whether there is one.
    fn advance(&mut self) -> bool {
        if advance(&mut self.script, self.fixed) {
            return true;
        }
        self.has_alternative() && {
            self.sleep |= bit(self.action());
            self.at += 1;
            self.script.clear();
            self.fixed = 0;
            true
        }
    }

    fn has_alternative(&self) -> bool {
        self.at + 1 < self.end
    }

    /// The state that its step starts from, where it is saved.
    fn saved(&self) -> Option<&S> {
        if follows_preconditions(self.action()) { self.ready.as_ref() } else { self.before.as_ref() }
    }
}

fn bit(action: Action) -> Rules {
    match action {
        Action::Rule(rule) => sleep::bit(rule),
        _ => sleep::NONE,
    }
}

/// A place in the tree: for each level the alternative and the answers. Places compare as the tree is walked.
type Place = Vec<u32>;

fn place_of<S>(levels: &[Level<S>]) -> Place {
    let of_level = |level: &Level<S>| {
        std::iter::once(level.at as u32).chain(level.script.iter().map(|s| s.number)).collect::<Vec<_>>()
    };
    levels.iter().flat_map(of_level).collect()
}

/// The part of the tree that lies before a path, of 1.
fn position<S>(levels: &[Level<S>]) -> f64 {
    let (mut before, mut weight) = (0.0, 1.0);
    let mut branch = |index: usize, count: f64| {
        weight /= count;
        before += weight * index as f64;
    };
    for level in levels {
        branch(level.at, level.actions.len() as f64);
        for scripted in &level.script {
            branch(scripted.number as usize, scripted.kind.alternatives().unwrap_or(1) as f64);
        }
    }
    before
}

/// What became of a part of the tree.
struct Task {
    /// Where it begins.
    place: Place,
    census: Census,
    failed: Vec<Failed>,
    /// States at the bound in which something could still be done.
    bounds: u64,
    trouble: Option<Box<Trouble>>,
}

/// A path that failed.
struct Failed {
    place: Place,
    failure: Box<crate::outcome::Failure>,
    trace: Trace,
    /// What was counted in the task, this path included.
    census: Census,
}

/// What the workers share.
struct Shared<'a, S> {
    options: &'a Options,
    goes_on: GoesOn<'a>,
    told: Mutex<Told<'a>>,
    independence: Independence,
    root: Option<S>,
    workers: usize,
    queue: Mutex<Queue<S>>,
    changed: Condvar,
    /// Tasks that are waited for and not in the queue yet.
    wanted: AtomicUsize,
    stop: Stop,
    limit: Mutex<Option<Limit>>,
    tasks: Mutex<Vec<Task>>,
    /// The first place of each failure.
    failures: Mutex<BTreeMap<String, Place>>,
    /// With as many failures as wanted, the place after which nothing counts; and whether there is one.
    cut: Mutex<Option<Place>>,
    has_cut: AtomicBool,
    progress: Mutex<Progress>,
}

/// Parts of the tree that nobody has begun, and how many workers wait for one.
struct Queue<S> {
    tasks: Vec<Vec<Level<S>>>,
    waiting: usize,
}

/// See [`super::check`]. One worker where states are compared, where runs are counted down or told: what comes
/// first would depend on chance otherwise.
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
    let is_alone = options.prunes || options.lists || options.runs_max.is_some();
    let targets = if is_alone { &mut targets[..1] } else { targets };
    targets[0].reset();
    let shared = Shared {
        options,
        goes_on,
        told: Mutex::new(told),
        independence: Independence::of(&targets[0], options.reduces),
        root: targets[0].snapshot(),
        workers: targets.len(),
        queue: Mutex::new(Queue { tasks: vec![Vec::new()], waiting: 0 }),
        changed: Condvar::new(),
        wanted: AtomicUsize::new(0),
        stop: Stop::default(),
        limit: Mutex::new(None),
        tasks: Mutex::new(Vec::new()),
        failures: Mutex::new(BTreeMap::new()),
        cut: Mutex::new(None),
        has_cut: AtomicBool::new(false),
        progress: Mutex::new(Progress::default()),
    };
    let stack_bytes = targets[0].stack_bytes();
    in_parallel(targets, stack_bytes, |target| work(target, &shared));
    shared.result()
}

fn work<T: Target>(target: &mut T, shared: &Shared<'_, T::Snapshot>) {
    let mut worker = Worker::new(target, shared);
    while let Some(levels) = shared.next_task() {
        let task = worker.task(levels);
        if task.trouble.is_some() {
            shared.stop.set();
        }
        lock(&shared.tasks).push(task);
    }
}

impl<S> Shared<'_, S> {
    /// A part of the tree; nothing once every worker waits for one, or all are to stop.
    fn next_task(&self) -> Option<Vec<Level<S>>> {
        let mut queue = lock(&self.queue);
        queue.waiting += 1;
        loop {
            if !self.stop.is_set()
                && let Some(task) = queue.tasks.pop()
            {
                queue.waiting -= 1;
                self.want(&queue);
                return Some(task);
            }
            if queue.waiting == self.workers {
                self.stop.set();
            }
            if self.stop.is_set() {
                self.changed.notify_all();
                return None;
            }
            self.want(&queue);
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Hands a part of the tree to a worker that waits.
    fn give(&self, task: Vec<Level<S>>) {
        let mut queue = lock(&self.queue);
        queue.tasks.push(task);
        self.want(&queue);
        self.changed.notify_one();
    }

    fn want(&self, queue: &Queue<S>) {
        self.wanted.store(queue.waiting.saturating_sub(queue.tasks.len()), Ordering::Relaxed);
    }

    /// Remembers a failure, and where the check is cut off once there are enough.
    fn failed(&self, id: String, place: &Place) {
        let mut failures = lock(&self.failures);
        if failures.get(&id).is_some_and(|known| known <= place) {
            return;
        }
        failures.insert(id, place.clone());
        let max = self.options.findings_max;
        if max > 0 && failures.len() >= max {
            let mut places: Vec<&Place> = failures.values().collect();
            places.sort();
            *lock(&self.cut) = Some(places[max - 1].clone());
            self.has_cut.store(true, Ordering::Relaxed);
        }
    }

    /// Puts the tasks together in the order of the tree.
    fn result(self) -> Result<Checked, Box<Trouble>> {
        let mut tasks = self.tasks.into_inner().unwrap_or_else(PoisonError::into_inner);
        tasks.sort_by(|a, b| a.place.cmp(&b.place));
        let cut = self.cut.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut census, mut findings, mut bounds) = (Census::default(), Findings::default(), 0);
        for task in tasks {
            for failed in &task.failed {
                let run = census.runs + failed.census.runs;
                findings.add(&failed.failure, run, || failed.trace.clone());
                if cut.as_ref() == Some(&failed.place) {
                    census.add(&failed.census);
                    return Ok(Checked { census, findings: findings.0, limit: None });
                }
            }
            if let Some(trouble) = task.trouble {
                return Err(trouble);
            }
            census.add(&task.census);
            bounds += task.bounds;
        }
        let limit = self.limit.into_inner().unwrap_or_else(PoisonError::into_inner);
        let limit = limit.or((bounds > 0).then_some(Limit::Steps));
        Ok(Checked { census, findings: findings.0, limit })
    }
}

/// What is known of a state that was met, where states are compared.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The fewest steps that led there.
    depth: u32,
    /// It was met at the bound, with something left to do.
    is_bound: bool,
    /// The rules that were left out there.
    sleep: Rules,
}

/// What to explore of a state.
enum Part {
    All(Rules),
    /// Only these rules: the others were explored before.
    Only(Rules, Rules),
    Nothing,
}

struct Worker<'t, 's, 'o, T: Target> {
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
    /// What this task has told the others so far.
    told: Census,
    told_position: f64,
}

impl<'t, 's, 'o, T: Target> Worker<'t, 's, 'o, T> {
    fn new(target: &'t mut T, shared: &'s Shared<'o, T::Snapshot>) -> Worker<'t, 's, 'o, T> {
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
        }
    }

    /// Explores a part of the tree. No level at all is all of it.
    fn task(&mut self, levels: Vec<Level<T::Snapshot>>) -> Task {
        self.task = Task::new(place_of(&levels));
        self.told = Census::default();
        self.told_position = position(&levels);
        self.is_in_place = false;
        self.top = levels.len();
        self.levels = levels;
        let explored = if self.top == 0 { self.start() } else { Ok(()) };
        if let Err((kind, levels)) = explored.and_then(|()| self.explore()) {
            self.task.trouble = Some(Box::new(Trouble { trace: self.trace(levels), kind }));
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
        let depth = level.depth + u32::from(is_step(action));
        let census = &mut self.task.census;
        census.choices += choices as u64;
        census.steps += u64::from(is_step(action));
        census.depth = census.depth.max(depth);
        match visit {
            Visit::Passed if action == Action::Teardown => self.ended(End::Leaf, None),
            Visit::Passed => {
                let sleep = match action {
                    Action::Rule(rule) => self.shared.independence.after(rule, level.sleep),
                    _ => sleep::NONE,
                };
                self.arrive(depth, sleep)?;
            }
            Visit::Rejected => self.ended(End::Rejected, None),
            Visit::Failed(failure) => self.ended(End::Failed(failure), None),
            Visit::Asks(_) => unreachable!("choices past the script are answered"),
        }
        Ok(())
    }

    /// Puts the target into the state that the step of the last level starts from: that itself where it is saved,
    /// or by repeating the steps from the nearest one that is.
    fn place(&mut self) -> Result<(), (TroubleKind, usize)> {
        let last = self.top - 1;
        let nearest = (0..=last).rev().find(|index| self.levels[*index].saved().is_some());
        let first = match nearest {
            Some(index) => {
                self.visitor.target.restore(self.levels[index].saved().expect("it was just found"));
                index
            }
            None => {
                self.visitor.restart();
                0
            }
        };
        for index in first..=last {
            let action = self.levels[index].action();
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
        let before = if self.on.is_empty() { None } else { self.visitor.target.snapshot() };
        let bound = (depth, self.shared.options.steps_max);
        let mut actions = std::mem::take(&mut self.buffer().actions);
        let ends = self.visitor.alternatives(bound, &self.on, &mut actions);
        let is_again = only != !sleep::NONE;
        match ends {
            _ if is_again => actions.retain(|action| bit(*action) & only != 0),
            Some(Ends::Precondition(failure)) => self.ended(End::Failed(failure), Some(Action::Rule(0))),
            Some(Ends::Bound) => {
                self.bound(state, depth, sleep);
                self.ended(End::Bound, None);
            }
            Some(Ends::Final { is_bound, has_teardown }) => {
                if is_bound {
                    self.bound(state, depth, sleep);
                }
                if !has_teardown {
                    self.ended(End::Leaf, None);
                }
            }
            None => {}
        }
        actions.retain(|action| bit(*action) & sleep == 0);
        // Teardown comes back here only if it makes choices, which it seldom does.
        let is_saved = !actions.is_empty() && actions != [Action::Teardown];
        let ready = if is_saved { self.visitor.target.snapshot() } else { None };
        let has_actions = !actions.is_empty();
        self.is_in_place = has_actions;
        let level = &mut self.levels[self.top];
        (level.ready, level.before, level.depth, level.sleep) = (ready, before, depth, sleep);
        level.end = actions.len();
        level.actions = actions;
        self.top += usize::from(has_actions);
        Ok(())
    }

    /// What of the state is to be explored, and its hash where states are compared.
    fn part(&mut self, depth: u32, sleep: Rules) -> Result<(Option<u128>, Part), (TroubleKind, usize)> {
        let options = self.shared.options;
        let state = match options.prunes {
            true => self.visitor.target.compared_state().map_err(|f| (TroubleKind::State(f), self.top))?,
            false => None,
        };
        let Some(hash) = state else {
            self.task.census.states += 1;
            return Ok((None, Part::All(sleep)));
        };
        let Some(known) = self.visited.get(hash) else {
            self.task.census.states += 1;
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
        if is_told {
            (lock(&self.shared.told))(&trace, &end);
        }
        if let End::Failed(failure) = end
            && is_new
        {
            let place = place_of(&self.levels[..self.top]);
            self.shared.failed(failure.id(), &place);
            let census = self.task.census;
            self.task.failed.push(Failed { place, failure, trace, census });
        }
    }

    /// The path up to a level.
    fn trace(&self, levels: usize) -> Trace {
        let mut trace = Trace::default();
        for level in &self.levels[..levels] {
            path::push(&mut trace, level.action(), &level.script);
        }
        trace
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
        let position = position(&self.levels[..self.top]);
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
        if self.top > 0 {
            progress.done += position - self.told_position;
            self.told_position = position;
        }
        self.told = now;
        if let Some(limit) = (self.shared.goes_on)(&progress) {
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

fn trace_further(trace: &mut Trace, further: Option<Action>) {
    if let Some(action) = further {
        trace.push(action, 0);
    }
}

impl<S: Clone> Level<S> {
    /// As a part of a path of which no alternative is left.
    fn frozen(&self) -> Level<S> {
        let mut level = Level { ready: None, before: None, ..self.clone() };
        (level.end, level.fixed, level.is_fresh) = (level.at + 1, level.script.len(), false);
        level
    }
}

impl Task {
    fn new(place: Place) -> Task {
        Task { place, census: Census::default(), failed: Vec::new(), bounds: 0, trouble: None }
    }
}
