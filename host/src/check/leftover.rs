//! Whether states that a check tells apart by their memory differ only in bytes that nothing looks at: what is left over in enums, in
//! queues, in what was freed. Some states are visited once more, and pairs of them that differ in one or two words are followed: both
//! take the same steps with the same answers. Where nothing else comes to differ, the steps go the same ways, and the words themselves
//! stay or become equal, the two behave alike as far as they were followed.
//!
//! That a number is not looked at for some steps does not say that it never is. So this is a hint, and changes no verdict.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::visit::{Visit, Visitor};
use super::{Options, TroubleKind};
use crate::choice::{Past, Scripted, advance, mix};
use crate::outcome::Halt;
use crate::target::Target;
use crate::trace::Action;

/// States that are visited, at most.
const STATES_MAX: usize = 1024;
/// Fewer say little.
const STATES_MIN: usize = 64;
/// Words in which states differ, at most: where there are more, each is told by itself, and not with every other.
const WORDS_MAX: usize = 48;
const DIFFERENT_MAX: usize = 1024;
/// Pairs that are followed for each word or two, how far, and for how many steps.
const PAIRS_MAX: usize = 16;
const DEPTH_MAX: usize = 8;
const FOLLOWED_MAX: usize = 400;
/// So many of them must be alike, and one in so many of those that were followed.
const ALIKE_MIN: usize = 3;
const ALIKE_SHARE: usize = 4;
/// Steps from one state, at most.
const WAYS_MAX: usize = 64;
/// Bytes of memory that are compared for each step that may be taken.
const BYTES: u64 = 512 << 10;

/// Words that are left over.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    /// Their addresses, in the order of what they cost; there are four bytes at each.
    pub words: Vec<u32>,
    /// How many times as many states there are for that, about.
    pub factor: f64,
    /// So many states were looked at.
    pub states: usize,
}

/// A state that was visited.
struct Seen<S> {
    state: S,
    on: Vec<bool>,
    /// The words that are not as in the first state.
    words: BTreeMap<u32, u32>,
    /// The sum of their hashes.
    hash: u64,
    /// What there is beside memory.
    beside: u128,
}

/// The states that were visited.
struct Found<S> {
    seen: Vec<Seen<S>>,
    known: BTreeSet<Option<u128>>,
    /// The memory of the first.
    base: Vec<u8>,
}

/// Where a step leads.
struct Next<S> {
    action: Action,
    script: Vec<Scripted>,
    how: u8,
    state: Option<S>,
}

/// A target that is looked at, and what that may take.
struct Looker<'v, 't, T: Target> {
    visitor: &'v mut Visitor<'t, T>,
    steps: usize,
    bytes: u64,
    /// Steps that visiting may take, and following as many.
    steps_max: usize,
    /// Bytes that all saved states may have.
    room: usize,
    is_over: &'v dyn Fn() -> bool,
}

/// Looks for such words, for about so many steps. All saved states may have `room` bytes. Nothing is found where the target tells nothing
/// of its memory, where there are few states, or where `is_over` says that no time is left.
pub fn leftover<T: Target>(
    target: &mut T,
    options: &Options,
    (steps, room): (usize, usize),
    is_over: &dyn Fn() -> bool,
) -> Option<Leftover> {
    target.reset();
    let root = target.snapshot()?;
    let mut visitor = Visitor::new(target, options, Some(root));
    visitor.target.set_counts(false);
    let mut looker =
        Looker { visitor: &mut visitor, steps: 0, bytes: 0, steps_max: steps.div_ceil(2), room, is_over };
    // What is wrong with the guest the check has said.
    let seen = looker.visit().ok()??;
    if seen.len() < STATES_MIN {
        return None;
    }
    looker.judge(&seen).ok()
}

impl<T: Target> Looker<'_, '_, T> {
    fn is_over(&self) -> bool {
        (self.is_over)()
            || self.bytes > 2 * self.steps_max as u64 * BYTES
            || self.visitor.target.saved_bytes() >= self.room
    }

