//! Draws in proportion to weights that change.

/// Weights in a tree of sums: one is changed, and one is found by a running sum, in a logarithmic number of steps.
/// Every sum is that of its two parts and of nothing that was there before, so that equal weights find equal ones.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    /// The sum of the parts `2i` and `2i + 1` at `i`, from 1; the weights are the second half.
    sums: Vec<f64>,
}

impl Weights {
    pub(super) fn of(weights: Vec<f64>) -> Weights {
        let half = weights.len().next_power_of_two();
        let mut sums = vec![0.0; half];
        sums.extend(weights);
        sums.resize(2 * half, 0.0);
        (1..half).rev().for_each(|at| sums[at] = sums[2 * at] + sums[2 * at + 1]);
        Weights { sums }
    }

    pub(super) fn sum(&self) -> f64 {
        self.sums[1]
    }

    pub(super) fn set(&mut self, index: usize, weight: f64) {
        let mut at = self.sums.len() / 2 + index;
        self.sums[at] = weight;
        while at > 1 {
            at /= 2;
            self.sums[at] = self.sums[2 * at] + self.sums[2 * at + 1];
        }
    }

    /// The first whose weight and those before it sum up to more than `sum`.
    pub(super) fn find(&self, mut sum: f64) -> usize {
        let mut at = 1;
        while at < self.sums.len() / 2 {
            at *= 2;
            if sum >= self.sums[at] {
                sum -= self.sums[at];
                at += 1;
            }
        }
        at - self.sums.len() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn weights_that_were_changed_are_as_if_just_made() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
        let mut compared = 0;
        for len in [1, 2, 3, 64, 100] {
            let mut list: Vec<f64> = (0..len).map(|_| rng.random()).collect();
            let mut weights = Weights::of(list.clone());
            for _ in 0..50 {
                let at = rng.random_range(0..len);
                list[at] = rng.random();
                weights.set(at, list[at]);
                assert_eq!(weights.sums, Weights::of(list.clone()).sums);
                let sum = rng.random::<f64>() * weights.sum();
                let mut rest = sum;
                let linear = list.iter().position(|weight| {
                    rest -= weight;
                    rest < 0.0
                });
                // Sums that are added up in another order may differ in the last bits, so not those near a boundary.
                let is_near = |at: usize| (list[..at].iter().sum::<f64>() - sum).abs() < 1e-9;
                if !(0..=len).any(is_near) {
                    assert_eq!(weights.find(sum), linear.expect("the sum is less than all"));
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 250);
    }

    #[test]
    fn a_weight_is_found_by_the_sum_of_those_before_it() {
        let weights = Weights::of(vec![1.0, 0.0, 2.0, 0.5, 4.0]);
        let found = |sum| weights.find(sum);
        assert_eq!([0.0, 0.5, 1.0, 2.5, 3.0, 3.25, 3.5, 7.0].map(found), [0, 0, 2, 2, 3, 3, 4, 4]);
        assert_eq!(weights.sum(), 7.5);
    }
}
