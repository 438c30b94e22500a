//! States that the guest copies by itself: a harness in Rust that is `Clone` and that says what it holds.
//!
//! A second instance does the steps of a check. What the guest holds is copied by the guest, in that one memory, by number: nothing of
//! the memory is compared, hashed or saved, and no page goes back and forth. What a copy leaves out, and what the guest keeps beside what
//! it holds, would make this wrong. So a check goes to some of these states as usual too, by the steps to them from the start, and nothing
//! that fails here counts unless it fails so.

mod copied;
mod drive;
mod inside;
mod module;

use std::sync::Arc;

use wasmtime::{Func, Instance, Store, TypedFunc};

use super::host::{Host, Stop};
use super::pages::Held;
use super::saved::{SAVED_BYTES, Saved, Snapshot};
use super::sections::StateSays;
use super::{Limits, Machine};
use crate::choice::Chooser;
use crate::outcome::{Failure, FailureKind, Halt, Outcome};
use crate::target::{Doubt, Successors, Target as _};
use crate::trace::Action;
use copied::Numbers;
use drive::{Driver, left};
use inside::{JUDGES, MOVES, STEPS, phase};

pub(super) use copied::Copied;
pub(super) use drive::Driven;
pub(super) use inside::{Inside, counts, is_beside, said_state, take_said};

/// The state before setup, that of [`Target::bookmark`](crate::target::Target::bookmark), one that nobody wants, and the one from which all steps
/// are performed in one call, by their numbers. Those of snapshots follow, from [`FIRST`](copied::FIRST) on.
const ROOT: u32 = 0;
const BOOKMARK: u32 = 1;
pub(super) const NOWHERE: u32 = 2;
pub(super) const READY: u32 = 3;
/// Numbers end here.
const END: u32 = i32::MAX as u32;
/// How often in a row all steps from a state may be performed in one call in vain.
const VAIN_MAX: u32 = 4;

/// The exports that copy.
pub(super) struct CopyCalls {
    keep: TypedFunc<u32, ()>,
    load: TypedFunc<(u32, u32), ()>,
    moves: Option<TypedFunc<u32, ()>>,
    shares: Option<TypedFunc<(), u32>>,
}

impl CopyCalls {
    /// Those of a guest that says that it has them.
    pub(super) fn of(instance: Instance, store: &mut Store<Host>) -> Option<CopyCalls> {
        let keep = instance.get_typed_func(&mut *store, "copy_keep").ok()?;
        let load = instance.get_typed_func(&mut *store, "copy_load").ok()?;
        let moves = instance.get_typed_func(&mut *store, "copy_move").ok();
        let shares = instance.get_typed_func(&mut *store, "copy_shares").ok();
        Some(CopyCalls { keep, load, moves, shares })
    }

    /// What loads and what moves a state, of a guest that does both.
    pub(super) fn moving(&self) -> Option<[Func; 2]> {
        self.moves.as_ref().map(|moves| [*self.load.func(), *moves.func()])
    }
}

/// An instance that does so, and what there is in its memory.
pub(super) struct Copies {
    machine: Machine,
    /// Performs all steps from a state in one call, where it can.
    driver: Option<Driver>,
    /// How often in a row it did so in vain.
    vain: u32,
    /// It evaluates invariants by state, and not after each step.
    by_state: bool,
    numbers: Arc<Numbers>,
    /// Steps are done here.
    pub(super) is_on: bool,
    left: Left,
    has_bookmark: bool,
    /// What the guest said of the state that it is in, and of the bookmark.
    said: Option<u128>,
    of_bookmark: Option<u128>,
    /// The guest has no room for a copy with this number.
    end: u32,
    /// Bytes of memory that the guest had before it copied a state, and that each of the copies takes that were made last.
    bytes: usize,
    driven_share: usize,
    /// What is here of each copy.
    nothing: Arc<Saved>,
}

/// Where the last call of the guest was left.
#[derive(Clone, Copy, PartialEq)]
enum Left {
    /// At its end.
    Nowhere,
    /// In its middle, by the guest itself, which does so while nothing is half done but what it was called for.
    Within,
    /// Anywhere: nothing that is in memory can be relied on.
    Torn,
}

