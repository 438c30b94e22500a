//! What of an instance is saved, and its hash.

use std::sync::Arc;

use anyhow::{Result, bail};
use xxhash_rust::xxh3::xxh3_128;

use super::Machine;
use super::component::Handles;
use super::copies::Copied;
use super::keyed;
use super::live::Monitor;
use super::pages::{Hashing, Held, PageTable};
use super::schedule::Schedule;
use super::signed::Pools;
use super::system::System;

/// A saved state. Cloning is cheap, and so is saving one: it shares all pages that did not change with the
/// state that it came from. Where the guest has the state itself, that is second, and the first is of nothing.
#[derive(Clone)]
pub struct Snapshot(pub(super) Arc<Saved>, pub(super) Option<Arc<Copied>>);

#[derive(Clone)]
pub(super) struct Saved {
    pub(super) memories: Vec<PageTable>,
    pub(super) globals: Vec<GlobalValue>,
    pub(super) tables: Vec<Arc<SavedTable>>,
    pub(super) dropped: Vec<u8>,
    pub(super) faults: Vec<bool>,
    /// The guest is one function, and it was called.
    pub(super) has_run: bool,
    pub(super) monitor: Monitor,
    pub(super) schedule: Schedule,
    /// The virtual system of a guest that imports one.
    pub(super) system: Option<System>,
    /// Handles, of a guest with signatures that name pools.
    pub(super) pools: Pools,
    /// Handles of a component's instances and of the host.
    pub(super) handles: Handles,
    /// The state of the guest that this one is compared with.
    pub(super) against: Option<Snapshot>,
    /// What it holds beside the pages and the tables, which are counted by themselves.
    pub(super) held: Held,
}

impl Saved {
    /// Sets the table with this number, or adds it as the next one: of a machine that ran without snapshots none is known yet.
    pub(super) fn set_table(&mut self, index: usize, table: Arc<SavedTable>) {
        match self.tables.get_mut(index) {
            Some(known) => *known = table,
            None => self.tables.push(table),
        }
    }

    /// The same, and what it holds is counted.
    pub(super) fn counted(mut self) -> Saved {
        let lists =
            size_of_val(&*self.globals) + size_of_val(&*self.tables) + self.dropped.len() + self.faults.len();
        let lists = lists + self.pools.bytes() + self.handles.bytes();
        self.held = Held::new(SAVED_BYTES + lists);
        if let Some(system) = &self.system {
            system.count();
        }
        self
    }

    /// Of no state.
    pub(super) fn nothing() -> Saved {
        Saved {
            memories: Vec::new(),
            globals: Vec::new(),
            tables: Vec::new(),
            dropped: Vec::new(),
            faults: Vec::new(),
            has_run: false,
            monitor: Monitor::default(),
            schedule: Schedule::default(),
            system: None,
            pools: Pools::default(),
            handles: Handles::default(),
            against: None,
            held: Held::new(0),
        }
    }
}

/// What a table holds.
pub(super) struct SavedTable {
    elements: Vec<Reference>,
    _held: Held,
}

impl SavedTable {
    pub(super) fn new(elements: Vec<Reference>) -> SavedTable {
        SavedTable { _held: Held::new(size_of_val(&elements[..])), elements }
    }
}

impl std::ops::Deref for SavedTable {
    type Target = [Reference];

    fn deref(&self) -> &[Reference] {
        &self.elements
    }
}

/// Bytes of a saved state beside its pages: a leaf of the table of pages, and some that each has.
pub(super) const SAVED_BYTES: usize = 1024;

/// The value of a global; floats by their bits.
#[derive(Clone, Copy, Debug, PartialEq, Hash)]
pub enum GlobalValue {
    /// An `i32`.
    I32(i32),
    /// An `i64`.
    I64(i64),
    /// An `f32`.
    F32(u32),
    /// An `f64`.
    F64(u64),
    /// A `v128`.
    V128(u128),
    /// A function, by a number that says whether two are the same, or null.
    Func(Option<u32>),
    /// A reference that cannot be saved. A module that has such a global has no snapshots.
    Opaque,
}

