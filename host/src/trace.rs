//! A trace: the steps of a run with their seeds and choices. It is what is saved, replayed and shrunk.

use serde::{Deserialize, Serialize};

use crate::choice::{Choice, Span, Value};

/// What a step does. Rules and faults are named by their index in the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Action {
    /// The first step of a run, where the target has a setup.
    Setup,
    /// Call a rule.
    Rule(u16),
    /// Turn a fault on or off.
    Fault(u16, bool),
    /// The last step of a run, where the target has a teardown.
    Teardown,
    /// The end of a run in which no rule may be called, and should. Nothing is called.
    Deadlock,
    /// What follows is repeated for ever. Nothing is called.
    Loop,
    /// The state is as it was at the [`Action::Loop`] before, and the property of runs without end with this number was never met
    /// between. Nothing is called.
    Again(u16),
}

impl Action {
    /// Whether it is the last step of a run.
    pub(crate) fn ends_run(self) -> bool {
        matches!(self, Action::Teardown | Action::Deadlock | Action::Again(_))
    }

    /// A number that says which it is: its kind, and in the low 16 bits what it names.
    pub(crate) fn code(self) -> u32 {
        let (kind, number) = match self {
            Action::Setup => (0, 0),
            Action::Rule(rule) => (1, rule),
            Action::Fault(fault, on) => (2 + u32::from(on), fault),
            Action::Teardown => (4, 0),
            Action::Deadlock => (5, 0),
            Action::Loop => (6, 0),
            Action::Again(number) => (7, number),
        };
        kind << 16 | u32::from(number)
    }

    /// The one with this [`Action::code`].
    pub(crate) fn of_code(code: u32) -> Action {
        let number = code as u16;
        match code >> 16 {
            0 => Action::Setup,
            1 => Action::Rule(number),
            kind @ (2 | 3) => Action::Fault(number, kind == 3),
            4 => Action::Teardown,
            5 => Action::Deadlock,
            6 => Action::Loop,
            _ => Action::Again(number),
        }
    }
}

/// One step of a [`Trace`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// Answers the choices that have no recorded value.
    pub seed: u64,
    choices: (u32, u32),
    spans: (u32, u32),
    /// The hash of the state after the step, where it was computed.
    pub state: Option<u128>,
}

/// A run ends before it has more steps than this, its teardown counted: a file with more is not read.
pub(crate) const STEPS_MAX: usize = 1 << 18;
/// A run ends after the step in which it made so many choices.
const CHOICES_MAX: usize = 1 << 17;
/// A run ends after the step in which it opened so many spans.
const SPANS_MAX: usize = 1 << 18;

/// The steps of a run. The choices of all steps stand in one buffer, so that a run allocates nothing once
/// the buffers have grown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    steps: Vec<Step>,
    choices: Vec<Choice>,
    spans: Vec<Span>,
}

/// Appends all of a list, which has nothing left. To take its place costs less than to copy it.
fn appended<T>(to: &mut Vec<T>, list: &mut Vec<T>) {
    if list.is_empty() {
        return;
    }
    match to.is_empty() {
        true => std::mem::swap(to, list),
        false => to.append(list),
    }
}

impl Trace {
    /// Empties the trace and keeps its buffers.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.choices.clear();
        self.spans.clear();
    }

    /// Appends a step that made no choice.
    pub fn push(&mut self, action: Action, seed: u64) {
        let (choices, spans) = (self.choices.len() as u32, self.spans.len() as u32);
        self.steps.push(Step {
            action,
            seed,
            choices: (choices, choices),
            spans: (spans, spans),
            state: None,
        });
    }

    /// Appends choices and spans to the last step; both are emptied into the trace.
    pub fn chose(&mut self, choices: &mut Vec<Choice>, spans: &mut Vec<Span>) {
        appended(&mut self.choices, choices);
        appended(&mut self.spans, spans);
        if let Some(step) = self.steps.last_mut() {
            step.choices.1 = self.choices.len() as u32;
            step.spans.1 = self.spans.len() as u32;
        }
    }

    /// Appends the first `count` steps of another trace.
    pub fn extend(&mut self, other: &Trace, count: usize) {
        for step in &other.steps[..count] {
            self.push(step.action, step.seed);
            self.choices.extend_from_slice(other.choices(step));
            self.spans.extend_from_slice(other.spans(step));
            self.chose(&mut Vec::new(), &mut Vec::new());
            if let Some(state) = step.state {
                self.set_state(state);
            }
        }
    }

    /// Keeps the first `count` steps.
    pub fn truncate(&mut self, count: usize) {
        let Some(first) = self.steps.get(count) else { return };
        self.choices.truncate(first.choices.0 as usize);
        self.spans.truncate(first.spans.0 as usize);
        self.steps.truncate(count);
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether the last step made choices.
    pub fn last_drew(&self) -> bool {
        self.steps.last().is_some_and(|step| step.choices.0 < step.choices.1)
    }

    /// Sets the state hash of the last step.
    pub fn set_state(&mut self, state: u128) {
        if let Some(step) = self.steps.last_mut() {
            step.state = Some(state);
        }
    }

    /// The choices that `step`, one of this trace, made.
    pub fn choices(&self, step: &Step) -> &[Choice] {
        &self.choices[step.choices.0 as usize..step.choices.1 as usize]
    }

    /// The choices of the last step.
    pub fn last_choices(&self) -> &[Choice] {
        self.steps.last().map_or(&[], |step| self.choices(step))
    }

    /// Gives the choices of the last step other answers, where there are some that fit.
    pub fn answer_last(&mut self, answers: &[Option<Value>]) {
        let Some(step) = self.steps.last() else { return };
        let choices = &mut self.choices[step.choices.0 as usize..step.choices.1 as usize];
        for (choice, answer) in choices.iter_mut().zip(answers) {
            if let Some(value) = answer.as_ref().and_then(|answer| choice.kind.fit(answer)) {
                choice.value = value;
            }
        }
    }

    /// The spans of `step`, one of this trace, in the order in which they were opened. They are known of steps
    /// that were executed, not of those read from a file.
    pub fn spans(&self, step: &Step) -> &[Span] {
        &self.spans[step.spans.0 as usize..step.spans.1 as usize]
    }

    /// The answers of `step` as a chooser takes them.
    pub fn recorded<'a>(&'a self, step: &Step) -> impl Iterator<Item = Option<Value>> + use<'a> {
        self.choices(step).iter().map(|c| Some(c.value.clone()))
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> u64 {
        let choices: usize = self.choices.iter().map(Choice::bytes).sum();
        (size_of_val(&*self.steps) + choices + size_of_val(&*self.spans)) as u64
    }

    /// Whether it is so long that a run ends with it: what a run holds is bounded, however much each step asks.
    pub fn is_full(&self) -> bool {
        self.steps.len() + 1 >= STEPS_MAX
            || self.choices.len() >= CHOICES_MAX
            || self.spans.len() >= SPANS_MAX
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
