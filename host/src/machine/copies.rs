//! States that the guest copies by itself: a harness in Rust that is `Clone` and that says what it holds.
//!
//! A second instance does the steps of a check. What the guest holds is copied by the guest, in that one memory, by number: nothing of
//! the memory is compared, hashed or saved, and no page goes back and forth. What a copy leaves out, and what the guest keeps beside what
//! it holds, would make this wrong. So a check goes to some of these states as usual too, by the steps to them from the start, and nothing
//! that fails here counts unless it fails so.

use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::{Instance, Store, TypedFunc};

use super::Machine;
use super::host::Host;
use super::pages::Held;
use super::saved::{Saved, Snapshot};
use super::sections::StateSays;
use crate::choice::Chooser;
use crate::outcome::{Failure, FailureKind, Halt, Outcome};
use crate::target::Target as _;
use crate::trace::Action;

/// The state before setup, and that of [`Target::bookmark`](crate::target::Target::bookmark), by their numbers. Those of snapshots follow.
const ROOT: u32 = 0;
const BOOKMARK: u32 = 1;
const FIRST: u32 = 2;

/// The exports that copy.
pub(super) struct CopyCalls {
    keep: TypedFunc<u32, ()>,
    load: TypedFunc<(u32, u32), ()>,
}

impl CopyCalls {
    /// Those of a guest that says that it has them.
    pub(super) fn of(instance: Instance, store: &mut Store<Host>) -> Option<CopyCalls> {
        let keep = instance.get_typed_func(&mut *store, "copy_keep").ok()?;
        let load = instance.get_typed_func(&mut *store, "copy_load").ok()?;
        Some(CopyCalls { keep, load })
    }
}

/// An instance that does so, and what there is in its memory.
pub(super) struct Copies {
    machine: Machine,
    numbers: Arc<Numbers>,
    /// Steps are done here.
    pub(super) is_on: bool,
    left: Left,
    has_bookmark: bool,
    /// The guest has no room for a copy with this number.
    end: u32,
    /// Bytes of the memory of the instance, which count as saved.
    bytes: usize,
    _held: Held,
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

/// Numbers of copies.
struct Numbers(Mutex<(u32, Vec<u32>)>);

impl Numbers {
    fn new() -> Arc<Numbers> {
        Arc::new(Numbers(Mutex::new((FIRST, Vec::new()))))
    }

    /// One below `end` that nobody has.
    fn take(&self, end: u32) -> Option<u32> {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.1.pop().or_else(|| {
            let next = numbers.0;
            numbers.0 += u32::from(next < end);
            (next < end).then_some(next)
        })
    }
}

/// A copy in the memory of an instance, which takes its place again once nobody has it.
pub(super) struct Copied {
    number: u32,
    of: Arc<Numbers>,
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.of.0.lock().unwrap_or_else(PoisonError::into_inner).1.push(self.number);
    }
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
        let numbers = Numbers::new();
        let mut copies = Copies {
            machine,
            numbers,
            is_on: true,
            left: Left::Nowhere,
            has_bookmark: false,
            end: u32::MAX,
            bytes: 0,
            _held: Held::new(0),
        };
        copies.keep_at(ROOT).then_some(copies)
    }

    /// Calls the guest beside a step; whether that came to its end.
    fn call(&mut self, f: impl FnOnce(&CopyCalls, &mut Store<Host>) -> wasmtime::Result<()>) -> bool {
        self.machine.state.begin(&self.machine.program.limits);
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
        let is_whole = self.left == Left::Nowhere;
        if !is_whole {
            // Where the guest was, its stack was deeper.
            self.machine.state.load_globals(&mut self.machine.store, &self.machine.root.0);
        }
        self.left = Left::Nowhere;
        self.call(|calls, store| calls.load.call(store, (number, u32::from(is_whole))))
    }

    /// Begins anew where nothing in memory can be relied on: all copies are lost.
    fn mend(&mut self) {
        if self.left != Left::Torn {
            return;
        }
        let Ok(mut fresh) = Machine::new(self.machine.program.clone()) else { return };
        std::mem::swap(&mut fresh.store.data_mut().tally, &mut self.machine.store.data_mut().tally);
        self.machine = fresh;
        (self.left, self.numbers, self.has_bookmark) = (Left::Nowhere, Numbers::new(), false);
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
        match self.has(copied) {
            true => drop(self.load(copied.number)),
            false => self.left = Left::Torn,
        }
    }

    /// A copy of the state; none where there is no room for more.
    pub(super) fn snapshot(&mut self) -> Option<Snapshot> {
        let memory = self.machine.store.data().limits.memory_bytes;
        if memory > self.bytes {
            (self.bytes, self._held) = (memory, Held::new(memory));
        }
        if self.left != Left::Nowhere || memory > self.machine.program.limits.memory_bytes_max as usize / 2 {
            return None;
        }
        let copied = Copied { number: self.numbers.take(self.end)?, of: self.numbers.clone() };
        if !self.keep_at(copied.number) {
            self.end = copied.number;
            return None;
        }
        Some(Snapshot(Arc::new(Saved::copied(copied))))
    }

    pub(super) fn bookmark(&mut self) -> bool {
        self.has_bookmark = self.left == Left::Nowhere && self.keep_at(BOOKMARK);
        self.has_bookmark
    }

    pub(super) fn load_bookmark(&mut self) -> bool {
        self.has_bookmark && self.load(BOOKMARK)
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
            Ok(Some(_)) => {}
            // Of such a state only the memory tells all.
            Ok(None) => return Err(Halt::Fail(Box::new(cannot_copy()))),
            Err(_) => self.left = Left::Torn,
        }
        said
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

    /// The instance that copies, where steps are done there.
    pub(super) fn copying(&mut self) -> Option<&mut Copies> {
        self.copies.as_deref_mut().filter(|copies| copies.is_on)
    }

    pub(super) fn is_in_copies(&self) -> Option<&Copies> {
        self.copies.as_deref().filter(|copies| copies.is_on)
    }

    pub(super) fn has_copy(&self, snapshot: &Snapshot) -> bool {
        match (&snapshot.0.copied, self.is_in_copies()) {
            (Some(copied), Some(copies)) => copies.has(copied),
            (copied, copies) => copied.is_none() && copies.is_none(),
        }
    }
}
