//! What a guest says is of interest: numbers under a name, each of which is a feature when it is seen first (annotations of IJON,
//! Aschermann et al., 2020).
//!
//! A feature stands for name and number by their hashes. Which are told apart follows from the features that were seen, so a
//! campaign stores nothing else.

use crate::choice::mix;
use crate::coverage::{FeatureSet, SHOWN};

/// Features that stand for numbers have this bit, and what a closer look shows does not.
const OBSERVED: u32 = SHOWN | 1 << 30;
/// Those that stand for all numbers of one size have this too.
const OF_SIZE: u32 = 1 << 29;
/// Below are bits that tell names apart, and then those that tell numbers of one name apart.
const NUMBER_BITS: u32 = 21;
const NAME_BITS: u32 = 29 - NUMBER_BITS;

/// Numbers of one name that are told apart, and sizes of others. Names whose bits are equal share this room.
const NUMBERS_MAX: u32 = 4096;
const SIZES_MAX: u32 = 256;
/// Different numbers that a step may observe.
const STEP_MAX: usize = 4096;

/// How many rooms there are.
pub(crate) const ROOMS: usize = 1 << (NAME_BITS + 1);

/// The room that a feature takes, of a number.
pub(crate) fn room_of(feature: u32) -> Option<usize> {
    (feature & OBSERVED == OBSERVED).then_some((feature >> NUMBER_BITS) as usize % ROOMS)
}

/// Whether a feature stands for all numbers of one size.
pub(crate) fn is_of_size(feature: u32) -> bool {
    feature & (OBSERVED | OF_SIZE) == OBSERVED | OF_SIZE
}

/// What a step observed.
#[derive(Default)]
pub(crate) struct Observed {
    /// The feature of each number, and that of its size.
    list: Vec<(u32, u32)>,
    /// There are so many different ones that further ones do not count.
    is_full: bool,
}

impl Observed {
    /// A step begins.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.is_full = false;
    }

    /// A number is observed under the name with this hash.
    pub(crate) fn push(&mut self, name: u64, number: i64) {
        let size = mix(u64::from(number < 0), number.unsigned_abs().checked_ilog2().map_or(64, u64::from));
        let feature = |what: u64| (mix(name, what) & ((1 << NUMBER_BITS) - 1)) as u32;
        let room = OBSERVED | ((name >> (64 - NAME_BITS)) as u32) << NUMBER_BITS;
        let both = (room | feature(number as u64), room | OF_SIZE | feature(size));
        // A loop mostly observes one number again.
        if self.is_full || self.list.last() == Some(&both) {
            return;
        }
        self.list.push(both);
        // So that sorting is rare, there is room for as many that were observed before.
        if self.list.len() == 2 * STEP_MAX {
            self.list.sort_unstable();
            self.list.dedup();
            self.is_full = self.list.len() > STEP_MAX;
            self.list.truncate(STEP_MAX);
        }
    }

    /// Puts the features that are not in the set into `new`, each once and in order, and forgets them all. Where there is no room for
    /// a number, its size counts.
    pub(crate) fn take_new(&mut self, seen: &FeatureSet, new: &mut Vec<u32>) {
        if self.list.is_empty() {
            return;
        }
        self.list.sort_unstable();
        self.list.dedup();
        let from = new.len();
        let mut room = Room { at: usize::MAX, used: 0 };
        for (number, size) in self.list.drain(..).filter(|(number, _)| !seen.has_shown(*number)) {
            // Those of one room follow each other.
            if room.takes(number, NUMBERS_MAX, seen) {
                new.push(number);
            } else if !seen.has_shown(size) {
                new.push(size);
            }
        }
        new[from..].sort_unstable();
        new.dedup();
        let mut room = Room { at: usize::MAX, used: 0 };
        let mut at = 0;
        new.retain(|feature| {
            at += 1;
            at <= from || !is_of_size(*feature) || room.takes(*feature, SIZES_MAX, seen)
        });
    }
}

/// The room that is being filled.
struct Room {
    at: usize,
    used: u32,
}

impl Room {
    /// Whether there is room for a feature, which then takes it.
    fn takes(&mut self, feature: u32, max: u32, seen: &FeatureSet) -> bool {
        let Some(at) = room_of(feature) else { return false };
        if at != self.at {
            *self = Room { at, used: seen.used(at) };
        }
        let has_room = self.used < max;
        self.used += u32::from(has_room);
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What numbers show under a name that are observed one after the other, and are all new together.
    fn learned(seen: &mut FeatureSet, name: u64, numbers: impl IntoIterator<Item = i64>) -> usize {
        let (mut observed, mut new) = (Observed::default(), vec![7]);
        numbers.into_iter().for_each(|number| observed.push(name, number));
        observed.take_new(seen, &mut new);
        assert_eq!((new[0], observed.list.len()), (7, 0));
        assert!(new[1..].is_sorted() && new[1..].iter().all(|feature| seen.insert(*feature)));
        new.len() - 1
    }

    #[test]
    fn each_number_of_a_name_is_news_once() {
        let mut seen = FeatureSet::default();
        assert_eq!(learned(&mut seen, 1, [3, -3, 3, i64::MIN, i64::MAX, 0]), 5);
        assert_eq!(learned(&mut seen, 1, [0, 3, 4]), 1);
        assert_eq!(learned(&mut seen, 2, [0, 3, 4]), 3);
        assert!(seen.is_empty() && seen.edges() == 0);
    }

    #[test]
    fn numbers_beyond_the_room_are_told_apart_by_their_size() {
        let (mut seen, max) = (FeatureSet::default(), i64::from(NUMBERS_MAX));
        let mut count = 0;
        for number in 0..max + 20 {
            count += learned(&mut seen, 5, [number * 3]);
        }
        let used = seen.used(room_of(OBSERVED).unwrap());
        assert_eq!((count, used), (NUMBERS_MAX as usize + 1, NUMBERS_MAX));
        assert_eq!(learned(&mut seen, 5, [1 << 40, (1 << 40) + 1, -1 << 40, 1 << 41]), 3);
        assert_eq!(learned(&mut seen, 5, [(1 << 40) + 2, 7]), 1);
        // Another name has room of its own.
        assert_eq!(learned(&mut seen, u64::MAX, [1 << 40, (1 << 40) + 1]), 2);
    }

    #[test]
    fn a_step_and_a_room_are_bounded() {
        let mut seen = FeatureSet::default();
        let random = (0..100_000).map(|at| mix(at, 1) as i64);
        // Some have one hash.
        assert_eq!((learned(&mut seen, 1, random), STEP_MAX), (4_090, 4_096));
        // Those of one room share it, and what is left are sizes.
        for name in 0..30_000 {
            learned(&mut seen, name, [name as i64, -1]);
        }
        let sizes = room_of(OBSERVED | OF_SIZE).unwrap();
        assert_eq!((seen.used(0), seen.used(sizes)), (NUMBERS_MAX, SIZES_MAX));
        assert_eq!(learned(&mut seen, 30_000, [5, 6]), 0);
    }

    /// A step that observes few numbers over and over is not full.
    #[test]
    fn what_is_observed_again_takes_no_room() {
        let mut seen = FeatureSet::default();
        let numbers = (0..1_000_000).map(|at| i64::from(at % 3 == 0) + at % 2 + at / 999_999 * 1000);
        assert_eq!(learned(&mut seen, 9, numbers), 4);
    }
}
