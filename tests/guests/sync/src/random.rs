//! A program of threads that is written down in bytes, which a test puts in the place of others.

use spelunk_guest::prelude::*;
use spelunk_guest::sync::atomic::{AtomicU32, Ordering, fence};
use spelunk_guest::sync::mpsc::{Receiver, SyncSender, sync_channel};
use spelunk_guest::sync::thread::{self, Thread};
use spelunk_guest::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock};

const LEN: usize = 256;

/// What a test looks for, and then: how many threads, what they have, and of each its operations, three bytes each, 0 behind them.
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
struct Own {
    main: Option<Thread>,
    sender: Option<SyncSender<u32>>,
    receiver: Option<Receiver<u32>>,
    read: Vec<u32>,
}

fn run(world: &Arc<World>, own: &mut Own, code: &[u8]) {
    let [acquire, release] = ORDERS;
    let mut guards = [None, None];
    let mut children = Vec::new();
    for operation in code.chunks_exact(3) {
        let (which, value) = (operation[1] as usize, u32::from(operation[2]));
        let word = &world.words[which % 3];
        let mutex = which % 2;
        let read = match operation[0] {
            1 => Some(word.load(acquire)),
            2 => {
                word.store(value, release);
                None
            }
            3 => Some(word.fetch_add(value, release)),
            4 => Some(word.compare_exchange(0, value, acquire, acquire).is_ok().into()),
            5 if guards[mutex].is_none() => {
                let mut guard = world.mutexes[mutex].lock().unwrap();
                *guard += value;
                let read = *guard;
                guards[mutex] = Some(guard);
                Some(read)
            }
            6 => {
                guards[mutex] = None;
                None
            }
            7 if guards[mutex].is_none() => world.mutexes[mutex].try_lock().ok().map(|mut guard| {
                *guard += value;
                *guard
            }),
            8 => match guards[mutex].take() {
                Some(guard) => {
                    guards[mutex] = Some(world.condvar.wait(guard).unwrap());
                    None
                }
                None => {
                    world.condvar.notify_one();
                    None
                }
            },
            9 => Some(*world.lock.read().unwrap()),
            10 => {
                *world.lock.write().unwrap() += value;
                None
            }
            11 => {
                if let Some(once) = &world.once {
                    once.call_once(|| {
                        word.fetch_add(value, release);
                    });
                }
                None
            }
            12 => world.barrier.as_ref().map(|barrier| barrier.wait().is_leader().into()),
            13 => {
                match &own.main {
                    Some(main) => main.unpark(),
                    None => thread::park(),
                }
                None
            }
            14 => match (&own.sender, &own.receiver) {
                (Some(sender), _) => Some(sender.send(value).is_ok().into()),
                (_, Some(receiver)) => receiver.recv().ok(),
                _ => None,
            },
            15 => {
                thread::yield_now();
                None
            }
            16 => {
                let world = world.clone();
                children.push(thread::spawn(move || world.words[which % 3].swap(value, release)));
                None
            }
            17 => children.last().map(|child| child.is_finished().into()),
            18 => children.pop().map(|child| child.join().unwrap()),
            19 => {
                fence(Ordering::SeqCst);
                None
            }
            20 => {
                let read = word.load(acquire);
                assert!(read != value, "it is {read}");
                Some(read)
            }
            _ => None,
        };
        own.read.extend(read);
    }
}

#[spelunk_guest::threads]
fn random() {
    let [threads, has, code @ ..] = &std::hint::black_box(&PROGRAM)[MAGIC..] else { return };
    let world = World {
        once: (has & 1 != 0).then(Once::new),
        barrier: (has & 2 != 0).then(|| Barrier::new(2)),
        ..World::default()
    };
    let world = Arc::new(world);
    let (sender, receiver) =
        if has & 4 != 0 { Some(sync_channel(usize::from(has >> 4))).unzip() } else { (None, None) };
    let mut lists = code.split(|byte| *byte == 0);
    let mut own = Own { main: None, sender: None, receiver, read: Vec::new() };
    let start = |list: &'static [u8]| {
        let (world, main, sender) = (world.clone(), (has & 8 != 0).then(thread::current), sender.clone());
        thread::spawn(move || {
            let mut own = Own { main, sender, receiver: None, read: Vec::new() };
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
