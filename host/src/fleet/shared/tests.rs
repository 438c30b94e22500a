use std::path::Path;

use super::*;
use crate::campaign::{Campaign, Settings};
use crate::choice::mix;
use crate::fleet::hub::Local;
use crate::machine::{Limits, Machine, Selection, Snapshot};
use crate::search::{Explorer, Knowledge};

/// Reads what others saw; what is new of it.
fn read(worker: &mut Shared) -> Vec<Item> {
    let changes = worker.hub.changes(&[coverage::PREFIX], worker.read, u64::MAX).unwrap();
    let mut new = Vec::new();
    for (key, value) in changes.values {
        new.extend(worker.there.coverage.read(&key, &value).unwrap());
        worker.read = value.revision;
    }
    new
}

/// All that stands at a hub.
fn there(hub: &Local) -> BTreeSet<Item> {
    let values = hub.changes(&[coverage::PREFIX], 0, u64::MAX).unwrap().values;
    values.iter().flat_map(|(_, value)| items_of(&value.bytes).unwrap()).collect()
}

#[test]
fn no_order_of_writes_loses_what_was_acknowledged() {
    for seed in 0..300 {
        let hub = Local::default();
        let mut workers: Vec<_> = (1..=3).map(|number| Shared::new(Arc::new(hub.clone()), number)).collect();
        let mut known = vec![BTreeSet::new(); workers.len()];
        let mut acknowledged = BTreeSet::new();
        for step in 0..60 {
            let draw = mix(seed, step);
            let at = (draw % 3) as usize;
            if draw >> 8 & 3 == 0 {
                known[at].extend(read(&mut workers[at]));
                continue;
            }
            // Of two shards.
            let item =
                |by: u64| Item::new((mix(draw, by) % 40) as u32 + (mix(draw, by) >> 60 << 8) as u32 % 512, 0);
            let new: BTreeSet<Item> = (0..1 + draw % 4).map(item).collect();
            let new = new.into_iter().filter(|item| !workers[at].there.coverage.has(*item)).collect();
            workers[at].send_coverage(&new).unwrap();
            known[at].extend(new.iter().copied());
            acknowledged.extend(new);
            assert_eq!(there(&hub), acknowledged, "{seed} {step}");
        }
        // Each is told what others saw.
        for (worker, known) in workers.iter_mut().zip(&mut known) {
            known.extend(read(worker));
            assert_eq!(*known, acknowledged, "{seed}");
        }
    }
}

#[test]
fn what_cannot_be_read_keeps_nobody_from_the_rest() {
    let wasm = wat::parse_str("(module (func (export \"rule:a\")) (func (export \"rule:b\")))").unwrap();
    let program = Program::load(&wasm, Limits::default(), Selection::default()).unwrap();
    let hub = Local::default();
    let mut other = Shared::new(Arc::new(hub.clone()), 1);
    let forged =
        serde_json::to_vec(&serde_json::json!({ "finding": { "failure": 1, "steps": [] } })).unwrap();
    let (forged, hash) = (wrapped(&hub, "f", &forged).unwrap(), format!("c.{:032x}", 7));
    let claims = [&[0][..], &packed(&u64::MAX.to_le_bytes())].concat();
    let values: [(&str, &[u8]); 9] = [
        ("k.3", b"garbage"),
        ("k.16", &[]),
        ("c.x", &[0]),
        (&hash, &[]),
        (&hash.replace('7', "8"), &claims),
        (&hash.replace('7', "9"), b"\x01no-object"),
        ("f.x", &forged),
        ("f.y", &[0, 0xff, 0xff, 0xff, 0x7f]),
        ("f.z", &[2]),
    ];
    for (key, bytes) in values {
        hub.put(key, bytes).unwrap();
    }
    other.send_coverage(&BTreeSet::from([Item::new(0, 0)])).unwrap();
    let mut shared = Shared::new(Arc::new(hub), 2);
    let loaded = shared.news(&program).unwrap().unwrap();
    assert_eq!((loaded.edges.len(), shared.unreadable), (1, values.len() as u64));
    assert!(loaded.checkpoints.is_empty() && loaded.findings.is_empty());
    // It is not read again.
    assert!(shared.news(&program).unwrap().is_none());
    assert_eq!(shared.unreadable, values.len() as u64);
}

#[test]
fn an_input_of_another_is_the_best_way_to_the_edges_that_it_found() {
    let wasm = wat::parse_str(
        r#"(module (memory (export "memory") 1)
          (func (export "LLVMFuzzerTestOneInput") (param i32 i32) (result i32)
            (if (i32.gt_u (local.get 1) (i32.const 3)) (then
              (if (i32.eq (i32.load8_u (local.get 0)) (i32.const 7)) (then
                (if (i32.eq (i32.load8_u offset=1 (local.get 0)) (i32.const 9)) (then nop))))))
            (i32.const 0)))"#,
    );
    let wasm = wasm.unwrap();
    let program = Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap());
    let hub = Local::default();
    let join = |number| {
        let shared = Shared::new(Arc::new(hub.clone()), number);
        Campaign::join(shared, (Path::new("nowhere"), "fuzz"), &wasm, Settings::default()).unwrap()
    };
    let mut campaigns = [join(1), join(2)];
    let mut machine = Machine::new(program.clone()).unwrap();
    let options = campaigns[0].settings().options(&program).unwrap();
    let mut explorer = Explorer::new(&mut machine, options);
    explorer.explore(|progress| progress.runs < 20_000);
    campaigns[0].save(explorer.knowledge(), &program).unwrap();
    let news = campaigns[1].news(&program).unwrap().unwrap();
    let of =
        |known: &Knowledge<Snapshot>| known.checkpoints.iter().map(|input| input.champion_of).sum::<u32>();
    assert!(of(explorer.knowledge()) > 3);
    assert_eq!(of(&news), of(explorer.knowledge()));
    let mut machine = Machine::new(program.clone()).unwrap();
    let options = campaigns[1].settings().options(&program).unwrap();
    let mut other = Explorer::new(&mut machine, options);
    other.take_news(&news);
    assert_eq!(of(other.knowledge()), of(explorer.knowledge()));
}
