//! Whether states that a check takes for one behave alike. Where the guest says what its state is, the check believes it, and would find
//! nothing behind a difference that the guest leaves out. So some pairs of such states are compared (`differ`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::differ::{Bounds, Difference, Effort, Reach, differ};
use super::visit::Visitor;
use super::{TroubleKind, lock};
use crate::outcome::Outcome;
use crate::target::Target;
use crate::trace::{Action, Trace};

/// The first so many states are kept to compare others with; of those that follow one in [`EVERY`], up to a maximum.
const FIRST: usize = 1024;
const EVERY: u128 = 64;
const KEPT_MAX: usize = 4096;
/// States that each is compared with: at first, and once half of the first number of [`Allowed`] is taken.
const PAIRS_MAX: usize = 64;
const PAIRS: usize = 4;

/// Steps that comparing may take: so many, and one for so many steps of the check that led to a state.
#[derive(Clone, Copy)]
struct Allowed {
    grace: u64,
    share: u64,
}

/// In random models a quarter of the first number is enough to tell every omission, and an eighth is not.
const ALONE: Allowed = Allowed { grace: 8192, share: 16 };
/// Where the guest copies states: those to compare are gone to as usual, which takes longer than the check, and the steps to them count too.
const OF_COPIES: Allowed = Allowed { grace: 2048, share: 128 };
/// Once those are taken: by the next steps alone, as many for each rule that led to a state, since of many rules one may change nothing but what
/// is left out. All rules together share the second number.
const NEAR: Allowed = Allowed { grace: 512, share: 1024 };
/// Steps of another kind than these count together.
const KINDS: usize = 64;

/// All steps are taken as usual from the first states, and from one of so many.
const STEPPED_EVERY: u64 = 16;
/// After so many steps that led to a state, only states of the kind that is kept are compared.
const ALL: u64 = 100_000;

/// Where the guest copies states, the first so many and then one of so many are gone to as usual too, which may take so many steps and one for
/// so many that led to a state, up to a maximum, and then one for so many more.
const AUDITS: u64 = 64;
const AUDIT_GRACE: u64 = 32;
const AUDIT_SHARE: u64 = 8;
const AUDIT_MAX: u64 = 512;
const AUDIT_SHARE_AT_LAST: u64 = 128;

/// From so many steps on that fail, copies pay only where one in so many steps does at most.
const FAILED_MIN: u64 = 256;
const FAILED_SHARE: u64 = 32;

/// Steps that the traces to the states that are kept may have together.
const KEPT_STEPS_MAX: usize = 1 << 18;

/// States that were met, and how much comparing them took.
pub(super) struct Equals<S> {
    kept: Mutex<Keeping<S>>,
    arrived: AtomicU64,
    taken: AtomicU64,
    near: [AtomicU64; KINDS],
    audited: AtomicU64,
    stepped: AtomicU64,
    failed: AtomicU64,
    /// The check goes on where another process ended, which is lost where it begins anew.
    is_resumed: AtomicBool,
}

/// A step that led to a state, with this hash, after so many others.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    state: u128,
    number: u64,
    kind: usize,
}

impl Arrival {
    fn new(state: u128, number: u64, action: Option<Action>) -> Arrival {
        let kind = match action {
            Some(Action::Rule(rule)) => usize::from(rule).min(KINDS - 2),
            _ => KINDS - 1,
        };
        Arrival { state, number, kind }
    }

    fn is_seldom_compared(self) -> bool {
        self.number >= ALL && !self.state.is_multiple_of(EVERY)
    }
}

struct Keeping<S> {
    states: BTreeMap<u128, Kept<S>>,
    steps: usize,
}

struct Kept<S> {
    /// The state, and the hash of all of it. Where the guest copies states, once it was compared.
    had: Option<(S, u128)>,
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

    fn keep(&mut self, state: u128, had: Option<(S, u128)>, trace: Trace) {
        self.steps += trace.len();
        self.states.insert(state, Kept { had, trace, beside: BTreeSet::new() });
    }

