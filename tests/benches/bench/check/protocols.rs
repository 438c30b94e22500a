//! The states of published protocols: compiled harnesses beside stateright, with the same types of the standard library's
//! collections.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

use anyhow::Result;
use protocols::raft::{Message, Raft};
use spelunk::check::{self, Order};
use stateright::{Model, Property};

use self::bakery::{Bakery, CUSTOMERS};
use self::crash_store::{CrashStore, KEYS};
use self::filter_lock::{FilterLock, THREADS};
use self::flexible_paxos::{FlexiblePaxos, Vote};
use self::readers_writers::ReadersWriters;
use self::treiber::Treiber;
use super::{counts, prepared};
use crate::table::Table;
use crate::timed;

/// Protocols of the examples, here larger, as native models: of few thousand states a check takes as long as it takes to begin.
macro_rules! larger {
    ($($name:ident $path:literal),*) => {
        $(#[allow(dead_code, unexpected_cfgs, unreachable_pub)]
        #[path = $path]
        mod $name;)*
    };
}

larger! {
    bakery "../../../../examples/protocols/src/bakery.rs",
    crash_store "../../../../examples/protocols/src/crash_store.rs",
    filter_lock "../../../../examples/protocols/src/filter_lock.rs",
    flexible_paxos "../../../../examples/protocols/src/flexible_paxos.rs",
    readers_writers "../../../../examples/protocols/src/readers_writers.rs",
    treiber "../../../../examples/protocols/src/treiber.rs"
}

/// Seconds that each is checked for, over and over, since some have few states.
const SECONDS: f64 = 0.3;

/// A protocol as a model.
struct Native<P, A> {
    actions: fn(&P, &mut Vec<A>),
    perform: fn(&mut P, A),
    is_right: fn(&P) -> bool,
}

impl<P, A> Clone for Native<P, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, A> Copy for Native<P, A> {}

