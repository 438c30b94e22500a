//! Verbs and flags, and what they do.

mod campaign;
mod check;
mod config;
mod debug;
mod distill;
#[cfg(test)]
mod documented;
mod explore;
mod instrument;
mod list;
mod page;
mod replay;
mod session;
mod shell;
mod shrink;
mod start;
mod system;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use spelunk::budget::{Budget, COMPILING_MAX, Over};
use spelunk::console::Console;
use spelunk::file::{Environment, TraceFile};
use spelunk::load::{self, Build, Folder};
use spelunk::machine::{Limits, Machine, Sanitizer, Selection, StubImports};
use spelunk::outcome::Failure;
use spelunk::report::Report;
use spelunk::report::tools::Files;
use spelunk::session::{Caching, Config, Event, Finding, Observer, Place};
use spelunk::story::Line;

use campaign::{Coverage, Export, Gc, Import, Merge, One};
use check::Check;
use debug::Debug;
use distill::Distill;
use explore::Explore;
use instrument::Instrument;
use list::List;
use page::Page;
use replay::Replay;
use session::ForTools;
use shell::{Completions, Manual};
use shrink::Shrink;
use start::{Init, New, Sdk};

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
/// `SPELUNK_SEED=3` is `--seed 3`. What stands in a `spelunk.toml` that --config does not name may set no path that
/// is written to.
#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Read settings from this file. [default: spelunk.toml, where it exists]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Output")]
    config: Option<PathBuf>,
    /// Print one JSON object a line on stdout instead of text.
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,
    /// Colours on the terminal.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, help_heading = "Output")]
    color: Color,
    /// MiB that Spelunk may hold while it compiles a module.
    #[arg(long, global = true, value_name = "MIB", default_value_t = COMPILING_MAX >> 20,
        value_parser = clap::value_parser!(u64).range(16..), help_heading = "Limits")]
    compile_memory: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
enum Verb {
    /// Write a harness, with code that has a bug to find.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    New(New),
    /// Write a harness for a package, beside it.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Init(Init),
    /// Unpack the SDK that harnesses in Rust depend on, and print where it is.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Sdk(Sdk),
    /// Search for failures, and shrink what is found.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Explore(Box<Explore>),
    /// Try all answers within bounds; the verdict is that the target holds, fails, or that it is unknown.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Check(Box<Check>),
    /// Run a saved trace step by step: exit 1 where it fails again, 0 where it passes, 4 where it diverges.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Replay(Replay),
    /// Look inside a finding: go through the steps of a saved trace forwards and back, and look at every state.
    #[command(after_help = EXIT_CODES, args_override_self = true, mut_arg("target", debug::without_target))]
    Debug(Box<Debug>),
    /// Shrink a saved trace further.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Shrink(Shrink),
    /// Say how far a campaign is, and what it found.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Status(One),
    /// Write a campaign as a page of HTML: findings, coverage, the tree of checkpoints, rules and faults, properties.
    #[command(name = "report", after_help = EXIT_CODES, args_override_self = true, mut_arg("target", page::of_campaign))]
    Page(Page),
    /// Have one campaign take in what another of the same module knows.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Merge(Merge),
    /// Keep as few checkpoints of a campaign as go through all edges that all of them do.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Minimize(One),
    /// Say which lines, functions and branches of the source the steps of a campaign reached.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Coverage(Coverage),
    /// Write a campaign's traces, its module and its settings to a folder, the inputs of a fuzz target as plain files, or a trace as
    /// a unit test in Rust.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Export(Export),
    /// Take traces into a campaign.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Import(Import),
    /// Drop what nothing in a campaign refers to, and give the space back.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Gc(Gc),
    /// Of inputs of a fuzz target, keep as few and as small ones as show all edges, and how often, that all of them show.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Distill(Box<Distill>),
    /// List the rules, invariants and faults of a target, and what it imports.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    List(List),
    /// Write the instrumented module.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Instrument(Instrument),
    /// Print what has a shell complete commands.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Completions(Completions),
    /// Print the manual page.
    #[command(name = "man", after_help = EXIT_CODES, args_override_self = true)]
    Manual(Manual),
}

