//! As `std`'s barrier.

use std::fmt;
use std::panic::Location;

use super::order::Link;
use super::scheduler::{Wait, What, current, is_notified, notify, point, sleep, waiters};

/// As [`std::sync::Barrier`].
pub struct Barrier {
    count: usize,
    link: Link,
}

/// As [`std::sync::BarrierWaitResult`].
#[derive(Clone, Copy, Debug)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Whether it is that of the last one to come.
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl Barrier {
    /// One that holds until so many have come.
    pub const fn new(count: usize) -> Self {
        Self { count, link: Link::new() }
    }

    /// Waits until as many have come as there must be.
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        let (object, at) = (std::ptr::from_ref(self).cast(), Location::caller());
        point(What::Barrier, object, at);
        self.link.leave();
        let others = waiters(object);
        if others.len() + 1 >= self.count {
            // Now, since by the time that they go on others may have come here once more.
            self.link.follow();
            for number in others {
                self.link.followed_by(number);
                notify(number);
            }
            return BarrierWaitResult(true);
        }
        let can_go_on = |number: *const ()| is_notified(number.addr() as u32);
        let number = std::ptr::without_provenance(current() as usize);
        sleep(Wait { what: What::Barrier, object: number, can_go_on, at }, object);
        BarrierWaitResult(false)
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}
