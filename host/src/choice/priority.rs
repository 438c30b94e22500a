//! Which of several threads goes on, where that is drawn. Uniform draws seldom let one thread alone run for long, which some mistakes
//! need, and seldom delay one for long, which others do.
//!
//! All of it belongs to one run, and nothing to a state: a run that starts from a state draws the same, however that was reached.

use super::mix;

/// How the threads of a run are told apart, and what they did in it.
#[derive(Clone, Debug, Default)]
pub struct Priorities {
    manner: Manner,
    /// Operations that were done in the run, and by each thread; those that have the same remainder by [`TOLD_APART`] are
    /// together.
    operations: u64,
    by_thread: [u64; TOLD_APART],
    /// Threads that fell behind, the last one first.
    behind: [Option<u32>; 4],
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Manner {
    /// Each is as likely.
    #[default]
    Uniform,
    /// Each has a priority, and the highest goes on; at a few moments the one that runs falls behind all others (PCT,
    /// Burckhardt et al. 2010). The number is the seed.
    Fixed(u64),
    /// Each has a priority for its next operation only, and a new one after it (POS, Yuan et al. 2018). The number is the seed.
    Renewed(u64),
}

/// Threads of which each has a count of its own.
const TOLD_APART: usize = 8;
/// Operations after which priorities change at the same places again.
const PERIOD: u64 = 32;
/// Places in a period.
const CHANGES: u64 = 2;

impl Priorities {
    /// Those of a run: in a third of them all threads are alike.
    pub fn of_run(number: u64) -> Priorities {
        let manner = match number % 3 {
            0 => Manner::Uniform,
            1 => Manner::Fixed(number),
            _ => Manner::Renewed(number),
        };
        Priorities { manner, ..Priorities::default() }
    }

    /// The place of the thread that is to go on, if it is drawn; none where all are alike. `of` tells the number of a thread, and
    /// whether it gave way by itself: it comes after those that did not.
    pub fn preferred(&self, threads: &[u32], of: impl Fn(u32) -> (u32, bool)) -> Option<u32> {
        if self.manner == Manner::Uniform {
            return None;
        }
        let rank = |thread: u32| {
            let (number, gave_way) = of(thread);
            // Whoever fell behind last is behind those that did before.
            let fell = self.behind.iter().position(|behind| *behind == Some(number));
            (!gave_way, fell.unwrap_or(usize::MAX), self.of_thread(number))
        };
        (0u32..).zip(threads).max_by_key(|(_, thread)| rank(**thread)).map(|(place, _)| place)
    }

    /// This thread goes on.
    pub fn ran(&mut self, number: u32) {
        if self.changes() && self.behind[0] != Some(number) {
            self.behind.rotate_right(1);
            self.behind[0] = Some(number);
        }
        self.operations += 1;
        self.by_thread[number as usize % TOLD_APART] += 1;
    }

    fn of_thread(&self, number: u32) -> u64 {
        match self.manner {
            Manner::Uniform => 0,
            Manner::Fixed(seed) => mix(seed, number.into()),
            Manner::Renewed(seed) => {
                mix(mix(seed, number.into()), self.by_thread[number as usize % TOLD_APART])
            }
        }
    }

    /// Whether whoever goes on now falls behind.
    fn changes(&self) -> bool {
        let Manner::Fixed(seed) = self.manner else { return false };
        let place = self.operations % PERIOD;
        (0..CHANGES).any(|change| mix(!seed, change) % PERIOD == place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who goes on of two threads in each of so many operations.
    fn run(number: u64, operations: usize) -> Vec<Option<u32>> {
        let mut priorities = Priorities::of_run(number);
        let mut next = || {
            let preferred = priorities.preferred(&[0, 1], |thread| (thread, false));
            preferred.inspect(|number| priorities.ran(*number))
        };
        (0..operations).map(|_| next()).collect()
    }

    #[test]
    fn in_a_third_of_runs_all_are_alike() {
        assert_eq!(run(3, 5), [None; 5]);
    }

    #[test]
    fn with_fixed_priorities_threads_change_seldom() {
        for number in (1..90).step_by(3) {
            let ran = run(number, PERIOD as usize);
            let changes = ran.windows(2).filter(|two| two[0] != two[1]).count() as u64;
            assert!(changes <= CHANGES, "{number}: {ran:?}");
        }
    }

    #[test]
    fn with_renewed_priorities_every_order_comes() {
        let orders: std::collections::BTreeSet<_> =
            (2..300).step_by(3).map(|number| run(number, 4)).collect();
        assert_eq!(orders.len(), 16);
    }

    #[test]
    fn who_gave_way_comes_last() {
        for number in [1, 2, 4, 5, 7, 8] {
            let priorities = Priorities::of_run(number);
            assert_eq!(priorities.preferred(&[0, 1, 2], |thread| (thread, thread != 1)), Some(1));
        }
    }
}
