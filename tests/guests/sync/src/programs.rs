//! Small programs that say what a memory model is: each returns what its threads read. Another explorer of threads runs
//! them too, so this takes the names of threads and atomics from the module that it stands in.

use super::sync::atomic::{AtomicU32, Ordering, fence};
use super::sync::{Arc, Mutex, RwLock, mpsc, thread};
use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

pub(crate) type Program = fn() -> Vec<u32>;

/// Two places, x and y.
type Places = Arc<[AtomicU32; 2]>;

fn places() -> Places {
    Arc::new([AtomicU32::new(0), AtomicU32::new(0)])
}

/// What two threads return, in their order.
fn both(
    first: impl FnOnce(&[AtomicU32; 2]) -> Vec<u32> + Send + 'static,
    second: impl FnOnce(&[AtomicU32; 2]) -> Vec<u32>,
) -> Vec<u32> {
    let places = places();
    let other = places.clone();
    let thread = thread::spawn(move || first(&other));
    let second = second(&places);
    let mut read = thread.join().unwrap();
    read.extend(second);
    read
}

/// Message passing: y says that x is there. What was read of both, y first.
fn passed(store: Ordering, load: Ordering, fences: (bool, bool)) -> Vec<u32> {
    both(
        move |[x, y]| {
            x.store(1, Relaxed);
            if fences.0 {
                fence(Release);
            }
            y.store(1, store);
            Vec::new()
        },
        move |[x, y]| {
            let flag = y.load(load);
            if fences.1 {
                fence(Acquire);
            }
            vec![flag, x.load(Relaxed)]
        },
    )
}

/// Store buffering: each stores one and reads the other.
fn buffered(store: Ordering, load: Ordering, fences: (bool, bool)) -> Vec<u32> {
    both(
        move |[x, y]| {
            x.store(1, store);
            if fences.0 {
                fence(SeqCst);
            }
            vec![y.load(load)]
        },
        move |[x, y]| {
            y.store(1, store);
            if fences.1 {
                fence(SeqCst);
            }
            vec![x.load(load)]
        },
    )
}

/// Two store, and two others read both in different orders.
fn independent(store: Ordering, load: Ordering) -> Vec<u32> {
    let places = places();
    let writers = [0, 1].map(|at| {
        let places = places.clone();
        thread::spawn(move || places[at].store(1, store))
    });
    let reader = {
        let places = places.clone();
        thread::spawn(move || vec![places[0].load(load), places[1].load(load)])
    };
    let second = [places[1].load(load), places[0].load(load)];
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let mut read = reader.join().unwrap();
    read.extend(second);
    read
}

/// One stores x, another that reads it stores y, a third reads y and x.
fn caused(store: Ordering, load: Ordering) -> Vec<u32> {
    let places = places();
    let first = {
        let places = places.clone();
        thread::spawn(move || places[0].store(1, store))
    };
    let second = {
        let places = places.clone();
        thread::spawn(move || {
            let read = places[0].load(load);
            places[1].store(1, store);
            read
        })
    };
    let third = [places[1].load(load), places[0].load(load)];
    first.join().unwrap();
    vec![second.join().unwrap(), third[0], third[1]]
}

/// What is told with y is told by one that comes between, too, if that reads and writes at once. What was read of y and x.
fn relayed(swaps: bool) -> Vec<u32> {
    let places = places();
    let first = {
        let places = places.clone();
        thread::spawn(move || {
            places[0].store(1, Relaxed);
            places[1].store(1, Release);
        })
    };
    let second = {
        let places = places.clone();
        thread::spawn(move || match swaps {
            true => drop(places[1].compare_exchange(1, 2, Relaxed, Relaxed)),
            false if places[1].load(Relaxed) == 1 => places[1].store(2, Relaxed),
            false => {}
        })
    };
    let read = vec![places[1].load(Acquire), places[0].load(Relaxed)];
    first.join().unwrap();
    second.join().unwrap();
    read
}

/// As message passing, with a lock.
fn locked() -> Vec<u32> {
    let shared = Arc::new((Mutex::new(0), AtomicU32::new(0)));
    let other = shared.clone();
    let thread = thread::spawn(move || {
        let mut held = other.0.lock().unwrap();
        other.1.store(1, Relaxed);
        *held = 1;
    });
    let held = shared.0.lock().unwrap();
    let read = vec![*held, shared.1.load(Relaxed)];
    drop(held);
    thread.join().unwrap();
    read
}

/// As message passing, with a lock that is read or written.
fn locked_to_read() -> Vec<u32> {
    let shared = Arc::new((RwLock::new(0), AtomicU32::new(0)));
    let other = shared.clone();
    let thread = thread::spawn(move || {
        let mut held = other.0.write().unwrap();
        other.1.store(1, Relaxed);
        *held = 1;
    });
    let held = shared.0.read().unwrap();
    let read = vec![*held, shared.1.load(Relaxed)];
    drop(held);
    thread.join().unwrap();
    read
}

