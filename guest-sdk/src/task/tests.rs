//! Every interleaving of small programs.

mod left;

use std::cell::RefCell;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

use super::*;
use crate::abi::{play, play_all, play_simplest};

type Text = Rc<RefCell<String>>;

/// What each run wrote, in the order of the exploration, and how many of them were deadlocks.
fn all(program: impl Fn(Text)) -> (Vec<String>, usize) {
    let mut written = Vec::new();
    let runs = play_all(|| {
        let text = Text::default();
        written.push(text.clone());
        program(text);
    });
    let deadlocks = runs.iter().filter(|run| run.last().is_some_and(|call| call == "index 0")).count();
    (written.into_iter().map(|text| text.borrow().clone()).collect(), deadlocks)
}

/// How many runs there are, and which different texts they write, in order.
#[track_caller]
fn check(program: impl Fn(Text), runs: usize, texts: &[&str]) {
    let (mut written, deadlocks) = all(program);
    assert_eq!(deadlocks, 0);
    assert_eq!(written.len(), runs);
    written.sort();
    written.dedup();
    assert_eq!(written, texts);
}

fn write(text: &Text, part: impl ToString) {
    text.borrow_mut().push_str(&part.to_string());
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn one_task_makes_no_choice() {
    let (value, log) = play(&[0], || {
        run(async {
            let mutex = Mutex::new(1);
            yield_now().await;
            *mutex.lock().await += 1;
            sleep(SECOND).await;
            *mutex.lock().await
        })
    });
    assert_eq!((value, log), (2, vec!["verbose".to_string()]));
}

#[test]
fn tasks_of_two_parts_are_interleaved_in_all_ways() {
    let program = |text: Text| {
        for name in ['a', 'b'] {
            let text = text.clone();
            spawn(async move {
                write(&text, name);
                yield_now().await;
                write(&text, name.to_ascii_uppercase());
            });
        }
        while step() {}
        assert!(all_are_done());
    };
    check(program, 6, &["aAbB", "abAB", "abBA", "bBaA", "baAB", "baBA"]);
    assert_eq!(all(program).0[..2], ["aAbB", "abAB"], "the lowest number goes first");
}

#[test]
fn more_tasks_than_a_word_has_bits() {
    let sum = play_simplest(|| {
        let handles: Vec<_> = (0..70).map(|number| spawn(async move { number })).collect();
        run(async move {
            let mut sum = 0;
            for handle in handles {
                sum += handle.await;
            }
            sum
        })
    });
    assert_eq!(sum, 35 * 69);
}

/// Runs, and deadlocks, of tasks that take two mutexes each, in these orders.
fn philosophers<const N: usize>(orders: [[usize; 2]; N]) -> (usize, usize) {
    let (written, deadlocks) = all(|_| {
        let forks = Rc::new([const { Mutex::new(()) }; N]);
        for [first, second] in orders {
            let forks = forks.clone();
            spawn(async move {
                let _first = forks[first].lock().await;
                let _second = forks[second].lock().await;
            });
        }
        while step() {}
    });
    (written.len(), deadlocks)
}

/// The same, by counting the paths through a plain model: each has three parts, up to the first lock, up to the
/// second, and to the end, and `done` says how many parts each has done.
fn paths<const N: usize>(orders: [[usize; 2]; N], done: [usize; N]) -> (usize, usize) {
    let is_held = |fork| (0..N).any(|other| done[other] == 2 && orders[other][0] == fork);
    let can_go_on = |task: &usize| match done[*task] {
        0 => true,
        parts @ (1 | 2) => !is_held(orders[*task][parts - 1]),
        _ => false,
    };
    let after = (0..N).filter(can_go_on).map(|task| {
        let mut done = done;
        done[task] += 1;
        paths(orders, done)
    });
    let (runs, deadlocks) = after.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
    match runs {
        0 => (1, usize::from(done != [3; N])),
        _ => (runs, deadlocks),
    }
}

#[test]
fn locks_in_opposite_order_deadlock() {
    assert_eq!(philosophers([[0, 1], [1, 0]]), (14, 6));
    assert_eq!(philosophers([[0, 1], [0, 1]]), (8, 0));
    let (left, lower) = ([[0, 1], [1, 2], [2, 0]], [[0, 1], [1, 2], [0, 2]]);
    assert_eq!((philosophers(left), paths(left, [0; 3])), ((636, 90), (636, 90)));
    assert_eq!((philosophers(lower), paths(lower, [0; 3])), ((474, 0), (474, 0)));
}

#[test]
#[should_panic = "not for within a task"]
fn a_task_does_not_run_others() {
    play(&[0, 0], || run(async { step() }));
}

/// Three tasks that write their names before and after a point, within a mutex.
#[test]
fn a_mutex_is_held_by_one() {
    let program = |text: Text| {
        let mutex = Rc::new(Mutex::new(text));
        for name in ['a', 'b', 'c'] {
            let mutex = mutex.clone();
            spawn(async move {
                let text = mutex.lock().await;
                write(&text, name);
                yield_now().await;
                write(&text, name);
            });
        }
        while step() {}
        assert!(mutex.try_lock().is_some());
    };
    let (written, deadlocks) = all(program);
    let mut distinct = written.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct, ["aabbcc", "aaccbb", "bbaacc", "bbccaa", "ccaabb", "ccbbaa"]);
    assert_eq!(deadlocks, 0);
}

