//! What states of a level led to, as their workers hand it over.

use serde::{Deserialize, Serialize};

use super::claims::Claims;
use super::worker::Job;
use crate::check::sleep::{self, Rules};
use crate::check::{Census, End, Options, Trouble};
use crate::choice::Scripted;
use crate::outcome::Failure;
use crate::target::Holds;
use crate::trace::Action;

/// Of a step that led to more than so many states, the room for them is given back.
const ROOM_MAX: usize = 1024;

/// What the states of a chunk led to.
pub(super) struct Grown<S> {
    /// The index of the first state within its round.
    pub(super) first: usize,
    pub(super) nodes: Vec<GrownNode>,
    pub(super) children: Vec<Child<S>>,
    pub(super) runs: Vec<Run>,
    /// Rules, and how many of their calls were not rejected.
    pub(super) rules: Vec<(u16, u64)>,
    pub(super) scripts: Vec<Scripted>,
    pub(super) trouble: Option<Box<Trouble>>,
}

/// What one state led to; children, runs and rules are the next ones in the chunk.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct GrownNode {
    pub(super) census: Census,
    pub(super) children: usize,
    pub(super) runs: usize,
    pub(super) rules: usize,
    /// Something could be done here, and the bound on steps forbids it.
    pub(super) is_bound: bool,
    /// The bound on runs ended it.
    pub(super) is_cut: bool,
    /// The run fails in the state itself.
    pub(super) fails: bool,
}

/// A state that may be new.
pub(super) struct Child<S> {
    pub(super) action: Action,
    /// The length of its script, which is the next one in the chunk.
    pub(super) script: usize,
    pub(super) state: Option<u128>,
    pub(super) sleep: Rules,
    /// No state: the run ends in the step.
    pub(super) is_end: bool,
    /// It fails.
    pub(super) fails: bool,
    pub(super) holds: Holds,
    /// Which of the steps of its rule it is, of one that is fair in each.
    pub(super) way: Option<u64>,
    pub(super) saved: Option<S>,
}

impl<S> Child<S> {
    pub(super) fn new(action: Action, script: usize) -> Child<S> {
        let (holds, sleep) = (Holds::default(), sleep::NONE);
        Child {
            action,
            script,
            state: None,
            sleep,
            is_end: false,
            fails: false,
            holds,
            way: None,
            saved: None,
        }
    }
}

/// A path that ended.
pub(super) struct Run {
    /// The step after the node's state, and the length of its script; nothing where the path ended in that state.
    pub(super) step: Option<(Action, Vec<Scripted>)>,
    pub(super) end: End,
    /// Which of the node's, from 1.
    pub(super) number: u64,
}

impl Run {
    fn bytes(&self) -> usize {
        let script = self.step.as_ref().map_or(0, |(_, script)| size_of_val(&**script));
        let message = if let End::Failed(failure) = &self.end { failure.message.len() } else { 0 };
        size_of::<Run>() + script + message
    }
}

/// Whether none of these paths failed so.
fn is_new(runs: &[Run], failure: &Failure) -> bool {
    let is_same = |run: &Run| matches!(&run.end, End::Failed(known) if known.is_same(failure));
    !runs.iter().any(is_same)
}

/// How much a chunk led to: there is as much room for the next one at once.
#[derive(Clone, Copy, Default)]
pub(super) struct Sizes {
    nodes: usize,
    children: usize,
    rules: usize,
    scripts: usize,
}

