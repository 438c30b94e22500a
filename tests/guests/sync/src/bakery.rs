//! L. Lamport, "A new solution of Dijkstra's concurrent programming problem", 1974. The bug: a thread does not say that it is taking a
//! number.

use spelunk_guest::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use spelunk_guest::sync::{Arc, hint, thread};

const THREADS: usize = 2;

#[derive(Default)]
struct Bakery {
    choosing: [AtomicBool; THREADS],
    number: [AtomicU32; THREADS],
    inside: AtomicU32,
}

impl Bakery {
    fn lock(&self, me: usize) {
        let says = !cfg!(feature = "bug");
        if says {
            self.choosing[me].store(true, SeqCst);
        }
        let highest = self.number.iter().map(|number| number.load(SeqCst)).max().unwrap_or(0);
        self.number[me].store(highest + 1, SeqCst);
        if says {
            self.choosing[me].store(false, SeqCst);
        }
        for other in (0..THREADS).filter(|other| *other != me) {
            while self.choosing[other].load(SeqCst) {
                hint::spin_loop();
            }
            loop {
                let number = self.number[other].load(SeqCst);
                if number == 0 || (number, other) > (highest + 1, me) {
                    break;
                }
                hint::spin_loop();
            }
        }
    }

    fn unlock(&self, me: usize) {
        self.number[me].store(0, SeqCst);
    }
}

#[spelunk_guest::threads]
fn bakery() {
    let bakery = Arc::new(Bakery::default());
    let threads = [0, 1].map(|me| {
        let bakery = bakery.clone();
        thread::spawn(move || {
            bakery.lock(me);
            assert_eq!(bakery.inside.fetch_add(1, SeqCst), 0, "two are inside");
            bakery.inside.fetch_sub(1, SeqCst);
            bakery.unlock(me);
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