    /// Keeps the steps to a state; whether they are to be, and were not yet.
    fn keep_steps(&mut self, state: u128, trace: &Trace) -> bool {
        let is_new = !self.states.contains_key(&state) && self.takes(state);
        if is_new {
            self.keep(state, None, trace.clone());
        }
        is_new
    }
}

impl<S: Clone> Kept<S> {
    /// The state with this hash, and the hash of all of it; where it cannot be had at once, by the steps to it. The target may then be anywhere.
    fn have<T: Target<Snapshot = S>>(
        &mut self,
        visitor: &mut Visitor<'_, T>,
        state: (u128, bool),
        taken: &mut u64,
    ) -> Result<Option<(S, u128)>, TroubleKind> {
        if self.had.is_none() {
            *taken += self.trace.len() as u64;
            walk(visitor, state, &self.trace)?;
            self.had = all_of(visitor.target);
        }
        Ok(self.had.clone())
    }
}

/// The state that the target is in, and the hash of all of it.
fn all_of<T: Target>(target: &mut T) -> Option<(T::Snapshot, u128)> {
    let whole = target.live_state()?;
    target.snapshot().map(|state| (state, whole))
}

/// Goes to a state that the guest copied as usual, by the steps to it, and stays there.
fn walk<T: Target>(
    visitor: &mut Visitor<'_, T>,
    (state, with_holds): (u128, bool),
    trace: &Trace,
) -> Result<(), TroubleKind> {
    match visitor.walk(trace) {
        Outcome::Pass if visitor.state(with_holds)? == Some(state) => Ok(()),
        Outcome::Stopped => Err(TroubleKind::Stopped),
        _ => Err(TroubleKind::Copies),
    }
}

impl Allowed {
    fn of<T: Target>(target: &T) -> Allowed {
        if target.is_copying() { OF_COPIES } else { ALONE }
    }

    /// Whether so many were taken by the time that so many led to a state.
    fn is_spent(self, taken: &AtomicU64, arrived: u64) -> bool {
        taken.load(Ordering::Relaxed) > self.grace + arrived / self.share
    }
}

impl<S: Clone> Equals<S> {
    pub(super) fn new() -> Equals<S> {
        let kept = Mutex::new(Keeping { states: BTreeMap::new(), steps: 0 });
        let [arrived, taken, audited, stepped, failed] = Default::default();
        let near = std::array::from_fn(|_| AtomicU64::new(0));
        Equals { kept, arrived, taken, near, audited, stepped, failed, is_resumed: AtomicBool::new(false) }
    }

    /// The check goes on where another process ended.
    pub(super) fn resumes(&self) {
        self.is_resumed.store(true, Ordering::Relaxed);
    }

    /// A step, if the check does not only begin, led to a state with this hash, which the guest said. Which arrival that is, where the state is to be
    /// compared.
    pub(super) fn arrives<T: Target<Snapshot = S>>(
        &self,
        target: &T,
        state: u128,
        action: Option<Action>,
    ) -> Option<Arrival> {
        let arrival = Arrival::new(state, self.arrived.fetch_add(1, Ordering::Relaxed), action);
        if target.is_copying() && self.is_audited(arrival.number) {
            return Some(arrival);
        }
        let is_compared = !arrival.is_seldom_compared()
            && self.reach(target, arrival).is_some_and(|reach| {
                let kept = lock(&self.kept);
                match kept.states.get(&state) {
                    Some(known) => known.beside.len() < self.pairs_max(Allowed::of(target), reach),
                    None => kept.takes(state),
                }
            });
        is_compared.then_some(arrival)
    }

