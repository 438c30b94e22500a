//! The public shrinking challenge: programs whose failures are found at once, and are hard to make small.
//!
//! Each rule is one challenge and fails on its own, whatever was called before.

#![forbid(unsafe_code)]

mod expression;
mod heap;

use std::collections::BTreeSet;

use spelunk_guest::prelude::*;

use expression::{Expression, expression};
use heap::{Heap, heap};

/// No list has to be longer, and the one of `lengthlist` alone may be.
const LEN_MAX: usize = 30;

#[derive(Default)]
struct Challenges;

#[harness]
impl Challenges {
    /// Five lists of small sum whose sums do not add up to a small one.
    #[rule]
    fn bound5(&self, #[draw(lists_of_small_sum())] lists: [Vec<i16>; 5]) {
        let total = sum(lists.iter().flatten());
        assert!(total < 5 * 256, "the sum of all is {total}");
    }

    /// Lists that hold no more than four different numbers together.
    #[rule]
    fn large_union_list(&self, #[draw(lists())] lists: Vec<Vec<i64>>) {
        let distinct: BTreeSet<i64> = lists.into_iter().flatten().collect();
        assert!(distinct.len() <= 4, "{} numbers are distinct", distinct.len());
    }

    /// A list that is the same from behind.
    #[rule]
    fn reverse(&self, #[draw(list())] list: Vec<i64>) {
        assert!(list.iter().rev().eq(&list), "it is another from behind");
    }

    /// An expression that never divides by zero, because no zero stands in it as a divisor.
    #[rule]
    fn calculator(&self, #[draw(expression())] expression: Expression) {
        assume(!expression.divides_by_literal_zero());
        assert!(expression.value().is_some(), "division by zero");
    }

    /// A length, and as many numbers that are not large.
    #[rule]
    fn lengthlist(&self, #[draw((1..=100usize).flat_mapped(|len| vec(0..=1000, len)))] list: Vec<i64>) {
        assert!(list.iter().all(|number| *number < 900), "a number is large");
    }

    /// Two numbers that differ.
    #[rule]
    fn difference_zero(&self, #[draw(positives())] pair: (i64, i64)) {
        let (x, y) = pair;
        assert!(x < 10 || x != y, "they are equal");
    }

    /// Two numbers that are equal or differ much.
    #[rule]
    fn difference_small(&self, #[draw(positives())] pair: (i64, i64)) {
        let (x, y) = pair;
        assert!(x < 10 || !(1..=4).contains(&x.abs_diff(y)), "they differ little");
    }

    /// Two numbers that do not follow each other.
    #[rule]
    fn difference_one(&self, #[draw(positives())] pair: (i64, i64)) {
        let (x, y) = pair;
        assert!(x < 10 || x.abs_diff(y) != 1, "they differ by one");
    }

    /// A heap that is sorted wrongly, as if its parts were in order.
    #[rule]
    fn binheap(&self, #[draw(heap())] heap: Heap) {
        let wrong = heap.wrongly_sorted();
        let mut sorted = heap.values();
        sorted.sort_unstable();
        assert!(wrong == sorted, "sorted as {wrong:?}");
    }

    /// A list of places in itself, no two of which lead to each other.
    #[rule]
    fn coupling(&self, #[draw(vec(0..=10usize, 0..=LEN_MAX))] list: Vec<usize>) {
        assume(list.iter().all(|place| *place < list.len()));
        let is_coupled = |(from, to): (usize, &usize)| from != *to && list[*to] == from;
        assert!(!list.iter().enumerate().any(is_coupled), "two places lead to each other");
    }

    /// A number that is no longer in the list after it was removed.
    #[rule]
    fn deletion(&self, #[draw((list(), any()))] input: (Vec<i64>, i64)) {
        let (mut list, number) = input;
        let place = list.iter().position(|other| *other == number);
        assume(place.is_some());
        list.remove(place.expect("it was assumed"));
        assert!(!list.contains(&number), "it is still there");
    }

    /// A list of no more than two different numbers.
    #[rule]
    fn distinct(&self, #[draw(list())] list: Vec<i64>) {
        let distinct = BTreeSet::from_iter(list);
        assert!(distinct.len() < 3, "{} numbers are distinct", distinct.len());
    }

    /// Lists that are not long together.
    #[rule]
    fn nestedlists(&self, #[draw(lists())] lists: Vec<Vec<i64>>) {
        let len: usize = lists.iter().map(Vec::len).sum();
        assert!(len <= 10, "they hold {len} numbers");
    }
}

fn list() -> impl Strategy<Value = Vec<i64>> {
    vec(any(), 0..=LEN_MAX)
}

fn lists() -> impl Strategy<Value = Vec<Vec<i64>>> {
    vec(list(), 0..=LEN_MAX)
}

fn positives() -> impl Strategy<Value = (i64, i64)> {
    (1..=i64::MAX, 1..=i64::MAX)
}

fn lists_of_small_sum() -> impl Strategy<Value = [Vec<i16>; 5]> {
    composite(|| {
        [(); 5].map(|()| {
            let list = draw(vec(any(), 0..=LEN_MAX));
            assume(sum(&list) < 256);
            list
        })
    })
}

fn sum<'a>(numbers: impl IntoIterator<Item = &'a i16>) -> i16 {
    numbers.into_iter().fold(0, |sum, number| sum.wrapping_add(*number))
}
