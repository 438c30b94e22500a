//! Small systems with a bug each, which the shrinker was not written against. The rules of a system begin with its
//! name; those of another change nothing in it.
//!
//! The systems themselves know nothing of Spelunk: `tests/tests/exploring/systems.rs` searches them exhaustively.

#![forbid(unsafe_code)]

mod accounts;
mod binding;
mod frames;
mod graph;
mod items;
mod ring;
mod timers;
mod tree;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use spelunk_guest::prelude::*;

use accounts::{Accounts, Handle};
use binding::Expression;
use frames::Frame;
use items::Item;
use ring::Ring;
use timers::Wheel;
use tree::Tree;

#[derive(Default)]
struct Systems {
    ring: Ring,
    queue: VecDeque<u8>,
    accounts: Accounts,
    handles: Pool<Handle>,
    /// By the harness' own books, of the accounts that are open.
    balances: BTreeMap<Handle, u64>,
    tree: Tree,
    keys: BTreeSet<u8>,
    wheel: Wheel,
    /// The number, the delay and the time of each timer that is neither due nor cancelled.
    timers: Vec<(usize, usize, usize)>,
    added: usize,
    now: usize,
}

#[harness]
impl Systems {
    #[rule]
    fn ring_push(&mut self, value: u8) {
        if self.ring.push(value) {
            self.queue.push_back(value);
        }
    }

    #[rule]
    fn ring_pop(&mut self) {
        assert_eq!(self.ring.pop(), self.queue.pop_front());
    }

    #[rule]
    fn ring_sum(&self) {
        let expected: u32 = self.queue.iter().map(|value| u32::from(*value)).sum();
        assert!(self.ring.sum() == expected, "the sum is {}, expected {expected}", self.ring.sum());
    }

    #[rule(into = handles)]
    fn accounts_open(&mut self) -> Handle {
        let handle = self.accounts.open();
        self.balances.insert(handle, 0);
        handle
    }

    #[rule]
    fn accounts_deposit(&mut self, #[from(handles)] handle: Handle, #[draw(1..=1000)] amount: u64) {
        self.accounts.deposit(handle, amount);
        if let Some(balance) = self.balances.get_mut(&handle) {
            *balance += amount;
        }
    }

    #[rule]
    fn accounts_close(&mut self, #[from(handles)] handle: Handle) {
        self.accounts.close(handle);
        self.balances.remove(&handle);
    }

    #[rule]
    fn accounts_transfer(
        &mut self,
        #[from(handles)] from: Handle,
        #[from(handles)] to: Handle,
        #[draw(1..=1000)] amount: u64,
    ) {
        self.accounts.transfer(from, to, amount);
        if self.balances.contains_key(&to)
            && let Some(balance) = self.balances.get_mut(&from).filter(|balance| **balance >= amount)
        {
            *balance -= amount;
            *self.balances.get_mut(&to).expect("it was looked at") += amount;
        }
        for (handle, expected) in &self.balances {
            let balance = self.accounts.balance(*handle);
            assert!(balance == Some(*expected), "{handle:?} has {balance:?}, expected {expected}");
        }
    }

    #[rule]
    fn tree_insert(&mut self, #[draw(0..=30)] key: u8) {
        self.tree.insert(key);
        self.keys.insert(key);
    }

    #[rule]
    fn tree_find(&mut self, #[draw(0..=30)] key: u8) {
        let expected = self.keys.contains(&key);
        assert!(self.tree.contains(key) == expected, "expected {expected} of {key}");
    }

    #[rule]
    fn timers_add(&mut self, #[draw(1..=50)] delay: usize) {
        self.wheel.add(self.added, delay);
        self.timers.push((self.added, delay, self.now));
        self.added += 1;
    }

    #[rule]
    #[precondition(!self.timers.is_empty())]
    fn timers_cancel(&mut self, #[draw(0..self.timers.len())] place: usize) {
        let (timer, delay, _) = self.timers.remove(place);
        self.wheel.cancel(timer, delay);
    }

    #[rule]
    fn timers_advance(&mut self, #[draw(1..=50)] ticks: usize) {
        self.now += ticks;
        let is_due = |(_, delay, added): &mut (usize, usize, usize)| *added + *delay <= self.now;
        let mut expected: Vec<usize> = self.timers.extract_if(.., is_due).map(|(timer, ..)| timer).collect();
        let mut due = self.wheel.advance(ticks);
        expected.sort_unstable();
        due.sort_unstable();
        assert!(due == expected, "{due:?} are due, expected {expected:?}");
    }

    #[rule]
    fn frames(&self, #[draw(vec(frame(), 0..=8))] frames: Vec<Frame>) {
        let decoded = frames::decode(&frames::encode(&frames));
        assert!(decoded.as_ref() == Some(&frames), "they come back as {decoded:?}");
    }

    #[rule]
    fn graph(
        &self,
        #[draw((1..=8usize).flat_mapped(|len| vec(vec(0..len, 0..=len), len)))] graph: Vec<Vec<usize>>,
    ) {
        let expected = graph::really_has_cycle(&graph);
        assert!(graph::has_cycle(&graph) == expected, "that it has a cycle is {expected}");
    }

    #[rule]
    fn binding(&self, #[draw(expression())] expression: Expression) {
        let (value, inlined) = (expression.value(&mut Vec::new()), expression.inlined());
        assert!(inlined.value(&mut Vec::new()) == value, "it is {value}, and not that of {inlined:?}");
    }

    #[rule]
    fn items(&self, #[draw(vec(item(), 0..=12))] items: Vec<Item>) {
        let decoded = items::decode(&items::encode(&items));
        assert!(decoded.as_ref() == Some(&items), "they come back as {decoded:?}");
    }
}

fn frame() -> impl Strategy<Value = Frame> {
    (0..=3, vec(any(), 0..=20)).mapped(|(tag, payload)| Frame { tag, payload })
}

fn name() -> impl Strategy<Value = char> {
    sampled_from(['a', 'b', 'c'])
}

fn expression() -> impl Strategy<Value = Expression> {
    let leaf = one_of([any().mapped(Expression::Number).boxed(), name().mapped(Expression::Name).boxed()]);
    recursive(leaf, |part| {
        let sum = (part.clone(), part.clone());
        let binding = (name(), part.clone(), part);
        one_of([
            sum.mapped(|(left, right)| Expression::Sum(Box::new(left), Box::new(right))).boxed(),
            binding
                .mapped(|(name, value, body)| Expression::Let(name, Box::new(value), Box::new(body)))
                .boxed(),
        ])
    })
}

fn item() -> impl Strategy<Value = Item> {
    one_of([
        floats(-1e12..=1e12).mapped(Item::Number).boxed(),
        text("abc,0 ", 0..=10).mapped(Item::Text).boxed(),
    ])
}
