//! From the way in which a call into the guest ended to an outcome.

use anyhow::anyhow;
use wasmtime::{Error, Module, Trap, WasmBacktrace};

use super::Program;
use super::host::Stop;
use super::memory_error::MemoryError;
use super::said::{Said, last_line, said};
use super::state::{Spent, State};
use crate::outcome::{ENDED_ITSELF, Failure, FailureKind, Halt, Outcome, Reject};
use crate::symbols::{Frame, Role, STACK_MAX};
use crate::trace::Action;

/// What was being called.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    Step(Action),
    /// The precondition of this rule.
    Precondition(u16),
    /// By index.
    Invariant(usize),
    /// Whether the state is final.
    Terminal,
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
    let at = place(program, error, None).map(|place| format!(", at {place}")).unwrap_or_default();
    let why = match error.downcast_ref() {
        // That is how a guest ends whose budget is spent, too.
        Some(Trap::UnreachableCodeReached) => {
            format!("; or what it executes then takes more than --step-budget {}", program.limits.steps())
        }
        _ => String::new(),
    };
    anyhow!("the module cannot be instantiated: {}{at}{why}", error.root_cause())
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
        Some(Stop::LeaveOut) => return Outcome::Reject(Reject::LeftOut),
        Some(Stop::Crash) => unreachable!("faults strike rules, which are started again"),
        Some(Stop::Exit(code)) => match exited(program, stderr, &error, *code, phase) {
            Some(failure) => failure,
            None => return Outcome::Exit,
        },
        Some(Stop::Fail(failure)) => {
            let place = place(program, &error, failure.place.clone());
            Failure { place, ..failure.clone() }
        }
        Some(Stop::Thrown(what)) => {
            let (kind, message) = (FailureKind::Panic, what.clone());
            Failure { kind, subject: None, message, place: place(program, &error, None) }
        }
        None => trapped(program, state, stderr, &error, phase),
    };
    Outcome::Fail(Box::new(within(program, failure, phase)))
}

/// The failure that ending itself with this code is, where it is one.
fn exited(program: &Program, stderr: &[u8], error: &Error, code: u32, phase: Phase) -> Option<Failure> {
    let kind = FailureKind::Exit;
    let Phase::Step(_) = phase else {
        let message = format!("it ends the program, with code {code}, which only a step may");
        return Some(Failure { kind, subject: None, message, place: entry(program, phase) });
    };
    if code == 0 {
        return None;
    }
    if let Some(said) = said(stderr).filter(|said| said.place.is_some()) {
        let message = said.message.clone();
        let place = place_said(program, error, said);
        return Some(Failure { kind: FailureKind::Panic, subject: None, message, place });
    }
    let why = last_line(stderr).map(|line| format!(": {line}")).unwrap_or_default();
    // Where it was ended from; a program that returned from `main` was where it was called.
    let own = culprit(program, error, None).filter(|frame| frame.role == Role::Own && frame.line.is_some());
    let ended = if own.is_some() { ENDED_ITSELF } else { "the program ended" };
    let message = format!("{ended} with code {code}{why}");
    // Which code it was is part of what went wrong.
    program.fails_on_exit().then(|| Failure {
        kind,
        subject: Some(code.to_string()),
        message,
        place: own.map(|frame| frame.place()).or_else(|| entry(program, phase)),
    })
}

fn trapped(program: &Program, state: &mut State, stderr: &[u8], error: &Error, phase: Phase) -> Failure {
    let trap = error.downcast_ref::<Trap>();
    if let Some(found) = state.memory_error() {
        return of_memory(program, &found, error);
    }
    if let Some(problem) = state.thread_problem() {
        let (kind, message) = problem.told();
        return Failure { kind, subject: None, message: message.to_string(), place: entry(program, phase) };
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
        (kind, message + &inside(program, error), entry(program, phase))
    } else if trap == Some(&Trap::StackOverflow) || state.is_too_deep(&program.limits) {
        let message = match state.is_too_deep(&program.limits) {
            true => format!("calls nest deeper than {} (--depth-max)", program.limits.depth_max),
            false => "what calls keep does not fit on the stack".to_string(),
        } + &inside(program, error);
        (FailureKind::StackOverflow, message, entry(program, phase))
    } else if trap == Some(&Trap::UnreachableCodeReached)
        && let Some(said) = said(stderr)
    {
        (FailureKind::Panic, said.message.clone(), place_said(program, error, said))
    } else {
        let message = trap.map_or_else(|| error.root_cause().to_string(), |trap| trap_text(*trap));
        (FailureKind::Trap, message, place(program, error, None))
    };
    Failure { kind, subject: None, message, place }
}

