//! Who goes on next.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::ptr;

use super::cell::Shared;
use super::order;
use super::stack::{self, Place};
use super::touch;
#[cfg(any(feature = "allocator", test))]
use crate::memory::set_can_fail;
use crate::outcome::note;
use crate::{abi, panic};

/// Nothing fails, of allocations.
#[cfg(not(any(feature = "allocator", test)))]
fn set_can_fail(_: bool) -> bool {
    false
}

/// No thread.
pub(super) const NOBODY: u32 = u32::MAX;
/// The bit that tells the host that a thread gave way by itself.
const GAVE_WAY: u32 = 1 << 31;

/// Where a thread stands, and when it can go on.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    pub(super) what: What,
    /// What it is about to touch, for `can_go_on`, and to tell it from others.
    pub(super) object: *const (),
    pub(super) can_go_on: fn(*const ()) -> bool,
    pub(super) at: &'static Location<'static>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub(super) enum What {
    /// It runs, or has ended.
    Nothing,
    /// It has done all, and nothing before.
    End,
    Load,
    SequentialLoad,
    Store,
    Swap,
    Fence,
    Yield,
    /// The object is the word that says who holds it.
    Lock,
    TryLock,
    Unlock,
    Read,
    Write,
    /// The object is what says where it waits, and with which mutex.
    Leave,
    /// As of `Leave`.
    Wait,
    Notify,
    Barrier,
    Once,
    Send,
    /// An end of a channel is dropped.
    NoSender,
    Receive,
    /// As of `NoSender`.
    NoReceiver,
    /// What was initialized is there.
    Initialized,
    /// The object is the number of the thread.
    Join,
    /// As of `Join`.
    Finished,
    /// As of `Join`.
    Park,
    /// As of `Join`.
    Unpark,
}

impl Wait {
    /// Written as a whole, so that nothing is left of what was before.
    const NOTHING: Wait =
        Wait { what: What::Nothing, object: ptr::null(), can_go_on: |_| false, at: Location::caller() };

    /// Of what can be done at once.
    pub(super) fn free(what: What, object: *const (), at: &'static Location<'static>) -> Wait {
        Wait { what, object, can_go_on: |_| true, at }
    }
}

/// Equal states of a guest are to be equal bytes, so nothing here keeps what was.
pub(super) struct Slot {
    place: Place,
    pub(super) wait: Wait,
    /// Empty where it was given none.
    name: Cow<'static, str>,
    pub(super) is_live: bool,
    /// So many may join it.
    holders: u32,
    /// So many may unpark it.
    known: u32,
    /// The object at which it sleeps until another thread notifies it, or null.
    pub(super) sleeps_at: *const (),
    is_notified: bool,
    may_park: bool,
    /// It stopped at an operation.
    has_stopped: bool,
}

impl Slot {
    fn is_free(&self) -> bool {
        !self.is_live && self.holders == 0 && self.known == 0
    }
}

/// By number. One is used again when its thread has ended, and nobody may join or unpark it.
static SLOTS: Shared<Vec<Slot>> = Shared::new(Vec::new());
static CURRENT: Shared<u32> = Shared::new(NOBODY);

/// What happens to the slots; nothing in `f` may come back here.
fn with<R>(f: impl FnOnce(&mut Vec<Slot>) -> R) -> R {
    // SAFETY: `f` does not call what calls this, and does not suspend.
    f(unsafe { SLOTS.write() })
}

fn of<R>(number: u32, f: impl FnOnce(&mut Slot) -> R) -> R {
    with(|slots| f(&mut slots[number as usize]))
}

/// The number of the thread that runs, or [`NOBODY`].
pub(super) fn current() -> u32 {
    CURRENT.get()
}

/// Starts a thread, and lets it go on up to its first operation: what it does before concerns nobody else.
///
/// So many `holders` may join it.
///
/// # Safety
/// The thread ends before what it borrows.
pub(super) unsafe fn spawn<F: FnOnce()>(name: Cow<'static, str>, holders: u32, main: F) -> u32 {
    // What is allocated here is the scheduler's.
    let can_fail = set_can_fail(false);
    let free = with(|slots| slots.iter().position(Slot::is_free));
    let number = free.unwrap_or_else(|| {
        let place = Place::new();
        with(|slots| {
            slots.reserve_exact(1);
            slots.push(Slot {
                place,
                wait: Wait::NOTHING,
                name: Cow::Borrowed(""),
                is_live: false,
                holders: 0,
                known: 0,
                sleeps_at: ptr::null(),
                is_notified: false,
                may_park: false,
                has_stopped: false,
            });
            slots.len() - 1
        })
    });
    touch::spawns(number as u32);
    let place = with(|slots| {
        let slot = &mut slots[number];
        (slot.name, slot.is_live, slot.holders) = (name, true, holders);
        slot.place
    });
    order::begin(number as u32);
    // SAFETY: the caller promises it.
    unsafe { place.begin(main) };
    go_on(number as u32);
    set_can_fail(can_fail);
    number as u32
}

