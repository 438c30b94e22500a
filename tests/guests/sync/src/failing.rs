//! Allocations may fail in one thread, and in no other. The bug: the other asks for that too.

use spelunk_guest::sync::{Arc, Mutex, thread};
use spelunk_guest::{alloc_can_fail, prelude::*};

#[spelunk_guest::threads]
fn failing() {
    let shared = Arc::new(Mutex::new(0));
    let other = shared.clone();
    let thread = thread::spawn(move || alloc_can_fail(|| drop(other.lock().unwrap())));
    drop(shared.lock().unwrap());
    let fails = || Vec::<u8>::new().try_reserve(64).is_err();
    let has_failed = if cfg!(feature = "bug") { alloc_can_fail(fails) } else { fails() };
    thread.join().unwrap();
    always!(!has_failed, "there is memory");
}
