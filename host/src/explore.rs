//! Exploration: runs start fresh or from promising checkpoints, draw steps, and save a checkpoint wherever a
//! step goes through an edge that no step went through before.
//!
//! Everything that a run does follows from the seed and the run's number. The caller decides after each run
//! whether there is another; no clock is read here.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::choice::{Chooser, Value, mix, small_seed};
use crate::continuation::Continuation;
use crate::coverage::EdgeSet;
use crate::energy::{Checkpoint, Checkpoints, Energies, History, Strategy};
use crate::outcome::{Failure, Outcome};
use crate::target::{Target, attempt, perform};
use crate::trace::{Action, Trace};

/// How to explore. The defaults are ordeal's but where a measurement said otherwise; `ARCHITECTURE.md` has
/// the figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Decides every draw.
    pub seed: u64,
    /// The rules that may be called, by index; empty is all.
    pub rules: Vec<u16>,
    /// What to start runs from.
    pub strategy: Strategy,
    /// Steps in a run, at most.
    pub steps_max: u32,
    /// How often a run starts from a checkpoint, where there is one.
    pub checkpoint_rate: f64,
    /// How often a step toggles a fault, where there is one.
    pub fault_rate: f64,
    /// How often a rule is called with a changed copy of choices that once found an edge.
    pub mutation_rate: f64,
    /// How often a run from a checkpoint begins with a changed copy of steps that once led to one.
    pub continuation_rate: f64,
    /// How often a run leaves out some of the rules.
    pub swarm_rate: f64,
    /// Checkpoints kept.
    pub checkpoints_max: usize,
    /// The arithmetic of energy.
    pub energies: Energies,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            rules: Vec::new(),
            strategy: Strategy::Novel,
            steps_max: 50,
            checkpoint_rate: 0.9,
            fault_rate: 0.3,
            mutation_rate: 0.25,
            continuation_rate: 0.1,
            swarm_rate: 0.25,
            checkpoints_max: 256,
            energies: Energies::default(),
        }
    }
}

/// How far an exploration is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Runs that ended.
    pub runs: u64,
    /// Runs that the guest rejected.
    pub rejected: u64,
    /// Steps performed, setup and teardown included.
    pub steps: u64,
    /// Rules called.
    pub rules: u64,
    /// Edges seen.
    pub edges: u32,
    /// Checkpoints saved, the evicted ones included.
    pub checkpoints: u64,
    /// Different failures found.
    pub findings: usize,
}

/// A failure with a trace that causes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What went wrong.
    pub failure: Failure,
    /// The run that hit it first, from 1.
    pub run: u64,
    /// All steps from the start, the failing one last.
    pub trace: Trace,
}

/// So many runs in the beginning draw small values only.
const SMALL_RUNS: u64 = 64;
/// Choices that once found an edge, kept to be changed and tried again.
const PRODUCTIVE_MAX: usize = 64;

/// An exploration of one target.
pub struct Explorer<'t, T: Target> {
    target: &'t mut T,
    options: Options,
    seen: EdgeSet,
    /// The highest score of each label.
    best_scores: Vec<f64>,
    checkpoints: Checkpoints<T::Snapshot>,
    findings: BTreeMap<String, Finding>,
    /// The ids of `findings` in the order in which they were found.
    found: Vec<String>,
    progress: Progress,
    /// The state after a setup that made no choice: setup always leads there, and need not run again.
    base: Option<T::Snapshot>,
    /// The hash of the state that fresh runs start from, where it is always the same.
    base_state: Option<u128>,
    /// The history of a run that starts fresh.
    start: Arc<History>,
    /// Per rule, the choices that found an edge.
    productive: Vec<Vec<Vec<Value>>>,
    run: Run,
    chooser: Chooser,
    enabled: Vec<u16>,
}

/// The run under way. Its buffers are reused.
struct Run {
    rng: Xoshiro256PlusPlus,
    /// How the checkpoint that the run started from, or saved last, was reached.
    history: Arc<History>,
    /// The steps since.
    trace: Trace,
    /// Steps from the start.
    depth: u32,
    new_edges: u32,
    /// The index of the checkpoint that the run started from, while it is kept.
    checkpoint: Option<usize>,
    /// The number of the checkpoint that the run started from, or saved last.
    parent: Option<u64>,
    /// Rules that are left out.
    left_out: Vec<u16>,
    faults: Vec<bool>,
    recorded: Vec<Option<Value>>,
    /// What to do before steps are drawn.
    continuation: Continuation,
    /// The last step made choices.
    drew: bool,
}

