//! How checkpoints were reached: chains of steps, which share their beginnings.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::choice::Choice;
use crate::trace::Trace;

/// The steps that lead to a checkpoint: those since the checkpoint it came from, and that one's.
#[derive(Debug)]
pub struct History {
    /// The number of the checkpoint that it leads to; 0 of the start.
    pub id: u64,
    /// Where it came from.
    pub parent: Option<Arc<History>>,
    /// The steps from there.
    pub steps: Trace,
    /// Bytes that the steps hold, those from the start of the run on.
    bytes: u64,
}

impl History {
    /// That of a run that starts fresh.
    pub fn start() -> History {
        History::new(0, None, Trace::default())
    }

    /// The steps that lead from `parent` to the checkpoint with this number.
    pub fn new(id: u64, parent: Option<Arc<History>>, steps: Trace) -> History {
        let bytes = parent.as_ref().map_or(0, |parent| parent.bytes) + steps.bytes();
        History { id, parent, steps, bytes }
    }

    /// Bytes that the steps hold, those from the start of the run on.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that the steps hold since the checkpoint that it came from.
    pub fn own_bytes(&self) -> u64 {
        self.bytes - self.parent.as_ref().map_or(0, |parent| parent.bytes)
    }

    /// The choices of the last step.
    pub fn last_choices(&self) -> &[Choice] {
        self.steps.steps().last().map_or(&[], |step| self.steps.choices(step))
    }

    /// All steps from the start of the run.
    pub fn flatten(&self, out: &mut Trace) {
        let mut chain = vec![self];
        while let Some(parent) = &chain[chain.len() - 1].parent {
            chain.push(parent);
        }
        for history in chain.into_iter().rev() {
            out.extend(&history.steps, history.steps.len());
        }
    }
}

impl Drop for History {
    /// Lets go of a long chain one by one, since dropping it recursively would take as many stack frames.
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(history) = next {
            next = match Arc::try_unwrap(history) {
                Ok(mut history) => history.parent.take(),
                Err(_) => None,
            };
        }
    }
}

/// Bytes that these histories hold together; what several share counts once.
pub(super) fn held_bytes<'h>(histories: impl Iterator<Item = &'h Arc<History>>) -> u64 {
    // Which of two is where does not matter: only the sum is of interest.
    let (mut met, mut bytes) = (BTreeSet::new(), 0);
    for history in histories {
        let mut next = Some(history);
        while let Some(history) = next.filter(|history| met.insert(Arc::as_ptr(history))) {
            bytes += history.own_bytes();
            next = history.parent.as_ref();
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Action;

    /// Steps that make so many choices of bytes.
    fn steps(bytes: &[usize]) -> Trace {
        let mut trace = Trace::default();
        for len in bytes {
            trace.push(Action::Rule(0), 1);
            let kind = crate::choice::Kind::Bytes { min: 0, max: 1 << 20 };
            let value = crate::choice::Value::Bytes(vec![0; *len].into());
            trace.chose(&mut vec![Choice { kind, value }], &mut Vec::new());
        }
        trace
    }

    #[test]
    fn what_several_share_is_held_once() {
        let start = Arc::new(History::start());
        let first = Arc::new(History::new(1, Some(start.clone()), steps(&[1000])));
        let second = Arc::new(History::new(2, Some(first.clone()), steps(&[10, 20])));
        let third = Arc::new(History::new(3, Some(first.clone()), steps(&[100_000])));
        let (one, two) = (steps(&[0]).bytes(), steps(&[0, 0]).bytes());
        assert_eq!(
            [&first, &second, &third].map(|history| history.own_bytes()),
            [one + 1000, two + 30, one + 100_000]
        );
        assert_eq!(third.bytes(), 2 * one + 101_000);
        assert_eq!(held_bytes([&second, &third].into_iter()), 2 * one + two + 101_030);
        assert_eq!(held_bytes([&first, &first, &start].into_iter()), one + 1000);
    }

    #[test]
    fn a_long_history_is_dropped_without_recursion() {
        let mut history = Arc::new(History::start());
        for _ in 0..1_000_000 {
            history = Arc::new(History::new(0, Some(history), Trace::default()));
        }
        drop(history);
    }
}
