//! Threads in a harness: each rule lets one go on, and an invariant looks at every state in between. The bug: one of the threads does
//! not lock.

use spelunk_guest::prelude::*;
use spelunk_guest::sync::atomic::{AtomicU32, Ordering::SeqCst};
use spelunk_guest::sync::{self, Arc, Mutex, thread};

struct Inside {
    lock: Arc<Mutex<()>>,
    inside: Arc<AtomicU32>,
}

#[harness]
impl Inside {
    #[setup]
    fn new() -> Inside {
        let all = Inside { lock: Arc::new(Mutex::new(())), inside: Arc::new(AtomicU32::new(0)) };
        for number in 0..3 {
            let (lock, inside) = (all.lock.clone(), all.inside.clone());
            thread::spawn(move || {
                let guard = (!cfg!(feature = "bug") || number > 0).then(|| lock.lock().unwrap());
                inside.fetch_add(1, SeqCst);
                inside.fetch_sub(1, SeqCst);
                drop(guard);
            });
        }
        all
    }

    #[rule]
    #[precondition(!sync::all_are_done())]
    fn run(&mut self) {
        sync::step();
    }

    #[invariant]
    fn one_is_inside(&self) {
        assert!(self.inside.load(SeqCst) <= 1, "two are inside");
    }

    #[terminal]
    fn is_over(&self) -> bool {
        sync::all_are_done()
    }

    #[teardown]
    fn end(self) {
        if sync::all_are_done() {
            drop(self.lock.lock().unwrap());
        }
    }
}
