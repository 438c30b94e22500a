//! Whether states that a check takes for one behave alike. Where the guest says what its state is, the check believes it, and would find
//! nothing behind a difference that the guest leaves out. So some pairs of such states are compared (`differ`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::differ::{Bounds, Difference, Effort, differ, whole};
use super::visit::Visitor;
use super::{TroubleKind, lock};
use crate::outcome::Outcome;
use crate::target::Target;
use crate::trace::{Action, Trace};

/// The first so many states are kept to compare others with; of those that follow one in [`EVERY`], up to a maximum.
const FIRST: usize = 1024;
const EVERY: u128 = 64;
const KEPT_MAX: usize = 4096;
/// States that each is compared with: at first, and once half of [`GRACE`] is taken.
const PAIRS_MAX: usize = 64;
const PAIRS: usize = 4;
/// And where the guest copies states, of which many are the same, since nothing tells them apart.
const PAIRS_OF_COPIES: usize = 16;
/// Steps that comparing may take: so many, and one for so many steps of the check that led to a state. In random models a quarter of
/// the first number is enough to tell every omission, and an eighth is not.
const GRACE: u64 = 8192;
/// And where the guest copies states, since the check itself takes little.
const GRACE_OF_COPIES: u64 = 2048;
const SHARE: u64 = 16;
/// After so many steps that led to a state, only states of the kind that is kept are compared.
const ALL: u64 = 100_000;

/// Where the guest copies states, the first so many and then one of so many are gone to as usual too, which may take so many steps and one for
/// so many that led to a state, up to a maximum, and then one for so many more.
const AUDITS: u64 = 64;
const AUDIT_GRACE: u64 = 32;
const AUDIT_SHARE: u64 = 8;
const AUDIT_MAX: u64 = 512;
const AUDIT_SHARE_AT_LAST: u64 = 64;

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
    /// Whether a state that is not kept is to be.
    fn takes(&self, state: u128) -> bool {
        let len = self.states.len();
        let is_chosen = len < FIRST || len < KEPT_MAX && state.is_multiple_of(EVERY);
        is_chosen && self.steps < KEPT_STEPS_MAX
    }

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

/// Steps that comparing may take at least.
fn grace<T: Target>(target: &T) -> u64 {
    if target.is_copying() { GRACE_OF_COPIES } else { GRACE }
}

impl<S: Clone> Equals<S> {
    pub(super) fn new() -> Equals<S> {
        let kept = Mutex::new(Keeping { states: BTreeMap::new(), steps: 0 });
        Equals { kept, arrived: AtomicU64::new(0), taken: AtomicU64::new(0), audited: AtomicU64::new(0) }
    }

    /// A step led to a state with this hash, which the guest said: how many did before, where that state is to be compared.
    pub(super) fn arrives<T: Target<Snapshot = S>>(&self, target: &T, state: u128) -> Option<u64> {
        let arrived = self.arrived.fetch_add(1, Ordering::Relaxed);
        if target.is_copying() && self.is_audited(arrived) {
            return Some(arrived);
        }
        let is_seldom = arrived >= ALL && !state.is_multiple_of(EVERY);
        let is_compared = !is_seldom && !self.is_spent(target, arrived) && {
            let kept = lock(&self.kept);
            match kept.states.get(&state) {
                Some(known) => known.beside.len() < self.pairs_max(target),
                None => kept.takes(state),
            }
        };
        is_compared.then_some(arrived)
    }

    /// Whether comparing has taken what it may.
    fn is_spent<T: Target>(&self, target: &T, arrived: u64) -> bool {
        self.taken.load(Ordering::Relaxed) > grace(target) + arrived / SHARE
    }

    /// With how many others a state is compared.
    fn pairs_max<T: Target>(&self, target: &T) -> usize {
        match target.is_copying() {
            _ if self.taken.load(Ordering::Relaxed) < grace(target) / 2 => PAIRS_MAX,
            true => PAIRS_OF_COPIES,
            false => PAIRS,
        }
    }

