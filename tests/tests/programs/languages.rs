//! The examples in C, C++, Zig, AssemblyScript, Go and Rust for WASI are built and fail as their READMEs say.

use std::fs;
use std::sync::Arc;

use spelunk::machine::{Limits, Program, Selection};
use spelunk::search::Explorer;
use spelunk_tests::{first_story, machine, on_guest_stack, seeded, tools};

/// What the example fails with, its shrunk story, and where. Nothing else is found in these many runs.
fn check(example: &str, expected: &str) {
    const RUNS: u64 = 5_000;
    const SEED: u64 = 0;
    let Some(module) = tools::build(example) else { return };
    on_guest_stack(|| {
        let bytes = fs::read(module).unwrap();
        let program = Program::load(&bytes, Limits::default(), Selection::default());
        let program = Arc::new(program.unwrap_or_else(|error| panic!("{example}: {error:#}")));
        let (failure, story) = first_story(&program, SEED);
        assert_eq!(format!("{failure}\n{story}\n{}", failure.place.as_deref().unwrap_or_default()), expected);

        let mut machine = machine(&program);
        let mut explorer = Explorer::new(&mut machine, seeded(SEED));
        explorer.explore(|progress| progress.runs < RUNS);
        let others: Vec<_> = explorer.findings().filter(|found| !found.failure.is_same(&failure)).collect();
        assert!(others.is_empty(), "{others:#?}");
    })
}

#[test]
fn c_fills_the_ring_until_it_seems_empty() {
    let expected = "\
invariant knows_whether_it_is_empty: ring_is_empty(&ring) == (expected_len == 0)
push len=5
push len=4
pop
push len=5
examples/ring-c/harness.c:45:5";
    check("ring-c", expected);
}

#[test]
fn cpp_joins_one_range_of_several() {
    let expected = "\
invariant contains_what_was_received: ranges.contains(position) == expected.contains(position)
receive start=1 end=2
receive start=3 end=4
receive start=0 end=5
examples/ranges-cpp/harness.cpp:41:9";
    check("ranges-cpp", expected);
}

#[test]
fn zig_leaves_two_free_blocks_apart() {
    let expected = "\
panic: found 2, expected 0
allocate len=1
allocate len=1
release start=0 len=1
release start=1 len=1
allocate len=3
harness.zig:20:24";
    check("allocator-zig", expected);
}

#[test]
fn assemblyscript_rolls_back_from_the_wrong_end() {
    let expected = "\
invariant holds_what_was_put: a is 0, expected not there
begin
put key=\"a\" value=0
remove key=\"a\"
rollback
examples/undo-assemblyscript/harness.ts:62:5 in examples/undo-assemblyscript/harness/invariant_holds_what_was_put";
    check("undo-assemblyscript", expected);
}

#[test]
fn go_stops_the_timer_of_another() {
    let expected = "\
panic: stopped timer 0: true, expected false
start ticks=1
stop timer=0
start ticks=1
stop timer=0
examples/timers-go/main.go:47:1 in main.stop";
    check("timers-go", expected);
}

#[test]
fn rust_for_wasi_gives_back_the_lock_of_another() {
    let expected = "\
invariant each_has_its_holder: a is held by None, expected Some(2)
acquire name=\"a\" client=1
wait seconds=30
acquire name=\"a\" client=2
release taken=(\"a\", 1)
examples/lease-wasi/src/lib.rs:63:13";
    check("lease-wasi", expected);
}
