//! A round: the workers share its states, and other processes where they help.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::apart::PART;
use super::grown::Grown;
use super::worker::{Job, Worker};
use super::{CHUNK, Helpers, Round, Shared};
use crate::check::{in_parallel, lock};
use crate::property::Counts;
use crate::target::Target;

/// Has the workers look at the states of a round; the results in order. Once it is time to keep something no more are begun.
/// Where others help, theirs are among the results, and what they counted is put into `counted`.
pub(super) fn grow<T>(
    workers: &mut [Worker<'_, '_, T>],
    shared: &Shared<'_>,
    job: &Job<'_, T::Snapshot>,
    (apart, counted): (Option<(&dyn Helpers, &Round)>, &mut Vec<Counts>),
) -> Vec<Grown<T::Snapshot>>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    let chunk = if apart.is_some() { PART } else { CHUNK };
    let count = workers.len().min(job.round.len().div_ceil(chunk));
    let sizes = (workers[0].visitor.target.rules().len(), workers[0].visitor.target.faults().len());
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let theirs = Mutex::new((BTreeSet::new(), Vec::new()));
    in_parallel(&mut workers[..count], shared.stack_bytes, |worker| {
        loop {
            if let Some((helpers, round)) = apart {
                for part in helpers.parts() {
                    let Some((grown, counts)) = part.grown(round, sizes) else { continue };
                    let mut theirs = lock(&theirs);
                    if theirs.0.insert(grown.first) {
                        theirs.1.extend(counts);
                        lock(&results).push((grown, true));
                    }
                }
            }
            let first = next.fetch_add(chunk, Ordering::Relaxed);
            if first >= job.round.len() {
                break;
            }
            if lock(&theirs).0.contains(&first) {
                continue;
            }
            let grown = worker.chunk(job, (first, chunk));
            lock(&results).push((grown, false));
            if apart.is_none() && shared.is_due() {
                break;
            }
        }
    });
    *counted = theirs.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).1;
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Of a part that was looked at twice, what was found here.
    results.sort_by_key(|(grown, is_theirs)| (grown.first, *is_theirs));
    results.dedup_by_key(|(grown, _)| grown.first);
    if !shared.options.reduces {
        for (grown, _) in results.iter().filter(|(_, is_theirs)| *is_theirs) {
            shared.claim_for(grown, job.round.start as u32);
        }
    }
    results.into_iter().map(|(grown, _)| grown).collect()
}

impl Shared<'_> {
    /// Claims the states that others found for the nodes that lead there, from which those of a round begin.
    fn claim_for<S>(&self, grown: &Grown<S>, start: u32) {
        let mut children = grown.children.iter();
        for (node, grown_node) in (start + grown.first as u32..).zip(&grown.nodes) {
            for state in children.by_ref().take(grown_node.children).filter_map(|child| child.state) {
                self.claims.claim(state, node);
            }
        }
    }
}
