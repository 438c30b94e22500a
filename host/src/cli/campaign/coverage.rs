//! `spelunk coverage`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use spelunk::budget::{Budget, Over};
use spelunk::campaign::Campaign;
use spelunk::disk;
use spelunk::reached::{Reached, reach};
use spelunk::report::counted;
use spelunk::report::reached::{Shown, json, missed_offsets, text};
use spelunk::report::tools::{cobertura, lcov};
use spelunk::session::{Caching, source_folders};
use spelunk::symbols::source;

use super::{One, folder_of};
use crate::cli::{Compiled, INTERRUPTED, NONDETERMINISM, Output, PASSED};

#[derive(Args)]
pub(in crate::cli) struct Coverage {
    #[command(flatten)]
    campaign: One,
    /// List all that was not reached, line by line.
    #[arg(long)]
    lines: bool,
    /// Count libraries too that come with a language or with Spelunk.
    #[arg(long)]
    all: bool,
    /// A folder in which source files may be read, beside the current one and a target that is a folder.
    #[arg(long, value_name = "FOLDER")]
    source: Vec<PathBuf>,
    /// Write what was reached as LCOV does, such as for genhtml.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    lcov: Option<PathBuf>,
    /// Write what was reached as Cobertura does, such as for GitLab.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    cobertura: Option<PathBuf>,
    /// Time, at most, such as 90s or 5m, from when the module is compiled.
    #[arg(long, value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    #[command(flatten)]
    compiled: Compiled,
}

impl Coverage {
    pub(in crate::cli) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let folder = folder_of(&self.campaign.campaign)?;
        self.empty()?;
        let campaign = Campaign::open(&folder)?;
        let campaign =
            campaign.with_context(|| format!("the campaign in `{}` has not begun", folder.display()))?;
        let cache = Caching::from(&self.compiled).open().and_then(Result::ok);
        let mut machine = campaign.machine_with_blocks(cache.as_ref(), budget)?;
        let steps = campaign.load_steps(machine.program())?;
        drop(campaign);
        if let Some(time) = self.time {
            budget.limit(time);
        }
        let (checkpoints, findings) = (steps.checkpoints.len() as u64, steps.findings.len() as u64);
        let what = format!("{} and {}", counted(checkpoints, "checkpoint"), counted(findings, "finding"));
        output.console.status("Executing", &format!("the steps to {what}"));
        let mut reached = reach(&mut machine, (&steps.checkpoints, &steps.findings), budget)?;
        if !self.all {
            reached = reached.without_libraries();
        }
        self.report(output, &reached, &machine)?;
        Ok(match budget.over() {
            Some(Over::Interrupt) => INTERRUPTED,
            _ if reached.walked.differing > 0 => NONDETERMINISM,
            _ => PASSED,
        })
    }

    /// Empties what is to be written, so that nobody takes an old file for this one.
    fn empty(&self) -> Result<()> {
        let all = [(&self.lcov, LCOV, "LCOV"), (&self.cobertura, COBERTURA, "Cobertura")];
        let all = || all.iter().filter_map(|(path, starts, format)| Some((path.as_ref()?, starts, format)));
        for (path, starts, format) in all() {
            ensure!(
                starts_so(path, starts),
                "`{}` is there, and is no file of {format}: remove it, or name another",
                path.display()
            );
        }
        let mut absolute = Vec::new();
        for (path, ..) in all() {
            let path = std::path::absolute(path)?;
            ensure!(!absolute.contains(&path), "--lcov and --cobertura name one file: name two");
            absolute.push(path);
        }
        all().try_for_each(|(path, ..)| write(path, ""))
    }

    fn report(
        &self,
        output: &mut Output,
        reached: &Reached,
        machine: &spelunk::machine::Machine,
    ) -> Result<()> {
        let roots = [source_folders(&self.campaign.campaign), self.source.clone()].concat();
        let roots: Vec<&Path> = roots.iter().map(PathBuf::as_path).collect();
        let found: Vec<Option<(PathBuf, String)>> =
            reached.files.iter().map(|file| source(&file.source, &roots)).collect();
        let path = |index: usize, root: Option<&Path>| match &found[index] {
            Some((path, _)) => {
                let path = root.and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path);
                path.to_string_lossy().into_owned()
            }
            None => reached.files[index].source.shown.clone(),
        };
        let files = 0..reached.files.len();
        if let Some(to) = &self.lcov {
            let paths: Vec<String> = files.clone().map(|index| path(index, None)).collect();
            write(to, &lcov(reached, &paths))?;
        }
        if let Some(to) = &self.cobertura {
            let root = Path::new(".").canonicalize().context("the current folder is gone")?;
            let paths: Vec<String> = files.map(|index| path(index, Some(&root))).collect();
            write(to, &cobertura(reached, &paths, &root.to_string_lossy())?)?;
        }
        output.report.event("coverage", json(reached))?;
        let sources: Vec<Option<String>> = found.into_iter().map(|found| Some(found?.1)).collect();
        let wanted = if self.lines { missed_offsets(reached) } else { Default::default() };
        let instructions = machine.program().symbols().instruction_texts(&wanted);
        let shown = Shown { sources: &sources, instructions: &instructions, lines: self.lines };
        Ok(output.report.text(&text(reached, &shown))?)
    }
}

/// How files of these formats begin.
const LCOV: &[&str] = &["TN:", "SF:"];
const COBERTURA: &[&str] = &["<?xml", "<coverage"];

/// Whether nothing is lost where a file is overwritten: it is not there, is empty, begins so, or is no file but what takes text, as a
/// terminal does.
fn starts_so(path: &Path, starts: &[&str]) -> bool {
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        return true;
    }
    let mut start = [0; 16];
    let read = File::open(path).and_then(|mut file| file.read(&mut start));
    read.is_ok_and(|read| read == 0 || starts.iter().any(|known| start[..read].starts_with(known.as_bytes())))
}

fn write(path: &Path, text: &str) -> Result<()> {
    disk::write_named(path, text.as_bytes()).with_context(|| format!("cannot write `{}`", path.display()))
}
