//! A value is published with a flag. The bug: the flag is set before the value, as a machine may do without a barrier.
//! Relaxed: the flag is set without one.

use spelunk_guest::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use spelunk_guest::sync::{Arc, thread};

#[derive(Default)]
struct Published {
    value: AtomicU32,
    is_set: AtomicBool,
}

#[spelunk_guest::threads]
fn publish() {
    let published = Arc::new(Published::default());
    let reader = {
        let published = published.clone();
        thread::spawn(move || {
            while !published.is_set.load(Ordering::Acquire) {
                thread::yield_now();
            }
            assert_eq!(published.value.load(Ordering::Relaxed), 7, "the value is not there yet");
        })
    };
    if cfg!(feature = "bug") {
        published.is_set.store(true, Ordering::Release);
        published.value.store(7, Ordering::Relaxed);
    } else {
        published.value.store(7, Ordering::Relaxed);
        if cfg!(feature = "relaxed") {
            published.is_set.store(true, Ordering::Relaxed);
        } else {
            published.is_set.store(true, Ordering::Release);
        }
    }
    reader.join().unwrap();
}
