//! Seed inputs: files of bytes, as other fuzzers have them.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::{Event, Work};
use crate::choice::{Choice, Kind, Value};
use crate::disk;
use crate::machine::Machine;
use crate::report::counted;
use crate::search::energy::Energies;
use crate::search::{Explorer, Planted};
use crate::target::Target;
use crate::trace::{Action, Trace};

impl Work<'_> {
    /// Executes the files in a folder as inputs. Those that reach no new edge are not kept.
    pub(super) fn plant_seeds(&self, explorer: &mut Explorer<'_, Machine>, folder: &Path) -> Result<()> {
        let program = explorer.target().program().clone();
        ensure!(
            program.takes_input(),
            "--seeds are inputs of a function LLVMFuzzerTestOneInput, or of a program whose input is drawn, and \
             the module is neither"
        );
        let max = program.limits().input_bytes_max;
        let has_setup = explorer.target().has_setup();
        let (mut inputs, mut kept, mut cut) = (0, 0, 0);
        let files = disk::files(folder, None);
        let files = files.with_context(|| format!("cannot read the seeds in `{}`", folder.display()))?;
        for path in &files {
            if self.budget.is_over() {
                break;
            }
            let bytes = disk::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
            cut += u64::from(bytes.len() > max as usize);
            let bytes = &bytes[..bytes.len().min(max as usize)];
            match explorer.plant(&trace_of(bytes, max, has_setup), Energies::default().start) {
                Planted::Checkpoint => kept += 1,
                Planted::Stopped => break,
                Planted::Known | Planted::Found | Planted::FoundBefore | Planted::Stale(_) => {}
            }
            inputs += 1;
        }
        if cut > 0 {
            self.observer.warning(format!("{} cut to --input-max {max}", counted(cut, "seed")));
        }
        let planted = counted(inputs as u64, "input");
        self.observer.status("Seeded", &format!("{planted}, of which {kept} reached new edges"));
        self.observer.on(Event::Seeded { inputs, kept })?;
        if inputs == 0 && !files.is_empty() {
            bail!("there was no time for any of the seeds in `{}`", folder.display());
        }
        Ok(())
    }
}

/// The trace of a run that gives a function these bytes.
fn trace_of(bytes: &[u8], max: u32, has_setup: bool) -> Trace {
    let mut trace = Trace::default();
    if has_setup {
        trace.push(Action::Setup, 0);
    }
    trace.push(Action::Rule(0), 0);
    let choice = Choice { kind: Kind::Bytes { min: 0, max }, value: Value::Bytes(bytes.into()) };
    trace.chose(&mut vec![choice], &mut Vec::new());
    trace
}
