//! Which values the threads of a small program read, as events.

use spelunk_guest::prelude::*;
use spelunk_guest::sync::atomic::{AtomicU32, Ordering::Relaxed};
use spelunk_guest::sync::{Arc, Barrier, mpsc, thread};

use crate::programs::{PROGRAMS, Program};

/// With what other explorers of threads lack.
const MORE: &[(&str, Program)] = &[
    ("handed over", handed_over),
    ("room made", room_made),
    ("room left", room_left),
    ("met twice", met_twice),
];

/// Who sends without room sees what the one did who received.
fn handed_over() -> Vec<u32> {
    sent_to(0, 0)
}

/// Who sends where there was no room sees what the one did who made it.
fn room_made() -> Vec<u32> {
    sent_to(1, 1)
}

/// But not where there was some.
fn room_left() -> Vec<u32> {
    sent_to(2, 1)
}

/// A message is sent to a channel with so much room that holds so many.
fn sent_to(room: usize, held: usize) -> Vec<u32> {
    let x = Arc::new(AtomicU32::new(0));
    let (sender, receiver) = mpsc::sync_channel(room);
    (0..held).for_each(|_| sender.send(()).unwrap());
    let other = x.clone();
    let thread = thread::spawn(move || {
        sender.send(()).unwrap();
        other.load(Relaxed)
    });
    x.store(1, Relaxed);
    receiver.recv().unwrap();
    vec![thread.join().unwrap()]
}

/// What was stored between two barriers may be read between them, and is read after.
fn met_twice() -> Vec<u32> {
    let shared = Arc::new((AtomicU32::new(0), Barrier::new(2)));
    let other = shared.clone();
    let thread = thread::spawn(move || {
        other.1.wait();
        other.0.store(1, Relaxed);
        other.1.wait();
    });
    shared.1.wait();
    let between = shared.0.load(Relaxed);
    shared.1.wait();
    let after = shared.0.load(Relaxed);
    thread.join().unwrap();
    vec![between, after]
}

#[spelunk_guest::threads]
fn litmus() {
    let (name, program) = *choose_from(PROGRAMS.iter().chain(MORE));
    let read = program();
    event!("{name}: {read:?}");
}
