//! Whether two guests that were given the same step did the same, and how to say it where they did not.

use std::fmt;

use super::super::Machine;
use super::effects::{Effects, Returned, apart, first_difference, quoted};
use crate::choice::Kind;
use crate::file::Ignored;
use crate::outcome::{Failure, FailureKind, Outcome, Reject};
use crate::symbols::class;
use crate::text::line;
use crate::trace::Action;

/// How a step ended, as far as it can be compared.
enum Ending<'e> {
    /// With what a rule returned.
    Passed(Option<&'e Returned>),
    Rejected,
    Exited(u32),
    Failed(&'e Failure),
    /// It asked for what the other one did not, and was not answered.
    Asked(Kind),
}

impl fmt::Display for Ending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Passed(None) => f.write_str("returns"),
            Ending::Passed(Some(returned)) => returned.fmt(f),
            Ending::Rejected => f.write_str("rejects the run"),
            Ending::Exited(code) => write!(f, "ends the program with code {code}"),
            Ending::Failed(Failure { kind, subject, message, .. }) => {
                let subject = subject.iter().map(|subject| format!(" {}", line(subject))).collect::<String>();
                let first = message.lines().next().unwrap_or_default();
                write!(f, "fails ({kind}{subject}: {})", line(first))
            }
            Ending::Asked(kind) => write!(f, "asks for {kind}"),
        }
    }
}

/// A step of two guests: of the target, and of the other one.
pub(super) struct Compared<'c> {
    pub(super) action: Action,
    pub(super) outcomes: [&'c Outcome; 2],
    /// What one asked beyond what the other did.
    pub(super) asked: [Option<Kind>; 2],
    pub(super) ignored: &'c [Ignored],
}

impl Compared<'_> {
    /// The outcome for both: the difference, where they do not do the same.
    pub(super) fn outcome(&self, one: &Machine, other: &Machine) -> Outcome {
        if let Some(found) = self.difference(one, other) {
            return Outcome::Fail(Box::new(found));
        }
        match self.outcomes[0] {
            // Both do, alike.
            Outcome::Fail(_) => Outcome::Reject(Reject::Assume),
            alike => alike.clone(),
        }
    }

    fn difference(&self, one: &Machine, other: &Machine) -> Option<Failure> {
        let effects = [effects_of(one)?, effects_of(other)?];
        let endings = [0, 1].map(|side| ending(self.outcomes[side], self.asked[side], effects[side]));
        let name = || name_of(one, self.action);
        if !self.are_alike([&endings[0], &endings[1]], &name) {
            let name = name();
            let place_of = |ending: &Ending<'_>| match ending {
                Ending::Failed(failure) => failure.place.clone(),
                _ => None,
            };
            let [ends, ends_there] = &endings;
            // That the other one fails there is another difference.
            let there = || place_of(ends_there).map(|place| format!("{place} of the module against it"));
            let place = place_of(ends).or_else(there).unwrap_or_else(|| format!("the result of {name}"));
            let there = ends_there.to_string();
            // The verb is said once.
            let there = match ends {
                Ending::Passed(Some(_)) => there.strip_prefix("returns ").unwrap_or(&there),
                _ => &there,
            };
            return Some(difference(place, format!("`{}` {ends}, and against it {there}", line(&name))));
        }
        if matches!(self.outcomes[0], Outcome::Reject(_)) {
            return None;
        }
        self.written(&name, effects)
            .or_else(|| Compared::called(&name, effects))
            .or_else(|| self.left(&name, [one, other]))
    }

    fn is_ignored(&self, what: &Ignored) -> bool {
        self.ignored.contains(what)
    }

    fn are_alike(&self, endings: [&Ending<'_>; 2], name: &dyn Fn() -> String) -> bool {
        match endings {
            [Ending::Passed(a), Ending::Passed(b)] => {
                a == b || matches!(self.action, Action::Rule(_)) && self.is_ignored(&Ignored::Rule(name()))
            }
            [Ending::Rejected, Ending::Rejected] => true,
            [Ending::Exited(a), Ending::Exited(b)] => a == b,
            [Ending::Failed(a), Ending::Failed(b)] => are_alike(a, b, self.is_ignored(&Ignored::Messages)),
            _ => false,
        }
    }

    /// What they write.
    fn written(&self, name: &dyn Fn() -> String, [one, other]: [&Effects; 2]) -> Option<Failure> {
        // How a failure is reported belongs to it.
        let fails = matches!(self.outcomes[0], Outcome::Fail(_));
        let streams = [
            ("standard output", Ignored::Stdout, &one.stdout, &other.stdout),
            ("standard error", Ignored::Stderr, &one.stderr, &other.stderr),
        ];
        let mut streams = streams.into_iter().filter(|(.., what, _, _)| !(fails && *what == Ignored::Stderr));
        let (stream, _, one, other) =
            streams.find(|(_, what, one, other)| one != other && !self.is_ignored(what))?;
        let name = name();
        let place = format!("{stream} of {name}");
        let name = line(&name);
        let Some((number, lines)) = first_difference(one, other) else {
            let message = format!(
                "`{name}` writes other text to {stream} than the module against it, behind the first 64 KiB"
            );
            return Some(difference(place, message));
        };
        let [shown, shown_there] = match lines {
            [Some(one), Some(other)] => apart([one, other]),
            lines => lines.map(|line| line.map_or("nothing".to_string(), quoted)),
        };
        let which = if number == 1 { String::new() } else { format!(", in line {number}") };
        Some(difference(
            place,
            format!("`{name}` writes {shown} to {stream}, and against it {shown_there}{which}"),
        ))
    }

    /// Calls of imports that nobody provides.
    fn called(name: &dyn Fn() -> String, [one, other]: [&Effects; 2]) -> Option<Failure> {
        let (number, calls) = one.calls.difference(&other.calls)?;
        let [shown, shown_there] = calls.map(|call| call.unwrap_or_else(|| "nothing".to_string()));
        let which = if number == 1 { String::new() } else { format!(" as its import number {number}") };
        let name = name();
        let name_shown = line(&name);
        Some(difference(
            format!("imports of {name}"),
            format!("`{name_shown}` calls {shown}{which}, and against it {shown_there}"),
        ))
    }

    /// The files that they leave.
    fn left(&self, name: &dyn Fn() -> String, machines: [&Machine; 2]) -> Option<Failure> {
        let systems = machines.map(|machine| machine.store.data().system.as_ref());
        let [Some(one), Some(other)] = systems else { return None };
        if one.is(other) || self.is_ignored(&Ignored::Files) {
            return None;
        }
        let (path, [left, left_there]) = one.get().files.difference(&other.get().files)?;
        let name = name();
        let place = format!("files after {name}");
        let (name, path) = (line(&name), line(&path));
        Some(difference(place, format!("`{name}` leaves {left} as `{path}`, and against it {left_there}")))
    }
}

