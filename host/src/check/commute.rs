//! Whether rules that are declared independent commute. A check that leaves out one of two orders believes the
//! declaration, so it tests it: in some of the states that it meets both orders are tried, with the same answers.

use std::collections::BTreeSet;

use super::TroubleKind;
use super::sleep::Independence;
use super::visit::Visitor;
use crate::choice::{Choice, mix};
use crate::outcome::{FailureKind, Halt, Outcome};
use crate::target::Target;
use crate::trace::Action;

/// The first so many states are all tested; of those that follow one in [`EVERY`].
const FIRST: u64 = 256;
const EVERY: u64 = 16;
/// Trials in one state, at most. Where there are more, other ones are made in the next.
const TRIALS_MAX: usize = 32;
/// As many in the first state, half of them in the second, a third in the third, as long as the guest takes no more steps for them. So of few
/// states many answers are tried.
const TRIALS_FIRST: u64 = 1 << 11;
const WORK_MAX: u64 = 1 << 22;
/// Trials of one pair in one of the other states: with the simplest answers, and with random ones.
const TRIALS: usize = 2;

/// Two rules to be called, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Trial {
    pub(super) rules: [u16; 2],
    /// Of each rule; `None` gives the simplest answers.
    seeds: [Option<u64>; 2],
    /// The second may not be called here, so it must not after the first; there is no other order.
    is_one_way: bool,
}

/// How a rule went that was called in a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Went {
    Passed,
    Rejected,
    Failed,
    /// It may not be called.
    Forbidden,
}

/// What a trial led to. Where a rule does not pass there is nothing after it.
#[derive(Default)]
pub(super) struct Ran {
    went: Vec<Went>,
    choices: Vec<Vec<Choice>>,
    state: Option<u128>,
    /// Steps that the guest took.
    work: u64,
    /// The rules that may be called afterwards.
    enabled: Vec<u16>,
}

/// Whether the state with this number is one that is tested.
pub(super) fn is_sampled(state: u64) -> bool {
    state < FIRST || mix(state, FIRST).is_multiple_of(EVERY)
}

fn trials(independence: &Independence, enabled: &[u16], state: u64) -> Vec<Trial> {
    let mut trials = Vec::new();
    let pairs = independence.pairs().count().max(1);
    let max = TRIALS_MAX.max((TRIALS_FIRST / state.saturating_add(1)) as usize);
    let each = if state < FIRST { (max / pairs).max(TRIALS) } else { TRIALS };
    // All pairs in turn, so that each is tried wherever that ends.
    for nth in 0..each as u64 {
        for (a, b) in independence.pairs() {
            let (first, second, is_one_way) = match (enabled.contains(&a), enabled.contains(&b)) {
                (true, true) => (a, b, false),
                (true, false) => (a, b, true),
                (false, true) => (b, a, true),
                (false, false) => continue,
            };
            let seed = |rule: u16| (nth > 0).then(|| mix(mix(state, nth), rule.into()));
            trials.push(Trial { rules: [first, second], seeds: [seed(first), seed(second)], is_one_way });
        }
    }
    if trials.len() > max {
        let first = state as usize * max % trials.len();
        trials.rotate_left(first);
        trials.truncate(max);
    }
    trials
}

impl Ran {
    /// Other answers would lead to the same.
    fn asks_nothing(&self) -> bool {
        let goes_on = |went: &Went| matches!(went, Went::Passed | Went::Forbidden);
        self.went.iter().all(goes_on) && self.choices.iter().all(Vec::is_empty)
    }
}

/// The trials in one state, without those that would repeat another.
pub(super) struct Trials {
    left: std::vec::IntoIter<Trial>,
    settled: BTreeSet<[u16; 2]>,
    made: usize,
    /// Steps that the guest took for them.
    work: u64,
}

impl Trials {
    /// What to try in the state with this number, where these rules may be called.
    pub(super) fn new(independence: &Independence, enabled: &[u16], state: u64) -> Trials {
        let left = trials(independence, enabled, state).into_iter();
        Trials { left, settled: BTreeSet::new(), made: 0, work: 0 }
    }

    pub(super) fn next(&mut self) -> Option<Trial> {
        let is_over = self.made >= TRIALS_MAX && self.work > WORK_MAX;
        self.made += 1;
        self.left.find(|trial| !is_over && !self.settled.contains(&trial.rules))
    }

    /// How what a trial led to, and the swapped one, show that the rules are not independent.
    pub(super) fn differs(&mut self, trial: &Trial, one: &Ran, other: Option<&Ran>) -> Option<&'static str> {
        self.work += one.work + other.map_or(0, |other| other.work);
        if one.asks_nothing() && other.is_none_or(Ran::asks_nothing) {
            self.settled.insert(trial.rules);
        }
        trial.differs(one, other)
    }
}

