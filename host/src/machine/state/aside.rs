//! A state that is gone back to soon. What differs from the state that was saved or restored last is copied, so it takes less than
//! a snapshot, which makes leaves of page tables anew and counts references to all their pages.

use wasmtime::Store;

use super::State;
use crate::machine::host::Host;
use crate::machine::pages::{PAGE, PageTable};
use crate::machine::saved::Saved;

/// One state, in buffers that are used again for the next.
pub(in crate::machine) struct Aside {
    /// All but what differs in memories.
    saved: Saved,
    memories: Vec<Written>,
}

/// What a memory holds beside the pages in [`Saved`].
#[derive(Default)]
struct Written {
    /// Bytes in the memory.
    size: usize,
    /// The pages that differ, in order, and what they hold.
    dirty: Vec<u32>,
    bytes: Vec<u8>,
}

impl Aside {
    /// One that holds no state yet.
    pub(in crate::machine) fn nothing() -> Aside {
        Aside { saved: Saved::nothing(), memories: Vec::new() }
    }
}

impl State {
    /// Puts a copy of the state into `aside`.
    pub(in crate::machine) fn set_aside(&mut self, store: &mut Store<Host>, aside: &mut Aside) {
        self.look(store);
        aside.memories.resize_with(self.memories.len(), Written::default);
        aside.saved.memories.resize_with(self.memories.len(), || PageTable::zeros(0));
        let copies = aside.memories.iter_mut().zip(&mut aside.saved.memories);
        for (memory, (written, table)) in self.memories.iter_mut().zip(copies) {
            if !table.is(&memory.resident) {
                table.clone_from(&memory.resident);
            }
            let bytes = memory.view.bytes();
            written.size = bytes.len();
            written.dirty.clone_from(&memory.dirty);
            written.bytes.clear();
            for page in &memory.dirty {
                written.bytes.extend_from_slice(&bytes[*page as usize * PAGE..][..PAGE]);
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
        for (memory, written) in self.memories.iter_mut().zip(&aside.memories) {
            if memory.view.size() != written.size {
                memory.resize(store, written.size);
            }
            let bytes = memory.view.bytes();
            for (page, held) in written.dirty.iter().zip(written.bytes.as_chunks::<PAGE>().0) {
                // The host may have had no room for it, which ends the job.
                if let Some(bytes) = bytes.get_mut(*page as usize * PAGE..(*page as usize + 1) * PAGE) {
                    bytes.copy_from_slice(held);
                }
            }
            memory.dirty.clone_from(&written.dirty);
        }
    }
}
