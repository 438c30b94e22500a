//! What answers the questions of a run, one run a thread.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::panic::resume_unwind;

use super::Misfit;
use super::draw::Random;

/// What is asked: the kinds of choices, with what limits them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Question {
    Boolean { probability: f64 },
    Index { n: usize },
    Integer { min: i64, max: i64, simplest: i64 },
    Unsigned { min: u64, max: u64, simplest: u64 },
    Float { min: f64, max: f64, nan: bool, infinite: bool },
    Bytes { min: usize, max: usize },
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Boolean(bool),
    Index(u32),
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Bytes(Vec<u8>),
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Question::Boolean { probability } => write!(f, "a boolean with probability {probability}"),
            Question::Index { n } => write!(f, "an index below {n}"),
            Question::Integer { min, max, .. } => write!(f, "an integer in {min}..={max}"),
            Question::Unsigned { min, max, .. } => write!(f, "an unsigned integer in {min}..={max}"),
            Question::Float { min, max, .. } => write!(f, "a float in {min:?}..={max:?}"),
            Question::Bytes { min, max } => write!(f, "{min} to {max} bytes"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Boolean(v) => write!(f, "the boolean {v}"),
            Value::Index(v) => write!(f, "the index {v}"),
            Value::Integer(v) => write!(f, "the integer {v}"),
            Value::Unsigned(v) => write!(f, "the unsigned integer {v}"),
            Value::Float(v) => write!(f, "the float {v:?}"),
            Value::Bytes(v) => write!(f, "{} bytes", v.len()),
        }
    }
}

impl Question {
    /// Whether this is a possible answer.
    ///
    /// What the question of a trace was limited by does not matter: a `usize` has more values here than in WebAssembly.
    fn accepts(&self, value: &Value) -> bool {
        match (*self, value) {
            (Question::Boolean { probability }, Value::Boolean(v)) => {
                if *v {
                    probability > 0.0
                } else {
                    probability.is_nan() || probability < 1.0
                }
            }
            (Question::Index { n }, Value::Index(v)) => (*v as usize) < n,
            (Question::Integer { min, max, .. }, Value::Integer(v)) => (min..=max).contains(v),
            (Question::Unsigned { min, max, .. }, Value::Unsigned(v)) => (min..=max).contains(v),
            (Question::Float { nan, .. }, Value::Float(v)) if v.is_nan() => nan,
            (Question::Float { min, max, infinite, .. }, Value::Float(v)) => {
                (infinite || v.is_finite()) && (min..=max).contains(v)
            }
            (Question::Bytes { min, max }, Value::Bytes(v)) => (min..=max).contains(&v.len()),
            _ => false,
        }
    }

    pub(super) fn simplest(&self) -> Value {
        match *self {
            Question::Boolean { probability } => Value::Boolean(probability >= 1.0),
            Question::Index { .. } => Value::Index(0),
            Question::Integer { simplest, .. } => Value::Integer(simplest),
            Question::Unsigned { simplest, .. } => Value::Unsigned(simplest),
            Question::Float { min, max, .. } => Value::Float(0f64.clamp(min, max)),
            Question::Bytes { min, .. } => Value::Bytes(vec![0; min]),
        }
    }
}

/// Where answers come from.
pub(super) enum Answers {
    /// Those of one step of a trace, of which so many were given.
    Recorded {
        left: VecDeque<Value>,
        given: usize,
        /// Whether the step failed when it was recorded: one that does no more may go further, and ask more.
        failed: bool,
    },
    Drawn(Random),
}

/// A step, as it is told where the run fails.
pub(super) struct Told {
    name: String,
    arguments: Vec<String>,
    notes: Vec<String>,
}

pub(super) struct Host {
    pub(super) answers: Answers,
    /// The faults that are on.
    faults: BTreeSet<String>,
    /// Those that were asked about.
    pub(super) known: BTreeSet<&'static str>,
    pub(super) steps: Vec<Told>,
    /// Why the run ends, where it does not fail.
    ended: Option<Ended>,
}

