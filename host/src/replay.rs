//! Replay: the steps of a trace with their recorded answers, checked step by step.

use crate::choice::Chooser;
use crate::outcome::{Failure, Outcome, Reject};
use crate::target::{Target, attempt};
use crate::trace::Trace;

/// What a replay established.
#[derive(Clone, Debug, PartialEq)]
pub enum Replayed {
    /// The run failed at its last step.
    Failed(Box<Failure>),
    /// Every step passed.
    Passed,
    /// A step did not go as recorded.
    Diverged {
        /// Which, from 0.
        step: usize,
        /// How it differs.
        why: String,
    },
}

/// Replays `trace` from the start. The trace that is returned holds the state hash after each step.
///
/// A step diverges where a recorded answer does not fit what is asked, where fewer or more questions are
/// asked than recorded, where a rule may not be called, where the guest rejects or fails too early, and,
/// with `compares_states`, where the state after it has another hash than recorded.
pub fn replay<T: Target>(target: &mut T, trace: &Trace, compares_states: bool) -> (Replayed, Trace) {
    let mut chooser = Chooser::default();
    let mut enabled = Vec::new();
    let mut again = Trace::default();
    target.reset();
    for (index, step) in trace.steps().iter().enumerate() {
        let recorded = trace.recorded(step);
        let outcome =
            attempt(target, &mut chooser, &mut enabled, (step.action, step.seed), recorded, &mut again);
        let state = target.state();
        let diverged = |why: String| Replayed::Diverged { step: index, why };
        if outcome == Outcome::Reject(Reject::Precondition) {
            return (diverged("its precondition does not hold here".to_string()), again);
        }
        again.set_state(state);
        let is_last = index + 1 == trace.len();
        // Misfits first: they are the cause of whatever follows.
        if let Some(why) = misfit(&chooser, trace, &again, index) {
            return (diverged(why), again);
        }
        match outcome {
            Outcome::Fail(_) if is_last => {}
            Outcome::Fail(failure) => return (diverged(format!("it already fails: {failure}")), again),
            Outcome::Reject(_) => return (diverged("the guest rejects the run".to_string()), again),
            Outcome::Pass => {}
        }
        if compares_states
            && let Some(recorded) = step.state
            && recorded != state
        {
            return (diverged(format!("the state is {state:032x}, recorded was {recorded:032x}")), again);
        }
        if let Outcome::Fail(failure) = outcome {
            return (Replayed::Failed(failure), again);
        }
    }
    (Replayed::Passed, again)
}

/// How the choices of step `index` differ from the recorded ones.
fn misfit(chooser: &Chooser, trace: &Trace, again: &Trace, index: usize) -> Option<String> {
    let (recorded, asked) = (trace.choices(&trace.steps()[index]), again.choices(&again.steps()[index]));
    if let Some(at) = chooser.misfit {
        let (answer, question) = (&recorded[at].value, &asked[at].kind);
        return Some(format!("choice {} was answered {answer}, and now asks for {question}", at + 1));
    }
    (recorded.len() != asked.len())
        .then(|| format!("it makes {} choices, recorded were {}", asked.len(), recorded.len()))
}
