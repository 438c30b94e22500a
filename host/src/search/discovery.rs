//! How likely it is that the next run, or call of a rule, finds something.

use serde::{Deserialize, Serialize};

/// Runs, or calls of a rule, that are looked at, at least.
pub(super) const TRIES_MIN: u64 = 100;
/// That many standard deviations hold 95 % of a normal distribution.
const Z: f64 = 1.96;

/// How many of the latest runs, or calls of a rule, went through an edge that none before them had gone through.
///
/// The share of such runs falls while a search goes on, so that of the last half of all is rather more than the chance of the next.
/// Good and Turing's estimate, from edges that one run alone went through, would need no such past; but a guided search does not draw its
/// runs alike: from a checkpoint it seldom goes through the edge again that made it one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovery {
    /// The latest runs, or calls.
    pub runs: u64,
    /// Of these.
    pub found: u64,
}

impl Discovery {
    /// Of so many runs, those with these numbers having found something new; none where there were too few.
    pub(super) fn new(runs: u64, found: impl Iterator<Item = u64>) -> Option<Discovery> {
        let first = runs / 2;
        let mut found: Vec<u64> = found.filter(|run| (first + 1..=runs).contains(run)).collect();
        found.sort_unstable();
        found.dedup();
        let runs = runs - first;
        (runs >= TRIES_MIN).then_some(Discovery { runs, found: found.len() as u64 })
    }

    /// The share of runs that found something.
    pub fn chance(&self) -> f64 {
        self.found as f64 / self.runs as f64
    }

    /// What holds the chance with a probability of 95 % (Wilson 1927).
    pub fn interval(&self) -> (f64, f64) {
        let (runs, chance) = (self.runs as f64, self.chance());
        let middle = chance + Z * Z / (2.0 * runs);
        let half = Z * (chance * (1.0 - chance) / runs + Z * Z / (4.0 * runs * runs)).sqrt();
        let scale = 1.0 + Z * Z / runs;
        (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_half_of_the_runs_counts_and_each_run_once() {
        let found = [1, 2, 500, 501, 501, 700, 999, 1000];
        let discovery = Discovery::new(1000, found.into_iter()).unwrap();
        assert_eq!(discovery, Discovery { runs: 500, found: 4 });
        assert_eq!(Discovery::new(199, found.into_iter()), Some(Discovery { runs: 100, found: 0 }));
        assert_eq!(Discovery::new(198, found.into_iter()), None);
    }

    #[test]
    fn the_interval_is_wilsons() {
        let close = |discovery: Discovery, low: f64, high: f64| {
            let (a, b) = discovery.interval();
            assert!((a - low).abs() < 5e-5 && (b - high).abs() < 5e-5, "{a} {b}");
        };
        close(Discovery { runs: 100, found: 0 }, 0.0, 0.03699);
        close(Discovery { runs: 100, found: 50 }, 0.40383, 0.59617);
        close(Discovery { runs: 100, found: 100 }, 0.96301, 1.0);
        close(Discovery { runs: 500, found: 4 }, 0.00312, 0.02038);
    }
}
