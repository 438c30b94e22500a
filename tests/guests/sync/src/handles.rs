//! Handles of threads that a scoped thread starts while the scope waits for it. The bug: a thread is taken to have ended because it was started.

use spelunk_guest::sync::atomic::{AtomicU32, Ordering::Relaxed};
use spelunk_guest::sync::{mpsc, thread};

#[spelunk_guest::threads]
fn handles() {
    let stored = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let stores = scope.spawn(|| stored.store(1, Relaxed));
            thread::yield_now();
            let (sender, receiver) = mpsc::channel();
            // It gets the number of the one before, if nobody can wait for that any more.
            scope.spawn(move || receiver.recv().unwrap());
            stores.join().unwrap();
            assert_eq!(stored.load(Relaxed), 1, "what a joined thread stored is not seen");
            sender.send(()).unwrap();
        });
        thread::yield_now();
    });
    let nothing = thread::spawn(|| ());
    if cfg!(feature = "bug") {
        assert!(nothing.is_finished(), "it has not ended yet");
    }
    nothing.join().unwrap();
}
