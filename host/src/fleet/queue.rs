//! Work that is handed to whoever is free, and what comes of it.

use std::sync::{Arc, Mutex};

use anyhow::Result;

/// Work that was taken, to be acknowledged.
pub struct Taken {
    /// What is to be done.
    pub bytes: Vec<u8>,
    /// Says that it is done, so that nobody else is given it; or that it is not, so that somebody is.
    pub done: Box<dyn FnOnce(bool) -> Result<()> + Send>,
}

/// Work of a campaign. What is taken and not acknowledged in time is given to another.
pub trait Queue: Send + Sync {
    /// Puts work in the place of all that there is.
    ///
    /// # Errors
    /// See [`Hub`](super::Hub).
    fn post(&self, work: &[Vec<u8>]) -> Result<()>;

    /// Takes some, if there is any now.
    ///
    /// # Errors
    /// As above.
    fn take(&self) -> Result<Option<Taken>>;

    /// Sends what came of work to whoever waits for it. It may be lost.
    ///
    /// # Errors
    /// As above; or it is too long.
    fn send(&self, bytes: Vec<u8>) -> Result<()>;

    /// What was sent since this was last asked.
    fn received(&self) -> Vec<Vec<u8>>;
}

/// What was received and not asked for. More than so many bytes are dropped.
#[derive(Clone, Default)]
pub(super) struct Inbox(Arc<Mutex<(Vec<Vec<u8>>, usize)>>);

/// Bytes that wait, at most.
const BYTES_MAX: usize = 256 << 20;

impl Inbox {
    pub(super) fn put(&self, bytes: Vec<u8>) {
        let mut inbox = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if inbox.1 + bytes.len() <= BYTES_MAX {
            inbox.1 += bytes.len();
            inbox.0.push(bytes);
        }
    }

    pub(super) fn take(&self) -> Vec<Vec<u8>> {
        let mut inbox = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        inbox.1 = 0;
        std::mem::take(&mut inbox.0)
    }
}
