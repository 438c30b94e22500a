//! What search, replay and shrinking see of a guest: a small trait, and the one way to perform a step.
//!
//! Nothing here or above it knows of WebAssembly, files, clocks or terminals; the tests of the search drive
//! plain Rust values.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::choice::{Answers, Choice, Chooser, Kind, Scripted, Value};
use crate::compare::{Compare, Place};
use crate::coverage::FeatureSet;
use crate::outcome::{Failure, FailureKind, Halt, Outcome, Reject};
use crate::property::{Counts, PropertyKind};
use crate::trace::{Action, Trace};

/// The highest score of each label, by the label's hash.
pub type Scores = BTreeMap<u64, f64>;

/// A rule: a step that the explorer may choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its name in reports and traces.
    pub name: String,
    /// What the host draws before it calls the rule: one value for each parameter.
    pub params: Vec<Kind>,
}

/// A property of runs without end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// What is claimed.
    pub kind: PropertyKind,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// How many properties of runs without end a target may have.
pub const LIVENESS_MAX: usize = 64;

/// What a state says of the properties of runs without end: a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holds {
    /// What is to come is owed from here on; of [`PropertyKind::LeadsTo`] alone.
    pub from: u64,
    /// What is to come is here.
    pub to: u64,
}

/// How surely a rule is called in a run without end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fairness {
    /// Where it may be called in all states from some on.
    #[default]
    Weak,
    /// Where it may be called again and again.
    Strong,
    /// Never surely.
    Unfair,
}

/// Where the steps from a state lead: those of one rule after those of another, each in depth-first order of its answers.
#[derive(Debug, Default)]
pub struct Successors {
    /// The rules that may be called.
    pub rules: Vec<u16>,
    /// The steps.
    pub steps: Vec<Successor>,
    /// Their scripts, one after the other.
    pub scripts: Vec<Scripted>,
}

/// A step from a state.
#[derive(Clone, Copy, Debug)]
pub struct Successor {
    /// What is called.
    pub rule: u16,
    /// The length of its script, and how much of that it added to the one before.
    pub script: usize,
    /// See there.
    pub asked: usize,
    /// The hash of the state that it leads to, as [`Target::compared_state`]; `None` where it is rejected.
    pub state: Option<u128>,
    /// As [`Target::work`], [`Target::holds`] and [`Target::way`].
    pub work: u64,
    /// See there.
    pub holds: Holds,
    /// See there.
    pub way: Option<u64>,
}

/// What a target keeps.
pub struct Contents<'t> {
    /// Its memory.
    pub bytes: &'t [u8],
    /// Of those, what cannot matter.
    pub unused: Range<usize>,
    /// A hash of all else.
    pub beside: u128,
}

/// Why states that a guest copies may not tell all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// A copy shares something with others, and a step can tell.
    Shares,
    /// A property was met for the first time.
    Met,
}

/// A thing that can be stepped, saved and restored.
pub trait Target {
    /// A saved state. Cloning one is cheap.
    type Snapshot: Clone;

    /// The rules, in a fixed order.
    fn rules(&self) -> &[Rule];
    /// The names of the faults, in a fixed order.
    fn faults(&self) -> &[String];
    /// Whether a fault is on, where that is known.
    fn has_fault(&self, _fault: u16) -> Option<bool> {
        None
    }
    /// Whether a run starts with a setup step.
    fn has_setup(&self) -> bool;
    /// Whether that step calls nothing, and is there for the invariants to be checked.
    fn implies_setup(&self) -> bool {
        false
    }
    /// Whether a run ends with a teardown step.
    fn has_teardown(&self) -> bool;

    /// Whether there is one rule, which is called once in a run: then nothing can follow what it led to, and what is
    /// kept of a run is what the rule was given.
    fn is_function(&self) -> bool {
        false
    }

    /// Goes back to the state before setup.
    fn reset(&mut self);
    /// Evaluates all preconditions and puts the indices of the rules that may be called now into `rules`.
    ///
    /// # Errors
    /// A precondition that failed, or was stopped.
    fn enabled(&mut self, rules: &mut Vec<u16>) -> Result<(), Halt>;
    /// Performs one step, then checks every invariant. A rule must be one that [`Target::enabled`] named.
    fn step(&mut self, action: Action, chooser: &mut Chooser) -> Outcome;

    /// Whether what the guest says of properties and events counts. It does in the steps of an exploration, and
    /// not where steps are executed again.
    fn set_counts(&mut self, counts: bool) {
        let _ = counts;
    }

