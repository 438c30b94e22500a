//! `spelunk gc`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use spelunk::budget::Budget;
use spelunk::campaign::Campaign;
use spelunk::disk;
use spelunk::file::TraceFile;
use spelunk::report::counted;
use spelunk::session::{self, Event, Fate, Observer, Place, Saved};

use super::{folder_of, size};
use crate::cli::fleet::{self, FleetArgs};
use crate::cli::{Output, PASSED};

#[derive(Args)]
pub(in crate::cli) struct Gc {
    /// The folder of a campaign, or the target, where its campaign is below `.spelunk`. Without, one at a server.
    #[arg(required_unless_present_any = ["nats", "nats_context"])]
    campaign: Option<PathBuf>,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Remove the campaign from the server, with all that belongs to it.
    #[arg(long, conflicts_with = "campaign", help_heading = "Fleet")]
    remove: bool,
    /// Remove earlier campaigns that were backed up beside it.
    #[arg(long)]
    backups: bool,
    /// Remove saved findings that no longer fail in the campaign's build, or whose steps no longer fit it.
    #[arg(long)]
    fixed: bool,
}

impl Gc {
    pub(in crate::cli) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let Some(path) = &self.campaign else {
            return fleet::collect(&self.fleet, self.remove, output, budget);
        };
        let folder = folder_of(path)?;
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
            text += &format!("; {} removed, fixed or stale", counted(fixed, "finding"));
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
    let findings = Place::at(campaign.folder()).findings();
    disk::refuse_links_below(&findings)?;
    disk::refuse_link(&findings)?;
    let saved = Saved::replay_all(&mut machine, &findings, |_| Ok(()))?;
    for saved in &saved {
        let is_over = match saved.fate {
            Fate::Fixed => true,
            // What cannot be read may be of a newer version.
            Fate::Stale(_) => TraceFile::read(&saved.path).is_ok(),
            _ => false,
        };
        if !is_over {
            continue;
        }
        output.on(Event::Saved(saved))?;
        remove(&saved.path)?;
        drop(std::fs::remove_file(saved.path.with_extension("input")));
        removed += 1;
    }
    Ok(removed)
}
