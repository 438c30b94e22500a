//! An atomic, and a lock, that are moved to where others have been: nothing of those is left. The bug: it is relied on.

use spelunk_guest::sync::atomic::{AtomicU32, Ordering};
use spelunk_guest::sync::{Arc, Mutex, thread};

#[spelunk_guest::threads]
fn moved() {
    let shared = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let other = shared.clone();
    let thread = thread::spawn(move || {
        if other[1].load(Ordering::Relaxed) == 1 {
            let number = AtomicU32::new(100);
            number.store(101, Ordering::Relaxed);
            let number = Box::new(number);
            assert_eq!(number.load(Ordering::Relaxed), 101, "its own store is not seen");
            let lock = Mutex::new(0);
            *lock.lock().unwrap() += 1;
            let lock = Box::new(lock);
            let _held = lock.lock().unwrap();
            if cfg!(feature = "bug") {
                assert_eq!(other[0].load(Ordering::Relaxed), 1, "another lock tells nothing");
            }
        }
    });
    let number = Box::new(AtomicU32::new(7));
    number.store(8, Ordering::Relaxed);
    number.store(9, Ordering::Relaxed);
    drop(number);
    shared[0].store(1, Ordering::Relaxed);
    let lock = Box::new(Mutex::new(0));
    *lock.lock().unwrap() += 1;
    drop(lock);
    shared[1].store(1, Ordering::Relaxed);
    thread.join().unwrap();
}
