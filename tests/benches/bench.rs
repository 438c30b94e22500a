//! What the machine costs, as ratios from one run. `cargo bench -p spelunk-tests` prints the table.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use spelunk::check::{self, Order};
use spelunk::choice::Chooser;
use spelunk::energy::Strategy;
use spelunk::explore::{Explorer, Options};
use spelunk::machine::{Edges, Limits, Machine, PAGE, Program, Selection, on_guest_stack};
use spelunk::replay::replay;
use spelunk::shrink::shrink;
use spelunk::target::Target;
use spelunk::trace::Action;
use wasmtime::{Engine, Instance, Module, Store};

fn main() -> Result<()> {
    println!("| what | figure | beside | ratio |");
    println!("|---|---|---|---|");
    on_guest_stack(|| {
        restores()?;
        programs()?;
        exploration()?;
        shrinking()?;
        tree()
    })
}

fn row(what: &str, figure: &str, beside: &str, ratio: f64) {
    println!("| {what} | {figure} | {beside} | {ratio:.2} |");
}

/// The median duration of `f` over many samples.
fn median(mut f: impl FnMut() -> Duration) -> Duration {
    let mut samples: Vec<Duration> = (0..2001).map(|_| f()).collect();
    samples.sort_unstable();
    samples[samples.len() / 2]
}

fn timed(f: impl FnOnce()) -> Duration {
    let start = Instant::now();
    f();
    start.elapsed()
}

/// Restoring a checkpoint after 1, 16 and 256 pages were written, beside copying as many bytes.
fn restores() -> Result<()> {
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

/// Instrumented programs beside the same programs plain.
fn programs() -> Result<()> {
    let wasm = build("guests/programs")?;
    let instrumented = spelunk::machine::instrument(&wasm, &Limits::default(), &Selection::default())?;
    let mut product = 1.0;
    let names = ["json", "inflate", "hash_map", "sort", "interpreter"];
    for name in names {
        let mut plain = call(&wasm, name)?;
        let mut counted = call(&instrumented.wasm, name)?;
        // Taken in turns, so that both see the same machine.
        let mut pairs: Vec<(Duration, Duration)> =
            (0..501).map(|_| (timed(&mut plain), timed(&mut counted))).collect();
        pairs.sort_unstable_by_key(|(plain, _)| *plain);
        let plain = pairs[250].0.as_nanos() as f64;
        pairs.sort_unstable_by_key(|(_, counted)| *counted);
        let counted = pairs[250].1.as_nanos() as f64;
        product *= counted / plain;
        row(
            &format!("{name}, instrumented"),
            &format!("{counted:.0} ns"),
            &format!("{plain:.0} ns plain"),
            counted / plain,
        );
    }
    row("instrumented, geometric mean", "", "", product.powf(1.0 / names.len() as f64));
    Ok(())
}

fn call(wasm: &[u8], name: &str) -> Result<impl FnMut() + use<>> {
    let fault = |e: wasmtime::Error| anyhow::anyhow!("{e:#}");
    let engine = Engine::default();
    let module = Module::new(&engine, wasm).map_err(fault)?;
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).map_err(fault)?;
    let func = instance.get_typed_func::<(), u64>(&mut store, name).map_err(fault)?;
    Ok(move || {
        std::hint::black_box(func.call(&mut store, ()).expect("the program does not trap"));
    })
}

/// Steps a second of a whole exploration; of the lock without guidance, since it would only find itself open.
fn exploration() -> Result<()> {
    let guided = Options::default().strategy;
    for (target, strategy, runs) in
        [("../examples/lock", Strategy::Random, 50_000), ("../examples/kv", guided, 100_000)]
    {
        let program = Program::load(&build(target)?, Limits::default(), Selection::default())?;
        let mut machine = Machine::new(Arc::new(program))?;
        let mut explorer = Explorer::new(&mut machine, Options { seed: 1, strategy, ..Options::default() });
        let start = Instant::now();
        explorer.explore(|progress| progress.runs < runs);
        let seconds = start.elapsed().as_secs_f64();
        let steps = explorer.progress().steps as f64;
        let figure = format!("{:.0} steps/s", steps / seconds);
        let beside = format!("{:.0} runs/s", runs as f64 / seconds);
        row(&format!("exploring {target}"), &figure, &beside, steps / seconds / (runs as f64 / seconds));
    }
    Ok(())
}

/// Shrinking failures of the store with a bug after 60 steps and more, beside executing them once.
fn shrinking() -> Result<()> {
    let wasm = spelunk::load::load(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/kv"),
        &["bug".to_string()],
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
            let shrunk = shrink(&mut machine, &finding.trace, &finding.failure, u64::MAX, |_, _| true);
            shrunk.expect("it fails again");
        });
        if took > slowest {
            slowest = took;
            once = timed(|| drop(replay(&mut machine, &finding.trace, false)));
        }
    }
    let (ms, us) = (slowest.as_secs_f64() * 1e3, once.as_secs_f64() * 1e6);
    let what = format!("shrinking {} traces of 60 steps and more, the slowest", findings.len());
    row(&what, &format!("{ms:.1} ms"), &format!("{us:.1} µs to execute"), ms * 1e3 / us);
    Ok(())
}

/// Visiting the leaves of a tree of 20 flips, with 1 µs of work before each, beside replaying each leaf from the
/// start.
fn tree() -> Result<()> {
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
    let step = median(|| {
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
    // A part of them: all would take a minute.
    let some = check::Options { runs_max: Some(20_000), ..options };
    let (without, _) = ns_per_leaf(&some, false)?;
    row(
        &format!("a leaf of {runs}, {} ns a step", step.as_nanos()),
        &format!("{with:.0} ns"),
        &format!("{without:.0} ns without snapshots"),
        without / with,
    );
    Ok(())
}

fn build(folder: &str) -> Result<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    spelunk::load::load(&path, &[], &mut |_, _| ())
}
