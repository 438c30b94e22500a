//! Which inputs of a function are worth being changed.

use super::energy::Checkpoint;

/// The weight of inputs that are the best way to no edge, beside others.
const UNFAVOURED: f64 = 0.1;
/// What a byte of an input counts for, and a run by itself, in guest steps.
const BYTE_WORK: u64 = 16;
pub(super) const RUN_WORK: f64 = 2000.0;

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
