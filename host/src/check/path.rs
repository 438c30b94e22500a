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
