//! Comparisons of what is computed from an input: how a change of the input moves an operand is measured, and then the input is
//! changed by as much as is missing.
//!
//! Checksums are mended once the rest was changed, and of an operand that moves evenly the slope leads to the other one (REDQUEEN,
//! Aschermann et al., 2019; Angora, Chen and Chen, 2018).

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::history::History;
use super::looks::{Closer, compared_last};
use super::mutate::change_number;
use super::operands::{Difference, Hints};
use super::run::Runner;
use crate::choice::Value;
use crate::compare::Compare;
use crate::target::Target;
use crate::trace::Trace;

/// So often at most an input is mended.
const MENDS_MAX: u32 = 4;

impl<T: Target> Runner<'_, T> {
    /// What was changed of an input may need other things changed that depend on it, such as a checksum.
    pub(super) fn mend(&mut self, history: &History, closer: &Closer<T::Snapshot>) {
        let mut trace = Trace::default();
        history.flatten(&mut trace);
        for _ in 0..self.rng.random_range(1..=MENDS_MAX) {
            trace.answer_last(&self.recorded);
            let compared = compared_last(self.target, &trace);
            let hints = closer.mended(&compared, trace.last_choices());
            if !hints.apply(&mut self.recorded, 1, &mut self.bytes, &mut self.rng) {
                return;
            }
        }
    }

    /// Changes what led to this input so that one of its comparisons holds, if that moves evenly with a number in it; whether so.
    pub(super) fn solve(&mut self, history: &History, hints: &Hints) -> bool {
        let Some(difference) = hints.differences.choose(&mut self.rng).copied() else { return false };
        let Some(at) = (0..self.recorded.len()).collect::<Vec<_>>().choose(&mut self.rng).copied() else {
            return false;
        };
        let Some(given) = self.recorded[at].clone() else { return false };
        let Some((changed, step, place)) = self.changed(&given) else { return false };
        let mut trace = Trace::default();
        history.flatten(&mut trace);
        self.recorded[at] = Some(changed);
        trace.answer_last(&self.recorded);
        self.recorded[at] = Some(given.clone());
        let compared = compared_last(self.target, &trace);
        let moved = compared.iter().find(|(place, _)| *place == difference.place);
        let Some((_, Compare::Integers(_, a, b))) = moved else { return false };
        let missing = difference.to.wrapping_sub(difference.from);
        let still_missing = if difference.is_first { b.wrapping_sub(*a) } else { a.wrapping_sub(*b) };
        let slope = missing.wrapping_sub(still_missing);
        let Some(steps) = quotient(missing, slope, difference.width) else { return false };
        let add = steps.wrapping_mul(step as u64);
        self.recorded[at] = Some(match given {
            Value::Bytes(bytes) => {
                let mut bytes = bytes.to_vec();
                if !self.add_at(&mut bytes, place, add, difference) {
                    return false;
                }
                Value::Bytes(bytes.into())
            }
            Value::Integer(number) => Value::Integer(number.wrapping_add(add as i64)),
            Value::Unsigned(number) => Value::Unsigned(number.wrapping_add(add)),
            Value::Index(number) => Value::Index(number.wrapping_add(add as u32)),
            _ => return false,
        });
        true
    }

    /// A value that is changed a little, at a place that is drawn, with what was added there: one more or less, or a bit of a byte, with
    /// which a field of bits may begin.
    fn changed(&mut self, given: &Value) -> Option<(Value, i64, usize)> {
        Some(match given {
            Value::Bytes(bytes) if !bytes.is_empty() => {
                let place = self.rng.random_range(0..bytes.len());
                let bit = if self.rng.random() { 1 } else { 1u8 << self.rng.random_range(0..8u32) };
                let step =
                    if bytes[place].checked_add(bit).is_some() { i64::from(bit) } else { -i64::from(bit) };
                let mut bytes = bytes.to_vec();
                bytes[place] = bytes[place].wrapping_add(step as u8);
                (Value::Bytes(bytes.into()), step, place)
            }
            Value::Integer(number) => (Value::Integer(number.checked_add(1)?), 1, 0),
            Value::Unsigned(number) => (Value::Unsigned(number.checked_add(1)?), 1, 0),
            Value::Index(number) => (Value::Index(number.checked_add(1)?), 1, 0),
            _ => return None,
        })
    }

    /// Adds to the number whose lowest byte stands at `place`. How long it is, and where its highest byte is, is guessed.
    fn add_at(&mut self, bytes: &mut [u8], place: usize, add: u64, difference: Difference) -> bool {
        let len = match self.rng.random() {
            true => usize::from(difference.width),
            false => 1 << self.rng.random_range(0..4u32),
        };
        let is_big = self.rng.random();
        let range = if is_big {
            (place + 1).checked_sub(len).map(|from| from..place + 1)
        } else {
            Some(place..place + len)
        };
        let Some(number) = range.and_then(|range| bytes.get_mut(range)) else { return false };
        change_number(number, is_big, |old| old.wrapping_add(add));
        true
    }
}

/// What times `slope` is `missing`, among numbers of `width` bytes that wrap around; the one nearest to 0.
fn quotient(missing: u64, slope: u64, width: u8) -> Option<u64> {
    let bits = u32::from(width) * 8;
    let mask = u64::MAX >> (64 - bits);
    let (missing, slope) = (missing & mask, slope & mask);
    if slope == 0 {
        return None;
    }
    let twos = slope.trailing_zeros();
    if missing.trailing_zeros() < twos {
        return None;
    }
    let (missing, odd) = (missing >> twos, slope >> twos);
    // Each step of Newton's doubles the bits that are right, of which three are so to begin with.
    let mut inverse = odd;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    let unused = 64 - bits + twos;
    let quotient = missing.wrapping_mul(inverse) << unused;
    Some((quotient as i64 >> unused) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    #[test]
    fn a_quotient_times_the_slope_is_what_is_missing() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut solved = 0;
        for _ in 0..10_000 {
            let width = 1u8 << rng.random_range(0..4u32);
            let mask = u64::MAX >> (64 - u32::from(width) * 8);
            let slope = rng.random::<u64>() >> rng.random_range(0..64u32) << rng.random_range(0..8u32);
            let times: u64 = rng.random();
            let missing = slope.wrapping_mul(times);
            match quotient(missing, slope, width) {
                Some(found) => {
                    assert_eq!(slope.wrapping_mul(found) & mask, missing & mask);
                    solved += 1;
                }
                None => assert_eq!(slope & mask, 0),
            }
        }
        assert!(solved > 9_000, "{solved}");
        assert_eq!(quotient(6, 3, 4), Some(2));
        assert_eq!(quotient(7, 2, 4), None);
        assert_eq!(quotient((-6i64) as u64, 3, 4), Some((-2i64) as u64));
    }
}
