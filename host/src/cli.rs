//! Verbs and flags, and what they do.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde_json::json;
use spelunk::console::Console;
use spelunk::energy::{Energies, Strategy};
use spelunk::explore::{self, Explorer, Options};
use spelunk::file::{self, Hex, TraceFile};
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::outcome::Failure;
use spelunk::replay::{Replayed, replay};
use spelunk::report::{Finding, Report, command_line};
use spelunk::shrink::{NotReproduced, Shrunk, shrink};
use spelunk::target::Target;
use spelunk::trace::{Action, Trace};
use spelunk::{load, story};

const EXIT_CODES: &str = "\
Exit codes:
  0    nothing failed
  1    a finding
  2    the job could not be done: usage, a bad module, input or output
  4    nondeterminism: a run did not go as recorded
  130  interrupted; what was found until then was reported";

/// Explores anything that compiles to WebAssembly: finds the shortest sequence of calls, inputs and faults that
/// breaks a module, and replays it.
#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Print one JSON object a line on stdout instead of text.
    #[arg(long, global = true)]
    json: bool,
    /// Colours on the terminal.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    color: Color,
}

#[derive(Clone, Copy, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
enum Verb {
    /// Search for failures, and shrink what is found.
    #[command(after_help = EXIT_CODES)]
    Explore(Explore),
    /// Run a saved trace step by step: exit 1 where it fails again, 0 where it passes, 4 where it diverges.
    #[command(after_help = EXIT_CODES)]
    Replay(Replay),
    /// Shrink a saved trace further.
    #[command(after_help = EXIT_CODES)]
    Shrink(Shrink),
    /// Write the instrumented module.
    #[command(after_help = EXIT_CODES)]
    Instrument(Instrument),
}

#[derive(Args)]
struct Guest {
    /// A .wasm, a .wat, or a folder with a Cargo.toml, which is built for wasm32-unknown-unknown.
    target: PathBuf,
    /// Cargo features of a target that is a folder, separated by commas.
    #[arg(long, value_delimiter = ',')]
    guest_features: Vec<String>,
}

#[derive(Args)]
struct Edges {
    /// How edges are numbered: by a counter each, or at run time in a 64 KiB map as AFL does.
    #[arg(long, value_enum, default_value_t = EdgeMode::Static)]
    edges: EdgeMode,
    /// Count edges only in functions whose demangled name matches one of these globs.
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// Count no edges in functions whose demangled name matches one of these globs.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum EdgeMode {
    Static,
    Hashed,
}

#[derive(Args)]
struct GuestLimits {
    /// Loop iterations and calls that a step may take, about.
    #[arg(long, default_value_t = u64::from(Limits::default().step_budget) * 256)]
    step_budget: u64,
    /// Calls that may nest.
    #[arg(long, default_value_t = Limits::default().depth_max)]
    depth_max: u32,
    /// MiB that each memory may grow to.
    #[arg(long, value_name = "MIB", default_value_t = Limits::default().memory_bytes_max >> 20)]
    memory_max: u64,
    /// Let every import that Spelunk does not provide return zero.
    #[arg(long)]
    stub_imports: bool,
}

