//! Snapshots as bytes and the campaign store, on guests in the text format.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use spelunk::choice::Chooser;
use spelunk::file::Hex;
use spelunk::machine::{Blobs, Limits, Machine, Program, Reader, Selection, Snapshot};
use spelunk::outcome::Outcome;
use spelunk::store::{FILE, Header, Loaded, Record, Saved, Store};
use spelunk::target::{Target, perform};
use spelunk::trace::{Action, Trace};

/// Two memories, globals of all types, a table, a segment that is dropped, a fault.
const EVERYTHING: &str = r#"(module
  (type $unary (func (result i32)))
  (memory $m 1 6) (memory $n 1 1)
  (table $t 8 funcref) (elem $e func $one $two) (data $d "abcdefghijklmnop")
  (global $i (mut i32) (i32.const 0)) (global $l (mut i64) (i64.const 0))
  (global $f (mut f32) (f32.const 0)) (global $g (mut f64) (f64.const 0))
  (global $v (mut v128) (v128.const i64x2 0 0)) (global $r (mut funcref) (ref.null func))
  (global $s (mut (ref $unary)) (ref.func $one))
  (func $one (type $unary) (i32.const 1)) (func $two (type $unary) (i32.const 2))
  (func $three (param i32)) (elem declare func $three)
  (func (export "rule:store") (param $a i32) (param $v i64)
    (i64.store (i32.and (local.get $a) (i32.const 65528)) (local.get $v)))
  (func (export "rule:second") (param $a i32) (param $v i32)
    (i32.store $n (i32.and (local.get $a) (i32.const 65532)) (local.get $v)))
  (func (export "rule:fill") (param $a i32) (param $v i32) (param $n i32)
    (memory.fill (i32.and (local.get $a) (i32.const 32767)) (local.get $v) (i32.and (local.get $n) (i32.const 16383))))
  (func (export "rule:init") (param $to i32)
    (memory.init $d (i32.and (local.get $to) (i32.const 65535)) (i32.const 0) (i32.const 16)))
  (func (export "rule:drop") (data.drop $d))
  (func (export "rule:grow") (drop (memory.grow $m (i32.const 1))))
  (func (export "rule:globals") (param i32 i64 f32 f64)
    (global.set $i (local.get 0)) (global.set $l (local.get 1))
    (global.set $f (local.get 2)) (global.set $g (local.get 3))
    (global.set $v (i64x2.splat (local.get 1))))
  (func (export "rule:references") (param i32)
    (global.set $r (ref.func $two)) (global.set $s (ref.func $two))
    (table.set $t (i32.and (local.get 0) (i32.const 7)) (ref.func $three)))
  (func (export "rule:elements") (table.init $t $e (i32.const 3) (i32.const 0) (i32.const 2)))
  (func (export "fault:disk") (param i32)))"#;

fn program(wat: &str) -> (Arc<Program>, Vec<u8>) {
    let wasm = wat::parse_str(wat).unwrap();
    (Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap()), wasm)
}

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

