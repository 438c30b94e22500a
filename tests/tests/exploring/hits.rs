//! How often a step goes through an edge leads where no new edge does.

use std::sync::Arc;

use spelunk::coverage::FeatureKind;
use spelunk::machine::{Limits, Program, Selection};
use spelunk::search::Options;
use spelunk::search::energy::News;
use spelunk_tests::{
    check_replays, exact, explore, known, machine, on_guest_stack, seeded, shrunk, steps_of,
};

/// A lock of 12 keys, each one of 16. A wrong one locks it again. A step goes once around a loop for each key that was right.
const LOCK: &str = r#"(module
  (memory 1) (data (i32.const 1024) "\07\02\0e\09\00\0b\05\0d\03\0f\08\01\00")
  (global $held (mut i32) (i32.const 0))
  (func (export "rule:turn") (param $key i32) (local $left i32)
    (global.set $held (select (i32.add (global.get $held) (i32.const 1)) (i32.const 0)
      (i32.eqz (i32.xor (i32.and (local.get $key) (i32.const 15)) (i32.load8_u offset=1024 (global.get $held))))))
    (local.set $left (global.get $held))
    (block $done (loop $walk
      (br_if $done (i32.eqz (local.get $left)))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br $walk)))
    (if (i32.eq (global.get $held) (i32.const 12)) (then unreachable))))"#;

fn lock() -> Arc<Program> {
    let wasm = wat::parse_str(LOCK).unwrap();
    Arc::new(Program::load(&wasm, Limits::default(), Selection::default()).unwrap())
}

/// Nothing but hits and edges is news.
fn options(tells_hits: bool) -> Options {
    Options { tells_hits, looks: false, ..seeded(1) }
}

#[test]
fn a_lock_opens_whose_steps_take_longer_the_further_it_is() {
    on_guest_stack(|| {
        let program = lock();
        let runs = [true, false].map(|tells_hits| {
            let mut machine = machine(&program);
            let (found, progress) = explore(&mut machine, options(tells_hits), 20_000);
            if let Some(found) = found {
                check_replays(&program, &found.trace, &found.failure);
                assert_eq!(steps_of(&shrunk(&mut machine, &found).trace), 12);
            }
            progress.runs
        });
        assert_eq!(runs, [1_371, 20_000]);
    });
}

/// From the same run on, whoever decides it.
#[test]
fn workers_and_breaks_change_no_result() {
    on_guest_stack(|| {
        let of = |workers, parts: &[u64]| known(&lock(), &options(true), workers, parts);
        let one = of(1, &[3_000]);
        assert!(one.features_by_kind()[&FeatureKind::Hits] > 0);
        assert!(one.checkpoints.count(News::Shown) > 0);
        let one = exact(&one);
        assert!(exact(&of(4, &[3_000])) == one, "4 workers");
        assert!(exact(&of(1, &[1, 300, 600, 650, 700, 3_000])) == one, "in parts");
        assert!(exact(&of(3, &[640, 3_000])) == one, "3 workers, in parts");
    });
}
