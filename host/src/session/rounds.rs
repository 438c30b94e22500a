//! A check that is made in rounds: under bounds on schedules, or with orders left out.

use anyhow::Result;

use super::Work;
use super::together::Walked;
use crate::check::{Keeping, Limit, Options, Schedules};
use crate::machine::Machine;
use crate::orders;
use crate::property::Counts;
use crate::report::counted;

/// Whether orders of threads are left out.
pub(super) fn leaves_out_orders(machine: &Machine, options: &Options) -> bool {
    options.may_leave_out_orders() && machine.says_what_threads_touch()
}

impl Work<'_> {
    /// As [`walk`](Self::walk); with a bound on schedules under smaller ones first, until something fails. Where a bound leaves nothing
    /// out, there is none.
    pub(super) fn walk_in_rounds(
        &self,
        machines: &mut [Machine],
        options: &Options,
        (keeping, counts): (Option<Keeping<'_>>, &mut Counts),
    ) -> Result<Walked> {
        if leaves_out_orders(&machines[0], options) {
            return self.walk_with_less(machines, &Options { reduces: false, ..options.clone() }, counts);
        }
        for max in 0..=options.schedules.map_or(0, Schedules::max) {
            let Some(bound) = options.schedules.map(|bound| bound.with_max(max)) else { break };
            let is_last = options.schedules == Some(bound);
            let options = Options { schedules: Some(bound), ..options.clone() };
            let mut seen = machines[0].program().declared();
            machines.iter_mut().for_each(|machine| machine.bound_schedules(Some(bound)));
            let walked = self.walk(machines, &options, (None, &mut seen))?;
            let has_cut = machines.iter().any(Machine::has_cut_schedules);
            machines.iter_mut().for_each(|machine| machine.bound_schedules(None));
            let mut checked = match walked {
                Ok(checked) => checked,
                trouble => return Ok(trouble),
            };
            let is_over = checked.limit.is_some_and(Limit::is_from_outside);
            if !has_cut && checked.findings.is_empty() && !is_over {
                break;
            }
            if is_last || is_over || !checked.findings.is_empty() {
                let left_out = has_cut.then_some(Limit::Schedules(bound));
                checked.limit =
                    checked.limit.filter(|limit| !has_cut || *limit != Limit::Liveness).or(left_out);
                *counts = seen;
                return Ok(Ok(checked));
            }
        }
        self.walk(machines, &Options { schedules: None, ..options.clone() }, (keeping, counts))
    }

    /// Walks the tree without orders of threads that make no difference, or else all of it.
    fn walk_with_less(
        &self,
        machines: &mut [Machine],
        options: &Options,
        counts: &mut Counts,
    ) -> Result<Walked> {
        let declared = machines[0].program().declared();
        let walked = orders::check(machines, |machines| {
            *counts = declared.clone();
            self.walk(machines, &Options { leaves_out_orders: true, ..options.clone() }, (None, counts))
        })?;
        match walked {
            Ok((walked, rounds)) => {
                let steps = walked.as_ref().map_or(0, |checked| checked.steps_left_out);
                if steps > 0 {
                    let (steps, rounds) = (counted(steps, "step"), counted(rounds, "round"));
                    let text =
                        format!("{steps} of threads, in {rounds}: they have nothing in common with others");
                    self.observer.status("Left out", &text);
                }
                Ok(walked)
            }
            Err(why) => {
                self.observer.status("Checking", &format!("every order of threads, since {why}"));
                *counts = declared;
                self.walk(machines, options, (None, counts))
            }
        }
    }
}
