//! States that other processes saved, and what all states hold.

use std::sync::Arc;

use super::{Machine, Snapshot, pages};

/// Where states are kept that other processes saved.
pub trait Elsewhere: Send + Sync {
    /// The state with this hash, if it is to be had now.
    fn state(&self, state: u128) -> Option<Snapshot>;
}

/// Bytes that all saved states in this process hold, about.
pub fn saved_bytes() -> usize {
    pages::saved_bytes()
}

impl Machine {
    /// Sets where states are to be had that other processes saved.
    pub fn set_elsewhere(&mut self, elsewhere: Arc<dyn Elsewhere>) {
        self.elsewhere = Some(elsewhere);
    }
}
