//! What is reached of libraries in C that nobody here wrote, beside libFuzzer: with the same seed inputs, in the same CPU time,
//! counted by the same native build. Building and compiling the module take no part of that time.

mod builds;
mod cpu;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use builds::{Builder, Built, LIBRARIES, Library};
use spelunk::choice::{Choice, Kind, Value};
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::search::Explorer;
use spelunk::search::energy::Energies;
use spelunk::target::Target;
use spelunk::trace::{Action, Trace};

use super::power::{SEEDS, options};
use super::table::Table;

/// Seconds of CPU time that each fuzzer has for a library, where `POWER_SECONDS` does not say how many.
const SECONDS: u64 = 15;
/// Runs before those that are measured.
const WARM_RUNS: u64 = 100;
/// What libFuzzer exits with when it is interrupted.
const INTERRUPTED: i32 = 72;

/// A library, ready to be fuzzed.
struct Subject {
    name: &'static str,
    built: Built,
    program: Arc<Program>,
    /// CPU time of each fuzzer.
    time: Duration,
}

/// What a fuzzer came to.
struct Reached {
    edges: u32,
    runs_per_second: f64,
}

/// Edges, and runs in a second, of both; `LIBRARY=expat` names one.
pub(crate) fn libraries(table: &mut Table) -> Result<()> {
    let seconds = std::env::var("POWER_SECONDS").map_or(Ok(SECONDS), |seconds| seconds.parse());
    let time = Duration::from_secs(seconds.context("POWER_SECONDS is a whole number")?);
    let only = std::env::var("LIBRARY").ok();
    let builder = Builder::new()?;
    let mut ratios = Vec::new();
    for library in LIBRARIES.iter().filter(|library| only.as_ref().is_none_or(|only| library.name == only)) {
        let subject = ready(&builder, library, time)?;
        for has_seed in [false, true] {
            ratios.push(compare(table, &subject, has_seed)?);
        }
    }
    ensure!(!ratios.is_empty(), "LIBRARY is none of {:?}", LIBRARIES.map(|library| library.name));
    for (at, what) in ["edges", "runs in a second"].iter().enumerate() {
        let sum: f64 = ratios.iter().map(|ratios| ratios[at].ln()).sum();
        let mean = (sum / ratios.len() as f64).exp();
        table.gain(&format!("libraries, {what}, geometric mean"), "", "", mean);
    }
    Ok(())
}

fn ready(builder: &Builder, library: &Library, time: Duration) -> Result<Subject> {
    let built = builder.build(library)?;
    let program = Arc::new(Program::load(&built.module, Limits::default(), Selection::default())?);
    // What is compiled when it is needed first is compiled now.
    Explorer::new(&mut Machine::new(program.clone())?, options(SEEDS + 1)?)
        .explore(|progress| progress.runs < WARM_RUNS);
    Ok(Subject { name: library.name, built, program, time })
}

/// Both, in turns; the ratios of the medians of edges and of runs in a second.
fn compare(table: &mut Table, subject: &Subject, has_seed: bool) -> Result<[f64; 2]> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for seed in 1..=if table.is_full() { SEEDS } else { 1 } {
        ours.push(explored(subject, seed, has_seed)?);
        theirs.push(fuzzed(subject, seed, has_seed)?);
    }
    let what = format!("{}{}", subject.name, if has_seed { " with a seed" } else { "" });
    let edges = |of: &[Reached]| median(of.iter().map(|reached| f64::from(reached.edges)));
    let runs = |of: &[Reached]| median(of.iter().map(|reached| reached.runs_per_second));
    let ratios = [edges(&ours) / edges(&theirs), runs(&ours) / runs(&theirs)];
    let figures = [&ours, &theirs].map(|of| format!("{} edges{}", edges(of), spread(of)));
    table.gain(&format!("{what}, edges"), &figures[0], &format!("{} of libFuzzer", figures[1]), ratios[0]);
    let [figure, beside] = [runs(&ours), runs(&theirs)].map(|runs| format!("{runs:.0} runs/s"));
    table.gain(&format!("{what}, runs"), &figure, &format!("{beside} of libFuzzer"), ratios[1]);
    Ok(ratios)
}

/// The middle one of an odd number of values.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The fewest and the most edges, where they differ.
fn spread(reached: &[Reached]) -> String {
    let edges = || reached.iter().map(|reached| reached.edges);
    match (edges().min(), edges().max()) {
        (Some(min), Some(max)) if min < max => format!(" ({min} to {max})"),
        _ => String::new(),
    }
}

