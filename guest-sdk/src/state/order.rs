//! In which order the values of a collection are told.

use std::collections::BinaryHeap;
use std::hash::Hasher;

use super::{Bytes, State, shared};

/// How many there are, and each in its order.
pub(super) fn in_order<T: State, H: Hasher>(values: impl ExactSizeIterator<Item = T>, hasher: &mut H) {
    hasher.write_usize(values.len());
    values.for_each(|value| value.state(hasher));
}

/// How many there are, and each in the order of what tells them apart.
pub(super) fn in_any_order<T: State, H: Hasher>(values: impl Iterator<Item = T>, hasher: &mut H) {
    let mut all: Vec<(Vec<u8>, T)> =
        values.map(|value| (shared::untold(|| bytes_of(&value)), value)).collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    hasher.write_usize(all.len());
    for (mut bytes, value) in all {
        if shared::were_met() {
            bytes = bytes_of(&value);
        }
        hasher.write_usize(bytes.len());
        hasher.write(&bytes);
    }
}

fn bytes_of(value: &impl State) -> Vec<u8> {
    let mut bytes = Bytes::default();
    value.state(&mut bytes);
    bytes.0
}

impl<T: State + Ord> State for BinaryHeap<T> {
    /// In any order, unless some are equal and hold other things: which of them comes first depends on where they are.
    fn state<H: Hasher>(&self, hasher: &mut H) {
        let mut sorted: Vec<&T> = self.iter().collect();
        sorted.sort();
        let differ = |pair: &[&T]| shared::untold(|| bytes_of(pair[0]) != bytes_of(pair[1]));
        let has_ties = sorted.windows(2).any(|pair| pair[0].cmp(pair[1]).is_eq() && differ(pair));
        hasher.write_u8(has_ties.into());
        match has_ties {
            true => in_order(self.iter(), hasher),
            false => in_any_order(self.iter(), hasher),
        }
    }
}
