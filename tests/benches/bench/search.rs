//! What searching and shrinking cost.

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use spelunk::machine::{Limits, Machine, Program, Selection, on_guest_stack};
use spelunk::replay::replay;
use spelunk::search::energy::Strategy;
use spelunk::search::{Explorer, Options};
use spelunk::shrink::shrink;
use wasmtime::{Engine, Module};

use super::{build, fault, plain, table::Table, timed};

/// What a step of a whole exploration costs, beside calling what does next to nothing; of the lock without guidance,
/// since it would only find itself open.
pub(crate) fn exploration(table: &mut Table) -> Result<()> {
    let guided = Options::default().strategy;
    for (name, strategy, runs) in [("lock", Strategy::Random, 50_000), ("kv", guided, 100_000)] {
        let program =
            Program::load(&build(&format!("../examples/{name}"))?, Limits::default(), Selection::default())?;
        let mut machine = Machine::new(Arc::new(program))?;
        // Closer looks are counted by what they find: see `power.rs`.
        let options = Options { seed: 1, strategy, looks: false, ..Options::default() };
        let mut explorer = Explorer::new(&mut machine, options);
        let start = Instant::now();
        explorer.explore(|progress| progress.runs < runs);
        let seconds = start.elapsed().as_secs_f64();
        let steps = explorer.progress().steps as f64;
        let figure = format!("{:.0} steps/s", steps / seconds);
        let empty = call()?;
        let beside = format!("{:.0} runs/s, {empty:.0} ns a call", runs as f64 / seconds);
        table.cost(&format!("a step of {name}"), &figure, &beside, seconds * 1e9 / steps / empty);
    }
    Ok(())
}

/// A rule that does next to nothing, and an invariant.
const TRIVIAL: &str = r#"(module (memory 1)
    (func (export "rule:add") (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1))))
    (func (export "invariant:holds") (result i32) (i32.const 1)))"#;

/// Nanoseconds that calling this rule takes, in a module that is not instrumented: what other figures stand beside.
pub(crate) fn call() -> Result<f64> {
    let module = Module::new(&Engine::default(), wat::parse_str(TRIVIAL)?).map_err(fault)?;
    let (mut store, instance) = plain(&module)?;
    let rule = instance.get_typed_func::<(), ()>(&mut store, "rule:add").map_err(fault)?;
    let calls = 1_000_000;
    let took = timed(|| (0..calls).for_each(|_| rule.call(&mut store, ()).expect("it does not trap")));
    Ok(took.as_nanos() as f64 / f64::from(calls))
}

/// What is done with a step that does next to nothing, beside calling its rule.
pub(crate) fn steps(table: &mut Table) -> Result<()> {
    let program = Program::load(&wat::parse_str(TRIVIAL)?, Limits::default(), Selection::default())?;
    let mut machine = Machine::new(Arc::new(program))?;
    let (mut empty, mut step) = (f64::MAX, f64::MAX);
    // Taken in turns, so that both see the same machine; the best of each.
    for seed in 1..=5 {
        empty = empty.min(call()?);
        let mut explorer = Explorer::new(&mut machine, Options { seed, ..Options::default() });
        let took = timed(|| explorer.explore(|progress| progress.steps < 1_000_000));
        step = step.min(took.as_nanos() as f64 / explorer.progress().steps as f64);
    }
    let figure = format!("{step:.0} ns, {:.2} M steps/s", 1e3 / step);
    let beside = format!("{empty:.0} ns the call");
    table.cost("a step of a trivial rule with an invariant", &figure, &beside, step / empty);
    Ok(())
}

/// Steps a second of several workers beside one; and of as many explorations that know nothing of each other, which
/// is what the machine has to give.
pub(crate) fn workers(table: &mut Table) -> Result<()> {
    let program =
        Arc::new(Program::load(&build("../examples/kv")?, Limits::default(), Selection::default())?);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let explore = |workers: usize| {
        let machines: Result<Vec<Machine>> = (0..workers).map(|_| Machine::new(program.clone())).collect();
        let mut machines = machines.expect("it was instantiated before");
        let mut explorer = Explorer::with_workers(&mut machines, Options { seed: 1, ..Options::default() });
        let start = Instant::now();
        explorer.explore(|progress| progress.runs < 100_000);
        explorer.progress().steps as f64 / start.elapsed().as_secs_f64()
    };
    let alone = || on_guest_stack(|| explore(1));
    let apart = || {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(alone)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum::<f64>()
        })
    };
    // Taken in turns, so that all see the same machine; the best of each.
    let (mut one, mut together, mut separate) = (0f64, 0f64, 0f64);
    for _ in 0..5 {
        one = one.max(alone());
        together = together.max(on_guest_stack(|| explore(cores)));
        separate = separate.max(apart());
    }
    let what = format!("exploring kv, {cores} workers");
    let figure = format!("{together:.0} steps/s");
    table.gain(&format!("{what}, beside one"), &figure, &format!("{one:.0}"), together / one);
    let beside = format!("{separate:.0} in {cores} explorations");
    table.gain(&format!("{what}, beside as many alone"), &figure, &beside, together / separate);
    Ok(())
}

/// Shrinking failures of the store with a bug after 60 steps and more, beside executing them once.
pub(crate) fn shrinking(table: &mut Table) -> Result<()> {
    let wasm = spelunk::load::load(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/kv"),
        &spelunk::load::Build { features: &["bug".to_string()], ..Default::default() },
        &mut |_, _| (),
    )?;
    let mut machine = Machine::new(Arc::new(Program::load(&wasm, Limits::default(), Selection::default())?))?;
    let mut findings = Vec::new();
    for seed in 1.. {
        let options = Options { seed, strategy: Strategy::Random, steps_max: 80, ..Options::default() };
        let mut explorer = Explorer::new(&mut machine, options);
        explorer.explore(|progress| progress.findings == 0 && progress.runs < 200);
        findings.extend(explorer.findings().filter(|finding| finding.trace.len() >= 60).cloned());
        if findings.len() == 10 {
            break;
        }
    }
    let (mut slowest, mut once) = (Duration::ZERO, Duration::ZERO);
    for finding in &findings {
        let took = timed(|| {
            let shrunk = shrink(&mut machine, &finding.trace, &finding.failure, &[], u64::MAX, |_, _| true);
            shrunk.expect("it fails again");
        });
        if took > slowest {
            slowest = took;
            let executed = (0..20).map(|_| timed(|| drop(replay(&mut machine, &finding.trace, false))));
            once = executed.min().unwrap_or_default();
        }
    }
    let (ms, us) = (slowest.as_secs_f64() * 1e3, once.as_secs_f64() * 1e6);
    let what = format!("shrinking {} traces of 60 steps and more, the slowest", findings.len());
    table.cost(&what, &format!("{ms:.1} ms"), &format!("{us:.1} µs to execute"), ms * 1e3 / us);
    Ok(())
}
