//! A value that is set once, and a flag that says so. The bug: the flag orders nothing.

use spelunk_guest::sync::atomic::{AtomicBool, Ordering};
use spelunk_guest::sync::{Arc, OnceLock, thread};

#[spelunk_guest::threads]
fn once() {
    let (store, load) = match cfg!(feature = "bug") {
        true => (Ordering::Relaxed, Ordering::Relaxed),
        false => (Ordering::Release, Ordering::Acquire),
    };
    let shared = Arc::new((OnceLock::new(), AtomicBool::new(false)));
    let other = shared.clone();
    thread::spawn(move || {
        other.0.set(5).unwrap();
        other.1.store(true, store);
    });
    if shared.1.load(load) {
        assert_eq!(shared.0.get(), Some(&5), "it is not set yet");
    }
}