    /// The first states, breadth-first.
    fn visit(&mut self) -> Result<Option<Vec<Seen<T::Snapshot>>>, TroubleKind> {
        let mut found = Found { seen: Vec::new(), known: BTreeSet::new(), base: Vec::new() };
        let off = vec![false; self.visitor.target.faults().len()];
        self.visitor.restart();
        let Some(start) = self.visitor.target.snapshot() else { return Ok(None) };
        let first = match self.visitor.target.has_setup() {
            true => self.follow(&start, &[Action::Setup])?,
            false => {
                Some(vec![Next { action: Action::Setup, script: Vec::new(), how: 0, state: Some(start) }])
            }
        };
        let mut is_known = self.add(first.unwrap_or_default(), &off, &mut found)?;
        let mut at = 0;
        while is_known && at < found.seen.len() && found.seen.len() < STATES_MAX {
            if self.steps >= self.steps_max || self.is_over() {
                break;
            }
            let (state, on) = (found.seen[at].state.clone(), found.seen[at].on.clone());
            if let Some(next) = self.onward(&state, &on)? {
                is_known = self.add(next, &on, &mut found)?;
            }
            at += 1;
        }
        Ok(is_known.then_some(found.seen))
    }

    /// Adds states that are new; whether enough is known of them.
    fn add(
        &mut self,
        next: Vec<Next<T::Snapshot>>,
        on: &[bool],
        found: &mut Found<T::Snapshot>,
    ) -> Result<bool, TroubleKind> {
        for Next { action, state, .. } in next {
            let Some(state) = state.filter(|_| found.seen.len() < STATES_MAX) else { continue };
            self.visitor.target.restore(&state);
            if !found.known.insert(self.visitor.target.compared_state()?) {
                continue;
            }
            let Some(contents) = self.visitor.target.contents() else { return Ok(false) };
            if found.base.is_empty() {
                found.base.extend_from_slice(contents.bytes);
            }
            self.bytes += contents.bytes.len().saturating_sub(contents.unused.len()) as u64;
            let Some(words) = differences(&found.base, contents.bytes, &contents.unused) else {
                return Ok(false);
            };
            let words: BTreeMap<u32, u32> = words.into_iter().map(|(at, _, word)| (at, word)).collect();
            let hash =
                words.iter().fold(0, |hash: u64, (word, value)| hash.wrapping_add(hash_of(*word, *value)));
            let beside = contents.beside;
            found.seen.push(Seen { state, on: toggled(on, action), words, hash, beside });
        }
        Ok(true)
    }

    /// Where the steps from a state lead, if they are not too many.
    fn onward(
        &mut self,
        state: &T::Snapshot,
        on: &[bool],
    ) -> Result<Option<Vec<Next<T::Snapshot>>>, TroubleKind> {
        self.visitor.target.restore(state);
        match self.visitor.target.enabled(&mut self.visitor.enabled) {
            Ok(()) => {}
            Err(Halt::Stopped) => return Err(TroubleKind::Stopped),
            Err(Halt::Fail(_)) => return Ok(Some(Vec::new())),
        }
        let Some(ready) = self.visitor.target.snapshot() else { return Ok(None) };
        let teardown = self.visitor.target.has_teardown().then_some(Action::Teardown);
        let rules: Vec<Action> = self.visitor.enabled.iter().map(|rule| Action::Rule(*rule)).collect();
        let called: Vec<Action> = rules.into_iter().chain(teardown).collect();
        let faults: Vec<Action> = (0..).zip(on).map(|(fault, on)| Action::Fault(fault, !on)).collect();
        let Some(mut next) = self.follow(&ready, &called)? else { return Ok(None) };
        let Some(toggled) = self.follow(state, &faults)? else { return Ok(None) };
        next.extend(toggled);
        Ok(Some(next))
    }

    fn follow(
        &mut self,
        from: &T::Snapshot,
        actions: &[Action],
    ) -> Result<Option<Vec<Next<T::Snapshot>>>, TroubleKind> {
        let mut next = Vec::new();
        for action in actions {
            let mut script = Vec::new();
            loop {
                if next.len() == WAYS_MAX || self.is_over() {
                    return Ok(None);
                }
                self.steps += 1;
                self.visitor.target.restore(from);
                let how = match self.visitor.visit(*action, &mut script, Past::First)?.0 {
                    Visit::Passed => 0,
                    Visit::Exited => 1,
                    Visit::Rejected | Visit::LeftOut => 2,
                    Visit::Failed(_) => 3,
                    Visit::Asks(_) => unreachable!("it was performed to its end"),
                };
                let leads_on = how == 0 && *action != Action::Teardown;
                let state = if leads_on { self.visitor.target.snapshot() } else { None };
                next.push(Next { action: *action, script: script.clone(), how, state });
                if !advance(&mut script, 0) {
                    break;
                }
            }
        }
        Ok(Some(next))
    }

