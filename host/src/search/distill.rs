//! The fewest and smallest inputs that show what all of them show, as `afl-cmin` finds them: for each feature the smallest input
//! that shows it, those of the rarest features first.

use std::collections::{BTreeMap, BTreeSet};

/// What inputs show, of which each is known by its number; smaller ones have lower numbers. It holds no more than there are
/// features, so the features of an input are asked for again once it is to be kept.
#[derive(Clone, Debug, Default)]
pub struct Distilled {
    /// By feature, how many inputs show it, and the lowest number of those.
    features: BTreeMap<u32, (u64, usize)>,
}

impl Distilled {
    /// Adds an input with what it shows.
    pub fn add(&mut self, input: usize, features: impl IntoIterator<Item = u32>) {
        for feature in features {
            let (times, lowest) = self.features.entry(feature).or_insert((0, input));
            *times += 1;
            *lowest = input.min(*lowest);
        }
    }

    /// What all of them show together.
    pub fn features(&self) -> impl Iterator<Item = u32> {
        self.features.keys().copied()
    }

    /// The inputs to keep so that every feature is shown by one of them, none of which is needless; `features_of` says again what
    /// an input shows. The fewest there are could be fewer: to know is NP-hard.
    ///
    /// # Errors
    /// What `features_of` says.
    pub fn kept<E>(
        &self,
        mut features_of: impl FnMut(usize) -> Result<Vec<u32>, E>,
    ) -> Result<BTreeSet<usize>, E> {
        let mut rarest: Vec<(u64, u32, usize)> =
            self.features.iter().map(|(feature, (times, lowest))| (*times, *feature, *lowest)).collect();
        rarest.sort_unstable();
        let (mut kept, mut shown_by) = (BTreeSet::new(), BTreeMap::<u32, u64>::new());
        for (_, feature, input) in rarest {
            if !shown_by.contains_key(&feature) && kept.insert(input) {
                for feature in features_of(input)? {
                    *shown_by.entry(feature).or_default() += 1;
                }
            }
        }
        // The largest first: what those kept later show may make one needless.
        for input in kept.clone().into_iter().rev() {
            let features = features_of(input)?;
            if features.iter().all(|feature| shown_by.get(feature).is_some_and(|times| *times > 1)) {
                kept.remove(&input);
                for feature in features {
                    shown_by.entry(feature).and_modify(|times| *times -= 1);
                }
            }
        }
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};
    use std::convert::Infallible;

    fn kept(inputs: &[Vec<u32>]) -> Vec<usize> {
        let mut all = Distilled::default();
        for (at, features) in inputs.iter().enumerate() {
            all.add(at, features.iter().copied());
        }
        let Ok(kept) = all.kept(|at| Ok::<_, Infallible>(inputs[at].clone()));
        kept.into_iter().collect()
    }

    #[test]
    fn the_smallest_input_of_each_feature_is_kept_unless_another_makes_it_needless() {
        assert_eq!(kept(&[]), [] as [usize; 0]);
        assert_eq!(kept(&[vec![1], vec![1], vec![1, 2], vec![2]]), [2]);
        assert_eq!(kept(&[vec![1, 2], vec![2, 3], vec![3, 1]]), [0, 1]);
        // The rarest is 9, whose only input shows 1 too; 2 and 3 are first shown by others.
        assert_eq!(kept(&[vec![1], vec![2], vec![3, 2], vec![1, 9]]), [2, 3]);
    }

    #[test]
    fn everything_is_kept_and_nothing_needless() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for _ in 0..500 {
            let inputs: Vec<Vec<u32>> = (0..rng.random_range(0..9))
                .map(|_| {
                    let features = (0..rng.random_range(0..6)).map(|_| rng.random_range(0..12));
                    features.collect::<BTreeSet<u32>>().into_iter().collect()
                })
                .collect();
            let of = |kept: &[usize]| -> BTreeSet<u32> {
                kept.iter().flat_map(|at| inputs[*at].iter().copied()).collect()
            };
            let (all, kept) = (inputs.iter().flatten().copied().collect(), kept(&inputs));
            assert_eq!(of(&kept), all);
            for at in &kept {
                let fewer: Vec<usize> = kept.iter().copied().filter(|other| other != at).collect();
                assert_ne!(of(&fewer), all);
            }
        }
    }
}
