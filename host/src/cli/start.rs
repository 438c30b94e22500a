//! `spelunk new`, `spelunk init` and `spelunk sdk`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde_json::json;
use spelunk::report::command_line;
use spelunk::start::{self, Created};

use super::{Output, PASSED};

#[derive(Args)]
pub(super) struct New {
    /// The folder of the harness, which is new or empty.
    dir: PathBuf,
    /// The name of the package. [default: that of the folder]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    place: OfSdk,
}

#[derive(Args)]
pub(super) struct Init {
    /// The folder of the package. The harness is written to the folder `spelunk` in it.
    #[arg(default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    place: OfSdk,
}

#[derive(Args)]
struct OfSdk {
    /// Put the SDK into the harness, which then builds on every machine. Without, it is unpacked in $XDG_DATA_HOME/spelunk or
    /// ~/.local/share/spelunk, once for all.
    #[arg(long)]
    vendor: bool,
}

#[derive(Args)]
pub(super) struct Sdk {
    /// A new folder for it. [default: one in $XDG_DATA_HOME/spelunk or ~/.local/share/spelunk]
    dir: Option<PathBuf>,
}

impl OfSdk {
    fn place(&self) -> start::Sdk {
        if self.vendor { start::Sdk::Vendored } else { start::Sdk::OfUser }
    }
}

impl New {
    pub(super) fn run(&self, output: &mut Output) -> Result<u8> {
        let created = start::new(&self.dir, self.name.as_deref(), self.place.place())?;
        tell(output, &created, "a harness, and code with a bug that it finds")
    }
}

impl Init {
    pub(super) fn run(&self, output: &mut Output) -> Result<u8> {
        let created = start::init(&self.dir, self.place.place())?;
        tell(output, &created, "a harness for the package; what to fill in stands in its src/lib.rs")
    }
}

impl Sdk {
    pub(super) fn run(&self, output: &mut Output) -> Result<u8> {
        let folder = match &self.dir {
            Some(folder) => {
                start::write_sdk(folder)?;
                folder.clone()
            }
            None => start::sdk_of_user()?,
        };
        output.report.event("sdk", json!({ "folder": folder.display().to_string() }))?;
        output.report.text(&folder.display().to_string())?;
        Ok(PASSED)
    }
}

/// What was written, and the command that comes next.
fn tell(output: &mut Output, created: &Created, what: &str) -> Result<u8> {
    let Created { folder, warning } = created;
    output.console.status("Created", &format!("{}: {what}", folder.display()));
    if let Some(warning) = warning {
        output.console.warning(warning);
    }
    let next = command_line(["spelunk", "explore", &named(folder)]);
    output.report.event("created", json!({ "folder": folder.display().to_string(), "next": next }))?;
    output.report.text(&format!("Next:  {next}"))?;
    Ok(PASSED)
}

/// A path that is not taken for a flag.
fn named(folder: &Path) -> String {
    let folder = folder.display().to_string();
    if folder.starts_with('-') { format!("./{folder}") } else { folder }
}
