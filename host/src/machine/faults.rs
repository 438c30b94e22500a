//! Whether a fault strikes a call to the system: a choice as any other, so it is drawn, enumerated, recorded and shrunk.

use super::host::Host;
use super::imports::ask;
use super::system::Kept;
use crate::choice::{Kind, Value};
use crate::file::HostFault;

/// How often a fault strikes where it may.
const PROBABILITY: f64 = 0.05;
/// Calls of a step that a fault may strike; it strikes none after them.
const CALLS_MAX: u32 = 4096;
/// How often in a row one call fails so that programs try it again: where that had no end, steps would have none.
const AGAIN_MAX: u32 = 2;

type Answer<T> = wasmtime::Result<T>;

/// Whether a program tries again what failed so.
fn is_tried_again(fault: HostFault) -> bool {
    matches!(fault, HostFault::Eintr | HostFault::Eagain)
}

impl Host {
    /// The fault that strikes this call, of those that can.
    pub(super) fn struck(&mut self, call: &str, possible: &[HostFault]) -> Answer<Option<HostFault>> {
        if !self.step.faults_strike || self.environment.faults.is_empty() {
            return Ok(None);
        }
        let failed = self.step.failed_again.iter().position(|(of, _)| **of == *call);
        let in_a_row = failed.map_or(0, |at| self.step.failed_again.swap_remove(at).1);
        let may_strike = |fault: &HostFault| {
            self.environment.faults.contains(fault) && (in_a_row < AGAIN_MAX || !is_tried_again(*fault))
        };
        let faults: Vec<HostFault> = possible.iter().copied().filter(may_strike).collect();
        if faults.is_empty() || self.step.fault_calls >= CALLS_MAX {
            return Ok(None);
        }
        self.step.fault_calls += 1;
        if *self.ask(Kind::Boolean { probability: PROBABILITY })? != Value::Boolean(true) {
            return Ok(None);
        }
        let fault = faults[self.ask_index(faults.len())?];
        if is_tried_again(fault) {
            self.step.failed_again.push((call.into(), in_a_row + 1));
        }
        self.step.note(|| format!("fault: {} in {call}", fault.name()));
        Ok(Some(fault))
    }

    /// Leaves of the files what a crash does: how much of what was not synced is drawn.
    pub(super) fn crash(&mut self) -> Answer<()> {
        let Some(mut system) = self.system.take() else { return Ok(()) };
        let crashed = system.change().crash(|kept| match kept {
            Kept::First(count) => self.ask_index(count + 1),
            Kept::Block => self.ask_index(2),
        });
        self.system = Some(system);
        crashed
    }

    /// One of so many.
    pub(super) fn ask_index(&mut self, count: usize) -> Answer<usize> {
        if count == 1 {
            return Ok(0);
        }
        match self.ask(Kind::Index { n: count as u32 })? {
            Value::Index(index) => Ok(*index as usize),
            other => unreachable!("{other:?} answers an index"),
        }
    }

    /// The answer to a question.
    pub(super) fn ask(&mut self, kind: Kind) -> Answer<&Value> {
        ask(&mut self.step, kind)
    }
}
