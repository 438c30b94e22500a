//! Equal runs lead to equal states: on two machines, with and without snapshots, and from a record; with faults too.

use std::sync::Arc;

use spelunk::choice::Chooser;
use spelunk::file::{Environment, HostFault};
use spelunk::machine::{Machine, Program, Reader};
use spelunk::outcome::Outcome;
use spelunk::target::{Target, perform};
use spelunk::trace::Trace;
use spelunk_tests::{Kept, on_guest_stack};

use super::{environment, load_in, program, rule, wasm};

/// Without faults, and with all of them.
fn programs() -> [Arc<Program>; 2] {
    use HostFault::*;
    let faults = vec![ShortRead, ShortWrite, Eio, Enospc, Eintr, Eagain, ClockJump, Random, Crash];
    [program(), load_in(wasm(), Environment { faults, ..environment() })]
}

/// Makes a call that this seed draws.
fn walk(machine: &mut Machine, seed: u64) {
    let action = (rule(machine, "walk"), seed);
    let outcome = perform(machine, &mut Chooser::default(), action, [], &mut Trace::default());
    assert_eq!(outcome, Outcome::Pass);
}

/// The states on the way of so many calls, from a start.
fn states(machine: &mut Machine, start: u64) -> Vec<u128> {
    machine.reset();
    let after = |seed| {
        walk(machine, seed);
        machine.state()
    };
    (start..start + 300).map(after).collect()
}

#[test]
fn equal_runs_lead_to_equal_states() {
    on_guest_stack(|| {
        for program in programs() {
            let [mut one, mut two] = [(), ()].map(|()| spelunk_tests::machine(&program));
            two.set_uses_snapshots(false).unwrap();
            let mut all = Vec::new();
            for start in [0, 1000, 2000] {
                let states = states(&mut one, start);
                assert_eq!(states, self::states(&mut two, start));
                all.extend(states);
            }
            all.sort_unstable();
            all.dedup();
            // Few calls change nothing.
            assert!(all.len() > 300, "{}", all.len());
        }
    });
}

#[test]
fn a_restored_state_is_what_it_was() {
    on_guest_stack(|| {
        for program in programs() {
            let mut machine = spelunk_tests::machine(&program);
            let mut saved = Vec::new();
            for seed in 0..300 {
                let (snapshot, state) = (machine.snapshot().unwrap(), machine.state());
                assert_eq!(snapshot.hash(), state);
                walk(&mut machine, seed);
                saved.push((snapshot, state, seed, machine.state()));
            }
            for (snapshot, state, seed, after) in saved.iter().rev().step_by(3) {
                machine.restore(snapshot);
                assert_eq!(machine.state(), *state);
                walk(&mut machine, *seed);
                assert_eq!(machine.state(), *after);
            }
        }
    });
}

#[test]
fn another_machine_goes_on_from_a_record() {
    on_guest_stack(|| {
        for program in programs() {
            let [mut here, mut there] = [(), ()].map(|()| spelunk_tests::machine(&program));
            let mut kept = Kept::default();
            let mut records = Vec::new();
            for seed in 0..300 {
                walk(&mut here, seed);
                if seed % 20 == 0 {
                    let snapshot = here.snapshot().unwrap();
                    records.push((snapshot.write(&mut kept).unwrap(), here.state(), snapshot));
                }
            }
            let mut reader = Reader::new(&mut kept, &program).unwrap();
            for (record, state, snapshot) in records {
                let read = reader.read(&record).unwrap();
                assert_eq!(read.hash(), state);
                assert_eq!(read.write(&mut Kept::default()).unwrap(), record);
                there.restore(&read);
                here.restore(&snapshot);
                for seed in 5000..5030 {
                    walk(&mut there, seed);
                    walk(&mut here, seed);
                    assert_eq!(there.state(), here.state());
                }
            }
        }
    });
}
