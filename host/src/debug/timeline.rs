//! A replayed trace as a timeline of states: position 0 is the state before the first step, position N the one after step N.
//!
//! All states are recorded in one replay. Where a machine can go back to a state it does; where it cannot, or where a state
//! took too much room to be kept, the steps up to there are performed again, and come to the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};

use crate::budget::{Budget, Over};
use crate::changes::Changes;
use crate::choice::Chooser;
use crate::file::{Hex, name_of};
use crate::machine::{Difference, Machine, Snapshot, Told};
use crate::outcome::{Failure, Outcome};
use crate::replay::{Replayed, replay_each};
use crate::story::Line;
use crate::target::{Target, attempt, follows_preconditions};
use crate::trace::{Action, Trace};

/// Bytes of what steps said of themselves that are kept.
const TOLD_BYTES_MAX: usize = 64 << 20;

/// The states of a trace.
pub struct Timeline {
    machine: Machine,
    trace: Trace,
    end: Replayed,
    /// Steps of the trace as it was recorded; fewer are performed where it goes otherwise.
    recorded: usize,
    budget: Budget,
    /// The hash of the state before the first step.
    begin: u128,
    kept: BTreeMap<usize, Snapshot>,
    /// Of the positions only multiples of this are kept, where memory is scarce.
    stride: usize,
    /// Where the machine is; none where it is in no state of the trace.
    machine_at: Option<usize>,
    told: BTreeMap<usize, Arc<Told>>,
    told_bytes: usize,
}

impl Timeline {
    /// Replays `trace`, whose states are compared where it was recorded on the same build, and keeps its states in about `room` bytes.
    ///
    /// # Errors
    /// The budget was over before the end.
    pub fn new(mut machine: Machine, trace: &Trace, compares: bool, room: usize) -> Result<Timeline> {
        let budget = machine.program().budget().clone();
        let (mut kept, mut stride, mut begin) = (BTreeMap::new(), 1, 0);
        let (end, again) = replay_each(&mut machine, trace, compares, |machine, position| {
            let image = machine.image();
            if position == 0 {
                begin = image.hash();
            }
            if position % stride == 0 {
                kept.insert(position, image);
            }
            // The first stays: it is where what is performed again begins.
            while machine.saved_bytes() > room && kept.len() > 2 {
                stride *= 2;
                kept.retain(|position, _| position % stride == 0);
            }
        });
        if end == Replayed::Stopped {
            check(&budget)?;
        }
        // Where it goes otherwise, preconditions may have been evaluated after the last step.
        let machine_at = Some(again.len()).filter(|_| !matches!(end, Replayed::Diverged { .. }));
        Ok(Timeline {
            machine,
            recorded: trace.len(),
            trace: again,
            end,
            budget,
            begin,
            kept,
            stride,
            machine_at,
            told: BTreeMap::new(),
            told_bytes: 0,
        })
    }

    /// Steps that are performed, which is the last position.
    pub fn len(&self) -> usize {
        self.trace.len()
    }

    /// Whether there is no step.
    pub fn is_empty(&self) -> bool {
        self.trace.is_empty()
    }

    /// Steps of the trace as it was recorded.
    pub fn recorded(&self) -> usize {
        self.recorded
    }

    /// How the replay ended.
    pub fn end(&self) -> &Replayed {
        &self.end
    }

    /// The failure, at the position after the step that failed.
    pub fn failure(&self, position: usize) -> Option<&Failure> {
        match &self.end {
            Replayed::Failed(failure) if position == self.len() => Some(failure),
            _ => None,
        }
    }

    /// The machine, in whatever state it is.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The steps that were performed.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The hash of the state at a position, as the replay computed it.
    pub fn hash(&self, position: usize) -> u128 {
        match position.checked_sub(1) {
            Some(step) => {
                self.trace.steps()[step].state.expect("a replay computes the state after each step")
            }
            None => self.begin,
        }
    }

    /// Has the machine go to a position, and compares the state that it comes to with the one that it was in before.
    ///
    /// # Errors
    /// The guest is not deterministic; the budget is over.
    pub fn go(&mut self, position: usize) -> Result<u128> {
        assert!(position <= self.len(), "there is no position {position}");
        self.reach(position)?;
        let (found, expected) = (self.machine.state(), self.hash(position));
        ensure!(
            found == expected,
            "the guest is not deterministic: after step {position} its state is {}, and was {}",
            String::from(Hex(found)),
            String::from(Hex(expected))
        );
        Ok(found)
    }

