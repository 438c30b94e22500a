//! What tells a state apart, whoever is who: the least content that there is under any names of interchangeable ids.
//!
//! The content is given to a hasher again and again, with ids under other names. Ids may share a name, and then stand for one
//! another. That gives them apart without any order: an id is told from others of its name by the content in which it alone has a
//! mark (as colours are refined in McKay, "Practical graph isomorphism", 1981). What still shares a name is tried in every
//! order, except for ids that can be exchanged without changing the content. Where that would take too long, the least that was found is
//! taken: it too is the content under other names, so states that differ are told apart, and some that do not are too.

use std::any::{TypeId, type_name};
use std::cell::{Cell, RefCell};

use super::IDS_MAX;
use crate::abi;
use crate::state::{Bytes, Content};

/// So many orders are tried without looking for what tells ids apart: that would take as long.
const FEW: u64 = 6;
/// So much content is given, at most, each time counting for so many bytes more; but so often at least.
const GIVEN_MAX: usize = 1 << 20;
const GIVEN_ONCE: usize = 64;
const TIMES_MIN: usize = 400;
/// The name of an id that is told from others.
const MARK: u8 = u8::MAX;

/// The ids of one set: the name of each is the place of the first of those that share it.
#[derive(Clone, Copy, PartialEq)]
struct Names {
    of: TypeId,
    len: usize,
    names: [u8; IDS_MAX],
}

thread_local! {
    /// There may be ids in a state.
    static ARE_USED: Cell<bool> = const { Cell::new(false) };
    static IS_NAMING: Cell<bool> = const { Cell::new(false) };
    /// Content gave ids to a hasher that is not ours.
    static IS_FOREIGN: Cell<bool> = const { Cell::new(false) };
    static NAMES: RefCell<Vec<Names>> = const { RefCell::new(Vec::new()) };
}

/// Ids were made.
pub(super) fn are_used() {
    ARE_USED.set(true);
}

/// Whether content may have ids in it.
pub(crate) fn is_needed() -> bool {
    ARE_USED.get()
}

/// What an id of the set `Of`, which has `len`, is called now for this hasher. `None` of a hasher that is not ours: that of a hash table
/// in which content looks something up finds an id by its own name only, and any other may make something of it that is kept.
pub(super) fn name<H, Of: 'static>(index: u8, len: usize) -> Option<u8> {
    if !IS_NAMING.get() {
        return None;
    }
    if !is_ours::<H>() {
        IS_FOREIGN.set(true);
        return None;
    }
    let of = TypeId::of::<Of>();
    NAMES.with_borrow_mut(|sets| {
        let known = sets.iter().find(|set| set.of == of).copied();
        let set = known.unwrap_or_else(|| {
            let set = Names { of, len, names: OWN };
            sets.push(set);
            set
        });
        Some(set.names[usize::from(index)])
    })
}

/// Of each id its own.
const OWN: [u8; IDS_MAX] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Also behind references, and within hashers of others.
fn is_ours<H>() -> bool {
    let (name, ours) = (type_name::<H>(), type_name::<Bytes>());
    name.ends_with(ours) || name.contains(ours)
}

/// The least that `content` gives under any names. If it depends on ids in a way that no names show, since another hasher is given some,
/// or if anything is claimed of runs without end, which may have to tell who is who, what it gives under their own.
pub(crate) fn canonical(content: &impl Content) -> Vec<u8> {
    NAMES.take();
    IS_FOREIGN.set(false);
    let own = given(content);
    let mut sets = NAMES.take();
    // In an order that does not depend on who is who.
    sets.sort_unstable_by_key(|set| set.of);
    if sets.is_empty() || IS_FOREIGN.get() || abi::claims() {
        return own;
    }
    let own_names = sets.clone();
    let mut search = Search { content, given: Cell::new(0), least: None, own, own_names, twins: Vec::new() };
    sets.iter_mut().for_each(|set| set.names[..set.len].fill(0));
    search.descend(sets);
    // It may be given some under some names only.
    if IS_FOREIGN.get() { search.own } else { search.least.expect("there is an order to try") }
}

/// What `content` gives under the names that are set.
fn given(content: &impl Content) -> Vec<u8> {
    let mut bytes = Bytes::default();
    IS_NAMING.set(true);
    content.give(&mut bytes);
    IS_NAMING.set(false);
    bytes.0
}

impl Names {
    /// The ids that are called so.
    fn sharing(&self, name: u8) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.len).filter(move |id| self.names[*id] == name)
    }

    /// Orders that are left.
    fn orders(&self) -> u64 {
        let shared = (0..self.len as u8).map(|name| self.sharing(name).count() as u64);
        shared.map(|count| (1..=count).product::<u64>()).product()
    }

    /// The first name that ids share.
    fn shared(&self) -> Option<u8> {
        (0..self.len as u8).find(|name| self.sharing(*name).nth(1).is_some())
    }
}

fn orders(sets: &[Names]) -> u64 {
    sets.iter().map(Names::orders).fold(1, u64::saturating_mul)
}

struct Search<'c, C> {
    content: &'c C,
    /// Bytes that it gave.
    given: Cell<usize>,
    least: Option<Vec<u8>>,
    /// What it gives where each id has its own name.
    own: Vec<u8>,
    own_names: Vec<Names>,
    /// Of ids of a set, whether they can be exchanged.
    twins: Vec<([usize; 3], bool)>,
}

impl<C: Content> Search<'_, C> {
    fn given_with(&self, sets: &[Names]) -> Vec<u8> {
        NAMES.set(sets.to_vec());
        let bytes = given(self.content);
        self.given.set(self.given.get() + bytes.len() + GIVEN_ONCE);
        bytes
    }

    /// Whether it took too long.
    fn is_over(&self) -> bool {
        self.given.get() > GIVEN_MAX.max(TIMES_MIN * (self.own.len() + GIVEN_ONCE))
    }

    /// Tries what is left, such that the result is the same for all who is who.
    fn descend(&mut self, mut sets: Vec<Names>) {
        if self.is_over() && self.least.is_some() {
            return;
        }
        if orders(&sets) > FEW {
            self.refine(&mut sets);
        }
        let shared = sets.iter().enumerate().find_map(|(at, set)| Some((at, set.shared()?)));
        let Some((at, name)) = shared else {
            let given = match sets == self.own_names {
                true => self.own.clone(),
                false => self.given_with(&sets),
            };
            self.least = Some(self.least.take().map_or(given.clone(), |least| least.min(given)));
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
    fn refine(&self, sets: &mut Vec<Names>) {
        while orders(sets) > FEW && !self.is_over() {
            let before = sets.clone();
            for at in 0..before.len() {
                for name in 0..before[at].len as u8 {
                    self.split(&before, (at, name), &mut sets[at]);
                }
            }
            if *sets == before {
                return;
            }
        }
    }

    fn split(&self, before: &[Names], (at, name): (usize, u8), set: &mut Names) {
        let sharing: Vec<usize> = before[at].sharing(name).collect();
        if sharing.len() < 2 {
            return;
        }
        let marked = sharing.into_iter().map(|id| {
            let mut sets = before.to_vec();
            sets[at].names[id] = MARK;
            (self.given_with(&sets), id)
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
        let are_twins = self.given_with(&sets) == self.own;
        self.twins.push((pair, are_twins));
        are_twins
    }
}
