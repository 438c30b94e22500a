//! The machine: a guest that can be stepped, saved and restored in place. Only this module names wasmtime.
//!
//! The one thing that is not obvious: a machine is never re-instantiated while it explores. Restoring copies
//! the pages that were written since, which the instrumented guest marks, and sets back what else it could
//! change. Where a module can change what cannot be set back (see [`Program::obstacles`]), there are no
//! snapshots, [`Target::reset`] instantiates anew, and the search replays instead.

mod addresses;
mod against;
mod cache;
mod calls;
mod compile;
mod component;
mod content;
mod copies;
mod data;
mod elsewhere;
mod emscripten;
mod enabled;
mod entered;
mod exports;
mod failure;
mod faults;
mod fresh;
mod functions;
mod heap;
mod host;
mod imports;
mod input;
mod keyed;
mod lens;
mod link;
mod listing;
mod live;
mod looking;
mod memory;
mod memory_error;
mod operations;
mod pages;
mod pointer;
mod portable;
mod preview1;
mod preview2;
mod program;
mod said;
mod saved;
mod scan;
mod schedule;
mod sections;
mod signed;
mod spelling;
mod stack;
mod state;
mod step;
mod suspend;
mod system;
mod tally;
mod telling;
mod texts;
mod thread;
mod toolchains;
mod touched;
mod warnings;
mod watchdog;
mod world;

use std::sync::Arc;

use anyhow::Result;
use wasmtime::Store;

use crate::choice::{Choice, Chooser};
use crate::compare::{Compare, Place};
use crate::coverage::FeatureSet;
use crate::outcome::{Halt, Outcome};
use crate::property::Counts;
use crate::target::{Contents, Doubt, Fairness, Holds, Liveness, Rule, Scores, Successors, Target};
use crate::trace::Action;
use against::Second;
use calls::Calls;
use content::Content;
use copies::Copies;
use fresh::Fresh;
use host::Host;
use lens::Lens;
use pages::Hashing;
use state::{Aside, State};
use tally::Tally;
use thread::{STACK_BYTES, STACK_MARGIN, THREAD_STACK_BYTES};
use watchdog::Watched;

pub use sections::{Compares, harness_of};

pub use crate::file::{Edges, Limits, Sanitizer, Selection, StubImports};
pub(crate) use against::leaves_of;
pub use cache::{Cache, data_of_user, ensure_own_folder, identity, key_of_user};
pub use compile::{engine, instrument, instrument_within};
pub(crate) use component::is_component;
pub use elsewhere::{Elsewhere, saved_bytes};
pub(crate) use emscripten::names::is_allocator;
pub use host::Told;
pub use keyed::{adopt_seed, seed};
pub use listing::Listing;
pub use looking::{Difference, Global, MemoryType};
pub use memory::ignore_file_size_signal;
pub use pages::PAGE;
pub(crate) use portable::pages_of;
pub use portable::{Blobs, PART_MAX, Reader};
pub use program::Program;
pub use saved::{GlobalValue, Snapshot};
pub(crate) use signed::has_room;
pub(crate) use spelling::{has_meaning, is_rule, is_spelled};
pub use telling::LABEL_BYTES_MAX;
pub use thread::on_guest_stack;
pub(crate) use touched::Touched;
pub use warnings::{Warning, WarningKind};

/// A running guest.
pub struct Machine {
    program: Arc<Program>,
    store: Store<Host>,
    state: State,
    calls: Calls,
    /// The state before setup.
    root: Snapshot,
    uses_snapshots: bool,
    watched: Arc<Watched>,
    /// The guest could not be instantiated anew; it has no state to go on from.
    lost: Option<Halt>,
    /// Where [`Target::to_bookmark`] goes to.
    bookmark: Aside,
    /// What the guest said its state is.
    content: Content,
    /// The guest that this one is compared with.
    second: Option<Box<Second>>,
    /// The second build of the guest, once somebody asked for it, where there is one.
    lens: Option<Option<Box<Machine>>>,
    /// Where states are to be had that were saved by other processes.
    elsewhere: Option<Arc<dyn Elsewhere>>,
    /// The instance in which the guest copies its states, where a check wants that.
    copies: Option<Box<Copies>>,
}

impl Machine {
    /// Instantiates the program.
    ///
    /// # Errors
    /// Imports that are not provided; a module that traps while it is instantiated.
    pub fn new(program: Arc<Program>) -> Result<Machine> {
        let watched = Watched::of(&program)?;
        let Fresh { store, state, calls } = Fresh::new(&program, &watched)?;
        let (root, uses_snapshots) = (state.nothing(), program.obstacles().is_empty());
        let second =
            program.against.as_ref().map(|other| Second::of(&other.program).map(Box::new)).transpose()?;
        let mut machine = Machine {
            root,
            program,
            store,
            state,
            calls,
            uses_snapshots,
            watched,
            lost: None,
            elsewhere: None,
            bookmark: Aside::nothing(),
            content: Content::default(),
            second,
            lens: None,
            copies: None,
        };
        machine.store.data_mut().tally = Tally::new(&machine.program.properties);
        machine.root = machine.state.save(&mut machine.store);
        Ok(machine)
    }

