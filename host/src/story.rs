//! The story of a finding: what each step did, with its arguments.

use crate::choice::Chooser;
use crate::explain::{Part, does_not_matter, is_droppable};
use crate::file::name_of;
use crate::machine::{Machine, Told};
use crate::outcome::Failure;
use crate::replay::replay;
use crate::target::{Target, attempt};
use crate::trace::{Action, Trace};

/// One step of a story.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// `open`, `fault disk_full on`, `setup`.
    pub name: String,
    /// What it does.
    pub action: Action,
    /// Arguments and notes.
    pub told: Told,
    /// The arguments, by their places in `told`, that may have any other value.
    pub free: Vec<usize>,
    /// Without this step there is still a failure of the same kind, if not the same one.
    pub is_droppable: bool,
}

/// Tells a trace that fails, and says what in it does not matter.
pub fn explain(machine: &mut Machine, trace: &Trace, failure: &Failure) -> Vec<Line> {
    let mut story = tell(machine, trace);
    // With the spans, which a trace that was read from a file does not have.
    let trace = replay(machine, trace, false).1;
    for (index, line) in story.iter_mut().enumerate() {
        let is_free = |machine: &mut Machine, name: &str, place| {
            let part = part_of(machine, &trace, index, name, place);
            part.is_some_and(|part| does_not_matter(machine, &trace, failure, &part))
        };
        let args = line.told.args.iter().enumerate();
        line.free = args
            .filter(|(place, (name, _))| is_free(machine, name, *place))
            .map(|(place, _)| place)
            .collect();
        line.is_droppable = matches!(line.action, Action::Rule(_) | Action::Fault(..))
            && is_droppable(machine, &trace, failure, index);
    }
    story
}

/// The choices that an argument was made of: the outermost span with its name, or the choice that the host
/// drew for a parameter.
fn part_of(machine: &Machine, trace: &Trace, index: usize, name: &str, place: usize) -> Option<Part> {
    let step = &trace.steps()[index];
    let mut end = 0;
    for (number, span) in trace.spans(step).iter().enumerate() {
        if span.start < end || span.start == span.end {
            continue;
        }
        end = span.end;
        if machine.label(span.label).is_some_and(|label| label == name) {
            let choices = span.start as usize..span.end as usize;
            return Some(Part { step: index, choices, span: Some(number as u32) });
        }
    }
    let Action::Rule(rule) = step.action else { return None };
    let is_drawn = place < machine.rules()[usize::from(rule)].params.len();
    is_drawn.then_some(Part { step: index, choices: place..place + 1, span: None })
}

/// Tells `trace`: each step is executed once more from the state before it, and the guest asked to say what
/// it does; what that changes is undone before the step is executed for the next.
pub fn tell(machine: &mut Machine, trace: &Trace) -> Vec<Line> {
    let mut story = Vec::new();
    for index in 0..trace.len() {
        let step = &trace.steps()[index];
        reach(machine, trace, index);
        let mut chooser = Chooser::default();
        let mut enabled = Vec::new();
        if matches!(step.action, Action::Rule(_)) {
            // As before the step itself; a precondition that fails is the failure, and tells nothing.
            let _ = machine.enabled(&mut enabled);
        }
        chooser.begin(step.seed, trace.recorded(step));
        let told = machine.tell(step.action, &mut chooser);
        let name = match step.action {
            Action::Rule(rule) => machine.rules()[usize::from(rule)].name.clone(),
            action => name_of(machine, action),
        };
        story.push(Line { name, action: step.action, told, free: Vec::new(), is_droppable: false });
    }
    story
}

/// Goes to the state before step `count`.
fn reach(machine: &mut Machine, trace: &Trace, count: usize) {
    let mut chooser = Chooser::default();
    let (mut enabled, mut again) = (Vec::new(), Trace::default());
    machine.reset();
    for step in &trace.steps()[..count] {
        let what = (step.action, step.seed);
        attempt(machine, &mut chooser, &mut enabled, what, trace.recorded(step), &mut again);
    }
}

/// What the guest notes in the steps of `trace`, one after the other.
pub fn notes(machine: &mut Machine, trace: &Trace) -> Vec<String> {
    let mut chooser = Chooser::default();
    let (mut enabled, mut again, mut notes) = (Vec::new(), Trace::default(), Vec::new());
    machine.reset();
    for (index, step) in trace.steps().iter().enumerate() {
        let state = machine.snapshot();
        if matches!(step.action, Action::Rule(_) | Action::Teardown) {
            // A precondition that fails is the failure, and notes nothing.
            let _ = machine.enabled(&mut enabled);
        }
        chooser.begin(step.seed, trace.recorded(step));
        notes.extend(machine.tell(step.action, &mut chooser).notes);
        match &state {
            Some(state) => machine.restore(state),
            None => reach(machine, trace, index),
        }
        let what = (step.action, step.seed);
        attempt(machine, &mut chooser, &mut enabled, what, trace.recorded(step), &mut again);
    }
    notes
}
