//! Exhaustive checks of packages in this repository: exact verdicts, exact counts.

use std::path::Path;
use std::sync::Arc;

use spelunk::check::{self, Census, Checked, Options, Order};
use spelunk::load::{Build, load};
use spelunk::machine::{Edges, Limits, Machine, Program, Selection, on_guest_stack};
use spelunk::outcome::Found;
use spelunk::property::Property;

use crate::{check_replays, steps_of};

/// A target below the root of the workspace, as a check loads it.
///
/// # Panics
/// It cannot be built or loaded.
pub fn program(path: &str, features: &[&str]) -> Arc<Program> {
    built(path, features, None)
}

/// As [`program`], with a profile of cargo's as it is.
///
/// # Panics
/// As there.
pub fn built(path: &str, features: &[&str], profile: Option<&str>) -> Arc<Program> {
    let features: Vec<String> = features.iter().map(|feature| feature.to_string()).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let wasm =
        load(&root.join(path), &Build { features: &features, profile, ..Build::default() }, &mut |_, _| {});
    let wasm = wasm.unwrap_or_else(|error| panic!("{path}: {error:#}"));
    let selection = Selection { edges: Edges::None, ..Selection::default() };
    Arc::new(Program::load(&wasm, Limits::default(), selection).unwrap())
}

/// So many machines, for as many workers.
///
/// # Panics
/// There is no room for one.
pub fn machines(program: &Arc<Program>, count: usize) -> Vec<Machine> {
    (0..count).map(|_| Machine::new(program.clone()).unwrap()).collect()
}

/// Checks with so many workers, as long as it takes.
///
/// # Panics
/// The target cannot be checked.
pub fn run(program: &Arc<Program>, workers: usize, options: &Options) -> Checked {
    check::check(&mut machines(program, workers), options, &|_| None, &mut |_, _| ()).unwrap()
}

/// What is seen of properties in a check by these machines.
///
/// # Panics
/// The target cannot be checked.
pub fn seen(machines: &mut [Machine], options: &Options) -> Vec<Property> {
    let mut counts = machines[0].program().declared();
    let told = (&|_: &_| None, &mut |_: &_, _: &_| ());
    check::check_keeping(machines, options, (told.0, told.1), (None, &mut counts)).unwrap();
    counts.properties.iter().cloned().collect()
}

/// The order and the comparison of states that the command line takes by itself.
pub fn default_options(program: &Program) -> Options {
    let order = if program.is_function() { Order::Depth } else { Order::Breadth };
    Options { order, prunes: !program.is_function(), findings_max: 0, ..Options::default() }
}

/// Checks to the end with one worker and with three; every finding must replay.
fn check_all(path: &str, features: &[&str]) -> Checked {
    on_guest_stack(|| {
        let program = program(path, features);
        let options = default_options(&program);
        let checked = run(&program, 1, &options);
        assert_eq!(run(&program, 3, &options), checked, "{path} {features:?}");
        assert_eq!(checked.limit, None);
        for finding in &checked.findings {
            check_replays(&program, &finding.trace, &finding.failure);
        }
        checked
    })
}

/// What a check to the end counts, whatever the number of workers.
///
/// # Panics
/// It does not hold.
pub fn holds(path: &str, features: &[&str]) -> Census {
    let checked = check_all(path, features);
    assert_eq!(checked.findings, [], "{path} {features:?}");
    checked.census
}

/// The message of the one finding of a check to the end, the steps of its trace, and what was counted.
///
/// # Panics
/// It holds, or fails in several ways, or the finding does not replay.
pub fn fails(path: &str, features: &[&str]) -> (String, u32, Census) {
    let checked = check_all(path, features);
    let [finding] = &checked.findings[..] else { panic!("{path} {features:?}: {:?}", checked.findings) };
    let steps = steps_of(&finding.trace) as u32;
    (finding.failure.message.clone(), steps, checked.census)
}

/// What each finding of a check to the end is of, by name, with the steps of its trace; and what was counted.
pub fn findings(path: &str, features: &[&str]) -> (Vec<(String, u32)>, Census) {
    let checked = check_all(path, features);
    let of = |finding: &Found| {
        let subject = finding.failure.subject.clone().unwrap_or_default();
        (subject, steps_of(&finding.trace) as u32)
    };
    (checked.findings.iter().map(of).collect(), checked.census)
}
