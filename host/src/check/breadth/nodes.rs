//! The states that were met, in the order of the check, and who met them first.

use std::collections::BTreeSet;

use crate::check::path;
use crate::check::sleep::{self, Rules};
use crate::check::visited::Visited;
use crate::choice::{Kind, Scripted};
use crate::trace::{Action, Trace};

/// Levels after which it is judged anew whether it pays to save few states.
const NARROW: u32 = 16;

/// The parent of the root.
pub(super) const NONE: u32 = u32::MAX;

/// A state, by the step that led to it first.
pub(super) struct Node {
    pub(super) parent: u32,
    /// Where its script begins; it ends where that of the next begins.
    pub(super) script: u32,
    pub(super) action: Action,
}

/// Where a state is explored again, or only in part.
#[derive(Clone, Copy)]
pub(super) struct Asleep {
    pub(super) sleep: Rules,
    /// The rules to explore.
    pub(super) rules: Rules,
    /// It was explored before, but for these rules.
    pub(super) is_again: bool,
}

impl Asleep {
    pub(super) fn but(sleep: Rules) -> Asleep {
        Asleep { sleep, rules: !sleep, is_again: false }
    }
}

/// The states that were met, in the order of the check.
pub(super) struct Nodes<S> {
    pub(super) list: Vec<Node>,
    /// Answers, with the index of what was asked.
    pub(super) scripts: Vec<(u32, u32)>,
    pub(super) kinds: Vec<Kind>,
    /// Saved states of nodes that wait, and of others that some below them are reached from.
    pub(super) saved: Vec<Option<S>>,
    /// Those others.
    pub(super) held: Vec<u32>,
    /// For so many levels all are saved that wait: there were nearly as many of those others as nodes that are reached from them.
    pub(super) narrow: u32,
    /// Of each node, where rules are declared independent.
    pub(super) asleep: Vec<Asleep>,
    /// The node of each state, where rules are declared independent and states compared.
    pub(super) visited: Visited<u32>,
}

impl<S> Nodes<S> {
    pub(super) fn new() -> Nodes<S> {
        Nodes {
            list: Vec::new(),
            scripts: Vec::new(),
            kinds: Vec::new(),
            saved: Vec::new(),
            held: Vec::new(),
            narrow: 0,
            asleep: Vec::new(),
            visited: Visited::new(),
        }
    }

    pub(super) fn push(&mut self, parent: u32, action: Action, script: &[Scripted], saved: Option<S>) -> u32 {
        let index = self.list.len() as u32;
        assert!(index < NONE, "there are fewer than 2^32 states");
        self.list.push(Node { parent, script: self.scripts.len() as u32, action });
        for scripted in script {
            let kind = index_of(&mut self.kinds, scripted.kind);
            self.scripts.push((kind, scripted.number));
        }
        self.saved.push(saved);
        index
    }

    /// Lets go of saved states from which none of the nodes that wait, those from `first` on, is reached.
    pub(super) fn let_go(&mut self, first: u32) {
        // Those of a level stand in the order of their parents, so the parents are in order too.
        let mut level: Vec<u32> = (first..self.list.len() as u32).collect();
        let waiting = level.len();
        level.retain(|node| self.saved[*node as usize].is_none());
        let unsaved = level.len();
        let mut needed = BTreeSet::<u32>::new();
        while !level.is_empty() {
            level.iter_mut().for_each(|node| *node = self.list[*node as usize].parent);
            level.dedup();
            level.retain(|node| *node != NONE);
            needed.extend(level.iter().filter(|node| self.saved[**node as usize].is_some()));
            level.retain(|node| self.saved[*node as usize].is_none());
        }
        let is_narrow = unsaved * 4 > waiting && unsaved * 2 < needed.len() * 3;
        self.narrow = if is_narrow { NARROW } else { self.narrow.saturating_sub(1) };
        self.held.retain(|node| {
            let is_needed = needed.contains(node);
            if !is_needed {
                self.saved[*node as usize] = None;
            }
            is_needed
        });
    }

    /// Bytes that the states and the steps that lead to them hold, about, without what is saved.
    pub(super) fn bytes(&self) -> usize {
        // The table is there twice while it grows.
        self.visited.len() * Visited::<u32>::BYTES * 3 / 2
            + self.list.capacity() * size_of::<Node>()
            + self.saved.capacity() * size_of::<Option<S>>()
            + self.held.capacity() * size_of::<u32>()
            + self.asleep.capacity() * size_of::<Asleep>()
            + self.scripts.capacity() * size_of::<(u32, u32)>()
    }

    pub(super) fn script(&self, node: u32, script: &mut Vec<Scripted>) {
        let start = self.list[node as usize].script as usize;
        let end = self.list.get(node as usize + 1).map_or(self.scripts.len(), |next| next.script as usize);
        let scripted = |&(kind, number): &(u32, u32)| Scripted { kind: self.kinds[kind as usize], number };
        script.clear();
        script.extend(self.scripts[start..end].iter().map(scripted));
    }

    /// The nodes on the path to `node`, the root left out, the last first.
    pub(super) fn path(&self, node: u32) -> impl Iterator<Item = u32> {
        let parent = |node: &u32| Some(self.list[*node as usize].parent);
        std::iter::successors(Some(node), parent).take_while(|node| self.list[*node as usize].parent != NONE)
    }

    pub(super) fn trace(&self, node: u32) -> Trace {
        let mut path: Vec<u32> = self.path(node).collect();
        path.reverse();
        let (mut trace, mut script) = (Trace::default(), Vec::new());
        for node in path {
            self.script(node, &mut script);
            path::push(&mut trace, self.list[node as usize].action, &script);
        }
        trace
    }

    /// The steps to a node, and one more.
    pub(super) fn trace_with(&self, node: u32, action: Action, script: &[Scripted]) -> Trace {
        let mut trace = self.trace(node);
        path::push(&mut trace, action, script);
        trace
    }

    pub(super) fn asleep(&self, node: u32) -> Asleep {
        self.asleep.get(node as usize).copied().unwrap_or(Asleep::but(sleep::NONE))
    }
}

/// The index of what is asked, among the last few. What is not there is added, be it for the second time: few
/// different questions are asked.
pub(super) fn index_of(kinds: &mut Vec<Kind>, kind: Kind) -> u32 {
    let recent = kinds.iter().enumerate().rev().take(8).find(|(_, known)| **known == kind);
    if let Some((index, _)) = recent {
        return index as u32;
    }
    kinds.push(kind);
    kinds.len() as u32 - 1
}
