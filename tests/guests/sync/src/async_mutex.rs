//! A mutex for asynchronous tasks, each of which a thread runs until its end. The bug is a lost wakeup: a task looks at the
//! mutex once more before it leaves its waker, and not after.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};

use spelunk_guest::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use spelunk_guest::sync::{Arc, Mutex, thread};

#[derive(Default)]
struct AsyncMutex {
    is_held: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

/// Ends when the mutex is held.
struct Acquire<'a>(&'a AsyncMutex);

impl AsyncMutex {
    fn acquire(&self) -> Acquire<'_> {
        Acquire(self)
    }

    fn try_acquire(&self) -> bool {
        self.is_held.compare_exchange(false, true, SeqCst, SeqCst).is_ok()
    }

    fn release(&self) {
        self.is_held.store(false, SeqCst);
        let waiting = self.waiting.lock().unwrap().pop();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl Future for Acquire<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context) -> Poll<()> {
        if self.0.try_acquire() {
            return Poll::Ready(());
        }
        self.0.waiting.lock().unwrap().push(context.waker().clone());
        // It may have been released before the waker was there.
        if !cfg!(feature = "bug") && self.0.try_acquire() {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

#[spelunk_guest::threads]
fn async_mutex() {
    let mutex = Arc::new(AsyncMutex::default());
    let total = Arc::new(AtomicU32::new(0));
    let threads = [(); 2].map(|()| {
        let (mutex, total) = (mutex.clone(), total.clone());
        thread::spawn(move || {
            block_on(async {
                mutex.acquire().await;
                total.store(total.load(SeqCst) + 1, SeqCst);
                mutex.release();
            });
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(total.load(SeqCst), 2, "an addition was lost");
}
