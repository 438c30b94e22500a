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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::sync::{Mutex, MutexGuard};
    use std::time::Duration;

    use super::*;
    use crate::check::tests::flip;
    use crate::check::{Checked, Keeper, Keeping, Limit, News, Options, Progress, check_keeping, help, lock};
    use crate::choice::Chooser;
    use crate::model::{Model, fail};
    use crate::outcome::Outcome;

    /// Where the processes of a check meet that are threads of this one.
    #[derive(Default)]
    struct Meeting {
        news: Mutex<Vec<Vec<u8>>>,
        round: Mutex<Option<Round>>,
        /// Parts to be looked at. Each is there twice, as one is whose lease ends too early.
        work: Mutex<VecDeque<(u64, u32)>>,
        done: Mutex<Vec<Vec<u8>>>,
        is_over: AtomicBool,
        given: AtomicU64,
    }

    impl Meeting {
        fn news(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
            lock(&self.news)
        }
    }

    impl Keeper for Meeting {
        fn is_due(&self) -> bool {
            false
        }

        fn keep(&self, news: &News) {
            self.news().push(postcard::to_stdvec(news).unwrap());
        }
    }

    impl Helpers for Meeting {
        fn offer(&self, round: &Round) {
            *lock(&self.round) = Some(round.clone());
            *lock(&self.work) = (0..round.parts()).rev().flat_map(|part| [(round.kept, part); 2]).collect();
            // Others are given time to be first.
            std::thread::sleep(Duration::from_millis(1));
        }

        fn parts(&self) -> Vec<Part> {
            let done = std::mem::take(&mut *lock(&self.done)).into_iter();
            done.map(|bytes| postcard::from_bytes(&bytes).unwrap()).collect()
        }
    }

    /// One process that helps.
    struct Helper<'m> {
        meeting: &'m Meeting,
        read: Mutex<usize>,
    }

    impl Source for Helper<'_> {
        fn next(&self) -> Option<(Vec<News>, Option<Round>)> {
            if self.meeting.is_over.load(Ordering::Relaxed) {
                return None;
            }
            let (news, mut read) = (self.meeting.news(), lock(&self.read));
            let new = news[*read..].iter().map(|bytes| postcard::from_bytes(bytes).unwrap()).collect();
            *read = news.len();
            let round = lock(&self.meeting.round).clone().filter(|round| round.kept == *read as u64);
            Some((new, round))
        }

        fn take(&self, round: &Round) -> Option<u32> {
            let mut work = lock(&self.meeting.work);
            let (kept, part) = work.pop_front()?;
            (kept == round.kept).then_some(part)
        }

        fn give(&self, part: &Part) {
            self.meeting.given.fetch_add(1, Ordering::Relaxed);
            lock(&self.meeting.done).push(postcard::to_stdvec(part).unwrap());
        }
    }

    type Counters = [u8; 3];

    fn counted(at: &mut Counters, action: Action, chooser: &mut Chooser, _: &mut dyn FnMut(u32)) -> Outcome {
        if let Action::Rule(rule) = action {
            let rule = usize::from(rule);
            at[rule] = (at[rule] + 1 + u8::from(rule == 1 && flip(chooser))) % 20;
        }
        Outcome::Pass
    }

    fn failing(
        at: &mut Counters,
        action: Action,
        chooser: &mut Chooser,
        edges: &mut dyn FnMut(u32),
    ) -> Outcome {
        counted(at, action, chooser, edges);
        if *at == [7, 9, 11] { fail("there") } else { Outcome::Pass }
    }

    /// Three counters, of which one may skip a number, and a fault; fails at one place where `fails`.
    fn model(fails: bool) -> Model<Counters> {
        let rules = ["a", "b", "c"];
        match fails {
            false => Model::new([0; 3], &rules, &["fault"], counted),
            true => Model::new([0; 3], &rules, &["fault"], failing),
        }
    }

    fn shared(fails: bool, options: &Options, rounds_of_first: u64) -> (Checked, u64) {
        let meeting = Meeting::default();
        let endless = |_: &Progress| None;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let helper = Helper { meeting: &meeting, read: Mutex::new(0) };
                    help(&mut [model(fails), model(fails)], options, &endless, &helper).unwrap();
                });
            }
            let lead = |goes_on: &(dyn Fn(&Progress) -> Option<Limit> + Sync)| {
                let before =
                    meeting.news().iter().map(|bytes| postcard::from_bytes(bytes).unwrap()).collect();
                let keeping = Keeping { before, keeper: &meeting, helpers: Some(&meeting) };
                let told = &mut |_: &crate::trace::Trace, _: &End| {};
                let mut counts = Counts::default();
                check_keeping(&mut [model(fails)], options, (goes_on, told), (Some(keeping), &mut counts))
                    .unwrap()
            };
            // The first who leads is gone in the middle of a round, and the next begins that anew.
            let asked = AtomicU64::new(0);
            lead(&|_| {
                let is_gone = meeting.news().len() as u64 >= rounds_of_first
                    && asked.fetch_add(1, Ordering::Relaxed) > 20;
                is_gone.then_some(Limit::Interrupt)
            });
            let checked = lead(&endless);
            meeting.is_over.store(true, Ordering::Relaxed);
            (checked, meeting.given.load(Ordering::Relaxed))
        })
    }

    #[test]
    fn a_check_with_helpers_comes_to_what_it_does_alone() {
        for (fails, prunes_all) in [(false, true), (true, true), (false, false)] {
            let steps_max = if prunes_all { None } else { Some(6) };
            let options = Options { prunes: prunes_all, steps_max, ..Options::default() };
            let endless = |_: &Progress| None;
            let told = &mut |_: &crate::trace::Trace, _: &End| {};
            let alone = check_keeping(
                &mut [model(fails)],
                &options,
                (&endless, told),
                (None, &mut Counts::default()),
            );
            let alone = alone.unwrap();
            for rounds_of_first in [0, 3, 9] {
                let (checked, given) = shared(fails, &options, rounds_of_first);
                assert_eq!(checked.census, alone.census, "{fails} {prunes_all} {rounds_of_first}");
                assert_eq!(checked.rules, alone.rules);
                assert_eq!(checked.limit, alone.limit);
                let failures = |checked: &Checked| {
                    let found = checked.findings.iter();
                    found
                        .map(|found| (found.failure.clone(), found.run, found.trace.clone()))
                        .collect::<Vec<_>>()
                };
                assert_eq!(failures(&checked), failures(&alone));
                assert!(given > 0, "nobody helped");
            }
        }
    }
}
