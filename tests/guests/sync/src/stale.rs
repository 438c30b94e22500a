//! A thread is woken through its handle. The bug: that of a thread that has ended is taken, which wakes nobody, whoever has come since.

use spelunk_guest::sync::thread;

#[spelunk_guest::threads]
fn stale() {
    let first = thread::spawn(|| {});
    let gone = first.thread().clone();
    first.join().unwrap();
    let second = thread::spawn(thread::park);
    if cfg!(feature = "bug") {
        gone.unpark();
    } else {
        second.thread().unpark();
    }
    second.join().unwrap();
}
