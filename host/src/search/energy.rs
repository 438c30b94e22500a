//! Checkpoints and which of them to start from.
//!
//! The source of the scheme and of its constants is ordeal's explorer; `frontier` is the weight of its later
//! releases.

use std::sync::{Arc, OnceLock};

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::Options;
use super::history::{History, held_bytes};
use super::inputs::{Champion, STEP_WORK};
use super::knowledge::{Values, values_of};
use super::looks::Closer;
use super::turns::{Selected, Turn};
use super::weights::Weights;

/// States that are kept where nothing else is said: with more, what leads on is selected too seldom.
const STATES_MAX: usize = 256;
/// Inputs that are kept. The bytes of all of them have a limit too.
const INPUTS_MAX: usize = 1 << 20;
/// Of those that showed something else than edges, states and inputs that are kept.
const SHOWN_STATES_MAX: usize = 256;
const SHOWN_INPUTS_MAX: usize = 4096;

/// What made a checkpoint worth keeping. Those of each kind have room of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum News {
    /// An edge, a score, or, of a function, how often an edge was gone through.
    #[default]
    Edges,
    /// What a closer look shows, a number that was observed, or, of a state machine, how often an edge was gone through.
    Shown,
}

/// How many kinds there are.
pub(super) const NEWS: usize = 2;

/// How to choose what to start a run from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// In proportion to energy.
    Energy,
    /// All alike.
    Uniform,
    /// In proportion to the rank by age, the newest highest.
    Recent,
    /// In proportion to `energy * sqrt(1 + index) / sqrt(1 + times selected)`, where the index counts
    /// checkpoints by age: new ones that were seldom tried come first.
    Frontier,
    /// In proportion to `energy / ((1 + times selected) * cost)^2`: what was seldom tried comes first, whatever its age, and what
    /// costs less. The cost of a state is that of a step, of which its last one is taken for an example.
    Novel,
    /// No guidance: every run is fresh, nothing is saved. For comparison.
    Random,
}

/// How energy is given and taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Energies {
    /// Energy of a new checkpoint.
    pub start: f64,
    /// Added for each new edge that a run from the checkpoint found.
    pub reward: f64,
    /// Multiplied after a run that found none.
    pub decay: f64,
    /// Never below this.
    pub floor: f64,
}

impl Default for Energies {
    fn default() -> Energies {
        Energies { start: 1.0, reward: 2.0, decay: 0.95, floor: 0.01 }
    }
}

/// A saved state from which runs start. What each run reads of many of them stands together.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Checkpoint<S> {
    /// How promising it is.
    pub energy: f64,
    /// How often a run started from it.
    pub selected: u64,
    /// Guest steps that an input takes, or the step that led to the state, about.
    pub work: u64,
    /// Edges to which it is the way that costs least, of an input.
    pub champion_of: u32,
    /// How rare those edges are: each counts for as much less as more inputs get there, squared.
    pub rareness: u64,
    /// What made it worth keeping.
    pub news: News,
    /// What the last step was given, of an input. It follows from the history.
    pub given: Values,
    /// What a closer look tells of it, once there was one. It follows from the rest.
    pub closer: Arc<OnceLock<Closer<S>>>,
    /// Its number, from 1 in the order in which checkpoints were saved.
    pub id: u64,
    /// How it was reached.
    pub history: Arc<History>,
    /// The step of its run, counted from the start of the run, after which it was saved.
    pub step: u32,
    /// How many edges were new when it was saved.
    pub new_edges: u32,
    /// The checkpoint that the run was at before.
    pub parent: Option<u64>,
    /// The run that reached it, from 1.
    pub run: u64,
    /// The state; `None` where it is reached by replaying the history.
    pub snapshot: Option<S>,
    /// The hash of what of the state can still matter. No two checkpoints have the same.
    pub state: Option<u128>,
    /// Which faults are on.
    pub faults: Vec<bool>,
}

/// The checkpoints of an exploration in the order in which they were saved.
#[derive(Clone, Debug)]
pub struct Checkpoints<S> {
    pub(super) list: Vec<Checkpoint<S>>,
    /// How many of each kind are kept, and may be.
    counts: [usize; NEWS],
    max: [usize; NEWS],
    /// Bytes that their histories may hold together.
    bytes_max: u64,
    /// Bytes that their histories hold, at most.
    bytes: u64,
    energies: Energies,
    /// What energy is multiplied with after a run that found nothing.
    decay: f64,
    /// How many were saved in all, the evicted ones too.
    saved: u64,
    /// Steps to the deepest.
    deepest: u32,
    /// Whether they are inputs of a function.
    pub(super) is_function: bool,
    /// By edge.
    pub(super) champions: Vec<Champion>,
    /// The weights of a selection by a strategy, once there was one of the kind; `None` again where the list changed.
    weights: [Option<(Strategy, Weights)>; NEWS],
    /// The turn that is not over.
    pub(super) turn: Option<Turn>,
}

