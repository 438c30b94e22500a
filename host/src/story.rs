//! The story of a finding: what each step did, with its arguments.

use crate::choice::Chooser;
use crate::file::name_of;
use crate::machine::{Machine, Told};
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
        story.push(Line { name, action: step.action, told });
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