fn go_on(number: u32) {
    let before = CURRENT.get();
    CURRENT.set(number);
    let place = of(number, |slot| slot.place);
    let is_suspended = place.resume();
    CURRENT.set(before);
    if !is_suspended {
        let (name, is_held) = of(number, |slot| {
            (slot.is_live, slot.is_notified, slot.may_park, slot.has_stopped) = (false, false, false, false);
            (std::mem::take(&mut slot.name), slot.holders > 0)
        });
        drop(name);
        order::end(number, is_held);
    }
}

/// One more may unpark this thread.
pub(super) fn remember(number: u32) {
    if number != NOBODY {
        of(number, |slot| slot.known += 1);
    }
}

/// One less may.
pub(super) fn forget(number: u32) {
    if number != NOBODY {
        of(number, |slot| slot.known -= 1);
    }
}

/// One less may join this thread.
pub(super) fn let_go(number: u32) {
    let holders = of(number, |slot| {
        slot.holders -= 1;
        slot.holders
    });
    if holders == 0 {
        order::forget_thread(number);
    }
}

/// Stops before an operation, until it is chosen and can be done. Outside of threads it is done now.
pub(super) fn stop(wait: Wait) {
    let current = CURRENT.get();
    if current != NOBODY {
        of(current, |slot| (slot.wait, slot.has_stopped) = (wait, true));
        // Whether allocations may fail is for this thread alone.
        let can_fail = set_can_fail(false);
        stack::suspend();
        set_can_fail(can_fail);
        of(current, |slot| slot.wait = Wait::NOTHING);
    } else if !(wait.can_go_on)(wait.object) {
        abi::fail(&format!(
            "what is called here outside of threads would wait for ever: at {} {}",
            wait.at, wait.what
        ));
    }
}

/// Stops before what can always be done.
pub(super) fn point(what: What, object: *const (), at: &'static Location<'static>) {
    stop(Wait::free(what, object, at));
}

/// To be called last by a thread that others may have: one that did nothing else runs while they go on, too.
pub(super) fn end(at: &'static Location<'static>) {
    if !of(CURRENT.get(), |slot| slot.has_stopped) {
        point(What::End, ptr::null(), at);
    }
}

/// Stops until it can go on, as one of those that sleep at `object`. Whether it was notified there.
pub(super) fn sleep(wait: Wait, object: *const ()) -> bool {
    let current = CURRENT.get();
    if current != NOBODY {
        of(current, |slot| slot.sleeps_at = object);
    }
    stop(wait);
    if current == NOBODY {
        return false;
    }
    of(current, |slot| {
        slot.sleeps_at = ptr::null();
        std::mem::take(&mut slot.is_notified)
    })
}

/// Whether the thread of this number was notified.
pub(super) fn is_notified(number: u32) -> bool {
    number != NOBODY && of(number, |slot| slot.is_notified)
}

pub(super) fn notify(number: u32) {
    of(number, |slot| slot.is_notified = true);
}

/// The threads that sleep at an object, and were not notified.
pub(super) fn waiters(object: *const ()) -> Vec<u32> {
    let sleeps = |slot: &Slot| slot.sleeps_at == object && !slot.is_notified;
    let of_slots = |slots: &mut Vec<Slot>| {
        let all = (0u32..).zip(slots.iter());
        all.filter(|(_, slot)| sleeps(slot)).map(|(number, _)| number).collect()
    };
    with(of_slots)
}

/// What the thread of this number waits for.
pub(super) fn waits_for(number: u32) -> *const () {
    of(number, |slot| slot.wait.object)
}

/// How many numbers threads have had.
pub(super) fn count() -> u32 {
    with(|slots| slots.len() as u32)
}

pub(super) fn is_done(number: u32) -> bool {
    of(number, |slot| !slot.is_live)
}

/// Whether the thread of this number, where there is one, has ended.
pub(super) fn is_gone(number: u32) -> bool {
    number != NOBODY && is_done(number)
}

/// Whether the thread may go on from where it parks.
pub(super) fn may_park(number: u32) -> bool {
    number != NOBODY && of(number, |slot| slot.may_park)
}

pub(super) fn set_may_park(number: u32, may: bool) {
    if number != NOBODY {
        of(number, |slot| slot.may_park = may && slot.is_live);
    }
}