    /// How far a state is compared, if it may be.
    fn reach<T: Target<Snapshot = S>>(
        &self,
        target: &T,
        Arrival { number, kind, .. }: Arrival,
    ) -> Option<Reach> {
        let near = Allowed { share: NEAR.share * target.rules().len().max(1) as u64, ..NEAR };
        if !Allowed::of(target).is_spent(&self.taken, number) {
            return Some(Reach::Far);
        }
        (!near.is_spent(&self.near[kind], number)).then_some(Reach::Near)
    }

    /// What the steps count to that comparing takes.
    fn taken(&self, kind: usize, reach: Reach) -> &AtomicU64 {
        match reach {
            Reach::Far => &self.taken,
            Reach::Near => &self.near[kind],
        }
    }

    /// With how many others a state is compared.
    fn pairs_max(&self, allowed: Allowed, reach: Reach) -> usize {
        let is_much = reach == Reach::Far && self.taken.load(Ordering::Relaxed) >= allowed.grace / 2;
        if is_much { PAIRS } else { PAIRS_MAX }
    }

    /// The target is in the state to which this step led, and stays there. Where the guest copies states,
    /// it is one of the copies, and all that is compared is gone to as usual: copies may be alike where what they are copies of is not.
    ///
    /// # Errors
    /// An earlier state with this hash behaves differently, or where the guest copies states, the same state as usual; the check is over.
    pub(super) fn met<T: Target<Snapshot = S>>(
        &self,
        visitor: &mut Visitor<'_, T>,
        (arrival, bounds): (Arrival, Bounds<'_>),
        trace: impl FnOnce() -> Trace,
    ) -> Result<(), TroubleKind> {
        let reach = self.reach(visitor.target, arrival);
        if !visitor.target.is_copying() {
            visitor.target.set_counts(false);
            let here = self.compare(visitor, (arrival, reach), bounds, trace)?;
            here.iter().for_each(|here| visitor.target.restore(here));
            visitor.target.set_counts(true);
            return Ok(());
        }
        let (trace, is_audited) = (trace(), self.is_audited(arrival.number));
        if !is_audited && lock(&self.kept).keep_steps(arrival.state, &trace) {
            return Ok(());
        }
        let steps =
            if is_audited { &self.audited } else { self.taken(arrival.kind, reach.unwrap_or(Reach::Far)) };
        steps.fetch_add(trace.len() as u64, Ordering::Relaxed);
        walk(visitor, (arrival.state, bounds.with_holds), &trace)?;
        self.compare(visitor, (arrival, reach), bounds, || trace)?;
        visitor.target.set_copying(true);
        Ok(())
    }

    /// Whether the steps from the state of this node, which the guest copied, are taken as usual too.
    pub(super) fn audits_steps_of(&self, node: u32) -> bool {
        let (node, arrived) = (u64::from(node), self.arrived.load(Ordering::Relaxed));
        let is_chosen = node < AUDITS || node.is_multiple_of(STEPPED_EVERY);
        is_chosen && !OF_COPIES.is_spent(&self.stepped, arrived)
    }

    /// So many are.
    pub(super) fn audits_steps(&self, steps: u64) {
        self.stepped.fetch_add(steps, Ordering::Relaxed);
    }

    /// A step fails: whether so many do that copies do not pay. What was done by then is done again, so that is said while it is little.
    pub(super) fn fails_often(&self) -> bool {
        let failed = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
        let arrived = self.arrived.load(Ordering::Relaxed);
        let is_little = arrived < ALL && !self.is_resumed.load(Ordering::Relaxed);
        is_little && failed >= FAILED_MIN && failed * FAILED_SHARE > arrived
    }

    /// Whether a state that the guest copied is gone to as usual too.
    fn is_audited(&self, arrived: u64) -> bool {
        let is_chosen = arrived < AUDITS || arrived.is_multiple_of(AUDITS);
        let most = (AUDIT_GRACE + arrived / AUDIT_SHARE).min(AUDIT_MAX) + arrived / AUDIT_SHARE_AT_LAST;
        is_chosen && self.audited.load(Ordering::Relaxed) <= most
    }

    /// Compares the state that the target is in with the one that is kept; where the target was, if it is there no more.
    fn compare<T: Target<Snapshot = S>>(
        &self,
        visitor: &mut Visitor<'_, T>,
        (arrival, reach): (Arrival, Option<Reach>),
        bounds: Bounds<'_>,
        trace: impl FnOnce() -> Trace,
    ) -> Result<Option<S>, TroubleKind> {
        let state = arrival.state;
        let Some(reach) = reach.filter(|_| !arrival.is_seldom_compared()) else { return Ok(None) };
        let pairs_max = self.pairs_max(Allowed::of(visitor.target), reach);
        let mut kept = lock(&self.kept);
        let with_holds = bounds.with_holds;
        let mut effort = Effort::new(bounds, reach);
        let has_room = effort.has_room(visitor.target);
        let Some(known) = kept.states.get_mut(&state) else {
            if kept.takes(state)
                && has_room
                && let Some(had) = all_of(visitor.target)
            {
                kept.keep(state, Some(had), trace());
            }
            return Ok(None);
        };
        if !has_room || known.beside.len() >= pairs_max {
            return Ok(None);
        }
        let Some(whole) = visitor.target.live_state() else { return Ok(None) };
        let is_known = known.had.as_ref().is_some_and(|(_, known)| *known == whole);
        if is_known || known.beside.contains(&whole) {
            return Ok(None);
        }
        let Some(here) = visitor.target.snapshot() else { return Ok(None) };
        let had = known.have(visitor, (state, with_holds), &mut effort.steps)?;
        let Some((other, _)) = had.filter(|(_, known)| *known != whole) else { return Ok(Some(here)) };
        known.beside.insert(whole);
        let (seed, steps) = (known.beside.len() as u64, known.trace.clone());
        drop(kept);
        let before: Vec<Action> = steps.steps().iter().map(|step| step.action).collect();
        let difference = differ(visitor, ([other, here.clone()], &before), seed, &mut effort);
        self.taken(arrival.kind, reach).fetch_add(effort.steps, Ordering::Relaxed);
        match difference? {
            Some(Difference { steps: after, last, why }) => {
                Err(TroubleKind::Unequal { other: Box::new(steps), steps: after, last, why })
            }
            None => Ok(Some(here)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    /// What is taken by one rule is not taken from another.
    #[test]
    fn each_rule_is_compared_near_once_the_rest_is_spent() {
        let model = Model::new((), &["often", "seldom"], &[], |_, _, _, _| Outcome::Pass);
        let equals = Equals::new();
        let arrives = |rule, number| equals.arrives(&model, number, Some(Action::Rule(rule))).is_some();
        equals.near[0].store(NEAR.grace + 1, Ordering::Relaxed);
        assert!(arrives(0, 1) && arrives(1, 2));
        equals.taken.store(ALONE.grace + 1, Ordering::Relaxed);
        assert!(!arrives(0, 3) && arrives(1, 4));
        equals.arrived.store(2 * NEAR.share, Ordering::Relaxed);
        equals.taken.store(u64::MAX / 2, Ordering::Relaxed);
        assert!(arrives(0, 5));
    }

    #[test]
    fn copies_pay_where_few_steps_fail() {
        let fail = |arrived: u64, times: u64| {
            let equals = Equals::<()>::new();
            equals.arrived.store(arrived, Ordering::Relaxed);
            (0..times).map(|_| equals.fails_often()).last().unwrap()
        };
        assert!(!fail(0, FAILED_MIN - 1) && fail(0, FAILED_MIN));
        let arrived = FAILED_MIN * 2 * FAILED_SHARE;
        assert!(!fail(arrived, FAILED_MIN * 2) && fail(arrived, FAILED_MIN * 2 + 1));
        assert!(!fail(ALL, ALL));
        let equals = Equals::<()>::new();
        equals.resumes();
        assert!((0..2 * FAILED_MIN).all(|_| !equals.fails_often()));
    }
}
