//! Exploration: runs start fresh or from promising checkpoints, draw steps, and save a checkpoint wherever a
//! step goes through an edge that no step went through before.
//!
//! Everything that a run does follows from the seed and the run's number. The caller decides after each run
//! whether there is another; no clock is read here.

mod base;
mod called;
mod choose;
mod continuation;
mod dice;
mod discovery;
mod distill;
mod drawn;
pub mod energy;
mod health;
mod history;
mod inputs;
mod knowledge;
mod learn;
mod looks;
mod luck;
mod merge;
mod mutate;
mod operands;
mod parts;
mod replant;
mod rounds;
mod run;
mod solve;
#[cfg(test)]
mod tests;
mod tokens;
mod trim;
mod turns;
mod ways;
mod weights;
mod written;

use serde::{Deserialize, Serialize};

use crate::coverage::FeatureSet;
use crate::outcome::Found;
use crate::property::Counts;
use crate::target::Target;
use crate::trace::Trace;
use energy::{Checkpoints, Energies, Strategy};
use run::{Held, Known, Ran, Runner};

pub use called::Called;
pub use discovery::Discovery;
pub use distill::Distilled;
pub use health::{Symptom, SymptomKind, Vitals};
pub use history::History;
pub use knowledge::{Knowledge, Tally, Values};
pub use looks::Closer;
pub use luck::{LUCKS, Luck};
pub use merge::cover;
pub use replant::{Planted, edges_of, features_of};
pub use tokens::Tokens;
pub use turns::Turn;
pub use ways::{Way, Ways, Yield};

/// A part of the search that can be left out, to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// How often edges are gone through is no news.
    Hits,
    /// No run is looked at more closely.
    Looks,
    /// What small functions do is the same from wherever they are called.
    Contexts,
    /// What is compared takes the place of nothing.
    Operands,
    /// Texts that stand in the target are put into nothing.
    Texts,
    /// The steps of state machines are always drawn in the same way.
    Manners,
    /// Of threads each is as likely to go on.
    Priorities,
}

impl Options {
    /// Leaves out a part.
    pub fn leave_out(&mut self, part: Part) {
        match part {
            Part::Hits => self.tells_hits = false,
            Part::Looks => self.looks = false,
            Part::Contexts => self.contexts = false,
            Part::Operands => self.operand_rate = 0.0,
            Part::Texts => self.gathers = false,
            Part::Manners => self.adapts = false,
            Part::Priorities => self.prioritizes = false,
        }
    }
}

/// How to explore. The defaults are ordeal's but where a measurement said otherwise; `docs/performance.md` has
/// the figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Decides every draw.
    pub seed: u64,
    /// The rules that may be called, by index; empty is all.
    pub rules: Vec<u16>,
    /// What to start runs from.
    pub strategy: Strategy,
    /// Steps in a run, at most, but twice as many where much is found late in runs, and four times as many as that where nothing was
    /// found for long.
    pub steps_max: u32,
    /// How often a run starts from a checkpoint, where there is one. Of those that start anew there are half as
    /// many while much is found, more where nothing was found for long, and for a function an eighth as many.
    pub checkpoint_rate: f64,
    /// How often a step toggles a fault, where there is one.
    pub fault_rate: f64,
    /// How often a rule is called with a changed copy of choices that once found an edge.
    pub mutation_rate: f64,
    /// How often a run from a checkpoint begins with a changed copy of steps that once led to one.
    pub continuation_rate: f64,
    /// How often a run leaves out some of the rules.
    pub swarm_rate: f64,
    /// Checkpoints kept; where it is not said, 256 states, or as many inputs of a function as there is room for.
    pub checkpoints_max: Option<usize>,
    /// The arithmetic of energy.
    pub energies: Energies,
    /// Whether how often a step goes through an edge is news too: of states, once edges are found seldom.
    pub tells_hits: bool,
    /// Whether some runs are looked at in a second build, which tells what they compare and store.
    pub looks: bool,
    /// Whether what small functions do is told apart by where they are called from.
    pub contexts: bool,
    /// How often what is compared with a part of an input, or with a choice, is put in its place.
    pub operand_rate: f64,
    /// Whether the ways to draw the steps of state machines are taken by what they found lately.
    pub adapts: bool,
    /// Whether some runs give the threads of the guest priorities.
    pub prioritizes: bool,
    /// What is put into byte strings: what the user gave, and of a function texts that stand in the target.
    pub tokens: Tokens,
    /// Whether there are to be those.
    pub gathers: bool,
    /// Bytes that saved states may hold. Beyond, those of the checkpoints with the lowest energy are let go, and
    /// reached again by replaying; no result depends on it.
    pub saved_bytes_max: usize,
    /// Bytes that the steps which lead to checkpoints may hold. Beyond, the checkpoints with the lowest energy are dropped.
    pub history_bytes_max: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            rules: Vec::new(),
            strategy: Strategy::Novel,
            steps_max: 50,
            checkpoint_rate: 0.9,
            fault_rate: 0.3,
            mutation_rate: 0.25,
            continuation_rate: 0.1,
            swarm_rate: 0.25,
            checkpoints_max: None,
            tells_hits: true,
            looks: true,
            contexts: true,
            adapts: true,
            prioritizes: true,
            operand_rate: 0.5,
            tokens: Tokens::default(),
            gathers: true,
            energies: Energies::default(),
            saved_bytes_max: 1 << 30,
            history_bytes_max: 256 << 20,
        }
    }
}