/// What Spelunk reaches with one worker: with the inputs that it keeps, and those of its findings.
fn explored(subject: &Subject, seed: u64, has_seed: bool) -> Result<Reached> {
    let Subject { built, program, time, .. } = subject;
    let corpus = corpus(built, "spelunk", has_seed)?;
    let mut machine = Machine::new(program.clone())?;
    let has_setup = machine.has_setup();
    let mut explorer = Explorer::new(&mut machine, options(seed)?);
    let watch = cpu::Watch::new(*time)?;
    if has_seed {
        let input = input(&built.seed, program.limits().input_bytes_max, has_setup);
        explorer.plant(&input, Energies::default().start);
    }
    explorer.explore(|_| watch.goes_on());
    let runs_per_second = explorer.progress().runs as f64 / watch.used()?.as_secs_f64();
    let kept = explorer.checkpoints().iter().map(|checkpoint| checkpoint.history.last_choices());
    let inputs = kept.chain(explorer.findings().map(|found| found.trace.last_choices()));
    for (number, choices) in inputs.enumerate() {
        match choices {
            // Setup alone draws nothing.
            [] => {}
            [Choice { value: Value::Bytes(bytes), .. }] => {
                fs::write(corpus.join(number.to_string()), bytes)?;
            }
            _ => bail!("{} draws more than its input", subject.name),
        }
    }
    Ok(Reached { edges: edges(built, &[&corpus])?, runs_per_second })
}

/// The steps of a run that gives the target these bytes.
fn input(bytes: &[u8], max: u32, has_setup: bool) -> Trace {
    let mut trace = Trace::default();
    if has_setup {
        trace.push(Action::Setup, 0);
    }
    trace.push(Action::Rule(0), 0);
    let choice = Choice { kind: Kind::Bytes { min: 0, max }, value: Value::Bytes(bytes.into()) };
    trace.chose(&mut vec![choice], &mut Vec::new());
    trace
}

/// What libFuzzer reaches: with its corpus, and the inputs that crash.
fn fuzzed(subject: &Subject, seed: u64, has_seed: bool) -> Result<Reached> {
    let Subject { built, time, .. } = subject;
    let corpus = corpus(built, "libfuzzer", has_seed)?;
    let crashes = folder(built, "crashes")?;
    let (mut runs, mut used) = (0, Duration::ZERO);
    let begun = cpu::of_children()?;
    // A crash ends it. It goes on with the corpus that it has.
    for part in 0.. {
        let output = Command::new(&built.fuzzer)
            .env("CPU_SECONDS", time.saturating_sub(used).as_secs_f64().to_string())
            .args([format!("-seed={}", seed + part * SEEDS), "-print_final_stats=1".to_string()])
            // It counts the memory of the process that starts it.
            .arg("-rss_limit_mb=0")
            .arg(format!("-artifact_prefix={}/", crashes.display()))
            .arg(&corpus)
            .stdout(Stdio::null())
            .output()
            .context("libFuzzer's target cannot be run")?;
        used = cpu::of_children()?.saturating_sub(begun);
        let said = String::from_utf8_lossy(&output.stderr);
        let executed = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        let executed = executed.with_context(|| format!("libFuzzer does not say how many runs:\n{said}"))?;
        runs += executed.trim().parse::<u64>()?;
        if output.status.code() == Some(INTERRUPTED) || used >= *time {
            break;
        }
    }
    let edges = edges(built, &[&corpus, &crashes])?;
    Ok(Reached { edges, runs_per_second: runs as f64 / used.as_secs_f64() })
}

/// A folder for inputs, with the seed in it.
fn corpus(built: &Built, name: &str, has_seed: bool) -> Result<PathBuf> {
    let folder = folder(built, name)?;
    if has_seed {
        fs::write(folder.join("seed"), &built.seed)?;
    }
    Ok(folder)
}

/// An empty folder.
fn folder(built: &Built, name: &str) -> Result<PathBuf> {
    let folder = built.folder.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The different edges that the files in these folders take.
fn edges(built: &Built, folders: &[&Path]) -> Result<u32> {
    let output = Command::new(&built.edges).args(folders).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout)?;
    Ok(said.split_whitespace().next().context("it prints how many")?.parse()?)
}