/// Who waits for a mutex that another took is no alternative.
#[test]
fn who_comes_too_late_is_not_chosen() {
    let program = |_| {
        let mutex = Rc::new(Mutex::new(()));
        let guard = mutex.try_lock().unwrap();
        for _ in 0..2 {
            let mutex = mutex.clone();
            spawn(async move {
                let _guard = mutex.lock().await;
                yield_now().await;
                yield_now().await;
            });
        }
        // Both come to the mutex, in two orders, and wait.
        step();
        step();
        drop(guard);
        // Who gets it is one more choice. Nothing else is: the other cannot go on meanwhile.
        while step() {}
    };
    assert_eq!(all(program).0.len(), 4);
}

#[test]
fn a_deadlock_says_who_waits_for_what() {
    let runs = play_all(|| {
        run(async {
            let forks = Rc::new([Mutex::new(()), Mutex::new(())]);
            let (sender, mut receiver) = channel::<u8>(1);
            for (name, first) in [("left", 0), ("right", 1)] {
                let (forks, sender) = (forks.clone(), sender.clone());
                let task = spawn(async move {
                    let _sender = sender;
                    let _first = forks[first].lock().await;
                    let _second = forks[1 - first].lock().await;
                });
                drop(task.named(name));
            }
            drop(sender);
            receiver.recv().await
        });
    });
    let run = runs.iter().find(|run| run.last().unwrap() == "index 0").expect("there is a deadlock");
    let notes: Vec<&str> = run.iter().filter_map(|call| call.strip_prefix("note ")).collect();
    let (runs, waits) = notes.split_at(notes.len() - 3);
    assert_eq!(runs, ["main runs", "left runs", "left runs", "right runs", "right runs"]);
    let without_place =
        |note: &str| note.split(' ').filter(|word| !word.contains(".rs:")).collect::<Vec<_>>().join(" ");
    assert_eq!(
        waits.iter().map(|note| without_place(note)).collect::<Vec<_>>(),
        [
            "deadlock: main waits at for a message",
            "deadlock: left waits at for a mutex that right holds",
            "deadlock: right waits at for a mutex that left holds",
        ]
    );
}

#[test]
fn main_waits_for_what_it_spawned() {
    let (sum, _) = play(&[0, 0], || {
        run(async {
            let (one, two) = (spawn(async { 1 }), spawn(async { 2 }).named("two"));
            let sum = two.await;
            assert!(one.is_done(), "it was chosen before");
            sum + one.await
        })
    });
    assert_eq!(sum, 3);
}

#[test]
fn what_is_in_the_background_is_dropped_at_the_end() {
    let program = |text: Text| {
        let (sender, mut receiver) = channel(1);
        let server_text = text.clone();
        run(async move {
            spawn_background(async move {
                while let Some(request) = receiver.recv().await {
                    write(&server_text, request);
                }
                unreachable!("a sender is left");
            });
            let for_ever = sender.clone();
            spawn_background(async move {
                let _sender = for_ever;
                std::future::pending::<()>().await;
            });
            sender.send('x').await.unwrap();
            sender.send('y').await.unwrap();
            yield_now().await;
        });
        assert!(all_are_done());
        write(&text, '.');
    };
    let (mut written, deadlocks) = all(program);
    written.sort();
    written.dedup();
    assert_eq!((written, deadlocks), (vec!["x.".to_string(), "xy.".to_string()], 0));
}

#[test]
fn messages_come_in_order_from_each_sender() {
    let program = |text: Text| {
        let (sender, mut receiver) = channel(1);
        for pair in [['a', 'A'], ['b', 'B']] {
            let sender = sender.clone();
            spawn(async move {
                for message in pair {
                    sender.send(message).await.unwrap();
                }
            });
        }
        drop(sender);
        run(async move {
            while let Some(message) = receiver.recv().await {
                write(&text, message);
            }
        });
    };
    let (mut written, deadlocks) = all(program);
    written.sort();
    written.dedup();
    assert_eq!(
        (written, deadlocks),
        (["aAbB", "abAB", "abBA", "bBaA", "baAB", "baBA"].map(String::from).to_vec(), 0)
    );
}

#[test]
fn a_channel_without_its_other_end() {
    play(&[0], || {
        let (sender, receiver) = channel(1);
        assert_eq!(sender.try_send(1), Ok(()));
        assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
        drop(receiver);
        assert_eq!(sender.try_send(3), Err(TrySendError::Closed(3)));
        assert_eq!(run(sender.send(4)), Err(SendError(4)));
    });
    play(&[0], || {
        let (sender, mut receiver) = unbounded();
        assert_eq!((sender.send(1), sender.clone().send(2)), (Ok(()), Ok(())));
        drop(sender);
        assert_eq!(receiver.try_recv(), Some(1));
        assert_eq!(run(async { (receiver.recv().await, receiver.recv().await) }), (Some(2), None));
    });
}

