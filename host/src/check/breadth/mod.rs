//! The tree breadth-first: all states at n steps before those at n + 1, so the first path to a failure is a
//! shortest one. Within a step a queue of prefixes, each of which stops the guest at the first choice past it.
//!
//! Workers share a level: each takes the next few states of it, and what they found is merged in the order of the
//! states. A new state belongs to the first state in this order that leads to it, whichever worker was faster.

mod apart;
mod claims;
mod confirm;
pub(super) mod graph;
mod grow;
mod grown;
pub(super) mod help;
mod kept;
mod long;
mod nodes;
mod reach;
mod shared;
mod start;
mod successors;
#[cfg(test)]
mod tests;
mod trials;
mod worker;

use super::equal::Equals;
use super::path;
use super::sleep;
use super::{
    Census, Checked, End, Findings, First, GoesOn, Keeping, Limit, Options, RuleCover, Told, Trouble,
    TroubleKind, lock,
};
use crate::choice::Scripted;
use crate::property::{Counts, Room};
use crate::target::Target;
use crate::trace::{Action, Trace};
pub use apart::{Helpers, Part, Round, Source};
use graph::{END, FAILURE, Picture, States};
use grow::grow;
use grown::{Child, Grown, GrownNode, Run};
use kept::{Frontier, Unkept};
pub use kept::{News, Soundness};
use nodes::{Asleep, NONE, Nodes};
use shared::{Shared, has_liveness};
use worker::{Job, Worker};

/// Visits between two looks at the clock.
const POLL: u32 = 16;
/// States that a worker takes at once, and that all take before the results are merged.
const CHUNK: usize = 16;
const ROUND: u32 = 4096;

/// See [`super::check_keeping`].
pub(super) fn check<T>(
    targets: &mut [T],
    options: &Options,
    (goes_on, told): (GoesOn<'_>, Told<'_>),
    (keeping, counts): (Option<Keeping<'_>>, &mut Counts),
) -> Result<Checked, Box<Trouble>>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    // Where other processes help, states are handed to them.
    let may_copy = options.may_copy() && keeping.as_ref().is_none_or(|keeping| keeping.helpers.is_none());
    let copies = may_copy && targets.iter_mut().all(Target::begin_copies);
    let checked = check_alike(targets, options, (goes_on, told), (keeping, counts), copies);
    targets.iter_mut().for_each(Target::end_copies);
    checked
}

/// As [`check`], of targets that all have their guests copy states, or all do not.
fn check_alike<T>(
    targets: &mut [T],
    options: &Options,
    (goes_on, told): (GoesOn<'_>, Told<'_>),
    (mut keeping, counts): (Option<Keeping<'_>>, &mut Counts),
    copies: bool,
) -> Result<Checked, Box<Trouble>>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    if !copies {
        targets.iter_mut().for_each(Target::end_copies);
    }
    targets[0].reset();
    // Each has a copy of that state of its own.
    let root = if copies { None } else { targets[0].snapshot() };
    let has_liveness = has_liveness(&targets[0], options);
    let keeper = keeping.as_ref().map(|keeping| keeping.keeper);
    let shared = Shared::new(targets, options, goes_on, keeper);
    let equals = Equals::new();
    let mut workers: Vec<Worker<'_, '_, T>> =
        targets.iter_mut().map(|target| Worker::new(target, &shared, &equals, root.clone())).collect();
    let mut check = Check::new(&shared, told, counts, workers[0].visitor.target);
    check.start(&mut workers[0], root)?;
    check.count(&mut workers, 0);
    if let Some(keeping) = &mut keeping {
        check.take_over(keeping);
        if check.census.states > 1 {
            equals.resumes();
        }
    }
    while !check.is_over() && (check.frontier.first < check.frontier.end || check.next_level()) {
        check.round(&mut workers, keeping.as_ref())?;
    }
    if check.is_out_of_runs() && check.waiting() > 0 {
        check.limited(Limit::Runs);
    }
    let picture = check.states.as_ref().filter(|_| options.draws).map(|states| states.picture(&check.nodes));
    let has_loop = has_liveness
        && lock(&shared.limit).is_none_or(|limit| !matches!(limit, Limit::Time | Limit::Interrupt))
        && check.judge(workers[0].visitor.target, keeping.as_ref());
    Ok(check.finished(picture, has_loop))
}

