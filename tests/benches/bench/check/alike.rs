//! Protocols among participants that are alike, until the verdict: with `Scalar`, beside stateright with the same code, which does not know
//! that they are.

use std::fmt::Debug;

use anyhow::Result;
use spelunk::check::{self, Order};
use stateright::{Model, Property};
use symmetry::Protocol;
use symmetry::filter_lock::FilterLock;
use symmetry::flexible_paxos::FlexiblePaxos;
use symmetry::raft::Raft;
use symmetry::readers_writers::ReadersWriters;
use symmetry::two_phase_commit::Commit;

use super::{counts, prepared};
use crate::table::Table;
use crate::timed;

/// Seconds that each is checked for, over and over, since some have few states.
const SECONDS: f64 = 0.3;

#[derive(Clone)]
struct Native<P>(std::marker::PhantomData<P>);

impl<P: Protocol + Debug> Model for Native<P>
where
    P::Action: Clone + Debug + PartialEq,
{
    type State = P;
    type Action = P::Action;

    fn init_states(&self) -> Vec<P> {
        vec![P::default()]
    }

    fn actions(&self, state: &P, actions: &mut Vec<P::Action>) {
        state.actions(actions);
    }

    fn next_state(&self, state: &P, action: P::Action) -> Option<P> {
        let mut state = state.clone();
        state.perform(action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("right", |_, state: &P| state.is_right()),
            // Without one that is never seen it would end once all are known.
            Property::sometimes("wrong", |_, state: &P| !state.is_right()),
        ]
    }
}

/// Time until the verdict of each, by one worker.
pub(crate) fn alike(table: &mut Table) -> Result<()> {
    beside::<Commit<7>>(table, &["two-phase-commit", "n7"])?;
    beside::<FilterLock<4>>(table, &["filter-lock", "n4"])?;
    beside::<Raft>(table, &["raft"])?;
    beside::<ReadersWriters<5, 4>>(table, &["readers-writers", "n5"])?;
    beside::<FlexiblePaxos<7>>(table, &["flexible-paxos", "n7"])
}

fn beside<P>(table: &mut Table, features: &[&str]) -> Result<()>
where
    P: Protocol + Debug + Send + Sync + 'static,
    P::Action: Clone + Debug + PartialEq,
{
    let options = check::Options { order: Order::Breadth, ..check::Options::default() };
    let mut checked = prepared("examples/symmetry", features);
    let native = || counts(Native::<P>(std::marker::PhantomData), Order::Breadth, 1);
    let (ours_states, theirs_states) = (checked(&options)?.0, native().0);
    // In turns.
    let (mut ours, mut theirs, mut times) = (0.0, 0.0, 0.0);
    while ours < SECONDS || theirs < SECONDS {
        ours += timed(|| _ = checked(&options)).as_secs_f64();
        theirs += timed(|| _ = native()).as_secs_f64();
        times += 1.0;
    }
    table.gain(
        &format!("{}, whoever is who", features.join(" with ")),
        &format!("{:.1} ms, {ours_states} states", 1e3 * ours / times),
        &format!("{:.1} ms, {theirs_states} states in stateright", 1e3 * theirs / times),
        theirs / ours,
    );
    Ok(())
}
