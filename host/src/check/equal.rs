//! Whether states that a check takes for one behave alike. Where the guest says what its state is, the check believes it, and would find
//! nothing behind a difference that the guest leaves out. So some pairs of such states are compared: what each of their steps leads
//! to, and again in states that both lead to, some steps far.
//!
//! Only what steps lead to is compared, as a set, and not which step or which answer leads where: states that differ in who is who are
//! alike.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::visit::{Visit, Visitor};
use super::{TroubleKind, lock, path};
use crate::choice::{Past, Scripted, mix};
use crate::outcome::{Halt, Outcome};
use crate::target::Target;
use crate::trace::{Action, Trace};

/// The first so many states are kept to compare others with; of those that follow one in [`EVERY`], up to a maximum.
const FIRST: usize = 1024;
const EVERY: u128 = 64;
const KEPT_MAX: usize = 4096;
/// States that each is compared with: at first, and once half of [`GRACE`] is taken.
const PAIRS_MAX: usize = 64;
const PAIRS: usize = 4;
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
/// And where the guest copies states, so that nothing tells them apart.
const COPIED_MAX: usize = 2;
/// Steps that comparing may take: so many, and one for so many steps of the check that led to a state. In random models a quarter of
/// the first number is enough to tell every omission, and an eighth is not.
const GRACE: u64 = 8192;
/// And where the guest copies states, each of which costs it as much as a step of the check.
const GRACE_OF_COPIES: u64 = 2048;
const SHARE: u64 = 16;
/// After so many steps that led to a state, only states of the kind that is kept are compared.
const ALL: u64 = 100_000;

/// Where the guest copies states, the first so many and then one of so many are gone to as usual too, which may take so many steps, and one
/// for so many that led to a state.
const AUDITS: u64 = 64;
const AUDIT_GRACE: u64 = 512;
const AUDIT_SHARE: u64 = 64;

/// Steps that are tried from one state, at most: where there are more, what is missing is not told.
const TRIED_MAX: u64 = 4096;
/// Steps that the traces to the states that are kept may have together.
const KEPT_STEPS_MAX: usize = 1 << 18;

/// States that were met, and how much comparing them took.
pub(super) struct Equals<S> {
    kept: Mutex<Keeping<S>>,
    arrived: AtomicU64,
    taken: AtomicU64,
    audited: AtomicU64,
}

struct Keeping<S> {
    states: BTreeMap<u128, Kept<S>>,
    steps: usize,
}

struct Kept<S> {
    state: S,
    /// The hash of all of it.
    whole: Option<u128>,
    trace: Trace,
    /// The hashes of those that it was compared with.
    beside: BTreeSet<u128>,
}

impl<S> Keeping<S> {
    /// Keeps the state that the target is in, if it can be saved.
    fn keep<T: Target<Snapshot = S>>(&mut self, target: &mut T, (state, arrived): (u128, u64), trace: Trace) {
        let Some(saved) = target.snapshot() else { return };
        self.steps += trace.len();
        let whole = whole(target, arrived);
        self.states.insert(state, Kept { state: saved, whole, trace, beside: BTreeSet::new() });
    }
}

impl<S> Kept<S> {
    /// Goes there by its steps where it cannot be had any more, and saves it again; how many they are.
    fn go_again<T: Target<Snapshot = S>>(
        &mut self,
        visitor: &mut Visitor<'_, T>,
    ) -> Result<u64, TroubleKind> {
        if visitor.target.has(&self.state) {
            return Ok(0);
        }
        match visitor.go(&self.trace) {
            Outcome::Pass => {}
            Outcome::Stopped => return Err(TroubleKind::Stopped),
            _ => return Err(TroubleKind::Copies),
        }
        // Where it cannot be saved it cannot be had, which the comparison finds.
        if let Some(again) = visitor.target.snapshot() {
            self.state = again;
        }
        Ok(self.trace.len() as u64)
    }
}

/// What comparing states may take.
pub(super) struct Bounds<'a> {
    /// Bytes that all saved states may have.
    pub(super) room: usize,
    /// Whether the check is over, asked before each step.
    pub(super) is_over: &'a dyn Fn() -> bool,
    /// Whether what a state says of runs without end is in its hash.
    pub(super) with_holds: bool,
}

/// What comparing two states took, and may take.
struct Effort<'a> {
    steps: u64,
    bounds: Bounds<'a>,
    /// Which of the two is looked at.
    side: u64,
}

