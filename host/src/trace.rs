//! A trace: the steps of a run with their seeds and choices. It is what is saved, replayed and shrunk.

use crate::choice::{Choice, Value};

/// What a step does. Rules and faults are named by their index in the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The first step of a run, where the target has a setup.
    Setup,
    /// Call a rule.
    Rule(u16),
    /// Turn a fault on or off.
    Fault(u16, bool),
    /// The last step of a run, where the target has a teardown.
    Teardown,
}

/// One step of a [`Trace`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// Answers the choices that have no recorded value.
    pub seed: u64,
    first: u32,
    last: u32,
    /// The hash of the state after the step, where it was computed.
    pub state: Option<u128>,
}

/// The steps of a run. The choices of all steps stand in one buffer, so that a run allocates nothing once
/// the buffers have grown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    steps: Vec<Step>,
    choices: Vec<Choice>,
}

impl Trace {
    /// Empties the trace and keeps its buffers.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.choices.clear();
    }

    /// Appends a step; `choices` is emptied into the trace.
    pub fn push(&mut self, action: Action, seed: u64, choices: &mut Vec<Choice>) {
        let first = self.choices.len() as u32;
        self.choices.append(choices);
        self.steps.push(Step { action, seed, first, last: self.choices.len() as u32, state: None });
    }

    /// Appends the first `count` steps of another trace.
    pub fn extend(&mut self, other: &Trace, count: usize) {
        for step in &other.steps[..count] {
            let first = self.choices.len() as u32;
            self.choices.extend_from_slice(other.choices(step));
            self.steps.push(Step { first, last: self.choices.len() as u32, ..*step });
        }
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether the last step made choices.
    pub fn last_drew(&self) -> bool {
        self.steps.last().is_some_and(|step| step.first < step.last)
    }

    /// Sets the state hash of the last step.
    pub fn set_state(&mut self, state: u128) {
        if let Some(step) = self.steps.last_mut() {
            step.state = Some(state);
        }
    }

    /// The choices that `step`, one of this trace, made.
    pub fn choices(&self, step: &Step) -> &[Choice] {
        &self.choices[step.first as usize..step.last as usize]
    }

    /// The answers of `step` as a chooser takes them.
    pub fn recorded<'a>(&'a self, step: &Step) -> impl Iterator<Item = Option<Value>> + use<'a> {
        self.choices[step.first as usize..step.last as usize].iter().map(|c| Some(c.value.clone()))
    }

    /// How many steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is no step.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}
