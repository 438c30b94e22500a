//! What it takes until a program can be explored: instrumenting, compiling, and starting the next time.

use super::{build, table::Table, timed};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use spelunk::budget::Budget;
use spelunk::machine::{Cache, Limits, Machine, Program, Selection, instrument};
use spelunk::search::energy::Strategy;
use spelunk::search::{Explorer, Options};
use spelunk_tests::modules::grown;
use wasmparser::{Parser, Payload};

/// Instrumenting the largest modules that are built here, and one of 30 MiB made from the functions of one of them.
pub(crate) fn instrumenting(table: &mut Table) -> Result<()> {
    let (programs, store) = (build("guests/programs")?, build("../examples/kv")?);
    let large = grown(&store, 30 << 20)?;
    let mut first = 0.0;
    for (name, wasm) in [("the programs", &programs), ("kv", &store), ("kv 30 times and more", &large)] {
        let mut edges = 0;
        let took = shortest(5, || {
            let instrumented = instrument(wasm, &Limits::default(), &Selection::default());
            edges = instrumented.map_or(0, |instrumented| instrumented.edges.edges.len());
        });
        ensure!(edges > 0, "{name} cannot be instrumented");
        let mib = without_debug(wasm)? as f64 / f64::from(1 << 20);
        let speed = mib / took.as_secs_f64();
        first = if first == 0.0 { speed } else { first };
        let beside = format!("{mib:.1} MiB, {edges} edges, {} ms", took.as_millis());
        table.gain(&format!("instrumenting {name}"), &format!("{speed:.1} MiB/s"), &beside, speed / first);
    }
    Ok(())
}

/// The second start of a program, from the cache, beside the first.
pub(crate) fn starting(table: &mut Table) -> Result<()> {
    let store = build("../examples/kv")?;
    let folder = tempfile::tempdir()?;
    let cache = Cache::open(folder.path().to_path_buf()).expect("the folder is ours");
    for (name, wasm) in [("kv", &store), ("kv of 5 MiB", &grown(&store, 5 << 20)?)] {
        let load = || {
            drop(Program::load_with(
                wasm,
                Limits::default(),
                Selection::default(),
                Some(&cache),
                &Budget::unlimited(),
            ))
        };
        let first = timed(load);
        let second = shortest(5, load);
        let ms = |duration: Duration| format!("{:.1} ms", duration.as_secs_f64() * 1e3);
        let mib = without_debug(wasm)? as f64 / f64::from(1 << 20);
        table.cost(
            &format!("second start, {name}"),
            &ms(second),
            &format!("{} the first, {mib:.1} MiB", ms(first)),
            second.as_secs_f64() / first.as_secs_f64(),
        );
    }
    Ok(())
}

/// A step of a store in a module of 30 MiB, beside one in the module without the copies that make it large. Both come to
/// the same, since edges guide nothing here.
pub(crate) fn large(table: &mut Table) -> Result<()> {
    if !table.is_full() {
        return Ok(());
    }
    let store = build("../examples/kv")?;
    let mut took = Vec::new();
    for wasm in [&store, &grown(&store, 30 << 20)?] {
        let mut program = None;
        let loading = timed(|| program = Some(Program::load(wasm, Limits::default(), Selection::default())));
        let mut machine = Machine::new(Arc::new(program.context("it was loaded")??))?;
        let rates = Options { continuation_rate: 0.0, mutation_rate: 0.0, ..Options::default() };
        let mut explorer = Explorer::new(&mut machine, Options { strategy: Strategy::Random, ..rates });
        let exploring = timed(|| explorer.explore(|progress| progress.runs < 10_000));
        took.push((loading, exploring, explorer.progress().steps));
    }
    let [(_, small, steps), (loading, large, same)] = took[..] else { bail!("two modules were loaded") };
    ensure!(steps == same, "the large module comes to what the small one comes to");
    let ns = |duration: Duration| format!("{:.0} ns", duration.as_nanos() as f64 / steps as f64);
    table.cost(
        "a step in a module of 30 MiB",
        &format!("{}, {:.1} s to load", ns(large), loading.as_secs_f64()),
        &format!("{} without the copies", ns(small)),
        large.as_secs_f64() / small.as_secs_f64(),
    );
    Ok(())
}

fn shortest(times: usize, mut f: impl FnMut()) -> Duration {
    (0..times).map(|_| timed(&mut f)).min().unwrap_or_default()
}

/// The bytes of a module but for debug sections, which are left out.
fn without_debug(wasm: &[u8]) -> Result<usize> {
    let mut bytes = wasm.len();
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::CustomSection(section) = payload?
            && section.name().starts_with(".debug")
        {
            bytes -= section.data().len();
        }
    }
    Ok(bytes)
}