/// Whether a run goes on after a step.
#[derive(PartialEq)]
enum Flow {
    GoOn,
    End,
}

impl<'t, T: Target> Explorer<'t, T> {
    /// Readies an exploration.
    pub fn new(target: &'t mut T, options: Options) -> Explorer<'t, T> {
        let start = Arc::new(History { parent: None, steps: Trace::default() });
        Explorer {
            seen: EdgeSet::default(),
            best_scores: Vec::new(),
            checkpoints: Checkpoints::new(options.checkpoints_max, options.energies.clone()),
            findings: BTreeMap::new(),
            found: Vec::new(),
            progress: Progress::default(),
            base: None,
            base_state: None,
            start: start.clone(),
            productive: vec![Vec::new(); target.rules().len()],
            run: Run {
                rng: Xoshiro256PlusPlus::seed_from_u64(options.seed),
                history: start,
                trace: Trace::default(),
                depth: 0,
                new_edges: 0,
                checkpoint: None,
                parent: None,
                left_out: Vec::new(),
                faults: vec![false; target.faults().len()],
                recorded: Vec::new(),
                continuation: Continuation::default(),
                drew: false,
            },
            chooser: Chooser::default(),
            enabled: Vec::new(),
            target,
            options,
        }
    }

    /// Runs until `goes_on`, asked before each run, says no.
    pub fn explore(&mut self, mut goes_on: impl FnMut(&Progress) -> bool) {
        while goes_on(&self.progress) {
            self.run();
        }
    }

    /// How far the exploration is.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The edges seen.
    pub fn seen(&self) -> &EdgeSet {
        &self.seen
    }

    /// The checkpoints kept.
    pub fn checkpoints(&self) -> &Checkpoints<T::Snapshot> {
        &self.checkpoints
    }

    /// The findings in the order in which they were found.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.found.iter().map(|id| &self.findings[id])
    }

    /// The target, to shrink findings on.
    pub fn target(&mut self) -> &mut T {
        self.target
    }

    fn run(&mut self) {
        let number = self.progress.runs + 1;
        self.run.rng = Xoshiro256PlusPlus::seed_from_u64(mix(self.options.seed, number));
        self.run.trace.clear();
        self.run.new_edges = 0;
        let guided = self.options.strategy != Strategy::Random && !self.checkpoints.is_empty();
        let guided = guided && self.run.rng.random_bool(self.options.checkpoint_rate);
        self.run.checkpoint =
            guided.then(|| self.checkpoints.select(self.options.strategy, &mut self.run.rng));
        self.draw_continuation(guided);
        let flow = match self.run.checkpoint {
            Some(index) => self.start_from(index),
            None => self.start_fresh(),
        };
        if flow == Flow::GoOn {
            let steps = self.draw_len(guided).max(self.run.continuation.len() as u32);
            self.leave_out_rules();
            self.steps(steps);
        }
        if let Some(index) = self.run.checkpoint {
            self.checkpoints.ran(index, self.run.new_edges);
        }
        self.progress.runs = number;
    }

    /// A run from a checkpoint may follow what led to another, or to this one, with changes.
    fn draw_continuation(&mut self, guided: bool) {
        self.run.continuation.clear();
        if !guided || !self.run.rng.random_bool(self.options.continuation_rate) {
            return;
        }
        let rng = &mut self.run.rng;
        let [one, other] = [(); 2].map(|()| rng.random_range(0..self.checkpoints.len()));
        let (one, other) = (self.checkpoints.get(one), self.checkpoints.get(other));
        self.run.continuation.mutate(&one.history, &other.history, rng);
    }

    /// A fresh run has 1 to the maximum of steps, each as likely. One from a checkpoint is short more often:
    /// at most the maximum to the power u², with u uniform in 0..1, since what the checkpoint promises is near.
    fn draw_len(&mut self, from_checkpoint: bool) -> u32 {
        let max = self.options.steps_max.max(1);
        let len = self.run.rng.random_range(1..=max);
        if !from_checkpoint {
            return len;
        }
        let cap = f64::from(max).powf(self.run.rng.random::<f64>().powi(2)).ceil() as u32;
        len.min(cap.max(1))
    }