#[derive(Clone, Args)]
struct Guest {
    /// A .wasm, a .wat, or a folder with a Cargo.toml, which is built for WebAssembly.
    target: PathBuf,
    /// Cargo features of a target that is a folder, separated by commas.
    #[arg(long, value_delimiter = ',')]
    guest_features: Vec<String>,
    /// The Rust target that a folder is built for: wasm32-unknown-unknown, or wasm32-wasip1. [default: `target` under
    /// [package.metadata.spelunk] in its Cargo.toml, or else the first]
    #[arg(long, value_name = "TRIPLE", help_heading = "Target")]
    guest_target: Option<String>,
    /// The Cargo profile that a folder is built with, as it is. [default: release, with overflow checks and debug
    /// assertions]
    #[arg(long, value_name = "NAME", help_heading = "Target")]
    guest_profile: Option<String>,
    /// A folder whose files the guest finds, under another path or the same one. They are copied: nothing is written back.
    #[arg(long, value_name = "HOST[::GUEST]", help_heading = "System")]
    dir: Vec<Folder>,
    /// A file that says how the exports of the module are called. [default: NAME.spelunk.toml beside NAME.wasm, or
    /// signatures.spelunk.toml in a folder, where it exists]
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    signatures: Option<PathBuf>,
    /// A module that explores the target: it imports what the target exports, and exports the rules. Both become one module.
    #[arg(long, value_name = "HARNESS", help_heading = "Target")]
    link: Option<PathBuf>,
    /// A component that provides what the target, a component too, imports. Both become one component.
    #[arg(long, value_name = "COMPONENT", help_heading = "Target")]
    compose: Vec<PathBuf>,
    /// Another version of the target. Both are given the same calls, and what they do differently is a finding.
    #[arg(long, value_name = "OTHER", help_heading = "Target")]
    against: Option<PathBuf>,
    /// With --against: do not compare what the rule NAME returns, or leave it out where only one version has it. Also stdout,
    /// stderr, files, messages (of failures), import:NAME (calls of it).
    #[arg(long, value_name = "NAME", help_heading = "Target")]
    ignore: Vec<String>,
    /// MiB that the files of the guest may have together.
    #[arg(long, value_name = "MIB", default_value_t = Environment::default().files_bytes_max >> 20,
        value_parser = clap::value_parser!(u64).range(1..=4096), help_heading = "Limits")]
    files_max: u64,
}

#[derive(Args)]
struct Compiled {
    /// The folder that compiled programs are kept in, so that they start faster the next time. [default: spelunk in
    /// $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR", help_heading = "Target")]
    cache: Option<PathBuf>,
    /// Compile the program anew, and do not keep it.
    #[arg(long, help_heading = "Target")]
    no_cache: bool,
}

#[derive(Args)]
struct Edges {
    /// How edges are numbered: by a counter each, or at run time in a 64 KiB map as AFL does.
    #[arg(long, value_enum, default_value_t = EdgeMode::Static, help_heading = "Target")]
    edges: EdgeMode,
    /// Count edges only in functions whose demangled name matches one of these globs.
    #[arg(long, value_name = "GLOB", help_heading = "Target")]
    include: Vec<String>,
    /// Count no edges in functions whose demangled name matches one of these globs.
    #[arg(long, value_name = "GLOB", help_heading = "Target")]
    exclude: Vec<String>,
    #[command(flatten)]
    sanitizers: Sanitizers,
}

