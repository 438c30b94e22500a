//! What a campaign keeps, and where: in one file of its folder, or where a fleet meets.

mod embedded;
mod known;
pub(crate) mod pack;
mod reading;
mod record;
mod trouble;

use std::path::Path;

use anyhow::Result;

use crate::machine::Program;
use crate::search::Tally;
use crate::trace::Trace;

pub use embedded::{Embedded, FILE, Opened, VERSION};
pub use record::{Collected, Header, Loaded, Record, Saved};
pub use trouble::Trouble;

use reading::NamedHistories;

/// Takes a checkpoint, and all steps that lead to it.
pub type EachTrace<'e> = dyn FnMut(Record, Result<Trace>) -> Result<()> + 'e;

/// Checkpoints, the histories that lead to them, and findings.
pub type Steps = (Vec<Record>, NamedHistories, Vec<(String, serde_json::Value)>);

/// Where a campaign is kept.
pub trait Store: Send {
    /// Begins a new campaign: what it explores, and the module.
    ///
    /// # Errors
    /// A campaign that has begun; a store that cannot be written.
    fn begin(&mut self, header: &Header, wasm: &[u8]) -> Result<()>;

    /// The module that the campaign was begun with.
    ///
    /// # Errors
    /// A campaign that has not begun; a damaged store.
    fn module(&self) -> Result<Vec<u8>>;

    /// Whether a history is stored.
    fn has_history(&self, id: u64) -> bool;

    /// Takes what changed since the last time, all of it or none.
    ///
    /// # Errors
    /// A store that cannot be written; a history that is referred to and not stored.
    fn save(&mut self, state: &Saved<'_>) -> Result<()>;

    /// What was saved.
    ///
    /// # Errors
    /// A damaged store; states of another program.
    fn load(&mut self, program: &Program) -> Result<Loaded>;

    /// The checkpoints, without their states, the histories that lead to them, and the findings, as [`Loaded`] has them.
    ///
    /// # Errors
    /// As [`Store::load`].
    fn load_steps(&self, program: &Program) -> Result<Steps>;

    /// Hands over every checkpoint with all steps that lead to it, one after the other, for a build that may be another than the
    /// one that saved them. Where steps do not fit it, the error says so.
    ///
    /// # Errors
    /// A damaged store; what `each` returns.
    fn each_trace(&self, target: &Program, each: &mut EachTrace<'_>) -> Result<()>;

    /// Its file is at another place now, where it has one.
    fn moved_to(&mut self, _folder: &Path) {}

    /// Drops parts of snapshots and histories that nothing refers to, and gives the space back.
    ///
    /// # Errors
    /// A damaged store, or one that cannot be written.
    fn collect_garbage(&mut self) -> Result<Collected>;

    /// Bytes that it takes.
    ///
    /// # Errors
    /// It is gone.
    fn bytes(&self) -> Result<u64>;

    /// What others saved there since the last time; `None` where nobody else does.
    ///
    /// # Errors
    /// It cannot be reached.
    fn news(&mut self, program: &Program) -> Result<Option<Loaded>> {
        let _ = program;
        Ok(None)
    }

    /// Asks for leave to shrink a finding with this id, which nobody else does then.
    ///
    /// # Errors
    /// As above.
    fn claim(&mut self, id: &str, finding: &serde_json::Value) -> Result<Claim> {
        let _ = (id, finding);
        Ok(Claim::Ours)
    }

    /// Whether another saved the finding with this id first.
    fn is_of_others(&self, id: &str) -> bool {
        let _ = id;
        false
    }

    /// Keeps the file of the trace of a finding that is shrunk, with what is saved next.
    fn settle(&mut self, id: &str, trace: String) {
        let _ = (id, trace);
    }

    /// The file of the trace of a finding with this id that was shrunk, where it is kept here.
    ///
    /// # Errors
    /// As above.
    fn trace_of(&self, id: &str) -> Result<Option<String>> {
        let _ = id;
        Ok(None)
    }

    /// How many save here.
    ///
    /// # Errors
    /// As above.
    fn sharers(&self) -> Result<u32> {
        Ok(1)
    }

    /// What others who save here counted, by their names.
    ///
    /// # Errors
    /// As above.
    fn others(&self) -> Result<Vec<(u128, Tally)>> {
        Ok(Vec::new())
    }

    /// Nothing more is saved by this one.
    ///
    /// # Errors
    /// As above.
    fn leave(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Whose it is to shrink a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Of the one who asked.
    Ours,
    /// Of another, who is at it.
    Theirs,
    /// It is done, and this is the file of the trace.
    Done(String),
}
