//! Whether what must come does: a loop in the graph of states that is fair, and on which it never comes.
//!
//! The strongly connected components (Tarjan 1972) of the states in which a property is not met are looked at: one that leaves a
//! weakly fair rule untaken, which may be called in all of its states, has no fair loop. One that leaves a strongly fair rule untaken
//! has none through the states in which it may be called, and is looked at again without those (Emerson and Lei 1987). To stay in a
//! state for ever is a loop too.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Options, Order};
use crate::property::PropertyKind;
use crate::target::{Fairness, Holds};

impl Options {
    /// Whether what must come at last is judged: that takes all steps between all states.
    pub fn judges(&self) -> bool {
        self.order == Order::Breadth && self.prunes && !self.reduces && self.schedules.is_none()
    }

    /// Whether orders of threads may be left out, which needs the same.
    pub(crate) fn may_leave_out_orders(&self) -> bool {
        self.reduces && Options { reduces: false, ..self.clone() }.judges()
    }
}

/// No state, no component, no number.
pub(super) const NONE: u32 = u32::MAX;
/// States of a component at which a loop is tried to begin, and edges that are looked at for it, about.
const ENTRIES_MAX: usize = 64;
const SHORTENED_MAX: u64 = 1 << 24;
/// So many edges are looked at between two questions whether to go on.
const POLL: u64 = 1 << 16;

/// A step from one state to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// [`NONE`] where the run ends in it: it may be taken, and is part of no loop.
    pub(super) to: u32,
    /// Which of [`Graph::classes`] it belongs to; none where nothing makes it come.
    pub(super) class: Option<u32>,
}

/// The states that were met, and the steps between them.
pub(super) struct Graph<'a> {
    /// Where the edges of each state begin, and where those of the last end.
    pub(super) starts: &'a [u32],
    pub(super) edges: &'a [Edge],
    /// Whether all edges of a state are known.
    pub(super) is_whole: &'a [bool],
    pub(super) holds: &'a [Holds],
    /// Kinds of steps, and how fair each is.
    pub(super) classes: &'a [Fairness],
    /// The states in which runs start.
    pub(super) initial: &'a [u32],
}

/// Steps to a loop, and around it, as edges.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lasso {
    /// A state on the way.
    pub(super) from: u32,
    /// From there to where the loop begins.
    pub(super) stem: Vec<u32>,
    /// None where the run stays in that state.
    pub(super) cycle: Vec<u32>,
}

/// It was stopped.
pub(super) struct Stopped;

/// The search for a loop on which one property is not met.
struct Search<'a> {
    graph: &'a Graph<'a>,
    goes_on: &'a mut dyn FnMut() -> bool,
    looked: u64,
    /// The edge that led to each state from where the property was first owed; the state itself comes first where there is none.
    via: Vec<Option<u32>>,
    /// The order in which states were reached; [`NONE`] where the property is not owed.
    rank: Vec<u32>,
    /// The component of a state among those that are looked at.
    component: Vec<u32>,
    components: u32,
    /// The order in which a search of components came to each state, and the first one that it leads back to.
    number: Vec<u32>,
    low: Vec<u32>,
    is_stacked: Vec<bool>,
}

