//! How the guest is entered, and what is known where it was left by an error.

use super::Machine;
use super::failure::{self, Phase};
use super::thread::{STACK_BYTES, STACK_MARGIN};
use crate::outcome::{Halt, Outcome};

impl Machine {
    /// Runs `f`, which calls the guest, where that has all the stack it may use, and where the watchdog sees it. Where the
    /// guest is lost, the result is what `lost` makes of that. Nothing that the guest does counts once the host failed it:
    /// `f` looks whether that is so, since to look here would copy every result once more.
    pub(super) fn enter<T>(&mut self, lost: impl FnOnce(Halt) -> T, f: impl FnOnce(&mut Machine) -> T) -> T {
        if let Some(halt) = &self.lost {
            return lost(halt.clone());
        }
        self.watched.turn();
        let result = self.on_guest_stack(f);
        self.watched.turn();
        result
    }

    pub(super) fn failed(&mut self, error: wasmtime::Error, phase: Phase) -> Outcome {
        if self.store.data().step.is_verbose {
            let places = failure::stack(&self.program, &error);
            let told = &mut self.store.data_mut().step.told;
            told.stack = self.program.symbols.stack(places.iter().copied());
            told.places = places;
        }
        failure::outcome(&self.program, &mut self.state, &self.store.data().step.stderr, error, phase)
    }

    /// Runs `f` where a guest has all the stack it may use.
    pub(super) fn on_guest_stack<T>(&mut self, f: impl FnOnce(&mut Machine) -> T) -> T {
        let needed = STACK_BYTES + STACK_MARGIN;
        stacker::maybe_grow(needed, needed + STACK_MARGIN, || f(self))
    }
}