/// What tells states apart that are taken for one: all of them, or where the guest copies states, nothing; then all but themselves are others.
fn whole<T: Target>(target: &mut T, itself: u64) -> Option<u128> {
    if target.is_copying() { Some(itself.into()) } else { target.live_state() }
}

impl Effort<'_> {
    fn has_room<T: Target>(&self, target: &T) -> bool {
        target.saved_bytes() < self.bounds.room
    }
}

/// Where a step leads: what kind of step it is, how it goes, and the hash of the state.
type Way = (u8, How, Option<u128>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

    /// Goes there; whether it can be had.
    fn reach<T: Target<Snapshot = S>>(&self, visitor: &mut Visitor<'_, T>) -> Result<bool, TroubleKind> {
        if !visitor.target.has(&self.saved) {
            return Ok(false);
        }
        visitor.target.restore(&self.saved);
        if let Some((action, script)) = &self.step {
            visitor.repeat(*action, &mut script.clone())?;
        }
        Ok(true)
    }
}

/// The first step that goes a way, and the states that such steps lead to, each with the hash of all of it.
struct There<S> {
    step: Action,
    states: Vec<(u128, Origin<S>)>,
}

/// Where the steps from a state lead.
struct Onward<S> {
    ways: BTreeMap<Way, There<S>>,
    /// Whether that is all.
    is_whole: bool,
}

/// Two states that are taken for one and behave differently: steps that lead from both to a difference, and what it is.
pub(super) struct Difference {
    pub(super) steps: Vec<Action>,
    pub(super) last: Action,
    pub(super) why: &'static str,
}

impl<S: Clone> Equals<S> {
    pub(super) fn new() -> Equals<S> {
        let kept = Mutex::new(Keeping { states: BTreeMap::new(), steps: 0 });
        Equals { kept, arrived: AtomicU64::new(0), taken: AtomicU64::new(0), audited: AtomicU64::new(0) }
    }