/// A function by its index in the table of functions, or null.
pub(super) type Reference = Option<u32>;

impl Snapshot {
    /// How many pages this snapshot and another hold once for both.
    pub fn shared_with(&self, other: &Snapshot) -> usize {
        let memories = self.0.memories.iter().zip(&other.0.memories);
        memories.map(|(a, b)| a.shared_with(b)).sum()
    }

    /// A hash of the whole state. Addresses do not enter it, so it is the same on every machine.
    pub fn hash(&self) -> u128 {
        let saved = &*self.0;
        let mut parts = Vec::new();
        for (index, memory) in saved.memories.iter().enumerate() {
            parts.extend(memory.hash(index, &(0..0)).to_le_bytes());
        }
        if let Some(system) = &saved.system {
            parts.extend(system.hash(Hashing::Portable).to_le_bytes());
        }
        saved.pools.push_to(&mut parts);
        saved.handles.push_to(&mut parts);
        let flags = (&*saved.dropped, &*saved.faults, saved.has_run);
        let hash = digest(&mut parts, &saved.globals, &saved.tables, flags, Hashing::Portable);
        match &saved.against {
            Some(other) => both([hash, other.hash()], Hashing::Portable),
            None => hash,
        }
    }
}

/// The hash of two states that are one.
pub(super) fn both(hashes: [u128; 2], hashing: Hashing) -> u128 {
    let bytes = hashes.map(u128::to_le_bytes).concat();
    match hashing {
        Hashing::Portable => xxh3_128(&bytes),
        Hashing::Keyed => keyed::hash(&bytes),
    }
}

/// The hash of a state, of which `parts` holds the hashes of the memories; what else matters is appended. `flags` are which
/// segments were dropped, which faults are on, and whether the guest ran, where it is one function.
pub(super) fn digest(
    parts: &mut Vec<u8>,
    globals: &[GlobalValue],
    tables: &[Arc<SavedTable>],
    flags: (&[u8], &[bool], bool),
    hashing: Hashing,
) -> u128 {
    for global in globals {
        let (tag, bits): (u8, u128) = match *global {
            GlobalValue::I32(v) => (0, v as u32 as u128),
            GlobalValue::I64(v) => (1, v as u64 as u128),
            GlobalValue::F32(v) => (2, v.into()),
            GlobalValue::F64(v) => (3, v.into()),
            GlobalValue::V128(v) => (4, v),
            GlobalValue::Func(v) => (5, v.map_or(u128::MAX, u128::from)),
            GlobalValue::Opaque => (6, 0),
        };
        parts.push(tag);
        parts.extend(bits.to_le_bytes());
    }
    for table in tables {
        parts.extend((table.len() as u64).to_le_bytes());
        for reference in table.iter() {
            parts.extend(reference.map_or(u64::MAX, u64::from).to_le_bytes());
        }
    }
    let (dropped, faults, has_run) = flags;
    parts.extend(dropped);
    parts.extend(faults.iter().map(|on| u8::from(*on)));
    if has_run {
        parts.push(1);
    }
    match hashing {
        // Of bytes that are together: making ready a hasher of streams takes longer than hashing so few.
        Hashing::Portable => xxh3_128(parts),
        Hashing::Keyed => keyed::hash(parts),
    }
}

impl Machine {
    /// Whether states are saved. Without snapshots every run is replayed from the start; no result changes.
    ///
    /// # Errors
    /// Where the module has state that no snapshot can hold they cannot be turned on.
    pub fn set_uses_snapshots(&mut self, uses_snapshots: bool) -> Result<()> {
        if uses_snapshots && let Some(obstacle) = self.program.obstacles().first() {
            bail!(
                "no snapshot can hold what this module changes: {} at {:#x}",
                obstacle.what,
                obstacle.offset
            );
        }
        self.uses_snapshots = uses_snapshots;
        self.second.as_mut().map_or(Ok(()), |second| second.machine.set_uses_snapshots(uses_snapshots))
    }

    /// Whether states are saved.
    pub fn uses_snapshots(&self) -> bool {
        self.uses_snapshots
    }
}
