//! In which order the values of a collection are told.

use std::collections::BinaryHeap;
use std::hash::Hasher;

use super::{Bytes, State, shared};
use crate::scalar::record;

/// How many there are, and each in its order.
pub(super) fn in_order<T: State, H: Hasher>(values: impl ExactSizeIterator<Item = T>, hasher: &mut H) {
    hasher.write_usize(values.len());
    values.for_each(|value| value.state(hasher));
}

/// How many there are, and each in the order of what tells them apart.
pub(super) fn in_any_order<T: State, H: Hasher>(values: impl Iterator<Item = T>, hasher: &mut H) {
    let mut are_shared = false;
    let of_each = values.map(|value| {
        let (bytes, is_shared) = shared::alone(|| bytes_of(&value));
        are_shared |= is_shared;
        (bytes, value)
    });
    let mut all: Vec<(Vec<u8>, T)> = of_each.collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    hasher.write_usize(all.len());
    if record::is_recorded::<H>() {
        return record::in_any_order(|| {
            all.iter().for_each(|(_, value)| record::part(|| value.state(hasher)))
        });
    }
    for (mut bytes, value) in all {
        if are_shared {
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
        let alone = |value: &T| shared::alone(|| bytes_of(&value)).0;
        let differ = |pair: &[&T]| alone(pair[0]) != alone(pair[1]);
        let has_ties = sorted.windows(2).any(|pair| pair[0].cmp(pair[1]).is_eq() && differ(pair));
        hasher.write_u8(has_ties.into());
        match has_ties {
            true => in_order(self.iter(), hasher),
            false => in_any_order(self.iter(), hasher),
        }
    }
}
