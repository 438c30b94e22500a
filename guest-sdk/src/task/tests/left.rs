//! What is awaited no more, or by others, and a task that is alone.

use std::cell::Cell;
use std::task::Waker;

use super::*;

/// What was awaited for a while only, and comes then, lets nobody go on who waits for something else.
#[test]
fn what_is_not_awaited_any_more_is_not_waited_for() {
    let late = || {
        spawn(async {
            sleep(3 * SECOND).await;
            7
        })
    };
    let (_, deadlocks) = all(|_| {
        run(async {
            let mut late = late();
            assert!(timeout(SECOND, &mut late).await.is_err());
            let (_sender, mut receiver) = channel::<()>(1);
            receiver.recv().await;
        })
    });
    assert_eq!(deadlocks, 1);
    check(
        |text| {
            run(async {
                let mut late = late();
                assert!(timeout(SECOND, &mut late).await.is_err());
                sleep(4 * SECOND).await;
                write(&text, now().as_secs());
                write(&text, late.await);
            })
        },
        1,
        &["57"],
    );
}

/// The number of a task that has ended is another's, which what the first one waited for does not concern.
#[test]
fn who_waited_may_be_another_now() {
    check(
        |text| {
            run(async {
                let (sender, mut receiver) = oneshot::channel::<u8>();
                let kept = Rc::new(RefCell::new(None));
                let keeps = kept.clone();
                spawn(async move {
                    assert!(timeout(SECOND, &mut receiver).await.is_err());
                    keeps.replace(Some(receiver));
                })
                .await;
                let other = spawn(async { sleep(SECOND).await });
                sleep(SECOND / 2).await;
                sender.send(1).unwrap();
                other.await;
                write(&text, now().as_secs());
                let receiver = kept.take().unwrap();
                write(&text, receiver.await.unwrap());
            })
        },
        1,
        &["21"],
    );
}

/// Where a harness lets tasks go on, others than tasks come between.
#[test]
fn a_task_that_is_alone_stops_between_steps() {
    // Each step asks whether it is to be told.
    play(&[0; 4], || {
        let mutex = Rc::new(Mutex::new(0));
        let in_task = mutex.clone();
        spawn(async move {
            yield_now().await;
            *in_task.lock().await += 1;
        });
        let mut steps = 0;
        while step() {
            steps += 1;
        }
        assert_eq!(steps, 3);
    });
}

/// Two futures that one task polls are interleaved as two tasks are, whether there are other tasks or not.
#[test]
fn futures_of_one_task_come_between_one_another() {
    async fn increment(counter: &RefCell<u32>) {
        let value = *counter.borrow();
        yield_now().await;
        counter.replace(value + 1);
    }
    for others in [false, true] {
        play(&[0; 9][..if others { 2 } else { 1 }], || {
            let counter = RefCell::new(0);
            run(async {
                if others {
                    spawn(yield_now());
                }
                let (mut one, mut other) = (pin!(increment(&counter)), pin!(increment(&counter)));
                let (mut ends, mut is_first) = ([false; 2], true);
                std::future::poll_fn(|context| {
                    ends[0] = ends[0] || one.as_mut().poll(context).is_ready();
                    ends[1] = ends[1] || other.as_mut().poll(context).is_ready();
                    assert_eq!(ends, [!is_first; 2]);
                    is_first = false;
                    if ends == [true; 2] { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
            });
            assert_eq!(counter.take(), 1, "one of both is lost");
        });
    }
}

/// What sleeps may be awaited by one task and then by another, in another run too.
#[test]
fn a_sleep_outlives_who_awaited_it() {
    check(
        |text| {
            let mut long = sleep(10 * SECOND);
            run(async { assert!(timeout(SECOND, &mut long).await.is_err()) });
            run(async { (&mut long).await });
            write(&text, now().as_secs());
        },
        1,
        &["10"],
    );
}

/// Ready once it was set, and wakes the first who waited.
#[derive(Default)]
struct First {
    is_set: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl First {
    async fn wait(&self) {
        std::future::poll_fn(|context| {
            if self.is_set.get() {
                return Poll::Ready(());
            }
            self.waker.borrow_mut().get_or_insert_with(|| context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn set(&self) {
        self.is_set.set(true);
        self.waker.take().inspect(Waker::wake_by_ref);
    }
}

/// Where the first has ended, nobody is woken: not even who comes after it in its place.
#[test]
fn who_was_woken_in_vain_is_not_the_next_of_its_number() {
    let program = |earlier: bool| {
        let first = Rc::new(First::default());
        let gives_up = first.clone();
        let given_up = async move { assert!(timeout(SECOND, gives_up.wait()).await.is_err()) };
        match earlier {
            true => run(given_up),
            false => drop(spawn(given_up)),
        }
        run(async move {
            sleep(2 * SECOND).await;
            let second = first.clone();
            let waits = spawn(async move { second.wait().await });
            sleep(SECOND).await;
            first.set();
            waits.await;
        });
    };
    for earlier in [true, false] {
        let (runs, deadlocks) = all(|_| program(earlier));
        assert_eq!(runs.len(), deadlocks);
        assert!(deadlocks > 0);
    }
}

/// Of a future that was moved out of its task, too, which has ended.
#[test]
fn who_waits_at_a_gate_is_not_the_next_of_its_number() {
    let (runs, deadlocks) = all(|_| {
        run(async {
            let (sender, mut receiver) = channel::<()>(1);
            let receives = spawn(async move {
                let mut receives = Box::pin(async move { receiver.recv().await });
                let once =
                    std::future::poll_fn(|context| Poll::Ready(receives.as_mut().poll(context).is_ready()));
                assert!(!once.await);
                Some(receives)
            });
            let receives = receives.await;
            let waits = spawn(std::future::pending::<()>());
            sender.try_send(()).unwrap();
            drop(receives);
            waits.await;
        });
    });
    assert_eq!((runs.len(), deadlocks), (1, 1));
}