    /// The program it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The state, as snapshots hold it.
    fn saved(&mut self) -> Snapshot {
        let snapshot = self.state.save(&mut self.store);
        self.with_second(snapshot)
    }
}

impl Target for Machine {
    type Snapshot = Snapshot;

    fn rules(&self) -> &[Rule] {
        &self.program.exports.rules
    }

    fn faults(&self) -> &[String] {
        &self.program.exports.faults
    }

    fn has_setup(&self) -> bool {
        self.program.exports.has_setup()
    }

    fn implies_setup(&self) -> bool {
        self.program.exports.implies_setup()
    }

    fn has_teardown(&self) -> bool {
        !self.program.exports.teardown.is_empty()
    }

    fn is_function(&self) -> bool {
        self.program.exports.is_function
    }

    fn reset(&mut self) {
        if let Some(copies) = self.copying() {
            return copies.reset();
        }
        self.store.data_mut().step.reports.forget();
        if let Some(second) = &mut self.second {
            second.machine.reset();
        }
        if self.uses_snapshots {
            return self.state.load(&mut self.store, &self.root);
        }
        let fresh = match Fresh::new(&self.program, &self.watched) {
            Ok(fresh) => fresh,
            // It was instantiated before, so it is not the module that is to blame, but time or this machine.
            Err(error) => {
                self.lost = Some(failure::of_restart(&self.program, &error));
                return;
            }
        };
        self.lost = None;
        let before = std::mem::take(self.store.data_mut());
        Fresh { store: self.store, state: self.state, calls: self.calls } = fresh;
        let host = self.store.data_mut();
        // What was seen so far, and the bound on it, is not part of the state.
        host.tally = before.tally;
        host.guest.bound = before.guest.bound;
        (host.step.scores, host.step.observed) = (before.step.scores, before.step.observed);
    }

    fn enabled(&mut self, rules: &mut Vec<u16>) -> Result<(), Halt> {
        if let Some(copies) = self.copying() {
            return copies.enabled(rules);
        }
        let found = self.enabled_alone(rules);
        self.enabled_in_both(found, rules)
    }

    fn step(&mut self, action: Action, chooser: &mut Chooser) -> Outcome {
        if let Some(copies) = self.copying() {
            return copies.step(action, chooser);
        }
        match action {
            Action::Loop => return self.begin_loop(),
            Action::Again(number) => return self.end_loop(number),
            _ => {}
        }
        let step = &mut self.store.data_mut().step;
        std::mem::swap(chooser, &mut step.chooser);
        step.begin();
        let outcome = self.enter(Outcome::from, |machine| machine.perform(action));
        std::mem::swap(chooser, &mut self.store.data_mut().step.chooser);
        self.see();
        self.follow(action, chooser, outcome)
    }

    fn set_counts(&mut self, counts: bool) {
        match self.copying() {
            Some(copies) => copies.machine_mut().set_counts(counts),
            None => self.set_counts_alone(counts),
        }
    }

    fn begin_copies(&mut self) -> bool {
        self.begin_to_copy()
    }

    fn end_copies(&mut self) {
        self.copies = None;
    }

    fn is_copying(&self) -> bool {
        self.is_in_copies().is_some()
    }

    fn set_copying(&mut self, copies: bool) {
        self.copies.iter_mut().for_each(|of| of.is_on = copies);
    }

    fn doubt(&mut self) -> Option<Doubt> {
        self.copying()?.doubt()
    }

    fn has_met_alike(&self) -> bool {
        self.copies.as_ref().is_none_or(|copies| copies.has_met_alike(self))
    }

    fn has(&self, snapshot: &Snapshot) -> bool {
        self.has_copy(snapshot)
    }

    fn successors(
        &mut self,
        from: Option<&Snapshot>,
        max: u32,
        found: &mut Successors,
    ) -> Result<bool, Halt> {
        self.copying().map_or(Ok(false), |copies| copies.successors(from, max, found))
    }

    fn successor(&mut self, number: usize) -> Option<Snapshot> {
        self.copying()?.successor(number)
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        if let Some(copies) = self.copying() {
            return copies.snapshot();
        }
        self.uses_snapshots.then(|| self.saved())
    }

    fn restore(&mut self, snapshot: &Snapshot) {
        if let (Some(copied), Some(copies)) = (&snapshot.1, self.copying()) {
            return copies.restore(copied);
        }
        self.store.data_mut().step.reports.forget();
        self.state.load(&mut self.store, snapshot);
        if let (Some(second), Some(other)) = (&mut self.second, &snapshot.0.against) {
            second.machine.restore(other);
        }
    }

    fn recall(&mut self, state: u128) -> bool {
        let elsewhere = self.elsewhere.as_ref().filter(|_| self.uses_snapshots && self.second.is_none());
        let Some(snapshot) = elsewhere.and_then(|elsewhere| elsewhere.state(state)) else { return false };
        self.restore(&snapshot);
        // Whoever saved it may not have told the truth.
        self.live_state() == Some(state)
    }