    /// The target is in a state with this hash, which the guest said. The target stays there.
    ///
    /// # Errors
    /// An earlier state with this hash behaves differently, or where the guest copies states, the same state as usual; the check is over.
    pub(super) fn met<T: Target<Snapshot = S>>(
        &self,
        visitor: &mut Visitor<'_, T>,
        met: (u128, Bounds<'_>),
        trace: impl FnOnce() -> Trace,
    ) -> Result<(), TroubleKind> {
        let state = met.0;
        let arrived = self.arrived.fetch_add(1, Ordering::Relaxed);
        if visitor.target.is_copying() && self.is_audited(arrived) {
            let trace = trace();
            let audited = self.audit(visitor, (state, met.1.with_holds), &trace);
            visitor.target.set_copying(true);
            audited?;
            return self.compare(visitor, (state, arrived), met.1, || trace);
        }
        self.compare(visitor, (state, arrived), met.1, trace)
    }

    /// Whether a state that the guest copied is gone to as usual too.
    fn is_audited(&self, arrived: u64) -> bool {
        let is_chosen = arrived < AUDITS || arrived.is_multiple_of(AUDITS);
        is_chosen && self.audited.load(Ordering::Relaxed) <= AUDIT_GRACE + arrived / AUDIT_SHARE
    }

    /// Goes to a state that the guest copied as usual, by the steps to it, and stays there.
    fn audit<T: Target<Snapshot = S>>(
        &self,
        visitor: &mut Visitor<'_, T>,
        (state, with_holds): (u128, bool),
        trace: &Trace,
    ) -> Result<(), TroubleKind> {
        self.audited.fetch_add(trace.len() as u64, Ordering::Relaxed);
        match visitor.walk(trace) {
            Outcome::Pass if visitor.state(with_holds)? == Some(state) => Ok(()),
            Outcome::Stopped => Err(TroubleKind::Stopped),
            _ => Err(TroubleKind::Copies),
        }
    }

    fn compare<T: Target<Snapshot = S>>(
        &self,
        visitor: &mut Visitor<'_, T>,
        (state, arrived): (u128, u64),
        bounds: Bounds<'_>,
        trace: impl FnOnce() -> Trace,
    ) -> Result<(), TroubleKind> {
        if arrived >= ALL && !state.is_multiple_of(EVERY) {
            return Ok(());
        }
        let grace = if visitor.target.is_copying() { GRACE_OF_COPIES } else { GRACE };
        let is_spent = self.taken.load(Ordering::Relaxed) > grace + arrived / SHARE;
        let mut kept = lock(&self.kept);
        let len = kept.states.len();
        let mut effort = Effort { steps: 0, bounds, side: 0 };
        let has_room = effort.has_room(visitor.target);
        let Some(known) = kept.states.get_mut(&state) else {
            let is_kept = len < FIRST || len < KEPT_MAX && state.is_multiple_of(EVERY);
            if is_kept && has_room && !is_spent && kept.steps < KEPT_STEPS_MAX {
                kept.keep(visitor.target, (state, arrived), trace());
            }
            return Ok(());
        };
        let pairs_max = if self.taken.load(Ordering::Relaxed) < grace / 2 { PAIRS_MAX } else { PAIRS };
        if is_spent || !has_room || known.beside.len() >= pairs_max {
            return Ok(());
        }
        let (Some(whole), Some(known_whole)) = (whole(visitor.target, arrived), known.whole) else {
            return Ok(());
        };
        if whole == known_whole || !known.beside.insert(whole) {
            return Ok(());
        }
        let Some(here) = visitor.target.snapshot() else { return Ok(()) };
        visitor.target.set_counts(false);
        effort.steps += known.go_again(visitor)?;
        let (one, seed, other) = (known.state.clone(), known.beside.len() as u64, known.trace.clone());
        drop(kept);
        let before: Vec<Action> = other.steps().iter().map(|step| step.action).collect();
        let difference = differ(visitor, ([one, here.clone()], &before), seed, &mut effort);
        self.taken.fetch_add(effort.steps, Ordering::Relaxed);
        if visitor.target.has(&here) {
            visitor.target.restore(&here);
        }
        visitor.target.set_counts(true);
        match difference? {
            Some(difference) => Err(TroubleKind::Unequal {
                other: Box::new(other),
                steps: difference.steps,
                last: difference.last,
                why: difference.why,
            }),
            None => Ok(()),
        }
    }
}

/// How two states behave differently, where some steps show that they do, the steps `before` having led to one of them: all that follow, and after [`WIDE`] steps one path.
fn differ<T: Target>(
    visitor: &mut Visitor<'_, T>,
    (pair, before): ([T::Snapshot; 2], &[Action]),
    seed: u64,
    effort: &mut Effort<'_>,
) -> Result<Option<Difference>, TroubleKind> {
    let mut seen = BTreeSet::new();
    let mut queue = VecDeque::from([(pair.map(Origin::of), Vec::new())]);
    while let Some((pair, steps)) = queue.pop_front() {
        let on = faults_after(visitor.target.faults().len(), before.iter().chain(&steps).copied());
        effort.side = 0;
        let one = onward(visitor, (&pair[0], &on), effort)?;
        effort.side = 1;
        let mut other = onward(visitor, (&pair[1], &on), effort)?;
        if let Some((last, why)) = lacks(&one, &other).or_else(|| lacks(&other, &one)) {
            return Ok(Some(Difference { steps, last, why }));
        }
        if steps.len() == STEPS_MAX {
            continue;
        }
        for (way, one) in one.ways {
            let other = other.ways.remove(&way).into_iter().flat_map(|there| there.states);
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
    let (way, there) = one.ways.iter().find(|(way, _)| !other.ways.contains_key(way))?;
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
    let mut onward = Onward { ways: BTreeMap::new(), is_whole: true };
    if !from.reach(visitor)? {
        return Ok(Onward { is_whole: false, ..onward });
    }
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
    let states_max = if visitor.target.is_copying() { COPIED_MAX } else { STATES_MAX };
    for _ in 0..SCRIPTS_MAX {
        let is_had = visitor.target.has(from);
        if effort.steps - begun == TRIED_MAX || !effort.has_room(visitor.target) || !is_had {
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
            Ok((Visit::Rejected, _)) => None,
            Ok((Visit::Failed(_), _)) => Some(How::Failed),
            Ok((Visit::Asks(_), _)) => unreachable!("it was performed to its end"),
            Err(TroubleKind::Unbounded(..)) => break,
            Err(kind) => return Err(kind),
        };
        if let Some(how) = how {
            let is_state = how == How::Passed;
            let state = if is_state { visitor.target.compared_state()? } else { None };
            let way = onward.ways.entry((kind, how, state));
            let states = &mut way.or_insert_with(|| There { step: action, states: Vec::new() }).states;
            if is_state
                && states.len() < states_max
                && let Some(whole) = whole(visitor.target, effort.steps)
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
        if !path::advance(&mut script, 0) {
            return Ok(());
        }
    }
    onward.is_whole = false;
    Ok(())
}
