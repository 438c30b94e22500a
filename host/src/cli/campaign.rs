//! `spelunk status`, `merge`, `minimize`, `export`, `import` and `gc`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use spelunk::budget::Budget;
use spelunk::campaign::{Campaign, Settings, ensure_alike};
use spelunk::disk;
use spelunk::file::{Shrinking, TraceFile, VERSION};
use spelunk::machine::{Machine, Snapshot};
use spelunk::outcome::Failure;
use spelunk::replay::{Replayed, replay};
use spelunk::report::counted;
use spelunk::search::energy::{Energies, History};
use spelunk::search::{Explorer, Knowledge, Planted, cover, edges_of};
use spelunk::session::{
    self, Event, Fate, Observer, Place, Saved, Status, describe, write_input, write_trace,
};
use spelunk::store::FILE;
use spelunk::text;
use spelunk::trace::Trace;

use super::{NONDETERMINISM, Output, PASSED};

/// What an exported campaign is of, beside its traces.
const HEADER: &str = "campaign.json";
/// The module of an exported campaign.
const MODULE: &str = "module.wasm";

#[derive(Args)]
pub(super) struct One {
    /// The folder of a campaign, or the target, where its campaign is below `.spelunk`.
    campaign: PathBuf,
}

#[derive(Args)]
pub(super) struct Gc {
    #[command(flatten)]
    campaign: One,
    /// Remove earlier campaigns that were backed up beside it.
    #[arg(long)]
    backups: bool,
    /// Remove saved findings that no longer fail in the campaign's build, or whose steps no longer fit it.
    #[arg(long)]
    fixed: bool,
}

#[derive(Args)]
pub(super) struct Merge {
    /// The campaign that takes in what the other knows.
    campaign: PathBuf,
    /// The other, which stays as it is.
    other: PathBuf,
}

#[derive(Args)]
pub(super) struct Export {
    #[command(flatten)]
    campaign: One,
    /// A folder that does not exist, or is empty.
    to: PathBuf,
}

#[derive(Args)]
pub(super) struct Import {
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

/// An open campaign, and all that it knows.
struct Opened {
    campaign: Campaign,
    machine: Machine,
    known: Knowledge<Snapshot>,
}

impl Opened {
    fn open(path: &Path, budget: &Budget) -> Result<Opened> {
        let folder = folder_of(path)?;
        let campaign = Campaign::open(&folder)?;
        let mut campaign =
            campaign.with_context(|| format!("the campaign in `{}` has not begun", folder.display()))?;
        let machine = campaign.machine(budget)?;
        let known = campaign.load(machine.program())?;
        Ok(Opened { campaign, machine, known })
    }

    fn save(&mut self) -> Result<()> {
        self.campaign.save(&self.known, self.machine.program())
    }
}

/// The folder of the campaign that the user names.
fn folder_of(path: &Path) -> Result<PathBuf> {
    // A folder that is not there is not taken for a target of its name, since another campaign would be.
    let is_target = path.exists() || path.components().count() == 1;
    let of_target = is_target.then(|| Place::of(path, Path::new(".spelunk")).folder().to_path_buf());
    let mut folders = std::iter::once(path.to_path_buf()).chain(of_target);
    let found = folders.find(|folder| folder.join(FILE).exists());
    found.with_context(|| {
        format!("there is no campaign in `{}`: `spelunk explore` begins one", path.display())
    })
}

impl One {
    pub(super) fn status(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let folder = folder_of(&self.campaign)?;
        let status = match Opened::open(&self.campaign, budget) {
            Ok(Opened { campaign, machine, known }) => Status::of(&campaign, &known, machine.program())?,
            // Another process has it open, and says how far it is.
            Err(error) => Status::running(&folder).map_err(|_| error)?,
        };
        output.report.event("status", &status)?;
        output.report.text(&status_text(&status))?;
        Ok(PASSED)
    }

