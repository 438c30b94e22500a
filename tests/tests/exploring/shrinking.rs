//! Shrinking of stateful guests: whatever is deleted or changed, what remains is a run of the guest.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use spelunk::load::{Build, load};
use spelunk::machine::{Limits, Machine, Program, Selection};
use spelunk::outcome::Found;
use spelunk::search::energy::Strategy;
use spelunk::search::{Explorer, Options};
use spelunk_tests::{
    check_replays, explore, machine, on_guest_stack, program, seeded, shrunk, steps_of, story,
};

/// A guest below `tests/guests`.
fn guest(name: &str) -> Arc<Program> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests").join(name);
    let wasm = load(&folder, &Build::default(), &mut |_, _| {}).unwrap();
    Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap())
}

/// The guest panics at a move that is illegal on its board, so the only failure there is says that all were
/// legal; and the moves that are possible depend on all moves before.
#[test]
fn every_trace_of_a_game_consists_of_legal_moves() {
    on_guest_stack(|| {
        let program = guest("game");
        let mut machine = machine(&program);
        let mut results: BTreeMap<String, u32> = BTreeMap::new();
        for seed in 1..=30 {
            let (finding, _) = explore(&mut machine, seeded(seed), 10_000);
            let finding = finding.expect("there is a bug");
            assert_eq!(finding.failure.subject.as_deref(), Some("gap_is_known"));
            check_replays(&program, &finding.trace, &finding.failure);
            let shrunk = shrunk(&mut machine, &finding);
            assert_eq!(shrunk.others, []);
            check_replays(&program, &shrunk.trace, &shrunk.failure);
            *results.entry(story(&mut machine, &shrunk.trace)).or_default() += 1;
        }
        let moves = ["Right", "Right", "Down", "Down", "Up"].map(|slide| format!("step step={slide}"));
        assert_eq!(results, BTreeMap::from([(moves.join("\n"), 30)]));
    })
}

/// A failure of the store with a bug after at least so many steps.
fn long_finding(machine: &mut Machine, steps_min: usize) -> Found {
    (1..)
        .find_map(|seed| {
            let options = Options { strategy: Strategy::Random, steps_max: 80, ..seeded(seed) };
            let mut explorer = Explorer::new(machine, options);
            explorer.explore(|progress| progress.findings == 0 && progress.runs < 200);
            explorer.findings().find(|finding| steps_of(&finding.trace) >= steps_min).cloned()
        })
        .expect("some seed finds a long one")
}

#[test]
fn sixty_steps_over_a_store_shrink_to_five() {
    on_guest_stack(|| {
        let program = program("kv", &["bug"]);
        let mut machine = machine(&program);
        let expected = "put key=\"a\" value=0\nreopen\ndelete key=\"a\"\ncompact from=1 to=1\nreopen";
        let finding = long_finding(&mut machine, 60);
        let shrunk = shrunk(&mut machine, &finding);
        check_replays(&program, &shrunk.trace, &shrunk.failure);
        assert_eq!(story(&mut machine, &shrunk.trace), expected);
    })
}
