//! Three tasks that share a mutex, or one that shares nothing, or two of which the first is woken in place of the second.

use spelunk_guest::prelude::*;
use spelunk_guest::task;

#[cfg(feature = "one")]
#[check]
fn one() {
    task::spawn(async { task::yield_now().await });
    task::run(async {});
}

/// Each adds to the number under the mutex a few times.
#[cfg(not(any(feature = "one", feature = "ended")))]
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

/// Ready once it was set, and wakes the first who waited, who may have ended.
#[cfg(feature = "ended")]
#[check]
fn ended() {
    use std::cell::{Cell, RefCell};
    use std::future::poll_fn;
    use std::rc::Rc;
    use std::task::{Poll, Waker};

    #[derive(Clone, Default)]
    struct First(Rc<(Cell<bool>, RefCell<Option<Waker>>)>);

    impl First {
        fn poll(&self, waker: &Waker) -> Poll<()> {
            let (is_set, first) = &*self.0;
            first.borrow_mut().get_or_insert_with(|| waker.clone());
            if is_set.get() { Poll::Ready(()) } else { Poll::Pending }
        }

        fn set(&self) {
            self.0.0.set(true);
            self.0.1.take().expect("somebody waited").wake();
        }
    }

    task::run(async {
        let first = First::default();
        let looks = first.clone();
        task::spawn(poll_fn(move |context| Poll::Ready(drop(looks.poll(context.waker()))))).await;
        let waits = first.clone();
        let second = task::spawn(poll_fn(move |context| waits.poll(context.waker())));
        task::yield_now().await;
        first.set();
        second.await;
    });
}
