//! How a step ends: an outcome is data. It is searched for, shrunk and printed, and never an error of ours.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::symbols::class;
use crate::text;
use crate::trace::Trace;

/// How a step, and so far a run, ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Nothing went wrong.
    Pass,
    /// The run does not count.
    Reject(Reject),
    /// The guest ended itself, and nothing went wrong. Nothing can follow.
    Exit,
    /// The guest failed.
    Fail(Box<Failure>),
    /// The host stopped the guest, since the time was up or the user asked to stop. Nothing that the step did counts.
    Stopped,
}

/// Why the guest did not give the answer that it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Halt {
    /// It failed.
    Fail(Box<Failure>),
    /// See [`Outcome::Stopped`].
    Stopped,
}

impl From<Halt> for Outcome {
    fn from(halt: Halt) -> Outcome {
        match halt {
            Halt::Fail(failure) => Outcome::Fail(failure),
            Halt::Stopped => Outcome::Stopped,
        }
    }
}

/// Why a run does not count. As wide as a pointer, so that an outcome is handed over in two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Reject {
    /// The guest called `reject` (an `assume` that did not hold).
    Assume,
    /// The rule's precondition does not hold in the state it was to be called in.
    Precondition,
    /// What it would come to is seen in another run.
    LeftOut,
}

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// An invariant did not hold, whether it returned 0, panicked or trapped.
    Invariant,
    /// The guest reported a panic.
    Panic,
    /// The guest called `fail`.
    Fail,
    /// A trap.
    Trap,
    /// The step budget ran out.
    Hang,
    /// A call took too long by the clock. Where it was then is chance, and whether it happens again too.
    Timeout,
    /// An access beyond the end of a block of the heap.
    HeapBufferOverflow,
    /// An access before the beginning of a block of the heap.
    HeapBufferUnderflow,
    /// An access of a block that was freed.
    UseAfterFree,
    /// A block that was freed is freed again.
    DoubleFree,
    /// What is freed is no block.
    InvalidFree,
    /// An access beyond the frame of a function on the stack.
    StackBufferOverflow,
    /// Calls nested deeper than the limit.
    StackOverflow,
    /// A choice among nothing.
    Deadlock,
    /// An `always` property with a false condition.
    Always,
    /// An `unreachable` property that was reached.
    Unreachable,
    /// The guest ended itself with a code that says so, or by a signal.
    Exit,
    /// The guest broke the ABI: a malformed question, an unknown name.
    Abi,
    /// Two modules that were given the same calls did not do the same.
    Difference,
    /// A run without end on which what must come never does.
    Liveness,
}

impl FailureKind {
    /// Whether it is one that a sanitizer finds.
    pub fn is_sanitized(self) -> bool {
        use FailureKind::*;
        matches!(
            self,
            HeapBufferOverflow
                | HeapBufferUnderflow
                | UseAfterFree
                | DoubleFree
                | InvalidFree
                | StackBufferOverflow
        )
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FailureKind::Invariant => "invariant",
            FailureKind::Panic => "panic",
            FailureKind::Fail => "fail",
            FailureKind::Trap => "trap",
            FailureKind::Hang => "hang",
            FailureKind::Timeout => "timeout",
            FailureKind::HeapBufferOverflow => "heap-buffer-overflow",
            FailureKind::HeapBufferUnderflow => "heap-buffer-underflow",
            FailureKind::UseAfterFree => "use-after-free",
            FailureKind::DoubleFree => "double-free",
            FailureKind::InvalidFree => "invalid-free",
            FailureKind::StackBufferOverflow => "stack-buffer-overflow",
            FailureKind::StackOverflow => "stack-overflow",
            FailureKind::Deadlock => "deadlock",
            FailureKind::Always => "always",
            FailureKind::Unreachable => "unreachable",
            FailureKind::Exit => "exit",
            FailureKind::Abi => "abi",
            FailureKind::Difference => "difference",
            FailureKind::Liveness => "liveness",
        })
    }
}

/// What went wrong. Two failures are the same one when their [`Failure::id`] is: the kind and the place count. The message
/// does not, since it may hold values that shrinking changes; but of an error that was returned, its class does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// The invariant or property that failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub subject: Option<String>,
    /// What the guest said, or what trapped.
    pub message: String,
    /// Where: `file:line:column`, or `function+offset` where the module does not say which line that is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<String>,
}

