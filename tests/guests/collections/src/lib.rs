//! Collections, each with one bug of the kind that is released: it shows only in a certain shape, some calls after it did its harm.
//! Each is compared with a plain model. The rules of one begin with its name; each is explored by itself.

#![forbid(unsafe_code)]

mod avl;
mod heap;
mod ranges;
mod ring;
mod table;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use spelunk_guest::prelude::*;

#[derive(Default)]
struct Collections {
    avl: avl::Tree,
    avl_model: BTreeSet<u8>,
    heap: heap::Heap,
    heap_model: BTreeMap<u8, u8>,
    ring: ring::Ring,
    ring_model: VecDeque<u8>,
    table: table::Table,
    table_model: BTreeMap<u16, u8>,
    ranges: ranges::Ranges,
    ranges_model: BTreeSet<u8>,
}

#[harness]
impl Collections {
    #[rule]
    fn avl_insert(&mut self, key: u8) {
        assert_eq!(self.avl.insert(key), self.avl_model.insert(key));
    }

    #[rule]
    fn avl_remove(&mut self, key: u8) {
        assert_eq!(self.avl.remove(key), self.avl_model.remove(&key));
    }

    #[rule]
    fn avl_smallest(&mut self) {
        if let Some(key) = self.avl_model.pop_first() {
            assert!(self.avl.remove(key));
        }
        assert!(self.avl.is_balanced(), "the tree is not balanced");
    }

    #[rule]
    fn heap_push(&mut self, item: u8, priority: u8) {
        if self.heap_model.insert(item, priority).is_none() {
            self.heap.push(item, priority);
        } else {
            self.heap.change(item, priority);
        }
    }

    #[rule]
    fn heap_remove(&mut self, item: u8) {
        assert_eq!(self.heap.remove(item), self.heap_model.remove(&item).is_some());
    }

    #[rule]
    fn heap_peek(&mut self) {
        let largest = self.heap_model.values().max().copied();
        assert_eq!(self.heap.peek().map(|(_, priority)| priority), largest);
    }

    #[rule]
    fn ring_push(&mut self, value: u8) {
        self.ring.push(value);
        self.ring_model.push_back(value);
    }

    #[rule]
    fn ring_pop(&mut self) {
        assert_eq!(self.ring.pop(), self.ring_model.pop_front());
    }

    #[rule]
    fn ring_shrink(&mut self) {
        self.ring.shrink();
    }

    #[rule]
    fn table_put(&mut self, #[draw(0..=499u16)] key: u16, value: u8) {
        self.table.put(key, value);
        self.table_model.insert(key, value);
    }

    #[rule]
    fn table_get(&mut self, #[draw(0..=499u16)] key: u16) {
        assert_eq!(self.table.get(key), self.table_model.get(&key).copied());
    }

    #[rule]
    fn table_remove(&mut self, #[draw(0..=499u16)] key: u16) {
        assert_eq!(self.table.remove(key), self.table_model.remove(&key).is_some());
    }

    #[rule]
    fn ranges_add(&mut self, from: u8, #[draw(1..=40u8)] len: u8) {
        let to = from.saturating_add(len);
        self.ranges.add(from, to);
        self.ranges_model.extend(from..to);
    }

    #[rule]
    fn ranges_remove(&mut self, from: u8, #[draw(1..=40u8)] len: u8) {
        let to = from.saturating_add(len);
        self.ranges.remove(from, to);
        self.ranges_model.retain(|value| !(from..to).contains(value));
    }

    #[rule]
    fn ranges_holds(&mut self, value: u8) {
        assert_eq!(self.ranges.holds(value), self.ranges_model.contains(&value));
    }
}
