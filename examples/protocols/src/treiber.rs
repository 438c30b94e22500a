//! Treiber's stack ("Systems programming: coping with parallelism", 1986), whose nodes are used again. Each step is one
//! load, store or compare-and-swap of a shared variable.
//!
//! A thread may sleep between its load of the top and its compare-and-swap. If the same node is the top again by then,
//! the swap succeeds although what is below may have changed: the ABA problem. A tag, which each swap raises, prevents
//! that (the same paper, after IBM's System/370 manual).

use std::collections::VecDeque;

/// Nodes. All are in the stack at the start, the first on top.
const NODES: usize = 3;

/// What each thread does, in order.
const PROGRAMS: [&[Operation]; 3] = if cfg!(feature = "large") {
    [&[POP, PUSH, POP], &[POP, POP, PUSH], &[POP, PUSH, POP, PUSH]]
} else {
    [&[POP, PUSH], &[POP, POP, PUSH], &[POP, PUSH, POP]]
};
const POP: Operation = Operation::Pop;
const PUSH: Operation = Operation::Push;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// Takes a node; nothing, if the stack is empty.
    Pop,
    /// Gives back the node that the thread has had for longest; nothing, if it has none.
    Push,
}

/// The shared variable that is compared and swapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Top {
    node: Option<usize>,
    /// How often it was swapped; always 0 without tags.
    tag: u32,
}

/// The next step of a thread in its operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum At {
    #[default]
    LoadTop,
    /// Of a pop: what is below the node at the top.
    LoadNext {
        top: Top,
        node: usize,
    },
    SwapToNext {
        top: Top,
        node: usize,
        next: Option<usize>,
    },
    /// Of a push: the top will be below the node.
    StoreNext {
        top: Top,
        node: usize,
    },
    SwapToNode {
        top: Top,
        node: usize,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Thread {
    /// Operations that are over.
    done: usize,
    at: At,
    /// The nodes that it took, the oldest first.
    held: VecDeque<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Treiber<const HAS_TAGS: bool> {
    top: Top,
    next: [Option<usize>; NODES],
    threads: Vec<Thread>,
}

impl<const HAS_TAGS: bool> Default for Treiber<HAS_TAGS> {
    fn default() -> Self {
        Treiber {
            top: Top { node: Some(0), tag: 0 },
            next: std::array::from_fn(|node| (node + 1 < NODES).then_some(node + 1)),
            threads: vec![Thread::default(); PROGRAMS.len()],
        }
    }
}

impl<const HAS_TAGS: bool> Treiber<HAS_TAGS> {
    fn operation(&self, thread: usize) -> Option<Operation> {
        PROGRAMS[thread].get(self.threads[thread].done).copied()
    }

    /// Threads that have something left to do.
    pub fn can_step(&self) -> Vec<usize> {
        (0..PROGRAMS.len()).filter(|thread| self.operation(*thread).is_some()).collect()
    }

    /// All threads did all that they were to do.
    pub fn is_over(&self) -> bool {
        self.threads.iter().zip(PROGRAMS).all(|(thread, program)| thread.done == program.len())
    }

    /// A step of this thread.
    pub fn step(&mut self, thread: usize) {
        let at = match self.threads[thread].at.clone() {
            At::LoadTop => self.load_top(thread),
            At::LoadNext { top, node } => Some(At::SwapToNext { top, node, next: self.next[node] }),
            At::SwapToNext { top, node, next } => match self.swap(&top, next) {
                true => {
                    self.threads[thread].held.push_back(node);
                    None
                }
                false => Some(At::LoadTop),
            },
            At::StoreNext { top, node } => {
                self.next[node] = top.node;
                Some(At::SwapToNode { top, node })
            }
            At::SwapToNode { top, node } => match self.swap(&top, Some(node)) {
                true => {
                    self.threads[thread].held.pop_front();
                    None
                }
                false => Some(At::LoadTop),
            },
        };
        let thread = &mut self.threads[thread];
        thread.done += usize::from(at.is_none());
        thread.at = at.unwrap_or_default();
    }

    /// The step after it; none, if the operation is over.
    fn load_top(&self, thread: usize) -> Option<At> {
        let top = self.top.clone();
        match self.operation(thread)? {
            Operation::Pop => top.node.map(|node| At::LoadNext { top, node }),
            Operation::Push => {
                self.threads[thread].held.front().map(|node| At::StoreNext { top, node: *node })
            }
        }
    }

    /// Sets the top, if it is still this one.
    fn swap(&mut self, top: &Top, node: Option<usize>) -> bool {
        let is_same = self.top == *top;
        if is_same {
            self.top = Top { node, tag: top.tag + u32::from(HAS_TAGS) };
        }
        is_same
    }

    /// The nodes in the stack from the top on; more than there are, if they form a ring.
    fn stack(&self) -> Vec<usize> {
        let below = |node: &usize| self.next[*node];
        std::iter::successors(self.top.node, below).take(NODES + 1).collect()
    }

    /// Each node is in the stack, or one thread has it.
    pub fn each_is_in_one_place(&self) -> bool {
        let held = self.threads.iter().flat_map(|thread| thread.held.iter().copied());
        let mut nodes: Vec<usize> = self.stack().into_iter().chain(held).collect();
        nodes.sort_unstable();
        nodes.into_iter().eq(0..NODES)
    }
}

#[cfg(feature = "treiber")]
mod harness {
    use spelunk_guest::prelude::*;

    use super::*;

    #[derive(Clone, Default, Hash)]
    struct Harness(Treiber<{ cfg!(feature = "tags") }>);

    #[harness]
    impl Harness {
        #[rule]
        #[precondition(!self.0.can_step().is_empty())]
        fn step(&mut self, #[draw(sampled_from(self.0.can_step()))] thread: usize) {
            self.0.step(thread);
        }

        /// A thread waits for no other: where none can take a step, all are at their ends.
        #[terminal]
        fn all_are_done(&self) -> bool {
            self.0.is_over()
        }

        #[invariant]
        fn each_in_one_place(&self) {
            assert!(self.0.each_is_in_one_place(), "{:?}", self.0);
        }
    }
}

#[cfg(all(test, not(feature = "large")))]
mod tests {
    use super::*;
    use crate::native::{Reached, after, holds, reach};

    fn reached<const HAS_TAGS: bool>() -> Reached {
        let next = |stack: &Treiber<HAS_TAGS>| after(stack, stack.can_step(), Treiber::step);
        reach(next, Treiber::each_is_in_one_place)
    }

    #[test]
    fn a_node_that_comes_back_is_mistaken_for_one_that_stayed_unless_there_are_tags() {
        assert_eq!(reached::<false>(), Reached { states: 16_017, steps: 38_291, failure: Some(12) });
        assert_eq!(reached::<true>(), holds(22_045, 51_219));
    }
}