fn effects_of(machine: &Machine) -> Option<&Effects> {
    machine.store.data().step.effects.as_deref()
}

fn ending<'e>(outcome: &'e Outcome, asked: Option<Kind>, effects: &'e Effects) -> Ending<'e> {
    match (outcome, asked) {
        (_, Some(kind)) => Ending::Asked(kind),
        (Outcome::Fail(failure), _) => Ending::Failed(failure),
        (Outcome::Reject(_), _) => Ending::Rejected,
        (Outcome::Exit, _) => Ending::Exited(effects.exit.unwrap_or(0)),
        (Outcome::Pass | Outcome::Stopped, _) => Ending::Passed(effects.returned.as_ref()),
    }
}

/// Whether two failures are the same but for where they are, which differs from build to build.
pub(super) fn are_alike(one: &Failure, other: &Failure, ignores_messages: bool) -> bool {
    // Their messages say where, or have addresses.
    let is_bare =
        matches!(one.kind, FailureKind::Hang | FailureKind::StackOverflow) || one.kind.is_sanitized();
    (one.kind, &one.subject) == (other.kind, &other.subject)
        && (is_bare || ignores_messages || class(&one.message) == class(&other.message))
}

/// A failure that is told apart from others by where it is.
pub(super) fn difference(place: String, message: String) -> Failure {
    Failure { place: Some(place), ..Failure::new(FailureKind::Difference, message) }
}

/// What is called.
fn name_of(machine: &Machine, action: Action) -> String {
    let exports = &machine.program.exports;
    match action {
        Action::Setup => "setup".to_string(),
        Action::Teardown => "teardown".to_string(),
        Action::Deadlock => "deadlock".to_string(),
        Action::Loop | Action::Again(_) => "loop".to_string(),
        Action::Rule(rule) => exports.rules[usize::from(rule)].name.clone(),
        Action::Fault(fault, on) => {
            format!("fault {} {}", exports.faults[usize::from(fault)], if on { "on" } else { "off" })
        }
    }
}
