//! Everything of an instance that a step can change: saved, restored and hashed.

mod aside;
mod budgets;
mod hashes;
mod memory;

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use spelunk_instrumenter::{GlobalLayout, SUSPEND_BYTES, StateLayout};
use wasmtime::{FuncType, Global, Instance, Memory, Ref, Store, Table};

use super::Limits;
use super::copies::Inside;
use super::data::Data;
use super::functions::Functions;
use super::host::{Host, Private};
use super::memory::{Memories, View};
use super::memory_error::MemoryError;
use super::pages;
use super::pointer;
use super::saved::{GlobalValue, Saved, SavedTable, Snapshot};
use super::scan;
use crate::coverage::FeatureSet;
pub(super) use aside::Aside;
use memory::TargetMemory;

/// Who spent the budget of a call.
pub(super) enum Spent {
    ByGuest,
    ByWatchdog,
}

/// Bytes of what the sanitizer notes.
const RECORD_BYTES: usize = 16;

/// The handles to all of an instance's state.
pub(super) struct State {
    layout: StateLayout,
    /// The instrumenter's own memory: counters, budget, marks.
    private: Option<View>,
    memories: Vec<TargetMemory>,
    globals: Vec<Global>,
    tables: Vec<Table>,
    functions: Functions,
    /// What the globals and tables held when they were last saved or restored.
    resident: Saved,
    /// The guest may have run since its marks were taken and its globals read.
    is_stale: bool,
    /// The values of the globals when they were last read, saved or restored.
    values: Vec<GlobalValue>,
    /// The bits of the one global, where the guest told them in the last step.
    told: Option<i64>,
    /// Scratch: what a hash is made of.
    parts: Vec<u8>,
    /// There may be counters that are not zero.
    has_counts: bool,
    /// What preconditions enter counts too, and what is executed before the first step.
    pub(super) keeps_counts: bool,
    /// In a large module the counters that each mark of functions that were entered stands for.
    entered: Vec<Range<u32>>,
    /// Scratch: the marks that are set.
    marked: Vec<u32>,
}

impl State {
    /// Finds the state of a fresh instance. Of its memories only what the data segments and the start function wrote is
    /// looked at: the rest is zeros, and reading would make it take room.
    ///
    /// # Errors
    /// An export that the layout names and the instance does not have.
    pub(super) fn of(
        layout: &StateLayout,
        entered: &[Range<u32>],
        (mappings, data): (&Memories, &[Data]),
        instance: Instance,
        store: &mut Store<Host>,
    ) -> Result<State> {
        let private = claim_private(layout, mappings, instance, store)?;
        let mut memories = Vec::new();
        for layout in &layout.memories {
            let memory = memory_of(instance, store, &layout.export)?;
            let view = mappings.claim(memory.data_ptr(&*store));
            memories.push(TargetMemory::new(memory, view, layout));
        }
        if let (Some(_), Some(shadow)) = (&layout.sanitizer, memories.last_mut()) {
            shadow.is_shadow = true;
        }
        store.data_mut().guest.memory = memories.first().map(|first| first.memory);
        let mut globals = Vec::new();
        for GlobalLayout { export, .. } in &layout.globals {
            globals.push(instance.get_global(&mut *store, export).ok_or_else(|| lost(export))?);
        }
        let mut tables = Vec::new();
        for table in &layout.tables {
            tables.push(table_of(instance, store, &table.export)?);
        }
        let functions = match &layout.functions {
            Some(name) => Functions::of(table_of(instance, store, name)?, store),
            None => Functions::default(),
        };
        let mut state = State {
            layout: layout.clone(),
            private,
            memories,
            globals,
            tables,
            functions,
            resident: Saved::nothing(),
            is_stale: true,
            values: Vec::new(),
            told: None,
            parts: Vec::new(),
            has_counts: true,
            keeps_counts: false,
            entered: entered.to_vec(),
            marked: Vec::new(),
        };
        state.mark_data(data);
        Ok(state)
    }

    /// A snapshot of no state, to stand where one is needed before the first is taken.
    pub(super) fn nothing(&self) -> Snapshot {
        Snapshot(Arc::new(self.resident.clone()), None)
    }