/// Each message tells of what its sender did, and not of what others did. Which message came first, and what was read.
fn sent() -> Vec<u32> {
    let places = places();
    let (sender, receiver) = mpsc::channel();
    let threads = [0u32, 1].map(|at| {
        let (places, sender) = (places.clone(), sender.clone());
        thread::spawn(move || {
            places[at as usize].store(1, Relaxed);
            sender.send(at).unwrap();
        })
    });
    let first = receiver.recv().unwrap();
    let read = vec![first, places[first as usize].load(Relaxed), places[1 - first as usize].load(Relaxed)];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    read
}

/// Two add; what each read, and the sum.
fn added() -> Vec<u32> {
    let places = places();
    let other = places.clone();
    let thread = thread::spawn(move || other[0].fetch_add(1, Relaxed));
    let second = places[0].fetch_add(1, Relaxed);
    let first = thread.join().unwrap();
    vec![first, second, places[0].load(Relaxed)]
}

/// What was stored before a thread began, and in it before it was waited for.
fn begun_and_ended() -> Vec<u32> {
    let places = places();
    places[0].store(1, Relaxed);
    let other = places.clone();
    let thread = thread::spawn(move || {
        other[1].store(1, Relaxed);
        other[0].load(Relaxed)
    });
    let first = thread.join().unwrap();
    vec![first, places[1].load(Relaxed)]
}

/// What was stored before a thread was unparked.
fn unparked() -> Vec<u32> {
    let places = places();
    let other = places.clone();
    let thread = thread::spawn(move || {
        thread::park();
        other[0].load(Relaxed)
    });
    places[0].store(1, Relaxed);
    thread.thread().unpark();
    vec![thread.join().unwrap()]
}

/// The programs, by name.
pub(crate) const PROGRAMS: &[(&str, Program)] = &[
    ("message, relaxed", || passed(Relaxed, Relaxed, (false, false))),
    ("message, release and acquire", || passed(Release, Acquire, (false, false))),
    ("message, release alone", || passed(Release, Relaxed, (false, false))),
    ("message, acquire alone", || passed(Relaxed, Acquire, (false, false))),
    ("message, two fences", || passed(Relaxed, Relaxed, (true, true))),
    ("message, a fence and acquire", || passed(Relaxed, Acquire, (true, false))),
    ("message, release and a fence", || passed(Release, Relaxed, (false, true))),
    ("message, one fence", || passed(Relaxed, Relaxed, (true, false))),
    ("buffered, relaxed", || buffered(Relaxed, Relaxed, (false, false))),
    ("buffered, release and acquire", || buffered(Release, Acquire, (false, false))),
    ("buffered, sequential", || buffered(SeqCst, SeqCst, (false, false))),
    ("buffered, sequential stores alone", || buffered(SeqCst, Relaxed, (false, false))),
    ("buffered, two fences", || buffered(Relaxed, Relaxed, (true, true))),
    ("buffered, one fence", || buffered(Relaxed, Relaxed, (true, false))),
    ("load then store", || {
        both(
            |[x, y]| {
                let read = x.load(Relaxed);
                y.store(1, Relaxed);
                vec![read]
            },
            |[x, y]| {
                let read = y.load(Relaxed);
                x.store(1, Relaxed);
                vec![read]
            },
        )
    }),
    ("one place, read twice", || {
        both(
            |[x, _]| {
                x.store(1, Relaxed);
                x.store(2, Relaxed);
                Vec::new()
            },
            |[x, _]| vec![x.load(Relaxed), x.load(Relaxed)],
        )
    }),
    ("one place, its own store", || {
        both(
            |[x, _]| {
                x.store(1, Relaxed);
                Vec::new()
            },
            |[x, _]| {
                x.store(2, Relaxed);
                vec![x.load(Relaxed)]
            },
        )
    }),
    ("independent, relaxed", || independent(Relaxed, Relaxed)),
    ("independent, acquire", || independent(Release, Acquire)),
    ("independent, sequential", || independent(SeqCst, SeqCst)),
    ("caused, relaxed", || caused(Relaxed, Relaxed)),
    ("caused, release and acquire", || caused(Release, Acquire)),
    ("relayed by a swap", || relayed(true)),
    ("relayed by a store", || relayed(false)),
    ("locked", locked),
    ("locked to read", locked_to_read),
    ("sent", sent),
    ("added", added),
    ("begun and ended", begun_and_ended),
    ("unparked", unparked),
    ("swapped with both", || {
        both(
            |[x, y]| {
                x.store(1, Relaxed);
                vec![y.swap(1, AcqRel)]
            },
            |[x, y]| {
                let swapped = y.swap(1, AcqRel);
                vec![swapped, x.load(Relaxed)]
            },
        )
    }),
];
