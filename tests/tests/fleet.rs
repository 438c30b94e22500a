//! What a fleet gains, and what it costs, simulated.

use spelunk_tests::fleet::Fleet;
use spelunk_tests::{median, on_guest_stack, program, wasm};

/// How many seeds are tried.
fn seeds() -> u64 {
    std::env::var("SPELUNK_FLEET_SEEDS").map_or(9, |seeds| seeds.parse().unwrap())
}

/// Steps of each worker until a fleet of each size saw all edges of an example but one that a worker sees by itself in 30,000 steps: the
/// medians over some seeds. They meet after each `steps`.
fn steps_until(example: &str, features: &[&str], steps: u64, sizes: &[usize]) -> Vec<u64> {
    let (program, wasm) = (program(example, features), wasm(example, features));
    let alone = Fleet {
        program: &program,
        wasm: &wasm,
        workers: 1,
        seed: 77,
        steps: 1000,
        meetings: 30,
        edges: u64::MAX,
    };
    let edges = alone.run().unwrap().edges - 1;
    let until = |workers: usize| {
        let seeds = (1..=seeds()).map(|seed| {
            let fleet =
                Fleet { program: &program, wasm: &wasm, workers, seed, steps, meetings: 100_000, edges };
            let simulated = fleet.run().unwrap();
            assert!(simulated.edges >= edges);
            simulated.steps
        });
        median(seeds.collect())
    };
    sizes.iter().map(|workers| until(*workers)).collect()
}

#[test]
fn what_a_worker_sends_and_receives_does_not_grow_with_the_fleet() {
    on_guest_stack(|| {
        let (program, wasm) = (program("kv", &[]), wasm("kv", &[]));
        let bytes = [1, 16, 128].map(|workers| {
            let (steps, meetings) = (2_000, 10);
            let fleet =
                Fleet { program: &program, wasm: &wasm, workers, seed: 1, steps, meetings, edges: u64::MAX };
            fleet.run().unwrap().mean()
        });
        assert!(bytes[1] < 2 * bytes[0] && bytes[2] < 2 * bytes[0], "{bytes:?}");
    });
}

#[test]
fn more_workers_take_less_time() {
    on_guest_stack(|| {
        let kv = steps_until("kv", &[], 10, &[1, 2, 4, 8, 16, 32]);
        let lock = steps_until("lock", &["n32"], 10, &[1, 2, 4, 8, 16, 32]);
        println!("kv {kv:?}, lock {lock:?}");
        for steps in [kv, lock] {
            assert!(
                steps[3] * 2 < steps[0] && steps[4] * 3 < steps[0] && steps[5] * 7 < steps[0],
                "{steps:?}"
            );
        }
    });
}
