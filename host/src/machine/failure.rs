//! From the way in which a call into the guest ended to an outcome.

use anyhow::anyhow;
use spelunk_instrumenter::is_library;
use wasmtime::{Error, Trap, WasmBacktrace};

use super::Program;
use super::heap::HeapError;
use super::host::Stop;
use super::said::{Said, last_line, said};
use super::state::{Spent, State};
use crate::outcome::{Failure, FailureKind, Halt, Outcome, Reject};
use crate::trace::Action;

/// What was being called.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    Step(Action),
    /// The precondition of this rule.
    Precondition(u16),
    /// By index.
    Invariant(usize),
    /// What the state is.
    State,
}

/// Why a module cannot be instantiated.
pub(super) fn of_start(program: &Program, error: &Error) -> anyhow::Error {
    if let Some(exhaustion) = program.budget.exhaustion() {
        return anyhow!(exhaustion);
    }
    if let Err(stopped) = program.budget.check() {
        return stopped.into();
    }
    let (least, most) = (program.memory_bytes_min(), program.limits.memory_bytes_max);
    if least > most {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        return anyhow!(
            "the memories of the module have {} MiB from the start, and may have {}; --memory-max sets the limit",
            mib(least),
            mib(most)
        );
    }
    let at = place(program, error).map(|place| format!(", at {place}")).unwrap_or_default();
    anyhow!("the module cannot be instantiated: {}{at}", error.root_cause())
}

/// Why a module cannot be instantiated that was instantiated before.
pub(super) fn of_restart(program: &Program, error: &anyhow::Error) -> Halt {
    if program.budget.is_over() {
        return Halt::Stopped;
    }
    let message = format!("{error}; it was before, so that this is not reproducible");
    Halt::Fail(Box::new(Failure { kind: FailureKind::Timeout, subject: None, message, place: None }))
}

/// An invariant returned 0.
pub(super) fn invariant_is_false(program: &Program, index: usize) -> Failure {
    let (name, _) = &program.exports.invariants[index];
    Failure {
        kind: FailureKind::Invariant,
        subject: Some(name.clone()),
        message: "it does not hold".to_string(),
        place: None,
    }
}

/// The outcome of a call that did not return.
///
/// `stderr` is what the step wrote to standard error.
pub(super) fn outcome(
    program: &Program,
    state: &mut State,
    stderr: &[u8],
    error: Error,
    phase: Phase,
) -> Outcome {
    if program.budget.is_exhausted()
        || program.budget.is_over() && matches!(state.spent(), Some(Spent::ByWatchdog))
    {
        return Outcome::Stopped;
    }
    let failure = match error.downcast_ref::<Stop>() {
        Some(Stop::Reject) => return Outcome::Reject(Reject::Assume),
        Some(Stop::Crash) => unreachable!("faults strike rules, which are started again"),
        Some(Stop::Exit(code)) => match exited(program, stderr, *code, phase) {
            Some(failure) => failure,
            None => return Outcome::Exit,
        },
        Some(Stop::Fail(failure)) => {
            let place = failure.place.clone().or_else(|| place(program, &error));
            Failure { place, ..failure.clone() }
        }
        None => trapped(program, state, stderr, &error, phase),
    };
    Outcome::Fail(Box::new(within(program, failure, phase)))
}

/// The failure that ending itself with this code is, where it is one.
fn exited(program: &Program, stderr: &[u8], code: u32, phase: Phase) -> Option<Failure> {
    let kind = FailureKind::Exit;
    let Phase::Step(_) = phase else {
        let message = format!("it ends the program, with code {code}, which only a step may");
        return Some(Failure { kind, subject: None, message, place: entry(program, phase) });
    };
    if code == 0 {
        return None;
    }
    if let Some(Said { message, place: Some(place) }) = said(stderr) {
        return Some(Failure { kind: FailureKind::Panic, subject: None, message, place: Some(place) });
    }
    let why = last_line(stderr).map(|line| format!(": {line}")).unwrap_or_default();
    let message = format!("the program ended with code {code}{why}");
    // Which code it was is part of what went wrong.
    program.fails_on_exit().then(|| Failure {
        kind,
        subject: Some(code.to_string()),
        message,
        place: entry(program, phase),
    })
}

