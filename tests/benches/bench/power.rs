//! What is found: fuzz targets that are hard to get through, in a time of this machine's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use spelunk::file::Names;
use spelunk::load::Build;
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::search::energy::Strategy;
use spelunk::search::{Explorer, Options, Part};
use spelunk_tests::tools::compiled;
use walrus::{ExportItem, Module};

use super::build;
use super::fuzz::native;
use super::table::Table;

/// What each target is given.
const TIME: Duration = Duration::from_secs(6);
pub(crate) const SEEDS: u64 = 5;

/// Roadblocks that are solved within 6 seconds by one worker, by the median of five seeds: those in Rust, and those in C without
/// optimisation and with. With `-- --full` those in Rust by libFuzzer too.
pub(crate) fn power(table: &mut Table) -> Result<()> {
    let wasm = build("guests/roadblocks")?;
    roadblocks(table, "roadblocks solved", &wasm)?;
    if table.is_full() {
        beside(&names(&wasm)?)?;
    }
    for level in ["-O0", "-O2"] {
        // Undefined behaviour is not looked for.
        let Some(wasm) = compiled("roadblocks/c/roadblocks.c", &[level, "-fno-sanitize=undefined"]) else {
            continue;
        };
        roadblocks(table, &format!("roadblocks in C solved, {level}"), &wasm)?;
    }
    Ok(())
}

/// The default options but for the parts of the search that are left out.
pub(crate) fn options(seed: u64) -> Result<Options> {
    let mut options = Options { seed, ..Options::default() };
    left_out()?.into_iter().for_each(|part| options.leave_out(part));
    Ok(options)
}

/// The parts of the search that `WITHOUT` names, as the flag of the command line does.
pub(crate) fn left_out() -> Result<BTreeSet<Part>> {
    let without = std::env::var("WITHOUT").unwrap_or_default();
    let named = without.split(',').filter(|part| !part.is_empty());
    let parts = named.map(|part| serde_json::from_value(part.into()));
    parts.collect::<Result<_, _>>().context("WITHOUT names parts of the search")
}

/// Whether it is to be measured: `ROADBLOCK` names some, with commas between them.
fn is_wanted(name: &str) -> bool {
    std::env::var("ROADBLOCK").ok().is_none_or(|only| only.split(',').any(|only| only == name))
}

/// Tries each roadblock of a module by itself.
fn roadblocks(table: &mut Table, what: &str, wasm: &[u8]) -> Result<()> {
    let seeds = if table.is_full() { SEEDS } else { 1 };
    let (mut solved, mut count) = (0, 0);
    for name in names(wasm)?.into_iter().filter(|name| is_wanted(name)) {
        let one = alone(wasm, &name)?;
        let mut found: Vec<Option<(Duration, u64)>> = Vec::new();
        for seed in 1..=seeds {
            found.push(solve(&one, seed)?);
        }
        found.sort_by_key(|found| found.map_or(Duration::MAX, |(time, _)| time));
        let median = found[found.len() / 2];
        count += 1;
        solved += u32::from(median.is_some());
        let all = found.iter().flatten().count();
        match median {
            Some((time, runs)) => {
                println!("  {name:24} {:8.3} s {runs:9} runs, {all} of {seeds}", time.as_secs_f64())
            }
            None => println!("  {name:24}        - {all} of {seeds}"),
        }
    }
    if count > 0 {
        table.gain(what, &format!("{solved} of {count}"), "", f64::from(solved) / f64::from(count));
    }
    Ok(())
}

