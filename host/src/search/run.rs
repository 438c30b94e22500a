//! One run: it draws steps, performs them, and learns from what they do.

use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::Options;
use super::continuation::Continuation;
use super::energy::{News, Strategy};
use super::history::History;
use super::knowledge::{Knowledge, Plan};
use super::luck::{Begun, Manner};
use super::ways::Way;
use crate::choice::{Chooser, Value, small_seed};
use crate::coverage::FeatureSet;
use crate::outcome::{Halt, Outcome};
use crate::target::{Scores, Target, last_step, perform_begun};
use crate::trace::{Action, Trace};

/// So many runs in the beginning draw small values only.
const SMALL_RUNS: u64 = 64;

/// A run asks after so many steps whether there is time for more.
const POLL: u32 = 256;

/// A run ends after the step with which its answers have so many bytes.
const DRAWN_BYTES_MAX: u64 = 8 << 20;

/// What a run knows when it starts, and what it learns.
pub(super) struct Known<'k, S> {
    pub(super) options: &'k Options,
    pub(super) plan: &'k Plan,
    /// The plans of later runs, which take for granted that this one learns nothing.
    pub(super) later: &'k [Plan],
    pub(super) held: Held<'k, S>,
    has_learned: bool,
}

pub(super) enum Held<'k, S> {
    /// No other run looks at it.
    Own(&'k mut Knowledge<S>),
    /// Others look at it at the same time.
    Shared(&'k Knowledge<S>),
    /// What was shared, and what was learned since.
    Learned(Box<Knowledge<S>>),
}

/// What a run did.
pub(super) struct Ran<S> {
    pub(super) steps: u64,
    pub(super) rules: u64,
    pub(super) is_rejected: bool,
    pub(super) has_learned: bool,
    pub(super) way: Way,
    pub(super) has_edges: bool,
    pub(super) has_shown: bool,
    /// See [`Runner::note`].
    pub(super) called: Vec<u32>,
    /// The host stopped the guest: the run was not performed to its end, and does not count.
    pub(super) is_stopped: bool,
    /// What is known after it, where it learned and did not own what it knew.
    pub(super) learned: Option<Box<Knowledge<S>>>,
}

impl<'k, S: Clone> Known<'k, S> {
    pub(super) fn new(
        options: &'k Options,
        plan: &'k Plan,
        later: &'k [Plan],
        held: Held<'k, S>,
    ) -> Known<'k, S> {
        Known { options, plan, later, held, has_learned: false }
    }

    pub(super) fn get(&self) -> &Knowledge<S> {
        match &self.held {
            Held::Own(known) => known,
            Held::Shared(known) => known,
            Held::Learned(known) => known,
        }
    }

    /// What is known, to add to it.
    pub(super) fn learn(&mut self) -> &mut Knowledge<S> {
        let is_first = !std::mem::replace(&mut self.has_learned, true);
        if let Held::Shared(known) = self.held {
            self.held = Held::Learned(Box::new(known.clone()));
        }
        let known = match &mut self.held {
            Held::Own(known) => known,
            Held::Learned(known) => &mut **known,
            Held::Shared(_) => unreachable!("it was just copied"),
        };
        if is_first {
            known.take_back(self.later);
            known.take_back_energy(self.plan);
        }
        known
    }
}

/// One that executes runs, with its target. The buffers are reused.
pub(super) struct Runner<'t, T: Target> {
    pub(super) target: &'t mut T,
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) chooser: Chooser,
    pub(super) enabled: Vec<u16>,
    /// How the checkpoint that the run started from, or saved last, was reached.
    pub(super) history: Arc<History>,
    /// The steps since.
    pub(super) trace: Trace,
    /// Steps from the start.
    pub(super) depth: u32,
    pub(super) new_edges: u32,
    /// What else it showed first: numbers that it observed, and of states how often a step went through an edge.
    pub(super) new_numbers: u32,
    /// The index of the checkpoint that the run started from, while it is kept.
    pub(super) checkpoint: Option<usize>,
    /// The number of the checkpoint that the run started from, or saved last.
    pub(super) parent: Option<u64>,
    /// Rules that are left out.
    pub(super) left_out: Vec<u16>,
    /// The rule that is called more often.
    pub(super) favourite: Option<u16>,
    /// After so many steps other rules are left out.
    pub(super) phase: u32,
    pub(super) faults: Vec<bool>,
    pub(super) recorded: Vec<Option<Value>>,
    /// Scratch: bytes that are changed.
    pub(super) bytes: Vec<u8>,
    /// What to do before steps are drawn.
    pub(super) continuation: Continuation,
    /// Features that the last step showed and that are new.
    pub(super) new: Vec<u32>,
    /// All that the input shows which is kept, and the guest steps that it takes.
    pub(super) shown: Vec<u32>,
    pub(super) work: u64,
    /// Scores of the last step that are the highest so far.
    pub(super) risen: Vec<(u64, f64)>,
    /// The last step made choices.
    pub(super) drew: bool,
    pub(super) steps: u64,
    pub(super) rules: u64,
    /// Which rules the run called.
    pub(super) called: Vec<u32>,
    pub(super) is_rejected: bool,
    pub(super) has_failed: bool,
    pub(super) is_stopped: bool,
    /// The run only tries what a closer look suggests, and is looked at.
    pub(super) is_trial: bool,
}