impl<S> Checkpoints<S> {
    /// No checkpoints, of which as many will be kept as the options say. They are states, or inputs of a function.
    pub fn new(options: &Options, is_function: bool) -> Checkpoints<S> {
        let [edges, shown] = match is_function {
            true => [INPUTS_MAX, SHOWN_INPUTS_MAX],
            false => [STATES_MAX, SHOWN_STATES_MAX],
        };
        let max = options.checkpoints_max.unwrap_or(edges);
        Checkpoints {
            list: Vec::new(),
            counts: [0; NEWS],
            max: [max, shown.min(max)],
            bytes_max: options.history_bytes_max,
            bytes: 0,
            energies: options.energies,
            decay: options.energies.decay,
            saved: 0,
            deepest: 0,
            is_function,
            champions: Vec::new(),
            weights: [const { None }; NEWS],
            turn: None,
        }
    }

    /// These checkpoints, of `saved` in all.
    pub fn of(options: &Options, is_function: bool, list: Vec<Checkpoint<S>>, saved: u64) -> Checkpoints<S> {
        let mut checkpoints = Checkpoints::new(options, is_function);
        list.into_iter().for_each(|checkpoint| checkpoints.push(checkpoint));
        checkpoints.saved = saved;
        while checkpoints.evict().is_some() {}
        checkpoints
    }

    /// How many are kept now.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many were saved in all.
    pub fn saved(&self) -> u64 {
        self.saved
    }

    /// Steps from the start of a run to the deepest that is kept; 0 where there is none.
    pub fn deepest(&self) -> u32 {
        self.deepest
    }

    fn measure(&mut self) {
        self.deepest = self.list.iter().map(|checkpoint| checkpoint.step).max().unwrap_or(0);
    }

