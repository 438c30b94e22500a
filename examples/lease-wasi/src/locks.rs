//! Locks with leases: who holds a lock loses it after a while, so that a client that has crashed blocks nobody.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// For this long a lock is held, unless it is renewed.
pub const LEASE: Duration = Duration::from_secs(30);

pub type Client = u32;

/// The locks that were taken, by their names.
#[derive(Default)]
pub struct Locks {
    leases: HashMap<String, Lease>,
}

struct Lease {
    holder: Client,
    ends: Instant,
}

impl Locks {
    /// Who holds this lock now.
    pub fn holder(&self, name: &str) -> Option<Client> {
        let lease = self.leases.get(name)?;
        (Instant::now() < lease.ends).then_some(lease.holder)
    }

    /// Takes a lock or, for its holder, renews it. Whether the client holds it now.
    pub fn acquire(&mut self, name: &str, client: Client) -> bool {
        if self.holder(name).is_some_and(|holder| holder != client) {
            return false;
        }
        self.leases.insert(name.into(), Lease { holder: client, ends: Instant::now() + LEASE });
        true
    }

    /// Gives a lock back before its lease ends.
    pub fn release(&mut self, name: &str) {
        // The bug: the lease of a slow client may have ended, and another client may hold the lock by now. Whoever gives a
        // lock back must say who it is.
        self.leases.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_holder() {
        let mut locks = Locks::default();
        assert!(locks.acquire("a", 1));
        assert!(!locks.acquire("a", 2));
        assert!(locks.acquire("b", 2));
        locks.release("a");
        assert_eq!(locks.holder("a"), None);
        assert!(locks.acquire("a", 2));
    }
}
