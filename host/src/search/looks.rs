//! Closer looks: a run is performed once more where it tells more than edges, and a step that shows something new there makes a
//! checkpoint too.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::energy::{Checkpoints, News};
use super::history::History;
use super::operands::{Hints, Probe};
use super::run::{Known, Runner};
use crate::choice::{Choice, Chooser, Value, mix, small_seed};
use crate::compare::{Compare, Place};
use crate::coverage::{FeatureKind, SHOWN};
use crate::outcome::Outcome;
use crate::target::{Target, attempt};
use crate::trace::{Action, Trace};

/// Steps that are performed again to reach a state.
const STEPS_MAX: usize = 1000;
/// Rules of a state that are probed, and how often each.
const PROBED_MAX: usize = 16;
const PROBES: u64 = 2;

/// What a closer look tells of a checkpoint.
#[derive(Debug)]
pub struct Closer<S> {
    /// The state in the second build.
    snapshot: Option<S>,
    probes: Vec<Probe>,
    /// Comparisons of an input whose sides are equal, in order.
    equal: Vec<Place>,
    /// Bytes that count as held.
    counted: usize,
}

/// Bytes that all closers hold which are kept.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// Of which there may be so many. Beyond, what is seen is seen again each time; no result depends on it.
const HELD_MAX: usize = 128 << 20;

impl<S> Drop for Closer<S> {
    fn drop(&mut self) {
        HELD.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

/// A closer look: that of before, or one that is not kept.
pub(super) enum Look<'c, S> {
    Kept(&'c Closer<S>),
    Made(Box<Closer<S>>),
}

impl<S> Deref for Look<'_, S> {
    type Target = Closer<S>;

    fn deref(&self) -> &Closer<S> {
        match self {
            Look::Kept(closer) => closer,
            Look::Made(closer) => closer,
        }
    }
}

impl<S> Closer<S> {
    /// Of the checkpoint with this index, in whose state these rules may be called. It is looked at once, while there is room.
    pub(super) fn of<'c, T>(
        target: &mut T,
        (checkpoints, index): (&'c Checkpoints<S>, usize),
        enabled: &[u16],
    ) -> Look<'c, S>
    where
        T: Target<Snapshot = S>,
    {
        let checkpoint = checkpoints.get(index);
        if let Some(kept) = checkpoint.closer.get() {
            return Look::Kept(kept);
        }
        let mut trace = Trace::default();
        checkpoint.history.flatten(&mut trace);
        let mut closer = Closer { snapshot: None, probes: Vec::new(), equal: Vec::new(), counted: 0 };
        match target.is_function() {
            true => closer.look_at(&compared_last(target, &trace), &trace),
            false => closer.probe_state(
                target,
                checkpoint.id,
                (&trace, near(checkpoints, &checkpoint.history)),
                enabled,
            ),
        }
        let bytes = closer.bytes();
        if HELD.fetch_add(bytes, Ordering::Relaxed) + bytes > HELD_MAX {
            HELD.fetch_sub(bytes, Ordering::Relaxed);
            return Look::Made(Box::new(closer));
        }
        closer.counted = bytes;
        Look::Kept(checkpoint.closer.get_or_init(|| closer))
    }

    /// Bytes that it holds but for the state.
    fn bytes(&self) -> usize {
        let probes: usize = self.probes.iter().map(Probe::bytes).sum();
        size_of_val(&*self.equal) + probes
    }

    /// Remembers what the last step of a run compares.
    fn look_at(&mut self, compared: &[(Place, Compare)], trace: &Trace) {
        let Some(last) = trace.steps().last() else { return };
        self.probes.extend(Probe::of(last.action, compared, trace.choices(last)));
        let equal = compared.iter().filter(|(_, compare)| compare.is_equal());
        self.equal = equal.map(|(place, _)| *place).collect();
        self.equal.sort_unstable();
    }

