//! How often each rule was called, and how often that found an edge: in all, lately, and while each fault was on.

use serde::{Deserialize, Serialize};

use super::discovery::{Discovery, TRIES_MIN};
use super::run::Runner;
use crate::target::Target;
use crate::trace::Action;

/// Cells that are counted, at most: of a target with more, faults are not told apart.
const CELLS_MAX: usize = 1 << 16;

/// Calls, and those that found an edge: of each rule one cell for all, and one for each fault that was on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Called {
    cells: Vec<[u64; 2]>,
    /// Of each rule, its first cell as it was when two numbers of its calls were reached, each twice the one before, the earlier one
    /// first. What was counted since that one are its latest calls: half of all or more, and three quarters at most.
    marks: Vec<[[u64; 2]; 2]>,
}

/// What a campaign holds of it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    /// Of a build that did not tell the latest calls from the others.
    Cells(Vec<[u64; 2]>),
    All {
        cells: Vec<[u64; 2]>,
        marks: Vec<[[u64; 2]; 2]>,
    },
}

impl From<Stored> for Called {
    fn from(stored: Stored) -> Called {
        match stored {
            Stored::Cells(cells) => Called { cells, marks: Vec::new() },
            Stored::All { cells, marks } => Called { cells, marks },
        }
    }
}

/// Cells of each rule.
pub(super) fn width(rules: usize, faults: usize) -> usize {
    if rules * (faults + 1) <= CELLS_MAX { faults + 1 } else { 1 }
}

impl Called {
    /// Calls of a rule, and how many of them found an edge: in all where `fault` is 0, or while the fault with the number before it was
    /// on, of so many rules and faults. None where faults are not told apart.
    pub fn of(&self, rule: usize, fault: usize, (rules, faults): (usize, usize)) -> Option<[u64; 2]> {
        let width = width(rules, faults);
        (fault < width).then(|| self.cells.get(rule * width + fault).copied().unwrap_or_default())
    }

    /// How likely the next call of a rule finds an edge, by its latest ones; none where these are too few.
    pub fn discovery(&self, rule: usize, size: (usize, usize)) -> Option<Discovery> {
        let [calls, found] = self.of(rule, 0, size)?;
        let [[older_calls, older_found], _] = self.marks.get(rule).copied().unwrap_or_default();
        let calls = calls.saturating_sub(older_calls);
        let found = found.saturating_sub(older_found).min(calls);
        (calls >= TRIES_MIN).then_some(Discovery { runs: calls, found })
    }

    /// Counts what a run noted, of a target with so many cells for each rule.
    pub(super) fn count(&mut self, notes: &[u32], width: usize) {
        for note in notes {
            let at = (note >> 1) as usize;
            let cell = self.cell(at);
            cell[0] += 1;
            cell[1] += u64::from(note & 1);
            let now = *cell;
            if at.is_multiple_of(width) {
                self.mark(at / width, now);
            }
        }
    }

    /// Counts calls that found nothing, of a target that is one function.
    pub(super) fn count_calls(&mut self, calls: u64) {
        let cell = self.cell(0);
        cell[0] += calls;
        let now = *cell;
        self.mark(0, now);
    }

    /// Adds what was counted elsewhere.
    pub(super) fn add(&mut self, other: &Called) {
        let add =
            |to: &mut [u64; 2], from: &[u64; 2]| [0, 1].map(|at| to[at] = to[at].saturating_add(from[at]));
        for (at, cell) in other.cells.iter().enumerate() {
            add(self.cell(at), cell);
        }
        for (rule, marks) in other.marks.iter().enumerate() {
            let own = self.marks(rule);
            add(&mut own[0], &marks[0]);
            add(&mut own[1], &marks[1]);
        }
    }

    /// What is left without what was counted elsewhere.
    pub(super) fn without(&self, other: &Called) -> Called {
        let less = |own: &[u64; 2], other: &[u64; 2]| [0, 1].map(|at| own[at].saturating_sub(other[at]));
        let cells = self.cells.iter().zip(other.cells.iter().chain(std::iter::repeat(&[0; 2])));
        let marks = self.marks.iter().zip(other.marks.iter().chain(std::iter::repeat(&[[0; 2]; 2])));
        Called {
            cells: cells.map(|(own, other)| less(own, other)).collect(),
            marks: marks.map(|(own, other)| [less(&own[0], &other[0]), less(&own[1], &other[1])]).collect(),
        }
    }

    fn mark(&mut self, rule: usize, now: [u64; 2]) {
        let [older, newer] = self.marks(rule);
        if now[0] >= newer[0].saturating_mul(2) {
            *older = *newer;
            *newer = now;
        }
    }

