//! What threads touch. Of two operations that touch nothing in common a check needs one order, not both.
//!
//! In a state it is enough to let those threads go on whose next operations touch nothing that any other one may touch
//! before they do (*persistent sets*, Godefroid 1996). What a thread is about to touch it says; what it will touch later nobody
//! knows. So a check is made in rounds. Each assumes of every thread that it touches nothing but what it was seen to touch in
//! those before; what it is about to touch in a state that was met counts as seen. Once nothing new is seen the assumption holds. For let some
//! thread touch what it is assumed not to, and take the shortest way to that from any state that was met. If a thread that was let go on goes
//! on in it, it can do so first, since up to there they have nothing in common, and the rest is shorter. If none does, one can go on before
//! all of it, which leaves the way as long, and so can one in the next state; that ends, as the graph of states has no loop.
//!
//! So every step must have a next state: where one fails, that is found; where one is rejected, every order is tried.
//!
//! What a thread touches after it has waited for another one to end does not come before what that does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Threads by number, as bits.
type Threads = u64;
/// Beyond these numbers every order is tried.
const THREADS_MAX: u32 = Threads::BITS;
/// Beyond so many objects, too, and where a thread touches so many more than it says.
const OBJECTS_MAX: usize = 1 << 12;
const ALSO_MAX: usize = 64;
/// The bit that says that something is touched now, and not next.
const NOW: u32 = 16;

fn bit(thread: u32) -> Threads {
    1u64.checked_shl(thread).unwrap_or(0)
}

fn members(threads: Threads) -> impl Iterator<Item = u32> {
    (0..THREADS_MAX).filter(move |thread| threads & bit(*thread) != 0)
}

/// These threads, with the neighbours of each.
fn closed(mut set: Threads, neighbours: &[Threads; THREADS_MAX as usize]) -> Threads {
    loop {
        let more = members(set).fold(set, |more, thread| more | neighbours[thread as usize]);
        if more == set {
            return set;
        }
        set = more;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Object {
    /// At an address.
    Word(u32),
    /// Whether this thread has ended.
    End(u32),
    /// Whether it may go on from where it parks.
    Parking(u32),
    /// Which numbers threads have.
    Numbers,
}

/// See `touches` in `guest-sdk/ABI.md`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum How {
    Ended,
    Nothing,
    Touches(Object, bool),
    Joins(u32),
    Spawns(u32),
    /// Something that nothing is told of.
    NotTold,
    Everything,
}

impl How {
    /// What is told, if it is something, and whether it is so now, and not next.
    pub(super) fn of(how: u32, object: u32) -> Option<(How, bool)> {
        let what = match how & !NOW {
            0 => How::Ended,
            1 => How::Nothing,
            2 => How::Touches(Object::Word(object), false),
            3 => How::Touches(Object::Word(object), true),
            4 => How::Joins(object),
            5 => How::Touches(Object::End(object), false),
            6 => How::Touches(Object::Parking(object), true),
            7 => How::Spawns(object),
            8 => How::NotTold,
            9 => How::Everything,
            _ => return None,
        };
        Some((what, how & NOW != 0))
    }
}

/// Threads that do something, each with those that may not have ended by then.
#[derive(Clone, Debug, Default, PartialEq)]
struct Users(BTreeMap<u32, Threads>);

impl Users {
    fn add(&mut self, thread: u32, beside: Threads) {
        *self.0.entry(thread).or_default() |= beside;
    }

    fn has(&self, thread: u32, beside: Threads) -> bool {
        self.0.get(&thread).is_some_and(|known| known & beside == beside)
    }

    fn add_all(&mut self, other: &Users) {
        other.0.iter().for_each(|(thread, beside)| self.add(*thread, *beside));
    }

    /// Those that may do so before this one has ended.
    fn beside(&self, thread: u32) -> Threads {
        let so = self.0.iter().filter(|(_, beside)| *beside & bit(thread) != 0);
        so.fold(0, |threads, (user, _)| threads | bit(*user))
    }
}

/// What threads were seen to touch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Touched {
    reads: BTreeMap<Object, Users>,
    writes: BTreeMap<Object, Users>,
    /// What a thread reads, or writes, beside what it said, in some step.
    also: BTreeMap<u32, BTreeSet<(Object, bool)>>,
    /// Those that start others.
    spawn: Users,
    /// Those that touch everything.
    everything: Users,
    /// It is not told what threads touch, or too much.
    is_of_no_use: bool,
}

impl Touched {
    /// Whether no order can be left out.
    pub(crate) fn is_of_no_use(&self) -> bool {
        self.is_of_no_use
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Touched::default()
    }