    fn reach(&mut self, position: usize) -> Result<()> {
        check(&self.budget)?;
        let uses_snapshots = self.machine.uses_snapshots();
        let kept = self.kept.range(..=position).next_back().filter(|_| uses_snapshots);
        let from = match (self.machine_at.filter(|at| *at <= position), kept) {
            (Some(at), Some((kept, _))) if at >= *kept => at,
            (Some(at), None) => at,
            (_, Some((kept, state))) => {
                self.machine.restore(state);
                *kept
            }
            (None, None) => {
                self.machine.reset();
                0
            }
        };
        self.machine_at = None;
        let mut chooser = Chooser::default();
        let (mut enabled, mut again) = (Vec::new(), Trace::default());
        for step in &self.trace.steps()[from..position] {
            again.clear();
            let (what, recorded) = ((step.action, step.seed), self.trace.recorded(step));
            let outcome = attempt(&mut self.machine, &mut chooser, &mut enabled, what, recorded, &mut again);
            if outcome == Outcome::Stopped {
                check(&self.budget)?;
            }
        }
        self.machine_at = Some(position);
        Ok(())
    }

    /// The state at a position, to be looked at.
    ///
    /// # Errors
    /// As [`Timeline::go`].
    pub fn image(&mut self, position: usize) -> Result<Snapshot> {
        check(&self.budget)?;
        if let Some(image) = self.kept.get(&position) {
            return Ok(image.clone());
        }
        self.go(position)?;
        Ok(self.machine.image())
    }

    /// What step `number`, from 1, said of itself: it is performed once more, and asked.
    ///
    /// # Errors
    /// The budget is over.
    pub fn told(&mut self, number: usize) -> Result<Arc<Told>> {
        if let Some(told) = self.told.get(&number) {
            return Ok(told.clone());
        }
        self.reach(number - 1)?;
        self.machine_at = None;
        let step = self.trace.steps()[number - 1];
        if follows_preconditions(step.action) {
            // A precondition that fails is the failure, and tells nothing.
            let _ = self.machine.enabled(&mut Vec::new());
        }
        let mut chooser = Chooser::default();
        chooser.begin(step.seed, self.trace.recorded(&step));
        let told = Arc::new(self.machine.tell(step.action, &mut chooser));
        check(&self.budget)?;
        self.keep_told(number, &told);
        Ok(told)
    }

    fn keep_told(&mut self, number: usize, told: &Arc<Told>) {
        let pairs = told.args.iter().chain(&told.state).map(|(name, value)| name.len() + value.len());
        let texts = told.notes.iter().chain(&told.chosen).map(String::len);
        let noted = told.noted_at.values().map(|places| 64 + 8 * places.len()).sum::<usize>();
        let bytes =
            256 + pairs.chain(texts).map(|len| len + 64).sum::<usize>() + told.stack.len() * 256 + noted;
        if self.told_bytes + bytes > TOLD_BYTES_MAX {
            self.told.clear();
            self.told_bytes = 0;
        }
        self.told_bytes += bytes;
        self.told.insert(number, told.clone());
    }

    /// What the guest says its state is at a position; nothing where it does not say.
    ///
    /// # Errors
    /// The budget is over.
    pub fn described(&mut self, position: usize) -> Result<Arc<Told>> {
        let calls_nothing = |action| matches!(action, Action::Deadlock | Action::Loop | Action::Again(_));
        let mut number = position;
        while number > 0 && calls_nothing(self.trace.steps()[number - 1].action) {
            number -= 1;
        }
        if number == 0 { Ok(Arc::default()) } else { self.told(number) }
    }

    /// Step `number`, from 1, as a story has it.
    ///
    /// # Errors
    /// The budget is over.
    pub fn line(&mut self, number: usize) -> Result<Line> {
        let told = self.told(number)?;
        let mut changes = Changes::default();
        if !told.state.is_empty() {
            // A step in which the rule itself fails leads to no state that is described.
            let mut before = number - 1;
            let mut then = self.described(before)?;
            while then.state.is_empty() && before > 0 {
                before -= 1;
                then = self.described(before)?;
            }
            changes = Changes::between(&then.state, &told.state);
        }
        let action = self.trace.steps()[number - 1].action;
        let told = Told::clone(&told);
        Ok(Line { name: self.name(number), action, told, changes, free: Vec::new(), is_droppable: false })
    }

    /// What step `number`, from 1, is called: `deposit`, `fault disk_full on`, `setup`.
    pub fn name(&self, number: usize) -> String {
        match self.trace.steps()[number - 1].action {
            Action::Rule(rule) => self.machine.rules()[usize::from(rule)].name.clone(),
            action => name_of(&self.machine, action),
        }
    }

    /// Which bytes of the memories step `number`, from 1, changed.
    ///
    /// # Errors
    /// As [`Timeline::go`].
    pub fn written(&mut self, number: usize) -> Result<Vec<Difference>> {
        let (before, after) = (self.image(number - 1)?, self.image(number)?);
        let memories = self.machine.program().memories().len();
        Ok((0..memories).map(|memory| after.difference(&before, memory)).collect())
    }

    /// Positions whose states are kept.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Every how many positions a state is kept: 1 where all are.
    pub fn stride(&self) -> usize {
        self.stride
    }
}

fn check(budget: &Budget) -> Result<()> {
    match budget.check() {
        Err(stopped) if stopped.over == Over::Interrupt => bail!("interrupted"),
        checked => Ok(checked?),
    }
}