impl<S> Grown<S> {
    pub(super) fn new(first: usize, sizes: Sizes) -> Grown<S> {
        let room = |size: usize| size.min(ROOM_MAX);
        Grown {
            first,
            nodes: Vec::with_capacity(room(sizes.nodes)),
            children: Vec::with_capacity(room(sizes.children)),
            runs: Vec::new(),
            rules: Vec::with_capacity(room(sizes.rules)),
            scripts: Vec::with_capacity(room(sizes.scripts)),
            trouble: None,
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        let Grown { nodes, children, rules, scripts, .. } = self;
        Sizes { nodes: nodes.len(), children: children.len(), rules: rules.len(), scripts: scripts.len() }
    }

    /// Records what a step from the last node led to under all its answers: all of it at once, so that nothing of a
    /// step counts that was tried in vain. No step is the end of a path in the node itself.
    pub(super) fn record(&mut self, led: &mut Led<S>, action: Option<Action>, options: &Options) {
        if !options.lists {
            led.runs.retain(|run| matches!(&run.end, End::Failed(failure) if is_new(&self.runs, failure)));
        }
        let node = self.nodes.last_mut().expect("it was just begun");
        let before = node.census.runs;
        node.census.add(&led.census);
        node.children += led.children.len();
        node.runs += led.runs.len();
        if let Some(Action::Rule(rule)) = action {
            node.rules += 1;
            self.rules.push((rule, led.census.steps - led.census.rejected));
        }
        node.is_bound |= led.is_bound;
        node.is_cut |= led.is_cut;
        node.fails |= led.fails;
        led.runs.iter_mut().for_each(|run| run.number += before);
        self.children.append(&mut led.children);
        self.runs.append(&mut led.runs);
        self.scripts.append(&mut led.scripts);
        let (children, scripts) = (std::mem::take(&mut led.children), std::mem::take(&mut led.scripts));
        *led = match children.capacity().max(scripts.capacity()) <= ROOM_MAX {
            // They are empty, and keep their room for the next step.
            true => Led { children, scripts, ..Led::default() },
            false => Led::default(),
        };
    }

    /// Runs up to now, as far as this worker knows.
    pub(super) fn runs_so_far(&self, job: &Job<'_, S>) -> u64 {
        job.runs + self.nodes.last().map_or(0, |node| node.census.runs)
    }
}

/// What a step led to so far.
pub(super) struct Led<S> {
    pub(super) census: Census,
    pub(super) children: Vec<Child<S>>,
    pub(super) runs: Vec<Run>,
    pub(super) scripts: Vec<Scripted>,
    pub(super) is_bound: bool,
    pub(super) is_cut: bool,
    pub(super) fails: bool,
    /// Bytes that all this holds, about.
    pub(super) bytes: usize,
}

impl<S> Default for Led<S> {
    fn default() -> Led<S> {
        Led {
            census: Census::default(),
            children: Vec::new(),
            runs: Vec::new(),
            scripts: Vec::new(),
            is_bound: false,
            is_cut: false,
            fails: false,
            bytes: 0,
        }
    }
}

impl<S> Led<S> {
    /// Counts a path that ended, and keeps it where it is reported: of those that fail, as many different ones as may count.
    pub(super) fn ended(
        &mut self,
        end: End,
        options: &Options,
        step: impl FnOnce() -> Option<(Action, Vec<Scripted>)>,
    ) {
        self.census.runs += 1;
        self.census.rejected += u64::from(end == End::Rejected);
        let is_told = options.lists
            || matches!(&end, End::Failed(failure) if !options.are_enough(self.runs.len()) && is_new(&self.runs, failure));
        if is_told {
            let run = Run { step: step(), end, number: self.census.runs };
            self.bytes += run.bytes();
            self.runs.push(run);
        }
    }

    /// Takes what failed as the step was tried before, if it `is_cut` before all of that could fail again.
    pub(super) fn failed_before(&mut self, undone: &mut Vec<Run>, is_cut: bool) {
        for run in undone.drain(..).filter(|_| is_cut) {
            if matches!(&run.end, End::Failed(failure) if is_new(&self.runs, failure)) {
                self.bytes += run.bytes();
                self.runs.push(run);
            }
        }
    }

    /// A state that may be new, by these answers.
    pub(super) fn arrived(&mut self, child: Child<S>, script: &[Scripted]) {
        self.bytes += size_of::<Child<S>>() + Claims::BYTES + size_of_val(script);
        self.scripts.extend_from_slice(script);
        self.children.push(child);
    }
}
