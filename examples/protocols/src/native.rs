//! Visits every state of a protocol without Spelunk: what a check of its harness must come to.

use std::collections::HashSet;
use std::hash::Hash;

/// What a visit of all states counts. A state in which the protocol fails is not counted, and nothing follows it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Different ones, with the first.
    pub(crate) states: usize,
    /// Actions that were tried, one for each value of their arguments.
    pub(crate) steps: usize,
    /// Actions on a shortest path to a failure.
    pub(crate) failure: Option<usize>,
}

/// A protocol that never fails.
pub(crate) fn holds(states: usize, steps: usize) -> Reached {
    Reached { states, steps, failure: None }
}

/// All that can be reached from the default, breadth-first.
pub(crate) fn reach<P: Clone + Default + Eq + Hash>(
    next: impl Fn(&P) -> Vec<P>,
    is_right: impl Fn(&P) -> bool,
) -> Reached {
    assert!(is_right(&P::default()));
    let mut reached = holds(1, 0);
    let mut seen = HashSet::from([P::default()]);
    let mut level = vec![P::default()];
    for depth in 1.. {
        let mut deeper = Vec::new();
        for after in level.iter().flat_map(&next) {
            reached.steps += 1;
            if !is_right(&after) {
                reached.failure.get_or_insert(depth);
            } else if seen.insert(after.clone()) {
                deeper.push(after);
            }
        }
        if deeper.is_empty() {
            break;
        }
        level = deeper;
    }
    reached.states = seen.len();
    reached
}

/// What an action makes of this state, with each of these arguments.
pub(crate) fn after<P: Clone, A>(
    state: &P,
    arguments: impl IntoIterator<Item = A>,
    action: impl Fn(&mut P, A),
) -> Vec<P> {
    let one = |argument| {
        let mut state = state.clone();
        action(&mut state, argument);
        state
    };
    arguments.into_iter().map(one).collect()
}

/// What an action without arguments makes of this state, if it is possible.
pub(crate) fn after_one<P: Clone>(state: &P, is_possible: bool, action: impl Fn(&mut P)) -> Vec<P> {
    after(state, is_possible.then_some(()), |state, ()| action(state))
}
