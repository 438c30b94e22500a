//! What a machine costs: going back, saving, and the instrumented code itself.

use super::{allocated, build, fault, plain, table::Table, timed};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use spelunk::choice::Chooser;
use spelunk::coverage::FeatureSet;
use spelunk::file::{Entry, Image, STEP_BUDGET_MAX};
use spelunk::machine::{Limits, Machine, PAGE, Program, Sanitizer, Selection, Snapshot, on_guest_stack};
use spelunk::target::Target;
use spelunk::trace::Action;
use wasmtime::{Engine, Module};

/// A machine that has saved its first state, whose rule writes to so many pages of so large a memory, each time
/// something else.
fn dirtying(pages: usize, mib: usize) -> Result<(Machine, Snapshot)> {
    started(&dirtying_wat("", pages, mib))
}

fn started(wat: &str) -> Result<(Machine, Snapshot)> {
    saved(&wat::parse_str(wat)?)
}

fn saved(wasm: &[u8]) -> Result<(Machine, Snapshot)> {
    let program = Program::load(wasm, Limits::default(), Selection::default())?;
    let mut machine = Machine::new(Arc::new(program))?;
    let snapshot = machine.snapshot().context("this module has snapshots")?;
    Ok((machine, snapshot))
}

fn dirtying_wat(imports: &str, pages: usize, mib: usize) -> String {
    format!(
        r#"(module {imports} (memory {}) (global $times (mut i32) (i32.const 0))
             (func (export "rule:dirty") (local i32)
               (global.set $times (i32.add (global.get $times) (i32.const 1)))
               (loop
                 (i32.store (i32.mul (local.get 0) (i32.const {PAGE})) (global.get $times))
                 (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const {pages}))))))"#,
        mib << 4
    )
}

/// The time that restoring takes after the rule was called.
fn restored(table: &Table, machine: &mut Machine, snapshot: &Snapshot) -> Duration {
    let mut chooser = Chooser::default();
    table.middle(|| {
        machine.step(Action::Rule(0), &mut chooser);
        timed(|| machine.restore(snapshot))
    })
}

/// Restoring a checkpoint, and saving one, after some pages were written, beside copying as many bytes. (8 and 69 pages
/// of the 4 KiB that hardware has are about 32 and 276 of ours.)
pub(crate) fn restores(table: &mut Table) -> Result<()> {
    let clock = table.middle(|| timed(|| ()));
    for pages in [1usize, 8, 16, 69, 256] {
        let (mut machine, snapshot) = dirtying(pages, 4)?;
        let restore = restored(table, &mut machine, &snapshot);
        let mut chooser = Chooser::default();
        let save = table.middle(|| {
            machine.step(Action::Rule(0), &mut chooser);
            let mut saved = None;
            let duration = timed(|| saved = machine.snapshot());
            machine.restore(&snapshot);
            duration
        });
        let copy = copying(table, pages);
        let ns = |d: Duration| d.saturating_sub(clock).as_nanos() as f64;
        let beside = format!("{copy:.0} ns copying them");
        for (what, took) in [("restore", ns(restore)), ("checkpoint", ns(save))] {
            table.cost(
                &format!("{what}, {pages} dirty pages"),
                &format!("{took:.0} ns"),
                &beside,
                took / copy,
            );
        }
    }
    Ok(())
}

/// Nanoseconds that copying so many pages takes. So often that the clock does not matter.
fn copying(table: &Table, pages: usize) -> f64 {
    const TIMES: usize = 64;
    let from: Vec<Vec<u8>> = (0..pages).map(|_| vec![1u8; PAGE]).collect();
    let mut to = vec![0u8; pages * PAGE];
    let copies = table.middle(|| {
        timed(|| {
            for _ in 0..TIMES {
                let places = std::hint::black_box(&mut to).chunks_mut(PAGE);
                places.zip(std::hint::black_box(&from)).for_each(|(to, from)| to.copy_from_slice(from));
            }
        })
    });
    copies.as_nanos() as f64 / TIMES as f64
}

/// Restoring a checkpoint of a large memory, beside one of a small memory.
pub(crate) fn sizes(table: &mut Table) -> Result<()> {
    let (mut small, first) = dirtying(8, 1)?;
    let small = restored(table, &mut small, &first);
    for mib in [16, 64] {
        let (mut large, first) = dirtying(8, mib)?;
        let large = restored(table, &mut large, &first);
        table.cost(
            &format!("restore, 8 dirty pages of {mib} MiB"),
            &format!("{} ns", large.as_nanos()),
            &format!("{} ns of 1 MiB", small.as_nanos()),
            large.as_secs_f64() / small.as_secs_f64(),
        );
    }
    Ok(())
}

