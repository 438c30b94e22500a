//! The native stack that guests may use.

use std::sync::{Mutex, PoisonError};

/// Bytes of native stack a guest may use. With the default call depth that is 3 KiB a call.
pub(super) const STACK_BYTES: usize = 32 << 20;
/// Bytes of stack that the host keeps for itself around a guest's.
pub(super) const STACK_MARGIN: usize = 2 << 20;
/// The stack of a thread on which a guest runs without the machine having to switch to another.
pub(super) const THREAD_STACK_BYTES: usize = STACK_BYTES + 4 * STACK_MARGIN;

/// Runs `f` on a thread that has the stack which guests may use. On another thread a machine works too, but
/// makes itself a stack for every step, which takes most of the time; so it is where there are no more threads.
pub fn on_guest_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    let f = Mutex::new(Some(f));
    let take = || f.lock().unwrap_or_else(PoisonError::into_inner).take().expect("it is called once");
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(THREAD_STACK_BYTES);
        match thread.spawn_scoped(scope, || take()()) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => take()(),
        }
    })
}