    /// Performs rules after a run, each by itself.
    fn probe_state<T: Target<Snapshot = S>>(
        &mut self,
        target: &mut T,
        id: u64,
        (trace, near): (&Trace, Option<(&S, usize)>),
        enabled: &[u16],
    ) {
        let Some(lens) = target.lens() else { return };
        let mut follower = Follower::default();
        if !follower.reach(lens, trace, trace.len(), near) {
            return;
        }
        let Some(reached) = lens.snapshot() else { return };
        let first = mix(id, 0) as usize % enabled.len().max(1);
        for rule in enabled[first..].iter().chain(&enabled[..first]).take(PROBED_MAX) {
            for at in 0..PROBES {
                let seed = mix(mix(id, u64::from(*rule)), at);
                let seed = if at == 0 { small_seed(seed) } else { seed };
                lens.restore(&reached);
                follower.perform(lens, (Action::Rule(*rule), seed), []);
                let choices = follower.again.last_choices();
                self.probes.extend(Probe::of(Action::Rule(*rule), &lens.compared(), choices));
            }
        }
        self.snapshot = Some(reached);
    }

    /// Steps that compare what they are given.
    pub(super) fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// What to change where an input, that this was looked at before it was changed, compares this: first what was equal before.
    pub(super) fn mended(&self, compared: &[(Place, Compare)], choices: &[Choice]) -> Hints {
        let is_broken = |(place, compare): &&(Place, Compare)| {
            !compare.is_equal() && self.equal.binary_search(place).is_ok()
        };
        let broken = Hints::of(compared.iter().filter(is_broken), choices);
        if broken.is_empty() { Hints::of(compared, choices) } else { broken }
    }

    /// How much there is to try.
    pub(super) fn hints(&self) -> usize {
        self.probes.iter().map(|probe| probe.hints.len()).sum()
    }

    /// Whether it holds a state.
    pub(super) fn has_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }
}

/// The last of the checkpoints on the way to another whose state in the second build is kept, and how many steps follow.
fn near<'c, S>(checkpoints: &'c Checkpoints<S>, history: &History) -> Option<(&'c S, usize)> {
    let (mut steps, mut next) = (history.steps.len(), history.parent.as_ref());
    while let Some(history) = next {
        let kept = checkpoints.index_of(history.id).map(|index| checkpoints.get(index));
        let kept = kept.filter(|checkpoint| Arc::ptr_eq(&checkpoint.history, history));
        if let Some(snapshot) = kept.and_then(|kept| kept.closer.get()?.snapshot.as_ref()) {
            return Some((snapshot, steps));
        }
        steps += history.steps.len();
        next = history.parent.as_ref();
    }
    None
}

/// What the last step of a run compares.
pub(super) fn compared_last<T: Target>(target: &mut T, trace: &Trace) -> Vec<(Place, Compare)> {
    let Some((last, before)) = trace.steps().split_last() else { return Vec::new() };
    let Some(lens) = target.lens() else { return Vec::new() };
    let mut follower = Follower::default();
    if !follower.reach(lens, trace, before.len(), None) {
        return Vec::new();
    }
    follower.perform(lens, (last.action, last.seed), trace.recorded(last));
    lens.compared()
}

/// Performs the steps of a run again.
#[derive(Default)]
struct Follower {
    chooser: Chooser,
    enabled: Vec<u16>,
    again: Trace,
}

impl Follower {
    /// Performs the first `count` steps of a run; whether all of them passed. Where there is a state near, which so many of them follow,
    /// it is gone to.
    fn reach<T: Target>(
        &mut self,
        target: &mut T,
        trace: &Trace,
        count: usize,
        near: Option<(&T::Snapshot, usize)>,
    ) -> bool {
        if count > STEPS_MAX {
            return false;
        }
        let first = match near {
            Some((snapshot, steps)) => {
                target.restore(snapshot);
                count - steps
            }
            None => {
                target.reset();
                0
            }
        };
        trace.steps()[first..count]
            .iter()
            .all(|step| self.perform(target, (step.action, step.seed), trace.recorded(step)) == Outcome::Pass)
    }

    fn perform<T: Target>(
        &mut self,
        target: &mut T,
        what: (Action, u64),
        recorded: impl IntoIterator<Item = Option<Value>>,
    ) -> Outcome {
        self.again.clear();
        attempt(target, &mut self.chooser, &mut self.enabled, what, recorded, &mut self.again)
    }
}