    fn steps(&mut self, count: u32) {
        let mut has_evaluated = false;
        for _ in 0..count {
            let flow = match self.draw_action() {
                Ok(Some(action)) => self.step(action),
                Ok(None) => {
                    has_evaluated = true;
                    break;
                }
                Err(failure) => self.precondition_failed(Action::Rule(0), *failure),
            };
            if flow == Flow::End {
                return;
            }
        }
        if !self.target.has_teardown() {
            return;
        }
        // As a replay does before it, since preconditions may write.
        if !has_evaluated && let Err(failure) = self.target.enabled(&mut self.enabled) {
            self.precondition_failed(Action::Teardown, *failure);
            return;
        }
        self.step(Action::Teardown);
    }

    fn start_from(&mut self, index: usize) -> Flow {
        let checkpoint = self.checkpoints.get(index);
        let history = checkpoint.history.clone();
        self.run.depth = checkpoint.step;
        self.run.parent = Some(checkpoint.id);
        self.run.faults.copy_from_slice(&checkpoint.faults);
        match &checkpoint.snapshot {
            Some(snapshot) => self.target.restore(snapshot),
            None => self.replay(&history),
        }
        self.run.history = history;
        Flow::GoOn
    }

    /// Reaches a state by its history, where it could not be saved.
    fn replay(&mut self, history: &History) {
        let mut steps = Trace::default();
        history.flatten(&mut steps);
        let mut again = Trace::default();
        self.target.reset();
        for step in steps.steps() {
            let recorded = steps.recorded(step);
            let what = (step.action, step.seed);
            attempt(self.target, &mut self.chooser, &mut self.enabled, what, recorded, &mut again);
        }
        // Nothing here is new: every one of these steps was explored.
        self.target.coverage(&mut self.seen);
    }

    fn start_fresh(&mut self) -> Flow {
        self.run.faults.fill(false);
        self.run.depth = 0;
        self.run.parent = None;
        self.run.history = self.start.clone();
        if let Some(snapshot) = &self.base {
            self.target.restore(snapshot);
            let seed = self.run.rng.random();
            self.run.trace.push(Action::Setup, seed);
            self.run.depth = 1;
            self.progress.steps += 1;
            return Flow::GoOn;
        }
        self.target.reset();
        if !self.target.has_setup() {
            self.base_state = self.target.live_state();
            return Flow::GoOn;
        }
        let flow = self.step(Action::Setup);
        if flow == Flow::GoOn && !self.run.drew {
            self.base_state = self.target.live_state();
            self.base = self.target.snapshot();
        }
        flow
    }

    fn leave_out_rules(&mut self) {
        self.run.left_out.clear();
        let rules = self.target.rules().len() as u16;
        if rules > 1 && self.run.rng.random_bool(self.options.swarm_rate) {
            let kept = self.run.rng.random_range(0..rules);
            let rng = &mut self.run.rng;
            self.run.left_out.extend((0..rules).filter(|rule| *rule != kept && rng.random()));
        }
    }

    /// What the next step does; `None` where no rule may be called.
    fn draw_action(&mut self) -> Result<Option<Action>, Box<Failure>> {
        self.run.recorded.clear();
        if let Some((action, values)) = self.run.continuation.next() {
            self.run.recorded.extend_from_slice(values);
            let is_possible = match action {
                Action::Fault(fault, on) if self.run.faults[usize::from(fault)] != on => {
                    return Ok(Some(action));
                }
                Action::Rule(rule) => {
                    self.target.enabled(&mut self.enabled)?;
                    self.enabled.contains(&rule)
                }
                _ => {
                    self.target.enabled(&mut self.enabled)?;
                    false
                }
            };
            if is_possible {
                return Ok(Some(action));
            }
            // It cannot be followed from here on.
            self.run.continuation.clear();
            self.run.recorded.clear();
            return Ok(self.draw_enabled());
        }
        let faults = self.run.faults.len();
        if faults > 0 && self.run.rng.random_bool(self.options.fault_rate) {
            let fault = self.run.rng.random_range(0..faults);
            return Ok(Some(Action::Fault(fault as u16, !self.run.faults[fault])));
        }
        self.target.enabled(&mut self.enabled)?;
        let action = self.draw_enabled();
        if let Some(Action::Rule(rule)) = action {
            self.draw_recorded(rule);
        }
        Ok(action)
    }

