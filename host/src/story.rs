//! The story of a finding: what each step did, with its arguments.

use std::time::{Duration, Instant};

use crate::changes::Changes;
use crate::choice::Chooser;
use crate::explain::{Part, does_not_matter, is_droppable};
use crate::file::name_of;
use crate::machine::{LABEL_BYTES_MAX, Machine, Told};
use crate::outcome::{Failure, FailureKind, Outcome};
use crate::replay::replay;
use crate::target::{Target, attempt, follows_preconditions};
use crate::text::shown_len;
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
    /// What it changed of what the guest says its state is.
    pub changes: Changes,
    /// The arguments, by their places in `told`, that may have any other value.
    pub free: Vec<usize>,
    /// Without this step there is still a failure of the same kind, if not the same one.
    pub is_droppable: bool,
}

/// Arguments of which it is found out whether they matter, and steps. What else there is may matter.
const EXPLAINED_MAX: usize = 64;

/// Bytes that a guest may tell in all steps together, about.
const TOLD_MAX: usize = 16 << 20;
/// How long telling may go on once no time is left, so that what is found at the end is told too.
const GRACE: Duration = Duration::from_secs(2);

/// What telling steps may take.
struct Telling<'a> {
    is_over: &'a dyn Fn() -> bool,
    began: Instant,
    bytes: usize,
}

