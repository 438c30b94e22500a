//! Checks of `examples/symmetry` visit as many states as there are whoever is who, as its own tests count them without Spelunk by
//! trying every order of the participants.

use spelunk::check::Options;
use spelunk_tests::{checks, steps_of};

const PATH: &str = "examples/symmetry";

/// With these features it holds, and has so many states, with so many steps from them.
fn holds(features: &[&str], expected: (u64, u64)) {
    let census = checks::holds(PATH, features);
    assert_eq!((census.states, census.steps), expected, "{features:?}");
}

/// The steps of the one finding, and as above.
fn fails(features: &[&str], steps: u32, expected: (u64, u64)) {
    let (_, found_steps, census) = checks::fails(PATH, features);
    assert_eq!((found_steps, (census.states, census.steps)), (steps, expected), "{features:?}");
}

#[test]
fn managers_of_resources_are_alike() {
    holds(&["two-phase-commit"], (80, 317));
    holds(&["two-phase-commit", "n7"], (920, 8_409));
    fails(&["two-phase-commit", "mistake"], 7, (93, 365));
}

#[test]
fn threads_at_a_lock_are_alike() {
    holds(&["filter-lock"], (662, 2_354));
    fails(&["filter-lock", "mistake"], 13, (126, 433));
}

#[test]
fn servers_of_an_election_are_alike() {
    holds(&["raft"], (7_122, 96_839));
    fails(&["raft", "mistake"], 7, (84, 662));
}

#[test]
fn readers_are_alike_and_so_are_writers() {
    holds(&["readers-writers"], (900, 2_930));
    holds(&["readers-writers", "n5"], (3_944, 18_391));
    // Where so many steps fail, copies of states do not pay.
    let program = checks::program(PATH, &["readers-writers", "mistake"]);
    let options = Options { copies: false, ..checks::default_options(&program) };
    let checked = checks::run(&program, 1, &options);
    let steps: Vec<usize> = checked.findings.iter().map(|found| steps_of(&found.trace)).collect();
    // One who writes is not alone; and later nobody can go on.
    assert_eq!((steps, checked.census.states, checked.census.steps), (vec![19, 29], 5_324, 20_102));
}

#[test]
fn acceptors_are_alike() {
    holds(&["flexible-paxos"], (173, 375));
    holds(&["flexible-paxos", "n7"], (905, 3_930));
    fails(&["flexible-paxos", "mistake"], 10, (789, 1_985));
}

/// A step to a state that differs in who is who alone is one that a claim of runs without end depends on: it may be all that a fair rule does.
#[test]
fn whoever_is_who_a_token_that_is_handed_on_is_not_used() {
    let (findings, census) = checks::findings("tests/guests/holder", &[]);
    assert_eq!((findings, census.states), (vec![("it is used".to_string(), 3)], 5));
}