impl Trial {
    /// The same rules with the same answers in the other order, where both may be called.
    pub(super) fn swapped(&self) -> Option<Trial> {
        let ([a, b], [of_a, of_b]) = (self.rules, self.seeds);
        (!self.is_one_way).then_some(Trial { rules: [b, a], seeds: [of_b, of_a], is_one_way: false })
    }

    /// How this trial and the swapped one show that the rules are not independent. A rule that fails in the state itself
    /// is a finding of the check, which says more.
    fn differs(&self, one: &Ran, other: Option<&Ran>) -> Option<&'static str> {
        let Some(other) = other else {
            let has_become = one.went.get(1).is_some_and(|went| *went != Went::Forbidden);
            return has_become.then_some("the one makes the other possible");
        };
        if one.went[0] == Went::Failed || other.went[0] == Went::Failed {
            return None;
        }
        let went = [&one.went, &other.went];
        if went.iter().any(|went| went.get(1) == Some(&Went::Forbidden)) {
            return Some("the one makes the other impossible");
        }
        if let [first, last] = went.map(|went| went.last())
            && (first != last || one.went.len() != other.went.len())
        {
            // A run that is rejected ends there, in whatever order.
            let is_rejected = |went: &[Went]| went.last() == Some(&Went::Rejected);
            let are_rejected = is_rejected(&one.went) && is_rejected(&other.went);
            return (!are_rejected).then_some("the one order passes and the other does not");
        }
        if one.went.last() != Some(&Went::Passed) {
            return None;
        }
        if one.choices[0] != other.choices[1] || one.choices[1] != other.choices[0] {
            return Some("the one has the other ask for something else");
        }
        (one.state != other.state || one.enabled != other.enabled)
            .then_some("the one order leads to another state than the other")
    }
}

impl<T: Target> Visitor<'_, T> {
    /// Calls the rules of a trial, in the state with the preconditions evaluated. The state afterwards is any.
    pub(super) fn run(&mut self, trial: &Trial) -> Result<Ran, TroubleKind> {
        // It is no part of the check what the guest says here.
        self.target.set_counts(false);
        let ran = self.run_uncounted(trial);
        self.target.set_counts(true);
        ran
    }

    fn run_uncounted(&mut self, trial: &Trial) -> Result<Ran, TroubleKind> {
        let mut ran = Ran::default();
        for (index, (rule, seed)) in trial.rules.into_iter().zip(trial.seeds).enumerate() {
            if index > 0 {
                let is_enabled = self.is_enabled(rule)?;
                if is_enabled != Went::Passed {
                    ran.went.push(is_enabled);
                    return Ok(ran);
                }
            }
            self.chooser.draws_nothing = seed.is_none();
            self.chooser.begin(seed.unwrap_or_default(), []);
            let outcome = self.target.step(Action::Rule(rule), &mut self.chooser);
            self.chooser.end();
            self.chooser.draws_nothing = false;
            ran.work += self.target.work();
            let went = match outcome {
                Outcome::Pass => Went::Passed,
                // Either way nothing follows.
                Outcome::Reject(_) | Outcome::Exit => Went::Rejected,
                Outcome::Fail(_) => Went::Failed,
                Outcome::Stopped => return Err(TroubleKind::Stopped),
            };
            ran.went.push(went);
            if went != Went::Passed {
                return Ok(ran);
            }
            ran.choices.push(self.chooser.choices.clone());
        }
        ran.state = self.target.compared_state()?;
        match self.target.enabled(&mut self.enabled) {
            Ok(()) => ran.enabled.clone_from(&self.enabled),
            Err(Halt::Stopped) => return Err(TroubleKind::Stopped),
            // Both orders end in it, where both lead to one state.
            Err(Halt::Fail(_)) => {}
        }
        Ok(ran)
    }

    fn is_enabled(&mut self, rule: u16) -> Result<Went, TroubleKind> {
        match self.target.enabled(&mut self.enabled) {
            Ok(()) if self.enabled.contains(&rule) => Ok(Went::Passed),
            Ok(()) => Ok(Went::Forbidden),
            Err(Halt::Fail(failure)) if failure.kind == FailureKind::Deadlock => Ok(Went::Forbidden),
            Err(Halt::Fail(_)) => Ok(Went::Failed),
            Err(Halt::Stopped) => Err(TroubleKind::Stopped),
        }
    }
}