    /// Saves the state; `None` where this target cannot be saved, and runs are replayed instead.
    fn snapshot(&mut self) -> Option<Self::Snapshot>;
    /// Goes to a saved state.
    fn restore(&mut self, snapshot: &Self::Snapshot);
    /// Goes to the state with this hash, where that is kept elsewhere and is to be had; whether it did.
    fn recall(&mut self, state: u128) -> bool {
        let _ = state;
        false
    }
    /// Keeps the state in the target itself, one at a time, to go back to it soon: for that it is cheaper than a snapshot. Whether it
    /// did; a target that cannot be saved cannot.
    fn bookmark(&mut self) -> bool;
    /// Goes to the state that was kept last, from wherever the target is; whether it did.
    fn to_bookmark(&mut self) -> bool;
    /// From here on the target has its guest copy states, if that can: whether it does. These states are cheap, and only the
    /// target that saved one [`Target::has`] it, for some time.
    fn begin_copies(&mut self) -> bool {
        false
    }
    /// The target does as usual from here on, and lets go of such states.
    fn end_copies(&mut self) {}
    /// Whether it has its guest copy states.
    fn is_copying(&self) -> bool {
        false
    }
    /// Has it do as usual, or have its guest copy states again, in the state that the guest was in then.
    fn set_copying(&mut self, copies: bool) {
        let _ = copies;
    }
    /// What speaks against the states that its guest copied since this was asked last.
    fn doubt(&mut self) -> Option<Doubt> {
        None
    }
    /// Whether all properties that were met where its guest copies states were met as usual too.
    fn has_met_alike(&self) -> bool {
        true
    }
    /// Whether it can be restored to this state now.
    fn has(&self, snapshot: &Self::Snapshot) -> bool {
        let _ = snapshot;
        true
    }
    /// Performs all steps from a state in which it has its guest copy states, or from the bookmark, with all answers to their choices, of which
    /// none may have more than so many alternatives. Whether they all pass or are rejected, and can be told: if not, nothing is
    /// told. Which state the target is in after that is not known.
    ///
    /// # Errors
    /// It was stopped.
    fn successors(
        &mut self,
        from: Option<&Self::Snapshot>,
        alternatives_max: u32,
        found: &mut Successors,
    ) -> Result<bool, Halt> {
        let _ = (from, alternatives_max, found);
        Ok(false)
    }
    /// Saves the state that one of these steps led to, by its number, until others are asked for; `None` where there is no room.
    fn successor(&mut self, number: usize) -> Option<Self::Snapshot> {
        let _ = number;
        None
    }
    /// Puts the features that the steps since the last call showed, and that are not in `seen`, into `new`.
    fn coverage(&mut self, seen: &FeatureSet, new: &mut Vec<u32>);
    /// Puts the scores of the last step that are higher than the best of their labels into `risen`.
    fn scores(&mut self, best: &Scores, risen: &mut Vec<(u64, f64)>) {
        let _ = (best, risen);
    }
    /// The run from which on runs are worth being looked at in [`Target::lens`]; `None` where there is none.
    fn looks_from(&self) -> Option<u64> {
        None
    }
    /// A second build of the same guest, which takes the same steps and tells more of them. It takes longer.
    fn lens(&mut self) -> Option<&mut Self>
    where
        Self: Sized,
    {
        None
    }
    /// What the last step compared with what, in such a build.
    fn compared(&mut self) -> Vec<(Place, Compare)> {
        Vec::new()
    }
    /// Puts the features that the last step showed, in such a build, into `features`, in any order and some more than once: none is of an
    /// edge. These are the choices that the step made.
    fn shown(&mut self, choices: &[Choice], features: &mut Vec<u32>) {
        let _ = (choices, features);
    }
    /// How many steps the guest took in the last step of a run, about: a number that does not depend on the machine.
    fn work(&mut self) -> u64 {
        0
    }
    /// Whether a limit of the host keeps a rule from being called in the state that it is in.
    fn is_cut(&self) -> bool {
        false
    }
    /// Texts that stand in it, which it may look for in what it is given.
    fn texts(&self) -> Arc<[Arc<[u8]>]> {
        Arc::default()
    }
    /// The properties that the guest declares, none of which has been counted yet.
    fn declared(&self) -> Counts {
        Counts::default()
    }
    /// What the guest said of properties and events since the last call, where it did; see [`Target::set_counts`].
    fn take_counts(&mut self) -> Option<Box<Counts>> {
        None
    }
    /// A hash of the whole state.
    fn state(&mut self) -> u128;
    /// A hash of that of the state that can still matter: equal where two states behave alike for all that
    /// is known. `None` where part of the state is not known.
    fn live_state(&mut self) -> Option<u128> {
        Some(self.state())
    }
    /// A hash that is equal where a check may take two states for one: that of what the guest says its state is,
    /// or else [`Target::live_state`]. The state stays as it is.
    ///
    /// # Errors
    /// The guest failed to say what its state is, or was stopped.
    fn compared_state(&mut self) -> Result<Option<u128>, Halt> {
        Ok(self.live_state())
    }
    /// Whether that is what the guest says, which may leave something out.
    fn says_state(&self) -> bool {
        false
    }
    /// What it keeps, where a check wants to know in what states differ.
    fn contents(&mut self) -> Option<Contents<'_>> {
        None
    }
    /// Whether the guest declares that two rules are independent: in every state in which both may be called,
    /// either order leads to the same state, and neither forbids the other.
    fn is_independent(&self, a: u16, b: u16) -> bool {
        let _ = (a, b);
        false
    }
    /// The properties of runs without end, [`LIVENESS_MAX`] at most.
    fn liveness(&self) -> &[Liveness] {
        &[]
    }
    /// What the state after the last step says of them.
    fn holds(&self) -> Holds {
        Holds::default()
    }
    /// Which of the steps of its rule the last step was, where the guest says so.
    fn way(&self) -> Option<u64> {
        None
    }
    /// How surely a rule is called, and whether that is said of each of its steps: of those that go one [`Target::way`], or else have
    /// one script.
    fn fairness(&self, rule: u16) -> (Fairness, bool) {
        let _ = rule;
        (Fairness::default(), false)
    }
    /// Whether no more steps are to be performed: the time is up, or the user asked to stop.
    fn is_over(&self) -> bool {
        false
    }
    /// Bytes that all saved states hold now, about.
    fn saved_bytes(&self) -> usize {
        0
    }
    /// Bytes of stack that a thread needs on which this target is stepped, where the usual do not do.
    fn stack_bytes(&self) -> Option<usize> {
        None
    }
}