    /// What pairs of the states say that differ in few words.
    fn judge(&mut self, seen: &[Seen<T::Snapshot>]) -> Result<Leftover, TroubleKind> {
        let mut classes = Classes::new(seen.len());
        let mut costs: BTreeMap<u32, f64> = BTreeMap::new();
        let mut merged = 0.0;
        for words in candidates(seen) {
            let links = links(seen, &words, &mut classes.clone());
            let every = links.len().div_ceil(PAIRS_MAX).max(1);
            let (mut followed, mut alike) = (0, 0);
            for (one, other) in links.iter().step_by(every) {
                if self.is_over() || self.steps >= 2 * self.steps_max {
                    break;
                }
                followed += 1;
                alike += usize::from(self.are_alike((&seen[*one], &seen[*other]))?);
            }
            // Of a word that counts, some pairs may be alike by chance.
            if alike < ALIKE_MIN || ALIKE_SHARE * alike < followed {
                continue;
            }
            let share = alike as f64 / followed as f64;
            let joined =
                links.iter().filter(|(one, other)| classes.join(*one, *other)).count() as f64 * share;
            merged += joined;
            words.iter().for_each(|word| *costs.entry(*word).or_default() += joined);
        }
        let mut words: Vec<u32> = costs.keys().copied().collect();
        words.sort_by(|one, other| costs[other].total_cmp(&costs[one]).then(one.cmp(other)));
        let states = seen.len();
        Ok(Leftover { words, factor: states as f64 / (states as f64 - merged).max(1.0), states })
    }

    /// Whether two states behave alike as far as they are followed.
    fn are_alike(
        &mut self,
        (one, other): (&Seen<T::Snapshot>, &Seen<T::Snapshot>),
    ) -> Result<bool, TroubleKind> {
        let pair = [one.state.clone(), other.state.clone()];
        let Some(differing) = self.differing(&pair)? else { return Ok(false) };
        let mut queue = VecDeque::from([(pair, differing, one.on.clone(), 0)]);
        let (mut known, before) = (BTreeSet::new(), self.steps);
        while let Some((pair, differing, on, depth)) = queue.pop_front() {
            if self.steps - before >= FOLLOWED_MAX {
                break;
            }
            let [one, other] = &pair;
            let (Some(one), Some(other)) = (self.onward(one, &on)?, self.onward(other, &on)?) else {
                return Ok(false);
            };
            if one.len() != other.len() {
                return Ok(false);
            }
            for (one, other) in one.into_iter().zip(other) {
                if (one.action, &one.script, one.how) != (other.action, &other.script, other.how) {
                    return Ok(false);
                }
                let (Some(one_state), Some(other_state)) = (one.state, other.state) else { continue };
                let pair = [one_state, other_state];
                let hashes = self.hash(&pair)?;
                if hashes[0] == hashes[1] || known.contains(&hashes) {
                    continue;
                }
                let Some(further) = self.differing(&pair)? else { return Ok(false) };
                if further.iter().any(|(word, values)| differing.get(word) != Some(values)) {
                    return Ok(false);
                }
                known.insert(hashes);
                if depth < DEPTH_MAX {
                    queue.push_back((pair, further, toggled(&on, one.action), depth + 1));
                }
            }
        }
        Ok(true)
    }

    fn hash(&mut self, pair: &[T::Snapshot; 2]) -> Result<[Option<u128>; 2], TroubleKind> {
        let mut hash = |state| {
            self.visitor.target.restore(state);
            self.visitor.target.compared_state().map_err(TroubleKind::from)
        };
        Ok([hash(&pair[0])?, hash(&pair[1])?])
    }