impl<P, A> Model for Native<P, A>
where
    P: Clone + Default + Debug + PartialEq + Hash,
    A: Clone + Debug + PartialEq,
{
    type State = P;
    type Action = A;

    fn init_states(&self) -> Vec<P> {
        vec![P::default()]
    }

    fn actions(&self, state: &P, actions: &mut Vec<A>) {
        (self.actions)(state, actions);
    }

    fn next_state(&self, state: &P, action: A) -> Option<P> {
        let mut state = state.clone();
        (self.perform)(&mut state, action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("right", |model: &Self, state| (model.is_right)(state)),
            // Without one that is never seen it would end once all are known.
            Property::sometimes("wrong", |model: &Self, state| !(model.is_right)(state)),
        ]
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Paxos {
    Prepare(u32),
    Promise((usize, u32)),
    Propose(Vote),
    Accept((usize, Vote)),
}

#[derive(Clone, Debug, PartialEq)]
enum Election {
    TimeOut(usize),
    Restart(usize),
    Receive(Message),
}

#[derive(Clone, Debug, PartialEq)]
enum Access {
    Reader(usize),
    Writer(usize),
}

#[derive(Clone, Debug, PartialEq)]
enum Store {
    Put(usize),
    Sync,
    Acknowledge,
    Apply,
    CheckPoint,
    Crash(usize),
    Recover,
}

/// States a second of each, by one worker, beside theirs; of one alone where `PROTOCOL` names it.
pub(crate) fn protocols(table: &mut Table) -> Result<()> {
    let threads = |_: &_, actions: &mut Vec<usize>| actions.extend(0..THREADS);
    let mut all = Vec::new();
    let filter = Native { actions: threads, perform: FilterLock::step, is_right: FilterLock::is_exclusive };
    // Stateright has no fairness, so what is claimed under it is not checked.
    all.push(beside(table, &["filter-lock", "exclusion", "large"], filter)?);
    let bakery = Native {
        actions: |_, actions| actions.extend(0..CUSTOMERS),
        perform: Bakery::step,
        is_right: Bakery::is_exclusive,
    };
    all.push(beside(table, &["bakery", "large"], bakery)?);
    let treiber = Native::<Treiber<true>, usize> {
        actions: |stack, actions| actions.extend(stack.can_step()),
        perform: Treiber::step,
        is_right: Treiber::each_is_in_one_place,
    };
    all.push(beside(table, &["treiber", "tags", "large"], treiber)?);
    all.push(beside(table, &["readers-writers", "large"], readers_writers())?);
    all.push(beside(table, &["crash-store", "large"], crash_store())?);
    all.push(beside(table, &["flexible-paxos", "large"], flexible_paxos())?);
    all.push(beside(table, &["raft"], raft())?);
    let all: Vec<f64> = all.into_iter().flatten().collect();
    let mean = all.iter().map(|ratio| ratio.ln()).sum::<f64>() / all.len() as f64;
    table.gain("protocols, geometric mean", "", "", mean.exp());
    Ok(())
}

/// The ratio of states a second.
fn beside<P, A>(table: &mut Table, features: &[&str], native: Native<P, A>) -> Result<Option<f64>>
where
    P: Clone + Default + Debug + PartialEq + Hash + Send + Sync + 'static,
    A: Clone + Debug + PartialEq + 'static,
{
    let options = check::Options { order: Order::Breadth, ..check::Options::default() };
    if std::env::var("PROTOCOL").is_ok_and(|wanted| wanted != features[0]) {
        return Ok(None);
    }
    let mut checked = prepared("examples/protocols", features);
    let (states, steps) = checked(&options)?;
    anyhow::ensure!(
        counts(native, Order::Breadth, 1) == (states, steps + 1),
        "{features:?}: both count alike"
    );
    // In turns.
    let (mut ours, mut theirs, mut times) = (0.0, 0.0, 0.0);
    while ours < SECONDS || theirs < SECONDS {
        ours += timed(|| _ = checked(&options)).as_secs_f64();
        theirs += timed(|| _ = counts(native, Order::Breadth, 1)).as_secs_f64();
        times += 1.0;
    }
    let [ours, theirs] = [ours, theirs].map(|seconds| states as f64 * times / seconds);
    table.gain(
        &format!("{}, {states} states, {steps} steps", features.join(" with ")),
        &format!("{ours:.0} states/s"),
        &format!("{theirs:.0} in stateright"),
        ours / theirs,
    );
    Ok(Some(ours / theirs))
}

fn readers_writers() -> Native<ReadersWriters, Access> {
    Native {
        actions: |lock, actions| {
            actions.extend(lock.can_step_reader().into_iter().map(Access::Reader));
            actions.extend(lock.can_step_writer().into_iter().map(Access::Writer));
        },
        perform: |lock, action| match action {
            Access::Reader(reader) => lock.step_reader(reader),
            Access::Writer(writer) => lock.step_writer(writer),
        },
        is_right: ReadersWriters::is_exclusive,
    }
}

fn crash_store() -> Native<CrashStore<false>, Store> {
    Native {
        actions: |store, actions| {
            if store.can_put() {
                actions.extend((0..KEYS).map(Store::Put));
            }
            let single = [
                (store.can_sync(), Store::Sync),
                (store.can_acknowledge(), Store::Acknowledge),
                (store.can_apply(), Store::Apply),
                (store.can_check_point(), Store::CheckPoint),
                (store.can_recover(), Store::Recover),
            ];
            actions.extend(single.into_iter().filter(|(can, _)| *can).map(|(_, action)| action));
            actions.extend(store.can_crash().into_iter().map(Store::Crash));
        },
        perform: |store, action| match action {
            Store::Put(key) => store.put(key),
            Store::Sync => store.sync(),
            Store::Acknowledge => store.acknowledge(),
            Store::Apply => store.apply(),
            Store::CheckPoint => store.check_point(),
            Store::Crash(kept) => store.crash(kept),
            Store::Recover => store.recover(),
        },
        is_right: CrashStore::is_durable,
    }
}

fn flexible_paxos() -> Native<FlexiblePaxos<3, 1>, Paxos> {
    Native {
        actions: |paxos, actions| {
            actions.extend(paxos.can_prepare().into_iter().map(Paxos::Prepare));
            actions.extend(paxos.can_promise().into_iter().map(Paxos::Promise));
            actions.extend(paxos.can_propose().into_iter().map(Paxos::Propose));
            actions.extend(paxos.can_accept().into_iter().map(Paxos::Accept));
        },
        perform: |paxos, action| match action {
            Paxos::Prepare(ballot) => paxos.prepare(ballot),
            Paxos::Promise(of) => paxos.promise(of),
            Paxos::Propose(vote) => paxos.propose(vote),
            Paxos::Accept(of) => paxos.accept(of),
        },
        is_right: FlexiblePaxos::agrees,
    }
}

/// Unique and generated states of Raft, by one worker of theirs.
pub(super) fn counts_of_raft(order: Order) -> (u64, u64) {
    counts(raft(), order, 1)
}

fn raft() -> Native<Raft, Election> {
    Native {
        actions: |raft, actions| {
            let messages: &BTreeSet<Message> = raft.messages();
            actions.extend(raft.can_time_out().into_iter().map(Election::TimeOut));
            actions.extend(raft.can_restart().into_iter().map(Election::Restart));
            actions.extend(messages.iter().cloned().map(Election::Receive));
        },
        perform: |raft, action| match action {
            Election::TimeOut(server) => raft.time_out(server),
            Election::Restart(server) => raft.restart(server),
            Election::Receive(message) => raft.receive(message),
        },
        is_right: Raft::has_one_leader_a_term_at_most,
    }
}
