//! Scoped threads, a channel and a barrier. The bug: a sender is kept, so that who receives waits for ever.

use spelunk_guest::sync::{Barrier, Mutex, mpsc, thread};

#[spelunk_guest::threads]
fn scope() {
    let total = Mutex::new(0);
    let barrier = Barrier::new(2);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for value in [1, 2] {
            let sender = sender.clone();
            let (total, barrier) = (&total, &barrier);
            scope.spawn(move || {
                *total.lock().unwrap() += value;
                barrier.wait();
                assert_eq!(*total.lock().unwrap(), 3, "both have come to the barrier");
                sender.send(value).unwrap();
            });
        }
        if !cfg!(feature = "bug") {
            drop(sender);
        }
        assert_eq!(receiver.iter().sum::<u32>(), 3);
    });
}