    /// Adds what another has seen.
    pub(crate) fn add_all(&mut self, other: Touched) {
        let own = [(&mut self.reads, &other.reads), (&mut self.writes, &other.writes)];
        for (own, others) in own {
            others.iter().for_each(|(object, users)| own.entry(*object).or_default().add_all(users));
        }
        for (thread, objects) in other.also {
            self.also.entry(thread).or_default().extend(objects);
        }
        self.spawn.add_all(&other.spawn);
        self.everything.add_all(&other.everything);
        let are_too_many = self.reads.len().max(self.writes.len()) > OBJECTS_MAX
            || self.also.values().any(|objects| objects.len() > ALSO_MAX);
        self.is_of_no_use |= other.is_of_no_use || are_too_many;
    }

    /// Whether this is known of a thread.
    fn has(&self, thread: u32, how: How, beside: Threads) -> bool {
        let of_kind = |writes| if writes { &self.writes } else { &self.reads };
        match how {
            How::Touches(object, writes) => {
                of_kind(writes).get(&object).is_some_and(|users| users.has(thread, beside))
            }
            How::Spawns(_) => self.spawn.has(thread, beside),
            How::NotTold => self.is_of_no_use,
            How::Everything => self.everything.has(thread, beside),
            How::Ended | How::Nothing | How::Joins(_) => true,
        }
    }

    /// A thread touches something, while those `beside` it may not have ended.
    fn add(&mut self, thread: u32, how: How, beside: Threads) {
        match how {
            How::Touches(object, writes) => {
                let of_kind = if writes { &mut self.writes } else { &mut self.reads };
                if of_kind.len() < OBJECTS_MAX || of_kind.contains_key(&object) {
                    of_kind.entry(object).or_default().add(thread, beside);
                } else {
                    self.is_of_no_use = true;
                }
            }
            How::Spawns(_) => {
                self.spawn.add(thread, beside);
                self.add(thread, How::Touches(Object::Numbers, true), beside);
            }
            How::NotTold => self.is_of_no_use = true,
            How::Everything => self.everything.add(thread, beside),
            How::Ended | How::Nothing | How::Joins(_) => {}
        }
    }

    /// In a step of this thread this was touched, and it had not said so.
    fn add_also(&mut self, thread: u32, object: (Object, bool)) {
        let known = self.also.entry(thread).or_default();
        known.insert(object);
        self.is_of_no_use |= known.len() > ALSO_MAX;
    }

    fn has_also(&self, thread: u32, object: (Object, bool)) -> bool {
        self.also.get(&thread).is_some_and(|known| known.contains(&object))
    }

    /// For each thread those that may touch what it touches next, or start one that may.
    fn neighbours(&self, next: &Next) -> [Threads; THREADS_MAX as usize] {
        let mut all = [0; THREADS_MAX as usize];
        for thread in members(next.live) {
            let beside = self.beside(thread, next);
            // One that is not there yet may be started by any that starts some.
            let starts = if beside & !next.told == 0 { 0 } else { self.spawn.beside(thread) };
            all[thread as usize] = (beside | starts) & next.live;
        }
        all
    }

    /// Those that may touch what this one touches next.
    fn beside(&self, thread: u32, next: &Next) -> Threads {
        let own = next.threads.iter().filter(|(other, ..)| *other == thread).map(|(_, how, _)| *how);
        let also = self.also.get(&thread).into_iter().flatten();
        let also = also.map(|(object, writes)| How::Touches(*object, *writes));
        // Each step may be its last.
        let end = How::Touches(Object::End(thread), true);
        own.chain(also).chain([end]).fold(self.everything.beside(thread), |threads, how| {
            let users = |of: &BTreeMap<Object, Users>, object| {
                of.get(&object).map_or(0, |users: &Users| users.beside(thread))
            };
            threads
                | match how {
                    How::Touches(object, true) => users(&self.writes, object) | users(&self.reads, object),
                    How::Touches(Object::End(other), false) | How::Joins(other) => bit(other),
                    How::Touches(object, false) => users(&self.writes, object),
                    How::Everything => next.live,
                    How::Ended | How::Nothing | How::Spawns(_) | How::NotTold => 0,
                }
        })
    }
}

/// What the threads of a state say that they touch next.
#[derive(Debug, Default)]
struct Next {
    /// What each touches, and the threads that had ended before.
    threads: Vec<(u32, How, Threads)>,
    /// Those that there are, or were.
    told: Threads,
    live: Threads,
    /// The number of each, by which it is scheduled, and what tells it from all others of the run.
    numbers: Vec<(u32, u32)>,
    /// One of them has gone on.
    is_past: bool,
}

impl Next {
    fn clear(&mut self) {
        let (mut threads, mut numbers) =
            (std::mem::take(&mut self.threads), std::mem::take(&mut self.numbers));
        threads.clear();
        numbers.clear();
        *self = Next { threads, numbers, ..Next::default() };
    }

