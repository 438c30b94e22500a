//! A campaign that several processes save to.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{Campaign, Settings, finding_value, knowledge};
use crate::file::{Hex, TraceFile};
use crate::fleet::Shared;
use crate::machine::{Program, Snapshot};
use crate::outcome::{Failure, Found};
use crate::search::{Knowledge, Tally};
use crate::store::{Claim, Header, Store as _};

impl Campaign {
    /// Joins the campaign that a fleet shares, or begins it. Findings are kept in `folder`.
    ///
    /// # Errors
    /// The server cannot be reached, or its campaign explores something else, or in another way.
    pub fn join(
        mut shared: Shared,
        (folder, target): (&Path, &str),
        wasm: &[u8],
        settings: Settings,
    ) -> Result<Campaign> {
        let module = xxhash_rust::xxh3::xxh3_128(wasm);
        match shared.header()? {
            Some(header) => {
                let name = shared.name_of_campaign();
                ensure!(
                    header.module.0 == module,
                    "the campaign {name} is of another module, or another build of it: copy the module to all machines, or use another --campaign"
                );
                let begun: Settings = serde_json::from_value(header.settings)?;
                let differing = begun.flags_beside(&settings);
                ensure!(
                    differing.is_empty(),
                    "the campaign {name} was begun with other {}: give the same, or use another --campaign",
                    differing.join(", ")
                );
            }
            None => {
                let settings = serde_json::to_value(&settings).context("settings are JSON")?;
                shared.begin(&Header { module: Hex(module), target: target.to_string(), settings }, wasm)?;
            }
        }
        Ok(Campaign {
            store: Box::new(shared),
            folder: folder.to_path_buf(),
            settings,
            target: target.to_string(),
            module,
            edges: 0,
            bytes_max: u64::MAX,
            states_max: usize::MAX,
            is_shared: true,
        })
    }

    /// Whether others save to it too.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// What others found since the last time, as an exploration knows it; `None` where there is nothing.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn news(&mut self, program: &Program) -> Result<Option<Knowledge<Snapshot>>> {
        let Some(loaded) = self.store.news(program)? else { return Ok(None) };
        Ok(Some(knowledge(loaded, &self.settings, program)?.0))
    }

    /// How many save here now.
    ///
    /// # Errors
    /// As above.
    pub fn sharers(&self) -> Result<u32> {
        self.store.sharers()
    }

    /// What others counted, by their names.
    ///
    /// # Errors
    /// As above.
    pub fn others(&self) -> Result<Vec<(u128, Tally)>> {
        self.store.others()
    }

    /// Asks whose it is to shrink a finding.
    ///
    /// # Errors
    /// As above.
    pub fn claim(&mut self, found: &Found, program: &Program) -> Result<Claim> {
        let (id, value) = finding_value(found, program)?;
        self.store.claim(&id, &value)
    }

    /// Whether another saved the finding first.
    pub fn is_of_others(&self, failure: &Failure) -> bool {
        self.store.is_of_others(&failure.id())
    }

    /// Hands over the trace of a finding that was shrunk, with what is saved next.
    pub fn settle(&mut self, failure: &Failure, trace: &TraceFile) {
        self.store.settle(&failure.id(), trace.text());
    }

    /// Reads all that others saved, so that only what they do not have is saved.
    ///
    /// # Errors
    /// As above.
    pub fn news_all(&mut self, program: &Program) -> Result<()> {
        self.store.load(program).map(drop)
    }

    /// The file of the trace of a finding that another shrank.
    ///
    /// # Errors
    /// As above.
    pub fn trace_of(&self, failure: &Failure) -> Result<Option<String>> {
        self.store.trace_of(&failure.id())
    }

    /// Nothing more is saved by this one.
    ///
    /// # Errors
    /// As above.
    pub fn leave(&mut self) -> Result<()> {
        self.store.leave()
    }
}
