//! What runs came to that began in one way. It is told, and decides nothing; see `luck.rs` for what does.

use serde::{Deserialize, Serialize};

use super::energy::News;
use super::knowledge::Plan;

/// A way to begin a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing guides it.
    Fresh,
    /// From a state with a new edge.
    Edges,
    /// From a state that showed something new which is no edge.
    Shown,
    /// With an input that is changed anyhow.
    Vary,
    /// With what an input is compared with in place of parts of it.
    Hint,
    /// In the same way, and what no longer is equal is mended.
    Mend,
    /// With an input in which a comparison of what is computed is solved.
    Solve,
}

impl Way {
    /// All, in the order in which they are told.
    pub const ALL: [Way; 7] =
        [Way::Fresh, Way::Edges, Way::Shown, Way::Vary, Way::Hint, Way::Mend, Way::Solve];

    /// In a few words, after "runs".
    pub fn name(self) -> &'static str {
        match self {
            Way::Fresh => "fresh",
            Way::Edges => "from states with new edges",
            Way::Shown => "from states with new numbers",
            Way::Vary => "of changed inputs",
            Way::Hint => "of inputs with operands",
            Way::Mend => "of mended inputs",
            Way::Solve => "that solve comparisons",
        }
    }

    pub(super) fn of(plan: &Plan, is_function: bool) -> Way {
        match (plan.start, plan.moved) {
            (None, _) => Way::Fresh,
            // They are in the same order; without a branch, since which it is cannot be predicted.
            (_, Some(moved)) => Way::ALL[Way::Vary as usize + moved as usize],
            _ if is_function => Way::Vary,
            (Some(News::Shown), _) => Way::Shown,
            (Some(News::Edges), _) => Way::Edges,
        }
    }
}

/// What runs came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Yield {
    /// Runs.
    pub runs: u64,
    /// Of which so many found a new edge or a higher score, or, of a function, went through an edge more often.
    pub edges: u64,
    /// Of which so many showed something else that was new.
    pub shown: u64,
}

/// By the way in which runs began, what they came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ways([Yield; Way::ALL.len()]);

impl Ways {
    /// Those that were taken.
    pub fn taken(&self) -> impl Iterator<Item = (Way, Yield)> {
        Way::ALL.into_iter().zip(self.0).filter(|(_, came_to)| came_to.runs > 0)
    }

    /// Counts a run.
    pub(super) fn ran(&mut self, way: Way, has_edges: bool, has_shown: bool) {
        let came_to = &mut self.0[way as usize];
        came_to.runs += 1;
        came_to.edges += u64::from(has_edges);
        came_to.shown += u64::from(has_shown);
    }

    /// Adds what was counted elsewhere.
    pub(super) fn add(&mut self, other: &Ways) {
        self.each(other, u64::saturating_add);
    }

    /// Takes away what was counted elsewhere.
    pub(super) fn without(mut self, other: &Ways) -> Ways {
        self.each(other, u64::saturating_sub);
        self
    }

    fn each(&mut self, other: &Ways, put: impl Fn(u64, u64) -> u64) {
        for (one, other) in self.0.iter_mut().zip(other.0) {
            one.runs = put(one.runs, other.runs);
            one.edges = put(one.edges, other.edges);
            one.shown = put(one.shown, other.shown);
        }
    }
}
