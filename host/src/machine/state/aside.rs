//! A state that is gone back to soon. What differs from the state that was saved or restored last is copied, so it takes less than
//! a snapshot, which makes leaves of page tables anew and counts references to all their pages.

use wasmtime::Store;

use super::State;
use crate::machine::host::Host;
use crate::machine::pages::{PAGE, PageTable};
use crate::machine::saved::Saved;

/// Pages that are copied, of all memories: where more differ, page tables are made anew after all, whose pages are counted.
const PAGES_MAX: usize = 256;

/// One state, in buffers that are used again for the next.
pub(in crate::machine) struct Aside {
    /// All but what differs in memories.
    saved: Saved,
    memories: Vec<Written>,
    /// What the pages that differ hold, one after the other.
    bytes: Vec<u8>,
}

/// What a memory holds beside the pages in [`Saved`].
#[derive(Default)]
struct Written {
    /// Bytes in the memory.
    size: usize,
    /// The pages that differ, in order.
    dirty: Vec<u32>,
}

impl Aside {
    /// One that holds no state yet.
    pub(in crate::machine) fn nothing() -> Aside {
        Aside { saved: Saved::nothing(), memories: Vec::new(), bytes: Vec::new() }
    }

    /// Lets go of the pages that it shares with others.
    pub(in crate::machine) fn forget(&mut self) {
        self.saved.memories.clear();
    }
}

impl State {
    /// Puts a copy of the state into `aside`.
    pub(in crate::machine) fn set_aside(&mut self, store: &mut Store<Host>, aside: &mut Aside) {
        self.look(store);
        aside.bytes.clear();
        aside.memories.resize_with(self.memories.len(), Written::default);
        aside.saved.memories.resize_with(self.memories.len(), || PageTable::zeros(0));
        let copies = aside.memories.iter_mut().zip(&mut aside.saved.memories);
        for (index, (memory, (written, table))) in self.memories.iter_mut().zip(copies).enumerate() {
            let bytes = memory.view.bytes();
            if aside.bytes.len() / PAGE + memory.dirty.len() > PAGES_MAX {
                memory.resident.save(index, (bytes, &memory.dirty), &mut memory.blocks);
                memory.dirty.clear();
            }
            if !table.is(&memory.resident) {
                table.clone_from(&memory.resident);
            }
            written.size = bytes.len();
            written.dirty.clone_from(&memory.dirty);
            for page in &memory.dirty {
                aside.bytes.extend_from_slice(&bytes[*page as usize * PAGE..][..PAGE]);
            }
        }
        self.save_rest(store, &mut aside.saved);
    }

    /// Goes back to a state that was set aside, from whatever came after it.
    pub(in crate::machine) fn put_back(&mut self, store: &mut Store<Host>, aside: &Aside) {
        self.look(store);
        for ((memory, written), table) in
            self.memories.iter_mut().zip(&aside.memories).zip(&aside.saved.memories)
        {
            // What is written over below need not be loaded before.
            if memory.view.size() == written.size && table.size == written.size {
                memory.dirty.retain(|page| written.dirty.binary_search(page).is_err());
            }
        }
        self.load_saved(store, &aside.saved);
        let mut pages = aside.bytes.as_chunks::<PAGE>().0.iter();
        for (memory, written) in self.memories.iter_mut().zip(&aside.memories) {
            if memory.view.size() != written.size {
                memory.resize(store, written.size);
            }
            let bytes = memory.view.bytes();
            for (page, held) in written.dirty.iter().zip(&mut pages) {
                // The host may have had no room for it, which ends the job.
                if let Some(bytes) = bytes.get_mut(*page as usize * PAGE..(*page as usize + 1) * PAGE) {
                    bytes.copy_from_slice(held);
                }
            }
            memory.dirty.clone_from(&written.dirty);
        }
    }
}