#[derive(Args)]
struct Explore {
    #[command(flatten)]
    guest: Guest,
    /// Decides every draw: one seed and number of runs give one result.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Runs, at most. [default: 100000, or none with --time]
    #[arg(long)]
    runs: Option<u64>,
    /// Time, at most, such as 90s or 5m.
    #[arg(long, value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// Stop after this many different failures; 0 is never.
    #[arg(long, default_value_t = 1)]
    max_findings: usize,
    /// What runs start from.
    #[arg(long, value_enum, default_value_t = Options::default().strategy)]
    strategy: Strategy,
    /// Steps in a run, at most.
    #[arg(long, default_value_t = Options::default().steps_max)]
    steps_per_run: u32,
    /// How often a run starts from a checkpoint, where there is one.
    #[arg(long, value_parser = rate, default_value_t = Options::default().checkpoint_rate)]
    checkpoint_rate: f64,
    /// How often a step toggles a fault, where there is one.
    #[arg(long, value_parser = rate, default_value_t = Options::default().fault_rate)]
    fault_rate: f64,
    /// How often a rule gets a changed copy of arguments that once found an edge.
    #[arg(long, value_parser = rate, default_value_t = Options::default().mutation_rate)]
    mutation_rate: f64,
    /// How often a run leaves out some of the rules.
    #[arg(long, value_parser = rate, default_value_t = Options::default().swarm_rate)]
    swarm_rate: f64,
    /// Checkpoints kept, at most.
    #[arg(long, default_value_t = Options::default().checkpoints_max)]
    max_checkpoints: usize,
    /// Energy added to a checkpoint for each new edge that a run from it found.
    #[arg(long, default_value_t = Energies::default().reward)]
    energy_reward: f64,
    /// What the energy of a checkpoint is multiplied by after a run that found none.
    #[arg(long, value_parser = rate, default_value_t = Energies::default().decay)]
    energy_decay: f64,
    /// Candidates that shrinking a finding may try; 0 leaves findings as they are.
    #[arg(long, default_value_t = 100_000)]
    shrink_budget: u64,
    /// Replay every run from the start instead of restoring snapshots. Slower; the results are the same.
    #[arg(long)]
    no_snapshots: bool,
    #[command(flatten)]
    edges: Edges,
    #[command(flatten)]
    limits: GuestLimits,
    /// The folder that findings are saved in, below one named after the target.
    #[arg(long, default_value = ".spelunk")]
    out: PathBuf,
}

#[derive(Args)]
struct Replay {
    #[command(flatten)]
    guest: Guest,
    /// The saved trace.
    trace: PathBuf,
    /// Replay this many times, and compare the states of all.
    #[arg(long, default_value_t = 1)]
    times: u64,
}

#[derive(Args)]
struct Shrink {
    #[command(flatten)]
    guest: Guest,
    /// The saved trace.
    trace: PathBuf,
    /// Where to write the result. [default: the trace itself]
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Candidates that may be tried.
    #[arg(long, default_value_t = 1_000_000)]
    shrink_budget: u64,
}

#[derive(Args)]
struct Instrument {
    #[command(flatten)]
    guest: Guest,
    /// Where to write the instrumented module.
    #[arg(long, short)]
    output: PathBuf,
    /// Where to write the map of edges, functions and state as JSON.
    #[arg(long)]
    map: Option<PathBuf>,
    #[command(flatten)]
    edges: Edges,
    #[command(flatten)]
    limits: GuestLimits,
}

const PASSED: u8 = 0;
const FOUND: u8 = 1;
const COULD_NOT: u8 = 2;
const NONDETERMINISM: u8 = 4;
const INTERRUPTED: u8 = 130;

fn rate(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(format!("{value} is not in 0..=1")) }
}

impl From<&GuestLimits> for Limits {
    fn from(args: &GuestLimits) -> Limits {
        Limits {
            step_budget: u32::try_from(args.step_budget / 256).unwrap_or(u32::MAX).clamp(1, i32::MAX as u32),
            depth_max: args.depth_max,
            memory_bytes_max: args.memory_max.min(4096) << 20,
            stub_imports: args.stub_imports,
        }
    }
}

impl From<&Edges> for Selection {
    fn from(args: &Edges) -> Selection {
        let edges = match args.edges {
            EdgeMode::Static => spelunk::machine::Edges::Static,
            EdgeMode::Hashed => spelunk::machine::Edges::Hashed,
        };
        Selection { edges, include: args.include.clone(), exclude: args.exclude.clone() }
    }
}

/// Where a job reports to.
struct Output {
    console: Console,
    report: Report,
}

impl Cli {
    /// Does the job; the exit code.
    pub(crate) fn run(self) -> u8 {
        let colors = match self.color {
            Color::Auto => None,
            Color::Always => Some(true),
            Color::Never => Some(false),
        };
        let mut output = Output { console: Console::new(colors), report: Report::new(self.json, colors) };
        let done = match &self.verb {
            Verb::Explore(args) => args.run(&mut output),
            Verb::Replay(args) => args.run(&mut output),
            Verb::Shrink(args) => args.run(&mut output),
            Verb::Instrument(args) => args.run(&mut output),
        };
        output.console.clear();
        done.unwrap_or_else(|error| {
            let closed =
                error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe);
            if !closed {
                output.console.error(&error);
            }
            COULD_NOT
        })
    }
}

