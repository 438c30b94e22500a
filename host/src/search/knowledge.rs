//! What an exploration knows: everything that decides what its next run does. A run is a function of the seed,
//! its number and this.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::called::Called;
use super::dice::Dice;
use super::discovery::Discovery;
use super::energy::{Checkpoints, News, Strategy};
use super::history::History;
use super::luck::{Begun, Luck, Manner, Move};
use super::turns::Selected;
use super::ways::Ways;
use super::{Options, Progress};
use crate::choice::{Choice, Value, mix};
use crate::coverage::{FeatureKind, FeatureSet, slot_of};
use crate::outcome::{Failure, Found};
use crate::property::Counts;
use crate::target::Scores;
use crate::trace::Trace;

/// A run has so many times as many steps, at most, where much is found late in runs.
const LATER: u32 = 2;

/// The choices that a rule was called with, in order.
pub type Values = Arc<[Value]>;

/// How much more seldom a function is given an input that is drawn anew than a state machine starts anew: inputs that were kept are better to
/// start from as long as there are any.
const FRESH_INPUTS: f64 = 1.0 / 8.0;

/// Choices of a rule that once found an edge, kept to be changed and tried again.
pub(super) const PRODUCTIVE_MAX: usize = 64;

/// Bytes that all of them may hold.
pub(super) const PRODUCTIVE_BYTES_MAX: usize = 64 << 20;

/// What choices were answered with.
pub(super) fn values_of(choices: &[Choice]) -> Values {
    choices.iter().map(|choice| choice.value.clone()).collect()
}

/// Bytes that choices hold.
pub(super) fn bytes_of(values: &Values) -> usize {
    size_of_val(&**values) + values.iter().map(Value::shared_bytes).sum::<usize>()
}

/// What an exploration knows.
#[derive(Clone)]
pub struct Knowledge<S> {
    /// What was seen.
    pub seen: FeatureSet,
    /// Those features in the order in which they were seen first, each with the run.
    pub features: Vec<(u32, u64)>,
    /// The highest scores.
    pub scores: Scores,
    /// The checkpoints.
    pub checkpoints: Checkpoints<S>,
    /// Per rule, choices that found an edge.
    pub productive: Vec<Vec<Values>>,
    /// The findings in the order in which they were found.
    pub findings: Vec<Arc<Found>>,
    /// What pays.
    pub luck: Luck,
    /// The run from which on runs are looked at more closely, where they can be.
    pub(super) looks_from: Option<u64>,
    /// What was counted, in merged explorations too; no run depends on it.
    pub tally: Tally,
    /// Of it, what was counted by explorations that were merged, each by what names it, and not by this one.
    pub merged: BTreeMap<u128, Tally>,
    /// The state after a setup that made no choice: setup always leads there, and need not run again.
    pub(super) base: Option<S>,
    /// The hash of the state that fresh runs start from, where it is always the same.
    pub(super) base_state: Option<u128>,
    /// The history of a run that starts fresh.
    pub(super) start: Arc<History>,
    /// Of a target that is one function.
    pub(super) is_function: bool,
    /// Others explore too, so a run of states ends where it found an edge: they may start from there the sooner.
    pub(super) is_shared: bool,
}

/// What runs did so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Runs that ended.
    pub runs: u64,
    /// Runs that the guest rejected.
    pub rejected: u64,
    /// Steps performed, setup and teardown included.
    pub steps: u64,
    /// Rules called.
    pub rules: u64,
    /// What runs came to, by the way in which they began.
    #[serde(default)]
    pub ways: Ways,
    /// How often each rule was called.
    #[serde(default)]
    pub called: Called,
    /// What the guest said of properties and events.
    pub counts: Counts,
}

impl Tally {
    /// Adds what was counted elsewhere.
    pub(super) fn add(&mut self, other: &Tally) {
        // Whoever counted it may not tell the truth.
        self.runs = self.runs.saturating_add(other.runs);
        self.rejected = self.rejected.saturating_add(other.rejected);
        self.steps = self.steps.saturating_add(other.steps);
        self.rules = self.rules.saturating_add(other.rules);
        self.ways.add(&other.ways);
        self.called.add(&other.called);
        self.counts.add(&other.counts);
    }

    /// What is left without what was counted elsewhere, which is part of this.
    pub(super) fn without(&self, other: &Tally) -> Tally {
        Tally {
            runs: self.runs.saturating_sub(other.runs),
            rejected: self.rejected.saturating_sub(other.rejected),
            steps: self.steps.saturating_sub(other.steps),
            rules: self.rules.saturating_sub(other.rules),
            ways: self.ways.without(&other.ways),
            called: self.called.without(&other.called),
            counts: self.counts.without(&other.counts),
        }
    }
}

