//! Two threads wait for one condition. The bug is that each has a mutex of its own.

use spelunk_guest::sync::{Arc, Condvar, Mutex, thread};

#[spelunk_guest::threads]
fn mutexes() {
    let shared = Arc::new(([Mutex::new(false), Mutex::new(false)], Condvar::new()));
    let waiters = [0, 1].map(|waiter| {
        let shared = shared.clone();
        thread::spawn(move || {
            let (mutexes, changed) = &*shared;
            let mutex = &mutexes[if cfg!(feature = "bug") { waiter } else { 0 }];
            drop(changed.wait_while(mutex.lock().unwrap(), |is_ready| !*is_ready).unwrap());
        })
    });
    let (mutexes, changed) = &*shared;
    for mutex in mutexes {
        *mutex.lock().unwrap() = true;
        changed.notify_all();
    }
    waiters.map(|waiter| waiter.join().unwrap());
}
