//! Targets made of plain Rust values, for the tests of the search.

use crate::choice::Chooser;
use crate::coverage::FeatureSet;
use crate::outcome::{Failure, FailureKind, Halt, Outcome};
use crate::target::{Holds, Liveness, Rule, Target};
use crate::trace::Action;

/// A target whose whole state is a value.
pub(crate) struct Model<S> {
    pub(crate) state: S,
    start: S,
    rules: Vec<Rule>,
    faults: Vec<String>,
    counters: Vec<u8>,
    pub(crate) uses_snapshots: bool,
    pub(crate) has_setup: bool,
    pub(crate) has_teardown: bool,
    pub(crate) is_function: bool,
    /// Pairs of rules that are independent.
    pub(crate) independent: Vec<(u16, u16)>,
    /// Which rules may be called.
    pub(crate) guard: fn(&S, u16) -> bool,
    step: fn(&mut S, Action, &mut Chooser, &mut dyn FnMut(u32)) -> Outcome,
    /// What it says that its state is.
    pub(crate) says: Option<fn(&S) -> Vec<u32>>,
    /// What it claims of runs without end, and what its state says of that.
    pub(crate) liveness: (Vec<Liveness>, fn(&S) -> Holds),
    /// See [`Target::saved_bytes`], while it is in a state.
    pub(crate) saved_bytes: fn(&S) -> usize,
    /// See [`Target::stack_bytes`].
    pub(crate) stack_bytes: Option<usize>,
    /// Steps performed, replayed ones too.
    pub(crate) steps: u64,
    /// Before the step with this number the state becomes this one, which no answer explains.
    pub(crate) drift: Option<(u64, S)>,
    bookmark: Option<S>,
}

impl<S: Clone + std::fmt::Debug> Model<S> {
    /// `step` reports the edges that it goes through.
    pub(crate) fn new(
        start: S,
        rules: &[&str],
        faults: &[&str],
        step: fn(&mut S, Action, &mut Chooser, &mut dyn FnMut(u32)) -> Outcome,
    ) -> Model<S> {
        let rule = |name: &&str| Rule { name: name.to_string(), params: Vec::new() };
        Model {
            state: start.clone(),
            start,
            rules: rules.iter().map(rule).collect(),
            faults: faults.iter().map(ToString::to_string).collect(),
            counters: vec![0; 256],
            uses_snapshots: true,
            has_setup: false,
            has_teardown: false,
            is_function: false,
            independent: Vec::new(),
            guard: |_, _| true,
            step,
            says: None,
            liveness: (Vec::new(), |_| Holds::default()),
            saved_bytes: |_| 0,
            stack_bytes: None,
            steps: 0,
            drift: None,
            bookmark: None,
        }
    }
}

/// A failure with this message, which also names its place.
pub(crate) fn fail(message: &str) -> Outcome {
    let (message, place) = (message.to_string(), Some(message.to_string()));
    Outcome::Fail(Box::new(Failure { kind: FailureKind::Panic, subject: None, message, place }))
}

impl<S: Clone + std::fmt::Debug> Target for Model<S> {
    type Snapshot = S;

    fn rules(&self) -> &[Rule] {
        &self.rules
    }

    fn faults(&self) -> &[String] {
        &self.faults
    }

    fn has_setup(&self) -> bool {
        self.has_setup
    }

    fn has_teardown(&self) -> bool {
        self.has_teardown
    }

    fn is_function(&self) -> bool {
        self.is_function
    }

    fn reset(&mut self) {
        self.state = self.start.clone();
    }

    fn enabled(&mut self, rules: &mut Vec<u16>) -> Result<(), Halt> {
        rules.clear();
        rules.extend((0..self.rules.len() as u16).filter(|rule| (self.guard)(&self.state, *rule)));
        Ok(())
    }

    fn step(&mut self, action: Action, chooser: &mut Chooser) -> Outcome {
        if let Some((_, state)) = self.drift.take_if(|(step, _)| *step == self.steps) {
            self.state = state;
        }
        self.steps += 1;
        let counters = &mut self.counters;
        (self.step)(&mut self.state, action, chooser, &mut |edge| counters[edge as usize] = 1)
    }

    fn liveness(&self) -> &[Liveness] {
        &self.liveness.0
    }

    fn holds(&self) -> Holds {
        self.liveness.1(&self.state)
    }

    fn saved_bytes(&self) -> usize {
        (self.saved_bytes)(&self.state)
    }

    fn stack_bytes(&self) -> Option<usize> {
        self.stack_bytes
    }

    fn snapshot(&mut self) -> Option<S> {
        self.uses_snapshots.then(|| self.state.clone())
    }

    fn restore(&mut self, snapshot: &S) {
        self.state = snapshot.clone();
    }

    fn bookmark(&mut self) -> bool {
        self.bookmark = self.snapshot();
        self.bookmark.is_some()
    }

    fn to_bookmark(&mut self) -> bool {
        self.state = self.bookmark.clone().expect("a state was kept");
        true
    }

    fn coverage(&mut self, seen: &FeatureSet, new: &mut Vec<u32>) {
        seen.take_new(&mut self.counters, new);
    }

    fn is_independent(&self, a: u16, b: u16) -> bool {
        self.independent.contains(&(a, b)) || self.independent.contains(&(b, a))
    }

    fn compared_state(&mut self) -> Result<Option<u128>, Halt> {
        let of = |said: Vec<u32>| xxhash_rust::xxh3::xxh3_128(format!("{said:?}").as_bytes());
        Ok(Some(match self.says {
            Some(says) => of(says(&self.state)),
            None => self.state(),
        }))
    }

    fn says_state(&self) -> bool {
        self.says.is_some()
    }

    fn state(&mut self) -> u128 {
        xxhash_rust::xxh3::xxh3_128(format!("{:?}", self.state).as_bytes())
    }
}
