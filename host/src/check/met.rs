//! How much memory a check takes.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Limit, Options};
use crate::target::Target;

/// Bytes that the states which were met, the steps that lead there and the paths that failed hold, about.
#[derive(Default)]
pub(super) struct Met(pub(super) AtomicUsize);

impl Met {
    pub(super) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn set(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// What ends the check where these, and those that a worker holds beside them, are too many.
    pub(super) fn limit(&self, beside: usize, options: &Options) -> Option<Limit> {
        let bytes = self.0.load(Ordering::Relaxed) + beside;
        (bytes > options.met_bytes_max).then_some(Limit::Memory)
    }

    /// Whether one more state may be saved.
    pub(super) fn has_room<T: Target>(&self, target: &T, options: &Options) -> bool {
        target.saved_bytes() < self.room(options)
    }

    /// Bytes that all saved states may have.
    pub(super) fn room(&self, options: &Options) -> usize {
        options.saved_bytes_max.saturating_sub(self.0.load(Ordering::Relaxed))
    }
}
