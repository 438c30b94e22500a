//! The findings of a campaign, run again and told.

use crate::budget::Budget;
use crate::file::{Shrinking, TraceFile};
use crate::machine::Machine;
use crate::outcome::Found;
use crate::replay::{Replayed, replay};
use crate::session::{Finding, Guest, describe, steps_of};
use crate::story;

/// A finding of a campaign.
pub(super) struct Told {
    /// The finding.
    pub(super) finding: Finding,
    /// Why it is not told in full.
    pub(super) remark: Option<String>,
}

/// The finding with its story, of its shrunk trace where there is one. Where there is no time, nothing is executed.
pub(super) fn told(guest: &Guest<'_>, machine: &mut Machine, found: &Found, budget: &Budget) -> Told {
    let path = guest.place.saved(&found.failure);
    let shrunk = TraceFile::read(&path).ok().and_then(|file| Some((file.trace(machine).ok()?, file)));
    let (trace, is_minimal) = match &shrunk {
        Some((trace, file)) => (trace, file.shrinking == Some(Shrinking::Minimal)),
        None => (&found.trace, false),
    };
    let replayed = if budget.is_over() { Replayed::Stopped } else { replay(machine, trace, false).0 };
    let is_over = || budget.is_over();
    let (story, remark) = match &replayed {
        Replayed::Failed(failure) if failure.is_same(&found.failure) => {
            (story::explain(machine, trace, failure, &is_over), None)
        }
        Replayed::Stopped => (Vec::new(), Some("there was no time to run it again".to_string())),
        other => {
            let remark = format!("it does not go as it did: {}", describe(machine, trace, other));
            (story::tell_until(machine, trace, &is_over), Some(remark))
        }
    };
    let finding = guest.finding(found.failure.clone(), story, steps_of(&found.trace), &path);
    Told { finding: Finding { run: found.run, is_minimal, ..finding }, remark }
}
