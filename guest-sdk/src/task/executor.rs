//! Who runs next.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::set::Set;
pub(super) use super::slot::Wait;
use super::slot::{Gates, Slot, WaitKind};
use crate::abi;
use crate::outcome::note;
use crate::strategy::draw_from_nothing;

pub(super) type Task = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    /// A guest has one.
    static EXECUTOR: Executor = const { Executor::new() };
}

/// No task.
pub(super) const NOBODY: usize = usize::MAX;

/// Equal states of a guest are to be equal bytes. So nothing here keeps what was: how much memory there is
/// depends on the tasks that are there, and what is overwritten is so in all its bytes. Hence the structs where
/// enums would do, and none has a gap between its fields, which would be copied from wherever it was made.
struct Executor {
    /// By the number of the task, a power of two of them, or none. A number is used again when its task is done and nobody
    /// could wake it: whoever woke the next of that number would hide that it was not woken.
    slots: RefCell<Vec<Slot>>,
    /// Those that can go on, without the current one.
    runnable: RefCell<Set>,
    /// The task that runs, or [`NOBODY`].
    current: Cell<usize>,
    /// Tasks for whose end `run` waits.
    left: Cell<usize>,
    /// Nanoseconds since the start.
    now: Cell<u64>,
    /// When, and whom to wake; the earliest first.
    timers: RefCell<Vec<(u64, Waker)>>,
}

/// How many slots there are at least, once there is a task.
const SLOTS_MIN: usize = 4;

impl Executor {
    const fn new() -> Executor {
        Executor {
            slots: RefCell::new(Vec::new()),
            runnable: RefCell::new(Set::new()),
            current: Cell::new(NOBODY),
            left: Cell::new(0),
            now: Cell::new(0),
            timers: RefCell::new(Vec::new()),
        }
    }

    /// Adds a task that can go on at once, and returns its number.
    fn add(&self, task: Option<Task>, name: &'static str, is_background: bool) -> usize {
        let mut slots = self.slots.borrow_mut();
        let number = slots.iter().position(Slot::is_unused).unwrap_or(slots.len());
        if number == slots.len() {
            let more = slots.len().max(SLOTS_MIN);
            slots.reserve_exact(more);
            slots.extend((0..more).map(|_| Slot::free()));
        }
        slots[number] = Slot {
            task,
            waker: abi::waker(number),
            known: 1,
            waits: Wait::for_something(),
            is_woken: true,
            is_background,
            name: Cow::Borrowed(name),
            ..Slot::free()
        };
        self.runnable.borrow_mut().insert(number);
        self.left.update(|left| left + usize::from(!is_background));
        number
    }

    /// Forgets a task that is done.
    fn remove(&self, number: usize) {
        let Slot { waker, is_background, .. } = self.with(number, Slot::take);
        self.left.update(|left| left - usize::from(!is_background));
        drop(waker);
    }

    /// One more knows a task, or one less.
    fn know(&self, number: usize, change: impl FnOnce(u32) -> u32) {
        let mut slots = self.slots.borrow_mut();
        // Those of which nothing is known were forgotten.
        let Some(slot) = slots.get_mut(number) else { return };
        slot.known = change(slot.known);
        if slot.is_unused() {
            trim(&mut slots);
        }
    }

    /// Chooses who runs next; `None` when all are done.
    fn next(&self, is_verbose: bool) -> Option<usize> {
        assert!(
            self.current.get() == NOBODY,
            "`run` and `step` are not for within a task, nor for two threads"
        );
        while self.left.get() > 0 {
            let alternatives = self.runnable.borrow().len();
            if alternatives == 0 {
                self.wait(is_verbose);
                continue;
            }
            let place = if alternatives == 1 { 0 } else { abi::index(alternatives) };
            let number = self.runnable.borrow().nth(place);
            if is_verbose {
                note(format_args!("{} runs", self.name(number)));
            }
            return Some(number);
        }
        None
    }

