//! What is saved is loaded, and how much room it takes.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use spelunk::choice::Chooser;
use spelunk::machine::Machine;
use spelunk::search::energy::News;
use spelunk::store::{Embedded, FILE, Record, Store as _};
use spelunk::target::{Target, perform};
use spelunk::trace::{Action, Trace};

use super::guest::{EVERYTHING, program};
use super::model::{Model, folder, header, without_spans};

#[test]
fn what_is_saved_is_loaded() {
    let (program, wasm) = program(EVERYTHING);
    let mut machine = Machine::new(program.clone()).unwrap();
    for seed in 0..6 {
        let folder = folder(&format!("model{seed}"));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let opened = Embedded::open(&folder).unwrap();
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
                    let opened = Embedded::open(&folder).unwrap();
                    assert_eq!(opened.found, Some(header(&program)));
                    store = opened.store;
                }
                1 => {
                    let collected = store.collect_garbage().unwrap();
                    assert_eq!(collected.after, store.bytes().unwrap());
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
        let each = &mut |record: Record, trace: anyhow::Result<Trace>| {
            let trace = trace?;
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
            Ok(())
        };
        store.each_trace(machine.program(), each).unwrap();
    }
}

#[test]
fn traces_that_do_not_fit_are_told_apart() {
    let two = r#"(module (func (export "rule:a")) (func (export "rule:b")))"#;
    let one = r#"(module (func (export "rule:b")))"#;
    let (program_two, wasm) = program(two);
    let (program_one, _) = program(one);
    let mut store = Embedded::open(&folder("traces")).unwrap().store;
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
            news: News::Edges,
            work: 0,
        };
        model.checkpoints.insert(id, (record, None));
    }
    model.save(&mut store, &program_two, &[]).unwrap();
    let mut shown = Vec::new();
    let each = &mut |_, trace: anyhow::Result<Trace>| {
        shown.push(match trace {
            Ok(trace) => format!("{:?}", trace.steps()[0].action),
            Err(error) => format!("{error:#}"),
        });
        Ok(())
    };
    store.each_trace(&program_one, each).unwrap();
    let expected = ["Rule(0)", "step 1 (`rule a`): the target has no rule `a`", "Rule(0)"];
    assert_eq!(shown, expected);
    // Whoever takes them ends it, with an error that is not that of a damaged file.
    let error = store.each_trace(&program_one, &mut |_, _| anyhow::bail!("enough")).unwrap_err();
    assert_eq!(format!("{error:#}"), "enough");
    let error = store.load(&program_one).err().unwrap();
    assert!(format!("{error:#}").contains("of another build of the module"), "{error:#}");
}

#[test]
fn a_small_campaign_is_a_small_file() {
    let (program, wasm) = program(EVERYTHING);
    let folder = folder("small");
    let mut machine = Machine::new(program.clone()).unwrap();
    let mut store = Embedded::open(&folder).unwrap().store;
    store.begin(&header(&program), &wasm).unwrap();
    let mut model = Model::new();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    while model.checkpoints.len() < 8 {
        let edges = model.advance(&mut machine, &mut rng);
        model.save(&mut store, &program, &edges).unwrap();
    }
    let open = store.bytes().unwrap();
    drop(store);
    let closed = std::fs::metadata(folder.join(FILE)).unwrap().len();
    println!("{} checkpoints: {open} bytes, {closed} when closed", model.checkpoints.len());
    assert!(open <= 1_500_000 && closed <= 1_500_000);
}

/// States of 4 MiB that differ a little.
#[test]
fn large_states_cost_what_they_changed() {
    let folder = folder("large");
    let (program, wasm) = program(include_str!("../../../tests/guests/scattered.wat"));
    let mut machine = Machine::new(program.clone()).unwrap();
    machine.step(Action::Rule(0), &mut Chooser::default());
    let mut store = Embedded::open(&folder).unwrap().store;
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
            news: News::Edges,
            work: 0,
        };
        model.checkpoints.insert(id, (record, machine.snapshot()));
        if id % 50 == 0 {
            model.save(&mut store, &program, &[]).unwrap();
        }
    }
    let open = store.bytes().unwrap();
    drop(store);
    let start = std::time::Instant::now();
    let mut store = Embedded::open(&folder).unwrap().store;
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
