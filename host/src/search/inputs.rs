//! Which inputs of a function are worth being changed.

use super::energy::{Checkpoint, Checkpoints};

/// The weight of inputs that are the best way to no edge, beside others.
const UNFAVOURED: f64 = 0.1;
/// What a byte of an input counts for, and a run by itself, in guest steps.
const BYTE_WORK: u64 = 16;
pub(super) const RUN_WORK: f64 = 2000.0;

/// No input gets to an edge.
const NOBODY: (u64, u64) = (0, u64::MAX);

impl<S> Checkpoint<S> {
    /// What it takes to try an input: guest steps, and bytes that are changed in vain.
    pub(super) fn cost(&self) -> u64 {
        let bytes: usize = self.history.last_choices().iter().map(|choice| choice.value.shared_bytes()).sum();
        self.work.saturating_add(BYTE_WORK * bytes as u64)
    }

    /// How likely an input is to be changed: those that are the best way to no edge are tried seldom, and of two that are alike the one
    /// that costs a quarter twice as often. In proportion to what they cost, all inputs would get the same time, and those that come to
    /// much, such as a decompressed text longer than a window, too few runs.
    pub(super) fn input_weight(&self) -> f64 {
        let favour = if self.champion_of > 0 { 1.0 } else { UNFAVOURED };
        let tried = (1 + self.selected) as f64;
        favour * self.energy / (tried * (RUN_WORK + self.work as f64)).sqrt()
    }
}

impl<S> Checkpoints<S> {
    /// Makes an input, by its number, the champion of those of these edges that no other gets to for as little (AFL's favoured
    /// entries).
    pub fn crown(&mut self, id: u64, edges: impl IntoIterator<Item = u32>) {
        let Some(index) = self.index_of(id) else { return };
        let cost = self.list[index].cost();
        for edge in edges {
            let edge = edge as usize;
            if edge >= self.champions.len() {
                self.champions.resize(edge + 1, NOBODY);
            }
            let (known, least) = self.champions[edge];
            if cost < least {
                self.champions[edge] = (id, cost);
                self.list[index].champion_of += 1;
                if let Some(known) = self.index_of(known) {
                    self.list[known].champion_of -= 1;
                }
            }
        }
        self.forget_weights();
    }

    /// The numbers of the champions, by edge; 0 where there is none.
    pub fn champions(&self) -> impl Iterator<Item = u64> {
        self.champions.iter().map(|(id, _)| *id)
    }

    /// An input that is no longer kept is the champion of nothing.
    pub(super) fn dethrone(&mut self, evicted: &Checkpoint<S>) {
        if evicted.champion_of > 0 {
            let of_evicted = self.champions.iter_mut().filter(|(id, _)| *id == evicted.id);
            of_evicted.for_each(|champion| *champion = NOBODY);
        }
    }
}