    /// Lets time pass until the next timer, or ends the run where there is none.
    fn wait(&self, is_verbose: bool) {
        let Some(next) = self.timers.borrow().first().map(|(end, _)| *end) else {
            if is_verbose {
                self.tell_deadlock();
            }
            draw_from_nothing();
        };
        self.now.set(next);
        if is_verbose {
            note(format_args!("the clock goes to {:?}", Duration::from_nanos(next)));
        }
        let is_due = |timers: &Vec<(u64, Waker)>| timers.first().is_some_and(|(end, _)| *end == next);
        while is_due(&self.timers.borrow()) {
            // Waking may do anything, so nothing is borrowed meanwhile.
            self.take_timer(0).wake();
        }
    }

    fn tell_deadlock(&self) {
        for (number, slot) in self.slots.borrow().iter().enumerate().filter(|(_, slot)| !slot.is_free()) {
            let waits = Waits { executor: self, wait: slot.waits };
            note(format_args!("deadlock: {} waits {waits}", self.name(number)));
        }
    }

    fn take_timer(&self, place: usize) -> Waker {
        let mut timers = self.timers.borrow_mut();
        let (_, waker) = timers.remove(place);
        timers.shrink_to_fit();
        waker
    }

    /// Lets the task go on, by `poll`, up to where it waits again or ends.
    fn go_on(&self, number: usize, poll: impl FnOnce(&mut Context) -> Poll<()>) {
        self.runnable.borrow_mut().remove(number);
        let waker = self.with(number, |slot| {
            slot.is_woken = false;
            // What it does not come to again it does not wait for any more.
            (slot.gates, slot.open_gates) = (Gates::NONE, 0);
            slot.waits = Wait::for_something();
            std::mem::replace(&mut slot.waker, Waker::noop().clone())
        });
        // Those that are cloned are counted, so nothing is borrowed meanwhile.
        let given = waker.clone();
        self.with(number, |slot| slot.waker = waker);
        self.current.set(number);
        let result = poll(&mut Context::from_waker(&given));
        self.current.set(NOBODY);
        if result.is_ready() {
            self.remove(number);
        } else if self.with(number, |slot| slot.is_woken || slot.open_gates > 0) {
            self.runnable.borrow_mut().insert(number);
        }
    }

    /// Lets a spawned task go on.
    fn poll_spawned(&self, number: usize) {
        let mut task = self.with(number, |slot| slot.task.take()).expect("nobody else polls it");
        self.go_on(number, |context| {
            let result = task.as_mut().poll(context);
            if result.is_pending() {
                self.with(number, |slot| slot.task = Some(task));
            }
            result
        });
    }

    fn with<R>(&self, number: usize, f: impl FnOnce(&mut Slot) -> R) -> R {
        self.with_live(number, f).expect("the task is not done")
    }

    /// The same where the task may be done.
    fn with_live<R>(&self, number: usize, f: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        self.slots.borrow_mut().get_mut(number).filter(|slot| !slot.is_free()).map(f)
    }

    /// Brings `runnable` up to date. The current task is looked at when it has stopped.
    fn update(&self, number: usize, change: impl FnOnce(&mut Slot)) {
        let can_go_on = self.with_live(number, |slot| {
            change(slot);
            slot.is_woken || slot.open_gates > 0
        });
        if self.current.get() == number {
            return;
        }
        match can_go_on {
            Some(true) => drop(self.runnable.borrow_mut().insert(number)),
            _ => self.runnable.borrow_mut().remove(number),
        }
    }

    fn name(&self, number: usize) -> Cow<'static, str> {
        match self.slots.borrow().get(number) {
            Some(slot) if !slot.name.is_empty() => slot.name.clone(),
            _ => format!("task {number}").into(),
        }
    }

    /// Drops the tasks in the background.
    fn end(&self) {
        let count = self.slots.borrow().len();
        for number in 0..count {
            // What it drops may wake others, so nothing is borrowed meanwhile.
            let task = self.with_live(number, Slot::take);
            drop(task);
        }
        drop(self.timers.take());
        *self.runnable.borrow_mut() = Set::new();
        trim(&mut self.slots.borrow_mut());
    }
}

/// Leaves as many slots as those need that are used: what there was is not to be seen.
fn trim(slots: &mut Vec<Slot>) {
    let used = slots.iter().rposition(|slot| !slot.is_unused()).map_or(0, |last| last + 1);
    let len = if used == 0 { 0 } else { used.next_power_of_two().max(SLOTS_MIN) };
    if len < slots.len() {
        slots.truncate(len);
        slots.shrink_to_fit();
    }
}