/// Why a run ends early that did not fail.
pub(super) enum Ended {
    Rejected,
    Misfit(String),
}

thread_local! {
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
}

/// Nobody answers.
pub(crate) fn outside() -> ! {
    panic!(
        "this draws its values from Spelunk: build it for `wasm32-unknown-unknown` and run `spelunk explore`, or run it by \
         `spelunk_guest::native`"
    )
}

fn with<R>(f: impl FnOnce(&mut Host) -> R) -> R {
    HOST.with_borrow_mut(|host| host.as_mut().map(f)).unwrap_or_else(|| outside())
}

pub(crate) fn is_running() -> bool {
    HOST.with_borrow(Option::is_some)
}

/// Whether the run has turned the fault on.
pub(crate) fn is_fault_on(name: &'static str) -> bool {
    HOST.with_borrow_mut(|host| {
        host.as_mut().is_some_and(|host| {
            host.known.insert(name);
            host.faults.contains(name)
        })
    })
}

/// A run on this thread, until it is dropped.
pub(super) struct Running;

impl Running {
    /// # Panics
    /// If there is one already.
    pub(super) fn start(answers: Answers) -> Running {
        assert!(!is_running(), "a run within a run: each has a thread of its own");
        let (faults, known) = Default::default();
        HOST.set(Some(Host { answers, faults, known, steps: Vec::new(), ended: None }));
        Running
    }

    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Host) -> R) -> R {
        with(f)
    }

    pub(super) fn begin(&self, name: &str) {
        with(|host| host.steps.push(Told { name: name.into(), arguments: vec![], notes: vec![] }));
    }

    pub(super) fn set_fault(&self, name: &str, on: bool) {
        with(|host| match on {
            true => host.faults.insert(name.into()),
            false => host.faults.remove(name),
        });
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        with(|host| host.ended.take())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        HOST.set(None);
    }
}

/// Says why a step did not go to its end, and leaves it.
struct Left;

fn leave(ended: Ended) -> ! {
    with(|host| host.ended = Some(ended));
    // Not a panic: no hook runs, and nothing is printed.
    resume_unwind(Box::new(Left))
}

pub(crate) fn reject() -> ! {
    leave(Ended::Rejected)
}

pub(crate) fn ask(question: Question) -> Value {
    let answer = with(|host| match &mut host.answers {
        Answers::Drawn(random) => Ok(random.answer(&question)),
        Answers::Recorded { left, given, failed } => match left.pop_front() {
            None if *failed => Ok(question.simplest()),
            None => Err(format!("it asks for {question} after the {given} choices that were recorded")),
            Some(value) if question.accepts(&value) => {
                *given += 1;
                Ok(value)
            }
            Some(value) => {
                Err(format!("it asks for {question}, and recorded as choice {} is {value}", *given + 1))
            }
        },
    });
    answer.unwrap_or_else(|why| leave(Ended::Misfit(why)))
}

pub(crate) fn describe(name: &str, value: &str) {
    HOST.with_borrow_mut(|host| {
        if let Some(step) = host.as_mut().and_then(|host| host.steps.last_mut()) {
            step.arguments.push(format!("{name}={value}"));
        }
    });
}

pub(crate) fn note(text: &str) {
    HOST.with_borrow_mut(|host| {
        if let Some(step) = host.as_mut().and_then(|host| host.steps.last_mut()) {
            step.notes.push(text.to_string());
        }
    });
}

/// The story of a run, a step a line.
pub(super) fn story(steps: &[Told]) -> String {
    let width = steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
    let mut story = String::new();
    for (number, Told { name, arguments, notes }) in (1..).zip(steps) {
        let line = format!("{number:>3}  {name:width$}  {}", arguments.join(" "));
        story += &format!("{}\n", line.trim_end());
        notes.iter().for_each(|note| story += &format!("     | {note}\n"));
    }
    story
}

impl Misfit {
    pub(super) fn at(number: usize, step: &str, why: impl fmt::Display) -> Misfit {
        Misfit(format!("the trace does not fit: step {number} (`{step}`): {why}"))
    }
}