/// Restoring and saving a checkpoint of a guest that has many files and changed none of them, beside one of a guest without
/// any.
pub(crate) fn files(table: &mut Table) -> Result<()> {
    const FILES: usize = 4000;
    let entries = (0..FILES).map(|file| (format!("d{}/f{file}", file % 50), Entry::File(vec![7; PAGE])));
    let image = Image { folders: vec!["/".to_string()], entries: entries.collect() };
    let import = r#"(import "wasi_snapshot_preview1" "sched_yield" (func (result i32)))"#;
    let with = image.put_into(&wat::parse_str(dirtying_wat(import, 8, 1))?)?;
    let (mut without, first) = dirtying(8, 1)?;
    let (mut with, first_with) = saved(&with)?;
    let times = [restored(table, &mut without, &first), restored(table, &mut with, &first_with)];
    let save = |machine: &mut Machine, snapshot: &Snapshot| {
        let mut chooser = Chooser::default();
        table.middle(|| {
            machine.step(Action::Rule(0), &mut chooser);
            let mut saved = None;
            let took = timed(|| saved = machine.snapshot());
            machine.restore(snapshot);
            took
        })
    };
    let saves = [save(&mut without, &first), save(&mut with, &first_with)];
    for (what, [without, with]) in [("restore", times), ("checkpoint", saves)] {
        table.cost(
            &format!("{what}, {FILES} files that did not change"),
            &format!("{} ns", with.as_nanos()),
            &format!("{} ns without files", without.as_nanos()),
            with.as_secs_f64() / without.as_secs_f64(),
        );
    }
    Ok(())
}

/// The memory that a checkpoint takes, beside the pages that it has and the one before does not.
pub(crate) fn checkpoints(table: &mut Table) -> Result<()> {
    for pages in [1usize, 16, 256] {
        // A thread keeps the pages of checkpoints that it let go, and a new one has none to use again.
        let each = std::thread::scope(|scope| scope.spawn(|| on_guest_stack(|| held_by_each(pages))).join());
        let each = each.map_err(|_| anyhow!("measuring panicked"))??;
        let bytes = (pages * PAGE) as f64;
        table.cost(
            &format!("memory per checkpoint, {pages} dirty pages"),
            &format!("{each:.0} bytes"),
            &format!("{bytes} bytes of pages"),
            each / bytes,
        );
    }
    Ok(())
}

/// Bytes that each of many checkpoints takes, between which so many pages are written.
fn held_by_each(pages: usize) -> Result<f64> {
    const COUNT: usize = 200;
    let (mut machine, first) = dirtying(pages, 1)?;
    let mut chooser = Chooser::default();
    let mut snapshots = Vec::with_capacity(COUNT + 2);
    snapshots.push(first);
    let mut before = 0;
    // The first time buffers grow too.
    for count in 0..=COUNT {
        machine.step(Action::Rule(0), &mut chooser);
        snapshots.push(machine.snapshot().context("this module has snapshots")?);
        if count == 0 {
            before = allocated::held();
        }
    }
    Ok((allocated::held() - before) as f64 / COUNT as f64)
}

