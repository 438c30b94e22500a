//! Vectors, bytes, and elements of what is there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Range, RangeInclusive, RangeToInclusive};

use crate::strategy::{draw_from_nothing, spanned};
use crate::{Strategy, abi};

/// How long a collection may be: `3`, `1..=5`, `1..6` or `..=5`. The simplest is the shortest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    min: usize,
    max: usize,
}

impl From<usize> for Size {
    fn from(len: usize) -> Size {
        Size { min: len, max: len }
    }
}

impl From<RangeInclusive<usize>> for Size {
    fn from(range: RangeInclusive<usize>) -> Size {
        if range.is_empty() {
            draw_from_nothing();
        }
        Size { min: *range.start(), max: *range.end() }
    }
}

impl From<Range<usize>> for Size {
    fn from(range: Range<usize>) -> Size {
        if range.is_empty() {
            draw_from_nothing();
        }
        Size { min: range.start, max: range.end - 1 }
    }
}

impl From<RangeToInclusive<usize>> for Size {
    fn from(range: RangeToInclusive<usize>) -> Size {
        Size { min: 0, max: range.end }
    }
}

/// Calls `draw_one` for each element of a collection of this size.
///
/// Before each element a boolean says that there is one more, and both lie in a span: to delete the span
/// deletes the element. The boolean is drawn even where only one answer is allowed, so that this holds for
/// all elements alike; only a fixed size needs none.
pub(crate) fn each_element(size: Size, mut draw_one: impl FnMut()) {
    let Size { min, max } = size;
    let is_fixed = min == max;
    let go_on = probability_of_more(size);
    for count in 0.. {
        if is_fixed && count == max {
            return;
        }
        abi::span_begin("element");
        let more = is_fixed
            || abi::boolean(match count {
                _ if count < min => 1.0,
                _ if count >= max => 0.0,
                _ => go_on,
            });
        if more {
            draw_one();
        }
        abi::span_end(false);
        if !more {
            return;
        }
    }
}

/// Such that the mean length is Hypothesis': twice the least and at least 5 more than it, but no more than the
/// middle.
fn probability_of_more(Size { min, max }: Size) -> f64 {
    let middle = 0.5 * (min as f64 + max as f64);
    let mean = (2.0 * min as f64).max(min as f64 + 5.0).min(middle);
    1.0 - 1.0 / (1.0 + mean - min as f64)
}

/// A vector of values of `strategy`: `vec(0..=9, 1..=5)`.
pub fn vec<S: Strategy>(strategy: S, size: impl Into<Size>) -> VecOf<S> {
    VecOf { strategy, size: size.into() }
}

/// What [`vec()`] returns.
#[derive(Clone, Debug)]
pub struct VecOf<S> {
    strategy: S,
    size: Size,
}

impl<S: Strategy> Strategy for VecOf<S> {
    type Value = Vec<S::Value>;

    fn draw(&self) -> Vec<S::Value> {
        spanned("vec", || {
            let mut values = Vec::new();
            each_element(self.size, || values.push(self.strategy.draw()));
            values
        })
    }
}

/// Bytes, in one choice. The simplest are the fewest, all zero.
///
/// Quicker than `vec(any::<u8>(), size)`; memory for the largest size is allocated each time.
pub fn bytes(size: impl Into<Size>) -> Bytes {
    Bytes { size: size.into() }
}

/// What [`bytes`] returns.
#[derive(Clone, Debug)]
pub struct Bytes {
    size: Size,
}

impl Strategy for Bytes {
    type Value = Vec<u8>;

    fn draw(&self) -> Vec<u8> {
        abi::bytes(self.size.min, self.size.max)
    }
}

/// A clone of one of these; the first is the simplest.
///
/// Among none there is nothing to draw, which is a finding: a deadlock. Where that is no bug, say
/// `#[precondition(!self.names.is_empty())]`.
///
/// Takes a slice, array, `Vec`, `VecDeque`, `BTreeSet` or `BTreeMap` (its keys), by reference or, the first
/// three, by value. Collect an iterator into a `Vec` first.
///
/// ```
/// # use spelunk_guest::prelude::*;
/// struct Pool {
///     names: Vec<String>,
/// }
///
/// #[harness]
/// impl Pool {
/// #   #[setup] fn new() -> Pool { Pool { names: vec![] } }
///     #[rule]
///     #[precondition(!self.names.is_empty())]
///     fn use_one(&mut self, #[draw(sampled_from(&self.names))] name: String) {}
/// }
/// # fn main() {}
/// ```
pub fn sampled_from<C: Samples>(samples: C) -> SampledFrom<C> {
    SampledFrom { samples }
}

