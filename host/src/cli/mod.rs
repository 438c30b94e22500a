//! Verbs and flags, and what they do.

mod campaign;
mod check;
mod config;
mod debug;
mod distill;
#[cfg(test)]
mod documented;
mod explore;
mod fleet;
mod guest;
mod instrument;
mod list;
mod page;
mod replay;
mod session;
mod shell;
mod shrink;
mod start;
mod system;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use anyhow::Result;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use spelunk::budget::{Budget, COMPILING_MAX, Over};
use spelunk::console::tui::Stop;
use spelunk::console::{Console, Loudness};
use spelunk::report::Report;
use spelunk::report::tools::Files;
use spelunk::session::{Event, Observer};

use campaign::{Coverage, Export, Gc, Import, Merge, One, StatusOf};
use check::Check;
use debug::Debug;
use distill::Distill;
use explore::Explore;
use fleet::{Pull, Push, Worker};
use guest::{Compiled, Edges, Guest, GuestLimits, Sanitizers};
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
    /// Print no status lines and no progress on stderr, only warnings and errors.
    #[arg(long, short, global = true, help_heading = "Output")]
    quiet: bool,
    /// Tell more of the progress on stderr, and a line for each phase and finding.
    #[arg(long, short, global = true, help_heading = "Output")]
    verbose: bool,
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
    Status(StatusOf),
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
    /// Explore campaigns that a fleet shares, whichever needs it most, until it is stopped.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Worker(Box<Worker>),
    /// Have a fleet take in what a campaign on disk knows.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Push(Push),
    /// Have a campaign on disk take in what a fleet knows.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Pull(Pull),
    /// Print what has a shell complete commands.
    #[command(after_help = EXIT_CODES, args_override_self = true)]
    Completions(Completions),
    /// Print the manual page.
    #[command(name = "man", after_help = EXIT_CODES, args_override_self = true)]
    Manual(Manual),
}

const PASSED: u8 = 0;
const FOUND: u8 = 1;
pub(crate) const COULD_NOT: u8 = 2;
const NONDETERMINISM: u8 = 4;
pub(crate) const INTERRUPTED: u8 = 130;

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
        if self.console.has_screen() {
            self.report.hold();
        }
        self.report.on(event)
    }

    fn wants_views(&self) -> bool {
        self.console.wants_views()
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
    let completed = config::complete(std::env::args_os().collect::<Vec<OsString>>(), &built)?;
    let matches = match command.try_get_matches_from(&completed.arguments) {
        Ok(matches) => matches,
        Err(error) => return Err(config::refused(error, &completed, &built)),
    };
    config::refuse_overwriting(&matches)?;
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let (quiet, verbose) = (given_at(&matches, "quiet"), given_at(&matches, "verbose"));
    Ok(Cli { quiet: cli.quiet && quiet >= verbose, verbose: cli.verbose && verbose >= quiet, ..cli })
}

/// Where a flag is given by hand; of two that contradict each other the later one counts, and one of the environment does not.
fn given_at(matches: &ArgMatches, flag: &str) -> Option<usize> {
    let is_by_hand = matches.value_source(flag) == Some(ValueSource::CommandLine);
    matches.index_of(flag).filter(|_| is_by_hand)
}

impl Cli {
    fn output(&self) -> Output {
        let colors = match self.color {
            Color::Auto => None,
            Color::Always => Some(true),
            Color::Never => Some(false),
        };
        let loudness = match (self.quiet, self.verbose) {
            (true, _) => Loudness::Quiet,
            (false, true) => Loudness::Verbose,
            (false, false) => Loudness::Usual,
        };
        let console = Console::new(colors, loudness);
        config::unknown_variables(&Cli::command()).iter().for_each(|unknown| console.warning(unknown));
        Output { console, report: Report::new(self.json, colors), files: Files::default() }
    }

    /// Does the job; the exit code. Once the budget is interrupted, it finishes and reports.
    /// `stop` asks for that, or ends the process.
    pub(crate) fn run(self, budget: &Budget, stop: Stop) -> u8 {
        let mut output = self.output();
        budget.limit_compiling(self.compile_memory.saturating_mul(1 << 20));
        let done = match &self.verb {
            Verb::New(args) => args.run(&mut output),
            Verb::Init(args) => args.run(&mut output),
            Verb::Sdk(args) => args.run(&mut output),
            Verb::Explore(args) => args.run(&mut output, budget, stop),
            Verb::Check(args) => {
                args.config().and_then(|config| args.files.session(&args.guest, config, &mut output, budget))
            }
            Verb::Replay(args) => args.run(&mut output, budget),
            Verb::Debug(args) => args.run(&mut output, budget),
            Verb::Shrink(args) => args.run(&mut output, budget),
            Verb::Status(args) => args.run(&mut output, budget),
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
            Verb::Worker(args) => args.run(&mut output, budget),
            Verb::Push(args) => args.run(&mut output, budget),
            Verb::Pull(args) => args.run(&mut output, budget),
            Verb::Completions(args) => args.run(&mut output),
            Verb::Manual(args) => args.run(&mut output),
        };
        output.console.close();
        // Where that fails, so did what was to be written there.
        let done = output.report.release().map_err(Into::into).and(done);
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
