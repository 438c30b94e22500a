//! `spelunk instrument`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde_json::json;
use spelunk::budget::Budget;
use spelunk::disk;

use super::{Edges, Guest, GuestLimits, Output, PASSED};

#[derive(Args)]
pub(super) struct Instrument {
    #[command(flatten)]
    guest: Guest,
    /// Where to write the instrumented module.
    #[arg(long, short)]
    output: PathBuf,
    /// Where to write the map of edges, functions and state as JSON.
    #[arg(long)]
    map: Option<PathBuf>,
    #[command(flatten)]
    edges: Edges,
    #[command(flatten)]
    limits: GuestLimits,
}

impl Instrument {
    pub(super) fn run(&self, output: &mut Output, budget: &Budget) -> Result<u8> {
        let wasm = self.guest.load(&output.console, budget)?;
        let instrumented = spelunk::machine::instrument(&wasm, &(&self.limits).into(), &(&self.edges).into())
            .with_context(|| format!("cannot instrument `{}`", self.guest.target.display()))?;
        let write = |path: &Path, bytes: &[u8]| {
            disk::write_named(path, bytes).map_err(|e| anyhow!("cannot write `{}`: {e}", path.display()))
        };
        write(&self.output, &instrumented.wasm)?;
        if let Some(map) = &self.map {
            let text = json!({ "edges": instrumented.edges, "layout": instrumented.layout });
            write(map, serde_json::to_string_pretty(&text)?.as_bytes())?;
        }
        let edges = instrumented.edges.edges.len();
        output.report.event("instrumented", json!({ "edges": edges, "bytes": instrumented.wasm.len() }))?;
        output.report.text(&format!(
            "{edges} edges; {} bytes, {} before",
            instrumented.wasm.len(),
            wasm.len()
        ))?;
        Ok(PASSED)
    }
}
