//! What Spelunk costs, as ratios from one run: `cargo bench --workspace --bench bench` prints the table, with
//! `-- --full` what takes minutes too, with `-- programs` one part. `-- --check` runs a short form of it, and fails where
//! a ratio got worse by more than half than `tests/benches/ratios.txt` has it; `-- --record` writes that file.

mod allocated;
mod campaign;
mod check;
mod component;
mod fuzz;
mod libraries;
mod load;
mod machine;
mod power;
mod search;
mod table;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use spelunk::machine::on_guest_stack;
use spelunk_tests::ratios::{self, Ratio};
use table::{Form, Table};
use wasmtime::{Instance, Module, Store};

/// How often a part is measured, since the machine may be busy with other things: of each ratio the middle one is recorded,
/// and a check measures again, so often at most, until none is worse.
const TIMES: usize = 3;

/// What the short form leaves out, and why. Parts of which it has no row do not run in it.
const NOT_CHECKED: &[(&str, &str)] = &[
    ("instrumenting", "uses all cores, on modules of unlike sizes"),
    ("starting", "the first start uses all cores, the second reads from the disk"),
    ("large", "takes long to compile"),
    ("coverage, of 100,000 functions", "takes long to compile"),
    ("workers", "depends on the number of cores"),
    ("targets, beside libFuzzer", "it would have to be built"),
    ("power", "takes minutes"),
    ("libraries", "takes minutes"),
    ("store", "depends on the disk"),
    ("tree, of all leaves", "takes long"),
    ("states, breadth-first and of all workers", "takes long, and depends on the number of cores"),
    ("protocols", "theirs is as fast as the allocator of the machine"),
    ("alike", "theirs is as fast as the allocator of the machine"),
    ("memory", "is measured on Linux only"),
    ("states, beside collections", "theirs is as fast as the allocator of the machine"),
];

type Part = (&'static str, fn(&mut Table) -> Result<()>);

/// Parts, and whether the short form has rows of them.
const PARTS: &[(Part, bool)] = &[
    (("instrumenting", load::instrumenting), false),
    (("starting", load::starting), false),
    (("large", load::large), false),
    (("restores", machine::restores), true),
    (("sizes", machine::sizes), true),
    (("files", machine::files), true),
    (("checkpoints", machine::checkpoints), true),
    (("coverage", machine::coverage), true),
    (("programs", machine::programs), true),
    (("components", component::components), true),
    (("steps", search::steps), true),
    (("exploration", search::exploration), true),
    (("workers", search::workers), false),
    (("targets", fuzz::targets), true),
    (("power", power::power), false),
    (("hidden", power::hidden), false),
    (("machines", power::machines), false),
    (("libraries", libraries::libraries), false),
    (("shrinking", search::shrinking), true),
    (("store", campaign::store), false),
    (("tree", check::tree), true),
    (("states", check::states), true),
    (("protocols", check::protocols), false),
    (("alike", check::alike), false),
    (("memory", check::memory), false),
    (("interleavings", check::interleavings), true),
];

fn main() -> Result<ExitCode> {
    let has = |flag: &str| std::env::args().any(|arg| arg == flag);
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    println!("| what | figure | beside | ratio |");
    println!("|---|---|---|---|");
    on_guest_stack(|| match (has("--record"), has("--check")) {
        (true, _) => record(&wanted),
        (_, true) => check_ratios(&wanted),
        _ => {
            let form = if has("--full") { Form::Full } else { Form::Usual };
            parts(&wanted).try_for_each(|(_, part)| part(&mut Table::new(form)))?;
            Ok(ExitCode::SUCCESS)
        }
    })
}

/// The parts whose names contain `wanted`.
fn parts(wanted: &str) -> impl Iterator<Item = Part> {
    PARTS.iter().map(|(part, _)| *part).filter(move |(name, _)| name.contains(wanted))
}

/// Those of them that the short form has.
fn short_parts(wanted: &str) -> impl Iterator<Item = Part> {
    PARTS
        .iter()
        .filter(|(_, is_short)| *is_short)
        .map(|(part, _)| *part)
        .filter(move |(name, _)| name.contains(wanted))
}

fn measured((_, part): Part) -> Result<Vec<Ratio>> {
    let mut table = Table::new(Form::Short);
    part(&mut table)?;
    Ok(table.into_ratios())
}

fn record(wanted: &str) -> Result<ExitCode> {
    ensure!(wanted.is_empty(), "all parts are recorded together");
    let mut text = String::from(
        "# Written by `cargo bench --workspace --bench bench -- --record`: row | direction | ratio, of the short form of the\n\
         # benchmark. `-- --check` fails where one is worse by more than half.\n",
    );
    for (what, why) in NOT_CHECKED {
        text += &format!("# not checked: {what}: {why}\n");
    }
    for part in short_parts(wanted) {
        let times = (0..TIMES).map(|_| measured(part)).collect::<Result<Vec<_>>>()?;
        for ratio in ratios::middle(&times) {
            text += &format!("{ratio}\n");
        }
    }
    std::fs::write(recorded_path(), text)?;
    Ok(ExitCode::SUCCESS)
}

fn check_ratios(wanted: &str) -> Result<ExitCode> {
    let recorded = ratios::read(&std::fs::read_to_string(recorded_path())?)?;
    let mut all = Vec::new();
    for part in short_parts(wanted) {
        let mut rows = measured(part)?;
        for _ in 1..TIMES {
            if ratios::worse(&rows, &recorded).is_empty() {
                break;
            }
            ratios::improve(&mut rows, &measured(part)?);
        }
        all.extend(rows);
    }
    let mut wrong = ratios::worse(&all, &recorded);
    if wanted.is_empty() {
        wrong.extend(ratios::missing(&all, &recorded));
    }
    if wrong.is_empty() {
        println!("\nNo ratio is worse by more than half.");
        return Ok(ExitCode::SUCCESS);
    }
    println!("\nWorse by more than half, or not on both sides:");
    wrong.iter().for_each(|line| println!("{line}"));
    Ok(ExitCode::FAILURE)
}

fn recorded_path() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/ratios.txt"))
}

fn timed(f: impl FnOnce()) -> Duration {
    let start = Instant::now();
    f();
    start.elapsed()
}

/// An instance of a module as it comes, to measure beside.
fn plain(module: &Module) -> Result<(Store<()>, Instance)> {
    let mut store = Store::new(module.engine(), ());
    let instance = Instance::new(&mut store, module, &[]).map_err(fault)?;
    Ok((store, instance))
}

fn fault(error: wasmtime::Error) -> anyhow::Error {
    anyhow!("{error:#}")
}

fn build(folder: &str) -> Result<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    spelunk::load::load(&path, &Default::default(), &mut |_, _| ())
}
