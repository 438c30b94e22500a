//! A value that is set once, by what tells others before it returns. The bug: they take the value to be there then.

use spelunk_guest::sync::atomic::{AtomicBool, Ordering::SeqCst};
use spelunk_guest::sync::{OnceLock, thread};

#[spelunk_guest::threads]
fn initialized() {
    let (built, value) = (AtomicBool::new(false), OnceLock::new());
    let build = || {
        built.store(true, SeqCst);
        7
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            value.get_or_init(build);
        });
        if built.load(SeqCst) {
            let is_there = match cfg!(feature = "bug") {
                true => value.get().is_some(),
                false => *value.get_or_init(|| 8) == 7,
            };
            assert!(is_there, "it was built, and is not there");
        }
    });
}
