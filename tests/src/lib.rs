//! What tests of the explorer share: guests as machines, explorations, and stories as text.

pub mod checks;
pub mod components;
pub mod fleet;
pub mod modules;
pub mod ratios;
pub mod tools;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use spelunk::choice::Chooser;
use spelunk::load::{Build, load};
pub use spelunk::machine::on_guest_stack;
use spelunk::machine::{Blobs, Limits, Machine, Program, Selection, Snapshot};
use spelunk::outcome::{Failure, Found, Outcome};
use spelunk::replay::{Replayed, replay};
use spelunk::search::{Explorer, Knowledge, Options, Progress};
use spelunk::shrink::{Shrunk, shrink};
use spelunk::story;
use spelunk::target::{Target, perform};
use spelunk::trace::{Action, Trace};

/// The bytes of the example at `path` below `examples/`, built with these features.
pub fn wasm(path: &str, features: &[&str]) -> Arc<[u8]> {
    type Built = BTreeMap<(String, Vec<String>), Arc<[u8]>>;
    static BUILT: Mutex<Built> = Mutex::new(Built::new());
    let features: Vec<String> = features.iter().map(|feature| feature.to_string()).collect();
    let mut built = BUILT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let build = || {
        let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples"));
        let build = Build { features: &features, ..Build::default() };
        let bytes = load(&examples.join(path), &build, &mut |_, _| {});
        bytes.unwrap_or_else(|error| panic!("{path}: {error:#}")).into()
    };
    built.entry((path.to_string(), features.clone())).or_insert_with(build).clone()
}

/// The program that an example is.
pub fn program(path: &str, features: &[&str]) -> Arc<Program> {
    let program = Program::load(&wasm(path, features), Limits::default(), Selection::default());
    Arc::new(program.unwrap_or_else(|error| panic!("{path}: {error:#}")))
}

/// A machine of its own for this program.
pub fn machine(program: &Arc<Program>) -> Machine {
    Machine::new(program.clone()).unwrap_or_else(|error| panic!("{error:#}"))
}

/// Explores until the first finding, or until these many runs are over.
pub fn explore(machine: &mut Machine, options: Options, runs_max: u64) -> (Option<Found>, Progress) {
    let mut explorer = Explorer::new(machine, options);
    explorer.explore(|progress| progress.findings == 0 && progress.runs < runs_max);
    (explorer.findings().next().cloned(), explorer.progress())
}

/// What so many runs find.
///
/// # Panics
/// They find something else without snapshots.
pub fn found_either_way(program: &Arc<Program>, runs: u64) -> Vec<Found> {
    let [with, without] = [true, false].map(|uses_snapshots| {
        let mut machine = machine(program);
        machine.set_uses_snapshots(uses_snapshots).expect("it can do without");
        let mut explorer = Explorer::new(&mut machine, seeded(1));
        explorer.explore(|progress| progress.runs < runs);
        explorer.findings().cloned().collect::<Vec<_>>()
    });
    assert_eq!(without, with);
    with
}

/// What some workers know after so many runs, each part of them by an exploration that goes on where the last was.
pub fn known(
    program: &Arc<Program>,
    options: &Options,
    workers: usize,
    parts: &[u64],
) -> Knowledge<Snapshot> {
    let mut machines: Vec<Machine> = (0..workers).map(|_| machine(program)).collect();
    let mut known = None;
    for runs in parts {
        let mut explorer = match known.take() {
            None => Explorer::with_workers(&mut machines, options.clone()),
            Some(known) => Explorer::resume(&mut machines, options.clone(), known),
        };
        explorer.explore(|progress| progress.runs < *runs);
        known = Some(explorer.knowledge().clone());
    }
    known.expect("there is a part")
}

/// All of it that may not depend on workers and parts.
pub fn exact(known: &Knowledge<Snapshot>) -> impl PartialEq + Debug + use<> {
    let checkpoints =
        known.checkpoints.iter().map(|c| (c.id, c.news, c.energy.to_bits(), c.selected, c.work));
    let checkpoints: Vec<_> = checkpoints.collect();
    (known.progress(), known.features.clone(), checkpoints, known.luck, known.findings.clone())
}

