//! `spelunk report`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use spelunk::budget::Budget;
use spelunk::disk;
use spelunk::report::page::page;
use spelunk::session::{self, Config, Place};

use super::campaign::Opened;
use super::{Guest, Output, PASSED};

#[derive(Args)]
pub(super) struct Page {
    #[command(flatten)]
    guest: Guest,
    /// The file to write.
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Time, at most, such as 90s or 5m. What there is no time to execute again is told in fewer words.
    #[arg(long, value_parser = humantime::parse_duration)]
    time: Option<Duration>,
}

impl Page {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let Opened { campaign, mut machine, known } = Opened::open(&self.guest.target, budget)?;
        if let Some(time) = self.time {
            budget.limit(time);
        }
        let config = self.guest.config(Config::explore());
        let place = Place::at(campaign.folder());
        let guest = session::Guest { target: &self.guest.target, config: &config, place };
        let page = page(&guest, &campaign, &mut machine, &known, budget)?;
        disk::write_named(&self.output, page.as_bytes())
            .with_context(|| format!("cannot write `{}`", self.output.display()))?;
        let findings = known.findings.len();
        output
            .report
            .event("report", json!({ "to": self.output, "findings": findings, "bytes": page.len() }))?;
        output
            .report
            .text(&format!("The report is in `{}`: open it in a browser.", self.output.display()))?;
        Ok(PASSED)
    }
}
