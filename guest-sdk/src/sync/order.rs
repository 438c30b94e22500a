//! What a load may read: a thread sees a store late, unless it was told of it.
//!
//! Stores of a place are numbered in the order in which they are executed, and the older ones are kept. A *view* says of
//! places which of their stores is the oldest that may still be read; 0, the oldest that is kept, is not written down. Each thread has
//! a view, and each store has one: what a thread that reads it to acquire is told. It is the model of C++ as views describe it
//! (Kang et al. 2017), but that stores are seen in the order of execution: no thread reads a store that comes later in a run.
//!
//! All of it is left out where each operation is sequentially consistent.

mod bits;
mod memory;

use std::sync::atomic::Ordering;

use super::cell::Shared;
use super::scheduler::{self, NOBODY, current};
use crate::abi;
use crate::outcome::note;
use memory::{Memory, Old, Role, SEQUENTIAL, Viewer};

pub(super) use bits::Bits;

mod host {
    #[link(wasm_import_module = "spelunk")]
    unsafe extern "C" {
        /// Nothing: a module that imports it has an operation that is not sequentially consistent.
        pub(super) safe fn relax();
        /// Whether it does.
        pub(super) safe fn relaxed() -> i32;
    }
}

/// Stores that are kept of a place beside the newest, at most.
const KEPT: u32 = 8;
/// How often a thread reads the same store in a row although there is a newer one, at most: then every loop that waits for one ends.
const AGAIN: u32 = 2;

/// Says that there is an operation of this order, where it is not left out when the guest is compiled.
#[inline(always)]
pub(super) fn exists(order: Ordering) {
    if order != Ordering::SeqCst {
        host::relax();
    }
}

/// Whether stores may be seen late.
pub(super) fn is_any_late() -> bool {
    host::relaxed() != 0
}

/// The thread that runs, where it may see stores late.
fn thread() -> Option<usize> {
    let thread = current();
    (thread != NOBODY && is_any_late()).then_some(thread as usize)
}

static MEMORY: Shared<Memory> = Shared::new(Memory { seen: Vec::new(), old: Vec::new() });

