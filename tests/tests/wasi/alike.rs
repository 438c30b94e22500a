//! Equal runs lead to equal states: on two machines, with and without snapshots, and from a record.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use spelunk::choice::Chooser;
use spelunk::machine::{Machine, Reader, Snapshot};
use spelunk::outcome::Outcome;
use spelunk::target::{Target, perform};
use spelunk::trace::Trace;
use spelunk_tests::Kept;

use super::{WORLDS, World, machine, program, rule};

/// Makes a call that this seed draws.
pub(crate) fn walk(machine: &mut Machine, seed: u64) {
    let action = (rule(machine, "walk"), seed);
    let outcome = perform(machine, &mut Chooser::default(), action, [], &mut Trace::default());
    assert_eq!(outcome, Outcome::Pass);
}

/// The states on the way of so many calls, from a start.
fn states(machine: &mut Machine, start: u64, calls: u64) -> Vec<u128> {
    machine.reset();
    (start..start + calls)
        .map(|seed| {
            walk(machine, seed);
            machine.state()
        })
        .collect()
}

#[test]
fn equal_runs_lead_to_equal_states() {
    for world in WORLDS {
        let (mut one, mut two) = (machine(world), machine(world));
        two.set_uses_snapshots(false).unwrap();
        let mut all = Vec::new();
        for start in [0, 1000, 2000] {
            let states = states(&mut one, start, 300);
            assert_eq!(states, self::states(&mut two, start, 300));
            all.extend(states);
        }
        all.sort_unstable();
        all.dedup();
        // Few calls of a walk change nothing.
        assert!(all.len() > 500, "{world:?}: {}", all.len());
    }
}

/// Whatever was done since: after a restore a run goes on as it did.
#[test]
fn a_restored_state_is_what_it_was() {
    WORLDS.into_iter().for_each(goes_on_after_a_restore);
}

fn goes_on_after_a_restore(world: World) {
    let mut machine = machine(world);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut saved: Vec<(Snapshot, u128, u64, u128)> = Vec::new();
    for seed in 0..600 {
        if seed % 3 == 0 && !saved.is_empty() {
            let (snapshot, state, next, after) = &saved[rng.random_range(0..saved.len())];
            machine.restore(snapshot);
            assert_eq!((machine.state(), machine.live_state()), (*state, machine.live_state()));
            walk(&mut machine, *next);
            assert_eq!(machine.state(), *after);
        }
        let (snapshot, state) = (machine.snapshot().unwrap(), machine.state());
        walk(&mut machine, seed);
        assert_eq!(snapshot.hash(), state);
        saved.push((snapshot, state, seed, machine.state()));
    }
}

#[test]
fn another_machine_goes_on_from_a_record() {
    WORLDS.into_iter().for_each(goes_on_from_a_record);
}

fn goes_on_from_a_record(world: World) {
    let (mut here, mut there) = (machine(world), machine(world));
    let mut kept = Kept::default();
    let mut records = Vec::new();
    for seed in 0..400 {
        walk(&mut here, seed);
        if seed % 20 == 0 {
            let snapshot = here.snapshot().unwrap();
            records.push((snapshot.write(&mut kept).unwrap(), here.state(), seed));
        }
    }
    let program = program(world);
    let mut reader = Reader::new(&mut kept, &program).unwrap();
    for (record, state, seed) in records {
        let read = reader.read(&record).unwrap();
        assert_eq!(read.hash(), state);
        let mut again = Kept::default();
        assert_eq!(read.write(&mut again).unwrap(), record);
        there.restore(&read);
        here.reset();
        (0..=seed).for_each(|seed| walk(&mut here, seed));
        for seed in 5000..5030 {
            walk(&mut there, seed);
            walk(&mut here, seed);
            assert_eq!(there.state(), here.state());
        }
    }
}