    pub(super) fn minimize(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let mut opened = Opened::open(&self.campaign, budget)?;
        let before = opened.known.checkpoints.len();
        let mut sets = Vec::new();
        for checkpoint in opened.known.checkpoints.iter() {
            sets.push(edges_of(&mut opened.machine, &trace_of(&checkpoint.history)));
        }
        let edges = sets.iter().flatten().collect::<std::collections::BTreeSet<_>>().len();
        let kept = cover(&sets);
        let ids: Vec<u64> = kept.iter().map(|index| opened.known.checkpoints.get(*index).id).collect();
        opened.known.checkpoints.retain(|checkpoint| ids.contains(&checkpoint.id));
        opened.save()?;
        if let Err(error) = opened.campaign.collect_garbage() {
            output
                .console
                .warning(&format!("the space is not given back, which `spelunk gc` does: {error:#}"));
        }
        output.report.event("minimize", json!({ "before": before, "kept": ids, "edges": edges }))?;
        output.report.text(&format!(
            "{} of {before} kept, whose steps go through all of the {} that they all went through",
            counted(ids.len() as u64, "checkpoint"),
            counted(edges as u64, "edge")
        ))?;
        Ok(PASSED)
    }
}

impl Gc {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let folder = folder_of(&self.campaign.campaign)?;
        let campaign = Campaign::open(&folder)?;
        let mut campaign =
            campaign.with_context(|| format!("the campaign in `{}` has not begun", folder.display()))?;
        let backups = if self.backups { session::backups(&folder)? } else { Vec::new() };
        for (path, _) in &backups {
            remove(path)?;
        }
        let fixed = if self.fixed { remove_fixed(&campaign, output, budget)? } else { 0 };
        let collected = campaign.collect_garbage()?;
        output.report.event(
            "gc",
            json!({
                "before": collected.before, "after": collected.after, "parts": collected.blobs,
                "histories": collected.histories, "backups": backups.len(), "findings": fixed,
            }),
        )?;
        let mut text = format!(
            "{} before, {} now; {} of saved states and {} dropped",
            size(collected.before),
            size(collected.after),
            counted(collected.blobs, "part"),
            counted(collected.histories, "step sequence")
        );
        if self.backups {
            text += &format!("; {} removed", counted(backups.len() as u64, "backup"));
        }
        if self.fixed {
            text += &format!("; {} removed that no longer fail", counted(fixed, "finding"));
        }
        output.report.text(&text)?;
        Ok(PASSED)
    }
}

fn remove(path: &Path) -> Result<()> {
    std::fs::remove_file(path).with_context(|| format!("cannot remove `{}`", path.display()))
}

/// Removes the traces of findings that no longer fail, or can no longer be followed, in the campaign's build; how many.
fn remove_fixed(campaign: &Campaign, output: &mut Output, budget: &Budget) -> Result<u64> {
    let (mut machine, mut removed) = (campaign.machine(budget)?, 0);
    let saved = Saved::replay_all(&mut machine, &Place::at(campaign.folder()).findings(), |_| Ok(()))?;
    for saved in saved.iter().filter(|saved| matches!(saved.fate, Fate::Fixed | Fate::Stale(_))) {
        output.on(Event::Saved(saved))?;
        remove(&saved.path)?;
        drop(std::fs::remove_file(saved.path.with_extension("input")));
        removed += 1;
    }
    Ok(removed)
}

/// A path as a part of a line.
fn shown(path: &Path) -> String {
    text::line(&path.display().to_string()).into_owned()
}

fn status_text(status: &Status) -> String {
    let Status { runs, rejected, steps, edges, edges_hit, checkpoints, .. } = status;
    let mut text = format!(
        "{} of {}, module {}, seed {}\n{} ({rejected} rejected) and {}; {edges_hit} of {}; {} kept of {}, {} with \
         their state; {} on disk",
        shown(&status.folder),
        text::line(&status.target),
        String::from(status.module),
        status.settings.seed,
        counted(*runs, "run"),
        counted(*steps, "step"),
        counted(*edges as u64, "edge"),
        counted(checkpoints.kept as u64, "checkpoint"),
        checkpoints.saved,
        checkpoints.states,
        size(status.bytes),
    );
    if let Some(process) = status.process {
        text += &format!("\nprocess {process} explores it now; this is what it saved last");
    }
    for found in &status.findings {
        text += &format!("\nfound in run {}: {}  {}", found.run, found.failure, shown(&found.trace));
    }
    for property in &status.unmet {
        text += &format!("\nnot seen in these runs: {} {}", property.kind, text::line(&property.name));
    }
    for (path, bytes) in &status.backups {
        text += &format!("\nbackup: {}, {} (`spelunk gc --backups` removes it)", shown(path), size(*bytes));
    }
    text
}

impl Merge {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let (into, from) = (folder_of(&self.campaign)?, folder_of(&self.other)?);
        let is_one = into.canonicalize().ok() == from.canonicalize().ok();
        ensure!(!is_one, "`{}` and `{}` are one campaign", self.campaign.display(), self.other.display());
        let mut opened = Opened::open(&into, budget)?;
        let other = Campaign::open(&from)?;
        let mut other =
            other.with_context(|| format!("the campaign in `{}` has not begun", from.display()))?;
        ensure_alike(&opened.campaign, &other)?;
        let before = opened.known.progress();
        let names = (opened.campaign.name(), other.name());
        let other = other.load(opened.machine.program())?;
        opened.known.merge(&other, names);
        opened.save()?;
        for finding in &other.findings {
            let name = format!("{}.json", finding.failure.id());
            let (from, to) = (from.join("findings").join(&name), into.join("findings").join(&name));
            keep_trace(&opened.machine, (&finding.trace, &finding.failure), &from, &to)?;
        }
        let after = opened.known.progress();
        output.report.event(
            "merge",
            json!({
                "runs": after.runs, "edges": after.edges, "new_edges": after.edges - before.edges,
                "checkpoints": opened.known.checkpoints.len(), "findings": after.findings,
                "new_findings": after.findings - before.findings,
            }),
        )?;
        output.report.text(&format!(
            "{} now, {} new; {} kept; {}, {} new",
            counted(after.edges.into(), "edge"),
            after.edges - before.edges,
            counted(opened.known.checkpoints.len() as u64, "checkpoint"),
            counted(after.findings as u64, "finding"),
            after.findings - before.findings
        ))?;
        Ok(PASSED)
    }
}

