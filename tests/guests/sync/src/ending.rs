//! Whoever finds that the other end of a channel is gone sees what was done there. The bug: there is just no message yet.

use spelunk_guest::sync::atomic::{AtomicU32, Ordering};
use spelunk_guest::sync::mpsc::{TryRecvError, channel};
use spelunk_guest::sync::{Arc, thread};

#[spelunk_guest::threads]
fn ending() {
    let done = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let other = done.clone();
    let (to, from) = channel::<()>();
    let (back, answers) = channel::<()>();
    thread::spawn(move || {
        other[0].store(1, Ordering::Relaxed);
        drop(to);
        other[1].store(1, Ordering::Relaxed);
        drop(answers);
    });
    let is_over = match from.try_recv() {
        Err(TryRecvError::Empty) if !cfg!(feature = "bug") => from.recv().is_err(),
        received => received.is_err(),
    };
    if is_over {
        assert_eq!(done[0].load(Ordering::Relaxed), 1, "the senders are gone");
    }
    if back.send(()).is_err() {
        assert_eq!(done[1].load(Ordering::Relaxed), 1, "the receiver is gone");
    }
}
