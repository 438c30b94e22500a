//! A check that is kept, and one that other processes help with.

use super::{Checked, GoesOn, Helpers, Limit, News, Options, Source, Trouble, breadth};
use crate::target::Target;
use crate::threads;

/// What a check came to, or why it came to nothing.
pub type Walked = Result<Checked, Box<Trouble>>;

/// Keeps what a breadth-first check comes to.
pub trait Keeper: Sync {
    /// Whether it is time to keep something, which ends once it is kept.
    fn is_due(&self) -> bool;

    /// Keeps what came to be known since the last time.
    fn keep(&self, news: &News);

    /// A place for hashes of states that take too much memory, empty; nothing where there is none.
    fn hashes(&self) -> Option<Box<dyn Hashes>> {
        None
    }

    /// A place for what else takes too much memory, empty; nothing where there is none.
    fn bytes(&self) -> Option<Box<dyn Bytes>> {
        None
    }

    /// Whether another process goes on with the check, so that this one ends.
    fn is_lost(&self) -> bool {
        false
    }
}

/// Hashes of states that were met, elsewhere than in memory.
pub trait Hashes: Send + Sync {
    /// Adds some, which ascend, as long as it `goes_on`. Whether they were added: if not, all is as it was.
    fn add(&mut self, more: &mut dyn Iterator<Item = u128>, goes_on: &dyn Fn() -> bool) -> bool;

    /// Whether one is there; nothing where they cannot be read.
    fn contains(&self, state: u128) -> Option<bool>;

    /// Bytes of memory that they take.
    fn bytes(&self) -> usize;
}

/// Bytes elsewhere than in memory.
pub trait Bytes: Send + Sync {
    /// Writes some at a place, before which there are some everywhere; whether they were.
    fn write(&self, at: u64, bytes: &[u8]) -> bool;

    /// Reads some that were written; whether they could be.
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool;
}

/// What was kept of a check, and what keeps what it comes to from here on.
pub struct Keeping<'a> {
    /// All that was kept, in order.
    pub before: Box<dyn Iterator<Item = News> + 'a>,
    /// What keeps the rest.
    pub keeper: &'a dyn Keeper,
    /// Other processes that help.
    pub helpers: Option<&'a dyn Helpers>,
}

/// Helps with a check that another process leads, with as many workers as there are copies of its target, until there is nothing to
/// help with any more, or `goes_on` says why not.
///
/// # Errors
/// As those of [`check`].
pub fn help<T>(
    targets: &mut [T],
    options: &Options,
    goes_on: GoesOn<'_>,
    source: &dyn Source,
) -> Result<Option<Limit>, Box<Trouble>>
where
    T: Target + Send,
    T::Snapshot: Send + Sync,
{
    let others = threads::available(targets.len() - 1, targets[0].stack_bytes());
    let targets = &mut targets[..=others];
    targets.iter_mut().for_each(|target| target.set_counts(true));
    let helped = breadth::help::help(targets, options, goes_on, source);
    for target in targets {
        target.set_counts(false);
        target.take_counts();
    }
    helped
}
