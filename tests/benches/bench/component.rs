//! What a component costs beside the same code as a module.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use spelunk::choice::Chooser;
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::search::{Explorer, Options};
use spelunk::target::Target;
use spelunk::trace::Action;

use super::{table::Table, timed};

/// Numbers under keys.
const CORE: &str = r#"
    (memory (export "memory") 1)
    (global $count (mut i32) (i32.const 0))
    (func $at (param $key i32) (result i32) (i32.shl (i32.and (local.get $key) (i32.const 255)) (i32.const 3)))
    (func (export "put") (param $key i32) (param $value i64)
      (global.set $count (i32.add (global.get $count) (i32.const 1)))
      (i64.store (call $at (local.get $key)) (local.get $value)))
    (func (export "get") (param $key i32) (result i64) (i64.load (call $at (local.get $key))))
    (func (export "count") (result i32) (global.get $count))"#;

const LIFTED: &str = r#"
    (core instance $i (instantiate $m))
    (func $put (param "key" s32) (param "value" s64) (canon lift (core func $i "put")))
    (func $get (param "key" s32) (result s64) (canon lift (core func $i "get")))
    (func $count (result s32) (canon lift (core func $i "count")))
    (export "put" (func $put)) (export "get" (func $get)) (export "count" (func $count))"#;

/// A step of an exploration, and a restore.
pub(crate) fn components(table: &mut Table) -> Result<()> {
    let module = format!("(module {CORE})");
    let component = format!("(component (core module $m {CORE}) {LIFTED})");
    let (mut module, mut component) = (machine(&module)?, machine(&component)?);
    let mut best = [Duration::MAX; 2];
    // Taken in turns, so that both see the same machine; the best of each.
    for seed in 1..=5 {
        for (machine, best) in [&mut module, &mut component].into_iter().zip(&mut best) {
            *best = (*best).min(step(machine, seed));
        }
    }
    let [of_module, of_component] = best;
    row(table, "a step of a small component", of_component, of_module);
    let [of_module, of_component] = [restored(table, &mut module)?, restored(table, &mut component)?];
    row(table, "restore, of a component", of_component, of_module);
    Ok(())
}

fn row(table: &mut Table, what: &str, component: Duration, module: Duration) {
    table.cost(
        what,
        &format!("{} ns", component.as_nanos()),
        &format!("{} ns as a module", module.as_nanos()),
        component.as_secs_f64() / module.as_secs_f64(),
    );
}

fn machine(wat: &str) -> Result<Machine> {
    let program = Program::load(&wat::parse_str(wat)?, Limits::default(), Selection::default())?;
    Machine::new(Arc::new(program))
}

/// The time of a step, of those of some runs.
fn step(machine: &mut Machine, seed: u64) -> Duration {
    let mut explorer = Explorer::new(machine, Options { seed, ..Options::default() });
    let start = Instant::now();
    explorer.explore(|progress| progress.runs < 30_000);
    start.elapsed() / explorer.progress().steps as u32
}

/// The time that going back takes, after a key was given a number.
fn restored(table: &Table, machine: &mut Machine) -> Result<Duration> {
    machine.reset();
    let snapshot = machine.snapshot().context("it has snapshots")?;
    let mut chooser = Chooser::default();
    Ok(table.middle(|| {
        chooser.begin(1, []);
        machine.step(Action::Rule(0), &mut chooser);
        timed(|| machine.restore(&snapshot))
    }))
}
