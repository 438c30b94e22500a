//! One step: what is called, and what comes after.

use super::Machine;
use super::failure::{self, Phase};
use super::host::Stop;
use crate::outcome::Outcome;
use crate::trace::Action;

impl Machine {
    /// Calls what an action is, and then the invariants.
    pub(super) fn perform(&mut self, action: Action) -> Outcome {
        self.state.begin(&self.program.limits);
        let store = &mut self.store;
        let result = match action {
            Action::Setup => self.calls.setup.iter_mut().try_for_each(|call| call.call(store).map(drop)),
            Action::Rule(rule) => {
                store.data_mut().guest.has_run = self.program.exports.is_function;
                let drawn =
                    if self.program.exports.is_command { store.data_mut().draw_inputs() } else { Ok(()) };
                store.data_mut().step.faults_strike = true;
                let ended = drawn.and_then(|()| self.calls.rules[usize::from(rule)].call_rule(store));
                store.data_mut().step.faults_strike = false;
                match ended {
                    Err(error) if matches!(error.downcast_ref(), Some(Stop::Crash)) => self.restart(),
                    ended => ended,
                }
            }
            Action::Fault(fault, on) => {
                store.data_mut().guest.faults[usize::from(fault)] = on;
                self.calls.faults[usize::from(fault)].call(store, on.into())
            }
            Action::Teardown => {
                self.calls.teardown.iter_mut().try_for_each(|call| call.call(store).map(drop))
            }
            Action::Deadlock | Action::Loop | Action::Again(_) => return self.passed(),
        };
        if let Err(error) = result {
            if let (Some(effects), Some(Stop::Exit(code))) =
                (&mut self.store.data_mut().step.effects, error.downcast_ref())
            {
                effects.exit = Some(*code);
            }
            return self.failed(error, Phase::Step(action));
        }
        if self.store.data().step.is_verbose && action != Action::Teardown {
            self.describe_state();
        }
        if self.calls.invariants.is_empty() {
            self.state.tell(self.store.data().step.global);
        }
        // After teardown there may be nothing left to hold invariants of.
        if action == Action::Teardown { self.passed() } else { self.check_invariants() }
    }

    /// Has the guest say what its state is, which stays as it is: that comes before the invariants, since one that fails leaves a guest that
    /// can be called no more.
    fn describe_state(&mut self) {
        let is_whole = self.program.obstacles().is_empty();
        let Some(call) = self.calls.describe_state.as_mut().filter(|_| is_whole) else { return };
        let before = self.state.save(&mut self.store);
        let step = &mut self.store.data_mut().step;
        let args = std::mem::take(&mut step.told.args);
        let (notes, bytes) = (step.told.notes.len(), std::mem::take(&mut step.told_bytes));
        step.may_choose = false;
        // One that fails has said what it has said.
        let _ = call.call(&mut self.store);
        let step = &mut self.store.data_mut().step;
        step.may_choose = true;
        step.told.notes.truncate(notes);
        step.told.noted_at.split_off(&notes);
        step.told.state = std::mem::replace(&mut step.told.args, args);
        step.told_bytes = bytes;
        self.state.load_within_step(&mut self.store, &before);
    }

    /// Starts the guest again after a crash: from the state before setup, with the files that the crash left, and the faults
    /// that are on.
    fn restart(&mut self) -> wasmtime::Result<()> {
        let host = self.store.data_mut();
        host.crash()?;
        host.step.chooser.end();
        let (crashed, faults, has_run) = (host.system.take(), host.guest.faults.clone(), host.guest.has_run);
        let root = self.root.clone();
        self.state.load_within_step(&mut self.store, &root);
        self.state.unwind();
        let host = self.store.data_mut();
        if let (Some(crashed), Some(system)) = (crashed, &root.0.system) {
            host.system = Some(system.restarted(&crashed));
        }
        host.guest.faults.clone_from(&faults);
        host.guest.has_run = has_run;
        for call in &mut self.calls.recovery {
            call.call(&mut self.store)?;
        }
        for (call, _) in self.calls.faults.iter().zip(&faults).filter(|(_, on)| **on) {
            call.call(&mut self.store, 1)?;
        }
        Ok(())
    }

    /// A step passed, unless the host failed the guest.
    fn passed(&self) -> Outcome {
        if self.program.budget.is_exhausted() { Outcome::Stopped } else { Outcome::Pass }
    }

    fn check_invariants(&mut self) -> Outcome {
        for index in 0..self.calls.invariants.len() {
            match self.calls.invariants[index].call(&mut self.store) {
                Ok(Some(0)) if !self.program.budget.is_exhausted() => {
                    return Outcome::Fail(Box::new(failure::invariant_is_false(&self.program, index)));
                }
                Ok(_) => {}
                Err(error) => return self.failed(error, Phase::Invariant(index)),
            }
        }
        self.passed()
    }
}
