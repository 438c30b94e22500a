//! What a machine costs: going back, saving, and the instrumented code itself.

use super::{build, median, row, timed};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use spelunk::choice::Chooser;
use spelunk::coverage::EdgeSet;
use spelunk::machine::{Limits, Machine, PAGE, Program, Selection};
use spelunk::target::Target;
use spelunk::trace::Action;
use wasmtime::{Engine, Instance, Module, Store};

/// Restoring a checkpoint after 1, 16 and 256 pages were written, beside copying as many bytes.
pub(crate) fn restores() -> Result<()> {
    let clock = median(|| timed(|| ()));
    for pages in [1usize, 16, 256] {
        let wat = format!(
            r#"(module (memory 64)
                 (func (export "rule:dirty") (local i32)
                   (loop
                     (i32.store (i32.mul (local.get 0) (i32.const {PAGE})) (i32.const 7))
                     (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const {pages}))))))"#
        );
        let program = Program::load(&wat::parse_str(wat)?, Limits::default(), Selection::default())?;
        let mut machine = Machine::new(Arc::new(program))?;
        let snapshot = machine.snapshot().expect("this module has snapshots");
        let mut chooser = Chooser::default();
        let restore = median(|| {
            machine.step(Action::Rule(0), &mut chooser);
            timed(|| machine.restore(&snapshot))
        });
        let save = median(|| {
            machine.step(Action::Rule(0), &mut chooser);
            let mut saved = None;
            let duration = timed(|| saved = machine.snapshot());
            machine.restore(&snapshot);
            duration
        });
        let from: Vec<Vec<u8>> = (0..pages).map(|_| vec![1u8; PAGE]).collect();
        let mut to = vec![0u8; pages * PAGE];
        let copy = median(|| {
            timed(|| {
                to.chunks_mut(PAGE)
                    .zip(&from)
                    .for_each(|(to, from)| to.copy_from_slice(std::hint::black_box(from)))
            })
        });
        let ns = |d: Duration| d.saturating_sub(clock).as_nanos() as f64;
        let beside = format!("{:.0} ns copying them", ns(copy));
        row(
            &format!("restore, {pages} dirty pages"),
            &format!("{:.0} ns", ns(restore)),
            &beside,
            ns(restore) / ns(copy),
        );
        row(
            &format!("checkpoint, {pages} dirty pages"),
            &format!("{:.0} ns", ns(save)),
            &beside,
            ns(save) / ns(copy),
        );
    }
    Ok(())
}

/// Real programs with what the explorer needs, and with edges alone, beside the same programs plain.
pub(crate) fn programs() -> Result<()> {
    let wasm = build("guests/programs")?;
    let engine = spelunk::machine::engine()?;
    let explored = spelunk::machine::instrument(&wasm, &Limits::default(), &Selection::default())?;
    let edges = spelunk_instrumenter::Options { dirty: false, budget: false, ..Default::default() };
    let edges = spelunk_instrumenter::instrument(&wasm, &edges)?;
    let names = ["json", "inflate", "sql", "regex", "hash_map", "markdown", "interpreter", "png", "sort"];
    let mut products = [1.0; 2];
    for name in names {
        let mut calls = [
            call(&Engine::default(), &wasm, name)?,
            call(&engine, &explored.wasm, name)?,
            call(&engine, &edges.wasm, name)?,
        ];
        // Taken in turns, so that all see the same machine.
        let mut samples = [(); 3].map(|()| Vec::new());
        for _ in 0..501 {
            for (call, samples) in calls.iter_mut().zip(&mut samples) {
                samples.push(timed(call));
            }
        }
        let [plain, explored, edges] = samples.map(|mut samples| {
            samples.sort_unstable();
            samples[250].as_nanos() as f64
        });
        let beside = format!("{plain:.0} ns plain");
        row(&format!("{name}, instrumented"), &format!("{explored:.0} ns"), &beside, explored / plain);
        row(&format!("{name}, edges alone"), &format!("{edges:.0} ns"), &beside, edges / plain);
        products[0] *= explored / plain;
        products[1] *= edges / plain;
    }
    let [explored, edges] = products.map(|product| product.powf(1.0 / names.len() as f64));
    row("instrumented, geometric mean", "", "", explored);
    row("edges alone, geometric mean", "", "", edges);
    Ok(())
}

fn call(engine: &Engine, wasm: &[u8], name: &str) -> Result<Box<dyn FnMut()>> {
    let fault = |e: wasmtime::Error| anyhow::anyhow!("{e:#}");
    let module = Module::new(engine, wasm).map_err(fault)?;
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, &module, &[]).map_err(fault)?;
    let func = instance.get_typed_func::<(), u64>(&mut store, name).map_err(fault)?;
    Ok(Box::new(move || {
        std::hint::black_box(func.call(&mut store, ()).expect("the program does not trap"));
    }))
}

/// Looking at the coverage of a step that enters one function, in modules of few and of many functions.
pub(crate) fn coverage() -> Result<()> {
    let mut small = 0.0;
    for functions in [10u32, 1_000, 100_000] {
        let program = Program::load(&many(functions), Limits::default(), Selection::default())?;
        let edges = program.edges().edges.len();
        let mut machine = Machine::new(Arc::new(program))?;
        let (mut chooser, mut seen, mut new) = (Chooser::default(), EdgeSet::default(), Vec::new());
        let look = median(|| {
            machine.step(Action::Rule(0), &mut chooser);
            let duration = timed(|| machine.coverage(&seen, &mut new));
            new.drain(..).for_each(|slot| assert!(seen.insert(slot)));
            duration
        });
        let step = median(|| timed(|| drop(machine.step(Action::Rule(0), &mut chooser))));
        let ns = look.as_nanos() as f64;
        small = if small == 0.0 { ns } else { small };
        row(
            &format!("looking at the coverage of a step, {edges} edges"),
            &format!("{ns:.0} ns"),
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