/// The default options with this seed.
pub fn seeded(seed: u64) -> Options {
    Options { seed, ..Options::default() }
}

/// Shrinks a finding to where no pass helps.
pub fn shrunk(machine: &mut Machine, finding: &Found) -> Shrunk {
    let shrunk = shrink(machine, &finding.trace, &finding.failure, &[], u64::MAX, |_, _| true);
    shrunk.unwrap_or_else(|not| panic!("{}: {not:?}", finding.failure))
}

/// Replays a trace on a new machine. Panics unless it ends in the same failure.
pub fn check_replays(program: &Arc<Program>, trace: &Trace, failure: &Failure) {
    match replay(&mut machine(program), trace, true) {
        (Replayed::Failed(found), _) if found.is_same(failure) => {}
        (other, _) => panic!("{failure}: the replay came to {other:?}"),
    }
}

/// The first finding of this seed, shrunk, and its story. Before and after, it replays.
pub fn first_story(program: &Arc<Program>, seed: u64) -> (Failure, String) {
    let mut machine = machine(program);
    let (finding, _) = explore(&mut machine, seeded(seed), 100_000);
    let finding = finding.expect("there is a bug");
    check_replays(program, &finding.trace, &finding.failure);
    let shrunk = shrunk(&mut machine, &finding);
    check_replays(program, &shrunk.trace, &shrunk.failure);
    let story = story(&mut machine, &shrunk.trace);
    (shrunk.failure, story)
}

/// What a trace does, a line a step: `transfer from="a" to="b" amount=10`. Setup and teardown are left out.
pub fn story(machine: &mut Machine, trace: &Trace) -> String {
    let lines = story::tell(machine, trace).into_iter();
    let lines = lines.filter(|line| !matches!(line.action, Action::Setup | Action::Teardown)).map(|line| {
        let args = line.told.args.iter().map(|(name, value)| format!(" {name}={value}"));
        format!("{}{}", line.name, args.collect::<String>())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Rules called and faults toggled.
pub fn steps_of(trace: &Trace) -> usize {
    trace.steps().iter().filter(|step| matches!(step.action, Action::Rule(_) | Action::Fault(..))).count()
}

/// The rule of this name.
///
/// # Panics
/// There is none.
pub fn rule(machine: &Machine, name: &str) -> Action {
    let index = machine.rules().iter().position(|rule| rule.name == name);
    Action::Rule(index.unwrap_or_else(|| panic!("there is no rule {name}")) as u16)
}

/// An outcome as text.
pub fn shown(outcome: Outcome) -> String {
    match outcome {
        Outcome::Fail(failure) => failure.to_string(),
        other => format!("{other:?}"),
    }
}

/// What each rule comes to from the start state, but for one that is called `walk`.
pub fn outcomes(machine: &mut Machine) -> BTreeMap<String, String> {
    let names: Vec<String> = machine.rules().iter().map(|rule| rule.name.clone()).collect();
    let mut found = BTreeMap::new();
    for name in names.into_iter().filter(|name| name != "walk") {
        machine.reset();
        let action = (rule(machine, &name), 0);
        let outcome = perform(machine, &mut Chooser::default(), action, [], &mut Trace::default());
        found.insert(name, shown(outcome));
    }
    found
}

/// The middle one.
pub fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

/// Parts of portable snapshots, in memory.
#[derive(Default)]
pub struct Kept(pub HashMap<u128, Vec<u8>>);

impl Blobs for Kept {
    fn put(&mut self, hash: u128, bytes: &[u8]) -> anyhow::Result<()> {
        self.0.insert(hash, bytes.to_vec());
        Ok(())
    }

    fn has(&mut self, hash: u128) -> anyhow::Result<bool> {
        Ok(self.0.contains_key(&hash))
    }

    fn get(&mut self, hash: u128) -> anyhow::Result<Vec<u8>> {
        self.0.get(&hash).cloned().context("it is not kept")
    }
}
