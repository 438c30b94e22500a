//! One thread looks again and again whether another has done something, under a lock: that one comes to have it, though it is not
//! free in every moment. The bug: two threads each take a lock and back off where the other has the second.

use std::time::Duration;

use spelunk_guest::sync::{Arc, Mutex, thread};

#[spelunk_guest::threads]
fn poll() {
    if cfg!(feature = "bug") {
        return back_off();
    }
    let done = Arc::new(Mutex::new(false));
    let other = done.clone();
    thread::spawn(move || *other.lock().unwrap() = true);
    while !*done.lock().unwrap() {
        thread::sleep(Duration::from_millis(10));
    }
}

fn back_off() {
    let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
    let others = locks.clone();
    let both = |locks: &[Mutex<()>; 2], first: usize| {
        loop {
            let one = locks[first].lock().unwrap();
            if locks[1 - first].try_lock().is_ok() {
                break;
            }
            drop(one);
            thread::yield_now();
        }
    };
    thread::spawn(move || both(&others, 1));
    both(&locks, 0);
}