#[derive(Args)]
struct Sanitizers {
    /// Look for errors that need not make the guest fail: of the heap, of a guest with `malloc` and `free`, or Rust's
    /// allocator; of the stack, of a guest of C, C++, Rust or Zig.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST", help_heading = "Target")]
    sanitize: Vec<Sanitize>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Sanitize {
    /// Accesses beyond a block or of one that was freed, and blocks that are freed wrongly.
    Heap,
    /// Accesses beyond the frame of a function.
    Stack,
}

impl From<&Sanitizers> for Vec<Sanitizer> {
    fn from(args: &Sanitizers) -> Vec<Sanitizer> {
        let sanitizer = |sanitize: &Sanitize| match sanitize {
            Sanitize::Heap => Sanitizer::Heap,
            Sanitize::Stack => Sanitizer::Stack,
        };
        let chosen: BTreeSet<Sanitizer> = args.sanitize.iter().map(sanitizer).collect();
        chosen.into_iter().collect()
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum EdgeMode {
    Static,
    Hashed,
}

#[derive(Args)]
struct GuestLimits {
    /// Loop iterations and calls that a step may take, about.
    #[arg(long, default_value_t = u64::from(Limits::default().step_budget) * 256, help_heading = "Limits")]
    step_budget: u64,
    /// Calls that may nest.
    #[arg(long, default_value_t = Limits::default().depth_max, help_heading = "Limits")]
    depth_max: u32,
    /// MiB that the memories of a guest may grow to together.
    #[arg(long, value_name = "MIB", default_value_t = Limits::default().memory_bytes_max >> 20,
        value_parser = clap::value_parser!(u64).range(1..=4096), help_heading = "Limits")]
    memory_max: u64,
    /// Bytes that an LLVMFuzzerTestOneInput is given, at most.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().input_bytes_max,
        value_parser = clap::value_parser!(u32).range(..=1 << 20), help_heading = "Limits")]
    input_max: u32,
    /// Let every function that Spelunk does not provide return zero, or a value that is drawn.
    #[arg(long, value_name = "zero|drawn", num_args = 0..=1, require_equals = true, default_missing_value = "zero",
        value_parser = stubs, help_heading = "Target")]
    stub_imports: Option<StubImports>,
}

const PASSED: u8 = 0;
const FOUND: u8 = 1;
pub(crate) const COULD_NOT: u8 = 2;
const NONDETERMINISM: u8 = 4;
pub(crate) const INTERRUPTED: u8 = 130;

impl From<&GuestLimits> for Limits {
    fn from(args: &GuestLimits) -> Limits {
        Limits {
            step_budget: u32::try_from(args.step_budget / 256).unwrap_or(u32::MAX).clamp(1, i32::MAX as u32),
            depth_max: args.depth_max,
            memory_bytes_max: args.memory_max << 20,
            stub_imports: args.stub_imports.unwrap_or(StubImports::None),
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
        Selection {
            edges,
            include: args.include.clone(),
            exclude: args.exclude.clone(),
            sanitize: (&args.sanitizers).into(),
            ..Selection::default()
        }
    }
}

/// A settings file and the environment may also say whether there are to be any.
fn stubs(text: &str) -> Result<StubImports, String> {
    match text {
        "zero" | "true" | "1" => Ok(StubImports::Zero),
        "drawn" => Ok(StubImports::Drawn),
        "false" | "0" => Ok(StubImports::None),
        _ => Err("it must be zero or drawn".to_string()),
    }
}

/// Where a job reports to.
struct Output {
    console: Console,
    report: Report,
    files: Files,
}

impl Observer for Output {
    fn on(&mut self, event: Event<'_>) -> io::Result<()> {
        self.console.on(event)?;
        self.files.on(event)?;
        self.report.on(event)
    }
}

/// The command line of this process, completed from the settings file and the environment.
///
/// # Errors
/// A settings file that cannot be used.
pub(crate) fn parsed() -> Result<Cli> {
    let command = config::with_environment(Cli::command());
    let mut built = command.clone();
    // Hands the flags of all verbs on to each.
    built.build();
    let arguments = config::complete(std::env::args_os().collect::<Vec<OsString>>(), &built)?;
    let matches = command.get_matches_from(arguments);
    Ok(Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()))
}

