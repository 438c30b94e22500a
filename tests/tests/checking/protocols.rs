//! Checks of `examples/protocols` visit the states that the protocols have, as its own tests count them without Spelunk:
//! collections of equal content are equal, wherever they lie in memory.

use spelunk_tests::checks;

const PATH: &str = "examples/protocols";

/// With these features it holds, and has so many states, with so many steps from them.
fn holds(features: &[&str], expected: (u64, u64)) {
    let census = checks::holds(PATH, features);
    assert_eq!((census.states, census.steps), expected, "{features:?}");
}

/// The message of the one finding, its steps, and as above, but for what follows a failure.
fn fails(features: &[&str], message: &str, steps: u32, expected: (u64, u64)) {
    let (found, found_steps, census) = checks::fails(PATH, features);
    assert!(found.starts_with(message), "{features:?}: {found}");
    assert_eq!((found_steps, (census.states, census.steps)), (steps, expected), "{features:?}");
}

#[test]
fn four_gallons_take_six_steps() {
    holds(&["jugs"], (16, 96));
    fails(&["jugs", "four"], "", 6, (14, 84));
}

#[test]
fn locks_of_threads_exclude() {
    holds(&["filter-lock"], (2_731, 8_193));
    holds(&["bakery"], (7_231, 21_693));
    holds(&["readers-writers"], (7_380, 22_946));
}

#[test]
fn a_stack_whose_nodes_come_back_needs_tags() {
    fails(&["treiber"], "Treiber", 12, (16_017, 38_291));
    holds(&["treiber", "tags"], (22_045, 51_219));
}

#[test]
fn the_highest_number_leads() {
    holds(&["ring"], (116, 281));
    holds(&["ring", "n5"], (489, 1_428));
}

#[test]
fn a_term_has_one_leader() {
    holds(&["raft"], (42_149, 573_354));
}

#[test]
fn quorums_of_phase_1_must_meet_those_of_phase_2() {
    holds(&["flexible-paxos"], (513, 1_048));
    fails(&["flexible-paxos", "mistake"], "{Red, Blue}", 10, (3_585, 8_938));
}

#[test]
fn what_is_acknowledged_before_it_is_synced_can_be_lost() {
    holds(&["crash-store"], (1_704, 4_672));
    fails(&["crash-store", "mistake"], "CrashStore", 4, (2_036, 5_886));
}

/// What is claimed of runs without end fails, each with a loop after so many steps, around it and before, of so many states.
fn starves(features: &[&str], expected: &[(&str, u32)], states: u64) {
    let (found, census) = checks::findings(PATH, features);
    let found: Vec<(&str, u32)> = found.iter().map(|(name, steps)| (&**name, *steps)).collect();
    assert_eq!((found, census.states), (expected.to_vec(), states), "{features:?}");
}

#[test]
fn a_writer_starves_unless_who_came_first_is_next() {
    starves(&["lock"], &[("a writer who waits writes", 4)], 22);
    holds(&["lock", "fair"], (33, 66));
}

#[test]
fn a_message_gets_through_where_the_channel_is_strongly_fair() {
    holds(&["alternating-bit"], (228, 1_144));
    let lost = [("a 0 that is sent is received", 9), ("a 1 that is sent is received", 5)];
    starves(&["alternating-bit", "mistake"], &lost, 228);
}

#[test]
fn an_end_is_detected_and_need_not_come() {
    holds(&["termination"], (302, 1_625));
    starves(&["termination", "mistake"], &[("the computation ends", 1)], 302);
}
