//! What all workers of a check share.

use std::sync::Mutex;

use super::claims::Claims;
use crate::check::sleep::Independence;
use crate::check::{GoesOn, Keeper, Limit, Met, Options, Progress, Stop, lock};
use crate::target::Target;

/// What is the same for all workers.
pub(super) struct Shared<'a> {
    pub(super) options: &'a Options,
    pub(super) goes_on: GoesOn<'a>,
    /// Keeps what the check comes to, where something does.
    pub(super) keeper: Option<&'a dyn Keeper>,
    /// Of the thread of each worker but the first, where the usual do not do.
    pub(super) stack_bytes: Option<usize>,
    pub(super) independence: Independence,
    pub(super) claims: Claims,
    pub(super) met: Met,
    pub(super) stop: Stop,
    pub(super) limit: Mutex<Option<Limit>>,
    pub(super) progress: Mutex<Progress>,
    /// Every step to a known state is kept too.
    pub(super) keeps_steps: bool,
}

/// Whether something is claimed of runs without end.
pub(super) fn has_liveness<T: Target>(target: &T, options: &Options) -> bool {
    options.judges() && (options.leaves_out_orders || !target.liveness().is_empty())
}

impl<'a> Shared<'a> {
    pub(super) fn new<T: Target>(
        targets: &mut [T],
        options: &'a Options,
        goes_on: GoesOn<'a>,
        keeper: Option<&'a dyn Keeper>,
    ) -> Shared<'a> {
        let (workers, target) = (targets.len(), &mut targets[0]);
        Shared {
            options,
            keeps_steps: has_liveness(target, options) || options.draws,
            goes_on,
            keeper,
            stack_bytes: target.stack_bytes(),
            independence: Independence::of(target, options.reduces),
            claims: Claims::new(workers),
            met: Met::default(),
            stop: Stop::default(),
            limit: Mutex::new(None),
            progress: Mutex::new(Progress::default()),
        }
    }

    /// Whether it is time to keep what the check has come to.
    pub(super) fn is_due(&self) -> bool {
        self.keeper.is_some_and(Keeper::is_due)
    }

    /// The host stopped a guest: the check is over, for the reason that it has by now.
    pub(super) fn stopped(&self) {
        let limit = (self.goes_on)(&lock(&self.progress)).unwrap_or(Limit::Interrupt);
        self.ended(limit);
    }

    /// The check is over, for this reason where there was none before.
    pub(super) fn ended(&self, limit: Limit) {
        lock(&self.limit).get_or_insert(limit);
        self.stop.set();
    }
}
