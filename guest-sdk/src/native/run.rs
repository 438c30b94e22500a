//! The steps of a run, and their order: the same as the host's.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::draw::Random;
use super::host::{Answers, Ended, Running, story};
use super::trace::{Step, Trace};
use super::{Misfit, Parts};

/// A run that goes on: the harness, and who answers it.
struct Run<'p, H> {
    parts: &'p Parts<H>,
    running: Running,
    state: Option<H>,
}

/// What a step came to that did not fail.
enum Done {
    Passed,
    Rejected,
    Misfit(String),
}

impl<'p, H> Run<'p, H> {
    fn new(parts: &'p Parts<H>, answers: Answers) -> Run<'p, H> {
        crate::task::reset();
        Run { parts, running: Running::start(answers), state: None }
    }

    /// Does one step. A panic in it goes on from here, after `tell`.
    fn step(&mut self, f: impl FnOnce(&mut Self), tell: impl FnOnce(&str)) -> Done {
        let caught = catch_unwind(AssertUnwindSafe(|| f(self)));
        // What is said here counts more: the code under test may have caught what ended the step.
        match (self.running.ended(), caught) {
            (Some(Ended::Rejected), _) => Done::Rejected,
            (Some(Ended::Misfit(why)), _) => Done::Misfit(why),
            (None, Ok(())) => Done::Passed,
            (None, Err(panic)) => {
                tell(&self.running.with(|host| story(&host.steps)));
                resume_unwind(panic)
            }
        }
    }

    fn set_up(&mut self) {
        self.state = Some((self.parts.setup)());
        self.invariants();
    }

    /// The state, which is there after `setup`.
    fn state(&mut self) -> &mut H {
        self.state.as_mut().expect("a run is set up first")
    }

    fn is_enabled(&self, rule: usize) -> bool {
        let state = self.state.as_ref().expect("a run is set up first");
        self.parts.rules[rule].precondition.is_none_or(|holds| holds(state))
    }

    fn call(&mut self, rule: usize) {
        (self.parts.rules[rule].call)(self.state());
        self.invariants();
    }

    fn invariants(&mut self) {
        for (name, holds) in &self.parts.invariants {
            if !holds(self.state()) {
                panic!("invariant {name}: it does not hold");
            }
        }
    }

    /// Fails where no rule may be called, and none need be.
    fn ensure_no_deadlock(&mut self) {
        let parts = self.parts;
        let is_over = parts.terminal.is_some_and(|terminal| terminal(self.state()));
        let any_enabled = (0..parts.rules.len()).any(|rule| self.is_enabled(rule));
        assert!(any_enabled || is_over, "deadlock: no rule may be called");
    }

    fn tear_down(&mut self) {
        let state = self.state.take().expect("a run is set up first");
        if let Some(teardown) = self.parts.teardown {
            teardown(state);
        }
    }
}

/// See [`super::replay`].
pub(super) fn replay<H>(parts: &Parts<H>, trace: &str) -> Result<(), Misfit> {
    let Trace { fails, steps } = Trace::parse(trace)?;
    let answers = Answers::Recorded { left: [].into(), given: 0, failed: false };
    let mut run = Run::new(parts, answers);
    if parts.is_function {
        run.state = Some((parts.setup)());
    }
    let count = steps.len();
    for (number, step) in (1..).zip(steps) {
        let Step { name, choices } = step;
        let misfit = |why: &str| Err(Misfit::at(number, &name, why));
        let failed = fails && number == count;
        let answers = Answers::Recorded { left: choices.into(), given: 0, failed };
        run.running.with(|host| host.answers = answers);
        let done = match run.perform(&name, number == 1) {
            Ok(done) => done,
            Err(why) => return misfit(&why),
        };
        match done {
            Done::Passed => {}
            Done::Rejected => {
                return misfit("it gives up the run, as `assume` does, and did not when it was recorded");
            }
            Done::Misfit(why) => return misfit(&why),
        }
        let (given, left) = run.running.with(|host| match &host.answers {
            Answers::Recorded { given, left, .. } => (*given, left.len()),
            Answers::Drawn(_) => unreachable!("a replay draws nothing"),
        });
        if left > 0 && !failed {
            return misfit(&format!("it makes {given} choices, and {} were recorded", given + left));
        }
    }
    Ok(())
}

impl<H> Run<'_, H> {
    /// Does the step that a trace names.
    ///
    /// # Errors
    /// There is none of that name, or not here; why.
    fn perform(&mut self, name: &str, is_first: bool) -> Result<Done, String> {
        let says_setup = name == "setup";
        if says_setup != self.state.is_none() || (says_setup && !is_first) {
            return Err(match says_setup {
                true => "setup is the first step of a run, and only that, of a harness".to_string(),
                false => "the run was not set up, or was torn down".to_string(),
            });
        }
        let tell = |story: &str| eprintln!("These steps were replayed:\n{story}");
        let shown = name.strip_prefix("rule ").unwrap_or(name);
        self.running.begin(shown);
        if let Some(rule) = name.strip_prefix("rule ") {
            let known = self.parts.rules.iter().position(|known| known.name == rule);
            let Some(rule) = known.or((self.parts.is_function).then_some(0)) else {
                let names: Vec<&str> = self.parts.rules.iter().map(|rule| rule.name).collect();
                return Err(format!("the harness has no such rule; there are {}", names.join(", ")));
            };
            if !self.is_enabled(rule) {
                return Err("its precondition does not hold".to_string());
            }
            return Ok(self.step(|run| run.call(rule), tell));
        }
        if let Some((fault, on)) = name.strip_prefix("fault ").and_then(|rest| rest.rsplit_once(' ')) {
            self.running.set_fault(fault, on == "on");
            return Ok(self.step(Run::invariants, tell));
        }
        match name {
            "setup" => Ok(self.step(Run::set_up, tell)),
            "teardown" => Ok(self.step(Run::tear_down, tell)),
            "deadlock" => Ok(self.step(Run::ensure_no_deadlock, tell)),
            "loop" => Err("a run without end is replayed by `spelunk replay` alone".to_string()),
            _ if name.starts_with("again ") => {
                Err("a run without end is replayed by `spelunk replay` alone".to_string())
            }
            _ => Err("it is no step that is known here".to_string()),
        }
    }
}

