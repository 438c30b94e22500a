//! Parts of a round that other processes look at.
//!
//! Every process knows the states that were met, since it reads what is kept of each round, and so can be told which to look at by
//! their numbers. What they lead to comes back as plain data, and is merged as if a worker of this process had found it. A part that
//! does not come back in time is looked at here too: two that look at the same states find the same.

use serde::{Deserialize, Serialize};

use super::grown::{Child, Grown, GrownNode, Run};
use super::nodes::Nodes;
use super::worker::Job;
use crate::check::sleep::Rules;
use crate::check::{Census, End};
use crate::choice::Scripted;
use crate::outcome::Failure;
use crate::property::Counts;
use crate::target::Holds;
use crate::trace::Action;

/// States that a process looks at together.
pub(super) const PART: usize = 64;
/// Those of a round.
pub(super) const ROUND: u32 = 1 << 14;

/// More than any state leads to.
const COUNT_MAX: u64 = 1 << 40;

fn is_small(census: &Census) -> bool {
    let Census { runs, rejected, states, pruned, steps, choices, depth: _ } = *census;
    [runs, rejected, states, pruned, steps, choices].iter().all(|count| *count < COUNT_MAX)
}

/// A round that is begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// How many parts were kept before it: those have to be known.
    pub kept: u64,
    /// The states that are looked at: from this number up to that.
    pub(super) first: u32,
    pub(super) end: u32,
    pub(super) depth: u32,
    pub(super) is_start: bool,
    pub(super) runs: u64,
}

impl Round {
    /// Whether so many states are enough to know which are meant.
    pub(super) fn is_of(&self, states: usize) -> bool {
        self.first < self.end && self.end as usize <= states
    }

    pub(super) fn job<'n, S>(&self, nodes: &'n Nodes<S>) -> Job<'n, S> {
        let round = self.first as usize..self.end as usize;
        Job { nodes, round, depth: self.depth, is_start: self.is_start, runs: self.runs }
    }

    /// How many parts it has.
    pub fn parts(&self) -> u32 {
        (self.end - self.first).div_ceil(PART as u32)
    }
}

/// What the states of a part lead to.
#[derive(Serialize, Deserialize)]
pub struct Part {
    /// Of the round after so many parts were kept.
    pub kept: u64,
    /// The number of the part.
    pub number: u32,
    nodes: Vec<GrownNode>,
    children: Vec<Sent>,
    runs: Vec<SentRun>,
    rules: Vec<(u16, u64)>,
    scripts: Vec<Scripted>,
    counts: Option<Counts>,
}

/// See [`Child`].
#[derive(Serialize, Deserialize)]
struct Sent {
    action: Action,
    script: u32,
    state: Option<u128>,
    sleep: Rules,
    is_end: bool,
    fails: bool,
    holds: Holds,
    way: Option<u64>,
}

/// See [`Run`].
#[derive(Serialize, Deserialize)]
struct SentRun {
    step: Option<(Action, Vec<Scripted>)>,
    /// As JSON, which says what it leaves out.
    failure: Option<String>,
    end: u8,
    number: u64,
}

/// Has other processes look at parts of rounds.
pub trait Helpers: Sync {
    /// A round begins: others may look at its parts, from the last to the first.
    fn offer(&self, round: &Round);

    /// Parts that others have looked at since this was last asked.
    fn parts(&self) -> Vec<Part>;
}

/// What a process that helps is told.
pub trait Source: Sync {
    /// What was kept since this was last asked, in order, and the round that is under way, if there is one that needs no more than
    /// that; nothing once there is nothing to help with any more.
    fn next(&self) -> Option<(Vec<super::News>, Option<Round>)>;

    /// The number of a part of the round to look at, if there is one for this process.
    fn take(&self, round: &Round) -> Option<u32>;

    /// Hands over a part.
    fn give(&self, part: &Part);
}

