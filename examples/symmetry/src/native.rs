//! Visits every state of a protocol without Spelunk, and counts those that differ whoever is who.

use std::collections::HashSet;
use std::hash::Hash;

use spelunk_guest::Scalar;

/// What a visit of all states counts. A state in which the protocol fails is not counted, and nothing follows it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Different ones.
    pub(crate) states: usize,
    /// Of those, different ones whoever is who.
    pub(crate) orbits: usize,
    /// Actions in one state of each orbit, one for each value of their arguments.
    pub(crate) steps: usize,
    /// Actions on a shortest path to a failure.
    pub(crate) failure: Option<usize>,
}

/// What every state must be in which nothing is wrong, and how it is when ids are others.
pub(crate) trait Protocol<const N: usize, Of>: Clone + Default + Eq + Hash {
    fn next(&self) -> Vec<Self>;
    fn is_right(&self) -> bool;
    fn renamed(&self, to: impl Fn(Scalar<N, Of>) -> Scalar<N, Of>) -> Self;
}

/// All that can be reached from the default, breadth-first.
pub(crate) fn reach<const N: usize, Of, P: Protocol<N, Of>>() -> Reached {
    let orders = orders(N);
    let mut reached = Reached { states: 0, orbits: 0, steps: 0, failure: None };
    let (mut seen, mut known) = (HashSet::from([P::default()]), HashSet::new());
    let mut level = vec![P::default()];
    for depth in 1.. {
        let mut deeper = Vec::new();
        for state in &level {
            let next = state.next();
            if !known.contains(state) {
                reached.orbits += 1;
                reached.steps += next.len();
                let index =
                    |id| (0..N).find(|index| Scalar::of_index(*index) == id).expect("it is one of them");
                let renamed =
                    orders.iter().map(|order| state.renamed(|id| Scalar::of_index(order[index(id)])));
                known.extend(renamed);
            }
            for after in next {
                if !after.is_right() {
                    reached.failure.get_or_insert(depth);
                } else if seen.insert(after.clone()) {
                    deeper.push(after);
                }
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

fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for order in orders(n - 1) {
        for place in 0..n {
            let mut order = order.clone();
            order.insert(place, n - 1);
            all.push(order);
        }
    }
    all
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
