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
const SPAWNS_AGAIN: u32 = 8;
const EVERYTHING: u32 = 9;
/// The bit that says that this is so in the step that the thread makes now, and not in its next one.
const NOW: u32 = 16;

/// The guest does nothing but let threads go on.
static IS_ALONE: Shared<bool> = Shared::new(false);

/// From now on the guest does nothing but let threads go on.
pub(super) fn begin() {
    IS_ALONE.set(true);
}

fn is_told() -> bool {
    IS_ALONE.get() && host::reduces() != 0
}

/// For each thread the threads that it has waited for until they had ended, and those that these have, as bits.
static JOINED: Shared<[u64; 64]> = Shared::new([0; 64]);

/// What happens to them; a thread of a higher number has none.
fn joined<R>(f: impl FnOnce(&mut [u64; 64]) -> R) -> R {
    // SAFETY: `f` does not come back here, and does not suspend.
    f(unsafe { JOINED.write() })
}

fn of(joined: &[u64; 64], thread: u32) -> u64 {
    joined.get(thread as usize).copied().unwrap_or(0)
}

fn bit(thread: u32) -> u64 {
    1u64.checked_shl(thread).unwrap_or(0)
}

/// The thread that runs has waited for the end of this one.
pub(super) fn joins(thread: u32) {
    if current() != NOBODY && is_told() {
        joined(|joined| {
            let more = of(joined, thread) | bit(thread);
            joined.iter_mut().nth(current() as usize).into_iter().for_each(|joined| *joined |= more);
        });
    }
}

/// The thread that runs, or nobody, starts another one, of a number that is used again or not.
pub(super) fn spawns(thread: u32, is_again: bool) {
    if !is_told() {
        return;
    }
    let object = ptr::without_provenance(thread as usize);
    now(if is_again { SPAWNS_AGAIN } else { SPAWNS }, object);
    joined(|joined| {
        joined.iter_mut().for_each(|joined| *joined &= !bit(thread));
        let own = of(joined, current());
        joined.iter_mut().nth(thread as usize).into_iter().for_each(|joined| *joined = own);
    });
}

/// The step that the thread makes that runs also writes this.
pub(super) fn also(object: *const ()) {
    if is_told() {
        now(WRITES, object);
    }
}

fn now(how: u32, object: *const ()) {
    if current() != NOBODY {
        host::touches(current(), how | NOW, object, joined(|joined| of(joined, current())));
    }
}

/// Tells of each thread what it touches once it goes on.
pub(super) fn tell(slots: &[Slot]) {
    if !is_told() {
        return;
    }
    for (number, slot) in (0..).zip(slots) {
        let joined = joined(|joined| of(joined, number));
        if !slot.is_live {
            host::touches(number, ENDED, ptr::null(), joined);
            continue;
        }
        let object = slot.wait.object;
        let (how, object) = match slot.wait.what {
            What::Leave | What::Wait => {
                let sleeper = condvar::of(object);
                host::touches(number, WRITES, sleeper.mutex, joined);
                (WRITES, sleeper.condvar)
            }
            // It waits until another one comes here.
            _ if !slot.sleeps_at.is_null() => (WRITES, slot.sleeps_at),
            What::Nothing => (NOTHING, ptr::null()),
            // It sees what it read late.
            What::Yield => (if order::is_any_late() { EVERYTHING } else { NOTHING }, ptr::null()),
            What::Load => (READS, object),
            What::Join => (JOINS, object),
            What::Finished => (ASKS_FOR_END, object),
            What::Park | What::Unpark => (PARKING, object),
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
            | What::Send
            | What::Receive => (WRITES, object),
        };
        host::touches(number, how, object, joined);
    }
}
