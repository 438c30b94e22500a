//! `spelunk report`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Arg, Args};
use serde_json::json;
use spelunk::budget::{Budget, Over};
use spelunk::disk;
use spelunk::report::page::page;
use spelunk::session::{self, Config, Place};

use super::campaign::Opened;
use super::{Guest, INTERRUPTED, Output, PASSED};

/// Where the page is written where nothing else is said.
const PAGE: &str = "report.html";

#[derive(Args)]
pub(super) struct Page {
    #[command(flatten)]
    guest: Guest,
    /// The file to write. [default: report.html]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Time, at most, such as 90s or 5m. What there is no time to execute again is told in fewer words.
    #[arg(long, value_parser = humantime::parse_duration)]
    time: Option<Duration>,
}

/// A campaign stands where other verbs have a target.
pub(super) fn of_campaign(target: Arg) -> Arg {
    target.value_name("CAMPAIGN").help(
        "The folder of a campaign, or the target, where its campaign is below `.spelunk`. Commands on the page name it, with the flags \
         below that say how it is built",
    )
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
        let (to, written) = match &self.output {
            Some(to) => (to.clone(), disk::write_named(to, page.as_bytes())),
            // A checked-out folder may hold anything of that name.
            None => (PAGE.into(), disk::write(PAGE.as_ref(), page.as_bytes())),
        };
        written.with_context(|| format!("cannot write `{}`", to.display()))?;
        let findings = known.findings.len();
        output.report.event("report", json!({ "to": to, "findings": findings, "bytes": page.len() }))?;
        output.report.text(&format!("The report is in `{}`: open it in a browser.", to.display()))?;
        Ok(if budget.over() == Some(Over::Interrupt) { INTERRUPTED } else { PASSED })
    }
}
