//! How often each rule was called, and how often that found an edge: in all, and while each fault was on.

use serde::{Deserialize, Serialize};

use super::run::Runner;
use crate::target::Target;
use crate::trace::Action;

/// Cells that are counted, at most: of a target with more, faults are not told apart.
const CELLS_MAX: usize = 1 << 16;

/// Calls, and those that found an edge: of each rule one cell for all, and one for each fault that was on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Called(Vec<[u64; 2]>);

/// Cells of each rule.
fn width(rules: usize, faults: usize) -> usize {
    if rules * (faults + 1) <= CELLS_MAX { faults + 1 } else { 1 }
}

impl Called {
    /// Calls of a rule, and how many of them found an edge: in all where `fault` is 0, or while the fault with the number before it was
    /// on, of so many rules and faults. None where faults are not told apart.
    pub fn of(&self, rule: usize, fault: usize, (rules, faults): (usize, usize)) -> Option<[u64; 2]> {
        let width = width(rules, faults);
        (fault < width).then(|| self.0.get(rule * width + fault).copied().unwrap_or_default())
    }

    /// Counts what a run noted.
    pub(super) fn count(&mut self, notes: &[u32]) {
        for note in notes {
            let cell = self.cell((note >> 1) as usize);
            cell[0] += 1;
            cell[1] += u64::from(note & 1);
        }
    }

    /// Counts calls that found nothing, of a target that is one function.
    pub(super) fn count_calls(&mut self, calls: u64) {
        self.cell(0)[0] += calls;
    }

    /// Adds what was counted elsewhere.
    pub(super) fn add(&mut self, other: &Called) {
        for (at, [calls, found]) in other.0.iter().enumerate() {
            let cell = self.cell(at);
            cell[0] += calls;
            cell[1] += found;
        }
    }

    /// What is left without what was counted elsewhere.
    pub(super) fn without(&self, other: &Called) -> Called {
        let zeros = std::iter::repeat(&[0; 2]);
        let cells = self.0.iter().zip(other.0.iter().chain(zeros));
        Called(cells.map(|(own, other)| [0, 1].map(|at| own[at].saturating_sub(other[at]))).collect())
    }

    fn cell(&mut self, at: usize) -> &mut [u64; 2] {
        // A file may not say how much memory is taken.
        let at = at.min(CELLS_MAX);
        if at >= self.0.len() {
            self.0.resize(at + 1, [0; 2]);
        }
        &mut self.0[at]
    }
}

impl<T: Target> Runner<'_, T> {
    /// Notes that a rule was called. Of a function, which is called in every run, only that it found something.
    pub(super) fn note(&mut self, action: Action, has_found: bool) {
        let Action::Rule(rule) = action else { return };
        if self.target.is_function() {
            if has_found {
                self.called.push(1);
            }
            return;
        }
        let width = width(self.target.rules().len(), self.faults.len());
        let first = (usize::from(rule) * width) as u32;
        self.called.push(first << 1 | u32::from(has_found));
        let on = self.faults[..width - 1].iter().enumerate().filter(|(_, on)| **on);
        self.called.extend(on.map(|(fault, _)| (first + fault as u32 + 1) << 1 | u32::from(has_found)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_those_of_rules_and_faults() {
        let mut called = Called::default();
        // Two rules and one fault: rule 1 twice, once with the fault and finding something.
        called.count(&[2 << 1, 2 << 1 | 1, 3 << 1 | 1]);
        let of = |called: &Called, rule, fault| called.of(rule, fault, (2, 1));
        assert_eq!(of(&called, 0, 0), Some([0, 0]));
        assert_eq!([of(&called, 1, 0), of(&called, 1, 1)], [Some([2, 1]), Some([1, 1])]);
        let mut both = called.clone();
        both.add(&called);
        assert_eq!(of(&both, 1, 0), Some([4, 2]));
        assert_eq!(both.without(&called), called);
        assert_eq!(called.of(0, 1, (1 << 16, 1)), None);
    }
}