#[test]
fn an_answer_comes_once_or_never() {
    play(&[0, 0], || {
        let (sender, receiver) = oneshot::channel();
        spawn(async move { sender.send(7) });
        assert_eq!(run(receiver), Ok(7));
    });
    play(&[0], || {
        let (sender, receiver) = oneshot::channel::<u8>();
        drop(sender);
        assert_eq!(run(receiver), Err(oneshot::Closed));
    });
    let (sender, receiver) = oneshot::channel();
    assert!(!sender.is_closed());
    drop(receiver);
    assert_eq!(sender.send(1), Err(1));
}

#[test]
fn time_goes_on_when_nothing_else_does() {
    let program = |text: Text| {
        for (name, seconds) in [('c', 3), ('a', 1), ('b', 1)] {
            let text = text.clone();
            spawn(async move {
                sleep(seconds * SECOND).await;
                write(&text, name);
                write(&text, now().as_secs());
            });
        }
        // In the order of their numbers to where they sleep, which no order changes.
        while step() {}
    };
    check(program, 6 * 2, &["a1b1c3", "b1a1c3"]);
}

#[test]
fn a_timeout_is_over_or_not() {
    play(&[0, 0], || {
        let (sender, receiver) = oneshot::channel::<u8>();
        spawn(async move {
            sleep(2 * SECOND).await;
            sender.send(1)
        });
        let (early, late) = run(async {
            let mut receiver = receiver;
            let early = timeout(SECOND, &mut receiver).await;
            (early, timeout(2 * SECOND, &mut receiver).await)
        });
        assert_eq!((early, late), (Err(Elapsed), Ok(Ok(1))));
    });
}

/// Polls what it holds only where its own waker was woken, as `FuturesUnordered` does.
struct Picky<F> {
    future: Pin<Box<F>>,
    flag: Arc<Flag>,
}

struct Flag {
    is_woken: AtomicBool,
    outer: std::sync::Mutex<Option<std::task::Waker>>,
}

impl Wake for Flag {
    fn wake(self: Arc<Flag>) {
        self.is_woken.store(true, Ordering::Relaxed);
        if let Some(outer) = &*self.outer.lock().unwrap() {
            outer.wake_by_ref();
        }
    }
}

impl<F: Future> Picky<F> {
    fn new(future: F) -> Picky<F> {
        let flag = Flag { is_woken: AtomicBool::new(true), outer: std::sync::Mutex::new(None) };
        Picky { future: Box::pin(future), flag: Arc::new(flag) }
    }
}

impl<F: Future> Future for Picky<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<F::Output> {
        *self.flag.outer.lock().unwrap() = Some(context.waker().clone());
        match self.flag.is_woken.swap(false, Ordering::Relaxed) {
            true => {
                let waker = self.flag.clone().into();
                self.future.as_mut().poll(&mut Context::from_waker(&waker))
            }
            false => Poll::Pending,
        }
    }
}

#[test]
fn futures_with_wakers_of_their_own_miss_nothing() {
    let program = |text: Text| {
        let mutex = Rc::new(Mutex::new(()));
        let (sender, mut receiver) = channel(1);
        for name in ['a', 'b'] {
            let (mutex, sender, text) = (mutex.clone(), sender.clone(), text.clone());
            spawn(Picky::new(async move {
                let _guard = mutex.lock().await;
                write(&text, name);
                Picky::new(sleep(SECOND)).await;
                sender.send(name).await.unwrap();
                write(&text, name);
            }));
        }
        drop(sender);
        run(Picky::new(async move { while receiver.recv().await.is_some() {} }));
    };
    let (mut written, deadlocks) = all(program);
    written.sort();
    written.dedup();
    assert_eq!((written, deadlocks), (vec!["aabb".to_string(), "bbaa".to_string()], 0));
}

/// A task that waits for two things, and lets go of one when it has the other.
#[test]
fn what_is_dropped_waits_no_more() {
    let program = |text: Text| {
        let mutex = Rc::new(Mutex::new(()));
        let guard = mutex.try_lock().unwrap();
        let (sender, mut receiver) = channel(1);
        let waiting = mutex.clone();
        spawn(async move {
            let (mut lock, mut message) = (pin!(waiting.lock()), pin!(receiver.recv()));
            let first = std::future::poll_fn(|context| match lock.as_mut().poll(context) {
                Poll::Ready(_) => Poll::Ready("lock"),
                Poll::Pending => message.as_mut().poll(context).map(|_| "message"),
            });
            write(&text, first.await);
        });
        run(async move {
            sender.send(()).await.unwrap();
            drop(guard);
        });
        assert!(mutex.try_lock().is_some());
    };
    let (mut written, deadlocks) = all(program);
    written.sort();
    written.dedup();
    assert_eq!((written, deadlocks), (vec!["lock".to_string()], 0));
}