impl<'a> Telling<'a> {
    fn until(is_over: &'a dyn Fn() -> bool) -> Telling<'a> {
        Telling { is_over, began: Instant::now(), bytes: 0 }
    }

    fn is_full(&self) -> bool {
        self.bytes > TOLD_MAX
    }

    fn has_no_time(&self) -> bool {
        self.began.elapsed() > GRACE && (self.is_over)()
    }

    fn add(&mut self, told: &Told) {
        let Told { args, notes, chosen, state, .. } = told;
        let named = args.iter().chain(state).map(|(name, value)| shown_len(name) + shown_len(value));
        let texts = notes.iter().chain(chosen).map(|text| shown_len(text));
        self.bytes += named.chain(texts).map(|bytes| bytes + size_of::<String>()).sum::<usize>();
    }
}

/// Tells a trace that fails, and says what in it does not matter, until `is_over` says that no time is left.
pub fn explain(
    machine: &mut Machine,
    trace: &Trace,
    failure: &Failure,
    is_over: &dyn Fn() -> bool,
) -> Vec<Line> {
    let mut story = tell_until(machine, trace, is_over);
    // An execution takes a whole budget; and a loop with other steps may not be fair.
    if matches!(failure.kind, FailureKind::Hang | FailureKind::Timeout | FailureKind::Liveness) || is_over() {
        return story;
    }
    // With the spans, which a trace that was read from a file does not have.
    let trace = replay(machine, trace, false).1;
    let mut left = EXPLAINED_MAX;
    let mut may_ask = || {
        left = left.saturating_sub(1);
        left > 0 && !is_over()
    };
    for (index, line) in story.iter_mut().enumerate().take(trace.len()) {
        for (place, (name, _)) in line.told.args.iter().enumerate() {
            let part = (!is_over()).then(|| part_of(machine, &trace, index, name, place)).flatten();
            let part = part.filter(|_| may_ask());
            if part.is_some_and(|part| does_not_matter(machine, &trace, failure, &part, is_over)) {
                line.free.push(place);
            }
        }
        line.is_droppable = matches!(line.action, Action::Rule(_) | Action::Fault(..))
            && may_ask()
            && is_droppable(machine, &trace, failure, index);
    }
    story
}

/// The choices that an argument was made of: the outermost span with its name, or the choice that the host
/// drew for a parameter.
fn part_of(machine: &Machine, trace: &Trace, index: usize, name: &str, place: usize) -> Option<Part> {
    let step = &trace.steps()[index];
    let (mut end, mut room) = (0, LABEL_BYTES_MAX);
    for (number, span) in trace.spans(step).iter().enumerate() {
        if span.start < end || span.start == span.end {
            continue;
        }
        end = span.end;
        if machine.label(step.action, span.label, &mut room).is_some_and(|label| label == name) {
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
    tell_until(machine, trace, &|| false)
}

/// As [`tell`], until `is_over` says that no time is left: what follows is named, and not told.
pub fn tell_until(machine: &mut Machine, trace: &Trace, is_over: &dyn Fn() -> bool) -> Vec<Line> {
    let mut lines = Vec::new();
    machine.reset();
    each_line(machine, trace, Telling::until(is_over), |line| lines.push(line));
    lines
}

/// Tells steps that lead on from the state that the machine is in, and that fail nowhere, one after the other; whether it is then where they
/// lead, as far as `is_over` leaves time. The machine saves states.
pub fn tell_on(
    machine: &mut Machine,
    steps: &Trace,
    is_over: &dyn Fn() -> bool,
    f: impl FnMut(Line),
) -> bool {
    let is_told = each_line(machine, steps, Telling::until(is_over), f);
    if let (true, Some(step)) = (is_told, steps.steps().last()) {
        let (chooser, what) = (&mut Chooser::default(), (step.action, step.seed));
        attempt(machine, chooser, &mut Vec::new(), what, steps.recorded(step), &mut Trace::default());
    }
    is_told
}

/// What the guest notes in the steps of `trace`, one after the other, until `is_over` says that no time is left.
pub fn notes(machine: &mut Machine, trace: &Trace, is_over: &dyn Fn() -> bool) -> Vec<String> {
    let mut notes = Vec::new();
    machine.reset();
    each_told(machine, trace, Telling::until(is_over), |_, _, told| notes.extend(told.notes));
    notes
}

/// As [`each_told`], as lines.
fn each_line(machine: &mut Machine, trace: &Trace, telling: Telling<'_>, mut f: impl FnMut(Line)) -> bool {
    // What the guest said last that its state is.
    let mut state = Vec::new();
    each_told(machine, trace, telling, |machine, action, mut told| {
        let after = std::mem::take(&mut told.state);
        let changes = Changes::between(&state, &after);
        // A step in which the rule itself fails leads to no state.
        if !after.is_empty() {
            state = after;
        }
        let name = match action {
            Action::Rule(rule) => machine.rules()[usize::from(rule)].name.clone(),
            action => name_of(machine, action),
        };
        f(Line { name, action, told, changes, free: Vec::new(), is_droppable: false });
    })
}

/// Tells each step, from the state that the machine is in, where `trace` begins. It is left before the last one; whether it came so far.
/// Where too much was told, what follows is named alone, but for the last step; where no time is left, all that follows.
fn each_told(
    machine: &mut Machine,
    trace: &Trace,
    mut telling: Telling<'_>,
    mut f: impl FnMut(&Machine, Action, Told),
) -> bool {
    let mut chooser = Chooser::default();
    let (mut enabled, mut again) = (Vec::new(), Trace::default());
    for (index, step) in trace.steps().iter().enumerate() {
        let is_last = index + 1 == trace.len();
        let was_full = telling.is_full();
        let mut told = Told::default();
        if is_last || !was_full {
            told = told_of(machine, trace, index, &mut chooser);
            telling.add(&told);
        }
        let has_no_time = !is_last && telling.has_no_time();
        if has_no_time {
            told.notes.push("no time was left to tell what follows, which is only named".to_string());
        } else if !is_last && !was_full && telling.is_full() {
            told.notes.push("so much was told until here that what follows is only named".to_string());
        }
        f(machine, step.action, told);
        if is_last {
            return true;
        }
        let what = (step.action, step.seed);
        let mut go_on =
            || attempt(machine, &mut chooser, &mut enabled, what, trace.recorded(step), &mut again);
        if has_no_time || go_on() == Outcome::Stopped {
            // What is left is named, and not told.
            trace.steps()[index + 1..].iter().for_each(|step| f(machine, step.action, Told::default()));
            return false;
        }
    }
    true
}

/// What the step with this number tells. The machine stays in the state before it.
fn told_of(machine: &mut Machine, trace: &Trace, index: usize, chooser: &mut Chooser) -> Told {
    let step = &trace.steps()[index];
    let state = machine.snapshot();
    // A precondition that fails is the failure: what follows it is not called, and tells nothing.
    let is_called = !follows_preconditions(step.action) || machine.enabled(&mut Vec::new()).is_ok();
    chooser.begin(step.seed, trace.recorded(step));
    let told = if is_called { machine.tell(step.action, chooser) } else { machine.take_told() };
    match &state {
        Some(state) => machine.restore(state),
        None => reach(machine, trace, index),
    }
    told
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
