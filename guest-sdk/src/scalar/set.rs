//! Sets of interchangeable ids.

use std::any::TypeId;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{BitAnd, BitOr, Sub};

use super::{Scalar, record};
use crate::{Samples, State};

/// Some of the ids of a set of interchangeable ones; see [`Scalar`].
///
/// One of them is drawn with [`sampled_from`](crate::sampled_from) or taken with [`choose_from`](crate::choose_from).
pub struct ScalarSet<const N: usize, Of = ()> {
    bits: u8,
    of: PhantomData<fn() -> Of>,
}

impl<const N: usize, Of> ScalarSet<N, Of> {
    const fn with(bits: u8) -> Self {
        ScalarSet { bits, of: PhantomData }
    }

    /// None of them.
    pub const fn new() -> Self {
        Self::with(0)
    }

    /// Those of which this holds.
    pub fn of(mut holds: impl FnMut(Scalar<N, Of>) -> bool) -> Self {
        (0..N).map(Scalar::of_index).filter(|id| holds(*id)).collect()
    }

    /// How many there are.
    pub const fn len(self) -> usize {
        self.bits.count_ones() as usize
    }

    /// There are none.
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Whether it is one of them.
    pub const fn contains(self, id: Scalar<N, Of>) -> bool {
        self.bits >> id.index & 1 != 0
    }

    /// Adds one; whether it was not there.
    pub const fn insert(&mut self, id: Scalar<N, Of>) -> bool {
        let is_new = !self.contains(id);
        self.bits |= 1 << id.index;
        is_new
    }

    /// Takes one away; whether it was there.
    pub const fn remove(&mut self, id: Scalar<N, Of>) -> bool {
        let was_there = self.contains(id);
        self.bits &= !(1 << id.index);
        was_there
    }

    /// Each of them, in an order that must not matter.
    pub const fn iter(self) -> ScalarIter<N, Of> {
        ScalarIter { left: self }
    }
}

impl<const N: usize, Of> Clone for ScalarSet<N, Of> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<const N: usize, Of> Copy for ScalarSet<N, Of> {}

impl<const N: usize, Of> Default for ScalarSet<N, Of> {
    fn default() -> Self {
        ScalarSet::new()
    }
}

impl<const N: usize, Of> PartialEq for ScalarSet<N, Of> {
    fn eq(&self, other: &Self) -> bool {
        self.bits == other.bits
    }
}

impl<const N: usize, Of> Eq for ScalarSet<N, Of> {}

impl<const N: usize, Of> fmt::Debug for ScalarSet<N, Of> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<const N: usize, Of: 'static> Hash for ScalarSet<N, Of> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        if record::is_recorded::<H>() {
            record::ids(TypeId::of::<Scalar<N, Of>>(), N, self.bits);
        } else {
            hasher.write_u8(self.bits);
        }
    }
}

impl<const N: usize, Of: 'static> State for ScalarSet<N, Of> {
    fn state<H: Hasher>(&self, hasher: &mut H) {
        self.hash(hasher);
    }
}

impl<const N: usize, Of> FromIterator<Scalar<N, Of>> for ScalarSet<N, Of> {
    fn from_iter<I: IntoIterator<Item = Scalar<N, Of>>>(ids: I) -> Self {
        let mut set = ScalarSet::new();
        set.extend(ids);
        set
    }
}

impl<const N: usize, Of> Extend<Scalar<N, Of>> for ScalarSet<N, Of> {
    fn extend<I: IntoIterator<Item = Scalar<N, Of>>>(&mut self, ids: I) {
        for id in ids {
            self.insert(id);
        }
    }
}

macro_rules! operators {
    ($($of:ident $method:ident, $left:ident $right:ident => $bits:expr;)*) => {
        $(impl<const N: usize, Of> $of for ScalarSet<N, Of> {
            type Output = Self;

            fn $method(self, other: Self) -> Self {
                let ($left, $right) = (self.bits, other.bits);
                ScalarSet::with($bits)
            }
        })*
    };
}

operators! {
    BitAnd bitand, one other => one & other;
    BitOr bitor, one other => one | other;
    Sub sub, one other => one & !other;
}

impl<const N: usize, Of> IntoIterator for ScalarSet<N, Of> {
    type Item = Scalar<N, Of>;
    type IntoIter = ScalarIter<N, Of>;

    fn into_iter(self) -> ScalarIter<N, Of> {
        self.iter()
    }
}

impl<const N: usize, Of> Samples for ScalarSet<N, Of> {
    type Item = Scalar<N, Of>;

    fn len(&self) -> usize {
        ScalarSet::len(*self)
    }

    fn get(&self, index: usize) -> Scalar<N, Of> {
        self.iter().nth(index).expect("the index is less than the length")
    }
}

/// What [`ScalarSet::iter`] returns.
pub struct ScalarIter<const N: usize, Of = ()> {
    left: ScalarSet<N, Of>,
}

impl<const N: usize, Of> Clone for ScalarIter<N, Of> {
    fn clone(&self) -> Self {
        ScalarIter { left: self.left }
    }
}

impl<const N: usize, Of> Iterator for ScalarIter<N, Of> {
    type Item = Scalar<N, Of>;

    fn next(&mut self) -> Option<Scalar<N, Of>> {
        let bits = self.left.bits;
        let index = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        self.left.bits &= bits - 1;
        Some(Scalar::of_index(index))
    }
}