/// Forgets all tasks, as they are: a call was left in its middle.
pub(crate) fn begin_anew() {
    EXECUTOR.with(|executor| {
        std::mem::forget((executor.slots.take(), executor.timers.take()));
        executor.runnable.replace(Set::new());
        executor.current.set(NOBODY);
        executor.left.set(0);
        executor.now.set(0);
    });
}

/// Whether anything is left of tasks.
pub(crate) fn is_any() -> bool {
    EXECUTOR.with(|executor| {
        !executor.slots.borrow().is_empty() || !executor.timers.borrow().is_empty() || executor.now.get() > 0
    })
}

/// Runs `main` and all that it spawns until they are done, and returns what `main` returned.
///
/// Where none of them can go on the run ends as a finding, a deadlock. Tasks that were spawned before run
/// too; those in the background are dropped at the end. See the [module](super).
pub fn run<F: Future>(main: F) -> F::Output {
    EXECUTOR.with(|executor| {
        let is_verbose = abi::verbose();
        let mut main = pin!(Some(main));
        let mut output = None;
        let number = executor.add(None, "main", false);
        while let Some(next) = executor.next(is_verbose) {
            if next != number || output.is_some() {
                executor.poll_spawned(next);
                continue;
            }
            executor.go_on(number, |context| {
                let main_now = main.as_mut().as_pin_mut().expect("it is not done");
                let Poll::Ready(value) = main_now.poll(context) else { return Poll::Pending };
                // What it holds is let go now, as a task's is, and not when all are done.
                main.set(None);
                output = Some(value);
                Poll::Ready(())
            });
        }
        executor.end();
        output.expect("the end of `main` was waited for")
    })
}

/// Lets one task go on up to where it may be interrupted again; which one is chosen. False if there was none,
/// because all are done. If there are some but none can go on, the run ends as a finding, a deadlock.
pub fn step() -> bool {
    EXECUTOR.with(|executor| match executor.next(abi::verbose()) {
        Some(number) => {
            abi::way(number as u64);
            executor.poll_spawned(number);
            true
        }
        None => false,
    })
}

/// Whether no task is left but those in the background.
pub fn all_are_done() -> bool {
    EXECUTOR.with(|executor| executor.left.get() == 0)
}

/// The task can go on; nothing if it is done.
pub(crate) fn wake(number: usize) {
    // On native targets a waker may outlive the thread.
    let _ = EXECUTOR.try_with(|executor| executor.update(number, |slot| slot.is_woken = true));
}

/// One more could wake the task of this number.
pub(crate) fn hold(number: usize) {
    let _ = EXECUTOR.try_with(|executor| executor.know(number, |known| known + 1));
}

/// One less could.
pub(crate) fn let_go(number: usize) {
    let _ = EXECUTOR.try_with(|executor| executor.know(number, |known| known.saturating_sub(1)));
}

pub(super) fn spawn(task: Task, is_background: bool) -> usize {
    EXECUTOR.with(|executor| executor.add(Some(task), "", is_background))
}

pub(super) fn set_name(number: usize, name: Cow<'static, str>) {
    EXECUTOR.with(|executor| executor.with_live(number, |slot| slot.name = name));
}

/// The current task waits at a gate, which is open or shut.
pub(super) fn gate_entered(number: usize, gate: *const (), is_open: bool) {
    EXECUTOR.with(|executor| {
        executor.with_live(number, |slot| {
            if !slot.gates.contains(gate) {
                slot.gates.insert(gate);
                slot.open_gates += u16::from(is_open);
            }
        })
    });
}

/// The task does not wait any more at a gate, which is open or shut.
pub(super) fn gate_left(number: usize, gate: *const (), is_open: bool) {
    let change = |slot: &mut Slot| {
        if slot.gates.contains(gate) {
            slot.gates.remove(gate);
            slot.open_gates -= u16::from(is_open);
        }
    };
    let _ = EXECUTOR.try_with(|executor| executor.update(number, change));
}

