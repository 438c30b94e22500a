//! Older stores, and what each viewer sees of them.

use std::sync::atomic::Ordering;

use super::acquires;
use crate::sync::scheduler;

/// Whose view it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Viewer {
    pub(super) role: Role,
    /// The number of a thread, or the address of a place or of what is locked.
    pub(super) which: usize,
    pub(super) nth: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub(super) enum Role {
    /// Of a thread: what it must see.
    Now,
    /// Of a thread: what it must see after the next fence that acquires.
    Acquired,
    /// Of a thread: what it had to see at its last fence that releases.
    Released,
    /// Of a thread, which is no view: how often in a row it read the same store of a place.
    Again,
    /// Of a store, by its place and number.
    Store,
    /// Of what was unlocked, or of a thread that has ended.
    Left,
    /// Of a thread that was unparked.
    Unparked,
    /// Of a message, by its channel and its place in the queue.
    Message,
    /// Of room in a channel, as of a message: who took what was there.
    Room,
    /// Of all that is sequentially consistent.
    Sequential,
}

pub(super) const SEQUENTIAL: Viewer = Viewer { role: Role::Sequential, which: 0, nth: 0 };

impl Viewer {
    pub(super) fn of(role: Role, which: usize) -> Viewer {
        Viewer { role, which, nth: 0 }
    }

    pub(super) fn store(place: usize, number: u32) -> Viewer {
        Viewer { role: Role::Store, which: place, nth: number }
    }
}

/// Part of a view.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) viewer: Viewer,
    pub(super) place: usize,
    pub(super) number: u32,
}

/// A store that is not the newest. There is no padding, in which something could be left.
#[derive(Clone, Copy)]
pub(super) struct Old {
    pub(super) place: usize,
    pub(super) bits: [u32; 2],
}

pub(super) struct Memory {
    /// By viewer and place.
    pub(super) seen: Vec<Seen>,
    /// By place, the oldest first.
    pub(super) old: Vec<Old>,
}

impl Memory {
    /// The number of the newest store.
    pub(super) fn newest(&self, place: usize) -> u32 {
        self.old.iter().filter(|old| old.place == place).count() as u32
    }

    /// The first place of which there are older stores, or the first after this one.
    pub(super) fn next_place(&self, place: Option<usize>) -> Option<usize> {
        self.old.iter().map(|old| old.place).find(|other| place.is_none_or(|place| *other > place))
    }

    fn find(&self, viewer: Viewer, place: usize) -> Result<usize, usize> {
        self.seen.binary_search_by_key(&(viewer, place), |seen| (seen.viewer, seen.place))
    }

    pub(super) fn get(&self, viewer: Viewer, place: usize) -> u32 {
        self.find(viewer, place).map_or(0, |at| self.seen[at].number)
    }

    pub(super) fn set(&mut self, viewer: Viewer, place: usize, number: u32) {
        match (self.find(viewer, place), number) {
            (Err(_), 0) => {}
            (Ok(at), 0) => {
                self.seen.remove(at);
                self.seen.shrink_to_fit();
            }
            (Ok(at), number) => self.seen[at].number = number,
            (Err(at), number) => {
                self.seen.reserve_exact(1);
                self.seen.insert(at, Seen { viewer, place, number });
            }
        }
    }

    pub(super) fn raise(&mut self, viewer: Viewer, place: usize, number: u32) {
        if number > self.get(viewer, place) {
            self.set(viewer, place, number);
            if viewer.role == Role::Now {
                self.set(Viewer { role: Role::Again, ..viewer }, place, 0);
            }
        }
    }

    /// Whoever this is sees also what that one does.
    pub(super) fn join(&mut self, into: Viewer, from: Viewer) {
        let mut next = Some(0);
        while let Some(place) = next {
            let (Ok(at) | Err(at)) = self.find(from, place);
            let Some(Seen { place, number, .. }) = self.seen.get(at).filter(|seen| seen.viewer == from)
            else {
                return;
            };
            let (place, number) = (*place, *number);
            self.raise(into, place, number);
            next = place.checked_add(1);
        }
    }

    /// Whoever this is sees what that one does.
    pub(super) fn copy(&mut self, into: Viewer, from: Viewer) {
        self.forget(into);
        self.join(into, from);
    }

    pub(super) fn retain(&mut self, f: impl FnMut(&mut Seen) -> bool) {
        self.seen.retain_mut(f);
        self.seen.shrink_to_fit();
    }

    pub(super) fn forget(&mut self, viewer: Viewer) {
        self.retain(|seen| seen.viewer != viewer);
    }

    /// There is only the newest store, and everyone sees it.
    pub(super) fn forget_place(&mut self, place: usize) {
        let is_store = |viewer: Viewer| viewer.role == Role::Store && viewer.which == place;
        self.retain(|seen| seen.place != place && !is_store(seen.viewer));
        self.old.retain(|old| old.place != place);
        self.old.shrink_to_fit();
    }

    /// Forgets the oldest stores of a place, so many.
    pub(super) fn drop_oldest(&mut self, place: usize, count: u32) {
        self.retain(|seen| {
            let Viewer { role, which, nth } = &mut seen.viewer;
            if *role == Role::Store && *which == place {
                match nth.checked_sub(count) {
                    Some(number) => *nth = number,
                    None => return false,
                }
            }
            if seen.place == place && *role != Role::Again {
                seen.number = seen.number.saturating_sub(count);
            }
            seen.number > 0
        });
        let first = self.old.partition_point(|old| old.place < place);
        self.old.drain(first..first + count as usize);
        self.old.shrink_to_fit();
    }

    /// Forgets stores that nobody can read any more.
    pub(super) fn prune(&mut self) {
        let mut next = self.next_place(None);
        while let Some(place) = next {
            let live = (0..scheduler::count()).filter(|number| !scheduler::is_done(*number));
            let all = live.map(|thread| self.get(Viewer::of(Role::Now, thread as usize), place));
            let oldest = all.min().unwrap_or_else(|| self.newest(place));
            if oldest > 0 {
                self.drop_oldest(place, oldest);
            }
            next = self.next_place(next);
        }
        // What a thread sees in any case, a fence does not add.
        let is_seen = |memory: &Memory, seen: &Seen| {
            let now = Viewer { role: Role::Now, ..seen.viewer };
            seen.viewer.role == Role::Acquired && seen.number <= memory.get(now, seen.place)
        };
        while let Some(at) = self.seen.iter().position(|seen| is_seen(self, seen)) {
            let Seen { viewer, place, .. } = self.seen[at];
            self.set(viewer, place, 0);
        }
    }

    /// A thread reads a store of this number.
    pub(super) fn read(&mut self, thread: usize, (place, number): (usize, u32), order: Ordering) {
        let now = Viewer::of(Role::Now, thread);
        self.raise(now, place, number);
        let into = if acquires(order) { now } else { Viewer::of(Role::Acquired, thread) };
        self.join(into, Viewer::store(place, number));
        if order == Ordering::SeqCst {
            self.raise(SEQUENTIAL, place, number);
        }
    }
}
