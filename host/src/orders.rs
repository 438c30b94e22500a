//! A check without orders of threads that make no difference: in rounds, each of which assumes what was seen in those before. See
//! `machine/touched.rs`.

use std::fmt;
use std::sync::Arc;

#[cfg(doc)]
use crate::check::Options;
use crate::check::{Checked, Limit, Walked};
use crate::machine::{Machine, Touched};

/// Why all orders are to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedsAll {
    /// The guest does something else than let threads go on, or does not say what they touch.
    NotTold,
    /// A path comes back to where it was.
    Loops,
    /// A run that is rejected cuts off the others of its threads.
    Rejects,
    /// There are too many threads, or they touch too much, or what nothing is told of.
    Depends,
}

impl fmt::Display for NeedsAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NeedsAll::NotTold => "the guest does not say what its threads touch",
            NeedsAll::Loops => "threads wait in loops",
            NeedsAll::Rejects => "runs are rejected",
            NeedsAll::Depends => "not all that they touch is told (more than 64 threads, too many atomics, an `AtomicPtr`, ids of threads)",
        })
    }
}

/// Has `walk` check with these machines and [`Options::leaves_out_orders`], and leaves out orders of threads that make no
/// difference. What it came to in the end, the same as without, but that where something fails other failures may be missing; and after how
/// many rounds. Or why all orders are to be tried.
///
/// # Errors
/// Those of `walk`.
pub fn check<E>(
    machines: &mut [Machine],
    mut walk: impl FnMut(&mut [Machine]) -> Result<Walked, E>,
) -> Result<Result<(Walked, u64), NeedsAll>, E> {
    if !machines[0].says_what_threads_touch() {
        return Ok(Err(NeedsAll::NotTold));
    }
    let mut assumed = Arc::new(Touched::default());
    for rounds in 1.. {
        machines.iter_mut().for_each(|machine| machine.leave_out_orders(assumed.clone()));
        let walked = walk(machines);
        let (mut seen, mut steps) = (Touched::default(), 0);
        for (of_one, more) in machines.iter_mut().map(|machine| machine.leave_out_nothing().seen()) {
            steps += more;
            seen.add_all(of_one);
        }
        let walked = walked?.map(|checked| Checked { steps_left_out: steps, ..checked });
        let is_ended = |limit: Limit| limit.is_from_outside() || limit == Limit::Runs;
        if walked.as_ref().is_ok_and(|checked| checked.limit.is_some_and(is_ended)) {
            return Ok(Ok((walked, rounds)));
        }
        // The steps of a round that was cut short do not go as they did before: that is no trouble.
        if seen.is_of_no_use() {
            return Ok(Err(NeedsAll::Depends));
        }
        if let Ok(checked) = &walked
            && checked.findings.is_empty()
        {
            if checked.census.rejected > 0 {
                return Ok(Err(NeedsAll::Rejects));
            }
            if !seen.is_empty() {
                Arc::make_mut(&mut assumed).add_all(seen);
                if assumed.is_of_no_use() {
                    return Ok(Err(NeedsAll::Depends));
                }
                continue;
            }
            if checked.has_loop {
                return Ok(Err(NeedsAll::Loops));
            }
        }
        return Ok(Ok((walked, rounds)));
    }
    unreachable!("a round that sees nothing more is the last")
}
