//! Visits every state of a protocol without Spelunk, and counts those that differ whoever is who.

use std::collections::HashSet;

use spelunk_guest::{PerScalar, Scalar};

use crate::Protocol;

/// What a visit of all states counts. A state in which the protocol fails is not counted, and nothing follows it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Different ones.
    pub(crate) states: usize,
    /// Of those, different ones whoever is who.
    pub(crate) orbits: usize,
    /// Actions in one state of each orbit.
    pub(crate) steps: usize,
    /// Actions on a shortest path to a failure.
    pub(crate) failure: Option<usize>,
}

/// A state when ids are others.
pub(crate) trait Renamed: Sized {
    /// The state with every order of its participants.
    fn renamed(&self) -> Vec<Self>;
}

/// All that can be reached from the default, breadth-first.
pub(crate) fn reach<P: Protocol + Renamed>() -> Reached {
    let mut reached = Reached { states: 0, orbits: 0, steps: 0, failure: None };
    let (mut seen, mut known) = (HashSet::from([P::default()]), HashSet::new());
    let mut level = vec![P::default()];
    let mut actions = Vec::new();
    for depth in 1.. {
        let mut deeper = Vec::new();
        for state in &level {
            state.actions(&mut actions);
            if !known.contains(state) {
                reached.orbits += 1;
                reached.steps += actions.len();
                known.extend(state.renamed());
            }
            for action in actions.drain(..) {
                let mut after = state.clone();
                after.perform(action);
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

/// Every order of some ids: what each of them is called in it.
pub(crate) fn orders<const N: usize, Of>() -> Vec<PerScalar<N, Scalar<N, Of>, Of>> {
    let ids: Vec<Scalar<N, Of>> = Scalar::all().iter().collect();
    let named = |order: Vec<usize>| {
        let mut order = order.into_iter();
        PerScalar::from_fn(|_| ids[order.next().expect("as many as there are ids")])
    };
    permutations(N).into_iter().map(named).collect()
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for order in permutations(n - 1) {
        for place in 0..n {
            let mut order = order.clone();
            order.insert(place, n - 1);
            all.push(order);
        }
    }
    all
}