impl<T: Target> Runner<'_, T> {
    /// Looks at the run that was just performed; how much it shows that is new.
    pub(super) fn look_closer(&mut self, known: &mut Known<'_, T::Snapshot>) -> u32 {
        let mut trace = Trace::default();
        self.history.flatten(&mut trace);
        let saved = trace.len();
        trace.extend(&self.trace, self.trace.len());
        let from = trace.len().saturating_sub(self.steps as usize);
        let (shown, has_passed) = self.shown(known, &trace, from);
        let (mut count, mut new_at, contexts) = (0, Vec::new(), known.options.contexts);
        for (step, features) in (from..).zip(shown) {
            let seen = &known.get().seen;
            let counts = |feature| contexts || FeatureKind::of(feature) != FeatureKind::Context;
            let is_new = |feature: &u32| *feature >= SHOWN && counts(*feature) && seen.lacks_shown(*feature);
            let mut new: Vec<u32> = features.into_iter().filter(is_new).collect();
            new.sort_unstable();
            new.dedup();
            if !new.is_empty() {
                count += new.len() as u32;
                new_at.push((step, new.len() as u32));
                let (run, learned) = (known.plan.number, known.learn());
                for feature in new {
                    learned.saw(feature, run);
                }
            }
        }
        // What led to a checkpoint is kept already.
        new_at.retain(|(step, _)| *step >= saved);
        match self.target.is_function() {
            // An input that fails is a finding. Of a sanitized target the second build is not, and it passes there.
            true if has_passed && !self.has_failed => self.keep_input(known, &new_at),
            true => {}
            false => self.keep_states(known, (&trace, saved), &new_at),
        }
        count
    }

    /// The features that each step of a run shows, from the step `from` on, and whether no step fails or is rejected.
    fn shown(&mut self, known: &Known<'_, T::Snapshot>, trace: &Trace, from: usize) -> (Vec<Vec<u32>>, bool) {
        let (mut shown, mut has_passed) = (Vec::new(), true);
        let start = self.checkpoint.filter(|_| !self.target.is_function());
        let start = start.and_then(|index| known.get().checkpoints.get(index).closer.get());
        let Some(lens) = self.target.lens() else { return (shown, false) };
        let mut follower = Follower::default();
        let is_there = match start.and_then(|closer| closer.snapshot.as_ref()) {
            Some(snapshot) => {
                lens.restore(snapshot);
                true
            }
            None => follower.reach(lens, trace, from, None),
        };
        for step in trace.steps()[from..].iter().take_while(|_| is_there) {
            let outcome = follower.perform(lens, (step.action, step.seed), trace.recorded(step));
            let mut features = Vec::new();
            lens.shown(trace.choices(step), &mut features);
            shown.push(features);
            has_passed = matches!(outcome, Outcome::Pass | Outcome::Exit);
            if outcome != Outcome::Pass {
                break;
            }
        }
        (shown, has_passed)
    }

    /// Keeps the input of a function.
    fn keep_input(&mut self, known: &mut Known<'_, T::Snapshot>, new_at: &[(usize, u32)]) {
        let is_rule = self.trace.steps().last().is_some_and(|step| matches!(step.action, Action::Rule(_)));
        if let (Some((_, new)), true) = (new_at.last(), is_rule) {
            self.work = self.target.work();
            self.save(known, *new, News::Shown);
        }
    }

    /// Performs a run again, and makes checkpoints of the states after these steps, each with what it showed. The first `saved`
    /// steps lead to where the run started or saved one last.
    fn keep_states(
        &mut self,
        known: &mut Known<'_, T::Snapshot>,
        (steps, saved): (&Trace, usize),
        new_at: &[(usize, u32)],
    ) {
        let Some((last, _)) = new_at.last() else { return };
        self.faults.fill(false);
        self.depth -= self.trace.len() as u32;
        self.trace.clear();
        self.target.reset();
        let mut again = Trace::default();
        for (at, step) in steps.steps().iter().enumerate().take(last + 1) {
            if let Action::Fault(fault, on) = step.action {
                self.faults[usize::from(fault)] = on;
            }
            let trace = if at < saved { &mut again } else { &mut self.trace };
            let (what, recorded) = ((step.action, step.seed), steps.recorded(step));
            let outcome = attempt(self.target, &mut self.chooser, &mut self.enabled, what, recorded, trace);
            self.depth += u32::from(at >= saved);
            if outcome != Outcome::Pass || step.action == Action::Teardown {
                // Nothing can follow.
                break;
            }
            if let Some((_, new)) = new_at.iter().find(|(new_at, _)| *new_at == at) {
                self.save(known, *new, News::Shown);
            }
        }
        self.forget_coverage();
    }
}
