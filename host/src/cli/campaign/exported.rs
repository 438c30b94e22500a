//! `spelunk export` and `spelunk import`: a campaign as a folder of files that every version reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use spelunk::budget::Budget;
use spelunk::campaign::{Campaign, Settings};
use spelunk::disk;
use spelunk::file::{TraceFile, VERSION};
use spelunk::machine::{Machine, Program};
use spelunk::replay::{Replayed, replay};
use spelunk::report::counted;
use spelunk::search::energy::Energies;
use spelunk::search::{Explorer, Knowledge, Planted};
use spelunk::session::{Place, describe, input_of, write_named_input, write_trace};
use spelunk::trace::Trace;

use super::{One, Opened, as_test, folder_of, keep_trace, trace_of};
use crate::cli::guest::Package;
use crate::cli::{NONDETERMINISM, Output, PASSED};

/// What an exported campaign is of, beside its traces.
const HEADER: &str = "campaign.json";
/// The module of an exported campaign.
const MODULE: &str = "module.wasm";
/// Bytes that they may have.
const HEADER_BYTES_MAX: u64 = 1 << 20;
const MODULE_BYTES_MAX: u64 = 1 << 30;

#[derive(Args)]
pub(in crate::cli) struct Export {
    #[command(flatten)]
    campaign: One,
    /// A folder that does not exist, or is empty.
    #[arg(required_unless_present_any = ["inputs", "as_test"])]
    to: Option<PathBuf>,
    /// Write the inputs of a fuzz target as plain files, named after their content: those that are kept to FOLDER/queue, those of
    /// findings to FOLDER/crashes.
    #[arg(long, value_name = "FOLDER")]
    inputs: Option<PathBuf>,
    /// Write a saved trace of a harness in Rust as a unit test, which replays it without WebAssembly. The target needs no campaign.
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["to", "inputs"])]
    as_test: Option<PathBuf>,
    /// The file that the test is written to. [default: it is printed]
    #[arg(long, short, value_name = "FILE", requires = "as_test", conflicts_with_all = ["to", "inputs"])]
    output: Option<PathBuf>,
    #[command(flatten)]
    package: Package,
}

#[derive(Args)]
pub(in crate::cli) struct Import {
    /// The folder of a campaign, where one is begun if there is none; or the target, where its campaign is below
    /// `.spelunk`.
    campaign: PathBuf,
    /// What `spelunk export` wrote, or trace files.
    #[arg(required = true)]
    from: Vec<PathBuf>,
}

/// What stands in [`HEADER`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    spelunk: u32,
    target: String,
    settings: Settings,
}

impl Export {
    pub(in crate::cli) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        if let Some(trace) = &self.as_test {
            let target = (self.campaign.campaign.as_path(), &self.package);
            return as_test::write(target, trace, self.output.as_deref(), output, budget);
        }
        ensure!(
            self.package.is_default(),
            "--guest-features, --guest-profile and --guest-target are for --as-test: a campaign has its module"
        );
        let mut opened = Opened::open(&self.campaign.campaign, budget)?;
        if let Some(folder) = &self.inputs {
            write_inputs(&opened, folder, output)?;
        }
        self.to.as_ref().map_or(Ok(PASSED), |to| write_all(&mut opened, to, output, budget))
    }
}

/// Writes the inputs that a campaign kept, and those of its findings. No folder holds both, since what reads a corpus executes it.
fn write_inputs(opened: &Opened, folder: &Path, output: &mut Output) -> Result<()> {
    let Opened { campaign, machine, known } = opened;
    let program = machine.program();
    ensure!(
        program.takes_input(),
        "--inputs are those of a function LLVMFuzzerTestOneInput, or of a program whose input is drawn, and `{}` is neither",
        campaign.target()
    );
    let queue = known.checkpoints.iter().map(|checkpoint| trace_of(&checkpoint.history));
    let kept = write_folder(program, (folder, "queue"), queue)?;
    let crashes = known.findings.iter().map(|finding| {
        // The shrunk one, where there is one that fits.
        let path = Place::at(campaign.folder()).saved(&finding.failure);
        let shrunk = TraceFile::read(&path).ok().and_then(|file| file.trace(machine).ok());
        shrunk.unwrap_or_else(|| finding.trace.clone())
    });
    let failing = write_folder(program, (folder, "crashes"), crashes)?;
    output
        .report
        .event("inputs", json!({ "to": folder.display().to_string(), "inputs": kept, "failing": failing }))?;
    output.report.text(&format!(
        "{} in `{}`, and {failing} of findings in `{}`",
        counted(kept as u64, "input"),
        folder.join("queue").display(),
        folder.join("crashes").display()
    ))?;
    Ok(())
}