/// What a run starts with. It is decided before the run before it has ended, as if that one will find nothing.
pub(super) struct Plan {
    /// The run's number, from 1.
    pub(super) number: u64,
    pub(super) rng: Xoshiro256PlusPlus,
    /// The checkpoint to start from.
    pub(super) checkpoint: Option<Selected>,
    /// How often it was selected by then; by now later runs may be planned too.
    pub(super) selected: u64,
    /// What that checkpoint is kept for.
    pub(super) start: Option<News>,
    /// How the input is changed, of a function whose comparisons are looked at.
    pub(super) moved: Option<Move>,
    /// How its steps are drawn, of a state machine.
    pub(super) manner: Option<Manner>,
    /// Whether the run is looked at more closely.
    pub(super) is_looked_at: bool,
    /// Whether it only tries what a closer look of the state suggests, and is then looked at.
    pub(super) is_trial: bool,
    /// What paid before.
    luck: Luck,
}

impl Plan {
    /// Steps that the run has, at most, of a state machine; see [`Options::steps_max`].
    pub(super) fn steps_max(&self, options: &Options) -> u32 {
        let is_longer = self.manner.is_some() && self.luck.is_late();
        options.steps_max.saturating_mul(if is_longer { LATER } else { 1 })
    }

    /// Whether how often steps of a state machine go through edges is news from this run on.
    pub(super) fn tells_hits(&self, options: &Options) -> bool {
        options.tells_hits && self.manner.is_some() && !self.luck.is_fruitful()
    }
}

impl<S> Knowledge<S> {
    /// Nothing is known, of a target with so many rules, which may be one function.
    pub fn new(options: &Options, (rules, is_function): (usize, bool), declared: Counts) -> Knowledge<S> {
        Knowledge {
            seen: FeatureSet::new(options.tells_hits && is_function),
            features: Vec::new(),
            scores: Scores::new(),
            checkpoints: Checkpoints::new(options, is_function),
            productive: vec![Vec::new(); rules],
            findings: Vec::new(),
            luck: Luck::default(),
            looks_from: None,
            tally: Tally { counts: declared, ..Tally::default() },
            merged: BTreeMap::new(),
            base: None,
            base_state: None,
            start: Arc::new(History::start()),
            is_function,
            is_shared: false,
        }
    }

    /// The history of a run that starts fresh.
    pub fn start(&self) -> &Arc<History> {
        &self.start
    }

    /// What this exploration counted itself.
    pub fn own_tally(&self) -> Tally {
        self.merged.values().fold(self.tally.clone(), |own, merged| own.without(merged))
    }

    /// How far the exploration is.
    pub fn progress(&self) -> Progress {
        let Tally { runs, rejected, steps, rules, .. } = self.tally;
        Progress {
            runs,
            rejected,
            steps,
            rules,
            edges: self.seen.edges(),
            checkpoints: self.checkpoints.saved(),
            deepest: self.checkpoints.deepest(),
            findings: self.findings.len(),
        }
    }

    /// The features seen, by their kind.
    pub fn features_by_kind(&self) -> BTreeMap<FeatureKind, u64> {
        let mut kinds = BTreeMap::new();
        let mut edges = BTreeSet::new();
        for (feature, _) in &self.features {
            let kind = FeatureKind::of(*feature);
            let is_edge = kind == FeatureKind::Hits && edges.insert(slot_of(*feature));
            *kinds.entry(if is_edge { FeatureKind::Edge } else { kind }).or_default() += 1;
        }
        kinds
    }

    /// The run that saw something new last; 0 where there is none.
    pub fn last_new(&self) -> u64 {
        self.features.last().map_or(0, |(_, run)| *run)
    }

    /// The run that went through an edge last that none before it had gone through; 0 where there is none.
    pub fn last_new_edge(&self) -> u64 {
        self.runs_with_new_edges().last().unwrap_or(0)
    }

    /// How likely it is that the next run goes through a new edge; none where too few runs ended.
    pub fn discovery(&self) -> Option<Discovery> {
        Discovery::new(self.tally.runs, self.runs_with_new_edges())
    }

    /// Of each edge, the run that went through it first.
    pub fn runs_with_new_edges(&self) -> impl Iterator<Item = u64> {
        let mut edges = BTreeSet::new();
        let new = self.features.iter().filter(move |(feature, _)| {
            FeatureKind::of(*feature) == FeatureKind::Hits && edges.insert(slot_of(*feature))
        });
        new.map(|(_, run)| *run)
    }

    /// Bytes that the choices which are tried again hold.
    pub(super) fn productive_bytes(&self) -> usize {
        self.productive.iter().flatten().map(bytes_of).sum()
    }