    /// The words in which two states differ, with what both have; nothing where they differ in something else, or in much.
    fn differing(
        &mut self,
        [one, other]: &[T::Snapshot; 2],
    ) -> Result<Option<BTreeMap<u32, [u32; 2]>>, TroubleKind> {
        self.visitor.target.restore(one);
        let Some(contents) = self.visitor.target.contents() else { return Ok(None) };
        let (base, beside) = (contents.bytes.to_vec(), contents.beside);
        self.visitor.target.restore(other);
        let Some(contents) = self.visitor.target.contents().filter(|contents| contents.beside == beside)
        else {
            return Ok(None);
        };
        self.bytes += 3 * base.len().saturating_sub(contents.unused.len()) as u64;
        let differences = differences(&base, contents.bytes, &contents.unused);
        Ok(differences.map(|all| all.into_iter().map(|(at, one, other)| (at, [one, other])).collect()))
    }
}

/// The words that differ, with both values; nothing where they are many, or one has more bytes.
fn differences(one: &[u8], other: &[u8], unused: &std::ops::Range<usize>) -> Option<Vec<(u32, u32, u32)>> {
    /// Bytes that are compared at once.
    const PART: usize = 1024;
    if one.len() != other.len() {
        return None;
    }
    let mut found = Vec::new();
    for (part, (one, other)) in one.chunks(PART).zip(other.chunks(PART)).enumerate() {
        let place = part * PART..part * PART + one.len();
        let is_unused = unused.start <= place.start && place.end <= unused.end;
        if is_unused || one == other {
            continue;
        }
        let words = one.as_chunks::<4>().0.iter().zip(other.as_chunks::<4>().0);
        for (at, (one, other)) in words.enumerate().filter(|(_, (one, other))| one != other) {
            let at = part * PART + 4 * at;
            if !unused.contains(&at) {
                found.push((at as u32, u32::from_le_bytes(*one), u32::from_le_bytes(*other)));
            }
        }
        if found.len() > DIFFERENT_MAX {
            return None;
        }
    }
    Some(found)
}

fn hash_of(word: u32, value: u32) -> u64 {
    mix(u64::from(word) << 32 | u64::from(value), u64::from(word))
}

/// The faults that are on after a step.
fn toggled(on: &[bool], action: Action) -> Vec<bool> {
    let mut on = on.to_vec();
    if let Action::Fault(fault, is_on) = action {
        on[usize::from(fault)] = is_on;
    }
    on
}

/// Single words in which states differ, and then two.
fn candidates<S>(seen: &[Seen<S>]) -> Vec<Vec<u32>> {
    let words: BTreeSet<u32> = seen.iter().flat_map(|seen| seen.words.keys().copied()).collect();
    let words: Vec<u32> = words.into_iter().take(DIFFERENT_MAX).collect();
    let mut all: Vec<Vec<u32>> = words.iter().map(|word| vec![*word]).collect();
    match words.len() <= WORDS_MAX {
        true => {
            for (at, one) in words.iter().enumerate() {
                all.extend(words[at + 1..].iter().map(|other| vec![*one, *other]));
            }
        }
        false => all.extend(words.windows(2).map(<[u32]>::to_vec)),
    }
    all
}

/// Pairs of states that differ in these words only, in all of them, and are not known to be of one class: as many as join the states.
fn links<S>(seen: &[Seen<S>], words: &[u32], classes: &mut Classes) -> Vec<(usize, usize)> {
    let mut others: Vec<((u128, u64), usize)> = Vec::with_capacity(seen.len());
    for (at, seen) in seen.iter().enumerate() {
        let own = words.iter().filter_map(|word| Some(hash_of(*word, *seen.words.get(word)?)));
        let hash = own.fold(seen.hash, u64::wrapping_sub);
        others.push(((seen.beside, hash), at));
    }
    others.sort_unstable();
    let mut links = Vec::new();
    for pair in others.windows(2) {
        let (one, other) = (pair[0].1, pair[1].1);
        let differ = |word: &u32| seen[one].words.get(word) != seen[other].words.get(word);
        let is_one = pair[0].0 == pair[1].0 && words.iter().all(differ) && seen[one].on == seen[other].on;
        if is_one && classes.join(one, other) {
            links.push((one, other));
        }
    }
    links
}

/// States that are taken for one.
#[derive(Clone)]
struct Classes(Vec<usize>);

impl Classes {
    fn new(states: usize) -> Classes {
        Classes((0..states).collect())
    }

    fn of(&mut self, state: usize) -> usize {
        let mut at = state;
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    /// Whether they were of two classes.
    fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.of(one), self.of(other));
        self.0[one.max(other)] = one.min(other);
        one != other
    }
}
