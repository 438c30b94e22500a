//! A queue for many that send and one that receives: a ring whose slots have a sequence number, after D. Vyukov. The bug: a slot is
//! said to be full before it is filled.

use spelunk_guest::sync::atomic::{AtomicU32, Ordering::SeqCst};
use spelunk_guest::sync::{Arc, hint, thread};

const SLOTS: u32 = 2;

#[derive(Default)]
struct Slot {
    sequence: AtomicU32,
    value: AtomicU32,
}

struct Queue {
    slots: [Slot; SLOTS as usize],
    tail: AtomicU32,
}

impl Queue {
    fn new() -> Queue {
        let slots = [0, 1].map(|sequence| Slot { sequence: sequence.into(), value: AtomicU32::new(0) });
        Queue { slots, tail: AtomicU32::new(0) }
    }

    fn slot(&self, at: u32) -> &Slot {
        &self.slots[(at % SLOTS) as usize]
    }

    fn push(&self, value: u32) {
        loop {
            let tail = self.tail.load(SeqCst);
            let slot = self.slot(tail);
            if slot.sequence.load(SeqCst) != tail {
                hint::spin_loop();
                continue;
            }
            if self.tail.compare_exchange(tail, tail + 1, SeqCst, SeqCst).is_ok() {
                if cfg!(feature = "bug") {
                    slot.sequence.store(tail + 1, SeqCst);
                    slot.value.store(value, SeqCst);
                } else {
                    slot.value.store(value, SeqCst);
                    slot.sequence.store(tail + 1, SeqCst);
                }
                return;
            }
        }
    }

    /// For the only one that receives, which counts in `head`.
    fn pop(&self, head: &mut u32) -> u32 {
        let slot = self.slot(*head);
        while slot.sequence.load(SeqCst) != *head + 1 {
            hint::spin_loop();
        }
        let value = slot.value.load(SeqCst);
        slot.sequence.store(*head + SLOTS, SeqCst);
        *head += 1;
        value
    }
}

#[spelunk_guest::threads]
fn queue() {
    let queue = Arc::new(Queue::new());
    let senders = [1, 2].map(|value| {
        let queue = queue.clone();
        thread::spawn(move || queue.push(value))
    });
    let mut head = 0;
    let received = queue.pop(&mut head) + queue.pop(&mut head);
    assert_eq!(received, 3, "something else was received than was sent");
    senders.into_iter().for_each(|sender| sender.join().unwrap());
}
