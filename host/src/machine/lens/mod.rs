//! A second build of the guest, which reports what it compares and stores. It runs only what is of interest, so that the build in
//! which everything runs pays nothing for it.

mod reports;
mod shown;

use std::sync::{Arc, OnceLock};

use super::cache::Cache;
use super::program::Program;
use super::{Edges, Machine, Selection};
use crate::file::Conditions;

pub(crate) use reports::Reports;
pub(super) use reports::{MODULE, define};
pub(super) use shown::show;

/// For so many bytes of a module a run is to be over before the second build is made, which takes about as long as those runs.
const BYTES_A_RUN: usize = 1024;

/// What the second build is made of.
pub(super) struct Lens {
    wasm: Arc<[u8]>,
    cache: Option<Cache>,
    program: OnceLock<Option<Arc<Program>>>,
    /// A third one, in which the guest copies its states.
    copies: OnceLock<Option<Arc<Program>>>,
}

impl Lens {
    /// That of a module as it came.
    pub(super) fn of(wasm: &[u8], cache: Option<&Cache>) -> Lens {
        Lens { wasm: wasm.into(), cache: cache.cloned(), program: OnceLock::new(), copies: OnceLock::new() }
    }

    /// The run from which on it is worth its making.
    pub(super) fn from(&self) -> u64 {
        (self.wasm.len() / BYTES_A_RUN) as u64
    }
}

impl Program {
    /// The second build; `None` where it cannot be made. It is compiled when it is needed first.
    fn lens(&self) -> Option<&Arc<Program>> {
        let lens = self.lens.as_ref()?;
        let selection = || Selection { sanitize: Vec::new(), compares: true, ..self.uncounted() };
        lens.program.get_or_init(|| self.built(lens, selection())).as_ref()
    }

    /// The build in which the guest copies its states; `None` where it cannot be made.
    pub(super) fn copies(&self) -> Option<&Arc<Program>> {
        let lens = self.lens.as_ref()?;
        let selection = || Selection { copies: true, ..self.uncounted() };
        lens.copies.get_or_init(|| self.built(lens, selection())).as_ref()
    }

    fn uncounted(&self) -> Selection {
        Selection { edges: Edges::None, ..self.conditions().selection.clone() }
    }

    fn built(&self, lens: &Lens, selection: Selection) -> Option<Arc<Program>> {
        let Conditions { limits, environment, .. } = self.conditions().clone();
        let conditions = Conditions { limits, selection, environment };
        Program::load_in(&lens.wasm, conditions, lens.cache.as_ref(), self.budget()).ok().map(Arc::new)
    }
}

impl Machine {
    /// A machine for the second build.
    pub(super) fn second_build(&mut self) -> Option<&mut Machine> {
        if self.lens.is_none() {
            let program = self.program.lens().cloned();
            let mut lens = program.and_then(|program| Machine::new(program).ok().map(Box::new));
            if let Some(lens) = lens.as_mut().filter(|lens| !lens.program.exports.is_function) {
                lens.store.data_mut().step.reports.only_given();
            }
            self.lens = Some(lens);
        }
        self.lens.as_mut()?.as_deref_mut()
    }
}