    /// The checkpoints kept, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Checkpoint<S>> {
        self.list.iter()
    }

    /// The checkpoint with this index.
    pub fn get(&self, index: usize) -> &Checkpoint<S> {
        &self.list[index]
    }

    /// Whether this state is that of a checkpoint.
    pub fn holds(&self, state: Option<u128>) -> bool {
        self.list.iter().any(|checkpoint| checkpoint.state == state)
    }

    /// Saves a checkpoint with the energy of a new one. [`Checkpoints::evict`] is to follow.
    pub fn save(&mut self, mut checkpoint: Checkpoint<S>) {
        checkpoint.energy = self.energies.start;
        self.saved += 1;
        self.push(checkpoint);
    }

    /// How many of a kind are kept now.
    pub fn count(&self, news: News) -> usize {
        self.counts[news as usize]
    }

    fn push(&mut self, mut checkpoint: Checkpoint<S>) {
        if self.is_function {
            checkpoint.given = values_of(checkpoint.history.last_choices());
        }
        self.forget_weights();
        self.counts[checkpoint.news as usize] += 1;
        self.bytes += checkpoint.history.own_bytes();
        self.deepest = self.deepest.max(checkpoint.step);
        self.list.push(checkpoint);
    }

    /// Where there are too many, or their histories hold too much, drops the one with the lowest energy, the oldest of
    /// those; its index.
    pub fn evict(&mut self) -> Option<usize> {
        if self.bytes > self.bytes_max {
            self.bytes = held_bytes(self.list.iter().map(|checkpoint| &checkpoint.history));
        }
        let full =
            [News::Edges, News::Shown].into_iter().find(|news| self.count(*news) > self.max[*news as usize]);
        if full.is_none() && (self.bytes <= self.bytes_max || self.list.len() < 2) {
            return None;
        }
        let of_those = |index: &usize| full.is_none_or(|news| self.list[*index].news == news);
        let energy = |index: &usize| self.list[*index].energy;
        let lowest = (0..self.list.len()).filter(of_those).min_by(|a, b| energy(a).total_cmp(&energy(b)))?;
        self.forget_weights();
        let evicted = self.list.remove(lowest);
        self.counts[evicted.news as usize] -= 1;
        if evicted.step == self.deepest {
            self.measure();
        }
        self.dethrone(&evicted);
        Some(lowest)
    }

    pub(super) fn index_of(&self, id: u64) -> Option<usize> {
        self.list.binary_search_by_key(&id, |checkpoint| checkpoint.id).ok()
    }

    /// Takes over checkpoints that were saved elsewhere, with their energy, of `saved` in all. Those whose state is known
    /// are left out, and where there are too many, those with the lowest energy go.
    pub fn adopt(&mut self, others: impl Iterator<Item = Checkpoint<S>>, saved: u64) {
        for checkpoint in others {
            if checkpoint.state.is_none() || !self.holds(checkpoint.state) {
                self.push(checkpoint);
            }
        }
        self.saved += saved;
        while self.evict().is_some() {}
    }

    /// Keeps the checkpoints for which this holds.
    pub fn retain(&mut self, holds: impl FnMut(&Checkpoint<S>) -> bool) {
        self.forget_weights();
        self.list.retain(holds);
        self.counts = [0; NEWS];
        self.list.iter().for_each(|checkpoint| self.counts[checkpoint.news as usize] += 1);
        self.measure();
    }

    pub(super) fn forget_weights(&mut self) {
        self.weights = [const { None }; NEWS];
        self.turn = None;
    }

    /// So many explorations share these. Each takes it that where a run of its own finds nothing, one of each other did not either.
    pub fn set_sharers(&mut self, sharers: u32) {
        self.decay = self.energies.decay.powi(sharers.clamp(1, 1024) as i32);
    }

    /// Rewards or tires a checkpoint after a run that started from it.
    pub fn ran(&mut self, index: usize, new_edges: u32) {
        let (Energies { reward, floor, .. }, decay) = (self.energies, self.decay);
        let energy = &mut self.list[index].energy;
        *energy = match new_edges {
            0 => (*energy * decay).max(floor),
            _ => *energy + f64::from(new_edges) * reward,
        };
        self.weigh(index);
    }

    /// Lets go of the saved state of the checkpoint with the lowest energy that has one, first of those of closer looks; whether
    /// there was one.
    pub fn shed(&mut self) -> bool {
        let closer =
            |checkpoint: &&mut Checkpoint<S>| checkpoint.closer.get().is_some_and(Closer::has_snapshot);
        let lowest = self.list.iter_mut().filter(closer).min_by(|a, b| a.energy.total_cmp(&b.energy));
        if let Some(checkpoint) = lowest {
            checkpoint.closer = Arc::default();
            return true;
        }
        let saved = self.list.iter_mut().filter(|checkpoint| checkpoint.snapshot.is_some());
        let lowest = saved.min_by(|a, b| a.energy.total_cmp(&b.energy));
        lowest.is_some_and(|checkpoint| checkpoint.snapshot.take().is_some())
    }

    /// Chooses a checkpoint of a kind to start from, and takes for granted that the run finds nothing, or a turn of runs. There must
    /// be one.
    pub fn select(&mut self, news: News, strategy: Strategy, rng: &mut impl Rng) -> Selected {
        let weights = &mut self.weights[news as usize];
        if weights.as_ref().is_none_or(|(known, _)| *known != strategy) {
            let checkpoints = self.list.iter().enumerate();
            let adapts = self.is_function && strategy == Strategy::Novel;
            let weight = |(index, checkpoint): (usize, &Checkpoint<S>)| match checkpoint.news == news {
                true if adapts => checkpoint.input_weight(self.saved),
                true => strategy.weight(index, checkpoint),
                false => 0.0,
            };
            *weights = Some((strategy, Weights::of(checkpoints.map(weight).collect())));
        }
        let (_, weights) = weights.as_ref().expect("they were just made");
        // Rounding may point beyond the last.
        let index = weights.find(rng.random::<f64>() * weights.sum()).min(self.list.len() - 1);
        let (energy, turn) = (self.list[index].energy, self.turn);
        let runs = self.begin_turn(index);
        self.list[index].selected += u64::from(runs);
        let (floor, decay) = (self.energies.floor, self.decay);
        self.list[index].energy = (0..runs).fold(energy, |energy, _| (energy * decay).max(floor));
        self.weigh(index);
        Selected { index, energy, runs, turn }
    }

    /// The weight of a checkpoint changed.
    pub(super) fn weigh(&mut self, index: usize) {
        let news = self.list[index].news;
        if let Some((strategy, weights)) = &mut self.weights[news as usize] {
            let adapts = self.is_function && *strategy == Strategy::Novel;
            let checkpoint = &self.list[index];
            let weight =
                if adapts { checkpoint.input_weight(self.saved) } else { strategy.weight(index, checkpoint) };
            weights.set(index, weight);
        }
    }
}

