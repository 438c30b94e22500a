//! Which of several threads goes on, where that is drawn. Uniform draws seldom delay one thread while another does many operations,
//! which some mistakes need.
//!
//! All of it belongs to one run, and nothing to a state: a run that starts from a state draws the same, however that was reached.

use super::mix;

/// How the threads of a run are told apart, and what they did in it.
#[derive(Clone, Debug, Default)]
pub struct Priorities {
    /// Each thread has a priority for its next operation, and a new one after it; the highest goes on (POS, Yuan et al. 2018).
    /// Without a seed each is as likely.
    seed: Option<u64>,
    /// Operations in the run by each thread; those that have the same remainder by [`TOLD_APART`] are together.
    operations: [u64; TOLD_APART],
}

/// Threads of which each has a count of its own.
const TOLD_APART: usize = 8;
/// One of so many runs has priorities.
const SHARE: u64 = 8;

impl Priorities {
    /// A run begins; with this number it may have some.
    pub fn begin(&mut self, number: Option<u64>) {
        self.seed = number.filter(|number| number.is_multiple_of(SHARE));
        if self.seed.is_some() {
            self.operations = [0; TOLD_APART];
        }
    }

    /// The place of the thread that is to go on, if it is drawn; none where all are alike. `of` tells the number of a thread, and
    /// whether it gave way by itself: it comes after those that did not.
    pub fn preferred(&self, threads: &[u32], of: impl Fn(u32) -> (u32, bool)) -> Option<u32> {
        let seed = self.seed?;
        let rank = |thread: u32| {
            let (number, gave_way) = of(thread);
            let operations = self.operations[number as usize % TOLD_APART];
            (!gave_way, mix(mix(seed, number.into()), operations))
        };
        (0u32..).zip(threads).max_by_key(|(_, thread)| rank(**thread)).map(|(place, _)| place)
    }

    /// This thread goes on.
    pub fn ran(&mut self, number: u32) {
        if self.seed.is_some() {
            self.operations[number as usize % TOLD_APART] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who goes on of two threads in each of so many operations.
    fn run(number: u64, operations: usize) -> Vec<Option<u32>> {
        let mut priorities = Priorities::default();
        priorities.begin(Some(number));
        let mut next = || {
            let preferred = priorities.preferred(&[0, 1], |thread| (thread, false));
            preferred.inspect(|number| priorities.ran(*number))
        };
        (0..operations).map(|_| next()).collect()
    }

    #[test]
    fn in_most_runs_all_are_alike() {
        let alike = (0..80).filter(|number| run(*number, 3) == [None; 3]).count();
        assert_eq!(alike, 70);
    }

    #[test]
    fn with_priorities_every_order_comes() {
        let orders: std::collections::BTreeSet<_> =
            (0..1600).step_by(8).map(|number| run(number, 4)).collect();
        assert_eq!(orders.len(), 16);
    }

    #[test]
    fn who_gave_way_comes_last() {
        for number in (0..80).step_by(8) {
            let mut priorities = Priorities::default();
            priorities.begin(Some(number));
            assert_eq!(priorities.preferred(&[0, 1, 2], |thread| (thread, thread != 1)), Some(1));
        }
    }
}
