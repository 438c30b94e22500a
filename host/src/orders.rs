//! A check without orders of threads that make no difference: in rounds, each of which assumes what was seen in those before. See
//! `machine/touched.rs`.

use std::fmt;

#[cfg(doc)]
use crate::check::Options;
use crate::check::{Limit, Walked};
use crate::machine::{Machine, Touched};

/// How a check was made without some orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Rounds, the last one included.
    pub rounds: u64,
}

/// Why all orders are to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedsAll {
    /// The guest does something else than let threads go on, or does not say what they touch.
    IsTold,
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
            NeedsAll::IsTold => "the guest does not say what its threads touch",
            NeedsAll::Loops => "threads wait in loops",
            NeedsAll::Rejects => "runs are rejected",
            NeedsAll::Depends => "it has more than 64 threads, touches too much, looks at ids of threads, or has an `AtomicPtr`",
        })
    }
}

/// Has `walk` check with these machines and [`Options::leaves_out_orders`], and leaves out orders of threads that make no
/// difference. What it came to in the end, the same as without, but that where something fails other failures may be missing; or why
/// all orders are to be tried.
///
/// # Errors
/// Those of `walk`.
pub fn check<E>(
    machines: &mut [Machine],
    mut walk: impl FnMut(&mut [Machine]) -> Result<Walked, E>,
) -> Result<Result<(Walked, LeftOut), NeedsAll>, E> {
    if !machines[0].says_what_threads_touch() {
        return Ok(Err(NeedsAll::IsTold));
    }
    let mut assumed = Touched::default();
    let mut rounds = 0;
    loop {
        rounds += 1;
        machines.iter_mut().for_each(|machine| machine.leave_out_orders(assumed.clone()));
        let walked = walk(machines);
        let (mut seen, mut steps) = (assumed.clone(), 0);
        for (of_one, more) in machines.iter_mut().map(|machine| machine.leave_out_nothing().seen()) {
            steps += more;
            seen.add_all(of_one);
        }
        let mut checked = match walked? {
            Ok(checked) => checked,
            trouble => return Ok(Ok((trouble, LeftOut { rounds }))),
        };
        checked.steps_left_out = steps;
        let is_ended = checked.limit.is_some_and(|limit| limit.is_from_outside() || limit == Limit::Runs);
        if !is_ended && checked.findings.is_empty() {
            if seen.is_of_no_use() {
                return Ok(Err(NeedsAll::Depends));
            }
            if checked.census.rejected > 0 {
                return Ok(Err(NeedsAll::Rejects));
            }
            if seen != assumed {
                assumed = seen;
                continue;
            }
            if checked.has_loop {
                return Ok(Err(NeedsAll::Loops));
            }
        }
        return Ok(Ok((Ok(checked), LeftOut { rounds })));
    }
}
