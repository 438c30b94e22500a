//! What of a state can still matter, as a hash, and as bytes.

use std::ops::Range;

use wasmtime::Store;

use super::{GlobalValue, State, range};
use crate::machine::host::Host;
use crate::machine::pages::Hashing;
use crate::machine::saved::digest;
use crate::machine::stack::ShadowStack;
use crate::target::Contents;

impl State {
    /// A hash of what of the state can still matter: all but what is left over on the shadow stack. Nothing is
    /// saved for it, since the hash may be all that is wanted.
    pub(in crate::machine) fn live_hash(
        &mut self,
        store: &mut Store<Host>,
        stack: Option<ShadowStack>,
        hashing: Hashing,
    ) -> u128 {
        self.look(store);
        let dead = self.unused(stack);
        self.hash_from(store, (0, dead), hashing)
    }

    /// Memory 0, what of it is left over on the shadow stack, and a hash of all else.
    pub(in crate::machine) fn contents(
        &mut self,
        store: &mut Store<Host>,
        stack: Option<ShadowStack>,
    ) -> Option<Contents<'_>> {
        self.look(store);
        let unused = self.unused(stack);
        let beside = self.hash_from(store, (1, 0..0), Hashing::Portable);
        Some(Contents { bytes: self.memories.first_mut()?.view.bytes(), unused, beside })
    }

    /// What is left over on the shadow stack.
    fn unused(&self, stack: Option<ShadowStack>) -> Range<usize> {
        let dead = stack.and_then(|stack| {
            let global = self.layout.globals.iter().position(|global| global.index == stack.global)?;
            match self.values[global] {
                GlobalValue::I32(pointer) => Some(stack.dead(pointer as u32)),
                _ => None,
            }
        });
        dead.unwrap_or(0..0)
    }

    /// A hash of all but memories before the first of these, and what of memory 0 is dead.
    fn hash_from(
        &mut self,
        store: &mut Store<Host>,
        (first, dead): (usize, Range<usize>),
        hashing: Hashing,
    ) -> u128 {
        self.save_tables(store);
        self.parts.clear();
        for (index, memory) in self.memories.iter_mut().enumerate().skip(first) {
            let dead = if index == 0 { &dead } else { &(0..0) };
            let changed = (&*memory.view.bytes(), &memory.dirty[..]);
            let hash = memory.resident.hash_with(index, dead, changed, &mut memory.blocks, hashing);
            self.parts.extend(hash.to_le_bytes());
        }
        let dropped = self.private.as_mut().map(|private| &private.bytes()[range(&self.layout.dropped)]);
        let guest = &store.data().guest;
        let flags = (dropped.unwrap_or_default(), &guest.faults[..], guest.has_run);
        if let Some(system) = &store.data().system {
            self.parts.extend(system.hash(hashing).to_le_bytes());
        }
        guest.pools.push_to(&mut self.parts);
        guest.handles.push_to(&mut self.parts);
        digest(&mut self.parts, &self.values, &self.resident.tables, flags, hashing)
    }
}