    /// The thread that has this number now, if it is there.
    fn thread(&self, number: u32) -> Option<u32> {
        let (_, thread) = self.numbers.iter().find(|(other, _)| *other == number)?;
        (self.live & bit(*thread) != 0).then_some(*thread)
    }

    /// Those that may not have ended when this one does something that comes after what it has joined.
    fn beside(&self, thread: u32, joined: Threads) -> Threads {
        self.told & !joined & !bit(thread)
    }
}

/// Leaves out orders, under an assumption.
#[derive(Debug, Default)]
pub(crate) struct Reduction {
    assumed: Arc<Touched>,
    /// What is not assumed.
    seen: Touched,
    next: Next,
    left_out: u64,
}

impl Reduction {
    pub(super) fn new(assumed: Arc<Touched>) -> Reduction {
        Reduction { assumed, ..Reduction::default() }
    }

    /// What was seen that is not assumed, and how many steps were left out.
    pub(crate) fn seen(self) -> (Touched, u64) {
        (self.seen, self.left_out)
    }

    fn add(&mut self, thread: u32, how: How, beside: Threads) {
        if !self.assumed.has(thread, how, beside) {
            self.seen.add(thread, how, beside);
        }
    }

    /// A thread touches something, next or now, when those that it has `joined` have ended. It is told by its number and, above that, by
    /// what tells it from all others of the run. What a run touches before its first choice comes before all else.
    pub(super) fn touches(
        &mut self,
        thread: u32,
        (how, is_now): (How, bool),
        joined: Threads,
        is_first: bool,
    ) {
        let (number, thread) = (thread & 0xffff, thread >> 16);
        let is_too_much = thread >= THREADS_MAX || self.next.threads.len() > 2 * THREADS_MAX as usize;
        if is_too_much || how == How::NotTold {
            self.seen.is_of_no_use = true;
        } else if !is_now {
            self.touches_next((number, thread), how, joined);
        } else if !is_first {
            self.touches_now(thread, how, joined);
        }
    }

    fn touches_next(&mut self, (number, thread): (u32, u32), how: How, joined: Threads) {
        if self.next.is_past {
            self.next.clear();
        }
        let next = &mut self.next;
        next.threads.push((thread, how, joined));
        next.numbers.push((number, thread));
        // Those before it were there, if their numbers were not used again.
        next.told |= bit(thread) | (bit(thread) - 1);
        next.live |= if how == How::Ended { 0 } else { bit(thread) };
    }

    fn touches_now(&mut self, thread: u32, how: How, joined: Threads) {
        if let How::Spawns(other) = how {
            self.seen.is_of_no_use |= other >= THREADS_MAX;
            self.next.told |= bit(other);
        }
        let beside = self.next.beside(thread, joined);
        if beside == 0 {
            return;
        }
        self.add(thread, how, beside);
        let object = match how {
            How::Touches(object, writes) => (object, writes),
            How::Spawns(_) => (Object::Numbers, true),
            How::Ended | How::Nothing => return,
            How::Joins(_) | How::NotTold | How::Everything => {
                self.seen.is_of_no_use = true;
                return;
            }
        };
        if !self.assumed.has_also(thread, object) {
            self.seen.add_also(thread, object);
        }
    }