impl Copies {
    /// Of a machine whose guest can do so, which is in the state before setup.
    fn of(of: &Machine) -> Option<Copies> {
        let program = &of.program;
        let exports = &program.exports;
        let has_only_what_it_holds = of.store.data().system.is_none()
            && exports.pools() == 0
            && exports.component.is_none()
            && exports.faults.is_empty()
            && program.instrumented.layout.suspend.is_none();
        let can_copy = matches!(program.state_says, StateSays::Content { copies: true, .. })
            && of.calls.copies.is_some()
            && of.says_state()
            && of.uses_snapshots
            && of.second.is_none()
            && of.elsewhere.is_none();
        if !can_copy || !has_only_what_it_holds || exports.is_function || of.has_teardown() {
            return None;
        }
        // With `sanitize` the shadow of the heap would have to go with the copies.
        let is_plain = program.conditions().selection.sanitize.is_empty();
        let machine = Machine::new(program.copies().filter(|_| is_plain)?.clone()).ok()?;
        let bytes = machine.store.data().limits.memory_bytes;
        let mut copies = Copies {
            machine,
            driver: None,
            vain: 0,
            by_state: true,
            numbers: Arc::default(),
            is_on: true,
            left: Left::Nowhere,
            has_bookmark: false,
            said: None,
            of_bookmark: None,
            end: END,
            bytes,
            driven_share: 0,
            nothing: Arc::new(Saved::nothing()),
        };
        copies.drive();
        copies.keep_at(ROOT).then_some(copies)
    }

    /// Readies the instance to perform all steps from a state in one call.
    fn drive(&mut self) {
        self.driver = if self.vain < VAIN_MAX { Driver::of(&mut self.machine, self.by_state) } else { None };
        let guards = self.machine.calls.preconditions.iter().map(|(rule, _)| *rule).collect();
        let steps = self.machine.program.limits.steps();
        self.machine.store.data_mut().driven =
            Driven::new(self.numbers.clone(), guards, steps, self.by_state);
    }

    /// Calls the guest beside a step; whether that came to its end.
    fn call(&mut self, f: impl FnOnce(&CopyCalls, &mut Store<Host>) -> wasmtime::Result<()>) -> bool {
        // To make a copy may look at all others, so it takes more than a step of a small budget.
        let limits = self.machine.program.limits;
        let step_budget = limits.step_budget.max(Limits::default().step_budget);
        self.machine.state.begin(&Limits { step_budget, ..limits });
        let called = self.machine.enter(
            |_| false,
            |machine| {
                let calls = machine.calls.copies.as_ref();
                calls.is_some_and(|calls| f(calls, &mut machine.store).is_ok())
            },
        );
        if !called {
            self.left = Left::Torn;
        }
        called
    }

    fn keep_at(&mut self, number: u32) -> bool {
        self.call(|calls, store| calls.keep.call(store, number))
    }

    fn load(&mut self, number: u32) -> bool {
        if self.left == Left::Torn {
            return false;
        }
        let is_whole = self.ready();
        self.said = None;
        self.call(|calls, store| calls.load.call(store, (number, u32::from(is_whole))))
    }

    /// Readies the guest to be called, to load a state; whether the last call came to its end.
    fn ready(&mut self) -> bool {
        let is_whole = self.left == Left::Nowhere;
        if !is_whole {
            // Where the guest was, its stack was deeper.
            self.machine.state.load_globals(&mut self.machine.store, &self.machine.root.0);
        }
        self.left = Left::Nowhere;
        is_whole
    }

    /// Begins anew where nothing in memory can be relied on: all copies are lost.
    fn mend(&mut self) {
        if self.left != Left::Torn {
            return;
        }
        let Ok(mut fresh) = Machine::new(self.machine.program.clone()) else { return };
        std::mem::swap(&mut fresh.store.data_mut().tally, &mut self.machine.store.data_mut().tally);
        self.machine = fresh;
        (self.left, self.numbers, self.has_bookmark) = (Left::Nowhere, Arc::default(), false);
        self.drive();
        self.keep_at(ROOT);
    }

    /// Whether this copy is in the memory of the instance.
    fn has(&self, copied: &Copied) -> bool {
        self.left != Left::Torn && Arc::ptr_eq(&copied.of, &self.numbers)
    }

    pub(super) fn reset(&mut self) {
        self.mend();
        self.load(ROOT);
    }

    pub(super) fn restore(&mut self, copied: &Copied) {
        if !(self.has(copied) && self.load(copied.number) && self.says(copied.said)) {
            self.left = Left::Torn;
        }
    }

    /// Whether the guest says this of its state, if that is known: a copy need not hold all, and what it shares may have been changed
    /// since.
    fn says(&mut self, said: Option<u128>) -> bool {
        said.is_none() || self.compared_state().is_ok_and(|state| state == said)
    }

