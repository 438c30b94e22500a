//! The water jugs of "Die Hard 3", as in Lamport's TLA+ course: a jug of 3 gallons, one of 5, and a tap.

/// What a jug can hold.
const SIZES: [u32; 2] = [3, 5];

/// What the jugs hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Jugs([u32; 2]);

impl Jugs {
    pub fn fill(&mut self, jug: usize) {
        self.0[jug] = SIZES[jug];
    }

    pub fn empty(&mut self, jug: usize) {
        self.0[jug] = 0;
    }

    /// Into the other one, until it is full or this one is empty.
    pub fn pour(&mut self, jug: usize) {
        let other = 1 - jug;
        let poured = self.0[jug].min(SIZES[other] - self.0[other]);
        self.0[jug] -= poured;
        self.0[other] += poured;
    }

    pub fn is_in_bounds(&self) -> bool {
        self.0.iter().zip(SIZES).all(|(held, size)| *held <= size)
    }

    /// What the film asks for.
    pub fn has_four(&self) -> bool {
        self.0.contains(&4)
    }
}

#[cfg(feature = "jugs")]
mod harness {
    use spelunk_guest::prelude::*;

    use super::*;

    #[derive(Clone, Default, Hash)]
    struct Harness(Jugs);

    #[harness]
    impl Harness {
        #[rule]
        fn fill(&mut self, #[draw(0..2)] jug: usize) {
            self.0.fill(jug);
        }

        #[rule]
        fn empty(&mut self, #[draw(0..2)] jug: usize) {
            self.0.empty(jug);
        }

        #[rule]
        fn pour(&mut self, #[draw(0..2)] jug: usize) {
            self.0.pour(jug);
        }

        #[invariant]
        fn in_bounds(&self) -> bool {
            self.0.is_in_bounds()
        }

        #[cfg(feature = "four")]
        #[invariant]
        fn not_four(&self) -> bool {
            !self.0.has_four()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Reached, after, holds, reach};

    fn next(jugs: &Jugs) -> Vec<Jugs> {
        [after(jugs, 0..2, Jugs::fill), after(jugs, 0..2, Jugs::empty), after(jugs, 0..2, Jugs::pour)]
            .concat()
    }

    #[test]
    fn four_gallons_take_six_steps() {
        assert_eq!(reach(next, Jugs::is_in_bounds), holds(16, 96));
        let is_right = |jugs: &Jugs| jugs.is_in_bounds() && !jugs.has_four();
        assert_eq!(reach(next, is_right), Reached { states: 14, steps: 84, failure: Some(6) });
    }
}
