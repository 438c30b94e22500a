//! What tells a state apart, whoever is who: the least content that there is under any names of interchangeable ids.
//!
//! The content is recorded once, with its ids, and written again and again under other names. Ids may share a name, and then stand for one
//! another. That tells them apart without any order: an id is told from others of its name by the content in which it alone has a
//! mark (as colours are refined in McKay, "Practical graph isomorphism", 1981). Of those that still share a name, all that can be exchanged
//! without changing the content stand in any order; the others are tried in every order. Where that would take too long, the least that was
//! found is taken: it too is the content under other names, so states that differ are told apart, and some that do not are too.

use std::cell::{Cell, RefCell};

use super::record::{self, Record};
use crate::abi;
use crate::state::Content;

/// So many orders are tried without looking for what tells ids apart: that would take as long.
const FEW: u64 = 6;
/// So much content is written, at most, each time counting for so many bytes more; but so often at least.
const WRITTEN_MAX: usize = 1 << 20;
const WRITTEN_ONCE: usize = 64;
const TIMES_MIN: usize = 400;
/// So much is remembered, each of so many bytes at most.
const REMEMBERED_MAX: usize = 1 << 12;
const REMEMBERED_LEN: usize = 1 << 10;
/// The name of an id that is told from others.
const MARK: u8 = u8::MAX;

/// The ids of a set: the name of each is the place of the first of those that share it.
#[derive(Clone, Copy, PartialEq)]
struct Named {
    len: u8,
    names: record::Names,
}

/// A record, and the least that it gives.
type Found = (Record, Vec<u8>);

thread_local! {
    /// There may be ids in a state.
    static ARE_USED: Cell<bool> = const { Cell::new(false) };
    static REMEMBERS: Cell<bool> = const { Cell::new(false) };
    /// What was found last, each in a place that its hash says.
    static REMEMBERED: RefCell<Vec<Option<Found>>> = const { RefCell::new(Vec::new()) };
}

/// Ids were made.
pub(super) fn are_used() {
    ARE_USED.set(true);
}

/// Whether content may have ids in it.
pub(crate) fn is_needed() -> bool {
    ARE_USED.get()
}

/// Of each id its own.
const OWN: record::Names = [0, 1, 2, 3, 4, 5, 6, 7];

/// The least that `content` gives under any names. If it depends on ids in a way that no names show, since another hasher is given some,
/// or if anything is claimed of runs without end, which may have to tell who is who, what it gives under their own.
pub(crate) fn canonical(content: &impl Content) -> Vec<u8> {
    let record = Record::of(content);
    match (record.is_foreign || abi::claims(), REMEMBERS.get()) {
        (true, _) => Search::of(&record).own,
        (false, false) => least(&record).0,
        (false, true) => remembered(record),
    }
}

/// From now on what was found is remembered, since nobody looks at this memory or goes back to what it was.
pub(crate) fn remember() {
    REMEMBERS.set(true);
}

/// As [`least`], of a record that may have been seen before.
fn remembered(record: Record) -> Vec<u8> {
    let place = record.hash() as usize % REMEMBERED_MAX;
    let known = REMEMBERED.with_borrow(|known| {
        let (of, least) = known.get(place)?.as_ref()?;
        (*of == record).then(|| least.clone())
    });
    known.unwrap_or_else(|| {
        let least = least(&record).0;
        if record.len() <= REMEMBERED_LEN {
            REMEMBERED.with_borrow_mut(|known| {
                known.resize_with(REMEMBERED_MAX, || None);
                known[place] = Some((record, least.clone()));
            });
        }
        least
    })
}

/// The least that there is under any names, and how often it was written.
pub(super) fn least(record: &Record) -> (Vec<u8>, usize) {
    let mut search = Search::of(record);
    if !record.sets.is_empty() {
        let mut sets = search.own_names.clone();
        sets.iter_mut().for_each(|set| set.names[..usize::from(set.len)].fill(0));
        search.descend(sets);
    }
    (search.least.unwrap_or(search.own), search.times.get())
}

impl Named {
    /// The ids that are called so.
    fn sharing(&self, name: u8) -> impl Iterator<Item = usize> + use<'_> {
        (0..usize::from(self.len)).filter(move |id| self.names[*id] == name)
    }

    /// Orders that are left.
    fn orders(&self) -> u64 {
        let shared = (0..self.len).map(|name| self.sharing(name).count() as u64);
        shared.map(|count| (1..=count).product::<u64>()).product()
    }

    /// The first name that ids share.
    fn shared(&self) -> Option<u8> {
        (0..self.len).find(|name| self.sharing(*name).nth(1).is_some())
    }
}

fn orders(sets: &[Named]) -> u64 {
    sets.iter().map(Named::orders).fold(1, u64::saturating_mul)
}

