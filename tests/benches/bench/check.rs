//! Checks, beside replaying, and beside the checkers that native code has.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use spelunk::check::{self, Census, Order};
use spelunk::choice::Chooser;
use spelunk::machine::{Edges, Limits, Machine, Program, Selection};
use spelunk::target::Target;
use spelunk::trace::Action;
use stateright::{Checker, Model, Property};

use super::{build, table::Table, timed};

mod alike;
mod collections;
mod memory;
mod protocols;

pub(crate) use alike::alike;
pub(crate) use memory::memory;
pub(crate) use protocols::protocols;

/// Managers of the two-phase commit that is checked.
const COUNT: usize = 7;

/// The protocol of the example, here as a native model.
#[allow(dead_code, unexpected_cfgs, unreachable_pub)]
#[path = "../../../examples/two-phase-commit/src/protocol.rs"]
mod protocol;

use protocol::{Protocol, Set};

/// Visiting the leaves of a tree of 20 flips, with 1 µs of work before each, beside replaying each leaf from the
/// start, of all the leaves in the full form.
pub(crate) fn tree(table: &mut Table) -> Result<()> {
    let wat = r#"(module
      (import "spelunk" "boolean" (func $boolean (param f64) (result i32)))
      (memory 1)
      (func (export "precondition:flip") (result i32) (i32.lt_u (i32.load (i32.const 0)) (i32.const 20)))
      (func (export "rule:flip") (local $i i32) (local $hash i32)
        (loop $work
          (local.set $hash (i32.mul (i32.add (local.get $hash) (local.get $i)) (i32.const 0x9E3779B1)))
          (br_if $work (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 470))))
        (i32.store (i32.const 4) (local.get $hash))
        (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
        (i32.store (i32.const 8) (i32.add (i32.shl (i32.load (i32.const 8)) (i32.const 1))
          (call $boolean (f64.const 0.5))))))"#;
    let selection = Selection { edges: Edges::None, ..Selection::default() };
    let program = Arc::new(Program::load(&wat::parse_str(wat)?, Limits::default(), selection)?);
    let mut machines = [Machine::new(program)?];
    let mut chooser = Chooser::default();
    let step = table.middle(|| {
        machines[0].reset();
        timed(|| drop(machines[0].step(Action::Rule(0), &mut chooser)))
    });
    let options = check::Options { order: Order::Depth, prunes: false, ..check::Options::default() };
    let mut ns_per_leaf = |options: &check::Options, uses_snapshots: bool| -> Result<(f64, u64)> {
        machines[0].set_uses_snapshots(uses_snapshots)?;
        let start = Instant::now();
        let checked = check::check(&mut machines, options, &|_| None, &mut |_, _| ());
        let runs = checked.expect("this guest is deterministic").census.runs;
        Ok((start.elapsed().as_nanos() as f64 / runs as f64, runs))
    };
    let (with, runs) = ns_per_leaf(&options, true)?;
    // Of all of them takes minutes.
    let runs_max = (!table.is_full()).then_some(20_000);
    let (without, replayed) = ns_per_leaf(&check::Options { runs_max, ..options }, false)?;
    table.gain(
        &format!("a leaf of {runs}"),
        &format!("{with:.0} ns, {} ns a step", step.as_nanos()),
        &format!("{without:.0} ns without snapshots, {replayed} leaves"),
        without / with,
    );
    Ok(())
}

/// Checks a guest with a machine for each worker.
fn checked(wasm: &[u8], workers: usize, options: &check::Options) -> Result<(Census, f64)> {
    let selection = Selection { edges: Edges::None, ..Selection::default() };
    let program = Arc::new(Program::load(wasm, Limits::default(), selection)?);
    let machines: Result<Vec<Machine>> = (0..workers).map(|_| Machine::new(program.clone())).collect();
    let start = Instant::now();
    let checked = check::check(&mut machines?, options, &|_| None, &mut |_, _| ());
    let checked = checked.ok().context("this guest is deterministic, and its choices are few")?;
    ensure!(checked.findings.is_empty(), "this guest has no bug");
    Ok((checked.census, start.elapsed().as_secs_f64()))
}

/// Checks an example, built with these features, as often as it is asked to: its states and steps. It is built as what it is compared with
/// is: as one program, without checks of overflow and debug assertions.
fn prepared(path: &str, features: &[&str]) -> impl FnMut(&check::Options) -> Result<(u64, u64)> {
    let program = spelunk_tests::checks::built(path, features, Some("dist"));
    let mut machines = spelunk_tests::checks::machines(&program, 1);
    move |options: &check::Options| {
        let checked = check::check(&mut machines, options, &|_| None, &mut |_, _| ());
        let checked = checked.ok().context("this guest is deterministic, and its choices are few")?;
        ensure!(checked.findings.is_empty(), "this guest has no bug");
        Ok((checked.census.states, checked.census.steps))
    }
}

