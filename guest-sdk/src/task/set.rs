//! A set of tasks.

/// Numbers of tasks, in order. Those below 64, which is mostly all, take no more than two words.
#[derive(Debug, Default)]
pub(super) struct Set {
    /// A bit for each. Two words, so that there is no gap beside them; see the executor.
    low: [u32; 2],
    /// The others, in order.
    high: Vec<usize>,
}

const LOW: usize = 64;

impl Set {
    pub(super) const fn new() -> Set {
        Set { low: [0; 2], high: Vec::new() }
    }

    fn low(&self) -> u64 {
        u64::from(self.low[1]) << 32 | u64::from(self.low[0])
    }

    pub(super) fn len(&self) -> usize {
        self.low().count_ones() as usize + self.high.len()
    }

    /// False if it was in already.
    pub(super) fn insert(&mut self, task: usize) -> bool {
        if task < LOW {
            let is_new = self.low() >> task & 1 == 0;
            self.low[task / 32] |= 1 << (task % 32);
            return is_new;
        }
        match self.high.binary_search(&task) {
            Ok(_) => false,
            Err(place) => {
                self.high.insert(place, task);
                true
            }
        }
    }

    pub(super) fn remove(&mut self, task: usize) {
        if task < LOW {
            self.low[task / 32] &= !(1 << (task % 32));
        } else if let Ok(place) = self.high.binary_search(&task) {
            self.high.remove(place);
        }
    }

    /// In order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        let mut low = self.low();
        let low = std::iter::from_fn(move || {
            let next = low.trailing_zeros() as usize;
            low &= low.wrapping_sub(1);
            (next < LOW).then_some(next)
        });
        low.chain(self.high.iter().copied())
    }

    /// The one at this place in the order.
    pub(super) fn nth(&self, place: usize) -> usize {
        self.iter().nth(place).expect("the place is less than how many there are")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_in_order_above_and_below_a_word() {
        let mut set = Set::new();
        for task in [70, 3, 63, 64, 0, 3, 70] {
            set.insert(task);
        }
        assert!(!set.insert(64) && !set.insert(63));
        assert_eq!((set.iter().collect::<Vec<_>>(), set.len()), (vec![0, 3, 63, 64, 70], 5));
        [70, 63, 5, 90].iter().for_each(|task| set.remove(*task));
        assert_eq!([set.nth(0), set.nth(1), set.nth(2)], [0, 3, 64]);
        [0, 3, 64].iter().for_each(|task| set.remove(*task));
        assert_eq!(set.len(), 0);
    }
}