    /// One of the rules that may be called, where there is one.
    fn draw_enabled(&mut self) -> Option<Action> {
        if !self.options.rules.is_empty() {
            self.enabled.retain(|rule| self.options.rules.contains(rule));
        }
        let left_out = &self.run.left_out;
        if !left_out.is_empty() && self.enabled.iter().any(|rule| !left_out.contains(rule)) {
            self.enabled.retain(|rule| !left_out.contains(rule));
        }
        self.enabled.choose(&mut self.run.rng).map(|rule| Action::Rule(*rule))
    }

    /// A precondition fails before any rule can be chosen; the first stands for all in the trace.
    fn precondition_failed(&mut self, action: Action, failure: Failure) -> Flow {
        self.run.trace.push(action, 0);
        self.found(failure);
        Flow::End
    }

    /// Performs one step, and looks at what it did.
    fn step(&mut self, action: Action) -> Flow {
        let seed = self.run.rng.random();
        let seed = if self.progress.runs < SMALL_RUNS { small_seed(seed) } else { seed };
        let recorded = self.run.recorded.drain(..);
        let what = (action, seed);
        self.target.set_counts(true);
        let outcome = perform(self.target, &mut self.chooser, what, recorded, &mut self.run.trace);
        self.target.set_counts(false);
        self.run.drew = self.run.trace.last_drew();
        self.run.depth += 1;
        self.progress.steps += 1;
        match action {
            Action::Fault(fault, on) => self.run.faults[usize::from(fault)] = on,
            Action::Rule(_) => self.progress.rules += 1,
            Action::Setup | Action::Teardown => {}
        }
        let new_edges = self.target.coverage(&mut self.seen) + self.target.scores(&mut self.best_scores);
        self.progress.edges = self.seen.len();
        self.run.new_edges += new_edges;
        match outcome {
            Outcome::Fail(failure) => {
                self.found(*failure);
                return Flow::End;
            }
            Outcome::Reject(_) => {
                self.progress.rejected += 1;
                return Flow::End;
            }
            Outcome::Pass => {}
        }
        if new_edges > 0 && self.options.strategy != Strategy::Random {
            self.remember(action);
            if action != Action::Teardown {
                self.save(new_edges);
            }
        }
        Flow::GoOn
    }

    /// Sometimes a rule is given a changed copy of choices that once found an edge: one of them is drawn
    /// anew.
    fn draw_recorded(&mut self, rule: u16) {
        let productive = &self.productive[usize::from(rule)];
        if productive.is_empty() || !self.run.rng.random_bool(self.options.mutation_rate) {
            return;
        }
        let rng = &mut self.run.rng;
        let Some(values) = productive.choose(rng) else { return };
        self.run.recorded.extend(values.iter().cloned().map(Some));
        let changed = rng.random_range(0..values.len());
        self.run.recorded[changed] = None;
    }

    /// Keeps the choices of the last step, which found an edge.
    fn remember(&mut self, action: Action) {
        let (Action::Rule(rule), Some(step)) = (action, self.run.trace.steps().last()) else { return };
        let choices = self.run.trace.choices(step);
        if choices.is_empty() {
            return;
        }
        let values = choices.iter().map(|choice| choice.value.clone()).collect();
        let productive = &mut self.productive[usize::from(rule)];
        if productive.len() < PRODUCTIVE_MAX {
            productive.push(values);
        } else {
            let at = self.run.rng.random_range(0..PRODUCTIVE_MAX);
            productive[at] = values;
        }
    }

    /// Saves a checkpoint, but where the state is known: starting from it again would lead to nothing new.
    fn save(&mut self, new_edges: u32) {
        let state = self.target.live_state();
        if state.is_some() && (state == self.base_state || self.checkpoints.holds(state)) {
            return;
        }
        let steps = self.run.trace.clone();
        self.run.trace.clear();
        let history = Arc::new(History { parent: Some(self.run.history.clone()), steps });
        self.run.history = history.clone();
        let id = self.checkpoints.saved() + 1;
        let checkpoint = Checkpoint {
            id,
            parent: self.run.parent.replace(id),
            snapshot: self.target.snapshot(),
            state,
            faults: self.run.faults.clone(),
            history,
            energy: 0.0,
            new_edges,
            step: self.run.depth,
            run: self.progress.runs + 1,
            selected: 0,
        };
        let evicted = self.checkpoints.save(checkpoint);
        self.run.checkpoint = match (self.run.checkpoint, evicted) {
            (Some(index), Some(evicted)) if index == evicted => None,
            (Some(index), Some(evicted)) if index > evicted => Some(index - 1),
            (unmoved, _) => unmoved,
        };
        self.progress.checkpoints = self.checkpoints.saved();
    }