/// What [`sampled_from`] returns.
#[derive(Clone, Debug)]
pub struct SampledFrom<C> {
    samples: C,
}

impl<C: Samples> Strategy for SampledFrom<C> {
    type Value = C::Item;

    fn draw(&self) -> C::Item {
        self.samples.get(abi::index(self.samples.len()))
    }
}

/// What [`sampled_from`] takes.
#[diagnostic::on_unimplemented(
    message = "`sampled_from` takes a slice, array, `Vec`, `VecDeque`, `BTreeSet` or `BTreeMap`, not `{Self}`",
    note = "collect an iterator into a `Vec` first; borrow what is a field"
)]
#[allow(clippy::len_without_is_empty)]
pub trait Samples {
    /// What is drawn.
    type Item;

    /// How many there are.
    fn len(&self) -> usize;

    /// A clone of one of them; `index` is less than [`len`](Samples::len).
    fn get(&self, index: usize) -> Self::Item;
}

macro_rules! sliced {
    ($(($($generics:tt)*) $collection:ty;)*) => {$(
        impl<$($generics)*> Samples for $collection {
            type Item = T;

            fn len(&self) -> usize {
                self[..].len()
            }

            fn get(&self, index: usize) -> T {
                self[index].clone()
            }
        }
    )*};
}

macro_rules! walked {
    ($(($($generics:tt)*) $collection:ty: $iterate:ident;)*) => {$(
        impl<T: Clone, $($generics)*> Samples for &$collection {
            type Item = T;

            fn len(&self) -> usize {
                <$collection>::len(self)
            }

            fn get(&self, index: usize) -> T {
                self.$iterate().nth(index).expect("the index is less than the length").clone()
            }
        }
    )*};
}

sliced! {
    (T: Clone) Vec<T>;
    (T: Clone) &Vec<T>;
    (T: Clone) &[T];
    (T: Clone, const N: usize) [T; N];
    (T: Clone, const N: usize) &[T; N];
}

walked! {
    () VecDeque<T>: iter;
    () BTreeSet<T>: iter;
    (V) BTreeMap<T, V>: keys;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;
    use crate::strategy::tests::check;
    use crate::{boolean, draw, just};

    #[test]
    fn an_element_is_a_span() {
        check(
            vec(boolean(), 1..=3),
            &[1, 0, 1, 1, 0],
            vec![false, true],
            "vec( element( boolean 1.00 boolean 0.50 ) element( boolean 0.50 boolean 0.50 ) element( boolean 0.50 ) )",
        );
    }

    #[test]
    fn the_longest_is_told_to_stop() {
        check(vec(just(1), 0..2), &[1, 0], vec![1], "vec( element( boolean 0.33 ) element( boolean 0.00 ) )");
    }

    #[test]
    fn a_fixed_size_asks_for_the_elements_alone() {
        check(vec(boolean(), 1), &[1], vec![true], "vec( element( boolean 0.50 ) )");
        check(vec(boolean(), 0), &[], vec![], "vec( )");
    }

    #[test]
    fn mean_lengths_are_those_of_hypothesis() {
        let mean = |size: Size| {
            let p = probability_of_more(size);
            size.min as f64 + p / (1.0 - p)
        };
        for (size, expected) in [((0..=100).into(), 5.0), ((10..=100).into(), 20.0), ((..=4).into(), 2.0)] {
            assert!((mean(size) - expected).abs() < 1e-9, "{size:?}");
        }
    }

    #[test]
    fn bytes_are_one_choice() {
        check(bytes(..=9), &[3], vec![7; 3], "bytes 0..=9");
    }

    #[test]
    fn samples_of_every_collection() {
        let names = vec!["a".to_string(), "b".to_string()];
        check(sampled_from(&names), &[1], "b".to_string(), "index 2");
        check(sampled_from(&names[..1]), &[0], "a".to_string(), "index 1");
        check(sampled_from([1, 2, 3]), &[2], 3, "index 3");
        check(sampled_from(&[1, 2, 3]), &[2], 3, "index 3");
        check(sampled_from(vec![1, 2]), &[1], 2, "index 2");
        check(sampled_from(&VecDeque::from([1, 2])), &[1], 2, "index 2");
        check(sampled_from(&BTreeSet::from([4, 2])), &[1], 4, "index 2");
        check(sampled_from(&BTreeMap::from([("x", 1), ("y", 2)])), &[1], "y", "index 2");
    }

    #[test]
    #[should_panic = "deadlock"]
    fn a_sample_of_none_is_a_deadlock() {
        play(&[], || draw(sampled_from::<[u8; 0]>([])));
    }
}
