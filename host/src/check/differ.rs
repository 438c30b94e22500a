//! How two states behave differently that a check takes for one: what each of their steps leads to, and again in states that both lead to,
//! some steps far.
//!
//! Only what steps lead to is compared, as a set, and not which step or which answer leads where: states that differ in who is who are
//! alike.

use std::collections::{BTreeSet, VecDeque};

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::TroubleKind;
use super::visit::{Visit, Visitor};
use crate::choice::{Past, Scripted, advance, mix};
use crate::outcome::Halt;
use crate::target::Target;
use crate::trace::Action;

/// How many steps far, and so many steps with all that follow.
const STEPS_MAX: usize = 12;
const WIDE: u64 = 256;
/// Ways to answer the choices of one step, at most: where one has more, what is missing is not told.
const SCRIPTS_MAX: usize = 256;
/// Choices of a step by which a state is had again, at most. A guest may make any number of them, so where there are more the state is
/// saved, and counted.
const SCRIPT_MAX: usize = 64;
/// States that are told apart of those that steps lead to and that are taken for one.
const STATES_MAX: usize = 8;
/// Steps that are tried from one state, at most: where there are more, what is missing is not told.
const TRIED_MAX: u64 = 4096;

/// What comparing states may take.
pub(super) struct Bounds<'a> {
    /// Bytes that all saved states may have.
    pub(super) room: usize,
    /// Whether the check is over, asked before each step.
    pub(super) is_over: &'a dyn Fn() -> bool,
    /// Whether what a state says of runs without end is in its hash.
    pub(super) with_holds: bool,
}

/// How far two states are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// All that follows for [`WIDE`] steps, and then one path.
    Far,
    /// The next steps.
    Near,
}

/// What comparing two states took, and may take.
pub(super) struct Effort<'a> {
    pub(super) steps: u64,
    reach: Reach,
    bounds: Bounds<'a>,
}

