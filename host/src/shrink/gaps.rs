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

#[cfg(test)]
mod tests {
    use crate::choice::Kind;
    use crate::model::{Model, fail};
    use crate::outcome::Outcome;
    use crate::shrink::tests::{check, draw};

    #[test]
    fn a_number_comes_down_to_the_least_of_its_residue() {
        fn third() -> Model<()> {
            Model::new((), &["go"], &[], |(), _, chooser, _| {
                match draw(chooser, Kind::Integer { min: 0, max: 1 << 40, simplest: 0 }) {
                    n if n >= 100 && n % 3 == 0 => fail("third"),
                    _ => Outcome::Pass,
                }
            })
        }
        check(third, "Rule(0) 102");
    }

    #[test]
    fn the_halves_of_a_number_come_down_together() {
        fn halves() -> Model<()> {
            Model::new((), &["go"], &[], |(), _, chooser, _| {
                let high = draw(chooser, Kind::Integer { min: -9, max: 9, simplest: 0 });
                let simplest = if high < 0 { 99 } else { 0 };
                let low = draw(chooser, Kind::Integer { min: 0, max: 99, simplest });
                if 100 * high + low <= -6 { fail("low") } else { Outcome::Pass }
            })
        }
        check(halves, "Rule(0) -1 94");
    }

    #[test]
    fn elements_go_by_fours() {
        fn list() -> Model<()> {
            Model::new((), &["go"], &[], |(), _, chooser, edge| {
                let mut len = 0;
                loop {
                    chooser.span_begin((0, 0));
                    let more = draw(chooser, Kind::Boolean { probability: 0.9 }) == 1;
                    len += usize::from(more);
                    chooser.span_end(false);
                    if !more {
                        break;
                    }
                }
                edge(len.min(9) as u32);
                if len >= 9 && len % 4 == 0 { fail("fours") } else { Outcome::Pass }
            })
        }
        check(list, &format!("Rule(0) {}false", "true ".repeat(12)));
    }
}