/// The states of two-phase commit: the compiled example beside two models in stateright, one written as its
/// documentation writes them, and one that is the code of the example.
pub(crate) fn states(table: &mut Table) -> Result<()> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/two-phase-commit");
    let wasm = spelunk::load::load(
        &path,
        &spelunk::load::Build { features: &[format!("n{COUNT}")], ..Default::default() },
        &mut |_, _| (),
    )?;
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut ways = vec![(Order::Depth, 1)];
    if !table.is_short() {
        ways.extend([(Order::Breadth, 1), (Order::Breadth, cores)]);
    }
    for (order, workers) in ways {
        let options = check::Options { order, ..check::Options::default() };
        let (census, seconds) = checked(&wasm, workers, &options)?;
        let ours = census.states as f64 / seconds;
        let is_short = table.is_short();
        let mut beside = |name: &str, run: &dyn Fn() -> (u64, u64)| -> Result<()> {
            let start = Instant::now();
            // It counts the state it starts from as generated.
            ensure!(run() == (census.states, census.steps + 1), "both count alike");
            let theirs = census.states as f64 / start.elapsed().as_secs_f64();
            let generated = census.steps as f64 / census.states as f64 / 1e6;
            table.gain(
                &format!(
                    "two-phase commit, {COUNT} managers, {order:?} first, {workers} workers, beside {name}"
                ),
                &format!("{ours:.0} states/s of {:.2} M generated/s", ours * generated),
                &format!("{theirs:.0} of {:.2} M in stateright", theirs * generated),
                ours / theirs,
            );
            Ok(())
        };
        if !is_short {
            beside("collections", &|| counts(collections::TwoPhaseCommit, order, workers))?;
        }
        beside("the same code", &|| counts(TwoPhaseCommit, order, workers))?;
    }
    Ok(())
}

/// Unique and generated states.
fn counts<M>(model: M, order: Order, workers: usize) -> (u64, u64)
where
    M: Model + Send + Sync + 'static,
    M::State: std::hash::Hash + Clone + Send + Sync + std::fmt::Debug + PartialEq,
    M::Action: Clone + PartialEq,
{
    fn of<M: Model>(checker: impl Checker<M>) -> (u64, u64) {
        (checker.unique_state_count() as u64, checker.state_count() as u64)
    }
    let builder = model.checker().threads(workers);
    match order {
        Order::Breadth => of(builder.spawn_bfs().join()),
        Order::Depth => of(builder.spawn_dfs().join()),
    }
}

struct TwoPhaseCommit;

/// What happens, and to which manager, where it happens to one.
type Event = (fn(&mut Protocol, usize), usize);

impl Model for TwoPhaseCommit {
    type State = Protocol;
    type Action = Event;

    fn init_states(&self) -> Vec<Protocol> {
        vec![Protocol::default()]
    }

    fn actions(&self, state: &Protocol, actions: &mut Vec<Event>) {
        let mut add = |managers: Set, event: fn(&mut Protocol, usize)| {
            actions.extend(managers.iter().map(|manager| (event, manager)));
        };
        let where_it = |may_happen: bool, managers: usize| Set::of(|rm| may_happen && rm < managers);
        add(state.can_tm_rcv_prepared(), Protocol::tm_rcv_prepared);
        add(where_it(state.can_tm_commit(), 1), |state, _| state.tm_commit(false));
        add(where_it(state.can_tm_abort(), 1), |state, _| state.tm_abort(false));
        add(state.working(), |state, rm| state.rm_prepare(rm, false));
        add(state.working(), Protocol::rm_choose_to_abort);
        add(where_it(state.can_rm_rcv_commit(), COUNT), Protocol::rm_rcv_commit);
        add(where_it(state.can_rm_rcv_abort(), COUNT), Protocol::rm_rcv_abort);
    }

    fn next_state(&self, state: &Protocol, (event, manager): Event) -> Option<Protocol> {
        let mut state = *state;
        event(&mut state, manager);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("consistent", |_, state: &Protocol| state.is_consistent()),
            Property::sometimes("all commit", |_, state: &Protocol| state.is_committed()),
        ]
    }
}

/// All interleavings of three tasks that share a mutex, beside as many in Shuttle, tried in order and drawn.
pub(crate) fn interleavings(table: &mut Table) -> Result<()> {
    let options = check::Options { order: Order::Depth, prunes: false, ..check::Options::default() };
    let wasm = build("guests/tasks")?;
    let (census, seconds) = checked(&wasm, 1, &options)?;
    let count = census.runs as usize;
    let rate = count as f64 / seconds;
    let mut beside = |name: &str, run: &mut dyn FnMut()| {
        let native = count as f64 / timed(run).as_secs_f64();
        table.gain(
            &format!("{count} interleavings of three tasks, {name}"),
            &format!("{rate:.0} a second"),
            &format!("{native:.0} a second in Shuttle"),
            rate / native,
        );
    };
    beside("depth first", &mut || {
        let scheduler = shuttle::scheduler::DfsScheduler::new(Some(count), false);
        shuttle::Runner::new(scheduler, shuttle::Config::default()).run(tasks);
    });
    beside("random", &mut || shuttle::check_random(tasks, count));
    Ok(())
}

/// What the guest does, on Shuttle's threads.
fn tasks() {
    let total = Arc::new(shuttle::sync::Mutex::new(0));
    let add = |total: Arc<shuttle::sync::Mutex<i32>>| {
        move || {
            for _ in 0..3 {
                *total.lock().expect("no thread panics") += 1;
            }
        }
    };
    let threads: Vec<_> = (0..3).map(|_| shuttle::thread::spawn(add(total.clone()))).collect();
    for thread in threads {
        thread.join().expect("no thread panics");
    }
    assert_eq!(*total.lock().expect("no thread panics"), 9);
}
