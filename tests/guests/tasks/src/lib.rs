//! Three tasks that share a mutex, or one that shares nothing.

use spelunk_guest::prelude::*;
use spelunk_guest::task;

#[cfg(feature = "one")]
#[check]
fn one() {
    task::spawn(async { task::yield_now().await });
    task::run(async {});
}

/// Each adds to the number under the mutex a few times.
#[cfg(not(feature = "one"))]
#[check]
fn count() {
    use std::rc::Rc;

    use task::Mutex;

    const TASKS: u32 = 3;
    const ROUNDS: u32 = 3;

    let total = Rc::new(Mutex::new(0));
    task::run({
        let total = total.clone();
        async move {
            for _ in 0..TASKS {
                let total = total.clone();
                task::spawn(async move {
                    for _ in 0..ROUNDS {
                        *total.lock().await += 1;
                    }
                });
            }
        }
    });
    assert_eq!(*total.try_lock().expect("all tasks have ended"), TASKS * ROUNDS);
}
