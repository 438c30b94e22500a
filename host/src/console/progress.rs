//! How far an exploration is, in one line.

use std::collections::VecDeque;
use std::time::Duration;

use crate::search::Progress;
use crate::session::Left;

/// What is new since then is recent.
const RECENT: Duration = Duration::from_secs(60);
/// Edges are noted this far apart, at least.
const NOTED: Duration = Duration::from_secs(1);

/// How many edges were seen at which time lately.
#[derive(Default)]
pub(super) struct Recent(VecDeque<(Duration, u32)>);

impl Recent {
    /// How many of the edges that are seen now are new in the last minute.
    pub(super) fn new_edges(&mut self, now: Duration, edges: u32) -> u32 {
        if self.0.back().is_none_or(|(last, _)| now.saturating_sub(*last) >= NOTED) {
            self.0.push_back((now, edges));
        }
        // The last that is a minute old stays: what was seen then is not new.
        while self.0.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) >= RECENT) {
            self.0.pop_front();
        }
        self.0.front().map_or(0, |(_, before)| edges.saturating_sub(*before))
    }
}

/// What was counted now and before, the time between, and the edges there are; with more, how many edges are new in the last
/// minute, and what is left of the bounds.
pub(super) fn exploring(
    (progress, before): (&Progress, &Progress),
    elapsed: Duration,
    edges: usize,
    more: Option<(u32, &Left)>,
) -> String {
    let Progress { runs, steps, edges: hit, checkpoints, findings, deepest, .. } = progress;
    let rate =
        |now: u64, before: u64| rounded(now.saturating_sub(before) as f64 / elapsed.as_secs_f64().max(1e-9));
    let per_second = rate(*steps, before.steps);
    let Some((new, left)) = more else {
        return format!(
            "runs {runs}  steps {steps} ({per_second}/s)  edges {hit}/{edges}  checkpoints {checkpoints}  findings {findings}"
        );
    };
    format!(
        "runs {runs} ({}/s)  steps {steps} ({per_second}/s)  edges {hit}/{edges} ({new} new in the last minute)  \
         checkpoints {checkpoints} (up to {deepest} steps deep)  findings {findings}  {left}",
        rate(*runs, before.runs)
    )
}

/// `1.2M`, `34k`, `567`.
pub(super) fn rounded(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.1}M", v / 1e6),
        v if v >= 1e4 => format!("{:.0}k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_a_minute_ago_is_not_new() {
        let mut recent = Recent::default();
        let mut at = |tenths: u64, edges| recent.new_edges(Duration::from_millis(100 * tenths), edges);
        assert_eq!([at(0, 10), at(5, 12), at(10, 15)], [0, 2, 5]);
        assert_eq!([at(600, 20), at(609, 20), at(610, 20), at(1200, 20)], [10, 10, 5, 0]);
        for tenths in 1200..20_000 {
            at(tenths, 30);
        }
        assert!(recent.0.len() <= 62, "{}", recent.0.len());
    }

    #[test]
    fn one_line_says_how_far_it_is_and_may_say_more() {
        let before = Progress { runs: 100, steps: 1000, ..Progress::default() };
        let progress = Progress {
            runs: 30_100,
            steps: 2_501_000,
            edges: 34,
            checkpoints: 12,
            deepest: 9,
            findings: 1,
            ..Progress::default()
        };
        let line = |more| exploring((&progress, &before), Duration::from_secs(2), 120, more);
        assert_eq!(
            line(None),
            "runs 30100  steps 2501000 (1.2M/s)  edges 34/120  checkpoints 12  findings 1"
        );
        let left = Left { runs: Some(69_900), time: Some(Duration::from_millis(61_900)) };
        assert_eq!(
            line(Some((3, &left))),
            "runs 30100 (15k/s)  steps 2501000 (1.2M/s)  edges 34/120 (3 new in the last minute)  \
             checkpoints 12 (up to 9 steps deep)  findings 1  69900 runs or 1m 1s left"
        );
    }
}