/// What libFuzzer solves of the roadblocks in as much time, by the median of as many seeds, with defaults and with its value profile.
fn beside(names: &[String]) -> Result<()> {
    let native = native("roadblocks")?;
    let wanted: Vec<&String> = names.iter().filter(|name| is_wanted(name)).collect();
    for (how, flag) in [("libFuzzer", 0), ("libFuzzer with value profile", 1)] {
        let mut missed = Vec::new();
        for name in &wanted {
            let mut solved = 0;
            for seed in 1..=SEEDS {
                solved +=
                    u64::from(is_solved(&native, name, &[("seed", seed), ("use_value_profile", flag)])?);
            }
            if solved * 2 < SEEDS {
                missed.push(format!("{name} ({solved})"));
            }
        }
        let count = wanted.len();
        println!("| roadblocks solved by {how} | {} of {count} | | |", count - missed.len());
        println!("  not by {how}: {}", missed.join(", "));
    }
    Ok(())
}

/// Whether libFuzzer solves a roadblock.
fn is_solved(native: &Path, name: &str, flags: &[(&str, u64)]) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let status = Command::new(native)
        .args(flags.iter().map(|(flag, value)| format!("-{flag}={value}")))
        .arg(format!("-max_total_time={}", TIME.as_secs()))
        .arg(format!("-artifact_prefix={}/", folder.path().display()))
        // It counts the memory of the process that starts it.
        .arg("-rss_limit_mb=0")
        .env("ROADBLOCK", name)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("libFuzzer's target cannot be run")?;
    // So it ends where the target aborts.
    Ok(status.code() == Some(77))
}

/// States that no edge shows: the median of the steps that it takes to reach them, within as much time.
pub(crate) fn hidden(table: &mut Table) -> Result<()> {
    let wasm = build("guests/hidden")?;
    let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default())?);
    let seeds = if table.is_full() { SEEDS } else { 1 };
    let (mut solved, mut count) = (0, 0);
    for (game, rules) in games(&program).into_iter().filter(|(game, _)| is_wanted(game)) {
        let mut found = Vec::new();
        for seed in 1..=seeds {
            let options = Options { rules: rules.clone(), ..options(seed)? };
            found.push(steps_of(&program, options)?);
        }
        let all = found.iter().flatten().count();
        found.sort_by_key(|found| found.map_or(Duration::MAX, |(time, _)| time));
        let median = found[found.len() / 2];
        count += 1;
        solved += u32::from(median.is_some());
        match median {
            Some((time, steps)) => {
                println!("  {game:24} {:8.3} s {steps:9} steps, {all} of {seeds}", time.as_secs_f64())
            }
            None => println!("  {game:24}        - {all} of {seeds}"),
        }
    }
    let share = f64::from(solved) / f64::from(count);
    table.gain("hidden states reached", &format!("{solved} of {count}"), "", share);
    Ok(())
}

/// The games of the guest, each with its rules, which begin with its name.
fn games(program: &Program) -> BTreeMap<String, Vec<u16>> {
    let mut games = BTreeMap::<String, Vec<u16>>::new();
    for (at, rule) in (0..).zip(program.rules()) {
        let game = rule.name.split('_').next().unwrap_or_default();
        games.entry(game.to_string()).or_default().push(at);
    }
    games
}

/// How long it takes until something is found, and how many steps.
fn steps_of(program: &Arc<Program>, options: Options) -> Result<Option<(Duration, u64)>> {
    let start = Instant::now();
    let mut machine = Machine::new(program.clone())?;
    let mut explorer = Explorer::new(&mut machine, options);
    explorer.explore(|progress| progress.findings == 0 && start.elapsed() < TIME);
    let progress = explorer.progress();
    Ok((progress.findings > 0).then(|| (start.elapsed(), progress.steps)))
}

/// Examples with a bug, and the features that they are built with.
const EXAMPLES: [(&str, &[&str]); 7] = [
    ("lock", &[]),
    ("lock", &["n32"]),
    ("kv", &["bug"]),
    ("cache", &[]),
    ("order", &[]),
    ("two-phase-commit", &[]),
    ("priority-queue", &[]),
];

/// Of runs without guidance.
const RANDOM_SEEDS: u64 = 3;