/// An error of memory. It is that of the function which called the library that met it.
fn of_memory(program: &Program, found: &MemoryError, error: &Error) -> Failure {
    let functions = &program.instrumented.edges.functions;
    let name = |function: u32| functions.get(function as usize).map(|function| function.name.clone());
    let mut message = found.message(&name);
    let at_fault = culprit(program, error, None);
    // The one that was called.
    let frames = program.symbols.stack(stack(program, error));
    let inner = frames.iter().take_while(|frame| at_fault.as_ref() != Some(frame));
    if let Some(library) = inner.filter(|frame| frame.role == Role::Library).last() {
        message += &format!(", in {}", library.function);
    }
    let place = at_fault.map(|frame| frame.place());
    Failure { kind: found.kind(), subject: None, message, place }
}

fn trap_text(trap: Trap) -> String {
    let text = trap.to_string();
    text.strip_prefix("wasm trap: ").unwrap_or(&text).to_string()
}

fn inside(program: &Program, error: &Error) -> String {
    culprit(program, error, None).map(|frame| format!(", in {frame}")).unwrap_or_default()
}

/// Where the guest was, the innermost frame first: functions, and the offsets of instructions, of the module as it came.
pub(super) fn stack(program: &Program, error: &Error) -> Vec<(u32, u32)> {
    let frames = error.downcast_ref::<WasmBacktrace>().map(WasmBacktrace::frames).unwrap_or_default();
    // Others are of modules of ours, which call the guest.
    let frames = frames.iter().filter(|frame| Module::same(frame.module(), &program.module));
    let frames = frames.map(|frame| (frame.func_index(), frame.module_offset().unwrap_or(0) as u32));
    let mut places = located(program, frames);
    if error.downcast_ref() == Some(&Trap::UnreachableCodeReached)
        && let Some((function, offset)) = places.first_mut()
    {
        *offset = program.symbols.unreachable_at(*function, *offset);
    }
    places
}

/// Functions and offsets of the module as it came, of those of the instrumented one.
pub(super) fn located(program: &Program, frames: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    let code = &program.instrumented.code;
    let located = frames.filter_map(|(function, offset)| code.locate(function, offset));
    located.map(|at| (at.function, at.offset)).collect()
}

/// The frame that names the failure, where the guest says `reported` of it.
fn culprit(program: &Program, error: &Error, reported: Option<&str>) -> Option<Frame> {
    program.symbols.culprit(stack(program, error), reported)
}

/// What names the place: the line of the frame at fault. Where that is not known it is what the guest says, which may be said in a
/// function that others call to end the run, or that was inlined into them; so the function at fault is added.
fn place(program: &Program, error: &Error, reported: Option<String>) -> Option<String> {
    let Some(frame) = culprit(program, error, reported.as_deref()) else { return reported };
    match reported {
        Some(reported) if frame.line.is_none() && frame.role == Role::Own => {
            Some(format!("{reported} in {}", frame.function))
        }
        Some(reported) if frame.line.is_none() => Some(reported),
        _ => Some(frame.place()),
    }
}

/// The place of what a program said: of Go, that of the first call which may return.
fn place_said(program: &Program, error: &Error, said: Said) -> Option<String> {
    let caller =
        said.stack.into_iter().take(STACK_MAX).find(|(function, _)| !program.symbols.is_go_end(function));
    caller.map(|(_, at)| at).or_else(|| place(program, error, said.place))
}

/// The name of what the host called.
fn entry(program: &Program, phase: Phase) -> Option<String> {
    let exports = &program.exports;
    Some(match phase {
        Phase::Step(Action::Setup) => "setup".to_string(),
        Phase::Step(Action::Teardown) => "teardown".to_string(),
        Phase::Step(Action::Deadlock) => "deadlock".to_string(),
        Phase::Step(Action::Loop | Action::Again(_)) => "loop".to_string(),
        Phase::Step(Action::Rule(rule)) => exports.rules[usize::from(rule)].name.clone(),
        Phase::Step(Action::Fault(fault, _)) => exports.faults[usize::from(fault)].clone(),
        Phase::Precondition(rule) => format!("precondition {}", exports.rules[usize::from(rule)].name),
        Phase::Invariant(index) => format!("invariant {}", exports.invariants[index].0),
        Phase::Terminal => "terminal".to_string(),
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