impl Guest {
    fn load(&self, console: &Console) -> Result<Vec<u8>> {
        load::load(&self.target, &self.guest_features, &mut |verb, text| console.status(verb, text))
    }

    fn machine(&self, limits: Limits, selection: Selection, console: &Console) -> Result<Machine> {
        let wasm = self.load(console)?;
        let context = || format!("cannot explore `{}`", self.target.display());
        let program = Program::load(&wasm, limits, selection).with_context(context)?;
        Machine::new(Arc::new(program)).with_context(context)
    }

    /// The command that replays a trace of this guest.
    fn replay_command(&self, trace: &Path) -> String {
        let program = std::env::args().next().unwrap_or_else(|| "spelunk".to_string());
        let (target, trace) = (self.target.display().to_string(), trace.display().to_string());
        let features = self.guest_features.join(",");
        let mut words = vec![program.as_str(), "replay", &target, &trace];
        if !features.is_empty() {
            words.extend(["--guest-features", &features]);
        }
        command_line(words)
    }
}

impl Explore {
    fn options(&self) -> Options {
        Options {
            seed: self.seed,
            strategy: self.strategy,
            steps_max: self.steps_per_run,
            checkpoint_rate: self.checkpoint_rate,
            fault_rate: self.fault_rate,
            mutation_rate: self.mutation_rate,
            swarm_rate: self.swarm_rate,
            checkpoints_max: self.max_checkpoints,
            energies: Energies {
                reward: self.energy_reward,
                decay: self.energy_decay,
                ..Energies::default()
            },
        }
    }

    fn run(&self, output: &mut Output) -> Result<u8> {
        ensure!(self.steps_per_run > 0, "--steps-per-run must be at least 1");
        ensure!(self.max_checkpoints > 0, "--max-checkpoints must be at least 1");
        let interrupted = catch_interrupts()?;
        let mut machine = self.guest.machine((&self.limits).into(), (&self.edges).into(), &output.console)?;
        if self.no_snapshots {
            machine.set_uses_snapshots(false)?;
        }
        if let Some(obstacle) = machine.program().obstacles().first() {
            let inside = obstacle.function.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
            output.console.warning(&format!(
                "no snapshot can hold what {}{inside} at {:#x} changes; runs are replayed from the start instead",
                obstacle.what, obstacle.offset
            ));
        }
        let edges = machine.program().edges().edges.len();
        let rules: Vec<&str> = machine.rules().iter().map(|rule| rule.name.as_str()).collect();
        output.report.event(
            "begin",
            json!({
                "target": self.guest.target, "seed": self.seed, "edges": edges, "rules": rules,
                "faults": machine.faults(), "module": String::from(Hex(machine.program().hash())),
            }),
        )?;
        let started = Instant::now();
        let runs_max = self.runs.or(self.time.is_none().then_some(100_000)).unwrap_or(u64::MAX);
        let mut explorer = Explorer::new(&mut machine, self.options());
        let mut reported = 0;
        let mut redrawn = started;
        loop {
            explorer.explore(|progress| {
                let now = Instant::now();
                if now - redrawn > Duration::from_millis(100) {
                    redrawn = now;
                    output.console.progress(progress, edges);
                }
                let is_over = progress.runs >= runs_max
                    || self.time.is_some_and(|time| now - started >= time)
                    || interrupted.load(Ordering::Relaxed);
                progress.findings == reported && !is_over
            });
            let Some(finding) = explorer.findings().nth(reported).cloned() else { break };
            reported += 1;
            if !self.report(explorer.target(), &finding, output)? {
                return Ok(NONDETERMINISM);
            }
            if self.max_findings == reported {
                break;
            }
        }
        output.console.clear();
        let progress = explorer.progress();
        let exit = match reported {
            _ if interrupted.load(Ordering::Relaxed) => INTERRUPTED,
            0 => PASSED,
            _ => FOUND,
        };
        let unmet: Vec<_> = machine.properties().iter().filter(|property| property.is_unmet()).collect();
        output.report.end(&progress, edges, started.elapsed().as_secs_f64(), exit, &unmet)?;
        Ok(exit)
    }

