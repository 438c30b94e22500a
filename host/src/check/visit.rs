//! One step under a script.

use super::{End, Options, TroubleKind};
use crate::choice::{Chooser, Kind, Past, Scripted, Stopped, advance, mix};
use crate::outcome::{Failure, Halt, Outcome, Reject};
use crate::target::{Holds, Successors, Target, attempt, follows_preconditions, last_step};
use crate::trace::{Action, Trace};

/// Steps of a rule that are performed from one state to see what they meet, at most.
const STEPS_MAX: u32 = 1 << 14;

/// How a step under a script went.
pub(super) enum Visit {
    Passed,
    /// It passed, and the guest ended itself.
    Exited,
    Rejected,
    /// It is not to be counted.
    LeftOut,
    Failed(Box<Failure>),
    /// It was stopped at the first choice past the script.
    Asks(Kind),
}

/// A target and what is needed to step it.
pub(super) struct Visitor<'t, T: Target> {
    pub(super) target: &'t mut T,
    alternatives_max: u32,
    pub(super) chooser: Chooser,
    pub(super) enabled: Vec<u16>,
    /// The state before setup, shared by all workers.
    root: Option<T::Snapshot>,
}

/// The hash of a state together with what it says of runs without end.
pub(super) fn with(state: u128, holds: Holds) -> u128 {
    let said = u128::from(mix(holds.from, holds.to)) << 64 | u128::from(mix(holds.to, holds.from));
    state ^ said
}