/// A gate was opened or shut at which the task waits, or waited before it ran last: then it looks once.
pub(super) fn gate_changed(number: usize, gate: *const (), is_open: bool) {
    let change = |slot: &mut Slot| match (slot.gates.contains(gate), is_open) {
        (true, true) => slot.open_gates += 1,
        (true, false) => slot.open_gates -= 1,
        (false, _) => slot.is_woken |= is_open,
    };
    let _ = EXECUTOR.try_with(|executor| executor.update(number, change));
}

/// The mutex for which the task waits is held by another now.
pub(super) fn holder_changed(number: usize, new: usize) {
    EXECUTOR.with(|executor| {
        executor.with_live(number, |slot| {
            if matches!(slot.waits.kind, WaitKind::Mutex) {
                slot.waits.task = new;
            }
        })
    });
}

/// The number of the current task, or [`NOBODY`].
pub(super) fn current() -> usize {
    EXECUTOR.with(|executor| executor.current.get())
}

/// The number of the current task, if it is what `waker` wakes. A future that polls others may give them a
/// waker of its own, and must learn through that that they can go on.
pub(super) fn current_woken_by(waker: &Waker) -> Option<usize> {
    EXECUTOR.with(|executor| {
        let current = executor.current.get();
        let is_its = executor.with_live(current, |slot| slot.waker.will_wake(waker));
        is_its.is_some_and(|is_its| is_its).then_some(current)
    })
}

/// Says for what the current task waits.
pub(super) fn waits(wait: Wait) {
    EXECUTOR.with(|executor| executor.with_live(executor.current.get(), |slot| slot.waits = wait));
}

/// Nanoseconds since the start.
pub(super) fn time() -> u64 {
    EXECUTOR.with(|executor| executor.now.get())
}

pub(super) fn add_timer(end: u64, waker: Waker) {
    EXECUTOR.with(|executor| {
        let mut timers = executor.timers.borrow_mut();
        let place = timers.partition_point(|(other, _)| *other <= end);
        timers.reserve_exact(1);
        timers.insert(place, (end, waker));
    });
}

/// Whether somebody is to be woken then whom this wakes.
pub(super) fn has_timer(end: u64, waker: &Waker) -> bool {
    let is_it = |(other, of): &(u64, Waker)| *other == end && of.will_wake(waker);
    EXECUTOR.with(|executor| executor.timers.borrow().iter().any(is_it))
}

/// Nothing if it is over.
pub(super) fn remove_timer(end: u64, waker: &Waker) {
    let _ = EXECUTOR.try_with(|executor| {
        let is_it = |(other, of): &(u64, Waker)| *other == end && of.will_wake(waker);
        let place = executor.timers.borrow().iter().position(is_it);
        place.map(|place| executor.take_timer(place));
    });
}

struct Waits<'a> {
    executor: &'a Executor,
    wait: Wait,
}

impl fmt::Display for Waits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Wait { kind, at, task, end } = self.wait;
        let name = self.executor.name(task);
        let at = at.map(|at| format!("at {at} ")).unwrap_or_default();
        match kind {
            WaitKind::ToBeUsed | WaitKind::Something => write!(f, "for what no other task does"),
            WaitKind::Turn => write!(f, "for its turn"),
            WaitKind::Mutex => write!(f, "{at}for a mutex that {name} holds"),
            WaitKind::Room => write!(f, "{at}for room in a channel"),
            WaitKind::Message => write!(f, "{at}for a message"),
            WaitKind::Answer => write!(f, "for an answer"),
            WaitKind::End => write!(f, "for {name} to end"),
            WaitKind::Time => {
                let end = u64::from(end[1]) << 32 | u64::from(end[0]);
                write!(f, "until {:?}", Duration::from_nanos(end))
            }
        }
    }
}

/// Forgets what a run left that panicked.
#[cfg(any(test, not(target_family = "wasm")))]
pub(crate) fn reset() {
    EXECUTOR.with(|executor| {
        executor.end();
        // Of what was left in a panic some may still be known.
        drop(executor.slots.take());
        executor.current.set(NOBODY);
        executor.left.set(0);
        executor.now.set(0);
    });
}
