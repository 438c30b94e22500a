//! A round: the workers share its states, and other processes where they help.

use std::collections::BTreeSet;
use std::sync::Mutex;

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
    let (chunks, results) = (Mutex::new(Chunks::of(job.round.len(), chunk)), Mutex::new(Vec::new()));
    let theirs = Mutex::new((BTreeSet::new(), Vec::new()));
    in_parallel(&mut workers[..count], shared.stack_bytes, |worker| {
        let (mut from, mut has_begun) = (0, false);
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
            // Something is looked at in each round, or a check that is kept all the time would not end.
            let is_over = std::mem::replace(&mut has_begun, true) && apart.is_none() && shared.is_due();
            let target = &*worker.visitor.target;
            let has = |number: usize| {
                let saved = job.nodes.saved((job.round.start + number * chunk) as u32);
                saved.is_none_or(|saved| target.has(saved))
            };
            let Some(number) = lock(&chunks).take(&mut from, has, is_over) else { break };
            let first = number * chunk;
            if lock(&theirs).0.contains(&first) {
                continue;
            }
            let grown = worker.chunk(job, (first, chunk));
            lock(&results).push((grown, false));
        }
    });
    *counted = theirs.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).1;
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let is_in_turn = count == 1 && apart.is_none() && results.is_sorted_by_key(|(grown, _)| grown.first);
    shared.claims.claimed(is_in_turn);
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

/// The chunks of a round, in order, and which are taken.
struct Chunks {
    taken: Vec<bool>,
    /// Those before the first one are taken, and none from the second one on.
    first: usize,
    end: usize,
}

impl Chunks {
    fn of(states: usize, chunk: usize) -> Chunks {
        Chunks { taken: vec![false; states.div_ceil(chunk)], first: 0, end: 0 }
    }

    /// Takes one whose states the worker `has`, where there is any at or after `from`, or else the first one. Once it `is_over`, only those that
    /// come before one that is taken: what was looked at is to be the beginning of the round.
    fn take(&mut self, from: &mut usize, has: impl Fn(usize) -> bool, is_over: bool) -> Option<usize> {
        self.first += self.taken[self.first..].iter().take_while(|taken| **taken).count();
        let end = if is_over { self.end } else { self.taken.len() };
        let all = (*from).max(self.first)..end;
        let own = all.clone().find(|number| !self.taken[*number] && has(*number));
        *from = own.unwrap_or(all.end);
        let number = own.or((self.first < end).then_some(self.first))?;
        self.taken[number] = true;
        self.end = self.end.max(number + 1);
        Some(number)
    }
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

#[cfg(test)]
mod tests {
    use super::Chunks;

    #[test]
    fn a_worker_takes_what_it_has_and_then_what_is_left() {
        let mut chunks = Chunks::of(50, 10);
        let (mut of_one, mut of_other) = (0, 0);
        let mut odd =
            |chunks: &mut Chunks, is_over| chunks.take(&mut of_one, |number| number % 2 == 1, is_over);
        let mut none = |chunks: &mut Chunks, is_over| chunks.take(&mut of_other, |_| false, is_over);
        assert_eq!(odd(&mut chunks, false), Some(1));
        assert_eq!(none(&mut chunks, false), Some(0));
        assert_eq!(odd(&mut chunks, false), Some(3));
        // What comes before one that is taken is looked at, and nothing else.
        assert_eq!(odd(&mut chunks, true), Some(2));
        assert_eq!((none(&mut chunks, true), odd(&mut chunks, true)), (None, None));
        assert_eq!((none(&mut chunks, false), none(&mut chunks, false)), (Some(4), None));
    }
}
