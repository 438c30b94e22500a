//! What can go wrong with the threads of a guest, as the instrumented guest notes it.

use crate::outcome::FailureKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadProblem {
    NoRoom,
    OutsideOfThread,
    Overwritten,
}

impl ThreadProblem {
    /// By the number that `StateLayout::suspend` speaks of.
    pub(super) fn of(number: u32) -> Option<ThreadProblem> {
        match number {
            1 => Some(ThreadProblem::NoRoom),
            2 => Some(ThreadProblem::OutsideOfThread),
            3 => Some(ThreadProblem::Overwritten),
            _ => None,
        }
    }

    pub(super) fn told(self) -> (FailureKind, &'static str) {
        match self {
            ThreadProblem::NoRoom => (
                FailureKind::StackOverflow,
                "the stack of a thread is full: keep large values elsewhere, such as in a `Box`, or nest fewer calls",
            ),
            ThreadProblem::OutsideOfThread => {
                (FailureKind::Abi, "`suspend` was called outside of a thread: call it in what `resume` calls")
            }
            ThreadProblem::Overwritten => (
                FailureKind::Abi,
                "what was written down of a thread that is suspended was overwritten, or its record is not one",
            ),
        }
    }
}
