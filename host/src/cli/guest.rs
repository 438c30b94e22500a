//! The arguments that describe a guest: where it is, how it is built, instrumented, compiled and limited.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use spelunk::budget::Budget;
use spelunk::console::Console;
use spelunk::file::{Environment, TraceFile};
use spelunk::load::{self, Build, Folder};
use spelunk::machine::{Limits, Machine, Sanitizer, Selection, StubImports};
use spelunk::outcome::Failure;
use spelunk::session::{Caching, Config, Finding, Place};
use spelunk::story::Line;

/// How cargo builds a target that is a folder.
#[derive(Clone, Args)]
pub(super) struct Package {
    /// Cargo features of a target that is a folder, separated by commas.
    #[arg(long, value_delimiter = ',')]
    guest_features: Vec<String>,
    /// The Rust target that a folder is built for: wasm32-unknown-unknown, wasm32-wasip1 or wasm32-wasip2. [default:
    /// `target` under [package.metadata.spelunk] in its Cargo.toml, or else the first]
    #[arg(long, value_name = "TRIPLE", help_heading = "Target")]
    guest_target: Option<String>,
    /// The Cargo profile that a folder is built with, as it is. [default: release, with overflow checks and debug
    /// assertions]
    #[arg(long, value_name = "NAME", help_heading = "Target")]
    guest_profile: Option<String>,
}

impl Package {
    pub(super) fn is_default(&self) -> bool {
        self.guest_features.is_empty() && self.guest_target.is_none() && self.guest_profile.is_none()
    }

    pub(super) fn build(&self) -> Build<'_> {
        Build {
            features: &self.guest_features,
            target: self.guest_target.as_deref(),
            profile: self.guest_profile.as_deref(),
            ..Build::default()
        }
    }
}

#[derive(Clone, Args)]
pub(super) struct Guest {
    /// A .wasm, a .wat, or a folder with a Cargo.toml, which is built for WebAssembly.
    pub(super) target: PathBuf,
    #[command(flatten)]
    package: Package,
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
    pub(super) against: Option<PathBuf>,
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
pub(super) struct Compiled {
    /// The folder that compiled programs are kept in, so that they start faster the next time. [default: spelunk in
    /// $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR", help_heading = "Target")]
    cache: Option<PathBuf>,
    /// Compile the program anew, and do not keep it.
    #[arg(long, help_heading = "Target")]
    no_cache: bool,
}

#[derive(Args)]
pub(super) struct Edges {
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
pub(super) struct Sanitizers {
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
pub(super) struct GuestLimits {
    /// Loop iterations and calls that a step may take, about.
    #[arg(long, default_value_t = u64::from(Limits::default().step_budget) * 256, value_parser = clap::value_parser!(u64).range(256..), help_heading = "Limits")]
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
    pub(super) input_max: u32,
    /// Let every function that Spelunk does not provide return zero, or a value that is drawn.
    #[arg(long, value_name = "zero|drawn", num_args = 0..=1, require_equals = true, default_missing_value = "zero",
        value_parser = stubs, help_heading = "Target")]
    stub_imports: Option<StubImports>,
}

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
    /// The same of another target.
    pub(super) fn at(&self, target: PathBuf) -> Guest {
        Guest { target, ..self.clone() }
    }

    pub(super) fn load(&self, console: &Console, budget: &Budget) -> Result<Vec<u8>> {
        let build = Build {
            folders: (&self.dir, self.files_bytes_max()),
            signatures: self.signatures.as_deref(),
            link: self.link.as_deref(),
            compose: &self.compose,
            against: self.against.as_deref(),
            ignored: &self.ignore,
            is_quiet: console.is_quiet(),
            budget: budget.clone(),
            ..self.package.build()
        };
        load::load(&self.target, &build, &mut |verb, text| console.status(verb, text))
    }

    pub(super) fn files_bytes_max(&self) -> u64 {
        self.files_max << 20
    }

    /// The config with what this says.
    pub(super) fn config(&self, config: Config) -> Config {
        Config {
            guest_features: self.package.guest_features.clone(),
            guest_target: self.package.guest_target.clone(),
            guest_profile: self.package.guest_profile.clone(),
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
    pub(super) fn finding(
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
    pub(super) fn misfit(&self, trace: &std::path::Path, is_same_build: bool) -> String {
        let (trace, target) = (trace.display(), self.target.display());
        match is_same_build {
            true => format!("the trace `{trace}` does not fit `{target}`"),
            false => format!(
                "the trace `{trace}` was recorded on another module than `{target}`, or another build of it, and does not fit this one"
            ),
        }
    }

    /// A machine of the target, as a trace was recorded on, and the target's module.
    pub(super) fn machine(
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
        Ok((machine.with_context(|| format!("cannot run `{}`", self.target.display()))?, wasm))
    }
}
