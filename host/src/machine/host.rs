//! The host's side of a store: what the functions that a guest imports read and write.

use std::fmt;

use spelunk_instrumenter::TABLE_ELEMENTS_MAX;
use wasmtime::{Memory, ResourceLimiter, Trap};

use super::keyed::Hasher;
use super::tally::Tally;
use crate::budget::Budget;
use crate::choice::Chooser;
use crate::outcome::Failure;

/// The host's side of a store.
#[derive(Default)]
pub(crate) struct Host {
    /// What stops the guest from outside.
    pub(crate) budget: Budget,
    pub(crate) guest: Guest,
    pub(crate) step: Step,
    pub(crate) tally: Tally,
    pub(crate) limits: Limiter,
}

/// The guest and what of its state the host keeps.
#[derive(Default)]
pub(crate) struct Guest {
    /// Which faults are on.
    pub(crate) faults: Vec<bool>,
    pub(crate) fault_names: Vec<String>,
    /// It is one function, and it was called.
    pub(crate) has_run: bool,
    /// The export of memory 0.
    pub(crate) memory_export: Option<String>,
    /// Memory 0, once the module is instantiated.
    pub(crate) memory: Option<Memory>,
    /// The instrumenter's own memory.
    pub(crate) private: Option<Private>,
}

/// The private memory, and where in it what the host writes is.
#[derive(Clone, Copy)]
pub(crate) struct Private {
    pub(crate) memory: Memory,
    /// The dirty marks of memory 0.
    pub(crate) marks: u32,
    /// The step budget.
    pub(crate) budget: Option<u32>,
}

/// What belongs to one step.
#[derive(Default)]
pub(crate) struct Step {
    /// Answers its choices.
    pub(crate) chooser: Chooser,
    /// Choices may be made now; not so in preconditions.
    pub(crate) may_choose: bool,
    /// Bytes that were drawn.
    pub(crate) drawn_bytes: usize,
    /// The highest score of each label: the hash of the label, and the score.
    pub(crate) scores: Vec<(u64, f64)>,
    /// What the guest says its state is, while it is asked.
    pub(crate) state: Option<Hasher>,
    /// It is being reported.
    pub(crate) is_verbose: bool,
    pub(crate) told: Told,
    /// Bytes of what it said.
    pub(crate) told_bytes: usize,
}

impl Step {
    /// Begins the next one.
    pub(crate) fn begin(&mut self) {
        self.may_choose = true;
        self.drawn_bytes = 0;
        self.scores.clear();
    }
}

/// What a step said of itself while it was reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Name and value of each argument.
    pub args: Vec<(String, String)>,
    /// Notes, one a line.
    pub notes: Vec<String>,
}

/// Why a host function does not return to the guest.
#[derive(Debug)]
pub(crate) enum Stop {
    Reject,
    Fail(Failure),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Reject => f.write_str("reject"),
            Stop::Fail(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for Stop {}

/// Caps what a guest may allocate, all memories together and all tables together; growth beyond fails as the guest's own
/// limit would.
#[derive(Default)]
pub(crate) struct Limiter {
    pub(crate) memory_bytes_max: usize,
    /// Bytes of all memories now.
    pub(crate) memory_bytes: usize,
    /// Elements of all tables now.
    pub(crate) table_elements: usize,
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let bytes = (self.memory_bytes - current.min(self.memory_bytes)).saturating_add(desired);
        let fits = bytes <= self.memory_bytes_max && maximum.is_none_or(|maximum| desired <= maximum);
        if fits {
            self.memory_bytes = bytes;
        }
        Ok(fits)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let elements = (self.table_elements - current.min(self.table_elements)).saturating_add(desired);
        let fits = elements as u64 <= TABLE_ELEMENTS_MAX && maximum.is_none_or(|maximum| desired <= maximum);
        if fits {
            self.table_elements = elements;
        }
        Ok(fits)
    }

    // The default is that a guest may have 10,000 of each.
    fn memories(&self) -> usize {
        usize::MAX
    }
}

/// Bytes of names and texts that a guest hands over in a step of its budget.
const BYTES_STEP: usize = 64;

/// Has the guest pay for the bytes that the host reads for it.
pub(crate) fn pay(
    store: &mut impl wasmtime::AsContextMut<Data = Host>,
    bytes: usize,
) -> wasmtime::Result<()> {
    let steps = (bytes / BYTES_STEP) as i64;
    if steps == 0 {
        return Ok(());
    }
    let mut store = store.as_context_mut();
    let Some(Private { memory, budget: Some(at), .. }) = store.data().guest.private else { return Ok(()) };
    let budget = &mut memory.data_mut(&mut store)[at as usize..][..8];
    let left = i64::from_le_bytes(*budget.first_chunk().expect("eight bytes")) - steps;
    budget.copy_from_slice(&left.to_le_bytes());
    if left < 0 { Err(Trap::UnreachableCodeReached.into()) } else { Ok(()) }
}
