//! Snapshots, written and read.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use spelunk::choice::{Chooser, Value};
use spelunk::file::Described;
use spelunk::machine::{Blobs, Limits, Machine, Program, Reader, Selection, Snapshot};
use spelunk::target::{Target, perform};
use spelunk::trace::{Action, Trace};

use super::guest::{EVERYTHING, program, step};

#[derive(Clone, Default)]
struct Kept(HashMap<u128, Vec<u8>>);

impl Blobs for Kept {
    fn put(&mut self, hash: u128, bytes: &[u8]) -> Result<()> {
        self.0.insert(hash, bytes.to_vec());
        Ok(())
    }

    fn has(&mut self, hash: u128) -> Result<bool> {
        Ok(self.0.contains_key(&hash))
    }

    fn get(&mut self, hash: u128) -> Result<Vec<u8>> {
        self.0.get(&hash).cloned().context("missing")
    }
}

fn walk(machine: &mut Machine, seed: u64, steps: usize) -> Vec<Snapshot> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    machine.reset();
    let mut snapshots = vec![machine.snapshot().unwrap()];
    for _ in 0..steps {
        step(machine, &mut rng, &mut Trace::default());
        snapshots.push(machine.snapshot().unwrap());
    }
    snapshots
}

#[test]
fn another_machine_loads_what_was_written() {
    let (program, _) = program(EVERYTHING);
    let mut here = Machine::new(program.clone()).unwrap();
    let mut there = Machine::new(program.clone()).unwrap();
    for seed in 0..20 {
        let mut kept = Kept::default();
        let snapshots = walk(&mut here, seed, 60);
        let records: Vec<Vec<u8>> =
            snapshots.iter().map(|snapshot| snapshot.write(&mut kept).unwrap()).collect();
        let mut reader = Reader::new(&mut kept, &program).unwrap();
        let read: Vec<Snapshot> = records.iter().map(|record| reader.read(record).unwrap()).collect();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..100 {
            let at = rng.random_range(0..read.len());
            there.restore(&read[at]);
            assert_eq!(there.state(), snapshots[at].hash());
            assert_eq!(there.state_from_scratch(), snapshots[at].hash());
            here.restore(&snapshots[at]);
            assert_eq!(there.live_state(), here.live_state());
            step(&mut there, &mut rng.clone(), &mut Trace::default());
            step(&mut here, &mut rng, &mut Trace::default());
            assert_eq!(there.state(), here.state());
        }
        // What is written again is the same.
        let mut again = Kept::default();
        for (snapshot, record) in read.iter().zip(&records) {
            assert_eq!(snapshot.write(&mut again).unwrap(), *record);
        }
        assert!(again.0 == kept.0);
    }
}

#[test]
fn pages_are_shared_after_reading() {
    let (program, _) = program(
        r#"(module (memory 16 16)
             (func (export "rule:all") (memory.fill (i32.const 0) (i32.const 7) (i32.const 1048576)))
             (func (export "rule:one") (param i32) (i32.store (i32.const 4096) (local.get 0))))"#,
    );
    let mut machine = Machine::new(program.clone()).unwrap();
    machine.step(Action::Rule(0), &mut Chooser::default());
    let mut kept = Kept::default();
    let mut records = Vec::new();
    for seed in 0..100 {
        let mut chooser = Chooser::default();
        perform(&mut machine, &mut chooser, (Action::Rule(1), seed), [], &mut Trace::default());
        records.push(machine.snapshot().unwrap().write(&mut kept).unwrap());
    }
    // One page and one leaf for each, beside the page that all others are.
    assert!(kept.0.len() <= 2 * records.len() + 2, "{}", kept.0.len());
    let mut reader = Reader::new(&mut kept, &program).unwrap();
    let read: Vec<Snapshot> = records.iter().map(|record| reader.read(record).unwrap()).collect();
    let other = reader.read(&records[0]).unwrap();
    assert_eq!(other.hash(), read[0].hash());
    assert!(read[0].shared_with(&other) == 1024 && read[0].shared_with(&read[1]) == 1023);
}

