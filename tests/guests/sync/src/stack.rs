//! A thread has room for what functions keep on the stack. The bug needs more than there is.

use std::hint::black_box;

use spelunk_guest::sync::thread;

#[spelunk_guest::threads]
fn stack() {
    const BYTES: usize = if cfg!(feature = "bug") { 256 << 10 } else { 200 << 10 };
    let thread = thread::Builder::new().stack_size(2 << 20).spawn(|| {
        thread::yield_now();
        black_box([1u8; BYTES]).iter().map(|byte| usize::from(*byte)).sum::<usize>()
    });
    assert_eq!(thread.unwrap().join().unwrap(), BYTES);
}
