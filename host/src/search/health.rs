//! What is wrong with an exploration, with what to do about it: a function of what was counted.

use serde::{Deserialize, Serialize};

use super::Progress;
use crate::text;

/// Nothing is said of fewer runs than these, but what all of them came to.
const RUNS_MIN: u64 = 100;
/// A search is stalled where the last half of its runs saw nothing new, and these were so many or more.
const STALLED_MIN: u64 = 10_000;
/// Most runs are rejected where so many of ten are.
const REJECTED_OF_TEN: u64 = 8;
/// Rules that are named.
const NAMED_MAX: usize = 4;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symptom {
    /// In one word.
    pub kind: SymptomKind,
    /// What it is, and what to do, in one line.
    pub text: String,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SymptomKind {
    /// A failure did not happen again.
    Flaky,
    /// No edge is counted.
    Uncounted,
    /// No run makes a choice.
    Constant,
    /// All runs are rejected, or most.
    Rejected,
    /// No rule was called.
    Idle,
    /// Some rules were never called.
    Uncalled,
    /// Nothing new was seen for long.
    Stalled,
}

/// What an exploration counted.
#[derive(Clone, Debug, Default)]
pub struct Vitals<'v> {
    /// Runs and the like.
    pub progress: Progress,
    /// The run that saw something new last; 0 where there is none.
    pub last_new: u64,
    /// Edges in the module.
    pub edges: usize,
    /// Whether edges that are counted are to guide the search, and there are none.
    pub is_uncounted: bool,
    /// Whether the target is one function, which may reject what it is given.
    pub is_function: bool,
    /// Whether that takes inputs, of which some may be given.
    pub takes_input: bool,
    /// Whether it is a program that was given no arguments, without which it may do nothing.
    pub lacks_args: bool,
    /// Whether every run is the same.
    pub is_constant: bool,
    /// Whether a failure did not happen again.
    pub is_flaky: bool,
    /// The rules that may be called, and how often they were.
    pub calls: Vec<(&'v str, u64)>,
}

impl Vitals<'_> {
    /// What is wrong, what matters most first.
    pub fn symptoms(&self) -> Vec<Symptom> {
        let found =
            [self.flaky(), self.uncounted(), self.constant(), self.rejected(), self.called(), self.stalled()];
        let symptom = |(kind, text)| Symptom { kind, text };
        found.into_iter().flatten().map(symptom).collect()
    }

    fn flaky(&self) -> Option<(SymptomKind, String)> {
        let text = "a failure did not happen again, so the guest is not deterministic: `spelunk list` says what it imports";
        self.is_flaky.then(|| (SymptomKind::Flaky, text.to_string()))
    }

    fn uncounted(&self) -> Option<(SymptomKind, String)> {
        let text = "no edge is counted, so nothing guides the search: see --include and --exclude";
        self.is_uncounted.then(|| (SymptomKind::Uncounted, text.to_string()))
    }

    fn constant(&self) -> Option<(SymptomKind, String)> {
        let text = "the target draws nothing and reads nothing that is drawn, so every run is the same, and one is enough: \
                    `spelunk list` says what it is given";
        let is_told = self.is_constant && self.progress.findings == 0;
        is_told.then(|| (SymptomKind::Constant, text.to_string()))
    }

    fn rejected(&self) -> Option<(SymptomKind, String)> {
        let Progress { runs, rejected, .. } = self.progress;
        let most =
            !self.is_function && runs >= RUNS_MIN && rejected.saturating_mul(10) >= runs * REJECTED_OF_TEN;
        let text = match runs > 0 && rejected == runs {
            true => "the guest rejected every run: what it assumes never holds".to_string(),
            false if most => {
                format!(
                    "the guest rejected {rejected} of {runs} runs: draw what it accepts, instead of assuming it"
                )
            }
            false => return None,
        };
        Some((SymptomKind::Rejected, text))
    }

    /// What was never called. Where every run is rejected, that is why.
    fn called(&self) -> Option<(SymptomKind, String)> {
        let Progress { runs, rejected, rules, findings, .. } = self.progress;
        if runs == 0 || rejected == runs {
            return None;
        }
        if rules == 0 && findings == 0 {
            let text = "no rule was ever called: no precondition holds after setup";
            return Some((SymptomKind::Idle, text.to_string()));
        }
        let never: Vec<&str> =
            self.calls.iter().filter(|(_, calls)| *calls == 0).map(|(name, _)| *name).collect();
        // What builds before this one counted is not known by rule.
        let is_known = never.len() < self.calls.len() && !self.is_function;
        if runs < RUNS_MIN || never.is_empty() || !is_known {
            return None;
        }
        let mut names: Vec<String> =
            never.iter().take(NAMED_MAX).map(|name| format!("`{}`", text::line(name))).collect();
        if never.len() > NAMED_MAX {
            names.push(format!("{} more", never.len() - NAMED_MAX));
        }
        let text = format!(
            "never called: {}; the preconditions did not hold in {runs} runs: try longer ones (--steps-per-run), or other rules first",
            names.join(", ")
        );
        Some((SymptomKind::Uncalled, text))
    }

    /// Where all edges were seen, there may be nothing new.
    fn stalled(&self) -> Option<(SymptomKind, String)> {
        let Progress { runs, edges, .. } = self.progress;
        let barren = runs.saturating_sub(self.last_new);
        let is_partial = (edges as usize) < self.edges;
        if self.is_constant || !is_partial || barren < STALLED_MIN || barren <= self.last_new {
            return None;
        }
        let what = match (self.takes_input, self.is_function) {
            (true, _) => "other --seeds with real inputs, or a --dict",
            (false, true) => "another --seed, or a --dict",
            (false, false) => "longer runs (--steps-per-run), another --seed, or rules that lead further",
        };
        let first = if self.lacks_args { "arguments after `--`, " } else { "" };
        let text = format!("nothing new since run {} of {runs}: try {first}{what}", self.last_new);
        Some((SymptomKind::Stalled, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(vitals: &Vitals<'_>, expected: &[(SymptomKind, &str)]) {
        let symptoms = vitals.symptoms();
        let found: Vec<(SymptomKind, &str)> = symptoms.iter().map(|s| (s.kind, &*s.text)).collect();
        assert_eq!(found, expected);
    }

    fn counted(runs: u64, rejected: u64, rules: u64) -> Vitals<'static> {
        let progress = Progress { runs, rejected, rules, edges: 3, ..Progress::default() };
        Vitals { progress, last_new: runs, edges: 4, calls: vec![("a", 1), ("b", 1)], ..Vitals::default() }
    }

    #[test]
    fn nothing_is_wrong_with_most() {
        check(&Vitals::default(), &[]);
        check(&counted(1000, 799, 5000), &[]);
        check(&counted(99, 98, 99), &[]);
    }

    #[test]
    fn most_runs_that_are_rejected_are_too_many_unless_it_is_a_function_that_rejects() {
        let all = "the guest rejected every run: what it assumes never holds";
        check(&counted(3, 3, 0), &[(SymptomKind::Rejected, all)]);
        let most = "the guest rejected 80 of 100 runs: draw what it accepts, instead of assuming it";
        check(&counted(100, 80, 10), &[(SymptomKind::Rejected, most)]);
        check(&counted(100, 79, 10), &[]);
        check(&Vitals { is_function: true, ..counted(100, 90, 100) }, &[]);
        check(&Vitals { is_function: true, ..counted(100, 100, 100) }, &[(SymptomKind::Rejected, all)]);
    }

    #[test]
    fn rules_that_are_never_called_are_named() {
        let idle = "no rule was ever called: no precondition holds after setup";
        check(&counted(1, 0, 0), &[(SymptomKind::Idle, idle)]);
        let found = counted(1, 0, 0);
        check(&Vitals { progress: Progress { findings: 1, ..found.progress }, ..found }, &[]);
        let calls = vec![("a", 9), ("b\x1b", 0), ("c", 0), ("d", 0), ("e", 0), ("f", 0), ("g", 0)];
        let some = Vitals { calls: calls.clone(), ..counted(100, 0, 9) };
        let text = "never called: `b\\u{1b}`, `c`, `d`, `e`, 2 more; the preconditions did not hold in 100 runs: \
                    try longer ones (--steps-per-run), or other rules first";
        check(&some, &[(SymptomKind::Uncalled, text)]);
        check(&Vitals { calls: calls.clone(), ..counted(99, 0, 9) }, &[]);
        // A campaign of a build that did not count them by rule.
        check(&Vitals { calls: calls[1..].to_vec(), ..counted(100, 0, 9) }, &[]);
    }

    #[test]
    fn a_search_is_stalled_where_its_last_half_saw_nothing_new() {
        let at = |last_new, runs| Vitals { last_new, ..counted(runs, 0, runs) };
        let text = "nothing new since run 9999 of 20000: try longer runs (--steps-per-run), another --seed, or rules that lead further";
        check(&at(9999, 20_000), &[(SymptomKind::Stalled, text)]);
        check(&at(10_000, 20_000), &[]);
        check(&at(0, 9_999), &[]);
        check(&Vitals { edges: 3, ..at(0, 20_000) }, &[]);
        let text = "nothing new since run 0 of 10000: try another --seed, or a --dict";
        check(&Vitals { is_function: true, ..at(0, 10_000) }, &[(SymptomKind::Stalled, text)]);
        let text = "nothing new since run 0 of 10000: try other --seeds with real inputs, or a --dict";
        let of_inputs = Vitals { is_function: true, takes_input: true, ..at(0, 10_000) };
        check(&of_inputs, &[(SymptomKind::Stalled, text)]);
        let text = "nothing new since run 0 of 10000: try arguments after `--`, other --seeds with real inputs, or a --dict";
        check(&Vitals { lacks_args: true, ..of_inputs }, &[(SymptomKind::Stalled, text)]);
    }

    #[test]
    fn what_matters_most_comes_first() {
        let vitals = Vitals { is_flaky: true, is_uncounted: true, ..counted(100, 95, 10) };
        let kinds: Vec<SymptomKind> = vitals.symptoms().iter().map(|symptom| symptom.kind).collect();
        assert_eq!(kinds, [SymptomKind::Flaky, SymptomKind::Uncounted, SymptomKind::Rejected]);
    }
}
