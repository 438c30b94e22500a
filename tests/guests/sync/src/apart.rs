//! Programs whose threads have something in common that no operation names. Each fails in some order, and not in that in which the threads
//! with the lowest numbers go first.

use spelunk_guest::prelude::*;
use spelunk_guest::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use spelunk_guest::sync::{Arc, Mutex, mpsc, thread};

const SEQUENTIAL: Ordering = Ordering::SeqCst;

/// Each is called by `random`.
pub(crate) const PROGRAMS: [fn(); 9] = [
    ends,
    sees_in_one_order,
    drops_a_result,
    shows,
    shows_a_lock,
    takes_a_number,
    takes_a_pointer,
    is_rejected,
    takes_a_number_late,
];

fn word() -> Arc<AtomicU32> {
    Arc::default()
}

/// To wait for what has ended is no reason to do two operations at once.
fn ends() {
    let (x, y) = (word(), word());
    let first = thread::spawn(move || y.store(1, SEQUENTIAL));
    let own = x.clone();
    let second = thread::spawn(move || {
        own.store(1, SEQUENTIAL);
        first.join().unwrap();
    });
    if x.load(SEQUENTIAL) == 1 {
        assert!(second.is_finished(), "it waits");
    }
}

/// Loads of one place by two threads are in one order.
fn sees_in_one_order() {
    let (x, z) = (word(), word());
    let stored = (x.clone(), z.clone());
    thread::spawn(move || {
        stored.0.store(1, Ordering::Relaxed);
        stored.1.store(1, Ordering::Relaxed);
    });
    let read = |x: &Arc<AtomicU32>, z: &Arc<AtomicU32>| {
        let (x, z) = (x.clone(), z.clone());
        move || (z.load(Ordering::Relaxed) == 1).then(|| x.load(SEQUENTIAL))
    };
    let [a, b] =
        [thread::spawn(read(&x, &z)), thread::spawn(read(&x, &z))].map(|thread| thread.join().unwrap());
    assert!((a, b) != (Some(1), Some(0)), "one after the other");
}

/// What a thread returns is dropped by who comes last, the thread or who has its handle.
fn drops_a_result() {
    let (x, y) = (word(), word());
    let (sender, receiver) = mpsc::channel::<()>();
    let first = thread::spawn(move || {
        y.store(1, SEQUENTIAL);
        sender
    });
    let second = thread::spawn(move || {
        x.store(1, SEQUENTIAL);
        drop(first);
        assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    });
    second.join().unwrap();
}

fn shows() {
    let (x, y) = (word(), word());
    let own = x.clone();
    let thread = thread::spawn(move || own.store(1, SEQUENTIAL));
    y.store(1, SEQUENTIAL);
    assert_eq!(format!("{x:?}"), "0");
    thread.join().unwrap();
}

fn shows_a_lock() {
    let (x, y) = (Arc::new(Mutex::new(0)), word());
    let own = x.clone();
    let thread = thread::spawn(move || *own.lock().unwrap() = 1);
    y.store(1, SEQUENTIAL);
    assert!(!format!("{x:?}").contains("locked"), "{x:?}");
    thread.join().unwrap();
}

/// A number is used again once its thread has ended.
fn takes_a_number() {
    let (x, y) = (word(), word());
    let first = thread::spawn(move || y.store(1, SEQUENTIAL));
    let id = first.thread().id();
    drop(first);
    x.store(1, SEQUENTIAL);
    let second = thread::spawn(|| ());
    assert_ne!(second.thread().id(), id);
}

/// Where something is may depend on what others have freed.
fn takes_a_pointer() {
    let (x, head) = (word(), Arc::new(AtomicPtr::<u8>::default()));
    let own = head.clone();
    let thread = thread::spawn(move || own.store(std::ptr::dangling_mut(), SEQUENTIAL));
    x.store(1, SEQUENTIAL);
    assert!(head.load(SEQUENTIAL).is_null());
    thread.join().unwrap();
}

/// A run that is rejected ends for all threads.
fn is_rejected() {
    let (x, y) = (word(), word());
    let thread = thread::spawn(move || {
        y.store(1, SEQUENTIAL);
        panic!("it fails");
    });
    x.store(1, SEQUENTIAL);
    assume(x.load(SEQUENTIAL) == 0);
    thread.join().unwrap();
}

/// Some steps were made by then.
fn takes_a_number_late() {
    let (x, y) = (word(), word());
    let own = y.clone();
    let thread = thread::spawn(move || {
        own.store(1, SEQUENTIAL);
        own.store(2, SEQUENTIAL);
    });
    x.store(1, SEQUENTIAL);
    x.store(2, SEQUENTIAL);
    let id = thread.thread().id();
    assert_eq!(y.load(SEQUENTIAL), 2, "{id:?}");
    thread.join().unwrap();
}
