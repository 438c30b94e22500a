//! `spelunk report`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Arg, Args};
use serde_json::json;
use spelunk::budget::{Budget, Over};
use spelunk::campaign::Campaign;
use spelunk::disk;
use spelunk::machine::Program;
use spelunk::reached::Reached;
use spelunk::report::page::{Source, is_there, page, reached};
use spelunk::session::{self, Caching, Config, Place, source_folders};
use spelunk::text;

use super::campaign::Opened;
use super::{Compiled, Guest, INTERRUPTED, Output, PASSED};

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
    /// Show no source, so that the module is not compiled once more to say which lines were reached.
    #[arg(long)]
    no_source: bool,
    /// A folder in which source files may be read, beside the current one and a target that is a folder.
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_source")]
    source: Vec<PathBuf>,
    #[command(flatten)]
    compiled: Compiled,
}

/// A campaign stands where other verbs have a target.
pub(super) fn of_campaign(target: Arg) -> Arg {
    target.value_name("CAMPAIGN").help(
        "The folder of a campaign, or the target, where its campaign is below `.spelunk`. Commands on the page name it, with the flags \
         below that say how it is built",
    )
}

/// What other verbs are given to have this campaign: its target, where it is named by its folder and lies where it would be put.
fn target_of(campaign: &Campaign, named: &Path) -> PathBuf {
    let beside =
        campaign.folder().parent().and_then(Path::parent).map(|folder| folder.join(campaign.target()));
    let is_its = |target: &PathBuf| {
        let place = Place::of(target, &target.with_file_name(disk::FOLDER));
        let ways = [place.folder(), named].map(|folder| folder.canonicalize().ok());
        ways[0].is_some() && ways[0] == ways[1]
    };
    beside.filter(is_its).unwrap_or_else(|| named.to_path_buf())
}

impl Page {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let Opened { campaign, mut machine, known } = Opened::open(&self.guest.target, budget)?;
        if let Some(time) = self.time {
            budget.limit(time);
        }
        let config = self.guest.config(Config::explore());
        let place = Place::at(campaign.folder());
        let target = target_of(&campaign, &self.guest.target);
        let guest = session::Guest { target: &target, config: &config, place };
        let folders = [source_folders(&self.guest.target), self.source.clone()].concat();
        let reached = self.reached(output, &campaign, machine.program(), (&folders, budget));
        let source = match &reached {
            Ok(reached) => Source::Reached(reached, &folders),
            Err(why) => Source::None(why),
        };
        let page = page(&guest, &campaign, &mut machine, &known, &source, budget)?;
        let (to, written) = match &self.output {
            Some(to) => (to.clone(), disk::write_named(to, page.as_bytes())),
            // A checked-out folder may hold anything of that name.
            None => (PAGE.into(), disk::write(PAGE.as_ref(), page.as_bytes())),
        };
        written.with_context(|| format!("cannot write `{}`", to.display()))?;
        let findings = known.findings.len();
        output.report.event(
            "report",
            json!({ "to": to.display().to_string(), "findings": findings, "bytes": page.len() }),
        )?;
        output.report.text(&format!("The report is in `{}`: open it in a browser.", to.display()))?;
        Ok(if budget.over() == Some(Over::Interrupt) { INTERRUPTED } else { PASSED })
    }

    /// What was reached, or why that is not shown.
    fn reached(
        &self,
        output: &mut Output,
        campaign: &Campaign,
        program: &Program,
        (folders, budget): (&[PathBuf], &Budget),
    ) -> Result<Reached, String> {
        if self.no_source {
            return Err("--no-source leaves it out".to_string());
        }
        let is_there = is_there(program, folders, budget);
        if budget.is_over() {
            return Err("there was no time".to_string());
        }
        if !is_there {
            return Err("the module names no source file that is in the current folder, or one of --source; it needs debug \
                        information (-g)"
                .to_string());
        }
        let cache = Caching::from(&self.compiled).open().and_then(Result::ok);
        output.console.status("Executing", "the steps that are kept, for the lines that they reach");
        reached(campaign, cache.as_ref(), budget).map_err(|error| {
            if budget.is_over() {
                return "there was no time".to_string();
            }
            output.console.warning(&format!("the page shows no source: {error:#}"));
            text::line(&format!("{error:#}")).into_owned()
        })
    }
}