    /// Whether it is enough that others go on of those that can.
    pub(super) fn leaves_out(&mut self, chosen: u32, can_go_on: impl Iterator<Item = u32>) -> bool {
        if self.next.is_past {
            // Nothing was told.
            self.next.clear();
        }
        self.next.is_past = true;
        for at in 0..self.next.threads.len() {
            let (thread, how, joined) = self.next.threads[at];
            let beside = self.next.beside(thread, joined);
            if beside != 0 && !matches!(how, How::Spawns(_)) {
                self.add(thread, how, beside);
            }
        }
        let next = &self.next;
        let mut able = 0;
        for number in can_go_on {
            let thread = next.thread(number);
            self.seen.is_of_no_use |= thread.is_none();
            able |= thread.map_or(0, bit);
        }
        // The round is over where it is of no use.
        let is_left_out = self.seen.is_of_no_use || {
            let neighbours = self.assumed.neighbours(next);
            let enough = members(able).map(|thread| closed(bit(thread), &neighbours) & able);
            let least = enough.min_by_key(|threads| (threads.count_ones(), *threads));
            least.is_some_and(|least| least & next.thread(chosen).map_or(0, bit) == 0)
        };
        self.left_out += u64::from(is_left_out);
        is_left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads that say this of their next steps: thread, how, object, and what they have joined.
    type Told<'a> = &'a [(u32, u32, u32, Threads)];

    /// A thread says this, by its number and by what tells it from others.
    fn tell(reduction: &mut Reduction, thread: u32, (how, object): (u32, u32), joined: Threads) {
        reduction.touches(thread << 16 | thread, How::of(how, object).unwrap(), joined, false);
    }

    /// Those of these threads that are let go on.
    fn let_go_on(reduction: &mut Reduction, told: Told<'_>) -> Vec<u32> {
        let able = || told.iter().filter(|(_, how, ..)| ![0, 4].contains(how)).map(|(thread, ..)| *thread);
        let goes_on = |thread: &u32| {
            told.iter()
                .for_each(|(thread, how, object, joined)| tell(reduction, *thread, (*how, *object), *joined));
            !reduction.leaves_out(*thread, able())
        };
        able().filter(goes_on).collect()
    }

    /// The same, once these states were seen.
    fn after(seen: &[Told<'_>], told: Told<'_>) -> Vec<u32> {
        let mut reduction = Reduction::default();
        seen.iter().for_each(|told| drop(let_go_on(&mut reduction, told)));
        let_go_on(&mut Reduction::new(reduction.seen.into()), told)
    }

    const READS: u32 = 2;
    const WRITES: u32 = 3;

    #[test]
    fn threads_that_touch_the_same_all_go_on() {
        let apart: Told<'_> = &[(0, WRITES, 4, 0), (1, WRITES, 8, 0)];
        assert_eq!(after(&[], apart), [0]);
        assert_eq!(after(&[apart], apart), [0]);
        let same: Told<'_> = &[(0, READS, 4, 0), (1, WRITES, 4, 0)];
        assert_eq!(after(&[same], same), [0, 1]);
        let both_read: Told<'_> = &[(0, READS, 4, 0), (1, READS, 4, 0)];
        assert_eq!(after(&[both_read], both_read), [0]);
        let everything: Told<'_> = &[(0, READS, 4, 0), (1, 9, 0, 0)];
        assert_eq!(after(&[], everything), [0]);
        assert_eq!(after(&[everything], everything), [0, 1]);
    }

    #[test]
    fn what_a_thread_touches_later_counts() {
        let now: Told<'_> = &[(0, WRITES, 4, 0), (1, WRITES, 8, 0)];
        let later: Told<'_> = &[(0, WRITES, 4, 0), (1, WRITES, 4, 0)];
        // The other one can begin alone, since nobody else ever touches what it does.
        assert_eq!(after(&[now, later], now), [1]);
        let both: Told<'_> = &[(0, WRITES, 8, 0), (1, WRITES, 8, 0)];
        assert_eq!(after(&[now, later, both], now), [0, 1]);
        // Not what it touches once it has waited for the end of the other.
        let joined: Told<'_> = &[(0, 0, 0, 0), (1, WRITES, 4, 1)];
        assert_eq!(after(&[now, joined], now), [0]);
    }

    #[test]
    fn a_thread_that_is_started_later_counts() {
        let now: Told<'_> = &[(0, WRITES, 4, 0), (1, WRITES, 8, 0)];
        let later: Told<'_> = &[(0, WRITES, 4, 0), (1, 1, 0, 0), (2, WRITES, 4, 0)];
        let mut reduction = Reduction::default();
        let_go_on(&mut reduction, now);
        tell(&mut reduction, 1, (NOW + 7, 2), 0);
        let_go_on(&mut reduction, later);
        let mut reduction = Reduction::new(reduction.seen.into());
        // Thread 1 starts it, and touches what nobody else does.
        assert_eq!(let_go_on(&mut reduction, now), [1]);
        assert!(!reduction.seen.is_of_no_use);
        tell(&mut reduction, 1, (NOW + 8, 0), 0);
        assert!(reduction.seen.is_of_no_use);
    }

    #[test]
    fn who_waits_for_an_end_needs_it() {
        let joins: Told<'_> = &[(0, 4, 1, 0), (1, WRITES, 4, 0), (2, WRITES, 8, 0)];
        assert_eq!(after(&[joins], joins), [1]);
        let asks: Told<'_> = &[(0, 5, 1, 0), (1, WRITES, 4, 0), (2, WRITES, 8, 0)];
        assert_eq!(after(&[asks], asks), [2]);
        let asks: Told<'_> = &[(0, 5, 1, 0), (1, WRITES, 4, 0)];
        assert_eq!(after(&[asks], asks), [0, 1]);
    }

    #[test]
    fn what_is_not_told_leaves_nothing_out() {
        let mut reduction = Reduction::default();
        assert!(reduction.leaves_out(1, [0, 1].into_iter()));
        assert!(reduction.seen.is_of_no_use);
        assert_eq!(How::of(10, 0), None);
        let mut reduction = Reduction::default();
        tell(&mut reduction, THREADS_MAX, (WRITES, 0), 0);
        assert!(reduction.seen.is_of_no_use);
    }
}
