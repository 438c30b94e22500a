//! Threads that add to atomics: each to one of its own, or, with the mistake, two to the same.

use spelunk_guest::sync::atomic::{AtomicU32, Ordering::SeqCst};
use spelunk_guest::sync::{Arc, thread};

const THREADS: usize = 4;

#[spelunk_guest::threads]
fn counters() {
    let counters: Arc<[AtomicU32; THREADS]> = Arc::default();
    let start = |number: usize| {
        let counters = counters.clone();
        let own = if cfg!(feature = "bug") && number == THREADS - 1 { 0 } else { number };
        thread::spawn(move || {
            for _ in 0..THREADS {
                counters[own].store(counters[own].load(SeqCst) + 1, SeqCst);
            }
        })
    };
    let threads: Vec<_> = (0..THREADS).map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let total: u32 = counters.iter().map(|counter| counter.load(SeqCst)).sum();
    assert_eq!(total, (THREADS * THREADS) as u32, "an addition was lost");
}
