//! A state that the guest copied, as others have it: its number.

use std::sync::{Arc, Mutex, PoisonError};

use crate::machine::pages::Held;

/// The first number that is given out.
pub(super) const FIRST: u32 = 4;

/// Numbers of copies: the next one, and those before it that nobody has.
pub(super) struct Numbers(Mutex<(u32, Vec<u32>)>);

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers(Mutex::new((FIRST, Vec::new())))
    }
}

impl Numbers {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 as usize
    }

    /// One below `end` that nobody has.
    pub(super) fn take(&self, end: u32) -> Option<u32> {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.1.pop().or_else(|| {
            let next = numbers.0;
            numbers.0 += u32::from(next < end);
            (next < end).then_some(next)
        })
    }
}

/// A copy in the memory of an instance, which takes its place again once nobody has it.
pub(in crate::machine) struct Copied {
    pub(super) number: u32,
    /// What the guest said of the state.
    pub(super) said: Option<u128>,
    pub(super) of: Arc<Numbers>,
    /// Its share of the memory that all copies take, which counts as saved.
    pub(super) _held: Held,
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.of.0.lock().unwrap_or_else(PoisonError::into_inner).1.push(self.number);
    }
}
