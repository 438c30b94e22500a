//! A value for each of a set of interchangeable ids.

use std::any::TypeId;
use std::array;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use super::{Scalar, ScalarSet, canonical, record};
use crate::State;

/// A value for each id of a set of interchangeable ones; see [`Scalar`].
pub struct PerScalar<const N: usize, T, Of = ()> {
    values: [T; N],
    of: PhantomData<fn() -> Of>,
}

/// These are interchangeable: states are equal in which they stand in another order, and their ids, which are given as
/// [`Scalar::of_index`], are renamed alike. For a method `#[state]`:
///
/// ```
/// use spelunk_guest::prelude::*;
/// use std::hash::Hash;
///
/// #[derive(Default)]
/// struct Pair {
///     values: [u8; 2],
///     last: usize,
/// }
///
/// #[harness]
/// impl Pair {
///     #[rule]
///     fn put(&mut self, #[draw(0..2)] at: usize, #[draw(0..3)] value: u8) {
///         (self.values[at], self.last) = (value, at);
///     }
///
///     #[state]
///     fn whoever_is_who(&self) -> impl Hash {
///         (symmetric(self.values), Scalar::<2>::of_index(self.last))
///     }
/// }
/// # fn main() {}
/// ```
pub fn symmetric<const N: usize, T>(values: [T; N]) -> PerScalar<N, T> {
    PerScalar::from(values)
}

impl<const N: usize, T, Of> From<[T; N]> for PerScalar<N, T, Of> {
    fn from(values: [T; N]) -> Self {
        let () = Scalar::<N, Of>::LIMIT;
        canonical::are_used();
        PerScalar { values, of: PhantomData }
    }
}

impl<const N: usize, T, Of> PerScalar<N, T, Of> {
    /// What this makes of each id.
    pub fn from_fn(mut value: impl FnMut(Scalar<N, Of>) -> T) -> Self {
        PerScalar::from(array::from_fn(|index| value(Scalar::of_index(index))))
    }

    /// Each id with its value, in an order that must not matter.
    pub fn iter(&self) -> impl Iterator<Item = (Scalar<N, Of>, &T)> {
        self.values.iter().enumerate().map(|(index, value)| (Scalar::of_index(index), value))
    }

    /// As [`PerScalar::iter`], to change the values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Scalar<N, Of>, &mut T)> {
        self.values.iter_mut().enumerate().map(|(index, value)| (Scalar::of_index(index), value))
    }

    /// The values, in an order that must not matter.
    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.values.iter()
    }

    /// The ids of whose values this holds.
    pub fn ids(&self, mut holds: impl FnMut(&T) -> bool) -> ScalarSet<N, Of> {
        ScalarSet::of(|id| holds(&self[id]))
    }

    /// Gives them to a hasher, by the ids that they have where that records them, or else in order.
    fn give<H: Hasher>(&self, hasher: &mut H, tell: impl Fn(&T, &mut H))
    where
        Of: 'static,
    {
        if record::is_recorded::<H>() {
            let parts = || self.values().for_each(|value| record::part(|| tell(value, hasher)));
            record::per(TypeId::of::<Scalar<N, Of>>(), N, parts);
        } else {
            self.values().for_each(|value| tell(value, hasher));
        }
    }
}

impl<const N: usize, T, Of> Index<Scalar<N, Of>> for PerScalar<N, T, Of> {
    type Output = T;

    fn index(&self, id: Scalar<N, Of>) -> &T {
        &self.values[id.at()]
    }
}

impl<const N: usize, T, Of> IndexMut<Scalar<N, Of>> for PerScalar<N, T, Of> {
    fn index_mut(&mut self, id: Scalar<N, Of>) -> &mut T {
        &mut self.values[id.at()]
    }
}

impl<const N: usize, T: Default, Of> Default for PerScalar<N, T, Of> {
    fn default() -> Self {
        PerScalar::from_fn(|_| T::default())
    }
}

impl<const N: usize, T: Clone, Of> Clone for PerScalar<N, T, Of> {
    fn clone(&self) -> Self {
        PerScalar { values: self.values.clone(), of: PhantomData }
    }
}

impl<const N: usize, T: PartialEq, Of> PartialEq for PerScalar<N, T, Of> {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl<const N: usize, T: Eq, Of> Eq for PerScalar<N, T, Of> {}

impl<const N: usize, T: fmt::Debug, Of> fmt::Debug for PerScalar<N, T, Of> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<const N: usize, T: Hash, Of: 'static> Hash for PerScalar<N, T, Of> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.give(hasher, |value, hasher| value.hash(hasher));
    }
}

impl<const N: usize, T: State, Of: 'static> State for PerScalar<N, T, Of> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        self.give(hasher, |value, hasher| value.state(hasher));
    }
}