impl<'t, T: Target> Visitor<'t, T> {
    /// Readies the target, and goes to the state before setup.
    pub(super) fn new(target: &'t mut T, options: &Options, root: Option<T::Snapshot>) -> Visitor<'t, T> {
        let alternatives_max = options.alternatives_max;
        let mut visitor =
            Visitor { target, alternatives_max, chooser: Chooser::default(), enabled: Vec::new(), root };
        visitor.restart();
        visitor
    }

    /// Goes to the state before setup.
    pub(super) fn restart(&mut self) {
        match &self.root {
            // Not a reset, which may go to a copy of this state that shares nothing with those saved.
            Some(root) => self.target.restore(root),
            None => {
                self.target.reset();
                // A fresh target counts nothing yet.
                self.target.set_counts(true);
            }
        }
    }

    /// The hash of the state that the target is in; `with_holds`, what that says of runs without end counts too.
    pub(super) fn state(&mut self, with_holds: bool) -> Result<Option<u128>, TroubleKind> {
        let holds = self.target.holds();
        let state = self.target.compared_state()?;
        Ok(state.map(|state| if with_holds { with(state, holds) } else { state }))
    }

    /// Performs the steps of a trace from the start, as usual, where a target copies states. What the last of them came to, or the first that
    /// did not pass; the target stays there.
    pub(super) fn walk(&mut self, trace: &Trace) -> Outcome {
        self.target.set_copying(false);
        self.go(trace)
    }

    /// As [`Visitor::walk`], in whichever way the target is stepped.
    pub(super) fn go(&mut self, trace: &Trace) -> Outcome {
        self.target.reset();
        let (mut again, mut outcome) = (Trace::default(), Outcome::Pass);
        for step in trace.steps() {
            if outcome != Outcome::Pass {
                return Outcome::Reject(Reject::Precondition);
            }
            let what = (step.action, step.seed);
            outcome = attempt(
                self.target,
                &mut self.chooser,
                &mut self.enabled,
                what,
                trace.recorded(step),
                &mut again,
            );
        }
        outcome
    }

    /// As [`Target::successors`].
    pub(super) fn successors(
        &mut self,
        from: Option<&T::Snapshot>,
        found: &mut Successors,
    ) -> Result<bool, Halt> {
        self.target.successors(from, self.alternatives_max, found)
    }

    /// Whether the steps from where a trace leads are these as usual, where a target copies states.
    pub(super) fn are_alike(&mut self, trace: &Trace, found: &Successors) -> Result<bool, TroubleKind> {
        match self.walk(trace) {
            Outcome::Pass => {}
            Outcome::Stopped => return Err(TroubleKind::Stopped),
            _ => return Ok(false),
        }
        match self.target.enabled(&mut self.enabled) {
            Ok(()) if self.enabled == found.rules => {}
            Err(Halt::Stopped) => return Err(TroubleKind::Stopped),
            _ => return Ok(false),
        }
        let Some(ready) = self.target.snapshot() else { return Ok(true) };
        let mut at = 0;
        for step in &found.steps {
            let mut script = found.scripts[at..at + step.script].to_vec();
            at += step.script;
            self.target.restore(&ready);
            let is_alike = match (self.visit(Action::Rule(step.rule), &mut script, Past::Stop), step.state) {
                (Err(TroubleKind::Stopped), _) => return Err(TroubleKind::Stopped),
                (Ok((Visit::Rejected, _)), None) => true,
                (Ok((Visit::Passed, _)), Some(state)) => self.target.compared_state()? == Some(state),
                _ => false,
            };
            if !is_alike {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Performs all steps from where a trace leads, as usual, where a target copies states; `is_start`, setup is all that follows.
    pub(super) fn all_steps(&mut self, trace: &Trace, is_start: bool) -> Result<(), TroubleKind> {
        match self.walk(trace) {
            Outcome::Pass => {}
            Outcome::Stopped => return Err(TroubleKind::Stopped),
            _ => return Ok(()),
        }
        let mut actions = vec![Action::Setup];
        if !is_start {
            self.target.enabled(&mut self.enabled)?;
            actions = self.enabled.iter().map(|rule| Action::Rule(*rule)).collect();
        }
        let Some(ready) = self.target.snapshot() else { return Ok(()) };
        let mut script = Vec::new();
        for action in actions {
            script.clear();
            for _ in 0..STEPS_MAX {
                self.target.restore(&ready);
                match self.visit(action, &mut script, Past::First) {
                    Err(TroubleKind::Stopped) => return Err(TroubleKind::Stopped),
                    Ok(_) if advance(&mut script, 0) => {}
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// Performs a step. The answers that were given past the script are appended to it; how many were, too.
    pub(super) fn visit(
        &mut self,
        action: Action,
        script: &mut Vec<Scripted>,
        past: Past,
    ) -> Result<(Visit, usize), TroubleKind> {
        self.chooser.begin_script(script, past, self.alternatives_max);
        let outcome = self.target.step(action, &mut self.chooser);
        self.chooser.end();
        if outcome == Outcome::Stopped {
            return Err(TroubleKind::Stopped);
        }
        match self.chooser.stopped {
            Some((_, Stopped::Ended(kind))) => return Ok((Visit::Asks(kind), 0)),
            Some((at, Stopped::Unbounded(kind))) => return Err(TroubleKind::Unbounded(at, kind)),
            Some((at, Stopped::Differs(kind))) => {
                let before = script[at].kind;
                return Err(TroubleKind::Nondeterminism(format!(
                    "choice {} asked for {before}, and now asks for {kind}",
                    at + 1
                )));
            }
            None => {}
        }
        let Some(further) = self.chooser.choices.get(script.len()..) else {
            return Err(TroubleKind::Nondeterminism(format!(
                "it makes {} choices, and made {} before",
                self.chooser.choices.len(),
                script.len()
            )));
        };
        let count = further.len();
        script.extend(further.iter().map(|choice| Scripted { kind: choice.kind, number: 0 }));
        let visit = match outcome {
            Outcome::Pass => Visit::Passed,
            Outcome::Exit => Visit::Exited,
            Outcome::Reject(Reject::LeftOut) => Visit::LeftOut,
            Outcome::Reject(_) => Visit::Rejected,
            Outcome::Fail(failure) => Visit::Failed(failure),
            Outcome::Stopped => unreachable!("it was looked for before"),
        };
        Ok((visit, count))
    }

    /// Performs a step again that passed before; [`Visitor::ready`] comes first.
    pub(super) fn repeat(&mut self, action: Action, script: &mut Vec<Scripted>) -> Result<(), TroubleKind> {
        match self.visit(action, script, Past::Stop)? {
            (Visit::Passed, _) => Ok(()),
            (Visit::Asks(kind), _) => Err(TroubleKind::Nondeterminism(format!(
                "choice {} asks for {kind}, and there was none before",
                script.len() + 1
            ))),
            (Visit::Exited, _) => Err(nondeterminism("the guest ends the run, and did not before")),
            (Visit::Rejected | Visit::LeftOut, _) => {
                Err(nondeterminism("the guest rejects it, and did not before"))
            }
            (Visit::Failed(failure), _) => {
                Err(TroubleKind::Nondeterminism(format!("it fails, and did not before: {failure}")))
            }
        }
    }

    /// Evaluates the preconditions again before a step that comes after them.
    pub(super) fn ready(&mut self, action: Action) -> Result<(), TroubleKind> {
        if !follows_preconditions(action) {
            return Ok(());
        }
        match self.target.enabled(&mut self.enabled) {
            Ok(()) => {}
            Err(Halt::Stopped) => return Err(TroubleKind::Stopped),
            Err(Halt::Fail(_)) => return Err(nondeterminism("a precondition fails, and did not before")),
        }
        match action {
            Action::Rule(rule) if !self.enabled.contains(&rule) => {
                Err(nondeterminism("its precondition does not hold, and did before"))
            }
            _ => Ok(()),
        }
    }

    /// What may be done in the state that the target is in, at `depth` steps, the faults that are on in `on`, put
    /// into `actions`; and how the path ends, where it ends here. The preconditions are evaluated. A run may end in
    /// every state, with teardown, which is the first alternative; that of a function after it was called only.
    pub(super) fn alternatives(
        &mut self,
        (depth, steps_max): (u32, Option<u32>),
        on: &[bool],
        actions: &mut Vec<Action>,
    ) -> Result<Here, TroubleKind> {
        actions.clear();
        let is_beyond = steps_max.is_some_and(|max| depth >= max);
        let evaluated = match self.target.enabled(&mut self.enabled) {
            Ok(()) => None,
            Err(Halt::Stopped) => return Err(TroubleKind::Stopped),
            Err(Halt::Fail(failure)) => {
                self.enabled.clear();
                Some(End::Failed(failure))
            }
        };
        let is_final = self.enabled.is_empty();
        let is_called = is_final || !self.target.is_function();
        let has_teardown = self.target.has_teardown() && is_called && evaluated.is_none();
        let has_more = !is_final || !on.is_empty();
        if has_teardown {
            actions.push(Action::Teardown);
        }
        if has_more && !is_beyond {
            actions.extend(self.enabled.iter().map(|rule| Action::Rule(*rule)));
            // They are toggled before preconditions are evaluated, so where one fails too.
            actions.extend((0..).zip(on).map(|(fault, on)| Action::Fault(fault, !on)));
        }
        let is_bound = is_beyond && has_more || self.target.is_cut();
        let end = match evaluated {
            Some(failed) => Some(failed),
            None if has_teardown => None,
            None if is_final => Some(End::Leaf),
            None => (is_beyond && has_more).then_some(End::Bound),
        };
        Ok(Here { is_bound, end })
    }
}

/// How far the paths to a state go.
pub(super) struct Here {
    /// Only the bound on steps, or a limit of the target, keeps something from being done.
    pub(super) is_bound: bool,
    /// How a path ends in the state itself; of a failure that is one of a precondition.
    pub(super) end: Option<End>,
}

impl Here {
    /// The step that is to follow in a trace that ends here: a precondition fails as a rule is to be called, and where none may be, that
    /// is a step.
    pub(super) fn further(end: &End) -> Option<Action> {
        match end {
            End::Failed(failure) => Some(last_step(Action::Rule(0), failure)),
            _ => None,
        }
    }
}

fn nondeterminism(why: &str) -> TroubleKind {
    TroubleKind::Nondeterminism(why.to_string())
}
