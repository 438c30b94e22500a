//! The states that were met, in the order of the check, and who met them first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::long::{Fixed, Long, number};
use crate::check::path;
use crate::check::sleep::{self, Rules};
use crate::check::visited::Visited;
use crate::check::{Bytes, Trouble, TroubleKind};
use crate::choice::{Kind, Scripted};
use crate::trace::{Action, Trace};

/// Levels after which it is judged anew whether it pays to save few states.
const NARROW: u32 = 16;

/// Nodes, or answers, at which a check ends. They are numbered in 32 bits, and a round may add some.
const COUNT_MAX: usize = 3 << 30;

/// The parent of the root.
pub(super) const NONE: u32 = u32::MAX;

/// A state, by the step that led to it first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) parent: u32,
    /// Where its script begins; it ends where that of the next begins.
    pub(super) script: u32,
    pub(super) action: Action,
}

impl Fixed for Node {
    const WIDTH: usize = 12;

    fn write(self, bytes: &mut Vec<u8>) {
        let fields = [self.parent, self.script, self.action.code()];
        fields.iter().for_each(|field| bytes.extend(field.to_le_bytes()));
    }

    fn read(bytes: &[u8]) -> Node {
        let [parent, script, action] = [0, 4, 8].map(|at| number(&bytes[at..at + 4]));
        Node { parent, script, action: Action::of_code(action) }
    }
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
    pub(super) list: Long<Node>,
    /// Answers, with the index of what was asked.
    pub(super) scripts: Long<(u32, u32)>,
    pub(super) kinds: Vec<Kind>,
    /// The first node that waits, and of it and all that follow the states that are saved.
    first: u32,
    waiting: VecDeque<Option<S>>,
    /// Those of others that some below them are reached from.
    held: BTreeMap<u32, S>,
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
            list: Long::new(),
            scripts: Long::new(),
            kinds: Vec::new(),
            first: 0,
            waiting: VecDeque::new(),
            held: BTreeMap::new(),
            narrow: 0,
            asleep: Vec::new(),
            visited: Visited::new(),
        }
    }

    pub(super) fn push(&mut self, parent: u32, action: Action, script: &[Scripted], saved: Option<S>) -> u32 {
        let index = self.list.len() as u32;
        assert!(index < NONE, "there are fewer than 2^32 states");
        self.add(Node { parent, script: self.scripts.len() as u32, action }, saved);
        for scripted in script {
            let kind = index_of(&mut self.kinds, scripted.kind);
            self.scripts.push((kind, scripted.number));
        }
        index
    }

    /// Adds a node that waits.
    pub(super) fn add(&mut self, node: Node, saved: Option<S>) {
        self.list.push(node);
        self.waiting.push_back(saved);
    }

    /// A node. Where it cannot be read, which is told from then on, it is a root.
    pub(super) fn node(&self, node: u32) -> Node {
        self.list.get(node as usize).unwrap_or(Node { parent: NONE, script: 0, action: Action::Setup })
    }

    /// Whether some could not be read, so that it is not known how to get to states.
    pub(super) fn is_broken(&self) -> bool {
        self.list.is_broken() || self.scripts.is_broken()
    }

    /// All that was asked for could be read.
    ///
    /// # Errors
    /// It could not: the check is over.
    pub(super) fn is_read(&self) -> Result<(), Box<Trouble>> {
        match self.is_broken() {
            true => Err(Box::new(Trouble { trace: Trace::default(), kind: TroubleKind::Stopped })),
            false => Ok(()),
        }
    }

    /// Moves those before node `nodes`, and answers before `scripts`, to places of their own; whether that went well.
    pub(super) fn move_before(
        &mut self,
        (nodes, scripts): (usize, usize),
        make: impl Fn() -> Option<Box<dyn Bytes>>,
    ) -> bool {
        self.list.move_before(nodes, &make) && self.scripts.move_before(scripts, &make)
    }

    /// Whether there are as many as can be numbered.
    pub(super) fn is_full(&self) -> bool {
        self.list.len().max(self.scripts.len()) > COUNT_MAX
    }

    /// The state of a node, where it is saved.
    pub(super) fn saved(&self, node: u32) -> Option<&S> {
        match node.checked_sub(self.first) {
            Some(at) => self.waiting.get(at as usize)?.as_ref(),
            None => self.held.get(&node),
        }
    }

    /// A node was looked at; its state stays saved if some below are reached from it.
    pub(super) fn done(&mut self, node: u32, is_needed: bool) {
        let saved = node.checked_sub(self.first).and_then(|at| self.waiting.get_mut(at as usize)?.take());
        self.held.extend(saved.filter(|_| is_needed).map(|saved| (node, saved)));
    }

    /// Holds the state of a node that does not wait, or lets go of it.
    pub(super) fn hold(&mut self, node: u32, state: Option<S>) {
        match state {
            Some(state) => _ = self.held.insert(node, state),
            None => _ = self.held.remove(&node),
        }
    }

    /// The nodes before this one do not wait any more.
    pub(super) fn wait_from(&mut self, first: u32) {
        let gone = self.waiting.len().min(first.saturating_sub(self.first) as usize);
        self.waiting.drain(..gone);
        // All that an earlier process came to has waited here.
        if self.waiting.len() < self.waiting.capacity() / 4 {
            self.waiting.shrink_to(2 * self.waiting.len());
        }
        self.first += gone as u32;
    }

    /// Lets go of saved states from which none of the nodes that wait, those from `first` on, is reached.
    pub(super) fn let_go(&mut self, first: u32) {
        // Those of a level stand in the order of their parents, so the parents are in order too.
        let mut level: Vec<u32> = (first..self.list.len() as u32).collect();
        let waiting = level.len();
        level.retain(|node| self.saved(*node).is_none());
        let unsaved = level.len();
        let mut needed = BTreeSet::<u32>::new();
        while !level.is_empty() {
            level.iter_mut().for_each(|node| *node = self.node(*node).parent);
            level.dedup();
            level.retain(|node| *node != NONE);
            needed.extend(level.iter().filter(|node| self.saved(**node).is_some()));
            level.retain(|node| self.saved(*node).is_none());
        }
        let is_narrow = unsaved * 4 > waiting && unsaved * 2 < needed.len() * 3;
        self.narrow = if is_narrow { NARROW } else { self.narrow.saturating_sub(1) };
        self.held.retain(|node, _| needed.contains(node));
    }

    /// Bytes that the states and the steps that lead to them hold, about, without what is saved.
    pub(super) fn bytes(&self) -> usize {
        // The table is there twice while it grows.
        self.visited.len() * Visited::<u32>::BYTES * 3 / 2
            + self.list.bytes()
            + self.waiting.capacity() * size_of::<Option<S>>()
            // What a map has beside it.
            + self.held.len() * 2 * (size_of::<u32>() + size_of::<S>())
            + self.asleep.capacity() * size_of::<Asleep>()
            + self.scripts.bytes()
            + self.kinds.capacity() * size_of::<Kind>()
    }

    pub(super) fn script(&self, node: u32, script: &mut Vec<Scripted>) {
        let start = self.node(node).script as usize;
        let end = self.list.get(node as usize + 1).map_or(self.scripts.len(), |next| next.script as usize);
        script.clear();
        if !self.is_broken() {
            let answers = (start..end).map_while(|at| self.scripts.get(at));
            script.extend(answers.map(|(kind, number)| Scripted { kind: self.kinds[kind as usize], number }));
        }
    }

    /// The nodes on the path to `node`, the root left out, the last first.
    pub(super) fn path(&self, mut node: u32) -> impl Iterator<Item = u32> {
        std::iter::from_fn(move || {
            let parent = self.node(node).parent;
            (parent != NONE).then(|| std::mem::replace(&mut node, parent))
        })
    }

    pub(super) fn trace(&self, node: u32) -> Trace {
        let mut path: Vec<u32> = self.path(node).collect();
        path.reverse();
        let (mut trace, mut script) = (Trace::default(), Vec::new());
        for node in path {
            self.script(node, &mut script);
            path::push(&mut trace, self.node(node).action, &script);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_read_as_it_was_written() {
        let faults = [false, true].map(|on| Action::Fault(300, on));
        let others =
            [Action::Setup, Action::Rule(u16::MAX), Action::Teardown, Action::Deadlock, Action::Loop];
        for action in faults.into_iter().chain(others).chain([Action::Again(7)]) {
            let (node, mut bytes) = (Node { parent: 1 << 31, script: 70_000, action }, Vec::new());
            node.write(&mut bytes);
            assert_eq!((bytes.len(), Node::read(&bytes)), (Node::WIDTH, node));
        }
    }

    /// A check that goes on where another process ended takes as much memory as that did.
    #[test]
    fn what_waits_no_more_takes_no_room() {
        let mut nodes = Nodes::<u64>::new();
        let node = Node { parent: 0, script: 0, action: Action::Rule(0) };
        (0..100_000).for_each(|_| nodes.add(node, None));
        nodes.wait_from(99_000);
        assert!(nodes.waiting.len() == 1000 && nodes.waiting.capacity() < 4000);
    }

    /// A guest may ask more questions than are looked for among the last ones.
    #[test]
    fn questions_are_counted() {
        let (mut nodes, mut script) = (Nodes::<()>::new(), Vec::new());
        script.extend((2..12).map(|n| Scripted { kind: Kind::Index { n }, number: 0 }));
        nodes.push(NONE, Action::Setup, &[], None);
        (0..1000).for_each(|_| _ = nodes.push(0, Action::Rule(0), &script, None));
        assert_eq!(nodes.kinds.len(), 10_000);
        assert!(nodes.bytes() > 10_000 * (size_of::<Kind>() + size_of::<(u32, u32)>()));
    }
}
