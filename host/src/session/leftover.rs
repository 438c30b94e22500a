//! What a check that compares memory says of bytes that nothing looks at.

use std::ops::RangeInclusive;

use super::Work;
use crate::check::{Checked, Limit, Options, Order, leftover};
use crate::machine::{Compares, Machine};

/// Checks of fewer states take no time.
const STATES_MIN: u64 = 1000;
/// A check looks for such bytes for a part of its own steps, within bounds.
const SHARE: u64 = 4;
const STEPS: RangeInclusive<u64> = 1 << 14..=1 << 16;
/// Less than that is not worth a hint.
const FACTOR_MIN: f64 = 1.2;

/// Bytes in which states differ, and that nothing looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    /// How many times as many states there are for that, about.
    pub factor: f64,
    /// So many of the first states were looked at.
    pub states: usize,
    /// The variables that they are in, where these have names.
    pub variables: Vec<String>,
    /// Bytes that are in none, such as those of the heap.
    pub unnamed: usize,
}

impl Work<'_> {
    /// Looks for bytes that make more states than there need be, after a check that compared memory.
    pub(super) fn leftover(
        &self,
        machine: &mut Machine,
        options: &Options,
        checked: &Checked,
    ) -> Option<Leftover> {
        let compares_memory = options.prunes && machine.program().compares() == Compares::Memory;
        let is_stopped = checked.limit.is_some_and(Limit::is_from_outside);
        let is_worth_it = checked.census.states >= STATES_MIN && options.order == Order::Breadth;
        // A function with threads has nothing that says what its states are.
        let can_say = !machine.says_what_threads_touch();
        if !compares_memory || is_stopped || !is_worth_it || !can_say || self.budget.is_over() {
            return None;
        }
        let steps = (checked.census.steps / SHARE).clamp(*STEPS.start(), *STEPS.end()) as usize;
        let uses_snapshots = machine.uses_snapshots();
        // What is found does not depend on how the check came to its states.
        machine.set_uses_snapshots(true).ok()?;
        let found = leftover(machine, options, (steps, options.saved_bytes_max), &|| self.budget.is_over());
        machine.set_uses_snapshots(uses_snapshots).ok()?;
        let found = found.filter(|found| found.factor >= FACTOR_MIN)?;
        let names = machine.variables(&found.words);
        let unnamed = 4 * found.words.iter().filter(|word| !names.contains_key(word)).count();
        let mut variables: Vec<String> = Vec::new();
        for name in found.words.iter().filter_map(|word| names.get(word)) {
            if !variables.contains(name) {
                variables.push(name.clone());
            }
        }
        Some(Leftover { factor: found.factor, states: found.states, variables, unnamed })
    }
}
