//! Checkpoints and which of them to start from.
//!
//! The source of the scheme and of its constants is ordeal's explorer; `frontier` is the weight of its later
//! releases.

use std::sync::Arc;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::Options;
use super::history::{History, held_bytes};

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
    /// In proportion to `energy / (1 + times selected)^2`: what was seldom tried comes first, whatever its age.
    Novel,
    /// No guidance: every run is fresh, nothing is saved. For comparison.
    Random,
}

/// How energy is given and taken.
#[derive(Clone, Debug, PartialEq)]
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

/// A saved state from which runs start.
#[derive(Clone, Debug)]
pub struct Checkpoint<S> {
    /// Its number, from 1 in the order in which checkpoints were saved.
    pub id: u64,
    /// The checkpoint that the run was at before.
    pub parent: Option<u64>,
    /// The state; `None` where it is reached by replaying the history.
    pub snapshot: Option<S>,
    /// The hash of what of the state can still matter. No two checkpoints have the same.
    pub state: Option<u128>,
    /// Which faults are on.
    pub faults: Vec<bool>,
    /// How it was reached.
    pub history: Arc<History>,
    /// How promising it is.
    pub energy: f64,
    /// How many edges were new when it was saved.
    pub new_edges: u32,
    /// The step of its run, counted from the start of the run, after which it was saved.
    pub step: u32,
    /// The run that reached it, from 1.
    pub run: u64,
    /// How often a run started from it.
    pub selected: u64,
}

/// The checkpoints of an exploration in the order in which they were saved.
#[derive(Clone, Debug)]
pub struct Checkpoints<S> {
    list: Vec<Checkpoint<S>>,
    /// How many are kept.
    max: usize,
    /// Bytes that their histories may hold together.
    bytes_max: u64,
    /// Bytes that their histories hold, at most.
    bytes: u64,
    energies: Energies,
    /// How many were saved in all, the evicted ones too.
    saved: u64,
    /// The weights of a selection by a strategy, once there was one; `None` again where the list changed.
    weights: Option<(Strategy, Weights)>,
}

impl<S> Checkpoints<S> {
    /// No checkpoints, of which as many will be kept as the options say.
    pub fn new(options: &Options) -> Checkpoints<S> {
        Checkpoints {
            list: Vec::new(),
            max: options.checkpoints_max,
            bytes_max: options.history_bytes_max,
            bytes: 0,
            energies: options.energies.clone(),
            saved: 0,
            weights: None,
        }
    }

    /// These checkpoints, of `saved` in all.
    pub fn of(options: &Options, list: Vec<Checkpoint<S>>, saved: u64) -> Checkpoints<S> {
        let mut checkpoints = Checkpoints::new(options);
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

    fn push(&mut self, checkpoint: Checkpoint<S>) {
        self.weights = None;
        self.bytes += checkpoint.history.own_bytes();
        self.list.push(checkpoint);
    }

    /// Where there are too many, or their histories hold too much, drops the one with the lowest energy, the oldest of
    /// those; its index.
    pub fn evict(&mut self) -> Option<usize> {
        if self.bytes > self.bytes_max {
            self.bytes = held_bytes(self.list.iter().map(|checkpoint| &checkpoint.history));
        }
        if self.list.len() <= self.max && (self.bytes <= self.bytes_max || self.list.len() < 2) {
            return None;
        }
        let energy = |index: &usize| self.list[*index].energy;
        let lowest = (0..self.list.len()).min_by(|a, b| energy(a).total_cmp(&energy(b)))?;
        self.weights = None;
        self.list.remove(lowest);
        Some(lowest)
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
        self.weights = None;
        self.list.retain(holds);
    }

    /// Rewards or tires a checkpoint after a run that started from it.
    pub fn ran(&mut self, index: usize, new_edges: u32) {
        let Energies { reward, decay, floor, .. } = self.energies;
        let energy = &mut self.list[index].energy;
        *energy = if new_edges > 0 {
            *energy + f64::from(new_edges) * reward
        } else {
            (*energy * decay).max(floor)
        };
        self.weigh(index);
    }

    /// Sets the energy of a checkpoint.
    pub fn set_energy(&mut self, index: usize, energy: f64) {
        self.list[index].energy = energy;
        self.weigh(index);
    }

    /// Takes back that a checkpoint was selected.
    pub fn unselect(&mut self, index: usize) {
        self.list[index].selected -= 1;
        self.weigh(index);
    }

    /// Lets go of the saved state of the checkpoint with the lowest energy that has one; whether there was one.
    pub fn shed(&mut self) -> bool {
        let saved = self.list.iter_mut().filter(|checkpoint| checkpoint.snapshot.is_some());
        let lowest = saved.min_by(|a, b| a.energy.total_cmp(&b.energy));
        lowest.is_some_and(|checkpoint| checkpoint.snapshot.take().is_some())
    }

    /// Chooses a checkpoint to start from, and takes for granted that the run finds nothing; its index and the energy that
    /// it had. There must be one.
    pub fn select(&mut self, strategy: Strategy, rng: &mut impl Rng) -> (usize, f64) {
        if self.weights.as_ref().is_none_or(|(known, _)| *known != strategy) {
            let checkpoints = self.list.iter().enumerate();
            let weights = checkpoints.map(|(index, checkpoint)| strategy.weight(index, checkpoint));
            self.weights = Some((strategy, Weights::of(weights.collect())));
        }
        let (_, weights) = self.weights.as_ref().expect("they were just made");
        // Rounding may point beyond the last.
        let chosen = weights.find(rng.random::<f64>() * weights.sum()).min(self.list.len() - 1);
        let energy = self.list[chosen].energy;
        self.list[chosen].selected += 1;
        self.ran(chosen, 0);
        (chosen, energy)
    }

    /// The weight of a checkpoint changed.
    fn weigh(&mut self, index: usize) {
        if let Some((strategy, weights)) = &mut self.weights {
            weights.set(index, strategy.weight(index, &self.list[index]));
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
            Strategy::Novel => energy / (selected * selected),
        }
    }
}

/// Weights in a tree of sums: one is changed, and one is found by a running sum, in a logarithmic number of steps.
/// Every sum is that of its two parts and of nothing that was there before, so that equal weights find equal ones.
#[derive(Clone, Debug)]
struct Weights {
    /// The sum of the parts `2i` and `2i + 1` at `i`, from 1; the weights are the second half.
    sums: Vec<f64>,
}

impl Weights {
    fn of(weights: Vec<f64>) -> Weights {
        let half = weights.len().next_power_of_two();
        let mut sums = vec![0.0; half];
        sums.extend(weights);
        sums.resize(2 * half, 0.0);
        (1..half).rev().for_each(|at| sums[at] = sums[2 * at] + sums[2 * at + 1]);
        Weights { sums }
    }

