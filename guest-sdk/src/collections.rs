//! Collections: vectors, bytes, sets and maps.

use std::collections::{BTreeMap, BTreeSet};
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
    each_accepted(size, || {
        draw_one();
        true
    });
}

/// The same where `draw_one` may refuse what it drew, because it is there already. That is discarded, and does
/// not count. After too many of them the collection ends, or, if it is not long enough, the run does.
pub(crate) fn each_accepted(size: Size, mut draw_one: impl FnMut() -> bool) {
    let Size { min, max } = size;
    let is_fixed = min == max;
    let go_on = probability_of_more(size);
    let (mut accepted, mut refused) = (0, 0);
    loop {
        let gives_up = refused > refused_max(accepted);
        if accepted < min && gives_up {
            abi::reject();
        }
        if is_fixed && accepted == max {
            return;
        }
        abi::span_begin("element");
        let more = is_fixed
            || abi::boolean(match accepted {
                _ if accepted < min => 1.0,
                _ if accepted >= max || gives_up => 0.0,
                _ => go_on,
            });
        let is_accepted = more && draw_one();
        abi::span_end(more && !is_accepted);
        match (more, is_accepted) {
            (false, _) => return,
            (true, true) => accepted += 1,
            (true, false) => refused += 1,
        }
    }
}

/// How many elements may be refused, as in Hypothesis: two for each that was not, and three.
fn refused_max(accepted: usize) -> usize {
    2 * accepted + 3
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

impl<S: Strategy> VecOf<S> {
    /// Without equal values: `vec(0..=9, 1..=5).unique()`.
    ///
    /// What was drawn twice is drawn again, but not for ever: where a strategy has hardly more values than the
    /// vector needs, the run is often given up.
    pub fn unique(self) -> UniqueBy<S, impl Fn(&S::Value) -> S::Value>
    where
        S::Value: Clone + Ord,
    {
        self.unique_by(Clone::clone)
    }

    /// Without values whose keys are equal: `vec(account(), 1..=5).unique_by(|account| account.id)`. See
    /// [`unique`](VecOf::unique).
    pub fn unique_by<K: Ord, F: Fn(&S::Value) -> K>(self, key: F) -> UniqueBy<S, F> {
        UniqueBy { strategy: self.strategy, size: self.size, key }
    }
}

/// What [`VecOf::unique_by`] returns.
#[derive(Clone, Debug)]
pub struct UniqueBy<S, F> {
    strategy: S,
    size: Size,
    key: F,
}

impl<K: Ord, S: Strategy, F: Fn(&S::Value) -> K> Strategy for UniqueBy<S, F> {
    type Value = Vec<S::Value>;

    fn draw(&self) -> Vec<S::Value> {
        spanned("vec", || {
            let (mut values, mut keys) = (Vec::new(), BTreeSet::new());
            each_accepted(self.size, || {
                let value = self.strategy.draw();
                let is_new = keys.insert((self.key)(&value));
                if is_new {
                    values.push(value);
                }
                is_new
            });
            values
        })
    }
}

/// A set of values of `strategy`: `set(0..=9, 1..=5)`. Another kind of set is `mapped` from it:
/// `.mapped(HashSet::from_iter)`.
///
/// What was drawn twice is drawn again, as in [`VecOf::unique`].
pub fn set<S: Strategy<Value: Ord>>(strategy: S, size: impl Into<Size>) -> SetOf<S> {
    SetOf { strategy, size: size.into() }
}

/// What [`set`] returns.
#[derive(Clone, Debug)]
pub struct SetOf<S> {
    strategy: S,
    size: Size,
}

impl<S: Strategy<Value: Ord>> Strategy for SetOf<S> {
    type Value = BTreeSet<S::Value>;

    fn draw(&self) -> Self::Value {
        spanned("set", || {
            let mut values = BTreeSet::new();
            each_accepted(self.size, || values.insert(self.strategy.draw()));
            values
        })
    }
}

/// A map from values of one strategy to values of another: `map(text("abc", 1), 0..=9, ..=3)`. Another kind of
/// map is `mapped` from it: `.mapped(HashMap::from_iter)`.
///
/// A key that was drawn twice is drawn again, as in [`VecOf::unique`].
pub fn map<K: Strategy<Value: Ord>, V: Strategy>(keys: K, values: V, size: impl Into<Size>) -> MapOf<K, V> {
    MapOf { keys, values, size: size.into() }
}

/// What [`map`] returns.
#[derive(Clone, Debug)]
pub struct MapOf<K, V> {
    keys: K,
    values: V,
    size: Size,
}

impl<K: Strategy<Value: Ord>, V: Strategy> Strategy for MapOf<K, V> {
    type Value = BTreeMap<K::Value, V::Value>;

    fn draw(&self) -> Self::Value {
        spanned("map", || {
            let mut values = BTreeMap::new();
            each_accepted(self.size, || {
                let key = self.keys.draw();
                let is_new = !values.contains_key(&key);
                if is_new {
                    values.insert(key, self.values.draw());
                }
                is_new
            });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;
    use crate::strategy::tests::{check, check_all, check_simplest};
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
    fn equal_elements_are_discarded_and_drawn_again() {
        check(
            vec(0..=9, 2).unique(),
            &[4, 4, 5],
            vec![4, 5],
            "vec( element( integer 0..=9 0 ) element( integer 0..=9 0 )discarded element( integer 0..=9 0 ) )",
        );
        check(
            set(boolean(), 0..=2),
            &[1, 1, 1, 0, 0],
            BTreeSet::from([false, true]),
            "set( element( boolean 0.50 boolean 0.50 ) element( boolean 0.50 boolean 0.50 ) element( boolean 0.00 ) )",
        );
        check(
            map(boolean(), just('x'), 1),
            &[1],
            BTreeMap::from([(true, 'x')]),
            "map( element( boolean 0.50 ) )",
        );
    }

    #[test]
    fn unique_by_a_key() {
        let strategy = vec(0..=99, 2).unique_by(|number| number / 10);
        let (drawn, _) = play(&[4, 9, 10], || draw(strategy));
        assert_eq!(drawn, [4, 10]);
    }

    #[test]
    fn a_set_ends_where_nothing_new_comes() {
        let (drawn, log) = play(&[1, 1, 1, 1, 1, 1, 1, 0], || draw(set(just(0), 0..=9)));
        assert_eq!(drawn, BTreeSet::from([0]));
        assert_eq!(log[log.len() - 3..], ["boolean 0.00", ")", ")"]);
    }

    #[test]
    #[should_panic = "reject"]
    fn a_set_that_cannot_be_large_enough_gives_up() {
        play(&[], || draw(set(just(0), 2)));
    }

    #[test]
    fn simplest_values_and_sizes() {
        check_simplest(vec(3..=9, 0..=5), vec![]);
        check_simplest(vec(3..=9, 2..=5), vec![3, 3]);
        check_simplest(set(3..=9, ..=5), BTreeSet::new());
        check_simplest(map(1..=2, just('x'), 1..5), BTreeMap::from([(1, 'x')]));
        check_simplest(bytes(2..=5), vec![7; 2]);
        check_all(vec(0..=9, 2..=5), |values| (2..=5).contains(&values.len()));
        check_all(set(0..=999, 2..=5), |values| (2..=5).contains(&values.len()));
        check_all(map(0..=999, just(1), 2), |values| values.len() == 2);
        check_all(vec(0..=99, ..=5).unique_by(|n| n % 10), |values| {
            values.len() <= 5 && BTreeSet::from_iter(values.iter().map(|n| n % 10)).len() == values.len()
        });
    }
}
