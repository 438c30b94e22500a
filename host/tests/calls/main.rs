//! Programs that attack the virtual system: every step ends, in time and within an account of memory, and the host never
//! panics.

mod pointers;
mod programs;

use std::sync::Arc;
use std::time::{Duration, Instant};

use spelunk::choice::Chooser;
use spelunk::file::{Conditions, Environment, Limits, Selection};
use spelunk::machine::{Machine, Program};
use spelunk::outcome::Outcome;
use spelunk::target::Target;
use spelunk::trace::Action;

/// The part of the default step budget that a step has here; `HOSTILE_BUDGET` says otherwise. All of it takes two seconds at
/// most.
fn share() -> u32 {
    std::env::var("HOSTILE_BUDGET").map_or(8, |share| share.parse().unwrap())
}

/// What a step may take, on a machine that does other things too.
const STEP_MAX: Duration = Duration::from_millis(1500);
/// What a short step may take in a state of any size, with a snapshot and a hash of it.
const SHORT_STEP_MAX: Duration = Duration::from_millis(100);
/// Bytes that files may have.
const FILES: u64 = 64 << 20;
/// MiB that this process may hold more with one program, its files among them.
const HELD_MAX: u64 = 3 * (FILES >> 20);

fn machine(wasm: &[u8]) -> Machine {
    let default = Limits::default();
    let limits = Limits { step_budget: default.step_budget / share(), ..default };
    let args = (0..1000).map(|n| format!("{n} {}", "a".repeat(1000))).collect();
    let environment = Environment { files_bytes_max: FILES, args, ..Environment::default() };
    let conditions = Conditions { limits, selection: Selection::default(), environment };
    let program = Program::load_in(wasm, conditions, None, &Default::default());
    Machine::new(Arc::new(program.unwrap_or_else(|e| panic!("{e:#}")))).unwrap()
}

fn step(machine: &mut Machine, rule: u16) -> String {
    match machine.step(Action::Rule(rule), &mut Chooser::default()) {
        Outcome::Fail(failure) => format!("{} {}", failure.kind, failure.message),
        other => format!("{other:?}"),
    }
}

/// MiB of this process, at most since `forget_most`.
fn held() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() >> 10
}

fn forget_most() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

#[test]
fn attacks_end_in_time_and_within_the_account() {
    let programs = programs::all();
    assert_eq!(programs.len(), 64);
    let only = std::env::var("HOSTILE_ONLY").unwrap_or_default();
    let mut wrong = Vec::new();
    for programs::Attack { name, wasm, expected } in
        programs.iter().filter(|attack| attack.name.contains(&only))
    {
        forget_most();
        let before = held();
        let mut machine = machine(wasm);
        let began = Instant::now();
        let outcome = step(&mut machine, 0);
        let took = began.elapsed();
        // What was made is there, and the next steps do little in it.
        let began = Instant::now();
        for _ in 0..10 {
            let snapshot = machine.snapshot().unwrap();
            step(&mut machine, 1);
            machine.state();
            machine.live_state();
            machine.restore(&snapshot);
        }
        let each = began.elapsed() / 10;
        let more = held().saturating_sub(before);
        let is_known =
            outcome.split(' ').next() == expected.split(' ').next() && outcome.starts_with(expected);
        println!("{name}: {outcome}, {took:?}, then {each:?}, {more} MiB");
        if !is_known || took > STEP_MAX * 8 / share() || each > SHORT_STEP_MAX || more > HELD_MAX {
            wrong.push(format!("{name}: {outcome}, not {expected}; {took:?}, then {each:?}, {more} MiB"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), programs.len(), wrong.join("\n"));
}

/// Every pointer, as null, at and before the end of memory, and wrapping around.
#[test]
fn bad_pointers_are_traps_or_errors() {
    let (wasm, names) = pointers::module();
    let mut machine = machine(&wasm);
    let (mut traps, mut others) = (0, 0);
    for (rule, name) in (0..).zip(&names) {
        machine.reset();
        match &*step(&mut machine, rule) {
            "Pass" | "Exit" => others += 1,
            "trap out of bounds memory access" => traps += 1,
            outcome => panic!("{name}: {outcome}"),
        }
    }
    assert_eq!((names.len(), traps, others), (532, 348, 184));
}