impl Part {
    /// What a worker found that nothing troubled, to be sent.
    pub(super) fn of<S>(round: &Round, number: u32, grown: Grown<S>, counts: Option<Counts>) -> Part {
        let runs = grown.runs.into_iter().map(|run| {
            let (failure, end) = match run.end {
                End::Leaf => (None, 0),
                End::Bound => (None, 1),
                End::Rejected => (None, 2),
                End::Failed(failure) => (serde_json::to_string(&failure).ok(), 3),
            };
            SentRun { step: run.step, failure, end, number: run.number }
        });
        let children = grown.children.into_iter().map(|child| Sent {
            action: child.action,
            script: child.script as u32,
            state: child.state,
            sleep: child.sleep,
            is_end: child.is_end,
            fails: child.fails,
            holds: child.holds,
            way: child.way,
        });
        Part {
            kept: round.kept,
            number,
            nodes: grown.nodes,
            children: children.collect(),
            runs: runs.collect(),
            rules: grown.rules,
            scripts: grown.scripts,
            counts,
        }
    }

    /// The index of its first state in the round, of which it has to be a part.
    fn fits(&self, round: &Round, (rules, faults): (usize, usize)) -> Option<u32> {
        let first = self.number.checked_mul(PART as u32)?;
        let len = (round.end - round.first).checked_sub(first).filter(|len| *len > 0)?.min(PART as u32);
        let sum =
            |of: fn(&GrownNode) -> usize| self.nodes.iter().map(of).try_fold(0usize, usize::checked_add);
        let mut scripts = self.children.iter().map(|child| child.script as usize);
        let scripts = scripts.try_fold(0usize, usize::checked_add);
        let is_whole = self.kept == round.kept
            && self.nodes.len() == len as usize
            && sum(|node| node.children) == Some(self.children.len())
            && sum(|node| node.runs) == Some(self.runs.len())
            && sum(|node| node.rules) == Some(self.rules.len())
            && scripts == Some(self.scripts.len())
            // There is no bound on runs.
            && self.nodes.iter().all(|node| !node.is_cut && is_small(&node.census))
            && self.rules.iter().all(|(_, taken)| *taken < COUNT_MAX);
        let is_known = |action: Action| match action {
            Action::Rule(rule) => usize::from(rule) < rules,
            Action::Fault(fault, _) => usize::from(fault) < faults,
            Action::Setup | Action::Teardown | Action::Deadlock => true,
            Action::Loop | Action::Again(_) => false,
        };
        let are_known = self.children.iter().all(|child| is_known(child.action))
            && self.rules.iter().all(|(rule, _)| usize::from(*rule) < rules)
            && self.runs.iter().flat_map(|run| &run.step).all(|(action, _)| is_known(*action));
        (is_whole && are_known).then_some(first)
    }

    /// As a worker of this process would have found it; nothing where it is none of the round.
    pub(super) fn grown<S>(
        self,
        round: &Round,
        (rules, faults): (usize, usize),
    ) -> Option<(Grown<S>, Option<Counts>)> {
        let first = self.fits(round, (rules, faults))?;
        let runs = self.runs.into_iter().map(|run| {
            let end = match (run.end, run.failure) {
                (0, None) => End::Leaf,
                (1, None) => End::Bound,
                (2, None) => End::Rejected,
                (3, Some(failure)) => End::Failed(serde_json::from_str::<Box<Failure>>(&failure).ok()?),
                _ => return None,
            };
            Some(Run { step: run.step, end, number: run.number })
        });
        let runs = runs.collect::<Option<_>>()?;
        let children = self.children.into_iter().map(|child| Child {
            state: child.state,
            sleep: child.sleep,
            is_end: child.is_end,
            fails: child.fails,
            holds: child.holds,
            way: child.way,
            ..Child::new(child.action, child.script as usize)
        });
        let grown = Grown {
            first: first as usize,
            nodes: self.nodes,
            children: children.collect(),
            runs,
            rules: self.rules,
            scripts: self.scripts,
            trouble: None,
        };
        Some((grown, self.counts))
    }

    /// Steps of the part.
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        self.nodes.iter().for_each(|node| census.add(&node.census));
        census
    }
}