pub(super) fn name(number: u32) -> Cow<'static, str> {
    let name = of(number, |slot| slot.name.clone());
    if name.is_empty() { format!("thread {number}").into() } else { name }
}

/// Whether every thread has ended.
pub fn all_are_done() -> bool {
    with(|slots| slots.iter().all(|slot| !slot.is_live))
}

/// Whether anything is left of threads.
pub(crate) fn is_any() -> bool {
    with(|slots| !slots.is_empty())
}

/// Begins with this thread.
#[doc(hidden)]
pub fn begin<R: crate::RuleResult + 'static>(main: fn() -> R) {
    panic::install_hook();
    touch::begin();
    // SAFETY: it borrows nothing.
    let number = unsafe { spawn(Cow::Borrowed("main"), 1, move || main().finish()) };
    let_go(number);
}

/// Lets one thread go on up to its next operation; which one is chosen. False if there was none, because all are done. If there
/// are some but none can go on, the run ends as a finding, a deadlock.
pub fn step() -> bool {
    assert!(CURRENT.get() == NOBODY, "`step` is not for within a thread");
    if all_are_done() {
        return false;
    }
    let runnable = runnable();
    if runnable.is_empty() {
        if abi::verbose() {
            tell_deadlock();
        }
        abi::schedule(&[]);
        unreachable!("the host does not answer a choice among nothing");
    }
    with(|slots| touch::tell(slots));
    let number = runnable[abi::schedule(&runnable)] & !GAVE_WAY;
    // It is no part of the state while the thread runs.
    drop(runnable);
    if abi::verbose() {
        let wait = of(number, |slot| slot.wait);
        abi::describe("thread", &format!("{:?}", name(number)));
        match wait.at.file().starts_with("/rustc/") {
            // What is dropped where a block ends has no place of its own.
            true => note(format_args!("{}", Does(wait.what))),
            false => note(format_args!("{}, at {}", Does(wait.what), wait.at)),
        }
    }
    abi::way(number.into());
    go_on(number);
    true
}

/// The numbers of the threads that can go on, those that yield with a bit that says so.
fn runnable() -> Vec<u32> {
    let waits: Vec<Wait> = with(|slots| slots.iter().map(|slot| slot.wait).collect());
    let can_go_on = |(number, wait): (u32, &Wait)| {
        let is_so = (wait.can_go_on)(wait.object);
        is_so.then_some(if wait.what == What::Yield { number | GAVE_WAY } else { number })
    };
    (0u32..).zip(&waits).filter_map(can_go_on).collect()
}

fn tell_deadlock() {
    for number in 0..count() {
        let wait = of(number, |slot| slot.wait);
        if wait.what != What::Nothing {
            note(format_args!("deadlock: {} {}{}, at {}", name(number), wait.what, Holder(wait), wait.at));
        }
    }
}

/// Who holds what is waited for.
struct Holder(Wait);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.0.what {
            What::Lock => {
                // SAFETY: the object of this is the word of a mutex, which the thread that waits refers to.
                let holder = unsafe { *self.0.object.cast::<u32>() };
                match holder {
                    0 => Ok(()),
                    holder => write!(f, " that {} holds", name(holder - 1)),
                }
            }
            What::Join => write!(f, " of {}", name(self.0.object.addr() as u32)),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            What::Lock => "waits for a mutex",
            What::Read => "waits to read what is locked",
            What::Write => "waits to write what is locked",
            What::Wait => "waits to be notified",
            What::Barrier => "waits at a barrier",
            What::Once => "waits for what is initialized",
            What::Send => "waits for room in a channel",
            What::Receive => "waits for a message",
            What::Join => "waits for the end",
            What::Park => "is parked",
            _ => "waits for its turn",
        })
    }
}

/// What a thread does now, in a story.
struct Does(What);

impl fmt::Display for Does {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self.0 {
            What::Nothing => "runs",
            What::End => "ends",
            What::Load | What::SequentialLoad => "loads",
            What::Store => "stores",
            What::Swap => "reads and writes",
            What::Fence => "comes to a fence",
            What::Yield => "yields",
            What::Lock => "locks",
            What::TryLock => "tries to lock",
            What::Unlock | What::Leave => "unlocks what it locked",
            What::Read => "locks to read",
            What::Write => "locks to write",
            What::Wait => "goes on after waiting",
            What::Notify => "notifies",
            What::Barrier => "comes to a barrier",
            What::Once => "initializes",
            What::Initialized => "has initialized",
            What::Send => "sends",
            What::NoSender | What::NoReceiver => "drops its end of a channel",
            What::Receive => "receives",
            What::Join => "joins",
            What::Finished => "asks whether a thread has ended",
            What::Park => "goes on after parking",
            What::Unpark => "unparks",
        })
    }
}
