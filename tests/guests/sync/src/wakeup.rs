//! One thread waits until another has something for it. The bug is a lost wakeup: the condition is looked at, and waited for after
//! the lock was let go in between.

use spelunk_guest::sync::{Arc, Condvar, Mutex, thread};

#[spelunk_guest::threads]
fn wakeup() {
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let waiter = {
        let pair = pair.clone();
        thread::Builder::new()
            .name("waiter".to_string())
            .spawn(move || {
                let (ready, changed) = &*pair;
                if cfg!(feature = "bug") {
                    let is_ready = *ready.lock().unwrap();
                    if !is_ready {
                        drop(changed.wait(ready.lock().unwrap()).unwrap());
                    }
                } else {
                    let mut guard = ready.lock().unwrap();
                    while !*guard {
                        guard = changed.wait(guard).unwrap();
                    }
                }
            })
            .unwrap()
    };
    let (ready, changed) = &*pair;
    *ready.lock().unwrap() = true;
    changed.notify_one();
    waiter.join().unwrap();
}
