//! The published crate `priority-queue`, and its harness: it must answer as a map from items to priorities
//! would that is searched for the largest.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use priority_queue::PriorityQueue;
use spelunk_guest::prelude::*;

const ITEMS: [char; 12] = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'];

#[derive(Default)]
struct Harness {
    queue: PriorityQueue<char, u8>,
    /// The priority of each item that the queue must hold.
    model: BTreeMap<char, u8>,
}

#[harness]
impl Harness {
    #[rule]
    fn push(&mut self, #[draw(sampled_from(ITEMS))] item: char, #[draw(0..=9)] priority: u8) {
        let before = self.queue.push(item, priority);
        assert_eq!(before, self.model.insert(item, priority));
    }

    #[rule]
    #[precondition(!self.model.is_empty())]
    fn change_priority(
        &mut self,
        #[draw(sampled_from(&self.model))] item: char,
        #[draw(0..=9)] priority: u8,
    ) {
        let before = self.queue.change_priority(&item, priority);
        assert_eq!(before, self.model.insert(item, priority));
    }

    #[rule]
    #[precondition(!self.model.is_empty())]
    fn remove(&mut self, #[draw(sampled_from(&self.model))] item: char) {
        let removed = self.queue.remove(&item);
        assert_eq!(removed, self.model.remove_entry(&item));
    }

    #[rule]
    fn pop(&mut self) {
        let popped = self.queue.pop();
        self.check_largest(popped);
        if let Some((item, _)) = popped {
            self.model.remove(&item);
        }
    }

    #[rule]
    fn peek(&self) {
        self.check_largest(self.queue.peek().map(|(item, priority)| (*item, *priority)));
    }

    #[invariant]
    fn len(&self) {
        assert_eq!(self.queue.len(), self.model.len());
    }

    #[invariant]
    fn priorities(&self) {
        for item in ITEMS {
            assert_eq!(self.queue.get_priority(&item), self.model.get(&item), "priority of {item}");
        }
    }

    /// Of several items with the largest priority any may come.
    fn check_largest(&self, found: Option<(char, u8)>) {
        let largest = self.model.values().max();
        match found {
            Some((item, priority)) => assert!(
                Some(&priority) == largest && self.model.get(&item) == largest,
                "{item} came with priority {priority}, the largest is {largest:?}"
            ),
            None => assert!(largest.is_none(), "nothing came"),
        }
    }
}