    /// A copy of the state; none where there is no room for more.
    pub(super) fn snapshot(&mut self) -> Option<Snapshot> {
        if self.left != Left::Nowhere || !self.has_room() {
            return None;
        }
        let number = self.numbers.take(self.end)?;
        if !self.keep_at(number) {
            self.end = number;
            return None;
        }
        Some(self.copied((number, self.said), self.share()))
    }

    fn has_room(&self) -> bool {
        let memory = self.machine.store.data().limits.memory_bytes;
        memory <= self.machine.program.limits.memory_bytes_max as usize / 2
    }

    /// Bytes that a copy takes.
    fn share(&self) -> usize {
        let grown = self.machine.store.data().limits.memory_bytes.saturating_sub(self.bytes);
        SAVED_BYTES + grown / self.numbers.count()
    }

    /// The copy that has this number, as others have it, and takes so many bytes.
    fn copied(&self, (number, said): (u32, Option<u128>), share: usize) -> Snapshot {
        let copied = Copied { number, said, of: self.numbers.clone(), _held: Held::new(share) };
        Snapshot(self.nothing.clone(), Some(Arc::new(copied)))
    }

    /// As [`Target::successors`](crate::target::Target::successors).
    pub(super) fn successors(
        &mut self,
        from: Option<&Snapshot>,
        alternatives_max: u32,
        found: &mut Successors,
    ) -> Result<bool, Halt> {
        let from = match from {
            Some(from) => {
                from.1.as_ref().filter(|copied| self.has(copied)).map(|copied| (copied.number, copied.said))
            }
            None => self.has_bookmark.then_some((BOOKMARK, self.of_bookmark)),
        };
        let (Some((number, said)), true) = (from, self.driver.is_some() && self.left != Left::Torn) else {
            return Ok(false);
        };
        let end = if self.has_room() { self.end } else { 0 };
        let rules = self.machine.calls.rules.len() as u16;
        let host = self.machine.store.data_mut();
        if !host.tally.mark() {
            return Ok(false);
        }
        host.driven.begin(said, rules, (alternatives_max, end));
        self.driven_share = self.share();
        let is_done = self.drive_from(number) && self.machine.store.data_mut().driven.take(found);
        if self.machine.program.budget.over().is_some() {
            return Err(Halt::Stopped);
        }
        if is_done {
            self.vain = 0;
            return Ok(true);
        }
        self.bound_numbers();
        let host = self.machine.store.data_mut();
        host.tally.back_to_mark();
        if host.driven.forget_known() {
            self.by_state = false;
            self.drive();
            return Ok(false);
        }
        self.vain += 1;
        if self.vain == VAIN_MAX {
            self.driver = None;
        }
        Ok(false)
    }

    /// Where a step came to its end, and its state could not be kept: there is no room for more.
    fn bound_numbers(&mut self) {
        let is_moving = phase(&mut self.machine.store) == MOVES;
        let number = self.machine.store.data().driven.last_number();
        if let Some(number) = number.filter(|number| is_moving && *number != NOWHERE) {
            self.end = self.end.min(number);
        }
    }

    /// Performs all steps from the state with this number; whether they came to their ends.
    fn drive_from(&mut self, mut number: u32) -> bool {
        let mut is_begun = false;
        loop {
            let is_whole = self.ready();
            self.machine.state.begin(&self.machine.program.limits);
            let step = &mut self.machine.store.data_mut().step;
            (step.may_choose, step.state) = (false, None);
            let Some(driver) = &self.driver else { return false };
            let call = |machine: &mut Machine| driver.call(&mut machine.store, (number, is_whole, is_begun));
            let before = self.machine.store.data().driven.performed();
            let called = self.machine.enter(|_| Err(Stop::Crash.into()), call);
            let Err(error) = called else {
                // Where the last of them was rejected nothing was loaded, so that the guest is where that left it.
                if is_begun && self.machine.store.data().driven.performed() == before {
                    self.left = Left::Within;
                }
                return true;
            };
            // A reject as a state is loaded, or said, is none of a step.
            let phase = phase(&mut self.machine.store);
            if phase == JUDGES {
                self.machine.store.data_mut().driven.tells();
            }
            let is_in_rule = phase == STEPS;
            let is_rejected = is_in_rule && matches!(error.downcast_ref(), Some(Stop::Reject));
            self.left = if is_rejected { Left::Within } else { Left::Torn };
            let store = &mut self.machine.store;
            let left = left(store);
            if !is_rejected || !store.data_mut().reject_step(left) {
                return false;
            }
            is_begun = true;
            if !self.machine.calls.preconditions.is_empty() {
                number = READY;
            }
        }
    }

