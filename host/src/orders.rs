//! A check without orders of threads that make no difference: in rounds, each of which assumes what was seen in those before. See
//! `machine/touched.rs`.

#[cfg(doc)]
use crate::check::Options;
use crate::check::{Limit, Walked};
use crate::machine::{Machine, Touched};

/// What was left out of a check, in its last round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Steps of threads from the states that were met.
    pub steps: u64,
    /// Rounds, the last one included.
    pub rounds: u64,
}

/// Has `walk` check with these machines and [`Options::leaves_out_orders`], and leaves out orders of threads that make no
/// difference. What it came to in the end, the same as without, but that where something fails other failures may be missing; none where all
/// orders are to be tried.
///
/// # Errors
/// Those of `walk`.
pub fn check<E>(
    machines: &mut [Machine],
    mut walk: impl FnMut(&mut [Machine]) -> Result<Walked, E>,
) -> Result<Option<(Walked, LeftOut)>, E> {
    if !machines[0].says_what_threads_touch() {
        return Ok(None);
    }
    let mut assumed = Touched::default();
    for rounds in 1.. {
        machines.iter_mut().for_each(|machine| machine.leave_out_orders(assumed.clone()));
        let walked = walk(machines);
        let (mut seen, mut left_out) = (assumed.clone(), LeftOut { steps: 0, rounds });
        for (of_one, steps) in machines.iter_mut().map(|machine| machine.leave_out_nothing().seen()) {
            left_out.steps += steps;
            seen.add_all(of_one);
        }
        let walked = walked?;
        let is_over = walked.as_ref().map_or(true, |checked| {
            let is_ended = |limit: Limit| limit.is_from_outside() || limit == Limit::Runs;
            checked.limit.is_some_and(is_ended) || !checked.findings.is_empty()
        });
        let holds = seen == assumed && walked.as_ref().is_ok_and(|checked| !checked.has_loop);
        if is_over || holds && !seen.is_of_no_use() {
            return Ok(Some((walked, left_out)));
        }
        if seen == assumed || seen.is_of_no_use() {
            break;
        }
        assumed = seen;
    }
    Ok(None)
}