    fn sum(&self) -> f64 {
        self.sums[1]
    }

    fn set(&mut self, index: usize, weight: f64) {
        let mut at = self.sums.len() / 2 + index;
        self.sums[at] = weight;
        while at > 1 {
            at /= 2;
            self.sums[at] = self.sums[2 * at] + self.sums[2 * at + 1];
        }
    }

    /// The first whose weight and those before it sum up to more than `sum`.
    fn find(&self, mut sum: f64) -> usize {
        let mut at = 1;
        while at < self.sums.len() / 2 {
            at *= 2;
            if sum >= self.sums[at] {
                sum -= self.sums[at];
                at += 1;
            }
        }
        at - self.sums.len() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    fn checkpoints(energies: &[f64], max: usize) -> Checkpoints<()> {
        let options = Options { checkpoints_max: max, ..Options::default() };
        let mut checkpoints = Checkpoints::new(&options);
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

    /// How often each is selected in 10,000 draws.
    fn frequencies(strategy: Strategy, energies: &[f64]) -> Vec<u64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut counts = vec![0; energies.len()];
        for _ in 0..10_000 {
            let mut list = checkpoints(energies, 256);
            counts[list.select(strategy, &mut rng).0] += 1;
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

    #[test]
    fn weights_that_were_changed_are_as_if_just_made() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
        let mut compared = 0;
        for len in [1, 2, 3, 64, 100] {
            let mut list: Vec<f64> = (0..len).map(|_| rng.random()).collect();
            let mut weights = Weights::of(list.clone());
            for _ in 0..50 {
                let at = rng.random_range(0..len);
                list[at] = rng.random();
                weights.set(at, list[at]);
                assert_eq!(weights.sums, Weights::of(list.clone()).sums);
                let sum = rng.random::<f64>() * weights.sum();
                let mut rest = sum;
                let linear = list.iter().position(|weight| {
                    rest -= weight;
                    rest < 0.0
                });
                // Sums that are added up in another order may differ in the last bits, so not those near a boundary.
                let is_near = |at: usize| (list[..at].iter().sum::<f64>() - sum).abs() < 1e-9;
                if !(0..=len).any(is_near) {
                    assert_eq!(weights.find(sum), linear.expect("the sum is less than all"));
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 250);
    }

    #[test]
    fn a_weight_is_found_by_the_sum_of_those_before_it() {
        let weights = Weights::of(vec![1.0, 0.0, 2.0, 0.5, 4.0]);
        let found = |sum| weights.find(sum);
        assert_eq!([0.0, 0.5, 1.0, 2.5, 3.0, 3.25, 3.5, 7.0].map(found), [0, 0, 2, 2, 3, 3, 4, 4]);
        assert_eq!(weights.sum(), 7.5);
    }
}
