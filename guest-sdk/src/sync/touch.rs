//! What the next operation of each thread touches, as the host is told that is to leave out orders of operations that touch nothing in
//! common. `guest-sdk/ABI.md` has the numbers.

use std::ptr;

use super::cell::Shared;
use super::condvar;
use super::order;
use super::scheduler::{NOBODY, Slot, What, current};

mod host {
    #[link(wasm_import_module = "spelunk")]
    unsafe extern "C" {
        pub(super) safe fn touches(thread: u32, how: u32, object: *const (), joined: u64);
        pub(super) safe fn reduces() -> i32;
    }
}

const ENDED: u32 = 0;
const NOTHING: u32 = 1;
const READS: u32 = 2;
const WRITES: u32 = 3;
const JOINS: u32 = 4;
const ASKS_FOR_END: u32 = 5;
const PARKING: u32 = 6;
const SPAWNS: u32 = 7;
const NOT_TOLD: u32 = 8;
const EVERYTHING: u32 = 9;
/// The bit that says that this is so in the step that the thread makes now, and not in its next one.
const NOW: u32 = 16;

/// What the host knows of threads, by their numbers. It is left as it is where nothing is told.
struct Told {
    /// The guest does nothing but let threads go on.
    is_alone: bool,
    /// Threads that were started.
    started: u32,
    /// How many had been before each of them, which tells it from all others of the run.
    serial: [u32; THREADS_MAX],
    /// The threads that it has waited for until they had ended, and those that these have, as bits of that.
    joined: [u64; THREADS_MAX],
}

/// Beyond this number nothing is known.
const THREADS_MAX: usize = 64;

static TOLD: Shared<Told> =
    Shared::new(Told { is_alone: false, started: 0, serial: [0; THREADS_MAX], joined: [0; THREADS_MAX] });

impl Told {
    fn serial(&self, thread: u32) -> u32 {
        self.serial.get(thread as usize).copied().unwrap_or(THREADS_MAX as u32)
    }

    fn bit(&self, thread: u32) -> u64 {
        1u64.checked_shl(self.serial(thread)).unwrap_or(0)
    }

    fn joined(&self, thread: u32) -> u64 {
        self.joined.get(thread as usize).copied().unwrap_or(0)
    }
}

fn with<R>(f: impl FnOnce(&mut Told) -> R) -> R {
    // SAFETY: `f` does not come back here, and does not suspend.
    f(unsafe { TOLD.write() })
}

/// From now on the guest does nothing but let threads go on.
pub(super) fn begin() {
    with(|told| told.is_alone = true);
}

fn is_told() -> bool {
    with(|told| told.is_alone) && host::reduces() != 0
}

/// The thread that runs has waited for the end of this one.
pub(super) fn joins(thread: u32) {
    let by = current();
    if by != NOBODY && is_told() {
        with(|told| {
            let more = told.joined(thread) | told.bit(thread);
            told.joined.iter_mut().nth(by as usize).into_iter().for_each(|joined| *joined |= more);
        });
    }
}

/// The thread that runs, or nobody, starts another one.
pub(super) fn spawns(thread: u32) {
    if !is_told() {
        return;
    }
    let by = current();
    with(|told| {
        let joined = told.joined(by);
        if let Some(serial) = told.serial.get_mut(thread as usize) {
            (*serial, told.joined[thread as usize]) = (told.started, joined);
        }
        told.started += 1;
    });
    now(SPAWNS, thread_as_object(thread));
}

/// The thread that runs drops the handle of another one. What that returned, a `T`, is dropped by who comes last.
pub(super) fn lets_go<T>(thread: u32) {
    if !std::mem::needs_drop::<T>() || current() == NOBODY || !is_told() {
        return;
    }
    if with(|told| told.joined(current()) & told.bit(thread) == 0) {
        now(ASKS_FOR_END, thread_as_object(thread));
    }
}

/// The step that the thread makes that runs also reads this.
pub(super) fn also_reads(object: *const ()) {
    if is_told() {
        now(READS, object);
    }
}

/// It depends on something that is not told of, as on numbers of threads, or where blocks of memory are.
pub(super) fn looks_at_what_is_not_told() {
    if is_told() {
        now(NOT_TOLD, ptr::null());
    }
}

/// A thread by its number, as the host knows it.
fn thread_as_object(thread: u32) -> *const () {
    ptr::without_provenance(with(|told| told.serial(thread)) as usize)
}

fn now(how: u32, object: *const ()) {
    if current() != NOBODY {
        touches(current(), how | NOW, object);
    }
}

fn touches(thread: u32, how: u32, object: *const ()) {
    let (serial, joined) = with(|told| (told.serial(thread), told.joined(thread)));
    host::touches(serial << 16 | thread & 0xffff, how, object, joined);
}

/// Tells of each thread what it touches once it goes on.
pub(super) fn tell(slots: &[Slot]) {
    if !is_told() {
        return;
    }
    for (number, slot) in (0..).zip(slots) {
        if !slot.is_live {
            touches(number, ENDED, ptr::null());
            continue;
        }
        let object = slot.wait.object;
        let of_thread = || thread_as_object(object.addr() as u32);
        let (how, object) = match slot.wait.what {
            What::Leave | What::Wait => {
                let sleeper = condvar::of(object);
                touches(number, WRITES, sleeper.mutex);
                (WRITES, sleeper.condvar)
            }
            // It waits until another one comes here.
            _ if !slot.sleeps_at.is_null() => (WRITES, slot.sleeps_at),
            What::Nothing | What::End => (NOTHING, ptr::null()),
            // It sees what it read late.
            What::Yield => (if order::is_any_late() { EVERYTHING } else { NOTHING }, ptr::null()),
            What::Load => (READS, object),
            // Where stores are seen late, loads of this order are in one order.
            What::SequentialLoad => (if order::is_any_late() { WRITES } else { READS }, object),
            What::Join => (JOINS, of_thread()),
            What::Finished => (ASKS_FOR_END, of_thread()),
            What::Park | What::Unpark => (PARKING, of_thread()),
            What::Fence => (EVERYTHING, ptr::null()),
            What::Store
            | What::Swap
            | What::Lock
            | What::TryLock
            | What::Unlock
            | What::Read
            | What::Write
            | What::Notify
            | What::Barrier
            | What::Once
            | What::Initialized
            | What::Send
            | What::NoSender
            | What::Receive
            | What::NoReceiver => (WRITES, object),
        };
        touches(number, how, object);
    }
}