    /// The target is in a state with this hash, to which a step led after so many others. The target stays there.
    ///
    /// # Errors
    /// An earlier state with this hash behaves differently, or where the guest copies states, the same state as usual; the check is over.
    pub(super) fn met<T: Target<Snapshot = S>>(
        &self,
        visitor: &mut Visitor<'_, T>,
        ((state, arrived), bounds): ((u128, u64), Bounds<'_>),
        trace: impl FnOnce() -> Trace,
    ) -> Result<(), TroubleKind> {
        if visitor.target.is_copying() && self.is_audited(arrived) {
            let trace = trace();
            let audited = self.audit(visitor, (state, bounds.with_holds), &trace);
            visitor.target.set_copying(true);
            audited?;
            return self.compare(visitor, (state, arrived), bounds, || trace);
        }
        self.compare(visitor, (state, arrived), bounds, trace)
    }

    /// Whether a state that the guest copied is gone to as usual too.
    fn is_audited(&self, arrived: u64) -> bool {
        let is_chosen = arrived < AUDITS || arrived.is_multiple_of(AUDITS);
        let most = (AUDIT_GRACE + arrived / AUDIT_SHARE).min(AUDIT_MAX) + arrived / AUDIT_SHARE_AT_LAST;
        is_chosen && self.audited.load(Ordering::Relaxed) <= most
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
        let is_spent = self.is_spent(visitor.target, arrived);
        let pairs_max = self.pairs_max(visitor.target);
        let mut kept = lock(&self.kept);
        let mut effort = Effort::new(bounds);
        let has_room = effort.has_room(visitor.target);
        let Some(known) = kept.states.get_mut(&state) else {
            if kept.takes(state) && has_room && !is_spent {
                kept.keep(visitor.target, (state, arrived), trace());
            }
            return Ok(());
        };
        if is_spent || !has_room || known.beside.len() >= pairs_max {
            return Ok(());
        }
        let (Some(whole), Some(known_whole)) = (whole(visitor.target, arrived), known.whole) else {
            return Ok(());
        };
        if whole == known_whole || !known.beside.insert(whole) {
            return Ok(());
        }
        let (seed, other) = (known.beside.len() as u64, known.trace.clone());
        let here = visitor.target.snapshot();
        visitor.target.set_counts(false);
        let gone = here.as_ref().map_or(Ok(0), |_| known.go_again(visitor));
        let pair = here.clone().map(|here| [known.state.clone(), here]);
        drop(kept);
        let difference = gone.and_then(|steps| {
            effort.steps += steps;
            tell(visitor, (pair, [&other, &trace()]), seed, &mut effort)
        });
        self.taken.fetch_add(effort.steps, Ordering::Relaxed);
        visitor.target.set_counts(true);
        if let Some(Difference { steps, last, why }) = difference? {
            return Err(TroubleKind::Unequal { other: Box::new(other), steps, last, why });
        }
        if let Some(here) = here.filter(|here| visitor.target.has(here)) {
            visitor.target.restore(&here);
        }
        Ok(())
    }
}

/// How two states behave differently, with the steps to them. Where the guest copies states and has lost them, or they behave differently,
/// they are gone to as usual. The target copies states then only if that shows no difference.
///
/// # Errors
/// Only the copies of these states behave differently.
fn tell<T: Target>(
    visitor: &mut Visitor<'_, T>,
    (pair, traces): (Option<[T::Snapshot; 2]>, [&Trace; 2]),
    seed: u64,
    effort: &mut Effort<'_>,
) -> Result<Option<Difference>, TroubleKind> {
    let before: Vec<Action> = traces[0].steps().iter().map(|step| step.action).collect();
    effort.is_cut = pair.is_none();
    let difference = pair.map_or(Ok(None), |pair| differ(visitor, (pair, &before), seed, effort))?;
    if !visitor.target.is_copying() || difference.is_none() && !effort.is_cut {
        return Ok(difference);
    }
    // As wide as if nothing had been compared yet.
    let taken = std::mem::take(&mut effort.steps);
    let as_usual = reach_both(visitor, traces)
        .and_then(|pair| pair.map_or(Ok(None), |pair| differ(visitor, (pair, &before), seed, effort)));
    effort.steps += taken + traces.map(|trace| trace.len() as u64).iter().sum::<u64>();
    if let Ok(Some(difference)) = as_usual {
        return Ok(Some(difference));
    }
    visitor.target.set_copying(true);
    if difference.is_some() { as_usual.and(Err(TroubleKind::Copies)) } else { as_usual }
}

/// Both states as the target saves them where it copies none, if it can and they are not one.
fn reach_both<T: Target>(
    visitor: &mut Visitor<'_, T>,
    traces: [&Trace; 2],
) -> Result<Option<[T::Snapshot; 2]>, TroubleKind> {
    let mut reach = |trace: &Trace| match visitor.walk(trace) {
        Outcome::Pass => Ok((whole(visitor.target, 0), visitor.target.snapshot())),
        Outcome::Stopped => Err(TroubleKind::Stopped),
        _ => Err(TroubleKind::Copies),
    };
    let [(one, saved), (other, beside)] = [reach(traces[0])?, reach(traces[1])?];
    let pair = saved.zip(beside).map(|(one, other)| [one, other]);
    Ok(pair.filter(|_| one != other))
}
