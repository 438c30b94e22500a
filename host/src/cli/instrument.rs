//! `spelunk instrument`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
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
        ensure!(
            self.guest.against.is_none(),
            "--against is for commands that call the target; instrument each module by itself"
        );
        let wasm = self.guest.load(&output.console, budget)?;
        let conditions = (&(&self.limits).into(), &(&self.edges).into());
        let instrumented = spelunk::machine::instrument_within(&wasm, conditions, budget)
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
        let mut data = json!({ "edges": edges, "bytes": instrumented.wasm.len() });
        let frames = instrumented.layout.sanitizer.as_ref().and_then(|sanitizer| sanitizer.frames);
        if let Some(frames) = frames {
            data["frames"] = json!({ "with_zone": frames.with_zone, "left_alone": frames.left_alone });
        }
        output.report.event("instrumented", data)?;
        output.report.text(&format!(
            "{edges} edges; {} bytes, {} before",
            instrumented.wasm.len(),
            wasm.len()
        ))?;
        if let Some(frames) = frames {
            output.report.text(&format!(
                "functions that use the stack: {} with a zone beyond their frame, {} left alone",
                frames.with_zone, frames.left_alone
            ))?;
        }
        Ok(PASSED)
    }
}