    fn bookmark(&mut self) -> bool {
        if let Some(copies) = self.copying() {
            return copies.bookmark();
        }
        if !self.uses_snapshots {
            return false;
        }
        self.state.set_aside(&mut self.store, &mut self.bookmark);
        self.second.as_mut().is_none_or(|second| second.machine.bookmark())
    }

    fn to_bookmark(&mut self) -> bool {
        if let Some(copies) = self.copying() {
            return copies.load_bookmark();
        }
        self.store.data_mut().step.reports.forget();
        self.state.put_back(&mut self.store, &self.bookmark);
        self.second.as_mut().is_none_or(|second| second.machine.to_bookmark())
    }

    fn coverage(&mut self, seen: &FeatureSet, new: &mut Vec<u32>) {
        self.state.coverage(0, seen, new);
        if let Some(second) = &mut self.second {
            second.machine.state.coverage(self.program.counters(), seen, new);
        }
        self.store.data_mut().step.observed.take_new(seen, new);
    }

    fn looks_from(&self) -> Option<u64> {
        self.program.lens.as_ref().map(Lens::from)
    }

    fn work(&mut self) -> u64 {
        if let Some(copies) = self.copying() {
            return copies.machine_mut().work();
        }
        self.state.work(&self.program.limits)
    }

    fn lens(&mut self) -> Option<&mut Machine> {
        self.second_build()
    }

    fn compared(&mut self) -> Vec<(Place, Compare)> {
        self.store.data_mut().step.reports.compared()
    }

    fn shown(&mut self, choices: &[Choice], features: &mut Vec<u32>) {
        let Program { stack, exports, .. } = &*self.program;
        let reports = &mut self.store.data_mut().step.reports;
        lens::show(reports, choices, (exports.is_function, *stack), features);
    }

    fn scores(&mut self, best: &Scores, risen: &mut Vec<(u64, f64)>) {
        self.store.data_mut().step.take_scores(best, risen);
    }

    fn is_over(&self) -> bool {
        self.program.budget.is_over()
    }

    fn is_cut(&self) -> bool {
        self.is_full()
    }

    fn texts(&self) -> Arc<[Arc<[u8]>]> {
        self.program.texts.clone()
    }

    fn declared(&self) -> Counts {
        self.program.declared()
    }

    fn take_counts(&mut self) -> Option<Box<Counts>> {
        if let Some(copies) = self.copying() {
            return copies.machine_mut().take_counts();
        }
        self.store.data_mut().tally.take()
    }

    fn state(&mut self) -> u128 {
        self.saved().hash()
    }

    fn live_state(&mut self) -> Option<u128> {
        let hash = self.live_hash(Hashing::Portable);
        let of_other = |other: &mut Machine| Ok(other.live_state());
        self.hash_of_both(hash, Hashing::Portable, of_other).ok().flatten()
    }

    fn compared_state(&mut self) -> Result<Option<u128>, Halt> {
        if let Some(copies) = self.copying() {
            return copies.compared_state();
        }
        let said = if self.says_state() { self.said()? } else { None };
        let hash = said.or_else(|| self.live_hash(Hashing::Keyed)).map(|hash| self.scheduled(hash));
        self.hash_of_both(hash, Hashing::Keyed, Machine::compared_state)
    }

    fn says_state(&self) -> bool {
        self.calls.state.is_some() && self.program.obstacles().is_empty()
    }

    fn contents(&mut self) -> Option<Contents<'_>> {
        // Of two guests, the other is not looked at.
        let is_alone = self.second.is_none() && self.program.obstacles().is_empty();
        if is_alone { self.state.contents(&mut self.store, self.program.stack) } else { None }
    }

    fn is_independent(&self, a: u16, b: u16) -> bool {
        let is_so = self.program.independent.contains(&(a.min(b), a.max(b)));
        is_so && self.second.as_ref().is_none_or(|second| second.machine.is_independent(a, b))
    }

    fn has_fault(&self, fault: u16) -> Option<bool> {
        let faults = &self.store.data().guest.faults;
        if self.is_in_copies().is_some() { None } else { faults.get(usize::from(fault)).copied() }
    }

    fn liveness(&self) -> &[Liveness] {
        &self.program.liveness
    }

    fn holds(&self) -> Holds {
        if let Some(copies) = self.is_in_copies() {
            return copies.machine().holds();
        }
        self.store.data().step.holds
    }

    fn way(&self) -> Option<u64> {
        if let Some(copies) = self.is_in_copies() {
            return copies.machine().way();
        }
        self.store.data().step.way
    }

    fn fairness(&self, rule: u16) -> (Fairness, bool) {
        self.program.fairness.get(&rule).copied().unwrap_or_default()
    }

    fn saved_bytes(&self) -> usize {
        pages::saved_bytes()
    }

    fn stack_bytes(&self) -> Option<usize> {
        Some(THREAD_STACK_BYTES)
    }
}
