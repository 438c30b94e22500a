//! Replay: the steps of a trace with their recorded answers, checked step by step.

use crate::choice::Chooser;
use crate::outcome::{Failure, Outcome, Reject};
use crate::report::counted;
use crate::target::{Target, attempt};
use crate::trace::{Action, Trace};

/// What a replay established.
#[derive(Clone, Debug, PartialEq)]
pub enum Replayed {
    /// The run failed at its last step, or on another build at an earlier one.
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
    /// The host stopped the guest before the end.
    Stopped,
}

/// Replays `trace` from the start. The trace that is returned holds the state hash after each step.
///
/// A step diverges where a recorded answer does not fit what is asked, where fewer or more questions are
/// asked than recorded, where a rule may not be called, where the guest rejects, and, with `compares_states`, where it fails too
/// early or the state after it has another hash than recorded.
pub fn replay<T: Target>(target: &mut T, trace: &Trace, compares_states: bool) -> (Replayed, Trace) {
    replay_each(target, trace, compares_states, |_, _| {})
}

/// As [`replay`], and `each` is given the target before the first step, and after each with how many were performed.
pub fn replay_each<T: Target>(
    target: &mut T,
    trace: &Trace,
    compares_states: bool,
    mut each: impl FnMut(&mut T, usize),
) -> (Replayed, Trace) {
    let mut chooser = Chooser::default();
    let mut enabled = Vec::new();
    let mut again = Trace::default();
    target.reset();
    each(target, 0);
    for (index, step) in trace.steps().iter().enumerate() {
        let recorded = trace.recorded(step);
        let outcome =
            attempt(target, &mut chooser, &mut enabled, (step.action, step.seed), recorded, &mut again);
        let state = target.state();
        let diverged = |why: String| Replayed::Diverged { step: index, why };
        if outcome == Outcome::Reject(Reject::Precondition) {
            return (diverged(forbidden(step.action).to_string()), again);
        }
        again.set_state(state);
        let is_last = index + 1 == trace.len();
        if outcome == Outcome::Stopped {
            return (Replayed::Stopped, again);
        }
        each(target, again.len());
        // Another build may fail sooner, and ask for less then.
        if let Outcome::Fail(failure) = &outcome
            && !compares_states
            && chooser.misfit.is_none()
        {
            return (Replayed::Failed(failure.clone()), again);
        }
        // Misfits first: they are the cause of whatever follows.
        if let Some(why) = misfit(&chooser, trace, &again, index) {
            return (diverged(why), again);
        }
        match outcome {
            Outcome::Fail(_) if is_last => {}
            Outcome::Fail(failure) => return (diverged(format!("it already fails: {failure}")), again),
            Outcome::Reject(_) => return (diverged("the guest rejects the run".to_string()), again),
            Outcome::Exit if !is_last => return (diverged("the guest ends the run".to_string()), again),
            Outcome::Pass | Outcome::Exit | Outcome::Stopped => {}
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

/// Why a step may not be taken.
fn forbidden(action: Action) -> &'static str {
    match action {
        Action::Deadlock => "a rule may be called here, or a run may end",
        Action::Again(_) => "the steps since the loop began lead to another state, or what must come does",
        Action::Fault(_, true) => "the fault is on already",
        Action::Fault(..) => "the fault is not on",
        _ => "its precondition does not hold here",
    }
}

/// The failure that the steps of `trace` lead to on a target that is instrumented otherwise, so that its states do not
/// compare; none where they lead elsewhere.
pub fn failure_of<T: Target>(target: &mut T, trace: &Trace) -> Option<Failure> {
    let mut chooser = Chooser::default();
    let (mut enabled, mut again) = (Vec::new(), Trace::default());
    target.reset();
    for (index, step) in trace.steps().iter().enumerate() {
        let what = (step.action, step.seed);
        match attempt(target, &mut chooser, &mut enabled, what, trace.recorded(step), &mut again) {
            Outcome::Fail(failure) => return Some(*failure).filter(|_| chooser.misfit.is_none()),
            Outcome::Pass if misfit(&chooser, trace, &again, index).is_none() => {}
            Outcome::Pass | Outcome::Exit | Outcome::Reject(_) | Outcome::Stopped => return None,
        }
    }
    None
}

/// How the choices of step `index` differ from the recorded ones.
pub(crate) fn misfit(chooser: &Chooser, trace: &Trace, again: &Trace, index: usize) -> Option<String> {
    let (recorded, asked) = (trace.choices(&trace.steps()[index]), again.choices(&again.steps()[index]));
    if let Some(at) = chooser.misfit {
        let (answer, question) = (&recorded[at].value, &asked[at].kind);
        return Some(format!("choice {} was answered {answer}, and now asks for {question}", at + 1));
    }
    (recorded.len() != asked.len()).then(|| {
        format!("it makes {}, recorded were {}", counted(asked.len() as u64, "choice"), recorded.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::{Choice, Kind, Value};
    use crate::model::{Model, fail};
    use crate::trace::Action;

    /// Adds what is drawn below the state's second number; fails at ten or more.
    fn adder(below: u32) -> Model<(u32, u32)> {
        let mut model = Model::new((0, below), &["add"], &["f"], |state, action, chooser, _| {
            if let Action::Rule(_) = action {
                match *chooser.choose(Kind::Index { n: state.1 }) {
                    Value::Index(v) => state.0 += v,
                    ref other => unreachable!("{other:?}"),
                }
            }
            if state.0 >= 10 { fail("ten") } else { Outcome::Pass }
        });
        model.guard = |state, _| state.0 != 7;
        model
    }

    /// Three steps that add these, recorded on an adder of up to eight.
    fn recorded(values: [u32; 3]) -> Trace {
        let mut trace = Trace::default();
        for value in values {
            trace.push(Action::Rule(0), 1);
            let choice = Choice { kind: Kind::Index { n: 9 }, value: Value::Index(value) };
            trace.chose(&mut vec![choice], &mut Vec::new());
        }
        replay(&mut adder(9), &trace, false).1
    }

    fn check(model: &mut Model<(u32, u32)>, trace: &Trace, compares: bool, expected: &str) {
        let found = match replay(model, trace, compares).0 {
            Replayed::Failed(failure) => failure.message,
            Replayed::Passed => "passed".to_string(),
            Replayed::Diverged { step, why } => format!("{step}: {}", why.split(" is ").next().unwrap()),
            Replayed::Stopped => "stopped".to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_replay_names_the_first_step_that_differs() {
        let failing = recorded([3, 3, 5]);
        check(&mut adder(9), &failing, true, "ten");
        check(&mut adder(9), &recorded([1, 2, 3]), true, "passed");
        // Another build: it asks for less, and has other states.
        check(
            &mut adder(4),
            &failing,
            false,
            "2: choice 1 was answered 5, and now asks for an index below 4",
        );
        check(&mut adder(8), &failing, false, "ten");
        check(&mut adder(8), &failing, true, "0: the state");
        let mut guarded = recorded([3, 3, 5]);
        guarded
            .chose(&mut vec![Choice { kind: Kind::Index { n: 9 }, value: Value::Index(0) }], &mut Vec::new());
        check(&mut adder(9), &guarded, true, "2: it makes 1 choice, recorded were 2");
        let mut longer = failing.clone();
        longer.push(Action::Rule(0), 1);
        check(&mut adder(9), &longer, true, "2: it already fails: panic: ten");
        check(&mut adder(9), &longer, false, "ten");
        assert_eq!(replay(&mut adder(9), &longer, false).1.len(), 3);
    }

    #[test]
    fn hidden_nondeterminism_is_found_in_the_state() {
        let mut hidden = adder(9);
        let failing = recorded([3, 3, 5]);
        // As if the second run began elsewhere.
        hidden.drift = Some((1, (4, 9)));
        check(&mut hidden, &failing, true, "1: the state");
    }
}
