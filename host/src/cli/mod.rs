//! Verbs and flags, and what they do.

mod campaign;
mod check;
mod config;
mod explore;
mod found;
mod input;
mod instrument;
mod replay;
mod report;
mod saved;
mod shrink;
mod start;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use spelunk::budget::Budget;
use spelunk::console::Console;
use spelunk::file::TraceFile;
use spelunk::load;
use spelunk::machine::{Cache, Limits, Machine, Program, Selection};
use spelunk::report::{Report, command_line};

use campaign::{Export, Import, Merge, One};
use check::Check;
use explore::Explore;
use instrument::Instrument;
use replay::Replay;
use shrink::Shrink;

const EXIT_CODES: &str = "\
Exit codes:
  0    nothing failed
  1    a finding
  2    the job could not be done: usage, a bad module, input or output
  3    unknown: a check reached a limit before it was complete
  4    nondeterminism: a run did not go as recorded
  130  interrupted; what was found until then was reported";

/// Explores anything that compiles to WebAssembly: finds the shortest sequence of calls, inputs and faults that
/// breaks a module, and replays it.
///
/// Every flag can be set in `spelunk.toml`, in a table named after the verb, and by an environment variable:
/// `SPELUNK_SEED=3` is `--seed 3`.
#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Read settings from this file. [default: spelunk.toml, where it exists]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
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
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Explore(Explore),
    /// Try all answers within bounds; the verdict is that the target holds, fails, or that it is unknown.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Check(Check),
    /// Run a saved trace step by step: exit 1 where it fails again, 0 where it passes, 4 where it diverges.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Replay(Replay),
    /// Shrink a saved trace further.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Shrink(Shrink),
    /// Say how far a campaign is, and what it found.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Status(One),
    /// Have one campaign take in what another of the same module knows.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Merge(Merge),
    /// Keep as few checkpoints of a campaign as go through all edges that all of them do.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Minimize(One),
    /// Write a campaign's traces, its module and its settings to a folder.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Export(Export),
    /// Take traces into a campaign.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Import(Import),
    /// Drop what nothing in a campaign refers to, and give the space back.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Gc(One),
    /// Write the instrumented module.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
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
struct Compiled {
    /// The folder that compiled programs are kept in, so that they start faster the next time. [default: spelunk in
    /// $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Compile the program anew, and do not keep it.
    #[arg(long)]
    no_cache: bool,
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
    #[arg(long, value_name = "MIB", default_value_t = Limits::default().memory_bytes_max >> 20,
        value_parser = clap::value_parser!(u64).range(1..=4096))]
    memory_max: u64,
    /// Bytes that an LLVMFuzzerTestOneInput is given, at most.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().input_bytes_max,
        value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    input_max: u32,
    /// Let every import that Spelunk does not provide return zero.
    #[arg(long)]
    stub_imports: bool,
}

/// What stops this process' job.
pub(crate) fn budget() -> &'static Budget {
    static BUDGET: OnceLock<Budget> = OnceLock::new();
    BUDGET.get_or_init(Budget::unlimited)
}

const PASSED: u8 = 0;
const FOUND: u8 = 1;
pub(crate) const COULD_NOT: u8 = 2;
const UNKNOWN: u8 = 3;
const NONDETERMINISM: u8 = 4;
pub(crate) const INTERRUPTED: u8 = 130;

impl From<&GuestLimits> for Limits {
    fn from(args: &GuestLimits) -> Limits {
        Limits {
            step_budget: u32::try_from(args.step_budget / 256).unwrap_or(u32::MAX).clamp(1, i32::MAX as u32),
            depth_max: args.depth_max,
            memory_bytes_max: args.memory_max << 20,
            stub_imports: args.stub_imports,
            input_bytes_max: args.input_max,
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

/// The arguments of this process, completed from the settings file and the environment.
///
/// # Errors
/// A settings file that cannot be used.
pub(crate) fn arguments() -> Result<Vec<OsString>> {
    let mut command = Cli::command();
    // Hands the flags of all verbs on to each.
    command.build();
    config::complete(std::env::args_os().collect(), &command)
}

impl Cli {
    /// Does the job; the exit code. Once `interrupted`, it finishes and reports.
    pub(crate) fn run(self, interrupted: &AtomicBool) -> u8 {
        let colors = match self.color {
            Color::Auto => None,
            Color::Always => Some(true),
            Color::Never => Some(false),
        };
        let mut output = Output { console: Console::new(colors), report: Report::new(self.json, colors) };
        let done = match &self.verb {
            Verb::Explore(args) => args.run(&mut output, interrupted),
            Verb::Check(args) => args.run(&mut output, interrupted),
            Verb::Replay(args) => args.run(&mut output),
            Verb::Shrink(args) => args.run(&mut output, interrupted),
            Verb::Status(args) => args.status(&mut output),
            Verb::Merge(args) => args.run(&mut output),
            Verb::Minimize(args) => args.minimize(&mut output),
            Verb::Export(args) => args.run(&mut output),
            Verb::Import(args) => args.run(&mut output),
            Verb::Gc(args) => args.gc(&mut output),
            Verb::Instrument(args) => args.run(&mut output),
        };
        output.console.clear();
        let done = budget().exhaustion().map_or(done, |exhaustion| Err(anyhow!(exhaustion)));
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

impl Compiled {
    fn cache(&self) -> Option<Cache> {
        match &self.cache {
            _ if self.no_cache => None,
            Some(folder) => Some(Cache::new(folder.clone())),
            None => Cache::of_user(),
        }
    }
}

impl Guest {
    fn load(&self, console: &Console) -> Result<Vec<u8>> {
        load::load(&self.target, &self.guest_features, &mut |verb, text| console.status(verb, text))
    }

    fn machine(&self, file: &TraceFile, compiled: &Compiled, console: &Console) -> Result<Machine> {
        let (limits, selection) = ((&file.limits).into(), (&file.selection).into());
        let mut machines = self.machines(1, limits, selection, compiled, console)?;
        Ok(machines.remove(0))
    }

    /// As many machines of one program.
    fn machines(
        &self,
        count: usize,
        limits: Limits,
        selection: Selection,
        compiled: &Compiled,
        console: &Console,
    ) -> Result<Vec<Machine>> {
        self.machines_of(&self.load(console)?, count, limits, selection, compiled)
    }

    /// As many machines of this module, which was loaded.
    fn machines_of(
        &self,
        wasm: &[u8],
        count: usize,
        limits: Limits,
        selection: Selection,
        compiled: &Compiled,
    ) -> Result<Vec<Machine>> {
        let context = || format!("cannot explore `{}`", self.target.display());
        let program = Program::load_with(wasm, limits, selection, compiled.cache().as_ref(), budget());
        let program = Arc::new(program.with_context(context)?);
        (0..count).map(|_| Machine::new(program.clone()).with_context(context)).collect()
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