impl Strategy {
    /// How likely the checkpoint with this index is, beside the others.
    fn weight<S>(self, index: usize, checkpoint: &Checkpoint<S>) -> f64 {
        let (energy, age, selected) =
            (checkpoint.energy, (1 + index) as f64, (1 + checkpoint.selected) as f64);
        match self {
            Strategy::Energy => energy,
            Strategy::Uniform | Strategy::Random => 1.0,
            Strategy::Recent => age,
            Strategy::Frontier => energy * age.sqrt() / selected.sqrt(),
            Strategy::Novel => energy / (selected * (STEP_WORK + checkpoint.work as f64)).powi(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    fn checkpoints(energies: &[f64], max: usize) -> Checkpoints<()> {
        let options = Options { checkpoints_max: Some(max), ..Options::default() };
        let mut checkpoints = Checkpoints::new(&options, false);
        for energy in energies {
            checkpoints.save(checkpoint());
            let last = checkpoints.len() - 1;
            checkpoints.list[last].energy = *energy;
        }
        checkpoints
    }

    fn checkpoint() -> Checkpoint<()> {
        let history = Arc::new(History::start());
        Checkpoint {
            id: 1,
            parent: None,
            snapshot: Some(()),
            state: None,
            faults: Vec::new(),
            history,
            energy: 0.0,
            new_edges: 1,
            step: 1,
            run: 1,
            selected: 0,
            news: News::Edges,
            work: 0,
            champion_of: 0,
            rareness: 0,
            given: Values::default(),
            closer: Arc::default(),
        }
    }

    #[test]
    fn energy_follows_the_arithmetic_of_the_source() {
        let mut list = checkpoints(&[1.0], 256);
        list.ran(0, 3);
        assert_eq!(list.get(0).energy, 7.0);
        list.ran(0, 0);
        assert_eq!(list.get(0).energy, 7.0 * 0.95);
        let mut list = checkpoints(&[1.0], 256);
        let mut runs = 0;
        while list.get(0).energy > 0.5 {
            list.ran(0, 0);
            runs += 1;
        }
        assert_eq!(runs, 14);
        for _ in 0..200 {
            list.ran(0, 0);
        }
        assert_eq!(list.get(0).energy, 0.01);
    }

    #[test]
    fn the_lowest_energy_is_evicted() {
        let mut list = checkpoints(&[3.0, 0.5, 2.0], 3);
        list.save(checkpoint());
        assert_eq!((list.evict(), list.evict()), (Some(1), None));
        let energies: Vec<f64> = list.list.iter().map(|c| c.energy).collect();
        assert_eq!(energies, [3.0, 2.0, 1.0]);
        assert_eq!(list.saved(), 4);
    }

    #[test]
    fn the_deepest_is_one_that_is_kept() {
        let mut list = checkpoints(&[], 2);
        let mut save = |step, energy| {
            list.save(Checkpoint { step, ..checkpoint() });
            let last = list.len() - 1;
            list.list[last].energy = energy;
            list.evict();
            list.deepest()
        };
        assert_eq!([save(3, 2.0), save(7, 1.0), save(5, 3.0)], [3, 7, 5]);
        list.retain(|checkpoint| checkpoint.step == 3);
        assert_eq!(list.deepest(), 3);
        list.retain(|_| false);
        assert_eq!(list.deepest(), 0);
    }

    /// How often each is selected in 10,000 draws.
    fn frequencies(strategy: Strategy, energies: &[f64]) -> Vec<u64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut counts = vec![0; energies.len()];
        for _ in 0..10_000 {
            let mut list = checkpoints(energies, 256);
            counts[list.select(News::Edges, strategy, &mut rng).index] += 1;
        }
        counts
    }

    /// `expected` are the shares by the definition, and `counts` how often each is selected with this seed.
    fn check(strategy: Strategy, energies: &[f64], expected: &[f64], counts: &[u64]) {
        assert_eq!(frequencies(strategy, energies), counts, "{strategy:?}");
        let shares = counts.iter().map(|count| *count as f64 / 10_000.0);
        assert_eq!(counts.len(), expected.len());
        assert!(
            shares.zip(expected).all(|(share, expected)| (share - expected).abs() < 0.02),
            "{expected:?}"
        );
    }

    #[test]
    fn selection_is_in_proportion() {
        check(Strategy::Energy, &[10.0, 1.0], &[10.0 / 11.0, 1.0 / 11.0], &[9018, 982]);
        check(Strategy::Uniform, &[10.0, 1.0], &[0.5, 0.5], &[4897, 5103]);
        check(Strategy::Recent, &[10.0, 1.0, 1.0], &[1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0], &[1601, 3296, 5103]);
        let root = 2f64.sqrt();
        check(Strategy::Frontier, &[1.0, 1.0], &[1.0 / (1.0 + root), root / (1.0 + root)], &[4072, 5928]);
    }
}
