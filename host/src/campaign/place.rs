//! How a campaign takes the place of another, or makes room for one.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Campaign, Settings};
use crate::machine::Program;
use crate::store::Embedded;
use crate::trace::Trace;

impl Campaign {
    /// Moves what is in `folder` aside; where to, if there is something.
    ///
    /// # Errors
    /// A campaign that another process has open; a folder that cannot be written.
    pub fn set_aside(folder: &Path) -> Result<Option<PathBuf>> {
        Embedded::set_aside(folder)
    }

    /// Hands over the steps to each checkpoint, with how promising that was, for a build that may be another; or why they do not fit it.
    ///
    /// # Errors
    /// A damaged file; what `each` returns.
    pub fn each_trace(
        &self,
        program: &Program,
        each: &mut dyn FnMut(f64, Result<Trace>) -> Result<()>,
    ) -> Result<()> {
        self.store.each_trace(program, &mut |record, trace| each(record.energy, trace))
    }

    /// Begins one that is to take the place of the one in `folder`: see [`Campaign::take_place`].
    ///
    /// # Errors
    /// As those of [`Campaign::begin`].
    pub fn begin_beside(folder: &Path, target: &str, wasm: &[u8], settings: Settings) -> Result<Campaign> {
        Campaign::begin(&Embedded::beside(folder)?, target, wasm, settings)
    }

    /// Takes the place of the one in `folder`, once all of it is saved; where that is from then on.
    ///
    /// # Errors
    /// That one is open elsewhere; a folder that cannot be written.
    pub fn take_place(&mut self, folder: &Path) -> Result<PathBuf> {
        let aside = Embedded::replace(folder, &self.folder)?;
        self.folder = folder.to_path_buf();
        self.store.moved_to(folder);
        Ok(aside)
    }
}
