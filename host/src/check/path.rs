//! Steps with their scripts, and the traces made of them.

use crate::choice::{Choice, Scripted};
use crate::trace::{Action, Trace};

/// Appends a step whose choices a script answers.
pub(super) fn push(trace: &mut Trace, action: Action, script: &[Scripted]) {
    trace.push(action, 0);
    let choice = |s: &Scripted| Choice { kind: s.kind, value: s.kind.nth(s.number.into()) };
    trace.chose(&mut script.iter().map(choice).collect(), &mut Vec::new());
}

/// Whether it counts towards the bound on steps.
pub(super) fn is_step(action: Action) -> bool {
    matches!(action, Action::Rule(_) | Action::Fault(..))
}

/// Makes `script` the next one in depth-first order that shares its first `fixed` answers; whether there is one.
pub(super) fn advance(script: &mut Vec<Scripted>, fixed: usize) -> bool {
    while script.len() > fixed {
        let last = script.last_mut().expect("it is not empty");
        if last.has_next() {
            last.number += 1;
            return true;
        }
        script.pop();
    }
    false
}
