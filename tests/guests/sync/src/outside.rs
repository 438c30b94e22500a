//! A harness takes a message of a channel that threads use too. What follows it in the queue still tells of what its sender did before. The bug
//! is that it is sent before that.

use spelunk_guest::prelude::*;
use spelunk_guest::sync::atomic::{AtomicU32, Ordering::Relaxed};
use spelunk_guest::sync::mpsc::{Receiver, channel};
use spelunk_guest::sync::{self, Arc, Mutex, thread};

struct Outside {
    receiver: Arc<Mutex<Receiver<u32>>>,
    has_taken: bool,
}

#[harness]
impl Outside {
    #[setup]
    fn new() -> Outside {
        let (sender, receiver) = channel();
        let all = Outside { receiver: Arc::new(Mutex::new(receiver)), has_taken: false };
        let (number, receiver) = (Arc::new(AtomicU32::new(0)), all.receiver.clone());
        let stored = number.clone();
        thread::spawn(move || {
            sender.send(1).unwrap();
            if cfg!(feature = "bug") {
                sender.send(2).unwrap();
            }
            stored.store(1, Relaxed);
            sender.send(2).unwrap();
        });
        thread::spawn(move || {
            let received = receiver.lock().unwrap().try_recv();
            if received == Ok(2) {
                assert_eq!(number.load(Relaxed), 1, "it was sent after that");
            }
        });
        all
    }

    #[rule]
    #[precondition(!sync::all_are_done())]
    fn run(&mut self) {
        sync::step();
    }

    #[rule]
    #[precondition(!self.has_taken && self.receiver.try_lock().is_ok())]
    fn take(&mut self) {
        assume(self.receiver.lock().unwrap().try_recv() == Ok(1));
        self.has_taken = true;
    }

    #[terminal]
    fn is_over(&self) -> bool {
        sync::all_are_done()
    }
}
