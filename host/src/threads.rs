//! Threads for workers, with stacks on which a guest can be called.

use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// A thread to be, with a stack of this size, or the usual one.
pub(crate) fn with_stack(bytes: Option<usize>) -> Builder {
    bytes.map_or(Builder::new(), |bytes| Builder::new().stack_size(bytes))
}

/// How many threads with such stacks can be started at once, of those wanted: a process may be limited.
pub(crate) fn available(wanted: usize, stack_bytes: Option<usize>) -> usize {
    let stay = Mutex::new(());
    let until_all = stay.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        let start = |_: &usize| with_stack(stack_bytes).spawn_scoped(scope, || drop(stay.lock())).is_ok();
        let available = (0..wanted).take_while(start).count();
        drop(until_all);
        available
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_has_a_stack_that_is_larger_than_memory() {
        assert_eq!(available(3, None), 3);
        assert_eq!(available(3, Some(1 << 50)), 0);
    }
}