/// How far an exploration is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Runs that ended.
    pub runs: u64,
    /// Runs that the guest rejected.
    pub rejected: u64,
    /// Steps performed, setup and teardown included.
    pub steps: u64,
    /// Rules called.
    pub rules: u64,
    /// Edges seen.
    pub edges: u32,
    /// Checkpoints saved, the evicted ones included.
    pub checkpoints: u64,
    /// Steps from the start of a run to the deepest checkpoint that is kept.
    pub deepest: u32,
    /// Different failures found.
    pub findings: usize,
}

/// An exploration of one target, by one worker or several that each have a machine.
///
/// What it comes to does not depend on how many workers there are; see `rounds.rs`.
pub struct Explorer<'t, T: Target> {
    options: Options,
    known: Knowledge<T::Snapshot>,
    runners: Vec<Runner<'t, T>>,
    /// Runs since the last that learned something.
    barren: u64,
    /// The state that fresh runs start from was looked for, where what is known comes from elsewhere.
    has_base: bool,
    /// A run that had learned something was stopped before its end.
    is_torn: bool,
}

impl<'t, T> Explorer<'t, T>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    /// Readies an exploration by one worker.
    pub fn new(target: &'t mut T, options: Options) -> Explorer<'t, T> {
        Explorer::with_workers(std::slice::from_mut(target), options)
    }

    /// Readies an exploration by a worker for each of the targets, of which there is at least one; they are alike.
    pub fn with_workers(targets: &'t mut [T], options: Options) -> Explorer<'t, T> {
        let first = targets.first().expect("an exploration has a worker");
        let known = Knowledge::new(&options, (first.rules().len(), first.is_function()), first.declared());
        Explorer::resume(targets, options, known)
    }

    /// Goes on where another exploration with the same options was.
    pub fn resume(
        targets: &'t mut [T],
        mut options: Options,
        mut known: Knowledge<T::Snapshot>,
    ) -> Explorer<'t, T> {
        if let Some(target) = targets.first().filter(|target| options.gathers && target.is_function()) {
            options.tokens.gathered = target.texts();
        }
        known.looks_from = targets.first().filter(|_| options.looks).and_then(Target::looks_from);
        let runners = targets.iter_mut().map(Runner::new).collect();
        let mut explorer = Explorer { options, known, runners, barren: 0, has_base: false, is_torn: false };
        explorer.shed();
        explorer
    }

    /// Runs until `goes_on`, asked before each run, says no. With several workers it is asked by several threads, which
    /// are ahead of what is known so far: they know the number of runs, and what was learned, but not of all steps.
    pub fn explore(&mut self, goes_on: impl Fn(&Progress) -> bool + Sync) {
        let is_under_way = self.known.tally.runs > 0 || !self.known.checkpoints.is_empty();
        if is_under_way && !std::mem::replace(&mut self.has_base, true) {
            self.runners[0].find_base(&mut self.known);
        }
        match self.runners.len() {
            1 => {
                while goes_on(&self.progress()) {
                    self.run();
                }
            }
            _ => self.explore_in_rounds(&goes_on),
        }
        self.count();
    }

    /// Performs a run's steps, and makes a checkpoint of the state that they lead to, or a finding; see [`Planted`].
    pub fn plant(&mut self, trace: &Trace, energy: f64) -> Planted {
        self.runners[0].plant(&mut self.known, &self.options, trace, (energy, false))
    }

    /// As [`Explorer::plant`] of steps that were recorded on another build: where they cannot be followed to their end, as far as they can be.
    pub fn plant_rebuilt(&mut self, trace: &Trace, energy: f64) -> Planted {
        self.runners[0].plant_rebuilt(&mut self.known, &self.options, trace, energy)
    }

    /// As [`Explorer::plant`] of a function's input, which is shortened before it is kept, with the energy of a new one.
    pub fn plant_input(&mut self, trace: &Trace) -> Planted {
        let energy = self.options.energies.start;
        let planted = self.runners[0].plant(&mut self.known, &self.options, trace, (energy, true));
        self.is_torn |= planted == Planted::Torn;
        planted
    }

    /// Takes over what others found; see [`Knowledge::take_news`].
    pub fn take_news(&mut self, news: &Knowledge<T::Snapshot>) {
        self.known.take_news(news);
        self.barren = 0;
        self.shed();
    }

    /// So many explorations share what they find; see [`Checkpoints::set_sharers`].
    pub fn set_sharers(&mut self, sharers: u32) {
        self.known.checkpoints.set_sharers(sharers);
        self.known.is_shared = sharers > 1;
    }

    /// Adds what others saw of properties and events.
    pub fn see_others(&mut self, counts: &Counts) {
        self.known.tally.counts.add(counts);
    }

    /// How far the exploration is.
    pub fn progress(&self) -> Progress {
        self.known.progress()
    }

    /// Whether what is known is not what whole runs lead to, since the host stopped one that had learned something. It must
    /// not be saved: what was saved before is.
    pub fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// All that is known.
    pub fn knowledge(&self) -> &Knowledge<T::Snapshot> {
        &self.known
    }

    /// What was seen.
    pub fn seen(&self) -> &FeatureSet {
        &self.known.seen
    }

    /// The checkpoints kept.
    pub fn checkpoints(&self) -> &Checkpoints<T::Snapshot> {
        &self.known.checkpoints
    }

    /// The findings in the order in which they were found.
    pub fn findings(&self) -> impl Iterator<Item = &Found> {
        self.known.findings.iter().map(|finding| &**finding)
    }

    /// What the guest said of properties and events.
    pub fn counts(&self) -> &Counts {
        &self.known.tally.counts
    }

    /// The target of the first worker, to shrink findings on.
    pub fn target(&mut self) -> &mut T {
        self.runners[0].target
    }

    /// The next run, by the first worker alone.
    fn run(&mut self) {
        let plan = self.known.plan(&self.options, self.known.tally.runs + 1);
        let known = Known::new(&self.options, &plan, &[], Held::Own(&mut self.known));
        let mut ran = self.runners[0].run(known);
        if ran.is_stopped {
            self.runners[0].target.take_counts();
            // What it learned before it was stopped stays, so this is no state that whole runs lead to.
            self.is_torn |= ran.has_learned;
            if !ran.has_learned {
                self.known.take_back(&[plan]);
            }
            return;
        }
        self.add(&ran);
        // The next run notes where this one did.
        self.runners[0].called = std::mem::take(&mut ran.called);
        if ran.has_learned {
            self.shed();
        }
    }

    /// Lets go of saved states where there are too many.
    fn shed(&mut self) {
        let max = self.options.saved_bytes_max;
        while self.runners[0].target.saved_bytes() > max && self.known.checkpoints.shed() {}
    }

    /// Counts a run.
    fn add(&mut self, ran: &Ran<T::Snapshot>) {
        let target = &self.runners[0].target;
        let width = called::width(target.rules().len(), target.faults().len());
        let tally = &mut self.known.tally;
        tally.runs += 1;
        tally.steps += ran.steps;
        tally.rules += ran.rules;
        tally.rejected += u64::from(ran.is_rejected);
        tally.ways.ran(ran.way, ran.has_edges, ran.has_shown);
        tally.called.count(&ran.called, width);
        if self.known.is_function {
            // Those that found something are noted too.
            tally.called.count_calls(ran.rules.saturating_sub(ran.called.len() as u64));
        }
        self.barren = if ran.has_learned { 0 } else { self.barren + 1 };
    }

    /// Takes over what the first worker's target counted.
    fn count(&mut self) {
        if let Some(counts) = self.runners[0].target.take_counts() {
            self.known.tally.counts.add(&counts);
        }
    }
}
