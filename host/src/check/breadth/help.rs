//! Helping with a check that another process leads.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::apart::{PART, Part, Round, Source};
use super::worker::{Job, Worker};
use super::{Check, Shared};
use crate::check::equal::Equals;
use crate::check::{End, GoesOn, Limit, Options, Trouble, in_parallel, lock};
use crate::property::Counts;
use crate::target::Target;
use crate::trace::Trace;

/// Looks at parts of the rounds of a check that another process leads, until there is nothing to help with any more.
pub(in crate::check) fn help<T>(
    targets: &mut [T],
    options: &Options,
    goes_on: GoesOn<'_>,
    source: &dyn Source,
) -> Result<Option<Limit>, Box<Trouble>>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    targets[0].reset();
    let root = targets[0].snapshot();
    let shared = Shared::new(targets, options, goes_on, None);
    let equals = Equals::new();
    let mut workers: Vec<Worker<'_, '_, T>> =
        targets.iter_mut().map(|target| Worker::new(target, &shared, &equals, root.clone())).collect();
    let (mut nobody, mut counts) = (|_: &Trace, _: &End| {}, Counts::default());
    let mut check = Check::new(&shared, &mut nobody, &mut counts, workers[0].visitor.target);
    check.start(&mut workers[0], root)?;
    workers.iter_mut().for_each(|worker| worker.passed = Some(Vec::new()));
    // The states that were passed, with how many steps they are from the start.
    let mut passed: Vec<(u32, u32)> = Vec::new();
    // The first nodes of parts that were looked at. Whoever looks at one again, since the round was begun anew, knows the states that it
    // leads to, and would take none of them for new.
    let looked_at = Mutex::new(BTreeSet::new());
    while !shared.stop.is_set()
        && let Some((news, round)) = source.next()
    {
        for news in news {
            check.take_one(news);
        }
        shared.met.set(check.bytes());
        check.report();
        let Some(round) = round.filter(|round| round.is_of(check.nodes.list.len())) else { continue };
        passed.retain(|(depth, node)| {
            let is_near = depth + 1 >= round.depth;
            if !is_near {
                check.nodes.hold(*node, None);
            }
            is_near
        });
        lock(&looked_at).retain(|node| *node >= round.first);
        let trouble = look(&mut workers, (&shared, &looked_at), &round.job(&check.nodes), (&round, source));
        for (node, state) in
            workers.iter_mut().filter_map(|worker| worker.passed.as_mut()).flat_map(|list| list.drain(..))
        {
            check.nodes.hold(node, Some(state));
            passed.push((round.depth, node));
        }
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
    }
    let limit = *lock(&shared.limit);
    Ok(limit)
}

/// Has the workers look at parts of a round, as long as there are any; what troubles them.
fn look<T>(
    workers: &mut [Worker<'_, '_, T>],
    (shared, looked_at): (&Shared<'_>, &Mutex<BTreeSet<u32>>),
    job: &Job<'_, T::Snapshot>,
    (round, source): (&Round, &dyn Source),
) -> Option<Box<Trouble>>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    let trouble = Mutex::new(None);
    in_parallel(workers, shared.stack_bytes, |worker| {
        while !shared.stop.is_set()
            && let Some(number) = source.take(round)
        {
            if number >= round.parts() || !lock(looked_at).insert(round.first + number * PART as u32) {
                continue;
            }
            let mut grown = worker.chunk(job, (number as usize * PART, PART));
            if let Some(found) = grown.trouble.take() {
                lock(&trouble).get_or_insert(found);
                break;
            }
            let counts = worker.visitor.target.take_counts().map(|counts| *counts);
            if !shared.stop.is_set() {
                source.give(&Part::of(round, number, grown, counts));
            }
        }
    });
    trouble.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}