/// Writes the inputs of traces; how many different ones there are.
fn write_folder(
    program: &Program,
    (to, name): (&Path, &str),
    traces: impl Iterator<Item = Trace>,
) -> Result<usize> {
    let folder = &to.join(name);
    disk::make_folder(to, folder).with_context(|| format!("cannot export to `{}`", folder.display()))?;
    let mut inputs = BTreeSet::new();
    for trace in traces {
        if let Some(input) = input_of(program, &trace).filter(|input| !inputs.contains(*input)) {
            write_named_input(folder, input)?;
            inputs.insert(input.to_vec());
        }
    }
    Ok(inputs.len())
}

/// Writes all that is to be known of a campaign; the exit code.
fn write_all(opened: &mut Opened, to: &Path, output: &mut Output, budget: &Budget) -> Result<u8> {
    let cannot = || format!("cannot export to `{}`", to.display());
    std::fs::create_dir_all(to).with_context(cannot)?;
    let is_empty = std::fs::read_dir(to).with_context(cannot)?.next().is_none();
    ensure!(is_empty, "the folder `{}` is not empty", to.display());
    let (checkpoints, is_flaky) = write_checkpoints(opened, to, output, budget)?;
    let Opened { campaign, machine, known } = opened;
    for finding in &known.findings {
        let name = format!("{}.json", finding.failure.id());
        let from = Place::at(campaign.folder()).saved(&finding.failure);
        keep_trace(machine, (&finding.trace, &finding.failure), &from, &to.join(&name))?;
    }
    let header = Header {
        spelunk: VERSION,
        target: campaign.target().to_string(),
        settings: campaign.settings().clone(),
    };
    disk::write(&to.join(HEADER), format!("{:#}\n", serde_json::to_value(header)?).as_bytes())
        .with_context(cannot)?;
    disk::write(&to.join(MODULE), &campaign.module()?).with_context(cannot)?;
    let findings = known.findings.len();
    output.report.event(
        "export",
        json!({ "to": to.display().to_string(), "checkpoints": checkpoints, "findings": findings }),
    )?;
    output.report.text(&format!(
        "{} and {} in `{}`, with the module and its settings",
        counted(checkpoints as u64, "checkpoint"),
        counted(findings as u64, "finding"),
        to.display()
    ))?;
    Ok(if is_flaky { NONDETERMINISM } else { PASSED })
}

/// Writes the steps to each checkpoint, as they go now; how many, and whether some go otherwise, which are left out. Where that is stopped,
/// nothing is left of them: they could not be told from all.
fn write_checkpoints(
    opened: &mut Opened,
    to: &Path,
    output: &mut Output,
    budget: &Budget,
) -> Result<(usize, bool)> {
    let Opened { machine, known, .. } = opened;
    let (mut written, mut is_flaky) = (0, false);
    for checkpoint in known.checkpoints.iter() {
        let (replayed, trace) = replay(machine, &trace_of(&checkpoint.history), false);
        if budget.is_over() {
            // It was empty.
            std::fs::read_dir(to)?.try_for_each(|entry| std::fs::remove_file(entry?.path()))?;
            bail!("the export was stopped; nothing is left of it");
        }
        if replayed == Replayed::Passed {
            let path = to.join(format!("checkpoint-{:06}.json", checkpoint.id));
            write_trace(machine, &trace, (None, None), &path)?;
            written += 1;
            continue;
        }
        let why = describe(machine, &trace, &replayed);
        output.console.warning(&format!(
            "the steps to checkpoint {} do not go as they did, and are left out: {why}",
            checkpoint.id
        ));
        is_flaky = true;
    }
    Ok((written, is_flaky))
}

