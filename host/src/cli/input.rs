//! The inputs of fuzz targets as files of their bytes, as other fuzzers have them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use spelunk::choice::{Choice, Kind, Value};
use spelunk::explore::{Explorer, Planted};
use spelunk::machine::Machine;
use spelunk::report::counted;
use spelunk::target::Target;
use spelunk::trace::{Action, Trace};

use super::Output;

/// Energy of what a seed led to: that of any new checkpoint.
const ENERGY: f64 = 1.0;

/// Starts an exploration from the files in a folder. Those that reach no new edge are not kept.
pub(super) fn plant_seeds(
    explorer: &mut Explorer<'_, Machine>,
    folder: &Path,
    output: &mut Output,
) -> Result<()> {
    let program = explorer.target().program().clone();
    ensure!(
        program.takes_input(),
        "--seeds are inputs of a function LLVMFuzzerTestOneInput, which the module does not export"
    );
    let max = program.limits().input_bytes_max;
    let has_setup = explorer.target().has_setup();
    let (mut kept, mut cut) = (0, 0);
    let files = files(folder)?;
    for path in &files {
        let mut bytes = std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        cut += u64::from(bytes.len() > max as usize);
        bytes.truncate(max as usize);
        let mut trace = Trace::default();
        if has_setup {
            trace.push(Action::Setup, 0);
        }
        trace.push(Action::Rule(0), 0);
        let choice = Choice { kind: Kind::Bytes { min: 0, max }, value: Value::Bytes(bytes.into()) };
        trace.chose(&mut vec![choice], &mut Vec::new());
        kept += u64::from(explorer.plant(&trace, ENERGY) == Planted::Checkpoint);
    }
    if cut > 0 {
        let text = format!("{} cut to --input-max {max}", counted(cut, "seed"));
        output.console.warning(&text);
    }
    let planted = counted(files.len() as u64, "input");
    output.console.status("Seeded", &format!("{planted}, of which {kept} reached new edges"));
    output.report.event("seeded", json!({ "inputs": files.len(), "kept": kept }))?;
    Ok(())
}

/// The files in a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read the seeds in `{}`", folder.display());
    let entries: std::io::Result<Vec<_>> = std::fs::read_dir(folder).with_context(cannot)?.collect();
    let paths = entries.with_context(cannot)?.into_iter().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

/// Saves the input of a fuzz target's trace beside the file of the trace; nothing of another target.
pub(super) fn save(machine: &Machine, trace: &Trace, path: &Path) -> Result<()> {
    let step = trace.steps().last().filter(|_| machine.program().takes_input());
    let Some([Choice { value: Value::Bytes(bytes), .. }, ..]) = step.map(|step| trace.choices(step)) else {
        return Ok(());
    };
    let path = path.with_extension("input");
    std::fs::write(&path, bytes).with_context(|| format!("cannot write `{}`", path.display()))
}
