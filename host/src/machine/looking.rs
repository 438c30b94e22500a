//! A state to be looked at: what its memories and globals hold, and where two states differ. Nothing here changes a state.

use std::ops::Range;

use super::Machine;
use super::pages::PAGE;
use super::program::Program;
use super::saved::{GlobalValue, Snapshot};
use crate::target::Target;

/// Ranges of bytes that are told of two states; further bytes are counted.
const RANGES_MAX: usize = 1024;

/// Where the memory of a state differs from that of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Each as long as it can be, in order. Bytes that only one of the two has count as different from zero.
    pub ranges: Vec<Range<u64>>,
    /// Bytes that differ beyond them.
    pub left_out: u64,
}

impl Snapshot {
    /// Bytes of a memory of the target.
    pub fn memory_bytes(&self, memory: usize) -> Option<u64> {
        Some(self.0.memories.get(memory)?.size as u64)
    }

    /// The bytes of a memory at these addresses; none where not all of them are there.
    pub fn bytes(&self, memory: usize, range: Range<u64>) -> Option<Vec<u8>> {
        let table = self.0.memories.get(memory)?;
        let (start, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
        if start > end || end > table.size {
            return None;
        }
        let mut out = vec![0; end - start];
        for index in start / PAGE..end.div_ceil(PAGE) {
            let (first, last) = ((index * PAGE).max(start), ((index + 1) * PAGE).min(end));
            if let Some(page) = table.bytes(index) {
                out[first - start..last - start]
                    .copy_from_slice(&page[first - index * PAGE..last - index * PAGE]);
            }
        }
        Some(out)
    }

    /// The pages of a memory that are not all zeros, and their addresses.
    pub(crate) fn filled(&self, memory: usize) -> impl Iterator<Item = (u64, &[u8])> {
        let table = self.0.memories.get(memory);
        table.into_iter().flat_map(|table| {
            let pages = table.pages_from(0).take_while(|index| (*index as usize + 1) * PAGE <= table.size);
            pages
                .filter_map(|index| Some((u64::from(index) * PAGE as u64, &table.bytes(index as usize)?[..])))
        })
    }

    /// Where a memory differs from what it was in the state `before`.
    pub fn difference(&self, before: &Snapshot, memory: usize) -> Difference {
        let mut found = Difference::default();
        let (Some(now), Some(then)) = (self.0.memories.get(memory), before.0.memories.get(memory)) else {
            return found;
        };
        for index in now.changed_from(then) {
            let zeros = [0; PAGE];
            let (one, other) = (now.bytes(index).unwrap_or(&zeros), then.bytes(index).unwrap_or(&zeros));
            for at in (0..PAGE).filter(|at| one[*at] != other[*at]) {
                found.add((index * PAGE + at) as u64);
            }
        }
        found
    }

    /// The values of the mutable globals, in the order of [`Program::globals`].
    pub fn globals(&self) -> &[GlobalValue] {
        &self.0.globals
    }

    /// Which faults are on.
    pub fn faults(&self) -> &[bool] {
        &self.0.faults
    }
}

impl Difference {
    fn add(&mut self, address: u64) {
        let has_room = self.ranges.len() < RANGES_MAX;
        match self.ranges.last_mut() {
            Some(last) if last.end == address => last.end += 1,
            _ if has_room => self.ranges.push(address..address + 1),
            _ => self.left_out += 1,
        }
    }

    /// Bytes that differ.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum::<u64>() + self.left_out
    }
}

/// A mutable global of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its index in the module.
    pub index: u32,
    /// What the module calls it.
    pub names: Vec<String>,
}

/// A memory of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryType {
    /// Whether its addresses have 64 bits.
    pub is_64: bool,
}

impl Machine {
    /// The hash that [`Target::state`] gives, computed from all of memory without trusting that every page
    /// that was written is marked.
    pub fn state_from_scratch(&mut self) -> u128 {
        self.state.mark_everything();
        if let Some(second) = &mut self.second {
            second.machine.state.mark_everything();
        }
        self.state()
    }

    /// The state, to be looked at. Unlike a snapshot there is one of every state, also where it cannot be gone back to.
    pub fn image(&mut self) -> Snapshot {
        self.saved()
    }
}

impl Program {
    /// The mutable globals of the target.
    pub fn globals(&self) -> Vec<Global> {
        let mut names = self.symbols.globals();
        let globals = self.instrumented.layout.globals.iter();
        let global = |index| Global { index, names: names.remove(&index).unwrap_or_default() };
        globals.map(|global| global.index).map(global).collect()
    }

    /// The memories of the target.
    pub fn memories(&self) -> Vec<MemoryType> {
        let layout = &self.instrumented.layout;
        let shadow = layout.sanitizer.as_ref().map(|sanitizer| &sanitizer.shadow);
        let memories = layout.memories.iter().filter(|memory| Some(&memory.export) != shadow);
        memories.map(|memory| MemoryType { is_64: memory.memory64 }).collect()
    }

    /// The exported functions that rule `rule` calls.
    pub(crate) fn export_of(&self, rule: u16) -> Option<&str> {
        self.exports.rule_exports.get(usize::from(rule)).map(String::as_str)
    }
}
