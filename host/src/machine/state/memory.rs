//! A memory of the target, between steps.

use std::ops::Range;

use spelunk_instrumenter::MemoryLayout;
use wasmtime::{Memory, Store};

use super::range;
use crate::machine::host::Host;
use crate::machine::memory::{EXHAUSTED, View};
use crate::machine::pages::{self, Blocks, PageTable};

/// A memory of the target.
pub(super) struct TargetMemory {
    pub(super) memory: Memory,
    pub(super) view: View,
    /// Its marks in the private memory.
    pub(super) marks: Range<usize>,
    pub(super) is_64: bool,
    /// It is the shadow of memory 0, which does not count as the guest's.
    pub(super) is_shadow: bool,
    /// What it held when it was last saved or restored.
    pub(super) resident: PageTable,
    /// Pages that were written since, of those whose marks have been taken.
    pub(super) dirty: Vec<u32>,
    /// Scratch: pages that are taken away.
    pub(super) stale: Vec<u32>,
    /// Hashes of blocks of `resident`.
    pub(super) blocks: Blocks,
}

impl TargetMemory {
    pub(super) fn new(memory: Memory, view: View, layout: &MemoryLayout) -> TargetMemory {
        TargetMemory {
            memory,
            view,
            marks: range(&layout.dirty),
            is_64: layout.memory64,
            is_shadow: false,
            resident: PageTable::zeros(0),
            dirty: Vec::new(),
            stale: Vec::new(),
            blocks: Blocks::default(),
        }
    }

    /// Takes the marks.
    pub(super) fn take_dirty(&mut self, private: &mut Option<View>) {
        let private = private.as_mut().expect("marks need a private memory");
        let marks = &mut private.bytes()[self.marks.clone()];
        pages::take_dirty(marks, self.view.bytes(), &self.resident, &mut self.dirty);
    }

    /// Sets the size in bytes. Bytes that are added are zero. The marks have been taken.
    pub(super) fn resize(&mut self, store: &mut Store<Host>, size: usize) {
        let first = (size / pages::PAGE) as u32;
        let beyond = self.dirty.partition_point(|page| *page < first);
        self.stale.clear();
        self.stale.extend(self.dirty.drain(beyond..));
        self.stale.extend(self.resident.pages_from(first as usize));
        let before = self.view.size();
        let resized = self.view.resize(size, &self.stale, pages::PAGE);
        if let Err(error) = resized {
            // It had this size before, so it is the host that has no room. The machine is not used any more.
            store.data().budget.exhaust(format!("{EXHAUSTED}: {error}"));
            return;
        }
        let limits = &mut store.data_mut().limits;
        if !self.is_shadow {
            limits.memory_bytes = (limits.memory_bytes + size).saturating_sub(before);
        }
        // The engine reads the size anew when the memory grows, even by nothing.
        self.memory.grow(&mut *store, 0).expect("growing by nothing is within every limit");
        debug_assert!(self.is_64 || size <= 1 << 32);
    }
}
