//! From what is on disk to an exploration that begins, or goes on.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;
use spelunk::campaign::{Campaign, OldCheckpoint, Settings};
use spelunk::explore::{Explorer, Knowledge, Options, Planted};
use spelunk::file::Hex;
use spelunk::load;
use spelunk::machine::{Machine, Program, Snapshot};
use spelunk::store::FILE;

use super::saved::save;
use super::{Guest, Output};

/// Where an exploration starts.
pub(super) enum Start {
    /// From nothing, and nothing is kept.
    InMemory,
    /// From nothing.
    New(Campaign),
    /// Where the campaign was.
    GoOn(Campaign),
    /// With the steps of a campaign of another build, which is kept aside once they are in the new one.
    Rebuilt(New, Vec<OldCheckpoint>),
}

/// A campaign that is to begin.
pub(super) struct New {
    folder: PathBuf,
    target: String,
    wasm: Vec<u8>,
    settings: Settings,
}

impl Start {
    /// Opens the campaign in `folder`, or begins one. One with other settings, or of another build, is kept aside.
    pub(super) fn open(
        folder: &Path,
        is_fresh: bool,
        guest: &Guest,
        wasm: &[u8],
        settings: &Settings,
        program: &Program,
        output: &mut Output,
    ) -> Result<Start> {
        let target = load::name_of(&guest.target);
        let begin = || Campaign::begin(folder, &target, wasm, settings.clone());
        if is_fresh {
            aside(folder, "--fresh begins anew", output)?;
            return Ok(Start::New(begin()?));
        }
        let Some(campaign) = Campaign::open(folder)? else { return Ok(Start::New(begin()?)) };
        let differences = campaign.settings().differences(settings);
        if !differences.is_empty() {
            drop(campaign);
            let why =
                format!("it was begun with another {}", differences.join(", another ").replace('_', "-"));
            aside(folder, &why, output)?;
            return Ok(Start::New(begin()?));
        }
        let module = xxhash_rust::xxh3::xxh3_128(wasm);
        if campaign.module_hash() == module {
            return Ok(Start::GoOn(campaign));
        }
        let traces = campaign.load_traces(program)?;
        let new = New {
            folder: folder.to_path_buf(),
            target: target.clone(),
            wasm: wasm.to_vec(),
            settings: settings.clone(),
        };
        Ok(Start::Rebuilt(new, traces))
    }

    /// The exploration, and the campaign that it is saved in.
    pub(super) fn explorer<'m>(
        self,
        machines: &'m mut [Machine],
        options: Options,
        output: &mut Output,
    ) -> Result<(Explorer<'m, Machine>, Option<Campaign>)> {
        let program = machines[0].program().clone();
        match self {
            Start::InMemory => Ok((Explorer::with_workers(machines, options), None)),
            Start::New(campaign) => Ok((Explorer::with_workers(machines, options), Some(campaign))),
            Start::GoOn(mut campaign) => {
                let known = campaign.load(&program)?;
                let progress = known.progress();
                let what = [
                    (known.checkpoints.len() as u64, "checkpoint"),
                    (progress.edges.into(), "edge"),
                    (progress.findings as u64, "finding"),
                ];
                let text = format!(
                    "the campaign in {} at run {}, with {}",
                    campaign.folder().display(),
                    progress.runs,
                    what.map(|(count, noun)| spelunk::report::counted(count, noun)).join(", ")
                );
                if progress.runs > 0 {
                    output.console.status("Resumed", &text);
                }
                output.report.event("resumed", json!({ "runs": progress.runs, "edges": progress.edges }))?;
                // The process may have ended after a finding was saved, and before its trace was.
                for finding in &known.findings {
                    let name = format!("{}.json", finding.failure.id());
                    let path = campaign.folder().join("findings").join(name);
                    if !path.exists() {
                        save(&machines[0], &finding.trace, Some(&finding.failure), &path)?;
                    }
                }
                Ok((Explorer::resume(machines, options, known), Some(campaign)))
            }
            Start::Rebuilt(new, traces) => {
                let mut explorer = Explorer::with_workers(machines, options);
                let (mut kept, total) = (0u64, traces.len());
                for OldCheckpoint { energy, trace } in traces {
                    let planted = trace.map(|trace| explorer.plant(&trace, energy));
                    kept += u64::from(matches!(planted, Ok(Planted::Checkpoint | Planted::Known)));
                }
                let campaign = new.instead(explorer.knowledge(), &program, output)?;
                let edges = explorer.progress().edges;
                output.console.status(
                    "Rebuilt",
                    &format!("the steps of {kept} of {total} checkpoints fit the new build, and reach {edges} edges"),
                );
                let module = String::from(Hex(program.hash()));
                output.report.event(
                    "rebuilt",
                    json!({ "module": module, "checkpoints": total, "kept": kept, "edges": edges }),
                )?;
                Ok((explorer, Some(campaign)))
            }
        }
    }
}

impl New {
    /// Begins the campaign with what is known already, in place of the one of another build.
    fn instead(
        &self,
        known: &Knowledge<Snapshot>,
        program: &Program,
        output: &mut Output,
    ) -> Result<Campaign> {
        // A module is built often, and what still fits is taken over: one is kept.
        let kept = Campaign::set_aside(&self.folder, true)?;
        let begun = (|| {
            let mut campaign =
                Campaign::begin(&self.folder, &self.target, &self.wasm, self.settings.clone())?;
            campaign.save(known, program)?;
            Ok(campaign)
        })();
        let Some(kept) = kept else { return begun };
        if begun.is_err() {
            // What it knows is not in the new one.
            let _ = std::fs::rename(&kept, self.folder.join(FILE));
            return begun;
        }
        tell_aside(&kept, "it is of another build", output);
        begun
    }
}

/// Keeps the campaign in `folder` aside.
fn aside(folder: &Path, why: &str, output: &mut Output) -> Result<()> {
    if let Some(path) = Campaign::set_aside(folder, false)? {
        tell_aside(&path, why, output);
    }
    Ok(())
}

fn tell_aside(path: &Path, why: &str, output: &mut Output) {
    output.console.status("Kept", &format!("the earlier campaign in {}, since {why}", path.display()));
}