/// Steps until a state machine fails: the medians over seeds, guided and at random.
pub(crate) fn machines(table: &mut Table) -> Result<()> {
    for (example, features) in EXAMPLES {
        let name = [&[example], features].concat().join(" ");
        if is_wanted(&name) {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(example);
            let features: Vec<String> = features.iter().map(ToString::to_string).collect();
            let build = Build { features: &features, ..Build::default() };
            let wasm = spelunk::load::load(&folder, &build, &mut |_, _| ())?;
            let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default())?);
            machine(table, &name, &program, &[])?;
        }
    }
    let wasm = build("guests/collections")?;
    let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default())?);
    for (game, rules) in games(&program) {
        if is_wanted(&game) {
            machine(table, &game, &program, &rules)?;
        }
    }
    Ok(())
}

fn machine(table: &mut Table, name: &str, program: &Arc<Program>, rules: &[u16]) -> Result<()> {
    let seeds = if table.is_full() { 20 } else { SEEDS };
    let median = |strategy, seeds| -> Result<Option<u64>> {
        let mut all = Vec::new();
        for seed in 1..=seeds {
            let options = Options { rules: rules.to_vec(), strategy, ..options(seed)? };
            all.push(steps_of(program, options)?.map_or(u64::MAX, |(_, steps)| steps));
        }
        all.sort_unstable();
        Ok(Some(all[all.len() / 2]).filter(|steps| *steps < u64::MAX))
    };
    let (guided, random) = (median(Strategy::Novel, seeds)?, median(Strategy::Random, RANDOM_SEEDS)?);
    let shown = |steps: Option<u64>| steps.map_or("not found".to_string(), |steps| format!("{steps} steps"));
    match (guided, random) {
        (Some(few), Some(many)) => {
            table.gain(
                &format!("{name}, guided beside random"),
                &shown(guided),
                &shown(random),
                many as f64 / few as f64,
            );
        }
        _ => println!("| {name}, guided beside random | {} | {} | |", shown(guided), shown(random)),
    }
    Ok(())
}

/// The functions that are roadblocks, by their exports.
fn names(wasm: &[u8]) -> Result<Vec<String>> {
    let module = Module::from_buffer(wasm)?;
    let functions = module.exports.iter().filter(|export| matches!(export.item, ExportItem::Function(_)));
    Ok(functions.map(|export| export.name.clone()).filter(|name| !is_internal(name)).collect())
}

/// Whether a function belongs to the library of C, such as that which readies it.
fn is_internal(name: &str) -> bool {
    name.starts_with('_')
}

/// A module whose only function is this one, in the form that fuzz targets have.
fn alone(wasm: &[u8], name: &str) -> Result<Vec<u8>> {
    let mut module = Module::from_buffer(wasm)?;
    let exports: BTreeMap<String, _> = module
        .exports
        .iter()
        .filter_map(|export| match export.item {
            ExportItem::Function(function) if !is_internal(&export.name) => {
                Some((export.name.clone(), (export.id(), function)))
            }
            _ => None,
        })
        .collect();
    let (_, function) = exports.get(name).copied().context("there is such a roadblock")?;
    exports.values().for_each(|(export, _)| module.exports.delete(*export));
    // They were guessed of all of them.
    module.customs.remove_raw("spelunk:signatures");
    module.exports.add("LLVMFuzzerTestOneInput", function);
    walrus::passes::gc::run(&mut module);
    Ok(module.emit_wasm())
}

/// How long it takes to find the input, and how many runs.
fn solve(wasm: &[u8], seed: u64) -> Result<Option<(Duration, u64)>> {
    let start = Instant::now();
    let program = Program::load(wasm, Limits::default(), Selection::default())?;
    let mut machine = Machine::new(Arc::new(program))?;
    let mut explorer = Explorer::new(&mut machine, options(seed)?);
    explorer.explore(|progress| progress.findings == 0 && start.elapsed() < TIME);
    let progress = explorer.progress();
    Ok((progress.findings > 0).then(|| (start.elapsed(), progress.runs)))
}