    /// Has the first save look at what the data segments wrote.
    fn mark_data(&mut self, data: &[Data]) {
        let Some(private) = &mut self.private else { return };
        for Data { memory, range } in data {
            let Some(memory) = self.memories.get(*memory as usize).filter(|memory| !memory.marks.is_empty())
            else {
                continue;
            };
            let pages = memory.view.size() / pages::PAGE;
            let pages = match range {
                Some(range) => range.start as usize / pages::PAGE..(range.end as usize).div_ceil(pages::PAGE),
                None => 0..pages,
            };
            private.bytes()[memory.marks.clone()][pages].fill(1);
        }
        private.bytes()[range(&self.layout.table_marks)].fill(1);
    }

    /// Has the next save or restore look at all of the state, trusting no mark.
    pub(super) fn mark_everything(&mut self) {
        self.is_stale = true;
        let Some(private) = &mut self.private else { return };
        for memory in &mut self.memories {
            // The rest of the marks are of pages that there are none of yet.
            let pages = memory.view.bytes().len() / pages::PAGE;
            let marks = &mut private.bytes()[memory.marks.clone()];
            let marked = pages.min(marks.len());
            marks[..marked].fill(1);
        }
        private.bytes()[range(&self.layout.table_marks)].fill(1);
    }

    /// Learns what the guest changed since that was last learnt.
    fn look(&mut self, store: &mut Store<Host>) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        for memory in &mut self.memories {
            memory.take_dirty(&mut self.private);
        }
        self.values.clear();
        if let (Some(bits), [global]) = (self.told, &self.layout.globals[..]) {
            self.values.extend(pointer::value(global.kind, bits));
            self.told = None;
        }
        for global in &self.globals[self.values.len()..] {
            self.values.push(self.functions.read(global.get(&mut *store), store));
        }
    }

    /// The last call of a step told its one global.
    pub(super) fn tell(&mut self, global: Option<i64>) {
        self.told = global;
    }

    /// The globals of the guest.
    pub(super) fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// Readies the counters and budgets for a step.
    pub(super) fn begin(&mut self, limits: &Limits) {
        (self.is_stale, self.told) = (true, None);
        if self.has_counts {
            self.clear_counts();
        }
        let Some(private) = &mut self.private else { return };
        let bytes = private.bytes();
        for wiped in [&self.layout.resets, &self.layout.compares].map(range) {
            // To fill nothing, or a byte, takes longer than to see that.
            match wiped.len() {
                0 => {}
                1 => bytes[wiped.start] = 0,
                _ => bytes[wiped].fill(0),
            }
        }
        if let Some(at) = self.layout.budget {
            bytes[at as usize..][..8].copy_from_slice(&limits.steps().to_le_bytes());
        }
        self.unwind();
        self.has_counts = true;
    }

    /// Forgets where the last call was in the guest, of which nothing is left.
    pub(super) fn unwind(&mut self) {
        let Some(private) = &mut self.private else { return };
        let bytes = private.bytes();
        if let Some(at) = self.layout.depth {
            bytes[at as usize..][..4].fill(0);
        }
        if let Some(inside) = &self.layout.inside {
            bytes[inside.words.start as usize..inside.words.end as usize].fill(0);
        }
        if let Some(sanitizer) = &self.layout.sanitizer {
            bytes[sanitizer.record as usize..][..RECORD_BYTES].fill(0);
        }
        if let Some(suspend) = self.layout.suspend {
            bytes[suspend as usize..][..SUSPEND_BYTES as usize].fill(0);
        }
    }

    /// The error of memory that ended the last call, where one did.
    pub(super) fn memory_error(&mut self) -> Option<MemoryError> {
        let words = self.private_at::<12>(Some(self.layout.sanitizer.as_ref()?.record))?;
        let [what, address, length] =
            [0, 4, 8].map(|at| u32::from_le_bytes(words[at..at + 4].try_into().expect("four bytes")));
        let [memory, .., shadow] = &mut self.memories[..] else { return None };
        let sanitizer = self.layout.sanitizer.as_ref()?;
        let (memory, shadow) = (memory.view.bytes(), shadow.view.bytes());
        (what != 0).then(|| MemoryError::of((what, address, length), memory, shadow, sanitizer))
    }

    fn clear_counts(&mut self) {
        self.has_counts = false;
        let Some(private) = &mut self.private else { return };
        let bytes = private.bytes();
        if self.keeps_counts {
            // One that pays for steps begins anew, but for one.
            let counters = &mut bytes[range(&self.layout.counters)];
            return counters.iter_mut().for_each(|counter| *counter = (*counter).min(1));
        }
        if self.entered.is_empty() {
            bytes[range(&self.layout.counters)].fill(0);
            return;
        }
        self.marked.clear();
        scan::take(&mut bytes[range(&self.layout.entered)], &mut self.marked);
        for mark in &self.marked {
            let counters = &mut bytes[range(&self.layout.counters)];
            counters[range(&self.entered[*mark as usize])].fill(0);
        }
    }

    /// Puts the edges that were counted since the last call, and that are not in `seen`, into `new`; they are numbered from
    /// `first` on.
    pub(super) fn coverage(&mut self, first: u32, seen: &FeatureSet, new: &mut Vec<u32>) {
        self.has_counts = false;
        let Some(private) = &mut self.private else { return };
        let bytes = private.bytes();
        if self.entered.is_empty() {
            let counters = &mut bytes[range(&self.layout.counters)];
            return if first == 0 {
                seen.take_new(counters, new)
            } else {
                seen.take_some(first, counters, new)
            };
        }
        self.marked.clear();
        scan::take(&mut bytes[range(&self.layout.entered)], &mut self.marked);
        for mark in &self.marked {
            let slots = &self.entered[*mark as usize];
            let counters = &mut bytes[range(&self.layout.counters)];
            seen.take_some(first + slots.start, &mut counters[range(slots)], new);
        }
    }

    /// Bytes of private memory.
    fn private_at<const N: usize>(&mut self, at: Option<u32>) -> Option<[u8; N]> {
        self.private.as_mut()?.bytes()[at? as usize..].first_chunk().copied()
    }

    /// The types of the functions that a reference may stand for, by index.
    pub(super) fn function_types(&self, store: &Store<Host>) -> Vec<FuncType> {
        self.functions.types(store)
    }

    /// Saves the state.
    pub(super) fn save(&mut self, store: &mut Store<Host>) -> Snapshot {
        self.look(store);
        for (index, memory) in self.memories.iter_mut().enumerate() {
            memory.resident.save(index, (memory.view.bytes(), &memory.dirty), &mut memory.blocks);
            memory.dirty.clear();
        }
        let mut saved = Saved::nothing();
        saved.memories = self.memories.iter().map(|memory| memory.resident.clone()).collect();
        self.save_rest(store, &mut saved);
        Snapshot(Arc::new(saved.counted()), None)
    }

    /// Puts all but the memories into `saved`.
    fn save_rest(&mut self, store: &mut Store<Host>, saved: &mut Saved) {
        self.save_tables(store);
        saved.globals.clone_from(&self.values);
        saved.tables.clone_from(&self.resident.tables);
        saved.dropped.clear();
        if let Some(private) = &mut self.private {
            saved.dropped.extend_from_slice(&private.bytes()[range(&self.layout.dropped)]);
        }
        let Host { guest, system, .. } = store.data();
        saved.faults.clone_from(&guest.faults);
        (saved.has_run, saved.monitor, saved.schedule) = (guest.has_run, guest.monitor, guest.schedule);
        saved.pools.clone_from(&guest.pools);
        saved.handles.restore(&guest.handles);
        saved.system.clone_from(system);
    }

    /// Reads the tables that were written into `resident`.
    fn save_tables(&mut self, store: &mut Store<Host>) {
        for (index, table) in self.tables.iter().enumerate() {
            let Some(private) = &mut self.private else { return };
            let mark = &mut private.bytes()[range(&self.layout.table_marks)][index];
            if std::mem::take(mark) == 0 && index < self.resident.tables.len() {
                continue;
            }
            let elements = (0..table.size(&*store)).map(|i| {
                let element = table.get(&mut *store, i).unwrap_or(Ref::Func(None));
                self.functions.name(&element, store)
            });
            self.resident.set_table(index, Arc::new(SavedTable::new(elements.collect())));
        }
    }

    /// Goes to a saved state.
    pub(super) fn load(&mut self, store: &mut Store<Host>, snapshot: &Snapshot) {
        self.look(store);
        self.load_saved(store, &snapshot.0);
    }

    /// As [`State::load`], once it is known what the guest changed.
    fn load_saved(&mut self, store: &mut Store<Host>, saved: &Saved) {
        for (memory, to) in self.memories.iter_mut().zip(&saved.memories) {
            if memory.view.size() != to.size {
                memory.resize(store, to.size);
            }
            to.load(&memory.resident, memory.view.bytes(), &memory.dirty);
            memory.dirty.clear();
            if !memory.resident.is(to) {
                memory.resident = to.clone();
                memory.blocks.clear();
            }
        }
        for ((global, now), to) in self.globals.iter().zip(&mut self.values).zip(&saved.globals) {
            if now != to
                && let Some(value) = self.functions.write(*to)
            {
                global.set(&mut *store, value).expect("the global held a value of this type");
                *now = *to;
            }
        }
        self.load_tables(store, &saved.tables);
        if let Some(private) = &mut self.private
            && !saved.dropped.is_empty()
        {
            private.bytes()[range(&self.layout.dropped)].copy_from_slice(&saved.dropped);
        }
        let host = store.data_mut();
        host.guest.faults.copy_from_slice(&saved.faults);
        host.guest.has_run = saved.has_run;
        host.guest.monitor = saved.monitor;
        host.guest.schedule = saved.schedule;
        host.guest.pools.clone_from(&saved.pools);
        host.guest.handles.restore(&saved.handles);
        if let (Some(system), Some(to)) = (&mut host.system, &saved.system)
            && !system.is(to)
        {
            *system = to.clone();
        }
    }

    /// Sets the globals, and nothing else, to what they were in a saved state.
    pub(super) fn load_globals(&mut self, store: &mut Store<Host>, saved: &Saved) {
        (self.is_stale, self.told) = (true, None);
        for (global, to) in self.globals.iter().zip(&saved.globals) {
            if let Some(value) = self.functions.write(*to) {
                global.set(&mut *store, value).expect("the global held a value of this type");
            }
        }
    }

    /// As [`State::load`], in a step that goes on there.
    pub(super) fn load_within_step(&mut self, store: &mut Store<Host>, snapshot: &Snapshot) {
        self.load(store, snapshot);
        self.is_stale = true;
    }

    fn load_tables(&mut self, store: &mut Store<Host>, saved: &[Arc<SavedTable>]) {
        for (index, (table, to)) in self.tables.iter().zip(saved).enumerate() {
            let Some(private) = &mut self.private else { return };
            let mark = &mut private.bytes()[range(&self.layout.table_marks)][index];
            let is_written = std::mem::take(mark) != 0;
            let resident = self.resident.tables.get(index);
            if !is_written && resident.is_some_and(|resident| Arc::ptr_eq(resident, to)) {
                continue;
            }
            for (i, reference) in (0..).zip(to.iter()) {
                table
                    .set(&mut *store, i, self.functions.element(*reference))
                    .expect("the table held this element");
            }
            self.resident.set_table(index, to.clone());
        }
    }
}

fn range(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Finds the instrumenter's own memory, where there is one, and tells the host of it.
fn claim_private(
    layout: &StateLayout,
    mappings: &Memories,
    instance: Instance,
    store: &mut Store<Host>,
) -> Result<Option<View>> {
    let Some(name) = &layout.private else { return Ok(None) };
    let memory = memory_of(instance, store, name)?;
    let marks = layout.memories.first().map_or(0, |memory| memory.dirty.start);
    store.data_mut().guest.private = Some(Private {
        memory,
        marks,
        budget: layout.budget,
        depth: layout.depth,
        inside: layout.inside.as_ref().map(Inside::of),
    });
    Ok(Some(mappings.claim(memory.data_ptr(&*store))))
}

fn memory_of(instance: Instance, store: &mut Store<Host>, name: &str) -> Result<Memory> {
    instance.get_memory(&mut *store, name).ok_or_else(|| lost(name))
}

fn table_of(instance: Instance, store: &mut Store<Host>, name: &str) -> Result<Table> {
    instance.get_table(&mut *store, name).ok_or_else(|| lost(name))
}

fn lost(name: &str) -> anyhow::Error {
    anyhow!("the instrumented module lost its export `{name}`")
}