    fn found(&mut self, failure: Failure) {
        let id = failure.id();
        if self.findings.contains_key(&id) {
            return;
        }
        let mut trace = Trace::default();
        self.run.history.flatten(&mut trace);
        trace.extend(&self.run.trace, self.run.trace.len());
        self.found.push(id.clone());
        self.findings.insert(id, Finding { failure, run: self.progress.runs + 1, trace });
        self.progress.findings = self.findings.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Kind;
    use crate::model::{Model, fail};
    use crate::replay::{Replayed, replay};

    fn integer(chooser: &mut Chooser, min: i64, max: i64) -> i64 {
        match *chooser.choose(Kind::Integer { min, max, simplest: min }) {
            Value::Integer(v) => v,
            ref other => unreachable!("{other:?}"),
        }
    }

    /// A lock over an alphabet of ten: each right key takes a new branch, a wrong one resets.
    fn lock<const N: usize>() -> Model<usize> {
        Model::new(0, &["press"], &[], |at, _, chooser, edge| {
            let is_right = integer(chooser, 0, 9) == (*at as i64 * 7 + 3) % 10;
            *at = if is_right { *at + 1 } else { 0 };
            edge(*at as u32);
            if *at == N { fail("open") } else { Outcome::Pass }
        })
    }

    fn explore<S: Clone + std::fmt::Debug>(
        model: &mut Model<S>,
        options: Options,
        steps_max: u64,
    ) -> (Progress, Vec<Finding>) {
        let mut explorer = Explorer::new(model, options);
        explorer.explore(|p| p.findings == 0 && p.steps < steps_max);
        (explorer.progress(), explorer.findings().cloned().collect())
    }

    /// Median runs and steps to open a lock over twenty seeds; every finding must replay.
    fn median<const N: usize>(options: &Options) -> (u64, u64) {
        let (mut runs, mut steps) = (Vec::new(), Vec::new());
        for seed in 1..=20 {
            let (progress, findings) =
                explore(&mut lock::<N>(), Options { seed, ..options.clone() }, 1_000_000);
            let [finding] = &findings[..] else { panic!("seed {seed} found {findings:?}") };
            let (replayed, _) = replay(&mut lock::<N>(), &finding.trace, false);
            assert_eq!(replayed, Replayed::Failed(Box::new(finding.failure.clone())));
            runs.push(progress.runs);
            steps.push(progress.steps);
        }
        runs.sort_unstable();
        steps.sort_unstable();
        (runs[10], steps[10])
    }

    #[test]
    fn locks_open_within_their_budgets() {
        let (runs, steps) = median::<8>(&Options::default());
        assert!(runs <= 500 && steps <= 5_000, "{runs} runs, {steps} steps");
        let (_, steps) = median::<32>(&Options::default());
        assert!(steps <= 20_000, "{steps} steps");
    }

    #[test]
    fn without_guidance_the_lock_stays_shut() {
        let options = Options { seed: 1, strategy: Strategy::Random, ..Options::default() };
        let mut model = lock::<8>();
        let mut explorer = Explorer::new(&mut model, options);
        explorer.explore(|p| p.runs < 100_000);
        assert_eq!(explorer.progress().findings, 0);
        assert_eq!(explorer.progress().checkpoints, 0);
    }

    /// A counter with a setup that draws, a fault and a guarded rule.
    fn counter() -> Model<(i64, bool)> {
        let mut model =
            Model::new((0, false), &["add", "halve", "check"], &["stuck"], |state, action, chooser, edge| {
                match action {
                    Action::Setup => state.0 = integer(chooser, 0, 3),
                    Action::Rule(0) => state.0 += integer(chooser, 1, 10) * i64::from(!state.1),
                    Action::Rule(1) => state.0 /= 2,
                    Action::Fault(_, on) => state.1 = on,
                    _ if state.0 > 20 && state.1 => return fail("stuck above 20"),
                    _ => {}
                }
                edge((state.0 / 8).min(100) as u32 + 100 * u32::from(state.1));
                Outcome::Pass
            });
        model.has_setup = true;
        model.guard = |state, rule| rule != 1 || state.0 > 4;
        model
    }

    #[test]
    fn one_seed_gives_one_result() {
        let options = |seed| Options { seed, ..Options::default() };
        let first = explore(&mut counter(), options(3), 100_000);
        assert_eq!(first, explore(&mut counter(), options(3), 100_000));
        assert_ne!(first.1, explore(&mut counter(), options(4), 100_000).1);
    }

    #[test]
    fn a_snapshot_is_a_cache() {
        for seed in 1..=20 {
            let options = Options { seed, ..Options::default() };
            let mut replayed = counter();
            replayed.uses_snapshots = false;
            let with = explore(&mut counter(), options.clone(), 20_000);
            assert_eq!(with, explore(&mut replayed, options, 20_000));
        }
    }

    #[test]
    fn a_fault_that_must_be_on_is_found_and_stands_in_the_trace() {
        let (_, findings) = explore(&mut counter(), Options { seed: 1, ..Options::default() }, 100_000);
        let trace = &findings[0].trace;
        assert!(trace.steps().iter().any(|step| step.action == Action::Fault(0, true)));
        assert_eq!(trace.steps()[0].action, Action::Setup);
        let (replayed, _) = replay(&mut counter(), trace, false);
        assert_eq!(replayed, Replayed::Failed(Box::new(findings[0].failure.clone())));
    }

    /// Five rules in order, with the fault on during the third and off during the others.
    #[test]
    fn a_fault_during_the_third_of_five_rules_is_found() {
        let rules = ["one", "two", "three", "four", "five"];
        for seed in 1..=10 {
            let mut model = Model::new((0u16, false), &rules, &["f"], |state, action, _, edge| {
                match action {
                    Action::Fault(_, on) => state.1 = on,
                    Action::Rule(rule) if rule == state.0 && state.1 == (rule == 2) => state.0 += 1,
                    _ => state.0 = 0,
                }
                edge(u32::from(state.0) + 10 * u32::from(state.1));
                if state.0 == 5 { fail("five in order") } else { Outcome::Pass }
            });
            let (_, findings) = explore(&mut model, Options { seed, ..Options::default() }, 1_000_000);
            let shrunk = crate::shrink::shrink(
                &mut model,
                &findings[0].trace,
                &findings[0].failure,
                100_000,
                |_, _| true,
            );
            let actions: Vec<Action> = shrunk.unwrap().trace.steps().iter().map(|step| step.action).collect();
            let [one, two, three, four, five] = [0, 1, 2, 3, 4].map(Action::Rule);
            let (on, off) = (Action::Fault(0, true), Action::Fault(0, false));
            assert_eq!(actions, [one, two, on, three, off, four, five]);
        }
    }

    #[test]
    fn a_checkpoint_is_not_disturbed_by_runs_from_it() {
        let mut model = counter();
        let mut explorer = Explorer::new(&mut model, Options { seed: 2, ..Options::default() });
        explorer.explore(|p| p.checkpoints < 5);
        let states = |explorer: &mut Explorer<'_, Model<(i64, bool)>>| {
            (0..5)
                .map(|index| {
                    let snapshot =
                        explorer.checkpoints().get(index).snapshot.expect("this target has snapshots");
                    explorer.target().restore(&snapshot);
                    explorer.target().state()
                })
                .collect::<Vec<_>>()
        };
        let before = states(&mut explorer);
        explorer.explore(|p| p.runs < 500);
        assert_eq!(before, states(&mut explorer));
    }

    #[test]
    fn few_checkpoints_are_enough_to_go_on() {
        let options = Options { seed: 1, checkpoints_max: 2, ..Options::default() };
        let mut model = lock::<8>();
        let mut explorer = Explorer::new(&mut model, options);
        explorer.explore(|p| p.runs < 2_000);
        assert_eq!(explorer.checkpoints().len(), 2);
        assert!(explorer.progress().checkpoints > 2);
    }

    #[test]
    fn a_rule_is_called_only_where_its_precondition_holds() {
        let mut model = Model::new(0, &["up", "down"], &[], |state, action, _, edge| {
            *state += if action == Action::Rule(0) { 1 } else { -1 };
            edge(*state as u32);
            if *state < 0 { fail("below") } else { Outcome::Pass }
        });
        model.guard = |state, rule| if rule == 1 { *state > 0 } else { *state < 20 };
        let (progress, findings) = explore(&mut model, Options::default(), 20_000);
        assert_eq!((findings.len(), progress.edges), (0, 21));
    }
}