fn with<R>(f: impl FnOnce(&mut Memory) -> R) -> R {
    // SAFETY: `f` does not come back here, and does not suspend.
    f(unsafe { MEMORY.write() })
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

/// Of an atomic: its address, where older stores of it are known, else 0. What stood there before, or where it is moved to, has left some,
/// too.
pub(super) struct Stores(Shared<usize>);

impl Stores {
    pub(super) const fn new() -> Stores {
        Stores(Shared::new(0))
    }

    /// Its only owner may do with it what nobody knows of.
    pub(super) fn forget(&mut self) {
        self.0.set(0);
    }

    /// What the thread reads that runs, where that is not the newest store.
    pub(super) fn load(&self, place: usize, order: Ordering) -> Option<u64> {
        let thread = thread().filter(|_| self.0.get() == place)?;
        let now = Viewer::of(Role::Now, thread);
        let again = Viewer::of(Role::Again, thread);
        let (newest, oldest, last, times) = with(|memory| {
            let newest = memory.newest(place);
            let (last, times) = (memory.get(now, place), memory.get(again, place));
            let sequential = if order == Ordering::SeqCst { memory.get(SEQUENTIAL, place) } else { 0 };
            let next = if times < AGAIN { last } else { (last + 1).min(newest) };
            (newest, next.max(sequential), last, times)
        });
        let late = if oldest < newest { abi::index((newest - oldest) as usize + 1) as u32 } else { 0 };
        let number = newest - late;
        let bits = with(|memory| {
            let first = memory.old.partition_point(|old| old.place < place);
            let bits = (late > 0).then(|| memory.old[first + number as usize].bits);
            memory.read(thread, (place, number), order);
            if late > 0 {
                memory.set(again, place, if number == last { times + 1 } else { 1 });
            }
            memory.prune();
            bits
        });
        if late > 0 && abi::verbose() {
            note(format_args!("it reads a store that is not the newest: {late} came after it"));
        }
        bits.map(|[low, high]| u64::from(high) << 32 | u64::from(low))
    }

    /// The thread that runs reads the newest store.
    pub(super) fn load_newest(&self, place: usize, order: Ordering) {
        let Some(thread) = thread().filter(|_| self.0.get() == place) else { return };
        with(|memory| {
            let newest = memory.newest(place);
            memory.read(thread, (place, newest), order);
            memory.prune();
        });
    }

    /// The thread that runs stores, where this was held; `swaps` if it reads that at once.
    pub(super) fn store(&self, place: usize, before: u64, order: Ordering, swaps: bool) {
        let Some(thread) = thread() else {
            if self.0.get() != 0 {
                self.0.set(0);
                with(|memory| memory.forget_place(place));
            }
            return;
        };
        with(|memory| {
            if self.0.get() != place {
                self.0.set(place);
                memory.forget_place(place);
            }
            let last = memory.newest(place);
            if swaps {
                memory.read(thread, (place, last), order);
            }
            let bits = [before as u32, (before >> 32) as u32];
            let behind = memory.old.partition_point(|old| old.place <= place);
            memory.old.reserve_exact(1);
            memory.old.insert(behind, Old { place, bits });
            let (number, now) = (last + 1, Viewer::of(Role::Now, thread));
            memory.raise(now, place, number);
            let told = if releases(order) { now } else { Viewer::of(Role::Released, thread) };
            let store = Viewer::store(place, number);
            memory.copy(store, told);
            if swaps {
                // What follows a store in this way tells of it too.
                memory.join(store, Viewer::store(place, last));
            }
            if order == Ordering::SeqCst {
                memory.raise(SEQUENTIAL, place, number);
            }
            if number > KEPT {
                memory.drop_oldest(place, 1);
            }
            memory.prune();
        });
    }
}

/// The thread that runs comes to a fence. Whether others can tell when.
pub(super) fn fence(order: Ordering, stop: impl FnOnce()) {
    let Some(thread) = thread() else { return };
    if order == Ordering::SeqCst {
        stop();
    }
    let now = Viewer::of(Role::Now, thread);
    with(|memory| {
        if acquires(order) {
            memory.join(now, Viewer::of(Role::Acquired, thread));
        }
        if order == Ordering::SeqCst {
            memory.join(now, SEQUENTIAL);
            memory.join(SEQUENTIAL, now);
        }
        if releases(order) {
            memory.copy(Viewer::of(Role::Released, thread), now);
        }
        memory.prune();
    });
}

/// The thread that runs gives way: of the places that it read late it sees the newest store now.
pub(super) fn gave_way() {
    let Some(thread) = thread() else { return };
    let (now, again) = (Viewer::of(Role::Now, thread), Viewer::of(Role::Again, thread));
    with(|memory| {
        while let Some(place) = memory.seen.iter().find(|seen| seen.viewer == again).map(|seen| seen.place) {
            let newest = memory.newest(place);
            memory.raise(now, place, newest);
            memory.set(again, place, 0);
        }
        memory.prune();
    });
}

/// Of a lock, or what is like one: its address, where somebody has left it there, else 0.
pub(super) struct Link(Shared<usize>);

impl Link {
    pub(super) const fn new() -> Link {
        Link(Shared::new(0))
    }

    fn place(&self) -> usize {
        self.0.as_ptr().addr()
    }

    fn viewer(&self) -> Viewer {
        Viewer::of(Role::Left, self.place())
    }

    /// Whoever follows sees what the thread does that runs.
    pub(super) fn leave(&self) {
        let Some(thread) = thread() else { return };
        with(|memory| {
            if self.0.get() != self.place() {
                self.0.set(self.place());
                memory.forget(self.viewer());
            }
            memory.join(self.viewer(), Viewer::of(Role::Now, thread));
        });
    }

    /// The thread that runs sees what those saw who left it.
    pub(super) fn follow(&self) {
        self.followed_by(current());
    }

    /// A thread of this number, which may wait meanwhile, sees it.
    pub(super) fn followed_by(&self, number: u32) {
        if thread().is_some() && self.0.get() == self.place() {
            see(Viewer::of(Role::Now, number as usize), self.viewer());
        }
    }
}

fn see(viewer: Viewer, other: Viewer) {
    with(|memory| {
        memory.join(viewer, other);
        memory.prune();
    });
}

/// A message of the thread that runs was put at this place of a queue, behind all others.
pub(super) fn sent(channel: usize, nth: usize) {
    put(Viewer { role: Role::Message, which: channel, nth: nth as u32 });
}

/// The thread that runs took a message, and left room behind all other, of which there is so much. One that later fills it sees what the
/// thread did, as `std` has it.
pub(super) fn made_room(channel: usize, nth: usize) {
    put(Viewer { role: Role::Room, which: channel, nth: nth as u32 });
}

fn put(last: Viewer) {
    if let Some(thread) = thread() {
        with(|memory| memory.copy(last, Viewer::of(Role::Now, thread)));
    }
}

/// A message was taken from this place of a queue; `is_received` by the thread that runs, or else forgotten.
pub(super) fn taken(channel: usize, nth: usize, is_received: bool) {
    take(Viewer { role: Role::Message, which: channel, nth: nth as u32 }, is_received);
}

/// The thread that runs fills the first room there is.
pub(super) fn filled(channel: usize) {
    take(Viewer { role: Role::Room, which: channel, nth: 0 }, true);
}

/// One of a queue is taken, also outside of threads, and those behind it close up.
fn take(one: Viewer, is_seen: bool) {
    if !is_any_late() {
        return;
    }
    with(|memory| {
        if let Some(thread) = thread().filter(|_| is_seen) {
            memory.join(Viewer::of(Role::Now, thread), one);
        }
        memory.forget(one);
        memory.retain(|seen| {
            let Viewer { role, which, nth } = &mut seen.viewer;
            if (*role, *which) == (one.role, one.which) && *nth > one.nth {
                *nth -= 1;
            }
            true
        });
        memory.prune();
    });
}

/// A channel begins, or ends.
pub(super) fn forget_messages(channel: usize) {
    if is_any_late() {
        with(|memory| {
            let is_in_it = |role| matches!(role, Role::Message | Role::Room);
            memory.retain(|seen| !is_in_it(seen.viewer.role) || seen.viewer.which != channel);
        });
    }
}

/// A thread of this number begins: it sees what the one does that runs, or all where there is none.
pub(super) fn begin(number: u32) {
    if !is_any_late() {
        return;
    }
    forget_thread(number);
    let now = Viewer::of(Role::Now, number as usize);
    with(|memory| match current() {
        NOBODY => {
            let mut next = memory.next_place(None);
            while let Some(place) = next {
                let newest = memory.newest(place);
                memory.raise(now, place, newest);
                next = memory.next_place(next);
            }
        }
        thread => memory.copy(now, Viewer::of(Role::Now, thread as usize)),
    });
}

/// A thread of this number has ended, and may be waited for, or not.
pub(super) fn end(number: u32, is_held: bool) {
    if !is_any_late() {
        return;
    }
    let which = number as usize;
    with(|memory| {
        if is_held {
            memory.copy(Viewer::of(Role::Left, which), Viewer::of(Role::Now, which));
        }
        for role in [Role::Now, Role::Acquired, Role::Released, Role::Again, Role::Unparked] {
            memory.forget(Viewer::of(role, which));
        }
        memory.prune();
    });
}

/// Nobody waits any more for a thread of this number that has ended.
pub(super) fn forget_thread(number: u32) {
    if is_any_late() {
        with(|memory| memory.forget(Viewer::of(Role::Left, number as usize)));
    }
}

/// The thread that runs has waited for one of this number.
pub(super) fn joined(number: u32) {
    if let Some(thread) = thread() {
        see(Viewer::of(Role::Now, thread), Viewer::of(Role::Left, number as usize));
    }
}

/// The thread that runs lets one of this number go on from where it parks. One that has ended will not.
pub(super) fn unparked(number: u32) {
    if let Some(thread) = thread().filter(|_| number != NOBODY && !scheduler::is_done(number)) {
        let unparked = Viewer::of(Role::Unparked, number as usize);
        with(|memory| memory.join(unparked, Viewer::of(Role::Now, thread)));
    }
}

/// The thread that runs lets one of this number go on, which waits: that sees what this one does.
pub(super) fn let_on(number: u32) {
    if let Some(thread) = thread() {
        see(Viewer::of(Role::Now, number as usize), Viewer::of(Role::Now, thread));
    }
}

/// The thread that runs goes on from where it parked.
pub(super) fn parked() {
    if let Some(thread) = thread() {
        let unparked = Viewer::of(Role::Unparked, thread);
        with(|memory| {
            memory.join(Viewer::of(Role::Now, thread), unparked);
            memory.forget(unparked);
            memory.prune();
        });
    }
}