    fn marks(&mut self, rule: usize) -> &mut [[u64; 2]; 2] {
        let rule = rule.min(CELLS_MAX);
        if rule >= self.marks.len() {
            self.marks.resize(rule + 1, [[0; 2]; 2]);
        }
        &mut self.marks[rule]
    }

    fn cell(&mut self, at: usize) -> &mut [u64; 2] {
        // A file may not say how much memory is taken.
        let at = at.min(CELLS_MAX);
        if at >= self.cells.len() {
            self.cells.resize(at + 1, [0; 2]);
        }
        &mut self.cells[at]
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
        called.count(&[2 << 1, 2 << 1 | 1, 3 << 1 | 1], 2);
        let of = |called: &Called, rule, fault| called.of(rule, fault, (2, 1));
        assert_eq!(of(&called, 0, 0), Some([0, 0]));
        assert_eq!([of(&called, 1, 0), of(&called, 1, 1)], [Some([2, 1]), Some([1, 1])]);
        let mut both = called.clone();
        both.add(&called);
        assert_eq!(of(&both, 1, 0), Some([4, 2]));
        assert_eq!(both.without(&called), called);
        assert_eq!(called.of(0, 1, (1 << 16, 1)), None);
    }

    /// After each number of calls, of which those with these numbers found something, what the latest are.
    fn latest(found: &[u64]) -> impl Iterator<Item = (u64, Option<Discovery>)> {
        let mut called = Called::default();
        (1..=100_000).map(move |call| {
            // Of two rules and two faults, the second rule.
            called.count(&[3 << 1 | u32::from(found.contains(&call)), 4 << 1], 3);
            (call, called.discovery(1, (2, 2)))
        })
    }

    #[test]
    fn the_latest_calls_are_half_of_all_to_three_quarters() {
        for (calls, discovery) in latest(&[]).skip(1) {
            let since = 1 << (calls.ilog2() - 1);
            let expected = Discovery { runs: calls - since, found: 0 };
            assert_eq!(discovery, (expected.runs >= 100).then_some(expected), "{calls}");
            assert!(2 * expected.runs >= calls && 4 * expected.runs <= 3 * calls + 3, "{calls}");
        }
        let at = |call: usize| latest(&[1, 300, 512, 513, 600, 1000]).nth(call - 1).unwrap().1.unwrap();
        assert_eq!(at(1000), Discovery { runs: 744, found: 5 });
        assert_eq!(at(1023), Discovery { runs: 767, found: 5 });
        assert_eq!(at(1024), Discovery { runs: 512, found: 3 });
    }

    #[test]
    fn of_a_function_each_run_is_a_call() {
        let mut called = Called::default();
        for run in 0..300 {
            let found: &[u32] = if run == 280 { &[1] } else { &[] };
            called.count(found, 1);
            called.count_calls(1 - found.len() as u64);
        }
        assert_eq!(called.of(0, 0, (1, 0)), Some([300, 1]));
        assert_eq!(called.discovery(0, (1, 0)), Some(Discovery { runs: 172, found: 1 }));
    }

    #[test]
    fn what_is_merged_is_counted_together_and_apart() {
        let counted = |calls| {
            let mut called = Called::default();
            (0..calls).for_each(|_| called.count(&[0], 1));
            called
        };
        let (one, other) = (counted(1000), counted(300));
        let mut both = one.clone();
        both.add(&other);
        assert_eq!(both.discovery(0, (1, 0)), Some(Discovery { runs: 744 + 172, found: 0 }));
        assert_eq!([both.without(&other), both.without(&one)], [one, other]);
    }

    /// Campaigns of builds that did not count the latest calls hold the cells alone, or nothing.
    #[test]
    fn what_earlier_builds_stored_is_read() {
        let mut called: Called = serde_json::from_str("[[500,3],[7,0]]").unwrap();
        assert_eq!(called.discovery(0, (1, 1)), Some(Discovery { runs: 500, found: 3 }));
        called.count(&[0], 2);
        assert_eq!(called.discovery(0, (1, 1)), Some(Discovery { runs: 501, found: 3 }));
        let text = serde_json::to_string(&called).unwrap();
        assert_eq!(text, r#"{"cells":[[501,3],[7,0]],"marks":[[[0,0],[501,3]]]}"#);
        assert_eq!(serde_json::from_str::<Called>(&text).unwrap(), called);
        let forged: Called =
            serde_json::from_str(r#"{"cells":[[500,900]],"marks":[[[100,0],[0,0]]]}"#).unwrap();
        assert_eq!(forged.discovery(0, (1, 0)), Some(Discovery { runs: 400, found: 400 }));
    }
}
