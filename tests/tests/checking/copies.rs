//! Where a harness is `Clone`, its copies are checked in place of saved states: with the same result, or not at all.

use std::sync::Arc;

use spelunk::check::{self, Checked, Options, TroubleKind};
use spelunk::machine::{Machine, Program, on_guest_stack};
use spelunk::target::Target as _;
use spelunk_tests::checks::{default_options, machines, program, run};

const PATH: &str = "tests/guests/copies";

fn without(program: &Arc<Program>) -> Checked {
    run(program, 1, &Options { copies: false, ..default_options(program) })
}

/// Checks with so many workers whose guests copy states; whether that can be done.
fn copying(program: &Arc<Program>, workers: usize, options: &Options) -> Option<Checked> {
    let mut machines: Vec<Machine> = machines(program, workers);
    assert!(machines[0].begin_copies(), "the guest can copy its states");
    match check::check(&mut machines, options, &|_| None, &mut |_, _| ()) {
        Ok(checked) => Some(checked),
        Err(trouble) => {
            assert_eq!(trouble.kind, TroubleKind::Copies);
            None
        }
    }
}

#[test]
fn copies_that_are_like_the_harness_change_nothing() {
    on_guest_stack(|| {
        for features in [["like"], ["fails"]] {
            let program = program(PATH, &features);
            let expected = without(&program);
            assert_eq!(expected.findings.is_empty(), features == ["like"]);
            assert!(expected.census.rejected > 0 && expected.census.states > 50, "{:?}", expected.census);
            let options = default_options(&program);
            for workers in [1, 2, 3] {
                assert_eq!(copying(&program, workers, &options).as_ref(), Some(&expected), "{features:?}");
            }
            // With no room for copies, each state is reached by steps.
            let small = Options { saved_bytes_max: 0, ..options };
            assert_eq!(copying(&program, 2, &small), Some(expected), "{features:?}");
        }
    });
}

#[test]
fn copies_that_are_not_like_the_harness_are_told() {
    on_guest_stack(|| {
        for features in [["shares"], ["forgets"], ["global"]] {
            let program = program(PATH, &features);
            assert_eq!(copying(&program, 1, &default_options(&program)), None, "{features:?}");
        }
        // What it does then.
        let expected = without(&program(PATH, &["like"]));
        for features in [["shares"], ["forgets"]] {
            assert_eq!(without(&program(PATH, &features)).census, expected.census, "{features:?}");
        }
    });
}
