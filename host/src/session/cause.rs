//! What a sanitizer says of a finding that was made without one.

use std::sync::Arc;

use super::Work;
use crate::budget::Budget;
use crate::file::Conditions;
use crate::machine::{Cache, Machine, Program, Sanitizer, Selection};
use crate::outcome::Failure;
use crate::replay::failure_of;
use crate::trace::Trace;

/// The error that the steps of a trace lead to where the program's heap is sanitized. None if it was already, if it has no
/// allocator, or if it goes otherwise then: its blocks have other addresses.
pub fn cause(
    wasm: &[u8],
    machine: &Machine,
    trace: &Trace,
    cache: Option<&Cache>,
    budget: &Budget,
) -> Option<Failure> {
    let program = sanitized(wasm, machine, cache, budget)?;
    cause_in(program, machine, trace)
}

fn sanitized(wasm: &[u8], machine: &Machine, cache: Option<&Cache>, budget: &Budget) -> Option<Arc<Program>> {
    let conditions = machine.program().conditions();
    if !conditions.selection.sanitize.is_empty() || budget.is_over() {
        return None;
    }
    let selection = Selection { sanitize: vec![Sanitizer::Heap], ..conditions.selection.clone() };
    let conditions = Conditions { selection, ..conditions.clone() };
    Program::load_in(wasm, conditions, cache, budget).ok().map(Arc::new)
}

fn cause_in(program: Arc<Program>, machine: &Machine, trace: &Trace) -> Option<Failure> {
    let mut sanitized = Machine::new(program).ok()?;
    if !machine.uses_snapshots() {
        sanitized.set_uses_snapshots(false).ok()?;
    }
    failure_of(&mut sanitized, trace).filter(|failure| failure.kind.is_sanitized())
}

impl Work<'_> {
    /// See [`cause`]. The program is made once.
    pub(super) fn cause(&self, machine: &Machine, trace: &Trace) -> Option<Failure> {
        let load = || {
            let cache = self.guest.config.cache.open().and_then(Result::ok);
            sanitized(self.wasm, machine, cache.as_ref(), self.budget)
        };
        cause_in(self.sanitized.get_or_init(load).clone()?, machine, trace)
    }
}