/// Performs a random step.
fn step(machine: &mut Machine, rng: &mut Xoshiro256PlusPlus, trace: &mut Trace) {
    let action = match rng.random_range(0..10) {
        0 => Action::Fault(0, rng.random()),
        _ => Action::Rule(rng.random_range(0..Target::rules(machine).len()) as u16),
    };
    let mut chooser = Chooser::default();
    let before = machine.snapshot().unwrap();
    let outcome = perform(machine, &mut chooser, (action, rng.random()), [], trace);
    if outcome != Outcome::Pass {
        machine.restore(&before);
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

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("store").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn header(program: &Program) -> Header {
    Header { module: Hex(program.hash()), target: "everything".into(), settings: json!({"seed": 1}) }
}

/// All that a campaign is, kept naively.
#[derive(Clone)]
struct Model {
    counters: serde_json::Value,
    checkpoints: BTreeMap<u64, (Record, Option<Snapshot>)>,
    histories: BTreeMap<u64, (Option<u64>, Trace)>,
    edges: Vec<(u64, u64)>,
    findings: BTreeMap<String, serde_json::Value>,
    lists: serde_json::Value,
}

impl Model {
    fn new() -> Model {
        Model {
            counters: json!(null),
            checkpoints: BTreeMap::new(),
            histories: BTreeMap::new(),
            edges: Vec::new(),
            findings: BTreeMap::new(),
            lists: json!(null),
        }
    }

    /// Goes on for a while; returns the edges that are new.
    fn advance(&mut self, machine: &mut Machine, rng: &mut Xoshiro256PlusPlus) -> Vec<(u64, u64)> {
        self.counters = json!({"runs": rng.random::<u32>(), "steps": u64::MAX});
        let parents: Vec<u64> = self.checkpoints.keys().copied().collect();
        for _ in 0..rng.random_range(0..6) {
            let parent = parents.get(rng.random_range(0..parents.len().max(1))).copied();
            let mut steps = Trace::default();
            match parent {
                Some(parent) => machine.restore(self.checkpoints[&parent].1.as_ref().unwrap()),
                None => machine.reset(),
            }
            (0..rng.random_range(1..5)).for_each(|_| step(machine, rng, &mut steps));
            steps.set_state(machine.state());
            let id = 1 + self.histories.keys().last().copied().unwrap_or_default();
            let history = parent.map(|parent| self.checkpoints[&parent].0.history);
            self.histories.insert(id, (history, without_spans(&steps)));
            let record = Record {
                id,
                parent,
                state: rng.random_bool(0.9).then(|| rng.random()),
                faults: vec![rng.random()],
                energy: rng.random::<f64>() / 3.0,
                new_edges: rng.random_range(0..4),
                step: rng.random(),
                run: rng.random(),
                selected: 0,
                history: id,
            };
            self.checkpoints.insert(id, (record, machine.snapshot()));
        }
        for (record, _) in self.checkpoints.values_mut() {
            if rng.random_bool(0.3) {
                record.selected += 1;
                record.energy *= 0.95;
            }
        }
        self.checkpoints.retain(|_, _| rng.random_bool(0.9));
        let edges: Vec<(u64, u64)> = (0..rng.random_range(0..5)).map(|_| rng.random()).collect();
        self.edges.extend(&edges);
        if rng.random_bool(0.3) {
            self.findings.insert(format!("f{}", rng.random_range(0..5)), json!({"run": rng.random::<u32>()}));
        }
        if rng.random_bool(0.1) {
            self.findings.pop_first();
        }
        self.lists = json!([rng.random_range(0..2)]);
        edges
    }

    fn save(&self, store: &mut Store, program: &Program, edges: &[(u64, u64)]) -> Result<()> {
        store.save(&Saved {
            program,
            counters: self.counters.clone(),
            checkpoints: self.checkpoints.values().map(|(r, s)| (r.clone(), s.as_ref())).collect(),
            histories: self
                .histories
                .iter()
                .filter(|(id, _)| !store.has_history(**id))
                .map(|(id, (parent, steps))| (*id, *parent, steps))
                .collect(),
            edges,
            findings: self.findings.clone().into_iter().collect(),
            lists: self.lists.clone(),
        })
    }

    /// Whether this is what was loaded; of a store that is new, `null` stands for what there is none of.
    fn is(&self, loaded: &Loaded) -> bool {
        let checkpoints = self.checkpoints.values().map(|(record, snapshot)| (record, hash(snapshot)));
        let loaded_checkpoints = loaded.checkpoints.iter().map(|(record, snapshot)| (record, hash(snapshot)));
        let histories = self.histories.iter().map(|(id, (parent, steps))| (*id, *parent, steps));
        let loaded_histories = loaded.histories.iter().map(|(id, parent, steps)| (*id, *parent, steps));
        checkpoints.eq(loaded_checkpoints)
            && histories.eq(loaded_histories)
            && self.counters == loaded.counters
            && self.edges == loaded.edges
            && self.findings.iter().eq(loaded.findings.iter().map(|(id, finding)| (id, finding)))
            && self.lists == loaded.lists
    }
}

fn hash(snapshot: &Option<Snapshot>) -> Option<u128> {
    snapshot.as_ref().map(Snapshot::hash)
}

fn without_spans(trace: &Trace) -> Trace {
    let mut copy = Trace::default();
    for step in trace.steps() {
        copy.push(step.action, step.seed);
        copy.chose(&mut trace.choices(step).to_vec(), &mut Vec::new());
        if let Some(state) = step.state {
            copy.set_state(state);
        }
    }
    copy
}

#[test]
fn what_is_saved_is_loaded() {
    let (program, wasm) = program(EVERYTHING);
    let mut machine = Machine::new(program.clone()).unwrap();
    for seed in 0..6 {
        let folder = folder(&format!("model{seed}"));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let opened = Store::open(&folder).unwrap();
        assert_eq!(opened.found, None);
        let mut store = opened.store;
        store.begin(&header(&program), &wasm).unwrap();
        assert!(store.begin(&header(&program), &wasm).is_err());
        let mut model = Model::new();
        assert!(model.is(&store.load(&program).unwrap()));
        for _ in 0..20 {
            let edges = model.advance(&mut machine, &mut rng);
            model.save(&mut store, &program, &edges).unwrap();
            match rng.random_range(0..6) {
                0 => {
                    drop(store);
                    let opened = Store::open(&folder).unwrap();
                    assert_eq!(opened.found, Some(header(&program)));
                    store = opened.store;
                }
                1 => {
                    let collected = store.collect_garbage().unwrap();
                    assert_eq!(collected.after, store.file_bytes().unwrap());
                    model.histories.retain(|id, _| store.has_history(*id));
                }
                // What is refused changes nothing.
                2 => {
                    let mut wrong = model.clone();
                    wrong.checkpoints.clear();
                    wrong.histories.insert(1_000_000, (Some(999_999), Trace::default()));
                    let error = wrong.save(&mut store, &program, &[(1, 1)]).unwrap_err();
                    assert!(format!("{error:#}").contains("not stored before it"), "{error:#}");
                }
                _ => {}
            }
            assert!(model.is(&store.load(&program).unwrap()));
        }
        assert_eq!(store.module().unwrap(), wasm);
        for (record, trace) in store.load_traces(&machine).unwrap() {
            let trace = trace.unwrap();
            let mut expected = Trace::default();
            let mut chain = vec![record.history];
            while let Some(parent) = model.histories[&chain[chain.len() - 1]].0 {
                chain.push(parent);
            }
            for id in chain.into_iter().rev() {
                let steps = &model.histories[&id].1;
                expected.extend(steps, steps.len());
            }
            assert_eq!(trace, expected);
        }
    }
}

#[test]
fn traces_that_do_not_fit_are_told_apart() {
    let two = r#"(module (func (export "rule:a")) (func (export "rule:b")))"#;
    let one = r#"(module (func (export "rule:b")))"#;
    let (program_two, wasm) = program(two);
    let (program_one, _) = program(one);
    let mut store = Store::open(&folder("traces")).unwrap().store;
    store.begin(&header(&program_two), &wasm).unwrap();
    let mut model = Model::new();
    for (id, rule) in [(1, 1), (2, 0), (3, 1)] {
        let mut steps = Trace::default();
        steps.push(Action::Rule(rule), id);
        model.histories.insert(id, (None, steps));
        let record = Record {
            id,
            parent: None,
            state: None,
            faults: Vec::new(),
            energy: 1.0,
            new_edges: 1,
            step: 1,
            run: 1,
            selected: 0,
            history: id,
        };
        model.checkpoints.insert(id, (record, None));
    }
    model.save(&mut store, &program_two, &[]).unwrap();
    let traces = store.load_traces(&Machine::new(program_one.clone()).unwrap()).unwrap();
    let shown = traces.iter().map(|(_, trace)| match trace {
        Ok(trace) => format!("{:?}", trace.steps()[0].action),
        Err(error) => format!("{error:#}"),
    });
    let expected = ["Rule(0)", "step 1 (`rule a`): the target has no rule `a`", "Rule(0)"];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    let error = store.load(&program_one).err().unwrap();
    assert!(format!("{error:#}").contains("of another build of the module"), "{error:#}");
}

/// A campaign of some checkpoints, closed.
fn campaign(name: &str, program: &Arc<Program>, wasm: &[u8]) -> (PathBuf, Model) {
    let folder = folder(name);
    let mut machine = Machine::new(program.clone()).unwrap();
    let mut store = Store::open(&folder).unwrap().store;
    store.begin(&header(program), wasm).unwrap();
    let mut model = Model::new();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for _ in 0..10 {
        let edges = model.advance(&mut machine, &mut rng);
        model.save(&mut store, program, &edges).unwrap();
    }
    (folder, model)
}

/// Opens a damaged file: it is told that it is damaged, or has lost nothing.
fn check_damaged(folder: &Path, model: &Model, program: &Program, wasm: &[u8]) -> bool {
    let opened = match Store::open(folder) {
        Ok(opened) => opened,
        Err(error) => {
            let text = format!("{error:#}");
            assert!(text.contains("--fresh"), "{text}");
            return true;
        }
    };
    assert_eq!(opened.found, Some(header(program)));
    assert_eq!(opened.store.module().unwrap(), wasm);
    assert!(model.is(&opened.store.load(program).unwrap()));
    false
}

#[test]
fn a_damaged_file_is_told_or_has_lost_nothing() {
    let (program, wasm) = program(EVERYTHING);
    let (folder, model) = campaign("damaged", &program, &wasm);
    let file = folder.join(FILE);
    let whole = std::fs::read(&file).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let mut damaged = 0;
    for count in 0..400 {
        let at = match count {
            // All of the head, what is used, and anything.
            0..320 => count,
            320..370 => used[rng.random_range(0..used.len())],
            _ => rng.random_range(0..whole.len()),
        };
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << rng.random_range(0..8);
        std::fs::write(&file, bytes).unwrap();
        damaged += usize::from(check_damaged(&folder, &model, &program, &wasm));
    }
    assert!(damaged > 50, "{damaged}");
    for count in 0..40 {
        let len = if count < 20 { count * 20 } else { rng.random_range(0..whole.len()) };
        std::fs::write(&file, &whole[..len]).unwrap();
        check_damaged(&folder, &model, &program, &wasm);
    }
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert!(check_damaged(&folder, &model, &program, &wasm));
    let aside = |name: &str| Some(folder.join(name));
    assert_eq!(Store::set_aside(&folder, false).unwrap(), aside("campaign.redb.old"));
    assert_eq!(Store::set_aside(&folder, false).unwrap(), None);
    assert_eq!(Store::open(&folder).unwrap().found, None);
    assert_eq!(Store::set_aside(&folder, false).unwrap(), aside("campaign.redb.old2"));
}

fn check_error(folder: &Path, expected: &str) {
    let error = format!("{:#}", Store::open(folder).err().unwrap());
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_newer_version_is_refused() {
    let folder = folder("newer");
    drop(Store::open(&folder).unwrap());
    let database = redb::Database::open(folder.join(FILE)).unwrap();
    let writing = database.begin_write().unwrap();
    let table = redb::TableDefinition::<&str, &[u8]>::new("meta");
    writing
        .open_table(table)
        .unwrap()
        .insert("format", &*lz4_flex::block::compress_prepend_size(b"7"))
        .unwrap();
    writing.commit().unwrap();
    drop(database);
    check_error(&folder, "has version 7 of the format, and this Spelunk reads up to 1: use a newer Spelunk");
}

#[test]
fn a_campaign_is_open_once() {
    let folder = folder("twice");
    let opened = Store::open(&folder).unwrap();
    check_error(&folder, "another process has the campaign");
    let error = Store::set_aside(&folder, false).unwrap_err();
    assert!(format!("{error:#}").contains("another process has the campaign"), "{error:#}");
    drop(opened);
    let unfinished = folder.join(format!("{FILE}.new1"));
    std::fs::write(&unfinished, "left by a process that was ended").unwrap();
    assert!(Store::open(&folder).is_ok());
    assert!(!unfinished.exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let folder = folder("unwritable");
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    std::fs::write(&folder, "a file").unwrap();
    check_error(&folder, "--in-memory");
    std::fs::remove_file(&folder).unwrap();
}

#[test]
fn a_small_campaign_is_a_small_file() {
    let (program, wasm) = program(EVERYTHING);
    let folder = folder("small");
    let mut machine = Machine::new(program.clone()).unwrap();
    let mut store = Store::open(&folder).unwrap().store;
    store.begin(&header(&program), &wasm).unwrap();
    let mut model = Model::new();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    while model.checkpoints.len() < 8 {
        let edges = model.advance(&mut machine, &mut rng);
        model.save(&mut store, &program, &edges).unwrap();
    }
    let open = store.file_bytes().unwrap();
    drop(store);
    let closed = std::fs::metadata(folder.join(FILE)).unwrap().len();
    println!("{} checkpoints: {open} bytes, {closed} when closed", model.checkpoints.len());
    assert!(open <= 1_500_000 && closed <= 1_500_000);
}

/// States of 4 MiB that differ a little.
#[test]
fn large_states_cost_what_they_changed() {
    let folder = folder("large");
    let (program, wasm) = program(
        r#"(module (memory 64 64)
             (func (export "rule:fill") (local i32)
               (loop
                 (i32.store (local.get 0) (i32.mul (i32.shr_u (local.get 0) (i32.const 5)) (i32.const 2654435761)))
                 (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 8))) (i32.const 4194304)))))
             (func (export "rule:change") (param i32 i32 i32)
               (i32.store (i32.and (local.get 0) (i32.const 4194300)) (local.get 1))
               (i32.store (i32.and (local.get 1) (i32.const 4194300)) (local.get 2))
               (i32.store (i32.and (local.get 2) (i32.const 4194300)) (local.get 0))))"#,
    );
    let mut machine = Machine::new(program.clone()).unwrap();
    machine.step(Action::Rule(0), &mut Chooser::default());
    let mut store = Store::open(&folder).unwrap().store;
    store.begin(&header(&program), &wasm).unwrap();
    let mut model = Model::new();
    for id in 1..=200 {
        let mut steps = Trace::default();
        perform(&mut machine, &mut Chooser::default(), (Action::Rule(1), id), [], &mut steps);
        let parent = (id > 1).then(|| id - 1);
        model.histories.insert(id, (parent, without_spans(&steps)));
        let record = Record {
            id,
            parent,
            state: Some(machine.state()),
            faults: Vec::new(),
            energy: 1.0,
            new_edges: 1,
            step: 1,
            run: id,
            selected: 0,
            history: id,
        };
        model.checkpoints.insert(id, (record, machine.snapshot()));
        if id % 50 == 0 {
            model.save(&mut store, &program, &[]).unwrap();
        }
    }
    let open = store.file_bytes().unwrap();
    drop(store);
    let start = std::time::Instant::now();
    let store = Store::open(&folder).unwrap().store;
    let opened = start.elapsed();
    let loaded = store.load(&program).unwrap();
    println!(
        "200 checkpoints of 4 MiB: {open} bytes, opened in {opened:?}, loaded after {:?}",
        start.elapsed()
    );
    assert!(model.is(&loaded));
    assert_eq!(loaded.checkpoints.len(), 200);
    let shared = |a: usize, b: usize| {
        let snapshot = |at: usize| loaded.checkpoints[at].1.as_ref().unwrap();
        snapshot(a).shared_with(snapshot(b))
    };
    assert!(shared(0, 1) >= 4096 - 3 && shared(0, 199) >= 4096 - 3 * 199);
}
