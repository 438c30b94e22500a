//! A wait that ends in time or not. The bug: where the time was up, the condition is taken not to hold.

use std::time::Duration;

use spelunk_guest::sync::{Arc, Condvar, Mutex, thread};

#[spelunk_guest::threads]
fn timeout() {
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let other = pair.clone();
    thread::spawn(move || {
        let mut ready = other.0.lock().unwrap();
        *ready = true;
        other.1.notify_one();
    });
    let mut ready = pair.0.lock().unwrap();
    while !*ready {
        let result;
        (ready, result) = pair.1.wait_timeout(ready, Duration::from_millis(10)).unwrap();
        if cfg!(feature = "bug") && result.timed_out() {
            assert!(!*ready, "the time was up before the mutex was free");
        }
    }
}
