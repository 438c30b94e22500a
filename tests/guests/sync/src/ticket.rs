//! A ticket lock: Mellor-Crummey and Scott, "Algorithms for scalable synchronization", 1991. The bug: a ticket is taken in two
//! operations.

use spelunk_guest::sync::atomic::{AtomicU32, Ordering::SeqCst};
use spelunk_guest::sync::{Arc, hint, thread};

#[derive(Default)]
struct Ticket {
    next: AtomicU32,
    serving: AtomicU32,
    total: AtomicU32,
}

impl Ticket {
    fn lock(&self) -> u32 {
        let ticket = if cfg!(feature = "bug") {
            let ticket = self.next.load(SeqCst);
            self.next.store(ticket + 1, SeqCst);
            ticket
        } else {
            self.next.fetch_add(1, SeqCst)
        };
        while self.serving.load(SeqCst) != ticket {
            hint::spin_loop();
        }
        ticket
    }

    fn unlock(&self, ticket: u32) {
        self.serving.store(ticket + 1, SeqCst);
    }
}

#[spelunk_guest::threads]
fn ticket() {
    let lock = Arc::new(Ticket::default());
    let threads = [(); 3].map(|()| {
        let lock = lock.clone();
        thread::spawn(move || {
            let ticket = lock.lock();
            let total = lock.total.load(SeqCst);
            lock.total.store(total + 1, SeqCst);
            lock.unlock(ticket);
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(lock.total.load(SeqCst), 3, "an addition was lost");
}
