//! Whether what fails where the guest copies its states fails as usual.

use super::worker::{Job, Worker};
use crate::check::visit::Here;
use crate::check::{End, Trouble, TroubleKind};
use crate::outcome::{Failure, Outcome};
use crate::target::Target;
use crate::trace::Trace;

impl<T: Target> Worker<'_, '_, T> {
    /// As [`Worker::confirm`], of a path that ends in the state itself.
    pub(super) fn confirmed(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        node: u32,
        here: Here,
    ) -> Result<Here, Box<Trouble>> {
        let Some(End::Failed(failure)) = &here.end else { return Ok(here) };
        let failure = failure.clone();
        let step = here.end.as_ref().and_then(Here::further).expect("it fails in a step that follows");
        let failure = self.confirm(failure, || job.nodes.trace_with(node, step, &[]))?;
        Ok(Here { end: Some(End::Failed(failure)), ..here })
    }

    /// Of what failed where the guest copies its states, that it fails so as usual; as it fails there.
    pub(super) fn confirm(
        &mut self,
        failure: Box<Failure>,
        trace: impl FnOnce() -> Trace,
    ) -> Result<Box<Failure>, Box<Trouble>> {
        if !self.visitor.target.is_copying() {
            return Ok(failure);
        }
        let trace = trace();
        let outcome = self.visitor.walk(&trace);
        self.visitor.target.set_copying(true);
        let kind = match outcome {
            Outcome::Fail(found) if found.is_same(&failure) => return Ok(found),
            Outcome::Stopped => TroubleKind::Stopped,
            _ => TroubleKind::Copies,
        };
        Err(Box::new(Trouble { trace, kind }))
    }
}