/// Keeps a finding's trace as a file: a shrunk one where there is one.
fn keep_trace(machine: &Machine, (trace, failure): (&Trace, &Failure), from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        return Ok(());
    }
    let folder = to.parent().context("a trace lies in a folder")?;
    disk::make_folder(folder.parent().unwrap_or(folder), folder)?;
    match TraceFile::read(from) {
        Ok(file) => {
            file.write(to)?;
            // One of another build may not fit; its trace is kept all the same.
            file.trace(machine).map_or(Ok(()), |trace| write_input(machine, &trace, to))
        }
        Err(_) => write_trace(machine, trace, (Some(failure), Some(Shrinking::Pending)), to),
    }
}

impl Export {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let Opened { campaign, mut machine, known } = Opened::open(&self.campaign.campaign, budget)?;
        let to = &self.to;
        let cannot = || format!("cannot export to `{}`", to.display());
        std::fs::create_dir_all(to).with_context(cannot)?;
        let is_empty = std::fs::read_dir(to).with_context(cannot)?.next().is_none();
        ensure!(is_empty, "the folder `{}` is not empty", to.display());
        let header = Header {
            spelunk: VERSION,
            target: campaign.target().to_string(),
            settings: campaign.settings().clone(),
        };
        disk::write(&to.join(HEADER), format!("{:#}\n", serde_json::to_value(header)?).as_bytes())
            .with_context(cannot)?;
        disk::write(&to.join(MODULE), &campaign.module()?).with_context(cannot)?;
        let mut is_flaky = false;
        for checkpoint in known.checkpoints.iter() {
            let (replayed, trace) = replay(&mut machine, &trace_of(&checkpoint.history), false);
            if replayed != Replayed::Passed {
                let why = describe(&machine, &trace, &replayed);
                output.console.warning(&format!(
                    "the steps to checkpoint {} do not go as they did, and are left out: {why}",
                    checkpoint.id
                ));
                is_flaky = true;
                continue;
            }
            write_trace(
                &machine,
                &trace,
                (None, None),
                &to.join(format!("checkpoint-{:06}.json", checkpoint.id)),
            )?;
        }
        for finding in &known.findings {
            let name = format!("{}.json", finding.failure.id());
            let from = campaign.folder().join("findings").join(&name);
            keep_trace(&machine, (&finding.trace, &finding.failure), &from, &to.join(&name))?;
        }
        let (checkpoints, findings) = (known.checkpoints.len(), known.findings.len());
        output
            .report
            .event("export", json!({ "to": to, "checkpoints": checkpoints, "findings": findings }))?;
        output.report.text(&format!(
            "{} and {} in `{}`, with the module and its settings",
            counted(checkpoints as u64, "checkpoint"),
            counted(findings as u64, "finding"),
            to.display()
        ))?;
        Ok(if is_flaky { NONDETERMINISM } else { PASSED })
    }
}

impl Import {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
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
                    Planted::Stopped => bail!("the import was stopped; nothing was taken in"),
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
            "{} and {} taken in, {known} known before; {} now",
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
        let text = disk::read(&exported.join(HEADER)).with_context(cannot)?;
        let header: Header = serde_json::from_slice(&text).with_context(cannot)?;
        ensure!(
            header.spelunk <= VERSION,
            "`{}` has version {} of the format, and this Spelunk reads up to {VERSION}: use a newer Spelunk",
            exported.display(),
            header.spelunk
        );
        let wasm = disk::read(&exported.join(MODULE)).with_context(cannot)?;
        let campaign = Campaign::begin(folder, &header.target, &wasm, header.settings)?;
        let machine = campaign.machine(budget)?;
        let options = campaign.settings().options(machine.program())?;
        let rules = spelunk::target::Target::rules(&machine).len();
        let known = Knowledge::new(&options, rules, machine.program().declared());
        Ok(Opened { campaign, machine, known })
    }

    /// The trace files, those of folders in the order of their names.
    fn traces(&self) -> Result<Vec<PathBuf>> {
        let mut traces = Vec::new();
        for path in &self.from {
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
    if file.is_of(program.hash(), program.limits(), program.selection()) {
        let replayed = replay(explorer.target(), &trace, true).0;
        if let Replayed::Diverged { .. } = replayed {
            return Ok(Imported::Diverged(describe(explorer.target(), &trace, &replayed)));
        }
    }
    Ok(Imported::Planted(explorer.plant(&trace, Energies::default().start)))
}

fn trace_of(history: &Arc<History>) -> Trace {
    let mut trace = Trace::default();
    history.flatten(&mut trace);
    trace
}

/// `1.5 MiB`
fn size(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64)
}