/// What the message of a program begins with that ended itself at a place that is known: no error came there from elsewhere.
pub(crate) const ENDED_ITSELF: &str = "the program ended itself";

/// What messages begin with that tell failures of one place apart: of Rust's errors, of its arithmetic, and of WebAssembly's.
const BY_MESSAGE: [&str; 3] = ["called `Result::", "attempt to ", "integer "];

impl Failure {
    /// Letters of an [`Failure::id`].
    pub const ID_LEN: usize = 24;

    /// A failure of no invariant or property, whose place is not known.
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Failure {
        Failure { kind, subject: None, message: message.into(), place: None }
    }

    /// Twenty-four hexadecimal digits that name the failure; stable under shrinking. A guest picks its names and places, so the
    /// hash is one that no two of them are found for.
    pub fn id(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.kind.to_string().as_bytes());
        for part in [&self.subject, &self.place, &self.class()] {
            let part = part.as_deref().unwrap_or("");
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        hasher.finalize().to_hex()[..Failure::ID_LEN].to_string()
    }

    /// Whether both are one failure.
    pub fn is_same(&self, other: &Failure) -> bool {
        (self.kind, &self.subject, &self.place) == (other.kind, &other.subject, &other.place)
            && self.class() == other.class()
    }

    /// Whether the other may be this one in another build, in which it has another place.
    pub fn has_moved(&self, other: &Failure) -> bool {
        (self.kind, &self.subject) == (other.kind, &other.subject)
            && self.place != other.place
            && class(&self.message) == class(&other.message)
    }

    /// What the message says beside its values, of an error that was made elsewhere and came here, and of arithmetic, of which an
    /// expression can fail in several ways.
    fn class(&self) -> Option<String> {
        let is_ended = self.kind == FailureKind::Exit && !self.message.starts_with(ENDED_ITSELF);
        let is_returned = self.kind == FailureKind::Fail || is_ended;
        let is_told = || BY_MESSAGE.iter().any(|beginning| self.message.starts_with(beginning));
        (is_returned || is_told()).then(|| class(&self.message))
    }
}

impl fmt::Display for Failure {
    /// `invariant conserved: total is 90, expected 100`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(subject) = &self.subject {
            write!(f, " {}", text::line(subject))?;
        }
        write!(f, ": {}", text::block(&self.message, "      "))
    }
}

/// A failure with a trace that causes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What went wrong.
    pub failure: Failure,
    /// The run that hit it first, from 1.
    pub run: u64,
    /// All steps from the start, the failing one last.
    pub trace: Trace,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_does_not_count_for_identity() {
        let a = Failure {
            kind: FailureKind::Panic,
            subject: None,
            message: "total is 90".into(),
            place: Some("src/lib.rs:4:2".into()),
        };
        let b = Failure { message: "total is 80".into(), ..a.clone() };
        let c = Failure { place: Some("src/lib.rs:5:2".into()), ..a.clone() };
        assert!(a.is_same(&b) && a.id() == b.id());
        assert!(!a.is_same(&c) && a.id() != c.id());
    }

    /// Errors that are returned meet in one place.
    #[test]
    fn the_class_of_an_error_counts() {
        let failure = |kind, message: &str| Failure {
            kind,
            subject: None,
            message: message.into(),
            place: Some("src/main.rs:9:1".into()),
        };
        for kind in [FailureKind::Fail, FailureKind::Exit] {
            let (one, other) = (failure(kind, "NoSpace(7)"), failure(kind, "NotFound(7)"));
            assert!(!one.is_same(&other) && one.id() != other.id());
            assert!(one.is_same(&failure(kind, "NoSpace(12)")));
        }
        let [one, other] = [
            "the program ended itself with code 1: a is no input",
            "the program ended itself with code 1: b is none",
        ];
        assert!(failure(FailureKind::Exit, one).is_same(&failure(FailureKind::Exit, other)));
        let [zero, beyond] = ["attempt to divide by zero", "attempt to divide with overflow"]
            .map(|message| failure(FailureKind::Panic, message));
        assert!(!zero.is_same(&beyond) && zero.id() != beyond.id());
        let unwrapped = |error: &str| {
            let message = format!("called `Result::unwrap()` on an `Err` value: {error}");
            failure(FailureKind::Panic, &message)
        };
        assert!(!unwrapped("Full").is_same(&unwrapped("Empty")));
        assert!(unwrapped("Full(1)").is_same(&unwrapped("Full(2)")));
    }
}
