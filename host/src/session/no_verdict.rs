//! Why a check comes to no verdict, or begins anew.

use anyhow::{Result, anyhow};

use super::error::{Error, ErrorKind};
use super::{JobResult, Summary, Verdict, Work};
use crate::check::{Options, Trouble, TroubleKind};
use crate::choice::Kind;
use crate::file;
use crate::machine::{Compares, Machine};
use crate::target::Target;
use crate::text;
use crate::trace::{Action, Trace};

/// Steps of which a text has the names.
const NAMES_MAX: usize = 8;

impl Work<'_> {
    /// Says why there is no verdict.
    pub(super) fn trouble(&self, machine: &Machine, options: &Options, trouble: &Trouble) -> Result<Summary> {
        let Trouble { trace, kind } = trouble;
        let action = trace.steps().last().map(|step| step.action);
        let name = match action {
            Some(Action::Rule(rule)) => machine.rules()[usize::from(rule)].name.clone(),
            Some(action) => file::name_of(machine, action),
            None => "the start".to_string(),
        };
        let shown = text::line(&name);
        let cannot = |text: String| Err(Error::new(ErrorKind::Check, anyhow!(text)).into());
        match kind {
            TroubleKind::Unbounded(choice, kind) => {
                cannot(unbounded(machine, options, (action, &shown), *choice, kind))
            }
            TroubleKind::State(failure) => {
                cannot(format!("the export `state` failed after step {} ({shown}): {failure}", trace.len()))
            }
            TroubleKind::Unequal { .. } => cannot(unequal(machine, trace, kind)),
            TroubleKind::Stopped => unreachable!("a check that is stopped has a limit, not trouble"),
            TroubleKind::Copies | TroubleKind::Without(_) => unreachable!("it is checked without"),
            TroubleKind::Dependent { rules, why } => {
                let [a, b] = rules.map(|rule| text::line(&machine.rules()[usize::from(rule)].name));
                let place = place_of(machine, trace);
                cannot(format!(
                    "the section `spelunk:reduction` declares `{a}` and `{b}` independent, and they are not: {place}, \
                     {why}; correct the section, or check without --reduce"
                ))
            }
            TroubleKind::Nondeterminism(why) => {
                let result = JobResult::NotRepeated { step: trace.len(), name, why: why.clone() };
                let (findings, saved) = (Vec::new(), Vec::new());
                Ok(Summary { verdict: Verdict::Nondeterministic, findings, saved, result })
            }
        }
    }
}

/// The name of a step, as a part of a line.
fn name_of(machine: &Machine, action: Action) -> String {
    text::line(&file::name_of(machine, action)).into_owned()
}

/// How two states differ that the guest says are one.
fn unequal(machine: &Machine, trace: &Trace, kind: &TroubleKind) -> String {
    let TroubleKind::Unequal { other, steps, last, why } = kind else { return String::new() };
    let names = |actions: &[Action]| match actions {
        [] => "the start".to_string(),
        actions => actions.iter().map(|action| name_of(machine, *action)).collect::<Vec<_>>().join(", "),
    };
    let path = |trace: &Trace| names(&trace.steps().iter().map(|step| step.action).collect::<Vec<_>>());
    let (who, what) = match machine.program().compares() {
        Compares::Content(harness) => (
            format!("`{harness}` holds the same"),
            "keep it in the harness, or derive neither `State` nor `Hash` for that",
        ),
        _ => ("the export `state` says the same".to_string(), "hand it over too"),
    };
    let then = if steps.is_empty() { String::new() } else { format!("after {} more, ", names(steps)) };
    format!(
        "{who} in two states that are not equal, after {} and after {}: {then}`{}` {why} in one of them only. What can still matter is left \
         out: {what}",
        path(other),
        path(trace),
        name_of(machine, *last)
    )
}

/// A choice of which there are too many answers.
fn unbounded(
    machine: &Machine,
    options: &Options,
    (action, name): (Option<Action>, &str),
    choice: usize,
    kind: &Kind,
) -> String {
    if machine.program().has_more_parts(*kind) {
        return format!(
            "`{name}` takes a list or a text of more parts than a check tries: `spelunk explore` is for such a function; or export one \
             that takes records, variants or numbers"
        );
    }
    let count = match kind.alternatives() {
        Some(count) => format!("{count} alternatives"),
        None => "more alternatives than can be counted".to_string(),
    };
    let params = match action {
        Some(Action::Rule(rule)) => machine.rules()[usize::from(rule)].params.len(),
        _ => 0,
    };
    let (what, help) = match choice < params {
        true => (
            format!("parameter {} of `{name}`", choice + 1),
            if machine.program().takes_input() {
                "`spelunk explore` is for such a function; or export `check`, which draws what it needs"
            } else {
                "say its range in a file of signatures (--signatures), or have the rule draw what it needs in place of parameters"
            },
        ),
        false if machine.program().takes_input() => (
            format!("choice {} of `{name}`", choice + 1),
            "`spelunk explore` is for a program whose input is drawn; or give it one: --stdin FILE, an empty file for none",
        ),
        false => (
            format!("choice {} of `{name}`", choice + 1),
            "draw from a smaller range there, or choose among given values",
        ),
    };
    format!(
        "{what} asks for {kind}, which has {count}; a check tries all, and takes {} at most (--domain-max): {help}",
        options.alternatives_max
    )
}

/// Why a check begins anew that had the guest copy its states.
pub(super) fn begins_anew(machine: &Machine, trouble: &Trouble) -> String {
    let place = place_of(machine, &trouble.trace);
    format!(
        "what copies of the harness do {place} is no verdict: its `Clone` leaves something out, shares it or fails, a `static` \
         matters, or it cannot be checked at all. The check begins anew without copies, which takes longer and tells"
    )
}

/// The steps of a trace by their names, or the last of many.
fn place_of(machine: &Machine, trace: &Trace) -> String {
    let beyond = trace.len().saturating_sub(NAMES_MAX);
    let names = trace.steps()[beyond..].iter().map(|step| name_of(machine, step.action));
    let names = names.collect::<Vec<_>>().join(", ");
    match (trace.len(), beyond) {
        (0, _) => "at the start".to_string(),
        (_, 0) => format!("after {names}"),
        (all, _) => format!("after {all} steps, the last of which are {names}"),
    }
}
