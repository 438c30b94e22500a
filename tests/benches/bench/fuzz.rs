//! What a run of a fuzz target costs: the whole loop, with going back, drawing, coverage and all.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use spelunk::campaign::Settings;
use spelunk::machine::Limits;
use spelunk::search::Options;
use spelunk::search::energy::Strategy;
use spelunk::session::{Config, Job, JobResult, Keep, Session};
use wasmtime::{Engine, Module};

use super::libraries::median;
use super::power::{SEEDS, left_out};
use super::table::Table;
use super::{fault, plain};

/// What both fuzzers start from.
const DOCUMENT: &[u8] = br#"{"name":"spelunk","version":1,"tags":["wasm",null,true],"d":2}"#;
const INPUT_MAX: u32 = 64;
const RUNS: u64 = 1_000_000;
/// Runs of the short form.
const SHORT_RUNS: u64 = 100_000;
/// Runs before those that are timed.
const FIRST_RUNS: u64 = 20_000;
/// How libFuzzer's users have their targets counted; as cargo-fuzz does it where there is no sanitizer.
const COUNTED: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                       -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                       -Cllvm-args=-sanitizer-coverage-pc-table \
                       -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Runs of a target that does nothing, and of one that parses a document, beside calling it again and again; with
/// `-- --full` beside libFuzzer's of the same target, compiled for this machine.
pub(crate) fn targets(table: &mut Table) -> Result<()> {
    let runs = if table.is_short() { SHORT_RUNS } else { RUNS };
    let guided = Options::default().strategy;
    for (feature, strategy, what) in [
        ("empty", Strategy::Random, "an empty target, inputs drawn anew"),
        ("empty", guided, "an empty target, whole loop"),
        ("json", guided, "serde_json on 62 bytes, whole loop"),
    ] {
        let wasm = guest(feature)?;
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("target.wasm"), &wasm)?;
        std::fs::write(folder.path().join("document"), DOCUMENT)?;
        let native = if table.is_full() && strategy == guided { Some(native(feature)?) } else { None };
        let (mut ours, mut theirs, mut call) = (Vec::new(), Vec::new(), f64::MAX);
        // Taken in turns, so that all see the same machine.
        for seed in 1..=if table.is_short() { 3 } else { SEEDS } {
            ours.push(explored(folder.path(), seed, runs, strategy)?);
            call = call.min(called(&wasm)?);
            if let Some(native) = &native {
                theirs.push(fuzzed(native, seed)?);
            }
        }
        let ours = median(ours.into_iter());
        let figure = format!("{:.0} ns a run, {:.2} M runs/s", 1e9 / ours, ours / 1e6);
        table.cost(what, &figure, &format!("{call:.0} ns the call"), 1e9 / ours / call);
        if native.is_some() {
            let theirs = median(theirs.into_iter());
            let beside = format!("{:.2} M runs/s of libFuzzer", theirs / 1e6);
            table.gain(&format!("{what}, beside libFuzzer"), &figure, &beside, ours / theirs);
        }
    }
    Ok(())
}

/// Nanoseconds of a call of the target as it comes, with the document.
fn called(wasm: &[u8]) -> Result<f64> {
    let module = Module::new(&Engine::default(), wasm).map_err(fault)?;
    let (mut store, instance) = plain(&module)?;
    let target = instance.get_typed_func::<(u32, u32), i32>(&mut store, "LLVMFuzzerTestOneInput");
    let target = target.map_err(fault)?;
    let memory = instance.get_memory(&mut store, "memory").context("the target exports its memory")?;
    let at = memory.data_size(&store) as u32;
    memory.grow(&mut store, 1).map_err(fault)?;
    memory.write(&mut store, at as usize, DOCUMENT)?;
    let calls = 100_000;
    let start = Instant::now();
    for _ in 0..calls {
        target.call(&mut store, (at, DOCUMENT.len() as u32)).map_err(fault)?;
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(calls))
}

fn guest(feature: &str) -> Result<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/fuzz");
    spelunk::load::load(
        &path,
        &spelunk::load::Build { features: &[feature.to_string()], ..Default::default() },
        &mut |_, _| (),
    )
}

/// Runs a second of ours, as the command line has them: by one worker, once the second build was made.
fn explored(folder: &Path, seed: u64, runs: u64, strategy: Strategy) -> Result<f64> {
    let seconds = |runs| -> Result<f64> {
        let limits = Limits { input_bytes_max: INPUT_MAX, ..Limits::default() };
        let settings = Settings { seed, strategy, without: left_out()?, ..Settings::default() };
        let session = Session::open(folder.join("target.wasm"))?.config(Config {
            job: Job::Explore(settings),
            limits,
            runs: Some(runs),
            workers: NonZero::new(1),
            keep: Keep::Findings,
            out: folder.join("out"),
            seeds: vec![folder.join("document")],
            ..Config::explore()
        });
        match session.run(&mut ())?.result {
            JobResult::Explored(explored) => Ok(explored.seconds),
            _ => bail!("it was not explored"),
        }
    };
    let first = seconds(FIRST_RUNS)?;
    Ok(runs as f64 / (seconds(FIRST_RUNS + runs)? - first))
}

/// Builds the target for this machine.
pub(crate) fn native(feature: &str) -> Result<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let folder = tests.join("../target/native").join(feature);
    let built = Command::new("cargo")
        .args(["build", "--release", "--features", feature, "--target", &target, "--manifest-path"])
        .arg(tests.join("native/Cargo.toml"))
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", COUNTED)
        .status()?;
    ensure!(built.success(), "libFuzzer's target cannot be built; it needs a C++ compiler");
    Ok(folder.join(target).join("release/native"))
}

/// Runs a second of libFuzzer's.
fn fuzzed(native: &Path, seed: u64) -> Result<f64> {
    let corpus = native.with_file_name("corpus");
    if corpus.exists() {
        std::fs::remove_dir_all(&corpus)?;
    }
    std::fs::create_dir_all(&corpus)?;
    std::fs::write(corpus.join("document"), DOCUMENT)?;
    let start = Instant::now();
    let status = Command::new(native)
        .args([format!("-runs={RUNS}"), format!("-seed={seed}"), format!("-max_len={INPUT_MAX}")])
        // It counts the memory of the process that starts it.
        .arg("-rss_limit_mb=0")
        .arg(&corpus)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("libFuzzer's target cannot be run")?;
    ensure!(status.success(), "libFuzzer's target failed");
    Ok(RUNS as f64 / start.elapsed().as_secs_f64())
}