    /// Shrinks, saves and tells a finding; false where it does not happen again.
    fn report(&self, machine: &mut Machine, finding: &explore::Finding, output: &mut Output) -> Result<bool> {
        let explore::Finding { failure, run, trace } = finding;
        let shrunk = shrunk(machine, trace, failure, self.shrink_budget, &mut output.console);
        let folder = self.out.join(load::name_of(&self.guest.target)).join("findings");
        let path = folder.join(format!("{}.json", failure.id()));
        let shrunk = match shrunk {
            Ok(shrunk) => shrunk,
            Err(NotReproduced(replayed)) => {
                save(machine, trace, failure, &path)?;
                let why = describe(machine, trace, &replayed);
                output
                    .report
                    .text(&format!("FLAKY  {failure}\n  the same steps did not fail the same way: {why}"))?;
                output
                    .report
                    .event("flaky", json!({ "message": failure.message, "why": why, "trace": path }))?;
                return Ok(false);
            }
        };
        save(machine, &shrunk.trace, &shrunk.failure, &path)?;
        output.console.clear();
        output.report.finding(&Finding {
            story: story::tell(machine, &shrunk.trace),
            failure: shrunk.failure,
            run: *run,
            steps_before: steps_of(trace),
            reproduce: self.guest.replay_command(&path),
            trace: path,
            is_minimal: shrunk.is_minimal,
        })?;
        Ok(true)
    }
}

/// Rules called and faults toggled.
fn steps_of(trace: &Trace) -> usize {
    trace.steps().iter().filter(|step| !matches!(step.action, Action::Setup | Action::Teardown)).count()
}

fn shrunk(
    machine: &mut Machine,
    trace: &Trace,
    failure: &Failure,
    budget: u64,
    console: &mut Console,
) -> Result<Shrunk, NotReproduced> {
    let mut redrawn = Instant::now();
    shrink(machine, trace, failure, budget, |executions, steps| {
        if redrawn.elapsed() > Duration::from_millis(100) {
            redrawn = Instant::now();
            console.shrinking(executions, steps);
        }
    })
}

fn save(machine: &Machine, trace: &Trace, failure: &Failure, path: &Path) -> Result<()> {
    let file = TraceFile {
        spelunk: file::VERSION,
        module: Hex(machine.program().hash()),
        limits: machine.program().limits().into(),
        failure: failure.clone(),
        steps: file::lines_of(machine, trace),
    };
    file.write(path)
}

/// What a replay came to, for a reader.
fn describe(machine: &Machine, trace: &Trace, replayed: &Replayed) -> String {
    match replayed {
        Replayed::Failed(failure) => format!("it fails with {failure}"),
        Replayed::Passed => "every step passes".to_string(),
        Replayed::Diverged { step, why } => {
            let name = file::name_of(machine, trace.steps()[*step].action);
            format!("step {} ({name}) differs: {why}", step + 1)
        }
    }
}

impl Replay {
    fn run(&self, output: &mut Output) -> Result<u8> {
        ensure!(self.times > 0, "--times must be at least 1");
        let file = TraceFile::read(&self.trace)?;
        let mut machine = self.guest.machine((&file.limits).into(), Selection::default(), &output.console)?;
        let is_same_build = machine.program().hash() == file.module.0;
        if !is_same_build {
            output.console.warning(
                "the trace was recorded on another build of this target; its steps are replayed, and states are \
                 not compared",
            );
        }
        let trace = file.trace(&machine).with_context(|| {
            format!("the trace `{}` does not fit `{}`", self.trace.display(), self.guest.target.display())
        })?;
        let (replayed, again) = replay(&mut machine, &trace, is_same_build);
        for _ in 1..self.times {
            let (other, states) = replay(&mut machine, &again, true);
            if let Some(why) = difference(&replayed, &other, &again, &states) {
                return self.diverged(output, &why);
            }
        }
        let state = again.steps().last().and_then(|step| step.state).map(|state| String::from(Hex(state)));
        let data = |outcome: &str| json!({ "outcome": outcome, "times": self.times, "state": state });
        match replayed {
            Replayed::Failed(failure) => {
                if !failure.is_same(&file.failure) {
                    if is_same_build {
                        return self.diverged(
                            output,
                            &format!("it fails with {failure}, recorded was {}", file.failure),
                        );
                    }
                    output
                        .console
                        .warning(&format!("another failure than recorded, which was {}", file.failure));
                }
                output.report.event("replay", data("failed"))?;
                output.report.finding(&Finding {
                    failure: *failure,
                    run: 0,
                    steps_before: steps_of(&trace),
                    story: story::tell(&mut machine, &trace),
                    trace: self.trace.clone(),
                    reproduce: self.guest.replay_command(&self.trace),
                    is_minimal: true,
                })?;
                Ok(FOUND)
            }
            Replayed::Passed => {
                output.report.event("replay", data("passed"))?;
                output.report.text(&format!("It did not reproduce: all {} steps pass.", trace.len()))?;
                // The same module did fail here once.
                Ok(PASSED)
            }
            diverged => {
                let why = describe(&machine, &trace, &diverged);
                self.diverged(output, &why)
            }
        }
    }