#[test]
fn no_damaged_record_makes_a_machine_panic() {
    let (program, _) = program(EVERYTHING);
    let mut machine = Machine::new(program.clone()).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for seed in 0..8 {
        let mut kept = Kept::default();
        let snapshot = walk(&mut machine, seed, 60).pop().unwrap();
        let record = snapshot.write(&mut kept).unwrap();
        let mut check = |damaged: &[u8], kept: &mut Kept| {
            let mut reader = Reader::new(kept, &program).unwrap();
            if let Ok(read) = reader.read(damaged) {
                machine.restore(&read);
                assert_eq!(machine.state_from_scratch(), read.hash());
                assert_ne!(read.hash(), snapshot.hash());
            }
        };
        for at in 0..record.len() {
            for flip in [1 << rng.random_range(0..8), rng.random_range(1..=255)] {
                let mut damaged = record.clone();
                damaged[at] ^= flip;
                check(&damaged, &mut kept);
            }
            check(&record[..at], &mut kept);
        }
        for hash in kept.0.keys().copied().collect::<Vec<_>>() {
            let mut damaged = kept.clone();
            let bytes = damaged.0.get_mut(&hash).unwrap();
            let at = rng.random_range(0..bytes.len());
            bytes[at] ^= 1;
            check(&record, &mut damaged);
            damaged.0.remove(&hash);
            check(&record, &mut damaged);
        }
    }
}

#[test]
fn a_record_of_another_program_is_refused() {
    let (everything, _) = program(EVERYTHING);
    let mut kept = Kept::default();
    let record = Machine::new(everything).unwrap().snapshot().unwrap().write(&mut kept).unwrap();
    let (other, _) =
        program(r#"(module (memory 1) (func (export "rule:a") (i32.store (i32.const 0) (i32.const 1))))"#);
    let error = Reader::new(&mut kept, &other).unwrap().read(&record).err().unwrap();
    assert_eq!(format!("{error:#}"), "the snapshot has 2 memories, and the program 1");
}

/// Handles are a part of the state, and a pool is read only as a machine can leave it.
#[test]
fn pools_of_handles_are_written_and_read() {
    let text = r#"(module (func (export "open") (param i64) (result i64) (local.get 0)))"#;
    let signatures =
        "[exports.open]\nparams = [{ type = 'int', min = 1, max = 1_000_000 }]\nreturns = 'handle:h'";
    let signatures = Described::parse(signatures).unwrap().signatures;
    let wasm = signatures.put_into(&wat::parse_str(text).unwrap()).unwrap();
    let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap());
    let mut machine = Machine::new(program.clone()).unwrap();
    let empty = machine.state();
    for handle in [5, 700, 6] {
        let mut chooser = Chooser::default();
        let answer = [Some(Value::Integer(handle))];
        perform(&mut machine, &mut chooser, (Action::Rule(0), 1), answer, &mut Trace::default());
    }
    let snapshot = machine.snapshot().unwrap();
    let mut kept = Kept::default();
    let record = snapshot.write(&mut kept).unwrap();
    let mut read = |record: &[u8]| {
        let read = Reader::new(&mut kept, &program).unwrap().read(record);
        read.map_err(|error| format!("{error:#}"))
    };
    machine.reset();
    assert_eq!(machine.state(), empty);
    machine.restore(&read(&record).unwrap());
    assert_eq!(machine.state(), snapshot.hash());
    assert_ne!(machine.state(), empty);
    let end = record.len();
    assert_eq!(record[end - 32..end - 24], 3u64.to_le_bytes());
    let mut with = |at: usize, number: u64| {
        let mut other = record.clone();
        other[at..at + 8].copy_from_slice(&number.to_le_bytes());
        read(&other).err()
    };
    assert_eq!(with(end - 8, 5).as_deref(), Some("a pool has the handle 5 twice"));
    let many = "a pool has 18446744073709551615 handles, and 1024 are the most";
    assert_eq!(with(end - 32, u64::MAX).as_deref(), Some(many));
    assert_eq!(with(end - 32, 4).as_deref(), Some("the record ends too early"));
    assert_eq!(with(end - 32, 2).as_deref(), Some("8 bytes follow the record"));
}
