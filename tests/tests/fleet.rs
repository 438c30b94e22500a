//! What a fleet gains, and what it costs, simulated.

use spelunk_tests::fleet::Fleet;
use spelunk_tests::{median, on_guest_stack, program, wasm};

/// Meetings until a fleet of each size saw so many edges of an example: the medians over some seeds.
fn steps_until(example: &str, features: &[&str], (edges, steps): (u64, u64), sizes: &[usize]) -> Vec<u64> {
    let (program, wasm) = (program(example, features), wasm(example, features));
    let until = |workers: usize| {
        let seeds = (1..=5).map(|seed| {
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
        let bytes = [1, 4, 16, 64].map(|workers| {
            let (steps, meetings) = (2_000, 10);
            let fleet =
                Fleet { program: &program, wasm: &wasm, workers, seed: 1, steps, meetings, edges: u64::MAX };
            fleet.run().unwrap().mean()
        });
        eprintln!("{bytes:?}");
        assert!(bytes[3] < 4 * bytes[0], "{bytes:?}");
    });
}

#[test]
fn more_workers_take_less_time() {
    on_guest_stack(|| {
        let steps = steps_until("kv", &[], (600, 200), &[1, 4, 16]);
        eprintln!("kv {steps:?}");
        assert!(steps[2] * 4 < steps[0], "{steps:?}");
        let steps = steps_until("lock", &["n32"], (75, 50), &[1, 4, 16]);
        eprintln!("lock {steps:?}");
        assert!(steps[1] < steps[0] && steps[2] <= steps[1], "{steps:?}");
    });
}

#[test]
fn trying() {
    on_guest_stack(|| {
        let (program, wasm) = (program("kv", &[]), wasm("kv", &[]));
        for workers in [1, 2, 4, 8, 16, 32, 64, 128] {
            let (steps, meetings) = (2_000, 10);
            let fleet =
                Fleet { program: &program, wasm: &wasm, workers, seed: 1, steps, meetings, edges: u64::MAX };
            let s = fleet.run().unwrap();
            let sent: u64 = s.traffic.iter().map(|t| t.sent).sum::<u64>() / workers as u64;
            let received: u64 = s.traffic.iter().map(|t| t.received).sum::<u64>() / workers as u64;
            eprintln!("{workers}: sent {sent} received {received} edges {}", s.edges);
        }
        for (edges, steps) in [(600, 50), (630, 50), (637, 50), (637, 500)] {
            eprintln!(
                "kv {edges} {steps}: {:?}",
                steps_until("kv", &[], (edges, steps), &[1, 2, 4, 8, 16, 32])
            );
        }
        for steps in [10, 50] {
            eprintln!(
                "lock {steps}: {:?}",
                steps_until("lock", &["n32"], (75, steps), &[1, 2, 4, 8, 16, 32])
            );
        }
    });
}
