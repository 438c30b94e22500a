//! Crashes: what they leave is the same with and without snapshots, and a store that syncs survives them.

use std::sync::Arc;

use spelunk::budget::Budget;
use spelunk::check::{self, Checked, Options, Order};
use spelunk::choice::Chooser;
use spelunk::file::{Conditions, Environment, HostFault};
use spelunk::machine::{Edges, Limits, Machine, Program, Selection};
use spelunk::outcome::Outcome;
use spelunk::search::Explorer;
use spelunk::target::{Target, attempt};
use spelunk::trace::{Action, Trace};
use spelunk_tests::{check_replays, machine, on_guest_stack, seeded, steps_of, story, wasm};

/// A module that may crash.
fn loaded(wasm: &[u8], limits: Limits) -> anyhow::Result<Arc<Program>> {
    let environment = Environment { faults: vec![HostFault::Crash], ..Environment::default() };
    let selection = Selection { edges: Edges::None, ..Selection::default() };
    let conditions = Conditions { environment, selection, limits };
    Program::load_in(wasm, conditions, None, &Budget::unlimited()).map(Arc::new)
}

/// The example with the settings.
fn program(features: &[&str]) -> Arc<Program> {
    loaded(&wasm("settings-wasi", features), Limits::default()).unwrap()
}

/// Performs so many steps, and after each says the hash of the state: as it is, and computed from all of it.
fn states(
    machine: &mut Machine,
    seed: u64,
    steps: u64,
    restores: bool,
) -> Vec<(Outcome, u128, u128, Option<u128>)> {
    let (mut chooser, mut enabled, mut trace) = (Chooser::default(), Vec::new(), Trace::default());
    machine.reset();
    let mut states = Vec::new();
    for step in 0..steps {
        let action = if step == 0 { Action::Setup } else { Action::Rule(0) };
        let what = (action, seed * 1000 + step);
        let outcome = attempt(machine, &mut chooser, &mut enabled, what, [], &mut trace);
        if restores {
            let saved = machine.snapshot().unwrap();
            attempt(machine, &mut chooser, &mut enabled, (Action::Rule(0), 7), [], &mut trace);
            machine.restore(&saved);
        }
        states.push((outcome, machine.state(), machine.state_from_scratch(), machine.live_state()));
    }
    states
}

#[test]
fn what_a_crash_leaves_does_not_depend_on_snapshots() {
    on_guest_stack(|| {
        let program = program(&["bug"]);
        let (mut saving, mut replaying) = (machine(&program), machine(&program));
        replaying.set_uses_snapshots(false).unwrap();
        for seed in 0..200 {
            let expected = states(&mut saving, seed, 6, false);
            assert_eq!(states(&mut saving, seed, 6, true), expected, "{seed}");
            assert_eq!(states(&mut replaying, seed, 6, false), expected, "{seed}");
        }
    })
}

fn checked(program: &Arc<Program>, order: Order, uses_snapshots: bool) -> Checked {
    let options = Options { order, findings_max: 0, ..Options::default() };
    let mut machines = [machine(program)];
    machines[0].set_uses_snapshots(uses_snapshots).unwrap();
    check::check(&mut machines, &options, &|_| None, &mut |_, _| ()).unwrap()
}

#[test]
fn settings_survive_every_crash() {
    on_guest_stack(|| {
        let program = program(&[]);
        for (order, uses_snapshots) in [(Order::Breadth, true), (Order::Breadth, false), (Order::Depth, true)]
        {
            let Checked { findings, limit, census, .. } = checked(&program, order, uses_snapshots);
            assert_eq!((findings, limit), (Vec::new(), None));
            assert_eq!((census.states, census.pruned, census.choices), (70, 2803, 2802));
        }
    })
}

#[test]
fn without_an_fsync_one_step_and_one_crash_are_enough() {
    on_guest_stack(|| {
        let program = program(&["bug"]);
        let Checked { findings, limit, census, .. } = checked(&program, Order::Breadth, true);
        let steps: Vec<u32> = findings.iter().map(|found| steps_of(&found.trace) as u32).collect();
        assert_eq!((steps, limit, census.states), (vec![1, 2], None, 118));
        for found in &findings {
            check_replays(&program, &found.trace, &found.failure);
        }

        let mut machine = machine(&program);
        let mut explorer = Explorer::new(&mut machine, seeded(0));
        explorer.explore(|progress| progress.findings == 0);
        let found = explorer.findings().next().unwrap().clone();
        let shrunk = spelunk_tests::shrunk(&mut machine, &found);
        check_replays(&program, &shrunk.trace, &shrunk.failure);
        assert_eq!(story(&mut machine, &shrunk.trace), "save low=0 high=0");
    })
}

/// A module that makes a folder in `rule:go`, and is not in it when it starts again.
fn made(text: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "path_create_directory" (func $mkdir (param i32 i32 i32) (result i32)))
            (import "spelunk" "span_begin" (func $span_begin (param i32 i32)))
            (import "spelunk" "span_end" (func $span_end (param i32)))
            (memory (export "memory") 1)
            (data (i32.const 500) "A")
            (func $make (drop (call $mkdir (i32.const 3) (i32.const 500) (i32.const 1))))
            (func $down (param i32)
                (if (local.get 0)
                    (then (call $down (i32.sub (local.get 0) (i32.const 1))))
                    (else (call $make))))
            (func (export "setup"))
            {text})"#
    );
    wat::parse_str(text).unwrap()
}

#[test]
fn nothing_is_left_of_the_call_in_which_a_crash_came() {
    let failures = |text: &str| {
        let limits = Limits { depth_max: 100, ..Limits::default() };
        let program = loaded(&made(text), limits).unwrap();
        let checked = checked(&program, Order::Breadth, true);
        checked.findings.iter().map(|finding| finding.failure.to_string()).collect::<Vec<_>>()
    };
    on_guest_stack(|| {
        // Neither how deep it was.
        let deep = r#"
            (func $deep (param i32) (result i32)
                (if (result i32) (local.get 0)
                    (then (call $deep (i32.sub (local.get 0) (i32.const 1))))
                    (else (i32.const 0))))
            (func (export "recover") (drop (call $deep (i32.const 60))))
            (func (export "rule:go") (call $down (i32.const 70)))"#;
        assert_eq!(failures(deep), Vec::<String>::new());
        // Nor the spans that were open.
        let open = r#"
            (func (export "recover") (call $span_end (i32.const 0)))
            (func (export "rule:go")
                (call $span_begin (i32.const 500) (i32.const 1)) (call $make) (call $span_end (i32.const 0)))"#;
        assert_eq!(failures(open), ["abi: span_end without a span that is open"]);
        // A table that grew would be.
        let grown = r#"
            (table $t 1 8 funcref)
            (func (export "rule:go") (drop (table.grow $t (ref.null func) (i32.const 1))) (call $make))"#;
        let error = loaded(&made(grown), Limits::default()).err().unwrap().to_string();
        assert!(
            error.starts_with("after a crash the guest starts again from what a snapshot holds"),
            "{error}"
        );
    })
}