    fn diverged(&self, output: &mut Output, why: &str) -> Result<u8> {
        output.report.event("replay", json!({ "outcome": "diverged", "why": why }))?;
        output.report.text(&format!("The run does not go as recorded: {why}"))?;
        Ok(NONDETERMINISM)
    }
}

/// How a second replay differs from the first.
fn difference(first: &Replayed, second: &Replayed, states: &Trace, others: &Trace) -> Option<String> {
    let differs = states.steps().iter().zip(others.steps()).position(|(a, b)| a.state != b.state);
    match differs {
        Some(step) => Some(format!("step {} leads to another state from one replay to the next", step + 1)),
        None => (first != second).then(|| "one replay ends differently from the next".to_string()),
    }
}

impl Shrink {
    fn run(&self, output: &mut Output) -> Result<u8> {
        let file = TraceFile::read(&self.trace)?;
        let mut machine = self.guest.machine((&file.limits).into(), Selection::default(), &output.console)?;
        let trace = file.trace(&machine).with_context(|| {
            format!("the trace `{}` does not fit `{}`", self.trace.display(), self.guest.target.display())
        })?;
        let shrunk =
            match shrunk(&mut machine, &trace, &file.failure, self.shrink_budget, &mut output.console) {
                Ok(shrunk) => shrunk,
                Err(NotReproduced(replayed)) => {
                    let why = describe(&machine, &trace, &replayed);
                    output
                        .report
                        .text(&format!("It cannot be shrunk, since it does not fail as recorded: {why}"))?;
                    return Ok(if replayed == Replayed::Passed { PASSED } else { NONDETERMINISM });
                }
            };
        let path = self.output.as_ref().unwrap_or(&self.trace);
        save(&machine, &shrunk.trace, &shrunk.failure, path)?;
        output.console.clear();
        output.report.finding(&Finding {
            story: story::tell(&mut machine, &shrunk.trace),
            failure: shrunk.failure,
            run: 0,
            steps_before: steps_of(&trace),
            reproduce: self.guest.replay_command(path),
            trace: path.clone(),
            is_minimal: shrunk.is_minimal,
        })?;
        Ok(FOUND)
    }
}

impl Instrument {
    fn run(&self, output: &mut Output) -> Result<u8> {
        let wasm = self.guest.load(&output.console)?;
        let instrumented = spelunk::machine::instrument(&wasm, &(&self.limits).into(), &(&self.edges).into())
            .with_context(|| format!("cannot instrument `{}`", self.guest.target.display()))?;
        let write = |path: &Path, bytes: &[u8]| {
            std::fs::write(path, bytes).map_err(|e| anyhow!("cannot write `{}`: {e}", path.display()))
        };
        write(&self.output, &instrumented.wasm)?;
        if let Some(map) = &self.map {
            let text = json!({ "edges": instrumented.edges, "layout": instrumented.layout });
            write(map, serde_json::to_string_pretty(&text)?.as_bytes())?;
        }
        let edges = instrumented.edges.edges.len();
        output.report.event("instrumented", json!({ "edges": edges, "bytes": instrumented.wasm.len() }))?;
        output.report.text(&format!(
            "{edges} edges; {} bytes, {} before",
            instrumented.wasm.len(),
            wasm.len()
        ))?;
        Ok(PASSED)
    }
}

/// The first Ctrl-C asks to finish and report; the second ends the program at once.
fn catch_interrupts() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(INTERRUPTED));
        }
    })?;
    Ok(interrupted)
}