fn trapped(program: &Program, state: &mut State, stderr: &[u8], error: &Error, phase: Phase) -> Failure {
    let trap = error.downcast_ref::<Trap>();
    let at = place(program, error);
    if let Some(found) = state.heap_error() {
        return of_heap(program, &found, error);
    }
    // Where a budget runs out or a stack ends is chance; the call that led there names the failure.
    let (kind, message, place) = if let Some(spent) = state.spent() {
        let (kind, message) = match spent {
            Spent::ByGuest => {
                (FailureKind::Hang, "the step did not end within its budget (--step-budget)".into())
            }
            Spent::ByWatchdog => {
                let seconds = program.call_max().as_secs();
                let message = format!(
                    "the step did not end within {seconds} s; where it was then, and whether that happens again, is \
                     not reproducible"
                );
                (FailureKind::Timeout, message)
            }
        };
        (kind, message + &inside(&at), entry(program, phase))
    } else if trap == Some(&Trap::StackOverflow) || state.is_too_deep(&program.limits) {
        let message =
            format!("calls nest deeper than {} (--depth-max){}", program.limits.depth_max, inside(&at));
        (FailureKind::StackOverflow, message, entry(program, phase))
    } else if trap == Some(&Trap::UnreachableCodeReached)
        && let Some(said) = said(stderr)
    {
        (FailureKind::Panic, said.message, said.place.or(at))
    } else {
        let message = trap.map_or_else(|| error.root_cause().to_string(), |trap| trap_text(*trap));
        (FailureKind::Trap, message, at)
    };
    Failure { kind, subject: None, message, place }
}

/// An error of the heap. It is that of the function which called the library that met it.
fn of_heap(program: &Program, found: &HeapError, error: &Error) -> Failure {
    let functions = &program.instrumented.edges.functions;
    let name = |function: u32| functions.get(function as usize).map(|function| function.name.clone());
    let mut message = found.message(&name);
    let mut frames = frames(program, error).peekable();
    let innermost = frames.peek().cloned();
    let place = frames.find(|(name, _)| !is_library(name)).or(innermost.clone()).map(|(_, place)| place);
    if let Some((library, _)) = innermost.filter(|(name, at)| is_library(name) && place.as_ref() != Some(at))
    {
        message += &format!(", in {library}");
    }
    Failure { kind: found.kind(), subject: None, message, place }
}

fn trap_text(trap: Trap) -> String {
    let text = trap.to_string();
    text.strip_prefix("wasm trap: ").unwrap_or(&text).to_string()
}

fn inside(place: &Option<String>) -> String {
    place.as_ref().map(|place| format!(", in {place}")).unwrap_or_default()
}

/// `function+offset` of the innermost guest frame, as the original module has it; the offset is that within
/// the function's body, which changes elsewhere do not move.
pub(super) fn place(program: &Program, error: &Error) -> Option<String> {
    frames(program, error).next().map(|(_, place)| place)
}

/// The name of each of the guest's frames, from the innermost on, and the place in it.
fn frames(program: &Program, error: &Error) -> impl Iterator<Item = (String, String)> {
    let frames = error.downcast_ref::<WasmBacktrace>().map(WasmBacktrace::frames).unwrap_or_default();
    frames.iter().filter_map(|frame| {
        let offset = frame.module_offset().unwrap_or(0);
        let at = program.instrumented.code.locate(frame.func_index(), offset as u32)?;
        let name = at.name.unwrap_or_else(|| format!("func[{}]", at.function));
        let start = program.bodies.get(at.function as usize).copied().flatten().unwrap_or(0);
        let place = format!("{name}+{:#x}", at.offset.saturating_sub(start));
        Some((name, place))
    })
}

/// The name of what the host called.
fn entry(program: &Program, phase: Phase) -> Option<String> {
    let exports = &program.exports;
    Some(match phase {
        Phase::Step(Action::Setup) => "setup".to_string(),
        Phase::Step(Action::Teardown) => "teardown".to_string(),
        Phase::Step(Action::Rule(rule)) => exports.rules[usize::from(rule)].name.clone(),
        Phase::Step(Action::Fault(fault, _)) => exports.faults[usize::from(fault)].clone(),
        Phase::Precondition(rule) => format!("precondition {}", exports.rules[usize::from(rule)].name),
        Phase::Invariant(index) => format!("invariant {}", exports.invariants[index].0),
        Phase::State => "state".to_string(),
    })
}

/// A panic or trap inside an invariant is that invariant's failure.
fn within(program: &Program, failure: Failure, phase: Phase) -> Failure {
    match (phase, failure.kind) {
        (Phase::Invariant(index), FailureKind::Panic | FailureKind::Trap | FailureKind::Fail) => {
            let subject = Some(program.exports.invariants[index].0.clone());
            Failure { kind: FailureKind::Invariant, subject, ..failure }
        }
        _ => failure,
    }
}