impl Import {
    pub(in crate::cli) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let Opened { mut campaign, machine, known } = self.open(budget)?;
        let mut machines = [machine];
        let options = campaign.settings().options(machines[0].program())?;
        let program = machines[0].program().clone();
        let mut explorer = Explorer::resume(&mut machines, options, known);
        let (mut counts, mut is_flaky) = ([0u64; 3], false);
        for path in self.traces()? {
            let why = match imported(&mut explorer, &path) {
                Ok(Imported::Diverged(why)) => {
                    is_flaky = true;
                    why
                }
                Ok(Imported::Planted(planted)) => match planted {
                    Planted::Checkpoint => {
                        counts[0] += 1;
                        continue;
                    }
                    Planted::Known | Planted::FoundBefore => {
                        counts[2] += 1;
                        continue;
                    }
                    Planted::Found => {
                        counts[1] += 1;
                        let found = explorer.findings().last().context("it was just found")?.clone();
                        let to = Place::at(campaign.folder()).trace(&found.failure);
                        keep_trace(explorer.target(), (&found.trace, &found.failure), &path, &to)?;
                        continue;
                    }
                    Planted::Stale(why) => why,
                    Planted::Stopped | Planted::Torn => bail!("the import was stopped; nothing was taken in"),
                },
                Err(error) => format!("{error:#}"),
            };
            output.console.status("Stale", &format!("{}: {why}", path.display()));
        }
        campaign.save(explorer.knowledge(), &program)?;
        let [checkpoints, findings, known] = counts;
        let edges = explorer.progress().edges;
        output.report.event(
            "import",
            json!({ "checkpoints": checkpoints, "findings": findings, "known": known, "edges": edges }),
        )?;
        output.report.text(&format!(
            "{} and {} taken in, {known} show nothing new; {} now",
            counted(checkpoints, "checkpoint"),
            counted(findings, "finding"),
            counted(edges.into(), "edge")
        ))?;
        Ok(if is_flaky { NONDETERMINISM } else { PASSED })
    }

    /// The campaign, or a new one of what was exported.
    fn open(&self, budget: &Budget) -> Result<Opened> {
        let folder = &self.campaign;
        if folder_of(folder).is_ok() {
            return Opened::open(folder, budget);
        }
        let exported = self.from.iter().find(|path| path.join(HEADER).exists());
        let Some(exported) = exported else {
            bail!(
                "there is no campaign in `{}`, and what is imported does not say of what one would be: \
                 begin it with `spelunk explore`, or import a folder that `spelunk export` wrote",
                folder.display()
            );
        };
        let cannot = || format!("`{}` is not what `spelunk export` writes", exported.display());
        let text = disk::read_at_most(&exported.join(HEADER), HEADER_BYTES_MAX).with_context(cannot)?;
        let header: Header = serde_json::from_slice(&text).with_context(cannot)?;
        ensure!(
            header.spelunk <= VERSION,
            "`{}` has version {} of the format, and this Spelunk reads up to {VERSION}: use a newer Spelunk",
            exported.display(),
            header.spelunk
        );
        let settings = &header.settings;
        settings.validate().with_context(cannot)?;
        let wasm = disk::read_at_most(&exported.join(MODULE), MODULE_BYTES_MAX).with_context(cannot)?;
        // Named by its target, a campaign is where one of that target is looked for.
        let place = Place::of(folder, Path::new(disk::FOLDER));
        let folder = match folder.is_file() {
            true => place.make().map(|()| place.folder())?,
            false => folder,
        };
        let campaign = Campaign::begin(folder, &header.target, &wasm, header.settings)?;
        let machine = campaign.machine(budget)?;
        let options = campaign.settings().options(machine.program())?;
        let rules = spelunk::target::Target::rules(&machine).len();
        let known =
            Knowledge::new(&options, (rules, machine.program().is_function()), machine.program().declared());
        Ok(Opened { campaign, machine, known })
    }

    /// The trace files, those of folders in the order of their names.
    fn traces(&self) -> Result<Vec<PathBuf>> {
        let mut traces = Vec::new();
        for path in &self.from {
            ensure!(path.exists(), "there is no `{}` to take in", path.display());
            if !path.is_dir() {
                traces.push(path.clone());
                continue;
            }
            let cannot = || format!("cannot read the folder `{}`", path.display());
            let entries: std::io::Result<Vec<_>> = std::fs::read_dir(path).with_context(cannot)?.collect();
            let paths = entries.with_context(cannot)?.into_iter().map(|entry| entry.path());
            let is_trace = |path: &PathBuf| {
                path.extension().is_some_and(|extension| extension == "json") && !path.ends_with(HEADER)
            };
            let from = traces.len();
            traces.extend(paths.filter(is_trace));
            traces[from..].sort();
        }
        Ok(traces)
    }
}

/// What became of a trace file.
enum Imported {
    Planted(Planted),
    /// It was recorded on this very build, and did not do what it did; how.
    Diverged(String),
}

fn imported(explorer: &mut Explorer<'_, Machine>, path: &Path) -> Result<Imported> {
    let file = TraceFile::read(path)?;
    let trace = file
        .trace(explorer.target())
        .with_context(|| format!("the trace `{}` does not fit the module", path.display()))?;
    let program = explorer.target().program().clone();
    if file.is_of(program.hash(), program.conditions()) {
        let replayed = replay(explorer.target(), &trace, true).0;
        if let Replayed::Diverged { .. } = replayed {
            return Ok(Imported::Diverged(describe(explorer.target(), &trace, &replayed)));
        }
    }
    Ok(Imported::Planted(explorer.plant(&trace, Energies::default().start)))
}
