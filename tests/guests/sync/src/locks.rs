//! A lock for readers and writers, a cell that is set once, parking, and a channel without room. The bug: what is read is
//! written back with another lock.

use spelunk_guest::sync::{Arc, OnceLock, RwLock, mpsc, thread};

#[spelunk_guest::threads]
fn locks() {
    let value = Arc::new(RwLock::new(0));
    let step = Arc::new(OnceLock::new());
    let threads = [(); 2].map(|()| {
        let (value, step) = (value.clone(), step.clone());
        thread::spawn(move || {
            let step = *step.get_or_init(|| 1);
            if cfg!(feature = "bug") {
                let read = *value.read().unwrap();
                *value.write().unwrap() = read + step;
            } else {
                *value.write().unwrap() += step;
            }
        })
    });
    let (sender, receiver) = mpsc::sync_channel(0);
    let main = thread::current();
    let other = thread::spawn(move || {
        let total: u32 = receiver.recv().unwrap();
        main.unpark();
        total
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let total = *value.read().unwrap();
    sender.send(total).unwrap();
    thread::park();
    assert_eq!(other.join().unwrap(), 2, "an addition was lost");
}
