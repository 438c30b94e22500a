//! Checks of `examples/symmetry` visit as many states as there are whoever is who, as its own tests count them without Spelunk by
//! trying every order of the participants.

use spelunk_tests::checks;

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

/// A step to a state that differs in who is who alone is one that a claim of runs without end depends on: it may be all that a fair rule does.
#[test]
fn whoever_is_who_a_token_that_is_handed_on_is_not_used() {
    let (findings, census) = checks::findings("tests/guests/holder", &[]);
    assert_eq!((findings, census.states), (vec![("it is used".to_string(), 3)], 5));
}