impl<'a> Effort<'a> {
    pub(super) fn new(bounds: Bounds<'a>, reach: Reach) -> Effort<'a> {
        Effort { steps: 0, reach, bounds }
    }

    pub(super) fn has_room<T: Target>(&self, target: &T) -> bool {
        target.saved_bytes() < self.bounds.room
    }
}

/// Where a step leads: what kind of step it is, how it goes, and the hash of the state.
type Way = (u8, How, Option<u128>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum How {
    Passed,
    Ended,
    Failed,
}

/// A state that need not be saved: it is had again from one that is, by a step, where there is one.
#[derive(Clone)]
struct Origin<S> {
    saved: S,
    step: Option<(Action, Vec<Scripted>)>,
}

impl<S> Origin<S> {
    fn of(saved: S) -> Origin<S> {
        Origin { saved, step: None }
    }

    fn reach<T: Target<Snapshot = S>>(&self, visitor: &mut Visitor<'_, T>) -> Result<(), TroubleKind> {
        visitor.target.restore(&self.saved);
        match &self.step {
            Some((action, script)) => visitor.repeat(*action, &mut script.clone()),
            None => Ok(()),
        }
    }
}

/// The first step that goes a way, and the states that such steps lead to, each with the hash of all of it.
struct There<S> {
    step: Action,
    states: Vec<(u128, Origin<S>)>,
}

/// Where the steps from a state lead.
struct Onward<S> {
    /// In the order of the steps: that of hashes is another in each process.
    ways: IndexMap<Way, There<S>, FxBuildHasher>,
    /// Whether that is all.
    is_whole: bool,
}

/// Two states that are taken for one and behave differently: steps that lead from both to a difference, and what it is.
pub(super) struct Difference {
    pub(super) steps: Vec<Action>,
    pub(super) last: Action,
    pub(super) why: &'static str,
}

/// How two states behave differently, where some steps show that they do, the steps `before` having led to one of them.
pub(super) fn differ<T: Target>(
    visitor: &mut Visitor<'_, T>,
    (pair, before): ([T::Snapshot; 2], &[Action]),
    seed: u64,
    effort: &mut Effort<'_>,
) -> Result<Option<Difference>, TroubleKind> {
    let mut seen = BTreeSet::new();
    let mut queue = VecDeque::from([(pair.map(Origin::of), Vec::new())]);
    while let Some((pair, steps)) = queue.pop_front() {
        let on = faults_after(visitor.target.faults().len(), before.iter().chain(&steps).copied());
        let one = onward(visitor, (&pair[0], &on), effort)?;
        let mut other = onward(visitor, (&pair[1], &on), effort)?;
        if let Some((last, why)) = lacks(&one, &other).or_else(|| lacks(&other, &one)) {
            return Ok(Some(Difference { steps, last, why }));
        }
        if steps.len() == STEPS_MAX || effort.reach == Reach::Near {
            continue;
        }
        for (way, one) in one.ways {
            let other = other.ways.swap_remove(&way).into_iter().flat_map(|there| there.states);
            // They are all taken for one.
            let mut all = one.states.into_iter().chain(other);
            let Some((first, state)) = all.next() else { continue };
            for (beside, other) in all {
                if first != beside && seen.insert((first, beside)) {
                    let steps = steps.iter().copied().chain([one.step]).collect();
                    queue.push_back(([state.clone(), other], steps));
                }
            }
        }
        if effort.steps > WIDE && queue.len() > 1 {
            let chosen = mix(seed, effort.steps) as usize % queue.len();
            queue.swap(0, chosen);
            queue.truncate(1);
        }
    }
    Ok(None)
}

/// A step from one that leads where none from the other does, and how.
fn lacks<S>(one: &Onward<S>, other: &Onward<S>) -> Option<(Action, &'static str)> {
    if !other.is_whole {
        return None;
    }
    let (way, there) = one.ways.iter().find(|(way, _)| !other.ways.contains_key(*way))?;
    let why = match way.1 {
        How::Passed => "leads to another state",
        How::Ended => "ends the run",
        How::Failed => "fails",
    };
    Some((there.step, why))
}

/// The faults that are on after these steps.
fn faults_after(count: usize, steps: impl IntoIterator<Item = Action>) -> Vec<bool> {
    let mut on = vec![false; count];
    for step in steps {
        if let Action::Fault(fault, is_on) = step {
            on[usize::from(fault)] = is_on;
        }
    }
    on
}

/// Where each step from a state leads, with each way to answer its choices. What is rejected leads nowhere.
fn onward<T: Target>(
    visitor: &mut Visitor<'_, T>,
    (from, on): (&Origin<T::Snapshot>, &[bool]),
    effort: &mut Effort<'_>,
) -> Result<Onward<T::Snapshot>, TroubleKind> {
    let begun = effort.steps;
    let mut onward = Onward { ways: IndexMap::default(), is_whole: true };
    from.reach(visitor)?;
    let before = if on.is_empty() { None } else { visitor.target.snapshot() };
    match visitor.target.enabled(&mut visitor.enabled) {
        Ok(()) => {}
        Err(Halt::Stopped) => return Err(TroubleKind::Stopped),
        Err(Halt::Fail(_)) => {
            let there = There { step: Action::Rule(0), states: Vec::new() };
            onward.ways.insert((0, How::Failed, None), there);
            visitor.enabled.clear();
        }
    }
    let Some(ready) = visitor.target.snapshot() else { return Ok(Onward { is_whole: false, ..onward }) };
    let has_teardown = visitor.target.has_teardown() && onward.ways.is_empty();
    let rules = visitor.enabled.clone().into_iter().map(|rule| (0, Action::Rule(rule)));
    let faults = (0..).zip(on).map(|(fault, on)| (1 + u8::from(!on), Action::Fault(fault, !on)));
    let teardown = has_teardown.then_some((3, Action::Teardown));
    for (kind, action) in rules.chain(faults).chain(teardown) {
        let is_fault = matches!(action, Action::Fault(..));
        let Some(from) = (if is_fault { before.as_ref() } else { Some(&ready) }) else {
            return Ok(Onward { is_whole: false, ..onward });
        };
        follow(visitor, (from, kind, action), &mut onward, (begun, effort))?;
    }
    Ok(onward)
}

/// Adds the ways in which a step may go.
fn follow<T: Target>(
    visitor: &mut Visitor<'_, T>,
    (from, kind, action): (&T::Snapshot, u8, Action),
    onward: &mut Onward<T::Snapshot>,
    (begun, effort): (u64, &mut Effort<'_>),
) -> Result<(), TroubleKind> {
    let mut script = Vec::new();
    for _ in 0..SCRIPTS_MAX {
        if effort.steps - begun == TRIED_MAX || !effort.has_room(visitor.target) {
            break;
        }
        if (effort.bounds.is_over)() {
            return Err(TroubleKind::Stopped);
        }
        effort.steps += 1;
        visitor.target.restore(from);
        let how = match visitor.visit(action, &mut script, Past::First) {
            Ok((Visit::Passed, _)) if action == Action::Teardown => Some(How::Ended),
            Ok((Visit::Passed, _)) => Some(How::Passed),
            Ok((Visit::Exited, _)) => Some(How::Ended),
            Ok((Visit::Rejected | Visit::LeftOut, _)) => None,
            Ok((Visit::Failed(_), _)) => Some(How::Failed),
            Ok((Visit::Asks(_), _)) => unreachable!("it was performed to its end"),
            Err(TroubleKind::Unbounded(..)) => break,
            Err(kind) => return Err(kind),
        };
        if let Some(how) = how {
            let (how, state) = match how {
                How::Passed => match visitor.target.compared_state() {
                    Ok(state) => (how, state),
                    Err(Halt::Stopped) => return Err(TroubleKind::Stopped),
                    // Where the check comes there by its own steps, it says so.
                    Err(Halt::Fail(_)) => (How::Failed, None),
                },
                _ => (how, None),
            };
            let is_state = how == How::Passed;
            let way = onward.ways.entry((kind, how, state));
            let states = &mut way.or_insert_with(|| There { step: action, states: Vec::new() }).states;
            if is_state
                && states.len() < STATES_MAX
                && let Some(whole) = visitor.target.live_state()
                && states.iter().all(|(known, _)| *known != whole)
            {
                let origin = match script.len() {
                    ..=SCRIPT_MAX => {
                        Some(Origin { saved: from.clone(), step: Some((action, script.clone())) })
                    }
                    _ => visitor.target.snapshot().map(Origin::of),
                };
                states.extend(origin.map(|origin| (whole, origin)));
            }
        }
        if !advance(&mut script, 0) {
            return Ok(());
        }
    }
    onward.is_whole = false;
    Ok(())
}
