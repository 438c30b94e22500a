//! `spelunk completions` and `spelunk man`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use spelunk::disk;

use super::{Cli, Output, PASSED};

#[derive(Args)]
pub(super) struct Completions {
    /// The shell that is to complete commands.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Args)]
pub(super) struct Manual {
    /// Write a page for each verb too, all into this folder.
    dir: Option<PathBuf>,
}

impl Completions {
    pub(super) fn run(&self, output: &mut Output) -> Result<u8> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "spelunk", &mut script);
        output.report.raw(&script)?;
        Ok(PASSED)
    }
}

impl Manual {
    pub(super) fn run(&self, output: &mut Output) -> Result<u8> {
        let mut command = Cli::command();
        command.build();
        let Some(folder) = &self.dir else {
            output.report.raw(&page(command)?)?;
            return Ok(PASSED);
        };
        let cannot = || format!("cannot write to `{}`", folder.display());
        std::fs::create_dir_all(folder).with_context(cannot)?;
        let verbs: Vec<Command> =
            command.get_subcommands().filter(|verb| verb.get_name() != "help").cloned().collect();
        for command in std::iter::once(command).chain(verbs) {
            let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_string();
            disk::write(&folder.join(format!("{name}.1")), &page(command)?).with_context(cannot)?;
        }
        output.console.status("Written", &format!("the manual pages to {}", folder.display()));
        Ok(PASSED)
    }
}

/// The manual page of a command.
fn page(command: Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}