impl Cli {
    /// Does the job; the exit code. Once the budget is interrupted, it finishes and reports.
    pub(crate) fn run(self, budget: &Budget) -> u8 {
        let colors = match self.color {
            Color::Auto => None,
            Color::Always => Some(true),
            Color::Never => Some(false),
        };
        let mut output = Output {
            console: Console::new(colors),
            report: Report::new(self.json, colors),
            files: Files::default(),
        };
        budget.limit_compiling(self.compile_memory.saturating_mul(1 << 20));
        let done = match &self.verb {
            Verb::New(args) => args.run(&mut output),
            Verb::Init(args) => args.run(&mut output),
            Verb::Sdk(args) => args.run(&mut output),
            Verb::Explore(args) => {
                args.config().and_then(|config| args.files.session(&args.guest, config, &mut output, budget))
            }
            Verb::Check(args) => {
                args.config().and_then(|config| args.files.session(&args.guest, config, &mut output, budget))
            }
            Verb::Replay(args) => args.run(&mut output, budget),
            Verb::Debug(args) => args.run(&mut output, budget),
            Verb::Shrink(args) => args.run(&mut output, budget),
            Verb::Status(args) => args.status(&mut output, budget),
            Verb::Page(args) => args.run(&mut output, budget),
            Verb::Merge(args) => args.run(&mut output, budget),
            Verb::Minimize(args) => args.minimize(&mut output, budget),
            Verb::Coverage(args) => args.run(&mut output, budget),
            Verb::Export(args) => args.run(&mut output, budget),
            Verb::Import(args) => args.run(&mut output, budget),
            Verb::Gc(args) => args.run(&mut output, budget),
            Verb::Instrument(args) => args.run(&mut output, budget),
            Verb::Distill(args) => args.run(&mut output, budget),
            Verb::List(args) => args.run(&mut output, budget),
            Verb::Completions(args) => args.run(&mut output),
            Verb::Manual(args) => args.run(&mut output),
        };
        output.console.clear();
        done.unwrap_or_else(|error| {
            let closed =
                error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
                    || error.downcast_ref::<spelunk::Error>().is_some_and(spelunk::Error::is_broken_pipe);
            if !closed {
                output.console.error(&error);
            }
            if budget.over() == Some(Over::Interrupt) { INTERRUPTED } else { COULD_NOT }
        })
    }
}

impl From<&Compiled> for Caching {
    fn from(args: &Compiled) -> Caching {
        match &args.cache {
            _ if args.no_cache => Caching::Off,
            Some(folder) => Caching::Folder(folder.clone()),
            None => Caching::User,
        }
    }
}

impl Guest {
    fn load(&self, console: &Console, budget: &Budget) -> Result<Vec<u8>> {
        let build = Build {
            features: &self.guest_features,
            target: self.guest_target.as_deref(),
            profile: self.guest_profile.as_deref(),
            folders: (&self.dir, self.files_bytes_max()),
            signatures: self.signatures.as_deref(),
            link: self.link.as_deref(),
            compose: &self.compose,
            against: self.against.as_deref(),
            ignored: &self.ignore,
            budget: budget.clone(),
        };
        load::load(&self.target, &build, &mut |verb, text| console.status(verb, text))
    }

    fn files_bytes_max(&self) -> u64 {
        self.files_max << 20
    }

    /// The config with what this says.
    fn config(&self, config: Config) -> Config {
        Config {
            guest_features: self.guest_features.clone(),
            guest_target: self.guest_target.clone(),
            guest_profile: self.guest_profile.clone(),
            folders: self.dir.clone(),
            signatures: self.signatures.clone(),
            link: self.link.clone(),
            compose: self.compose.clone(),
            against: self.against.clone(),
            ignored: self.ignore.clone(),
            program: std::env::args().next().unwrap_or_else(|| "spelunk".to_string()),
            ..config
        }
    }

    /// A finding as a replay has it.
    fn finding(
        &self,
        failure: Failure,
        story: Vec<Line>,
        steps_before: usize,
        trace: &std::path::Path,
    ) -> Finding {
        let config = self.config(Config::explore());
        let guest =
            spelunk::session::Guest { target: &self.target, config: &config, place: Place::at(trace) };
        guest.finding(failure, story, steps_before, trace)
    }

    /// What to say of a trace that does not fit the target.
    fn misfit(&self, trace: &std::path::Path, is_same_build: bool) -> String {
        let (trace, target) = (trace.display(), self.target.display());
        match is_same_build {
            true => format!("the trace `{trace}` does not fit `{target}`"),
            false => format!(
                "the trace `{trace}` was recorded on another module than `{target}`, or another build of it, and does not fit this one"
            ),
        }
    }

    /// A machine of the target, as a trace was recorded on, and the target's module.
    fn machine(
        &self,
        file: &TraceFile,
        compiled: &Compiled,
        console: &Console,
        budget: &Budget,
    ) -> Result<(Machine, Vec<u8>)> {
        let cache = Caching::from(compiled).open().and_then(Result::ok);
        let wasm = self.load(console, budget)?;
        let program =
            spelunk::session::program(&self.target, &wasm, file.conditions(), cache.as_ref(), budget)?;
        let machine = Machine::new(program);
        Ok((machine.with_context(|| format!("cannot explore `{}`", self.target.display()))?, wasm))
    }
}
