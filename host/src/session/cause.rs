//! What a sanitizer says of a finding that was made without one.

use std::sync::Arc;

use super::Work;
use crate::budget::Budget;
use crate::file::Conditions;
use crate::machine::{Cache, Machine, Program, Sanitizer, Selection};
use crate::outcome::Failure;
use crate::replay::failure_of;
use crate::trace::Trace;

/// An error of memory that explains a finding.
#[derive(Clone, Debug)]
pub struct Cause {
    /// What went wrong.
    pub failure: Failure,
    /// With which sanitizers it is found.
    pub sanitize: Vec<Sanitizer>,
}

/// What is tried, the first that the program can be loaded with.
const TRIED: [&[Sanitizer]; 3] =
    [&[Sanitizer::Heap, Sanitizer::Stack], &[Sanitizer::Heap], &[Sanitizer::Stack]];

/// The error that the steps of a trace lead to where the program's heap and stack are sanitized. None if they were already, if it
/// has neither an allocator nor a stack that is known, or if it goes otherwise then: its blocks and variables have other
/// addresses.
pub fn cause(
    wasm: &[u8],
    machine: &Machine,
    trace: &Trace,
    cache: Option<&Cache>,
    budget: &Budget,
) -> Option<Cause> {
    let program = sanitized(wasm, machine, cache, budget)?;
    cause_in(program, machine, trace)
}

fn sanitized(wasm: &[u8], machine: &Machine, cache: Option<&Cache>, budget: &Budget) -> Option<Arc<Program>> {
    let conditions = machine.program().conditions();
    // What two modules do differently is no error of memory of one.
    if machine.program().is_pair() {
        return None;
    }
    if !conditions.selection.sanitize.is_empty() || budget.is_over() {
        return None;
    }
    let load = |sanitize: &[Sanitizer]| {
        let selection = Selection { sanitize: sanitize.to_vec(), ..conditions.selection.clone() };
        let conditions = Conditions { selection, ..conditions.clone() };
        Program::load_in(wasm, conditions, cache, budget).ok().map(Arc::new)
    };
    TRIED.into_iter().find_map(load)
}

fn cause_in(program: Arc<Program>, machine: &Machine, trace: &Trace) -> Option<Cause> {
    let sanitize = program.conditions().selection.sanitize.clone();
    let mut sanitized = Machine::new(program).ok()?;
    if !machine.uses_snapshots() {
        sanitized.set_uses_snapshots(false).ok()?;
    }
    let failure = failure_of(&mut sanitized, trace).filter(|failure| failure.kind.is_sanitized())?;
    Some(Cause { failure, sanitize })
}

impl Work<'_> {
    /// See [`cause`]. The program is made once.
    pub(super) fn cause(&self, machine: &Machine, trace: &Trace) -> Option<Cause> {
        let load = || {
            let cache = self.guest.config.cache.open().and_then(Result::ok);
            sanitized(self.wasm, machine, cache.as_ref(), self.budget)
        };
        cause_in(self.sanitized.get_or_init(load).clone()?, machine, trace)
    }
}
