//! Which rules may be called, and whether it is right that none may.

use super::Machine;
use super::calls::Call;
use super::failure::Phase;
use crate::outcome::{Failure, FailureKind, Halt, Outcome};

impl Machine {
    /// Whether only that there are too many handles keeps a rule from being called.
    pub(super) fn is_full(&self) -> bool {
        let pools = &self.store.data().guest.pools;
        let is_cut = |call: &Call| matches!(call, Call::Component(call) if call.is_cut(pools));
        self.program.exports.pools() > 0 && self.calls.rules.iter().any(is_cut)
    }

    /// As [`Target::enabled`], of this guest alone.
    pub(super) fn enabled_alone(&mut self, rules: &mut Vec<u16>) -> Result<(), Halt> {
        rules.clear();
        if !self.store.data().guest.has_run {
            rules.extend(0..self.calls.rules.len() as u16);
        }
        if self.program.exports.pools() > 0 {
            let pools = &self.store.data().guest.pools;
            rules.retain(|rule| self.calls.rules[usize::from(*rule)].is_enabled(pools));
        }
        if self.calls.preconditions.is_empty() {
            return if rules.is_empty() { self.is_stuck() } else { Ok(()) };
        }
        self.enter(Err, |machine| {
            machine.store.data_mut().step.may_choose = false;
            for index in 0..machine.calls.preconditions.len() {
                machine.state.begin(&machine.program.limits);
                let (rule, call) = &mut machine.calls.preconditions[index];
                let rule = *rule;
                match call.call(&mut machine.store) {
                    Ok(Some(0)) => rules.retain(|enabled| *enabled != rule),
                    Ok(_) => {}
                    Err(error) => match machine.failed(error, Phase::Precondition(rule)) {
                        Outcome::Fail(failure) => return Err(Halt::Fail(failure)),
                        Outcome::Stopped => return Err(Halt::Stopped),
                        // `assume` in a precondition: it does not hold.
                        _ => rules.retain(|enabled| *enabled != rule),
                    },
                }
            }
            if machine.program.budget.is_exhausted() { Err(Halt::Stopped) } else { Ok(()) }
        })?;
        if rules.is_empty() { self.is_stuck() } else { Ok(()) }
    }

    /// Fails where no rule may be called and that is a deadlock: the guest does not say that the state is terminal. Of two guests that
    /// are compared, one may have rules that the other lacks.
    fn is_stuck(&mut self) -> Result<(), Halt> {
        if !self.program.fails_in_deadlock() || self.is_full() {
            return Ok(());
        }
        let deadlock = |why| {
            let message = format!("no rule may be called; {why}");
            Err(Halt::Fail(Box::new(Failure::new(FailureKind::Deadlock, message))))
        };
        let unsaid = "where a run may end so, say it in `terminal`, or give --allow-deadlock";
        if self.calls.terminal.is_none() {
            return deadlock(unsaid);
        }
        self.enter(Err, |machine| {
            machine.store.data_mut().step.may_choose = false;
            machine.state.begin(&machine.program.limits);
            let Some(terminal) = &mut machine.calls.terminal else { return deadlock(unsaid) };
            match terminal.call(&mut machine.store) {
                Ok(Some(0)) => deadlock("`terminal` says that no run may end so"),
                Ok(_) => Ok(()),
                Err(error) => match machine.failed(error, Phase::Terminal) {
                    Outcome::Fail(failure) => Err(Halt::Fail(failure)),
                    Outcome::Stopped => Err(Halt::Stopped),
                    _ => deadlock("`terminal` says that no run may end so"),
                },
            }
        })
    }
}