/// Real programs with what the explorer needs, with edges alone, and with their heap and their stack sanitized.
pub(crate) fn programs(table: &mut Table) -> Result<()> {
    let wasm = build("guests/programs")?;
    let engine = spelunk::machine::engine()?;
    // The budget is not renewed between the calls.
    let limits = Limits { step_budget: STEP_BUDGET_MAX, ..Limits::default() };
    let explored = spelunk::machine::instrument(&wasm, &limits, &Selection::default())?;
    let sanitized = |sanitizer| {
        let selection = Selection { sanitize: vec![sanitizer], ..Selection::default() };
        spelunk::machine::instrument(&wasm, &limits, &selection)
    };
    let (heap, stack) = (sanitized(Sanitizer::Heap)?, sanitized(Sanitizer::Stack)?);
    let edges = spelunk_instrumenter::Options { dirty: false, budget: false, ..Default::default() };
    let edges = spelunk_instrumenter::instrument(&wasm, &edges)?;
    let modules = [
        Module::new(&Engine::default(), &wasm).map_err(fault)?,
        Module::new(&engine, &explored.wasm).map_err(fault)?,
        Module::new(&engine, &edges.wasm).map_err(fault)?,
        Module::new(&engine, &heap.wasm).map_err(fault)?,
        Module::new(&engine, &stack.wasm).map_err(fault)?,
    ];
    let names = ["json", "inflate", "sql", "regex", "hash_map", "markdown", "interpreter", "png", "sort"];
    let count = if table.is_short() { 101 } else { 501 };
    let mut products = [1.0; 4];
    for name in names {
        let calls: Result<Vec<_>> = modules.iter().map(|module| call(module, name)).collect();
        let mut calls = calls?;
        // Taken in turns, so that all see the same machine.
        let mut samples = [(); 5].map(|()| Vec::new());
        for _ in 0..count {
            for (call, samples) in calls.iter_mut().zip(&mut samples) {
                samples.push(timed(call));
            }
        }
        let [plain, explored, edges, heap, stack] = samples.map(|mut samples| {
            samples.sort_unstable();
            samples[count / 2].as_nanos() as f64
        });
        let beside = format!("{plain:.0} ns plain");
        table.cost(&format!("{name}, instrumented"), &format!("{explored:.0} ns"), &beside, explored / plain);
        table.cost(&format!("{name}, edges alone"), &format!("{edges:.0} ns"), &beside, edges / plain);
        let beside = format!("{explored:.0} ns instrumented");
        for (what, sanitized) in [("heap", heap), ("stack", stack)] {
            let label = format!("{name}, {what} sanitized");
            table.cost(&label, &format!("{sanitized:.0} ns"), &beside, sanitized / explored);
        }
        products[0] *= explored / plain;
        products[1] *= edges / plain;
        products[2] *= heap / explored;
        products[3] *= stack / explored;
    }
    let [explored, edges, heap, stack] = products.map(|product| product.powf(1.0 / names.len() as f64));
    table.cost("instrumented, geometric mean", "", "", explored);
    table.cost("edges alone, geometric mean", "", "", edges);
    table.cost("heap sanitized, beside instrumented, geometric mean", "", "", heap);
    table.cost("stack sanitized, beside instrumented, geometric mean", "", "", stack);
    Ok(())
}

fn call(module: &Module, name: &str) -> Result<Box<dyn FnMut()>> {
    let (mut store, instance) = plain(module)?;
    let func = instance.get_typed_func::<(), u64>(&mut store, name).map_err(fault)?;
    Ok(Box::new(move || {
        std::hint::black_box(func.call(&mut store, ()).expect("the program does not trap"));
    }))
}

/// Looking at the coverage of a step that enters one function, in modules of few and of many functions.
pub(crate) fn coverage(table: &mut Table) -> Result<()> {
    let mut small = 0.0;
    let sizes: &[u32] = if table.is_short() { &[10, 1_000, 10_000] } else { &[10, 1_000, 100_000] };
    for &functions in sizes {
        let program = Program::load(&many(functions), Limits::default(), Selection::default())?;
        let edges = program.edges().edges.len();
        let mut machine = Machine::new(Arc::new(program))?;
        let (mut chooser, mut seen, mut new) = (Chooser::default(), FeatureSet::default(), Vec::new());
        let look = table.middle(|| {
            machine.step(Action::Rule(0), &mut chooser);
            let duration = timed(|| machine.coverage(&seen, &mut new));
            new.drain(..).for_each(|slot| assert!(seen.insert(slot)));
            duration
        });
        let step = table.middle(|| timed(|| drop(machine.step(Action::Rule(0), &mut chooser))));
        let ns = look.as_nanos() as f64;
        small = if small == 0.0 { ns } else { small };
        table.cost(
            &format!("looking at the coverage of a step, {functions} functions"),
            &format!("{ns:.0} ns of {edges} edges"),
            &format!("{} ns the step", step.as_nanos()),
            ns / small,
        );
    }
    Ok(())
}

/// A module of so many functions, each with a few branches, of which a rule calls one.
fn many(functions: u32) -> Vec<u8> {
    let body = "(param i32) (result i32) (if (i32.eqz (local.get 0)) (then (return (i32.const 1)))) \
                (if (result i32) (i32.lt_u (local.get 0) (i32.const 9)) (then (i32.const 2)) (else (i32.const 3)))";
    let others: String = (1..functions).map(|_| format!("(func {body})\n")).collect();
    let text = format!(
        "(module (func $f {body}) {others} (func (export \"rule:call\") (drop (call $f (i32.const 5)))))"
    );
    wat::parse_str(text).expect("this is a module")
}
