//! Whether rules that are declared independent are, in some of the states that are looked at.

use super::start::Start;
use super::worker::{Job, Worker};
use crate::check::commute::{self, Trial, Trials};
use crate::check::{Trouble, TroubleKind};
use crate::target::Target;
use crate::trace::Action;

impl<T: Target> Worker<'_, '_, T> {
    /// In some states tries both orders of rules that are declared independent.
    pub(super) fn test_independence(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        start: &mut Start<T::Snapshot>,
    ) -> Result<(), Box<Trouble>> {
        let state = u64::from(start.node);
        let enabled = self.visitor.enabled.clone();
        if enabled.is_empty() || !commute::is_sampled(state) {
            return Ok(());
        }
        let mut trials = Trials::new(&self.shared.independence, &enabled, state);
        while let Some(trial) = trials.next() {
            let mut run = |worker: &mut Self, trial: &Trial| {
                worker.place(job.nodes, start, Action::Rule(enabled[0]))?;
                let ran = worker.visitor.run(trial);
                start.is_in_place = false;
                ran.map_err(|kind| Box::new(Trouble { trace: job.nodes.trace(start.node), kind }))
            };
            let one = run(self, &trial)?;
            let other = trial.swapped().map(|trial| run(self, &trial)).transpose()?;
            if let Some(why) = trials.differs(&trial, &one, other.as_ref()) {
                let kind = TroubleKind::Dependent { rules: trial.rules, why };
                return Err(Box::new(Trouble { trace: job.nodes.trace(start.node), kind }));
            }
        }
        Ok(())
    }
}
