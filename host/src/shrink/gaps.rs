//! Passes over what fails with gaps, as every third number does: tried where nothing else helps.

use super::edit::{Edit, Place};
use super::gate::Gate;
use super::numbers::{across_gaps, at, distance, farthest};
use crate::choice::{Choice, Kind, Value};
use crate::target::Target;

/// A number that is no farther from its simplest is simple enough; not the place of a letter in its alphabet, and the like.
const SIMPLE_MAX: i128 = 16;
/// Elements of a row that are left out at once.
const TOGETHER: std::ops::RangeInclusive<usize> = 2..=8;

impl<T: Target> Gate<'_, T> {
    /// Lowers numbers to some that are not right below, leaves out several elements of a row, and lowers a number where the next
    /// one must be raised for that.
    pub(super) fn cross_gaps(&mut self) -> bool {
        let mut helped = self.thin_together();
        helped |= self.each_place(|gate, place| gate.lower_across(&[place]) || gate.borrow(place));
        self.each_equal(Gate::lower_across) || helped
    }

    fn lower_across(&mut self, places: &[Place]) -> bool {
        let Some(choice) = self.choice(places[0]) else { return false };
        if let Value::Float(v) = choice.value {
            let is_integral = v.fract() == 0.0 && v.abs() < 2f64.powi(53);
            return is_integral
                && across_gaps(v as i128, |to| {
                    let value = Value::Float(to as f64);
                    choice.kind.accepts(&value).then(|| self.replaced(places, |_| Some(value.clone())))
                });
        }
        let is_worth_it = |from: &i128| from.abs() > SIMPLE_MAX || matches!(choice.kind, Kind::Index { .. });
        let Some(from) = distance(&choice).filter(is_worth_it) else { return false };
        across_gaps(from, |to| {
            at(&choice, to)?;
            Some(self.replaced(places, |choice| at(choice, to)))
        })
    }

    /// As in a subtraction by hand: one less, where the next number is as far as it can be.
    fn borrow(&mut self, place: Place) -> bool {
        let next = (place.0, place.1 + 1);
        let (Some(first), Some(second)) = (self.choice(place), self.choice(next)) else { return false };
        let lower = |choice: &Choice| {
            let from = distance(choice).filter(|from| *from != 0)?;
            at(choice, from - from.signum())
        };
        let (Some(less), Some(more)) = (lower(&first), farthest(&second)) else { return false };
        self.is_better([Edit::Value { place, value: less }, Edit::Value { place: next, value: more }])
    }

    fn thin_together(&mut self) -> bool {
        let mut helped = false;
        for step in (0..self.best.len()).rev() {
            let mut at = 0;
            while let Some(row) = self.layout(step).rows.get(at).cloned().filter(|_| !self.is_over()) {
                let mut runs = TOGETHER.take_while(|run| *run <= row.len());
                let is_thinner = runs.any(|run| self.thinned(step, &row, row.len() - run));
                helped |= is_thinner;
                at += usize::from(!is_thinner);
            }
        }
        helped
    }
}
