//! An exploration or a check: a session, and files for other tools about it.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use spelunk::budget::Budget;
use spelunk::report::tools::Files;
use spelunk::session::{Config, Job, Session};

use super::{Guest, Output};

#[derive(Args)]
pub(super) struct ForTools {
    /// Write what is found to this file, as JUnit's XML.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    junit: Option<PathBuf>,
    /// Write what is found to this file, as SARIF.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    sarif: Option<PathBuf>,
}

impl ForTools {
    pub(super) fn session(
        &self,
        guest: &Guest,
        config: Config,
        output: &mut Output,
        budget: &Budget,
    ) -> Result<u8> {
        let checks = matches!(config.job, Job::Check(_));
        output.files = Files::new(&guest.target, checks, self.junit.as_deref(), self.sarif.as_deref())?;
        let config = Config { is_quiet: output.console.is_quiet(), ..config };
        let session =
            Session::open(&guest.target).map(|session| session.config(config).budget(budget.clone()));
        match session.and_then(|session| session.run(output)) {
            Ok(summary) => {
                output.files.write(None)?;
                Ok(summary.verdict.exit_code())
            }
            Err(error) => {
                output.files.write(Some(&error))?;
                Err(error.into())
            }
        }
    }
}
