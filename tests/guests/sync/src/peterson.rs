//! G. L. Peterson, "Myths about the mutual exclusion problem", 1981. The bug: a thread gives way before it says that it is
//! interested. Relaxed: nothing keeps a load from coming before the stores that stand before it.

use spelunk_guest::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, Ordering::SeqCst};
use spelunk_guest::sync::{Arc, hint, thread};

const STORE: Ordering = if cfg!(feature = "relaxed") { Ordering::Release } else { SeqCst };
const LOAD: Ordering = if cfg!(feature = "relaxed") { Ordering::Acquire } else { SeqCst };

#[derive(Default)]
struct Lock {
    interested: [AtomicBool; 2],
    victim: AtomicUsize,
    inside: AtomicU32,
}

impl Lock {
    fn lock(&self, me: usize) {
        if cfg!(feature = "bug") {
            self.victim.store(me, STORE);
            self.interested[me].store(true, STORE);
        } else {
            self.interested[me].store(true, STORE);
            self.victim.store(me, STORE);
        }
        while self.interested[1 - me].load(LOAD) && self.victim.load(LOAD) == me {
            hint::spin_loop();
        }
    }

    fn unlock(&self, me: usize) {
        self.interested[me].store(false, STORE);
    }
}

#[spelunk_guest::threads]
fn peterson() {
    let lock = Arc::new(Lock::default());
    let threads = [0, 1].map(|me| {
        let lock = lock.clone();
        thread::spawn(move || {
            lock.lock(me);
            assert_eq!(lock.inside.fetch_add(1, SeqCst), 0, "both are inside");
            lock.inside.fetch_sub(1, SeqCst);
            lock.unlock(me);
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
