//! Files for other tools: what a session came to, as JUnit and as SARIF have it, and annotations of GitHub.
//!
//! What a guest says is escaped twice: as a terminal needs it, so that it is seen, and as the format needs it.

mod cobertura;
mod github;
mod junit;
mod lcov;
mod sarif;

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::disk;
use crate::session::{Begin, Event, Finding, Observer, Summary};
use crate::text;

pub use cobertura::cobertura;
pub use github::annotation;
pub use lcov::lcov;

/// Files that are written once a session is over.
#[derive(Default)]
pub struct Files {
    junit: Option<PathBuf>,
    sarif: Option<PathBuf>,
    heard: Heard,
}

/// What a session told.
#[derive(Default)]
struct Heard {
    /// The target, as the user named it.
    target: String,
    /// Whether it is a check.
    checks: bool,
    findings: Vec<Finding>,
    flaky: Vec<String>,
    summary: Option<Summary>,
    /// Why the job could not be done.
    error: Option<String>,
}

impl Files {
    /// Files that are to be written at these paths. What is there is emptied now, so that nobody takes an old file for this session's.
    ///
    /// # Errors
    /// One cannot be written to.
    pub fn new(target: &Path, checks: bool, junit: Option<&Path>, sarif: Option<&Path>) -> Result<Files> {
        for path in [junit, sarif].into_iter().flatten() {
            write(path, "")?;
        }
        let heard = Heard { target: target.display().to_string(), checks, ..Heard::default() };
        Ok(Files { junit: junit.map(Path::to_path_buf), sarif: sarif.map(Path::to_path_buf), heard })
    }

    /// Writes the files, of a session that could not do its job where there is an error.
    ///
    /// # Errors
    /// One cannot be written to.
    pub fn write(&mut self, error: Option<&dyn Display>) -> Result<()> {
        self.heard.error = error.map(|error| format!("{error:#}"));
        if let Some(path) = &self.junit {
            write(path, &junit::text(&self.heard)?)?;
        }
        if let Some(path) = &self.sarif {
            write(path, &sarif::text(&self.heard))?;
        }
        Ok(())
    }
}

impl Observer for Files {
    fn on(&mut self, event: Event<'_>) -> io::Result<()> {
        if self.junit.is_none() && self.sarif.is_none() {
            return Ok(());
        }
        match event {
            Event::Begin(Begin { check, .. }) => self.heard.checks = check.is_some(),
            Event::Finding(finding) => self.heard.findings.push(finding.clone()),
            Event::Flaky { failure, why, .. } => self.heard.flaky.push(format!("{failure}: {why}")),
            Event::End(summary) => self.heard.summary = Some(summary.clone()),
            _ => {}
        }
        Ok(())
    }
}

impl Heard {
    fn verb(&self) -> &'static str {
        if self.checks { "check" } else { "explore" }
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    disk::write_named(path, text.as_bytes()).with_context(|| format!("cannot write `{}`", path.display()))
}

/// The kind and, if there is one, the subject of a finding, in one line.
fn title(finding: &Finding) -> String {
    let failure = &finding.failure;
    match &failure.subject {
        Some(subject) => format!("{} {}", failure.kind, text::line(subject)),
        None => failure.kind.to_string(),
    }
}

#[cfg(test)]
mod tests;