/// See [`super::explore`].
pub(super) fn explore<H>(
    parts: &Parts<H>,
    repeat: &dyn Fn(u64) -> String,
    (seed, runs, steps_max): (u64, u64, usize),
) {
    let mut rejected = 0;
    for number in 0..runs {
        let own = seed.wrapping_add(number);
        let tell = |story: &str| {
            eprintln!("Run {} of {runs} fails, which `{}` repeats:\n{story}", number + 1, repeat(own));
        };
        // Which step comes next is drawn apart from what the steps draw.
        let mut random = Random::new(own);
        let answers = Answers::Drawn(Random::new(random.next()));
        let mut run = Run::new(parts, answers);
        rejected += u64::from(!run.explore(&mut random, steps_max, tell));
    }
    assert!(
        runs == 0 || rejected < runs,
        "all of {runs} runs were given up by `assume` or a filter, so that nothing was explored"
    );
}

impl<H> Run<'_, H> {
    /// Whether the run counts.
    fn explore(&mut self, random: &mut Random, steps_max: usize, tell: impl Fn(&str) + Copy) -> bool {
        self.running.begin("setup");
        if !self.goes_on(Run::set_up, tell) {
            return false;
        }
        let steps = 1 + random.below(steps_max.max(1) as u64);
        for _ in 0..steps {
            let known: Vec<&'static str> = self.running.with(|host| host.known.iter().copied().collect());
            if !known.is_empty() && random.below(8) == 0 {
                let fault = known[random.below(known.len() as u64) as usize];
                let on = random.below(2) == 0;
                self.running.begin(&format!("fault {fault} {}", if on { "on" } else { "off" }));
                self.running.set_fault(fault, on);
                if !self.goes_on(Run::invariants, tell) {
                    return false;
                }
                continue;
            }
            let enabled: Vec<usize> =
                (0..self.parts.rules.len()).filter(|rule| self.is_enabled(*rule)).collect();
            if enabled.is_empty() {
                self.running.begin("deadlock");
                if !self.goes_on(Run::ensure_no_deadlock, tell) {
                    return false;
                }
                break;
            }
            let rule = enabled[random.below(enabled.len() as u64) as usize];
            self.running.begin(self.parts.rules[rule].name);
            if !self.goes_on(|run| run.call(rule), tell) {
                return false;
            }
            if self.parts.is_function {
                break;
            }
        }
        self.running.begin("teardown");
        self.goes_on(Run::tear_down, tell)
    }

    fn goes_on(&mut self, f: impl FnOnce(&mut Self), tell: impl FnOnce(&str)) -> bool {
        match self.step(f, tell) {
            Done::Passed => true,
            Done::Rejected => false,
            Done::Misfit(why) => unreachable!("{why}, and nothing was recorded"),
        }
    }
}
