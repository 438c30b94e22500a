//! Elements of what is there: one, or all in another order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::strategy::spanned;
use crate::{Strategy, abi};

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
/// struct Phonebook {
///     names: Vec<String>,
/// }
///
/// #[harness]
/// impl Phonebook {
/// #   #[setup] fn new() -> Phonebook { Phonebook { names: vec![] } }
///     #[rule]
///     #[precondition(!self.names.is_empty())]
///     fn look_up(&mut self, #[draw(sampled_from(&self.names))] name: String) {}
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

/// Clones of all of these in some order; the simplest is the order in which they are. Takes what
/// [`sampled_from`] takes.
pub fn permutation<C: Samples>(samples: C) -> Permutation<C> {
    Permutation { samples }
}

/// What [`permutation`] returns.
#[derive(Clone, Debug)]
pub struct Permutation<C> {
    samples: C,
}

impl<C: Samples> Strategy for Permutation<C> {
    type Value = Vec<C::Item>;

    fn draw(&self) -> Vec<C::Item> {
        spanned("permutation", || {
            let mut left: VecDeque<C::Item> = (0..self.samples.len()).map(|i| self.samples.get(i)).collect();
            let mut values = Vec::with_capacity(left.len());
            while left.len() > 1 {
                let place = abi::index(left.len());
                values.extend(left.remove(place));
            }
            values.extend(left);
            values
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::play;
    use crate::draw;
    use crate::strategy::tests::{check, check_all, check_simplest};

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

    #[test]
    fn a_permutation_takes_what_is_left() {
        check(permutation([1, 2, 3]), &[0, 0], vec![1, 2, 3], "permutation( index 3 index 2 )");
        check(permutation(&[1, 2, 3][..]), &[2, 0], vec![3, 1, 2], "permutation( index 3 index 2 )");
        check(permutation([1]), &[], vec![1], "permutation( )");
        check(permutation([0u8; 0]), &[], vec![], "permutation( )");
    }

    #[test]
    fn simplest_values_and_bounds() {
        check_simplest(sampled_from(["b", "a"]), "b");
        check_simplest(permutation([3, 1, 2]), vec![3, 1, 2]);
        check_all(permutation([3, 1, 2, 1]), |values| {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            sorted == [1, 1, 2, 3]
        });
    }
}
