//! Whether what fails where the guest copies its states fails as usual.

use super::grown::Grown;
use super::worker::{Job, Worker};
use crate::check::equal::Equals;
use crate::check::visit::Here;
use crate::check::{End, Trouble, TroubleKind};
use crate::outcome::{Failure, Outcome};
use crate::target::{Doubt, Successors, Target};
use crate::trace::Trace;

/// Why a check is made without copies.
const FAILS_OFTEN: &str = "since so many steps fail";
const UNBOUNDED: &str = "since a choice is among too many";
const SHARES: &str = "since what is behind an `Rc` or `Arc` counts who shares it";

impl TroubleKind {
    /// What trouble in states that the guest copied is: the check comes to it without them too, if it is one of the guest.
    pub(super) fn of_copies(self) -> TroubleKind {
        match self {
            TroubleKind::Without(why) => TroubleKind::Without(why),
            TroubleKind::Unbounded(..) => TroubleKind::Without(UNBOUNDED),
            _ => TroubleKind::Copies,
        }
    }
}

impl<T: Target> Worker<'_, '_, T> {
    /// Looks at what a state leads to, and whether what came of it can be believed.
    pub(super) fn node(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        node: u32,
        grown: &mut Grown<T::Snapshot>,
    ) -> Result<(), Box<Trouble>> {
        self.leads(job, node, grown)?;
        let kind = match self.visitor.target.doubt() {
            None => return Ok(()),
            Some(Doubt::Shares) => TroubleKind::Without(SHARES),
            Some(Doubt::Met) => match self.is_met(job, node) {
                Ok(true) => return Ok(()),
                Ok(false) => TroubleKind::Copies,
                Err(kind) => kind,
            },
        };
        Err(Box::new(Trouble { trace: job.nodes.trace(node), kind }))
    }

    /// Whether the steps from a state meet as usual all properties that they met where the guest copied it.
    fn is_met(&mut self, job: &Job<'_, T::Snapshot>, node: u32) -> Result<bool, TroubleKind> {
        let trace = job.nodes.trace(node);
        let taken = self.visitor.all_steps(&trace, job.is_start);
        self.visitor.target.set_copying(true);
        taken.map(|()| self.visitor.target.has_met_alike())
    }

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

    /// Takes these steps from a state that the guest copied as usual too, of some states: they may fail there, or lead elsewhere.
    pub(super) fn audit_steps(
        &mut self,
        job: &Job<'_, T::Snapshot>,
        node: u32,
        found: &Successors,
    ) -> Result<(), Box<Trouble>> {
        let Some(equals) = self.equals.filter(|equals| equals.audits_steps_of(node)) else { return Ok(()) };
        let trace = job.nodes.trace(node);
        equals.audits_steps((trace.len() + found.steps.len()) as u64);
        let are_alike = self.visitor.are_alike(&trace, found);
        self.visitor.target.set_copying(true);
        match are_alike {
            Ok(true) => Ok(()),
            Ok(false) => Err(Box::new(Trouble { trace, kind: TroubleKind::Copies })),
            Err(kind) => Err(Box::new(Trouble { trace, kind })),
        }
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
        if self.equals.is_some_and(Equals::fails_often) {
            return Err(Box::new(Trouble { trace, kind: TroubleKind::Without(FAILS_OFTEN) }));
        }
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
