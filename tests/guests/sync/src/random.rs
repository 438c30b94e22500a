//! A program of threads that is written down in bytes, which a test puts in the place of others.

use spelunk_guest::prelude::*;
use spelunk_guest::sync::atomic::{AtomicU32, Ordering, fence};
use spelunk_guest::sync::mpsc::{Receiver, SyncSender, sync_channel};
use spelunk_guest::sync::thread::{self, JoinHandle, Thread};
use spelunk_guest::sync::{Arc, Barrier, Condvar, Mutex, MutexGuard, Once, RwLock};

use crate::apart::PROGRAMS;

const LEN: usize = 256;

/// What a test looks for, and then: how many threads, or a program of `apart`; what they have; and of each its operations, three bytes each, 0
/// behind them.
static PROGRAM: [u8; LEN] = {
    let mut program = [0xee; LEN];
    let magic = *b"a program of threads";
    let mut at = 0;
    while at < magic.len() {
        program[at] = magic[at];
        at += 1;
    }
    program
};
const MAGIC: usize = 20;

const ORDERS: [Ordering; 2] = match cfg!(feature = "relaxed") {
    true => [Ordering::Acquire, Ordering::Release],
    false => [Ordering::SeqCst; 2],
};

#[derive(Default)]
struct World {
    words: [AtomicU32; 3],
    mutexes: [Mutex<u32>; 2],
    condvar: Condvar,
    lock: RwLock<u32>,
    once: Option<Once>,
    barrier: Option<Barrier>,
}

/// What a thread has of its own.
#[derive(Default)]
struct Own {
    main: Option<Thread>,
    sender: Option<SyncSender<u32>>,
    receiver: Option<Receiver<u32>>,
    children: Vec<JoinHandle<u32>>,
    read: Vec<u32>,
}

/// What an operation does with an atomic, where it does.
fn of_word(word: &AtomicU32, operation: u8, value: u32) -> Option<u32> {
    let [acquire, release] = ORDERS;
    match operation {
        1 => Some(word.load(acquire)),
        2 => {
            word.store(value, release);
            None
        }
        3 => Some(word.fetch_add(value, release)),
        4 => Some(word.compare_exchange(0, value, acquire, acquire).is_ok().into()),
        5 => {
            let read = word.load(acquire);
            assert!(read != value, "it is {read}");
            Some(read)
        }
        _ => None,
    }
}

/// What it does with a lock, where it does.
fn of_lock<'a>(
    world: &'a World,
    guard: &mut Option<MutexGuard<'a, u32>>,
    (operation, mutex): (u8, &'a Mutex<u32>),
    value: u32,
) -> Option<u32> {
    match (operation, guard.take()) {
        (6, None) => {
            let mut taken = mutex.lock().unwrap();
            *taken += value;
            let read = *taken;
            *guard = Some(taken);
            Some(read)
        }
        (7, taken) => {
            drop(taken);
            None
        }
        (8, None) => mutex.try_lock().ok().map(|mut taken| {
            *taken += value;
            *taken
        }),
        (9, Some(taken)) => {
            *guard = Some(world.condvar.wait(taken).unwrap());
            None
        }
        (9, None) => {
            world.condvar.notify_one();
            None
        }
        (10, taken) => {
            *guard = taken;
            Some(*world.lock.read().unwrap())
        }
        (11, taken) => {
            *guard = taken;
            *world.lock.write().unwrap() += value;
            None
        }
        (_, taken) => {
            *guard = taken;
            None
        }
    }
}

/// What it does with other threads, where it does.
fn of_others(world: &Arc<World>, own: &mut Own, (operation, which): (u8, usize), value: u32) -> Option<u32> {
    match operation {
        12 => {
            let word = &world.words[which % 3];
            let add = || {
                of_word(word, 3, value);
            };
            world.once.iter().for_each(|once| once.call_once(add));
            None
        }
        13 => world.barrier.as_ref().map(|barrier| barrier.wait().is_leader().into()),
        14 => {
            own.main.as_ref().map_or_else(thread::park, Thread::unpark);
            None
        }
        15 => match (&own.sender, &own.receiver) {
            (Some(sender), _) => Some(sender.send(value).is_ok().into()),
            (_, Some(receiver)) => receiver.recv().ok(),
            _ => None,
        },
        16 => {
            let world = world.clone();
            own.children.push(thread::spawn(move || world.words[which % 3].swap(value, ORDERS[1])));
            None
        }
        17 => own.children.last().map(|child| child.is_finished().into()),
        18 => own.children.pop().map(|child| child.join().unwrap()),
        19 => {
            fence(Ordering::SeqCst);
            None
        }
        20 => {
            thread::yield_now();
            None
        }
        _ => None,
    }
}

fn run(world: &Arc<World>, own: &mut Own, code: &[u8]) {
    let mut guards = [None, None];
    for operation in code.chunks_exact(3) {
        let [operation, which, value] = [operation[0], operation[1], operation[2]];
        let (which, value) = (usize::from(which), value.into());
        let read = match operation {
            ..=5 => of_word(&world.words[which % 3], operation, value),
            ..=11 => {
                let mutex = &world.mutexes[which % 2];
                of_lock(world, &mut guards[which % 2], (operation, mutex), value)
            }
            _ => of_others(world, own, (operation, which), value),
        };
        own.read.extend(read);
    }
}

#[spelunk_guest::threads]
fn random() {
    let [threads, has, code @ ..] = &std::hint::black_box(&PROGRAM)[MAGIC..] else { return };
    if let Some(program) = usize::from(*threads).checked_sub(100).and_then(|nth| PROGRAMS.get(nth)) {
        return program();
    }
    let world = World {
        once: (has & 1 != 0).then(Once::new),
        barrier: (has & 2 != 0).then(|| Barrier::new(2)),
        ..World::default()
    };
    let world = Arc::new(world);
    let (sender, receiver) =
        if has & 4 != 0 { Some(sync_channel(usize::from(has >> 4))).unzip() } else { (None, None) };
    let mut lists = code.split(|byte| *byte == 0);
    let mut own = Own { receiver, ..Own::default() };
    let start = |list: &'static [u8]| {
        let (world, main, sender) = (world.clone(), (has & 8 != 0).then(thread::current), sender.clone());
        thread::spawn(move || {
            let mut own = Own { main, sender, ..Own::default() };
            run(&world, &mut own, list);
            own.read
        })
    };
    let of_main = lists.next().unwrap_or_default();
    let others: Vec<_> = lists.take((*threads).into()).map(start).collect();
    drop(sender);
    run(&world, &mut own, of_main);
    drop(own.receiver);
    let mut read = vec![own.read];
    read.extend(others.into_iter().map(|other| other.join().unwrap()));
    let left = world.words.each_ref().map(|word| word.load(Ordering::SeqCst));
    event!("{read:?} {left:?}");
}