    /// As [`Target::successor`](crate::target::Target::successor).
    pub(super) fn successor(&mut self, number: usize) -> Option<Snapshot> {
        if self.left == Left::Torn {
            return None;
        }
        let kept = self.machine.store.data_mut().driven.keep(number)?;
        Some(self.copied(kept, self.driven_share))
    }

    pub(super) fn bookmark(&mut self) -> bool {
        let is_asked = self.left == Left::Nowhere && self.compared_state().is_ok();
        self.has_bookmark = is_asked && self.keep_at(BOOKMARK);
        self.of_bookmark = self.said;
        self.has_bookmark
    }

    pub(super) fn load_bookmark(&mut self) -> bool {
        let is_like = self.has_bookmark && self.load(BOOKMARK) && self.says(self.of_bookmark);
        if !is_like {
            self.left = Left::Torn;
        }
        is_like
    }

    pub(super) fn enabled(&mut self, rules: &mut Vec<u16>) -> Result<(), Halt> {
        if self.left == Left::Torn {
            return Err(Halt::Fail(Box::new(cannot_copy())));
        }
        let enabled = self.machine.enabled(rules);
        if enabled.is_err() {
            self.left = Left::Torn;
        }
        enabled
    }

    pub(super) fn step(&mut self, action: Action, chooser: &mut Chooser) -> Outcome {
        if self.left == Left::Torn {
            return Outcome::Fail(Box::new(cannot_copy()));
        }
        let outcome = self.machine.step(action, chooser);
        self.said = None;
        self.left = match outcome {
            Outcome::Pass => Left::Nowhere,
            Outcome::Reject(_) => Left::Within,
            Outcome::Fail(_) | Outcome::Exit | Outcome::Stopped => Left::Torn,
        };
        outcome
    }

    pub(super) fn compared_state(&mut self) -> Result<Option<u128>, Halt> {
        let said = self.machine.state_in_place();
        match &said {
            Ok(Some(state)) => self.said = Some(*state),
            // Of such a state only the memory tells all.
            Ok(None) => return Err(Halt::Fail(Box::new(cannot_copy()))),
            Err(_) => self.left = Left::Torn,
        }
        said
    }

    /// As [`Target::doubt`](crate::target::Target::doubt).
    pub(super) fn doubt(&mut self) -> Option<Doubt> {
        let mut shares = false;
        if self.left != Left::Torn {
            if self.left == Left::Within {
                self.machine.state.load_globals(&mut self.machine.store, &self.machine.root.0);
            }
            self.call(|calls, store| {
                let call = calls.shares.as_ref().map_or(Ok(0), |call| call.call(store, ()));
                call.map(|said| shares = said != 0)
            });
        }
        let met = &mut self.machine.store.data_mut().tally.met;
        if shares { Some(Doubt::Shares) } else { met.is_more().then_some(Doubt::Met) }
    }

    /// As [`Target::has_met_alike`](crate::target::Target::has_met_alike), beside the machine that does as usual.
    pub(super) fn has_met_alike(&self, usual: &Machine) -> bool {
        self.machine.store.data().tally.met.is_among(&usual.store.data().tally.met)
    }

    /// The instance, of which what it last did is asked.
    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(super) fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }
}

/// What is never told: a check that meets it does without copies.
fn cannot_copy() -> Failure {
    Failure::new(FailureKind::Abi, "the state cannot be copied")
}

impl Machine {
    /// As [`Target::begin_copies`](crate::target::Target::begin_copies).
    pub(super) fn begin_to_copy(&mut self) -> bool {
        self.copies = Copies::of(self).map(Box::new);
        let counts = self.store.data().tally.counts;
        if let Some(copies) = &mut self.copies {
            copies.machine.set_counts(counts);
            self.set_counts_alone(false);
        }
        self.copies.is_some()
    }

    pub(super) fn set_counts_alone(&mut self, counts: bool) {
        self.store.data_mut().tally.counts = counts;
    }

    /// The instance that copies, where steps are done there.
    pub(super) fn copying(&mut self) -> Option<&mut Copies> {
        self.copies.as_deref_mut().filter(|copies| copies.is_on)
    }

    pub(super) fn is_in_copies(&self) -> Option<&Copies> {
        self.copies.as_deref().filter(|copies| copies.is_on)
    }

    pub(super) fn has_copy(&self, snapshot: &Snapshot) -> bool {
        match (&snapshot.1, self.is_in_copies()) {
            (Some(copied), Some(copies)) => copies.has(copied),
            (copied, copies) => copied.is_none() && copies.is_none(),
        }
    }
}