    /// Whether this failure was found before.
    pub(super) fn has_found(&self, failure: &Failure) -> bool {
        self.findings.iter().any(|finding| finding.failure.is_same(failure))
    }

    /// Adds a feature that a run showed; whether it is new.
    pub fn saw(&mut self, feature: u32, run: u64) -> bool {
        let is_new = self.seen.insert(feature);
        if is_new {
            self.features.push((feature, run));
        }
        is_new
    }

    /// From now on how often edges are gone through is told apart, as if it had been from the start.
    pub fn tell_hits(&mut self) {
        self.seen = FeatureSet::new(true);
        for (feature, _) in &self.features {
            self.seen.insert(*feature);
        }
    }

    /// Whether every run is the same: the target is a function, and runs came to their ends that made no choice.
    pub fn is_constant(&self) -> bool {
        let kept = (0..self.checkpoints.len()).map(|index| self.checkpoints.get(index).given.is_empty());
        let draws_nothing = |trace: &Trace| trace.steps().iter().all(|step| trace.choices(step).is_empty());
        let found = self.findings.iter().map(|found| draws_nothing(&found.trace));
        let mut all = kept.chain(found).peekable();
        self.is_function && all.peek().is_some() && all.all(|draws_nothing| draws_nothing)
    }

    /// Decides what the run with this number starts from, if all before it find nothing, and takes for granted
    /// that it finds nothing either.
    pub(super) fn plan(&mut self, options: &Options, number: u64) -> Plan {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(mix(options.seed, number));
        let luck = self.luck;
        let is_guided = options.strategy != Strategy::Random
            && !self.checkpoints.is_empty()
            && rng.chance(self.share_of_guided(options));
        let checkpoint = is_guided.then(|| match self.checkpoints.go_on() {
            Some(selected) => selected,
            None => self.checkpoints.select(self.start_of(&mut rng), options.strategy, &mut rng),
        });
        let started = checkpoint.map(|selected| self.checkpoints.get(selected.index));
        let (start, times) = (started.map(|from| from.news), started.map_or(0, |from| from.selected));
        if let Some((turn, from)) =
            checkpoint.zip(started).filter(|(turn, _)| self.is_function && turn.runs > 0)
        {
            self.luck.begin_turn(turn.runs, times, from.work);
        }
        let looks =
            options.strategy != Strategy::Random && self.looks_from.is_some_and(|from| number >= from);
        let of_start = start.map(|news| (news, times));
        let is_wanted = looks && rng.chance(luck.share_of_looks(self.is_function, of_start));
        let is_looked_at = is_wanted && luck.has_credit();
        let may_try = looks && !self.is_function && start.is_some() && options.operand_rate > 0.0;
        let is_trial = may_try && luck.has_credit() && rng.chance(Luck::share_of_trials(times));
        let moves = looks && self.is_function && options.operand_rate > 0.0;
        let moved = checkpoint.filter(|_| moves).map(|_| self.luck.draw_move(&mut rng));
        let adapts = options.adapts && !self.is_function && options.strategy != Strategy::Random;
        let manner = adapts.then(|| luck.draw_manner(&mut rng));
        self.luck.tried(Begun { start, moved, manner }, (is_looked_at, is_trial), self.is_function);
        let selected = times;
        Plan { number, rng, checkpoint, selected, start, moved, manner, is_looked_at, is_trial, luck }
    }

    /// How often a run starts from a checkpoint: of a state machine, for which nothing finds anything, more seldom than usual.
    fn share_of_guided(&self, options: &Options) -> f64 {
        let fresh = 1.0 - options.checkpoint_rate;
        1.0 - match (options.adapts, self.is_function) {
            (false, _) => fresh,
            (true, true) => fresh * FRESH_INPUTS,
            (true, false) => self.luck.share_of_fresh(fresh),
        }
    }

    /// What the checkpoint is kept for that a run starts from; there is one.
    fn start_of(&self, rng: &mut impl Rng) -> News {
        match [News::Edges, News::Shown].map(|news| self.checkpoints.count(news) > 0) {
            [true, true] if rng.chance(self.luck.share_of_shown()) => News::Shown,
            [false, _] => News::Shown,
            _ => News::Edges,
        }
    }

    /// Takes back plans, the last ones that were made.
    pub(super) fn take_back(&mut self, plans: &[Plan]) {
        for plan in plans.iter().rev() {
            if let Some(selected) = &plan.checkpoint {
                self.checkpoints.take_back(selected);
            }
            self.luck = plan.luck;
        }
    }

    /// Takes back that the run of the last plan finds nothing.
    pub(super) fn take_back_energy(&mut self, plan: &Plan) {
        if let Some(selected) = &plan.checkpoint {
            self.checkpoints.take_back_energy(selected);
        }
    }
}