/// Whether a run goes on after a step.
#[derive(PartialEq)]
pub(super) enum Flow {
    GoOn,
    End,
}

impl<'t, T: Target> Runner<'t, T> {
    pub(super) fn new(target: &'t mut T) -> Runner<'t, T> {
        Runner {
            rng: Xoshiro256PlusPlus::seed_from_u64(0),
            chooser: Chooser::default(),
            enabled: Vec::new(),
            history: Arc::new(History::start()),
            trace: Trace::default(),
            depth: 0,
            new_edges: 0,
            new_numbers: 0,
            checkpoint: None,
            parent: None,
            left_out: Vec::new(),
            favourite: None,
            phase: u32::MAX,
            faults: vec![false; target.faults().len()],
            recorded: Vec::new(),
            bytes: Vec::new(),
            continuation: Continuation::default(),
            new: Vec::new(),
            shown: Vec::new(),
            work: 0,
            risen: Vec::new(),
            drew: false,
            steps: 0,
            rules: 0,
            called: Vec::new(),
            is_rejected: false,
            has_failed: false,
            is_stopped: false,
            is_trial: false,
            target,
        }
    }

    /// Executes the run that is planned.
    pub(super) fn run(&mut self, mut known: Known<'_, T::Snapshot>) -> Ran<T::Snapshot> {
        (self.steps, self.rules, self.new_edges, self.new_numbers) = (0, 0, 0, 0);
        [self.is_rejected, self.has_failed, self.is_stopped, self.is_trial] = [false; 4];
        if known.plan.tells_hits(known.options) && !known.get().seen.tells_hits() {
            known.learn().tell_hits();
        }
        self.rng = known.plan.rng.clone();
        self.called.clear();
        self.trace.clear();
        self.chooser.drawn_bytes = 0;
        self.chooser.priorities.begin(None);
        self.checkpoint = known.plan.checkpoint.map(|selected| selected.index);
        let is_guided = self.checkpoint.is_some();
        self.draw_continuation(&known);
        let is_function = self.target.is_function();
        let flow = match self.checkpoint {
            Some(index) if !is_function => self.start_from(&known, index),
            _ => self.start_fresh(&mut known),
        };
        if flow == Flow::GoOn {
            self.save_start(&mut known);
            let steps = if is_function {
                1
            } else {
                let len = self.draw_len(known.plan.steps_max(known.options), is_guided, known.plan.manner);
                len.max(self.continuation.len() as u32)
            };
            let is_phased = known.plan.manner == Some(Manner::Phases);
            self.leave_out_rules(if is_phased { 1.0 } else { known.options.swarm_rate });
            let rules = self.target.rules().len() as u16;
            let is_again = known.plan.manner == Some(Manner::Again) && rules > 0;
            self.favourite = if is_again { Some(self.rng.random_range(0..rules)) } else { None };
            self.phase = if is_phased { steps.div_ceil(3) } else { u32::MAX };
            if known.options.prioritizes {
                // Drawn from a copy: what else is drawn does not depend on it.
                self.chooser.priorities.begin(Some(known.plan.rng.clone().random()));
            }
            self.draw_steps(&mut known, steps);
        }
        let is_looked_at = (known.plan.is_looked_at || self.is_trial) && !self.is_stopped;
        let shown = if is_looked_at { self.look_closer(&mut known) } else { 0 };
        if known.has_learned {
            self.settle(&mut known, shown);
        }
        Ran {
            steps: self.steps,
            rules: self.rules,
            is_rejected: self.is_rejected,
            is_stopped: self.is_stopped,
            has_learned: known.has_learned,
            way: Way::of(known.plan, is_function),
            has_edges: self.new_edges > 0,
            has_shown: shown + self.new_numbers > 0,
            called: std::mem::take(&mut self.called),
            learned: match known.held {
                Held::Learned(known) => Some(known),
                _ => None,
            },
        }
    }

    /// Tells what the run started from that it found something, or did not.
    fn settle(&self, known: &mut Known<'_, T::Snapshot>, shown: u32) {
        let start = Begun { start: known.plan.start, moved: known.plan.moved, manner: known.plan.manner };
        let learned = known.learn();
        if self.new_edges > 0 {
            learned.luck.found(start, News::Edges);
        }
        if shown + self.new_numbers > 0 {
            learned.luck.found(start, News::Shown);
        }
        if shown > 0 {
            learned.luck.looked();
        }
        if let Some(index) = self.checkpoint {
            learned.checkpoints.ran(index, self.new_edges + (shown + self.new_numbers).min(1));
        }
    }

    fn draw_steps(&mut self, known: &mut Known<'_, T::Snapshot>, count: u32) {
        let mut has_evaluated = false;
        for at in 0..count {
            if at > 0 && at % self.phase == 0 {
                self.leave_out_rules(1.0);
            }
            let flow = match self.draw_action(known) {
                Ok(Some(action)) => self.step(known, action),
                Ok(None) => {
                    has_evaluated = true;
                    break;
                }
                Err(halt) => self.precondition_halted(known, Action::Rule(0), halt),
            };
            if flow == Flow::End {
                return;
            }
            if at % POLL == POLL - 1 && self.target.is_over() {
                self.is_stopped = true;
                return;
            }
            let is_told = known.get().is_shared && self.new_edges > 0;
            let is_full = self.trace.is_full() || self.chooser.drawn_bytes > DRAWN_BYTES_MAX;
            if self.is_trial || is_told || is_full {
                break;
            }
        }
        if !self.target.has_teardown() {
            return;
        }
        // As a replay does before it, since preconditions may write.
        if !has_evaluated && let Err(halt) = self.target.enabled(&mut self.enabled) {
            self.precondition_halted(known, Action::Teardown, halt);
            return;
        }
        self.step(known, Action::Teardown);
    }

    fn start_from(&mut self, known: &Known<'_, T::Snapshot>, index: usize) -> Flow {
        let checkpoint = known.get().checkpoints.get(index);
        self.depth = checkpoint.step;
        self.parent = Some(checkpoint.id);
        self.faults.copy_from_slice(&checkpoint.faults);
        self.history = checkpoint.history.clone();
        match (&checkpoint.snapshot, checkpoint.state) {
            (Some(snapshot), _) => self.target.restore(snapshot),
            (None, Some(state)) if self.target.recall(state) => {}
            (None, _) => self.replay(),
        }
        Flow::GoOn
    }

    pub(super) fn forget_coverage(&mut self) {
        self.target.coverage(&FeatureSet::default(), &mut self.new);
        self.target.scores(&Scores::new(), &mut self.risen);
        self.new.clear();
        self.risen.clear();
    }

    /// A precondition fails before any rule can be chosen; the first stands for all in the trace.
    fn precondition_halted(
        &mut self,
        known: &mut Known<'_, T::Snapshot>,
        action: Action,
        halt: Halt,
    ) -> Flow {
        match halt {
            Halt::Stopped => self.is_stopped = true,
            Halt::Fail(failure) => {
                self.trace.push(last_step(action, &failure), 0);
                self.found(known, *failure);
            }
        }
        Flow::End
    }

    /// Performs one step, and looks at what it did.
    pub(super) fn step(&mut self, known: &mut Known<'_, T::Snapshot>, action: Action) -> Flow {
        let seed = self.rng.random();
        let seed = if known.plan.number <= SMALL_RUNS { small_seed(seed) } else { seed };
        let what = (action, seed);
        self.target.set_counts(true);
        self.chooser.begin_with(seed, &mut self.recorded);
        let outcome = perform_begun(self.target, &mut self.chooser, what, &mut self.trace);
        self.target.set_counts(false);
        self.drew = self.trace.last_drew();
        self.depth += 1;
        self.steps += 1;
        match action {
            Action::Fault(fault, on) => self.faults[usize::from(fault)] = on,
            Action::Rule(_) => self.rules += 1,
            Action::Setup | Action::Teardown | Action::Deadlock | Action::Loop | Action::Again(_) => {}
        }
        if outcome == Outcome::Stopped {
            self.is_stopped = true;
            return Flow::End;
        }
        let (new_edges, new_numbers) = self.look(known);
        self.note(action, new_edges > 0);
        match outcome {
            Outcome::Fail(failure) => {
                self.has_failed = true;
                self.found(known, *failure);
                return Flow::End;
            }
            Outcome::Reject(_) => {
                self.is_rejected = true;
                return Flow::End;
            }
            Outcome::Pass | Outcome::Exit | Outcome::Stopped => {}
        }
        let has_ended = outcome == Outcome::Exit;
        if new_edges + new_numbers > 0 && known.options.strategy != Strategy::Random {
            self.keep_news(known, action, (new_edges, new_numbers), has_ended);
        }
        if has_ended || self.is_stopped { Flow::End } else { Flow::GoOn }
    }

    /// Keeps what the last step showed that is new: of a function its input, and else the state.
    fn keep_news(
        &mut self,
        known: &mut Known<'_, T::Snapshot>,
        action: Action,
        (new_edges, new_numbers): (u32, u32),
        has_ended: bool,
    ) {
        let is_function = self.target.is_function();
        if is_function && matches!(action, Action::Rule(_)) {
            self.trim(known.get());
            if self.is_stopped {
                return;
            }
        }
        let news = if new_edges > 0 { News::Edges } else { News::Shown };
        if news == News::Edges {
            self.remember(known, action);
            if self.checkpoint.is_some() && !is_function {
                known.learn().luck.reached(self.trace.len());
            }
        }
        // Of a function an input is kept, which setup has none of.
        let is_start = match action {
            Action::Teardown | Action::Deadlock | Action::Loop | Action::Again(_) => false,
            Action::Setup => !is_function,
            // Nothing can follow, but of a function its input is kept.
            Action::Rule(_) | Action::Fault(..) => !has_ended || is_function,
        };
        if is_start {
            self.save(known, new_edges + new_numbers, news);
        }
    }
}
