//! Draws that a run makes by the dozen when it changes an input. They are those of `rand`, without the second draw
//! by which that takes away a bias of less than one in 2^32 / n, and with the 53 bits of a probability that a float has; so they are a
//! few instructions each, in place.

use rand::{Rng, RngExt};

pub(super) trait Dice: Rng {
    /// One of `0..n`, which is not 0.
    #[inline(always)]
    fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.next_u32()) * u64::from(n)) >> 32) as u32
    }

    /// One of the places `0..n` of something shorter than 4 GiB.
    #[inline(always)]
    fn place(&mut self, n: usize) -> usize {
        self.below(n as u32) as usize
    }

    /// True with this probability.
    #[inline(always)]
    fn chance(&mut self, probability: f64) -> bool {
        // Without a draw where there is nothing to decide.
        probability >= 1.0 || self.random::<f64>() < probability
    }
}

impl<R: Rng> Dice for R {}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn draws_are_those_of_the_library() {
        let [mut ours, mut theirs] = [1, 1].map(Xoshiro256PlusPlus::seed_from_u64);
        for n in 1..10_000 {
            assert_eq!(ours.below(n), theirs.random_range(0..n));
            assert_eq!(ours.place(n as usize), theirs.random_range(0..n as usize));
            let probability = f64::from(n) / 9_000.0;
            assert_eq!(ours.chance(probability), theirs.random_bool(probability.min(1.0)));
        }
    }
}