struct Search<'r> {
    record: &'r Record,
    /// How often it was written, and bytes.
    times: Cell<usize>,
    written: Cell<usize>,
    least: Option<Vec<u8>>,
    /// What it is where each id has its own name.
    own: Vec<u8>,
    own_names: Vec<Named>,
    /// Of ids of a set, whether they can be exchanged.
    twins: Vec<([usize; 3], bool)>,
}

impl Search<'_> {
    fn of(record: &Record) -> Search<'_> {
        let own_names: Vec<Named> =
            record.sets.iter().map(|(_, len)| Named { len: *len, names: OWN }).collect();
        let none = || Cell::new(0);
        let mut search = Search {
            record,
            times: none(),
            written: none(),
            least: None,
            own: Vec::new(),
            own_names,
            twins: Vec::new(),
        };
        search.own = search.with(&search.own_names);
        search
    }

    /// What is written under these names.
    fn with(&self, sets: &[Named]) -> Vec<u8> {
        let names: Vec<record::Names> = sets.iter().map(|set| set.names).collect();
        let mut bytes = Vec::with_capacity(self.own.len());
        self.record.write(&names, &mut bytes);
        self.times.set(self.times.get() + 1);
        self.written.set(self.written.get() + bytes.len() + WRITTEN_ONCE);
        bytes
    }

    /// Whether it took too long.
    fn is_over(&self) -> bool {
        self.written.get() > WRITTEN_MAX.max(TIMES_MIN * (self.own.len() + WRITTEN_ONCE))
    }

    /// Tries what is left, such that the result is the same for all who is who.
    fn descend(&mut self, mut sets: Vec<Named>) {
        if self.is_over() && self.least.is_some() {
            return;
        }
        if orders(&sets) > FEW {
            self.refine(&mut sets);
            self.name_twins(&mut sets);
        }
        let shared = sets.iter().enumerate().find_map(|(at, set)| Some((at, set.shared()?)));
        let Some((at, name)) = shared else {
            let written = match sets == self.own_names {
                true => self.own.clone(),
                false => self.with(&sets),
            };
            self.least = Some(self.least.take().map_or(written.clone(), |least| least.min(written)));
            return;
        };
        let are_few = orders(&sets) <= FEW;
        let mut tried: Vec<usize> = Vec::new();
        for id in sets[at].sharing(name) {
            if !are_few && tried.iter().any(|other| self.are_twins(at, *other, id)) {
                continue;
            }
            tried.push(id);
            let mut sets = sets.clone();
            let names = &mut sets[at].names;
            names.iter_mut().filter(|other| **other == name).for_each(|other| *other += 1);
            names[id] = name;
            self.descend(sets);
        }
    }

    /// Gives ids names of their own as far as what each is found in tells them apart.
    fn refine(&self, sets: &mut Vec<Named>) {
        while orders(sets) > FEW && !self.is_over() {
            let before = sets.clone();
            for at in 0..before.len() {
                for name in 0..before[at].len {
                    self.split(&before, (at, name), &mut sets[at]);
                }
            }
            if *sets == before {
                return;
            }
        }
    }

    /// Gives ids names of their own that share one and can all be exchanged: in every order of them the content is the same.
    fn name_twins(&mut self, sets: &mut [Named]) {
        for (at, set) in sets.iter_mut().enumerate() {
            for name in 0..set.len {
                let sharing: Vec<usize> = set.sharing(name).collect();
                let Some((first, others)) = sharing.split_first() else { continue };
                // Exchanges with one of them make every order.
                if others.iter().all(|other| self.are_twins(at, *first, *other)) {
                    (name..).zip(sharing).for_each(|(name, id)| set.names[id] = name);
                }
            }
        }
    }

    fn split(&self, before: &[Named], (at, name): (usize, u8), set: &mut Named) {
        let sharing: Vec<usize> = before[at].sharing(name).collect();
        if sharing.len() < 2 {
            return;
        }
        let mut sets = before.to_vec();
        let marked = sharing.into_iter().map(|id| {
            sets[at].names[id] = MARK;
            let written = self.with(&sets);
            sets[at].names[id] = name;
            (written, id)
        });
        let mut marked: Vec<(Vec<u8>, usize)> = marked.collect();
        marked.sort_unstable();
        let mut first = 0;
        for place in 0..marked.len() {
            if marked[place].0 != marked[first].0 {
                first = place;
            }
            set.names[marked[place].1] = name + first as u8;
        }
    }

    /// Whether the content stays the same where two ids of a set are exchanged.
    fn are_twins(&mut self, set: usize, one: usize, other: usize) -> bool {
        let pair = [set, one, other];
        if let Some((_, known)) = self.twins.iter().find(|(known, _)| *known == pair) {
            return *known;
        }
        let mut sets = self.own_names.clone();
        sets[set].names.swap(one, other);
        let are_twins = self.with(&sets) == self.own;
        self.twins.push((pair, are_twins));
        are_twins
    }
}