/// Performs one step and appends it, with the choices it really made, to `trace`. The answers are taken from
/// `recorded`, then from the seed. A rule must be one that [`Target::enabled`], called just before, named.
pub fn perform<T: Target>(
    target: &mut T,
    chooser: &mut Chooser,
    (action, seed): (Action, u64),
    recorded: impl IntoIterator<Item = Option<Value>>,
    trace: &mut Trace,
) -> Outcome {
    chooser.begin(seed, recorded);
    perform_begun(target, chooser, (action, seed), trace)
}

/// As [`perform`], with a chooser that has begun the step.
pub(crate) fn perform_begun<T: Target>(
    target: &mut T,
    chooser: &mut Chooser,
    (action, seed): (Action, u64),
    trace: &mut Trace,
) -> Outcome {
    let outcome = target.step(action, chooser);
    chooser.end();
    trace.push(action, seed);
    let Answers { choices, spans, .. } = &mut **chooser;
    trace.chose(choices, spans);
    outcome
}

/// Whether the preconditions are evaluated before such a step.
pub(crate) fn follows_preconditions(action: Action) -> bool {
    matches!(action, Action::Rule(_) | Action::Teardown | Action::Deadlock)
}

/// The step that ends a trace where a precondition fails so before this one: where no rule may be called, the deadlock.
pub(crate) fn last_step(action: Action, failure: &Failure) -> Action {
    if failure.kind == FailureKind::Deadlock { Action::Deadlock } else { action }
}

/// Performs one step of a trace. The preconditions are evaluated first, as exploration does before it
/// chooses a rule or ends the run, so that what they do to the state is the same in every execution; a rule that may not be
/// called is rejected and leaves no step, and so is a deadlock that is none, or a fault that is as it is to be.
pub fn attempt<T: Target>(
    target: &mut T,
    chooser: &mut Chooser,
    enabled: &mut Vec<u16>,
    (action, seed): (Action, u64),
    recorded: impl IntoIterator<Item = Option<Value>>,
    trace: &mut Trace,
) -> Outcome {
    if let Action::Fault(fault, on) = action
        && target.has_fault(fault) == Some(on)
    {
        return Outcome::Reject(Reject::Precondition);
    }
    if follows_preconditions(action) {
        if let Err(halt) = target.enabled(enabled) {
            let failing = match &halt {
                Halt::Fail(failure) => last_step(action, failure),
                Halt::Stopped => action,
            };
            trace.push(failing, if failing == action { seed } else { 0 });
            return halt.into();
        }
        let is_possible = match action {
            Action::Rule(rule) => enabled.contains(&rule),
            action => action != Action::Deadlock,
        };
        if !is_possible {
            return Outcome::Reject(Reject::Precondition);
        }
    }
    perform(target, chooser, (action, seed), recorded, trace)
}