impl Graph<'_> {
    /// A fair loop on which the property of this kind, which this bit tells, is not met.
    ///
    /// # Errors
    /// `goes_on` says no.
    pub(super) fn unmet(
        &self,
        (kind, bit): (PropertyKind, u64),
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Lasso>, Stopped> {
        let len = self.holds.len();
        let mut search = Search {
            graph: self,
            goes_on,
            looked: 0,
            via: vec![None; len],
            rank: vec![NONE; len],
            component: vec![NONE; len],
            components: 0,
            number: vec![NONE; len],
            low: vec![NONE; len],
            is_stacked: vec![false; len],
        };
        search.reach(kind, bit)?;
        search.lasso()
    }

    /// Whether a step leads back to where it came from, at last.
    ///
    /// # Errors
    /// `goes_on` says no.
    pub(super) fn has_loop(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<bool, Stopped> {
        let mut into = vec![0u32; self.holds.len()];
        let onward = self.edges.iter().filter(|edge| edge.to != NONE);
        onward.for_each(|edge| into[edge.to as usize] += 1);
        let mut free: Vec<u32> = (0..into.len() as u32).filter(|state| into[*state as usize] == 0).collect();
        let mut seen = 0;
        while let Some(state) = free.pop() {
            seen += 1;
            if (seen as u64).is_multiple_of(POLL) && !goes_on() {
                return Err(Stopped);
            }
            for (_, Edge { to, .. }) in self.onward(state) {
                into[to as usize] -= 1;
                if into[to as usize] == 0 {
                    free.push(to);
                }
            }
        }
        Ok(seen < into.len())
    }

    fn out(&self, state: u32) -> std::ops::Range<u32> {
        self.starts[state as usize]..self.starts[state as usize + 1]
    }

    fn edge(&self, edge: u32) -> Edge {
        self.edges[edge as usize]
    }

    /// The edges of a state that lead on, each with its number.
    fn onward(&self, state: u32) -> impl Iterator<Item = (u32, Edge)> {
        self.out(state).map(|at| (at, self.edge(at))).filter(|(_, edge)| edge.to != NONE)
    }

    /// The classes of which a step leads from this state to another one.
    fn enabled(&self, state: u32) -> BTreeSet<u32> {
        let edges = self.out(state).map(|edge| self.edge(edge)).filter(|edge| edge.to != state);
        edges.filter_map(|edge| edge.class).collect()
    }
}

impl Search<'_> {
    fn look(&mut self) -> Result<(), Stopped> {
        self.look_at(1)
    }

    /// Looks at something that takes as long as so many edges.
    fn look_at(&mut self, edges: usize) -> Result<(), Stopped> {
        let before = self.looked / POLL;
        self.looked += edges as u64;
        if self.looked / POLL > before && !(self.goes_on)() { Err(Stopped) } else { Ok(()) }
    }

    /// Finds the states in which the property is owed.
    fn reach(&mut self, kind: PropertyKind, bit: u64) -> Result<(), Stopped> {
        let graph = self.graph;
        let is_open = |state: u32| graph.holds[state as usize].to & bit == 0;
        let is_owed = |state: u32| is_open(state) && graph.holds[state as usize].from & bit != 0;
        let all = 0..graph.holds.len() as u32;
        let mut queue: VecDeque<u32> = match kind {
            PropertyKind::Eventually => {
                graph.initial.iter().copied().filter(|state| is_open(*state)).collect()
            }
            PropertyKind::LeadsTo => all.filter(|state| is_owed(*state)).collect(),
            _ => all.filter(|state| is_open(*state)).collect(),
        };
        let mut ranks = 0;
        for state in &queue {
            if self.rank[*state as usize] == NONE {
                self.rank[*state as usize] = ranks;
                ranks += 1;
            }
        }
        while let Some(state) = queue.pop_front() {
            for (edge, Edge { to, .. }) in graph.onward(state) {
                self.look()?;
                if is_open(to) && self.rank[to as usize] == NONE {
                    (self.rank[to as usize], self.via[to as usize]) = (ranks, Some(edge));
                    ranks += 1;
                    queue.push_back(to);
                }
            }
        }
        Ok(())
    }

    /// The first loop of the first component that has a fair one.
    fn lasso(&mut self) -> Result<Option<Lasso>, Stopped> {
        let graph = self.graph;
        let is_in = |state: &u32| self.rank[*state as usize] != NONE && graph.is_whole[*state as usize];
        let states: Vec<u32> = (0..graph.holds.len() as u32).filter(is_in).collect();
        let mut waiting = self.components(&states)?;
        let mut best: Option<Vec<u32>> = None;
        while let Some(mut component) = waiting.pop() {
            component.sort_by_key(|state| self.rank[*state as usize]);
            let is_later = |best: &Vec<u32>| self.rank[best[0] as usize] < self.rank[component[0] as usize];
            if best.as_ref().is_some_and(is_later) {
                continue;
            }
            match self.obstacle(&component)? {
                None => best = Some(component),
                Some(left) if left.is_empty() => {}
                Some(left) => waiting.extend(self.components(&left)?),
            }
        }
        let Some(component) = best else { return Ok(None) };
        let mut shortest: Option<Lasso> = None;
        let begun = self.looked;
        for entry in component.iter().take(ENTRIES_MAX) {
            let lasso = self.around(*entry, &component)?;
            let steps = |lasso: &Lasso| lasso.stem.len() + lasso.cycle.len();
            if shortest.as_ref().is_none_or(|known| steps(&lasso) < steps(known)) {
                shortest = Some(lasso);
            }
            if self.looked - begun > SHORTENED_MAX {
                break;
            }
        }
        Ok(shortest)
    }

    /// What keeps a component from having a fair loop through all of it: the states that are left without those that a strongly fair
    /// rule forbids, none where a weakly fair one forbids all.
    fn obstacle(&mut self, component: &[u32]) -> Result<Option<Vec<u32>>, Stopped> {
        let (enabled, taken) = self.classes(component)?;
        let mut forbidden = BTreeSet::new();
        for (class, count) in enabled {
            if taken.contains(&class) {
                continue;
            }
            match self.graph.classes[class as usize] {
                Fairness::Weak if count == component.len() => return Ok(Some(Vec::new())),
                Fairness::Strong => drop(forbidden.insert(class)),
                Fairness::Weak | Fairness::Unfair => {}
            }
        }
        if forbidden.is_empty() {
            return Ok(None);
        }
        let mut left = Vec::new();
        for state in component {
            self.look_at(self.graph.out(*state).len())?;
            if self.graph.enabled(*state).is_disjoint(&forbidden) {
                left.push(*state);
            }
        }
        Ok(Some(left))
    }

    /// In how many states of a component each class may be taken, and which are taken within.
    fn classes(&mut self, component: &[u32]) -> Result<(BTreeMap<u32, usize>, BTreeSet<u32>), Stopped> {
        let graph = self.graph;
        let (mut enabled, mut taken) = (BTreeMap::new(), BTreeSet::new());
        let own = self.component[component[0] as usize];
        for state in component {
            for class in graph.enabled(*state) {
                *enabled.entry(class).or_insert(0) += 1;
            }
            for (_, edge) in graph.onward(*state) {
                self.look()?;
                if edge.to != *state && self.component[edge.to as usize] == own {
                    taken.extend(edge.class);
                }
            }
        }
        Ok((enabled, taken))
    }

    /// The strongly connected components of these states.
    fn components(&mut self, states: &[u32]) -> Result<Vec<Vec<u32>>, Stopped> {
        let graph = self.graph;
        // What these are within now; a state outside has another number.
        self.components += 1;
        let within = self.components;
        for state in states {
            self.component[*state as usize] = within;
            self.number[*state as usize] = NONE;
        }
        let (mut numbers, mut stack, mut found) = (0, Vec::new(), Vec::new());
        let mut path: Vec<(u32, std::ops::Range<u32>)> = Vec::new();
        for root in states {
            let mut next = (self.number[*root as usize] == NONE).then_some(*root);
            loop {
                if let Some(state) = next.take() {
                    (self.number[state as usize], self.low[state as usize]) = (numbers, numbers);
                    self.is_stacked[state as usize] = true;
                    numbers += 1;
                    stack.push(state);
                    path.push((state, graph.out(state)));
                }
                let Some((state, edges)) = path.last_mut() else { break };
                let state = *state;
                if let Some(edge) = edges.next() {
                    self.look()?;
                    let to = graph.edge(edge).to;
                    if to == NONE || self.component[to as usize] != within {
                    } else if self.number[to as usize] == NONE {
                        next = Some(to);
                    } else if self.is_stacked[to as usize] {
                        self.lower(state, self.number[to as usize]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    self.lower(*parent, self.low[state as usize]);
                }
                if self.number[state as usize] == self.low[state as usize] {
                    let at = stack.iter().rposition(|other| *other == state).expect("it is on the stack");
                    let component = stack.split_off(at);
                    component.iter().for_each(|state| self.is_stacked[*state as usize] = false);
                    found.push(component);
                }
            }
        }
        for component in &found {
            self.components += 1;
            component.iter().for_each(|state| self.component[*state as usize] = self.components);
        }
        Ok(found)
    }

    /// Notes that a state leads back to one with this number.
    fn lower(&mut self, state: u32, number: u32) {
        let low = &mut self.low[state as usize];
        *low = (*low).min(number);
    }

    /// A fair loop through a state of a component that has one, by the nearest next thing that is owed.
    fn around(&mut self, entry: u32, component: &[u32]) -> Result<Lasso, Stopped> {
        let graph = self.graph;
        let is_bound = |class: &u32| graph.classes[*class as usize] != Fairness::Unfair;
        let mut cycle = Vec::new();
        if graph.enabled(entry).iter().any(is_bound) {
            let (enabled, _) = self.classes(component)?;
            let mut owed: BTreeSet<u32> = enabled.into_keys().filter(is_bound).collect();
            let stays = |owed: &u32, enabled: &BTreeSet<u32>, class: Option<u32>| {
                let is_weak = graph.classes[*owed as usize] == Fairness::Weak;
                Some(*owed) != class && (!is_weak || enabled.contains(owed))
            };
            let enabled = graph.enabled(entry);
            owed.retain(|owed| stays(owed, &enabled, None));
            let mut at = entry;
            loop {
                let steps = self.nearest(at, owed.len(), &|edge, from| {
                    let (enabled, class) = (graph.enabled(edge.to), edge.class.filter(|_| edge.to != from));
                    let is_back = owed.is_empty() && edge.to == entry;
                    is_back || owed.iter().any(|owed| !stays(owed, &enabled, class))
                })?;
                for step in &steps {
                    let edge = graph.edge(*step);
                    let enabled = graph.enabled(edge.to);
                    owed.retain(|owed| stays(owed, &enabled, edge.class));
                    at = edge.to;
                }
                cycle.extend(steps);
                if owed.is_empty() && at == entry {
                    break;
                }
            }
        }
        let (mut from, mut stem) = (entry, Vec::new());
        while let Some(edge) = self.via[from as usize] {
            stem.push(edge);
            from = self.graph.starts.partition_point(|start| *start <= edge) as u32 - 1;
        }
        stem.reverse();
        Ok(Lasso { from, stem, cycle })
    }

    /// The fewest steps within a component, at least one, the last of which is as wanted. To see that takes as long as it takes to look
    /// at so many edges, and at those of the state that it leads to.
    fn nearest(
        &mut self,
        from: u32,
        effort: usize,
        is_wanted: &dyn Fn(Edge, u32) -> bool,
    ) -> Result<Vec<u32>, Stopped> {
        let graph = self.graph;
        let own = self.component[from as usize];
        let mut via: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(state) = queue.pop_front() {
            for (at, edge) in graph.onward(state) {
                self.look()?;
                if self.component[edge.to as usize] != own {
                    continue;
                }
                self.look_at(effort + graph.out(edge.to).len())?;
                if is_wanted(edge, state) {
                    let (mut steps, mut state) = (vec![at], state);
                    while let Some((before, edge)) = via.get(&state).filter(|_| state != from) {
                        steps.push(*edge);
                        state = *before;
                    }
                    steps.reverse();
                    return Ok(steps);
                }
                if edge.to != from && !via.contains_key(&edge.to) {
                    via.insert(edge.to, (state, at));
                    queue.push_back(edge.to);
                }
            }
        }
        unreachable!("each state of a component leads to each other one")
    }
}
