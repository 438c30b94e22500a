//! The steps that lead to what a campaign knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::Campaign;
use crate::file::{self, StepLine};
use crate::machine::Program;
use crate::outcome::{Failure, Found};
use crate::search::History;
use crate::store::Record;
use crate::trace::Trace;

/// The steps that lead to what is known.
pub struct Steps {
    /// The checkpoints by their numbers.
    pub checkpoints: Vec<(u64, Arc<History>)>,
    /// The findings, in the order in which they were found.
    pub findings: Vec<Arc<Found>>,
}

/// A finding, as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FindingLine {
    pub(super) failure: Failure,
    pub(super) run: u64,
    pub(super) steps: Vec<StepLine>,
}

impl Campaign {
    /// The steps to what is known, on a program that may count other edges, or none.
    ///
    /// # Errors
    /// A damaged file; another module.
    pub fn load_steps(&self, program: &Program) -> Result<Steps> {
        let (records, loaded, findings) = self.store.load_steps(program)?;
        let histories = histories(Arc::new(History::start()), loaded)?;
        let known = |record: &Record| Some((record.id, histories.get(&record.history)?.clone()));
        let checkpoints: Option<_> = records.iter().map(known).collect();
        let damaged = || format!("the campaign in `{}` is damaged", self.folder.display());
        Ok(Steps {
            checkpoints: checkpoints.context("a history is missing").with_context(damaged)?,
            findings: self::findings(findings, program).with_context(damaged)?,
        })
    }
}

/// The histories by their numbers, of which 0 is the start.
pub(super) fn histories(
    start: Arc<History>,
    loaded: Vec<(u64, Option<u64>, Trace)>,
) -> Result<BTreeMap<u64, Arc<History>>> {
    let mut histories = BTreeMap::from([(0, start)]);
    for (id, parent, steps) in loaded {
        let parent = parent.map(|parent| histories.get(&parent).cloned().context("a history is missing"));
        histories.insert(id, Arc::new(History::new(id, parent.transpose()?, steps)));
    }
    Ok(histories)
}

/// The findings, in the order in which they were found.
pub(super) fn findings(
    loaded: Vec<(String, serde_json::Value)>,
    program: &Program,
) -> Result<Vec<Arc<Found>>> {
    let mut findings = Vec::new();
    for (_, finding) in loaded {
        let FindingLine { failure, run, steps } = serde_json::from_value(finding)?;
        findings.push(Arc::new(Found { failure, run, trace: file::trace_of(program, &steps)? }));
    }
    findings.sort_by_key(|finding| finding.run);
    Ok(findings)
}