/// The check, as far as it was merged.
struct Check<'a, S> {
    shared: &'a Shared<'a>,
    told: Told<'a>,
    /// Where the guest has properties of runs without end.
    states: Option<States>,
    nodes: Nodes<S>,
    frontier: Frontier,
    census: Census,
    findings: Findings,
    bounds: u64,
    rules: Vec<RuleCover>,
    first: First,
    names: Room,
    /// What was counted of properties.
    counts: &'a mut Counts,
    /// What is to be kept of all that, where something keeps it.
    unkept: Option<Unkept>,
    /// How many parts of it were kept.
    kept: u64,
    /// No more hashes can be moved.
    is_full: bool,
}

impl<'a, S: Clone> Check<'a, S> {
    fn new<T: Target>(
        shared: &'a Shared<'a>,
        told: Told<'a>,
        counts: &'a mut Counts,
        target: &T,
    ) -> Check<'a, S> {
        let has_setup = target.has_setup();
        Check {
            shared,
            told,
            states: shared.keeps_steps.then(|| States::new(has_setup)),
            nodes: Nodes::new(),
            frontier: Frontier { first: 0, end: 1, depth: 0, is_start: has_setup },
            census: Census::default(),
            findings: Findings::default(),
            bounds: 0,
            rules: vec![RuleCover::default(); target.rules().len()],
            first: First::new(),
            names: Room::new(std::iter::empty()),
            counts,
            unkept: None,
            kept: 0,
            is_full: false,
        }
    }

    /// What it came to.
    fn finished(mut self, picture: Option<Picture>, has_loop: bool) -> Checked {
        let limit = *lock(&self.shared.limit);
        let mut limit = limit.or((self.bounds > 0).then_some(Limit::Steps));
        if self.findings.is_full(self.shared.options) {
            limit = None;
            // What workers have seen beyond the last of them depends on how many they are.
            self.first.clear();
        }
        let Check { census, findings, rules, first, .. } = self;
        Checked { rules, first, picture, has_loop, ..Checked::of(census, findings, limit) }
    }

    /// Adds the root of the tree.
    fn start<T: Target<Snapshot = S>>(
        &mut self,
        worker: &mut Worker<'_, '_, T>,
        root: Option<S>,
    ) -> Result<(), Box<Trouble>> {
        self.nodes.push(NONE, Action::Setup, &[], root);
        if self.shared.options.reduces {
            self.nodes.asleep.push(Asleep::but(sleep::NONE));
        }
        if !worker.visitor.target.has_setup() {
            worker.visitor.restart();
            match self.begin(worker) {
                Err(TroubleKind::Stopped) => self.shared.stopped(),
                begun => begun.map_err(|kind| Box::new(Trouble { trace: Trace::default(), kind }))?,
            }
        }
        Ok(())
    }

    /// Counts the state at the start, in which the target is.
    fn begin<T: Target<Snapshot = S>>(&mut self, worker: &mut Worker<'_, '_, T>) -> Result<(), TroubleKind> {
        if let Some(state) = worker.state()? {
            let arrived =
                worker.equals.and_then(|equals| equals.arrives(&*worker.visitor.target, state, None));
            arrived.map_or(Ok(()), |arrived| worker.met(arrived, Trace::default))?;
            self.nodes.visited.insert(state, 0);
            self.shared.claims.claim(state, 0);
        }
        self.census.states = 1;
        Ok(())
    }

    /// Goes on to the states that those of the level led to; whether there are any.
    fn next_level(&mut self) -> bool {
        let Frontier { end, depth, is_start, .. } = &mut self.frontier;
        *depth += u32::from(!*is_start);
        *is_start = false;
        *end = self.nodes.list.len() as u32;
        self.nodes.let_go(self.frontier.first);
        self.waiting() > 0
    }

    /// Looks at some states of the level.
    fn round<T>(
        &mut self,
        workers: &mut [Worker<'_, '_, T>],
        keeping: Option<&Keeping<'_>>,
    ) -> Result<(), Box<Trouble>>
    where
        T: Target<Snapshot = S> + Send,
        S: Send + Sync,
    {
        let Frontier { first, end, depth, is_start } = self.frontier;
        // Where runs are counted down, each state knows how many there were before it.
        let helpers = keeping.and_then(|keeping| keeping.helpers);
        let most = match helpers {
            _ if self.shared.options.runs_max.is_some() => 1,
            Some(_) => apart::ROUND,
            None => ROUND,
        };
        let round = first as usize..(first.saturating_add(most)).min(end) as usize;
        let job = Job { nodes: &self.nodes, round: round.clone(), depth, is_start, runs: self.census.runs };
        let offered =
            Round { kept: self.kept, first, end: round.end as u32, depth, is_start, runs: self.census.runs };
        if let Some(helpers) = helpers {
            helpers.offer(&offered);
        }
        let mut counted = Vec::new();
        let apart = helpers.map(|helpers| (helpers, &offered));
        let grown = grow(workers, self.shared, &job, (apart, &mut counted));
        if self.shared.claims.is_broken() || self.nodes.is_broken() {
            self.shared.ended(Limit::Memory);
        }
        // What is known of a round that was broken off is not whole: it is begun again.
        if let (Some(keeping), true) = (keeping, self.shared.stop.is_set()) {
            self.keep(keeping);
        }
        self.count(workers, depth + u32::from(!is_start));
        counted.iter().for_each(|counts| self.count_one(counts, depth + u32::from(!is_start)));
        let looked_at: usize = grown.iter().map(|grown| grown.nodes.len()).sum();
        self.merge(round.start, grown, end)?;
        self.shared.met.set(self.bytes());
        self.frontier.first += looked_at as u32;
        self.nodes.wait_from(self.frontier.first);
        if self.nodes.is_full() {
            self.shared.ended(Limit::Memory);
        }
        self.report();
        if let Some(keeping) = keeping
            && (looked_at < round.len() || helpers.is_some())
            && !self.is_over()
        {
            self.keep(keeping);
            if keeping.keeper.is_lost() {
                self.shared.ended(Limit::Interrupt);
            }
        }
        if !self.is_over() {
            self.store(keeping);
        }
        Ok(())
    }

    /// Adds what the workers counted of properties, so many steps from the start.
    fn count<T: Target>(&mut self, workers: &mut [Worker<'_, '_, T>], depth: u32) {
        for counts in workers.iter_mut().filter_map(|worker| worker.visitor.target.take_counts()) {
            self.count_one(&counts, depth);
        }
    }

    fn count_one(&mut self, counts: &Counts, depth: u32) {
        for property in counts.properties.iter() {
            let held = (property.held > 0).then_some(depth);
            let key = (property.kind, property.name.clone());
            if let Some((_, first_held)) = self.first.get_mut(&key) {
                *first_held = first_held.or(held);
            } else if self.names.takes(property.name.len()) {
                self.first.insert(key, (depth, held));
            }
        }
        self.counts.add(counts);
    }

    /// States that were met and not looked at.
    fn waiting(&self) -> usize {
        self.nodes.list.len() - self.frontier.first as usize
    }

    /// Bytes that all this holds, about.
    fn bytes(&self) -> usize {
        let draws = self.shared.options.draws;
        let claims = self.shared.claims.bytes();
        claims + self.nodes.bytes() + self.states.as_ref().map_or(0, |states| states.bytes(draws))
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
    fn report(&self) {
        let mut progress = lock(&self.shared.progress);
        progress.census = self.census;
        progress.waiting = self.waiting() as u64;
    }

    /// Adds what a round led to. The nodes from `next` on wait.
    fn merge(&mut self, start: usize, round: Vec<Grown<S>>, next: u32) -> Result<(), Box<Trouble>> {
        for grown in round {
            let first = (start + grown.first) as u32;
            let (mut children, mut runs) = (grown.children.into_iter(), grown.runs.into_iter());
            let mut rules = grown.rules.into_iter();
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
                for (rule, taken) in rules.by_ref().take(grown_node.rules) {
                    self.called(rule, taken);
                }
                self.bounds += u64::from(grown_node.is_bound);
                if grown_node.is_cut {
                    self.limited(Limit::Runs);
                }
                if let Some(states) = &mut self.states {
                    let GrownNode { is_bound, is_cut, fails, .. } = grown_node;
                    states.begin(node, !(is_bound || is_cut || fails || self.shared.stop.is_set()), fails);
                }
                let mut all_saved = true;
                for child in children.by_ref().take(grown_node.children) {
                    let answers = &grown.scripts[script..script + child.script];
                    script += child.script;
                    let (is_saved, action) = (child.saved.is_some(), child.action);
                    let is_new = match self.states.is_some() {
                        true => self.joined(node, child, answers),
                        false => self.met(node, child, answers, next),
                    };
                    if let (Action::Rule(rule), true) = (action, is_new) {
                        self.rules[usize::from(rule)].states += 1;
                    }
                    all_saved &= is_saved || !is_new;
                }
                self.nodes.done(node, !all_saved);
            }
            if let Some(trouble) = grown.trouble {
                return Err(trouble);
            }
        }
        Ok(())
    }

    /// A rule was called in a state of the level, under all answers.
    fn called(&mut self, rule: u16, taken: u64) {
        let cover = &mut self.rules[usize::from(rule)];
        cover.enabled += 1;
        cover.taken += taken;
        if taken > 0 {
            cover.depth.get_or_insert(self.frontier.depth + 1);
        }
    }

    /// The steps to a node, and one more; nothing where they cannot be read, which ends the check.
    fn trace(&self, node: u32, step: Option<&(Action, Vec<Scripted>)>) -> Option<Trace> {
        let mut trace = self.nodes.trace(node);
        if let Some((action, script)) = step {
            path::push(&mut trace, *action, script);
        }
        if self.nodes.is_broken() {
            self.shared.ended(Limit::Memory);
            return None;
        }
        Some(trace)
    }

    fn ended(&mut self, node: u32, run: Run) {
        let is_known = |failure| self.findings.0.iter().any(|known| known.failure.is_same(failure));
        let is_new = matches!(&run.end, End::Failed(failure) if !is_known(failure));
        if !is_new && !self.shared.options.lists {
            return;
        }
        let Some(trace) = self.trace(node, run.step.as_ref()) else { return };
        (self.told)(&trace, &run.end);
        if let End::Failed(failure) = &run.end
            && is_new
            && !self.findings.is_full(self.shared.options)
        {
            let number = self.census.runs + run.number;
            self.findings.add(failure, number, || trace);
            self.unkept.iter_mut().for_each(|unkept| unkept.failed(failure, number, (node, &run)));
        }
    }

    /// A state that a node led to, of which every step is kept; whether it is new.
    fn joined(&mut self, parent: u32, child: Child<S>, script: &[Scripted]) -> bool {
        let known = child.state.and_then(|state| self.nodes.visited.get(state));
        let Some(states) = &mut self.states else { return false };
        if child.is_end {
            let to = if child.fails { FAILURE } else { END };
            states.add(&mut self.nodes, to, (child.action, child.way), script);
            return false;
        }
        if let Some(known) = known {
            self.census.pruned += 1;
            states.add(&mut self.nodes, known, (child.action, child.way), script);
            return false;
        }
        self.census.states += 1;
        let node = self.nodes.push(parent, child.action, script, child.saved);
        self.unkept.iter_mut().for_each(|unkept| unkept.added(child.state));
        states.holds.push(child.holds);
        states.add(&mut self.nodes, node, (child.action, child.way), script);
        if let Some(state) = child.state {
            self.nodes.visited.insert(state, node);
        }
        true
    }

    /// A state that a node led to: it is new, or known. Whether it is new.
    fn met(&mut self, parent: u32, child: Child<S>, script: &[Scripted], next: u32) -> bool {
        let reduces = self.shared.options.reduces;
        if let Some(state) = child.state
            && !reduces
            && !self.shared.claims.belongs_to(state, parent)
        {
            self.census.pruned += 1;
            return false;
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
                    return false;
                }
                if known >= next {
                    // It waits, so what sleeps there can still be changed.
                    let rules = before.rules | missing;
                    self.nodes.asleep[known as usize] = Asleep { sleep: both, rules, ..before };
                    self.unkept.iter_mut().for_each(|unkept| unkept.changed(known));
                    self.census.pruned += 1;
                    return false;
                }
                Asleep { sleep: both, rules: missing, is_again: true }
            }
        };
        let node = self.nodes.push(parent, child.action, script, child.saved);
        self.unkept.iter_mut().for_each(|unkept| unkept.added(child.state));
        if reduces {
            self.nodes.asleep.push(asleep);
            if let Some(state) = child.state {
                self.nodes.visited.insert(state, node);
            }
        }
        true
    }
}
