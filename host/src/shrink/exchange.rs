//! What numbers name gets other names: two numbers change places wherever they stand, and so do the elements of a row that
//! they number.
//!
//! Which of two alike things came to be the first is chance. To lower one name alone makes two things one.

use std::ops::Range;

use super::edit::{Edit, Place};
use super::gate::Gate;
use super::layout::Row;
use super::numbers::{number, shifted};
use crate::choice::{Kind, Value};
use crate::target::Target;

/// The names among which pairs are sought: the first ones that stand in the trace, or the first elements of a row.
const NAMES_MAX: usize = 32;

/// Pairs of elements that are tried at a time, of all rows.
const PAIRS_MAX: usize = 4096;

impl<T: Target> Gate<'_, T> {
    /// Exchanges two names, the simpler of which comes later.
    pub(super) fn exchange_names(&mut self) -> bool {
        let mut helped = false;
        while !self.is_over() && (self.exchanged_numbers() || self.exchanged_rows()) {
            helped = true;
        }
        helped
    }

    /// Whether two numbers changed places: everywhere, or in the answers to questions alike.
    fn exchanged_numbers(&mut self) -> bool {
        let mut names: Vec<(i128, Kind)> = Vec::new();
        for choice in self.places().into_iter().filter_map(|place| self.choice(place)) {
            let name =
                number(&choice).map(|number| (number, choice.kind)).filter(|name| !names.contains(name));
            names.extend(name);
            if names.len() == NAMES_MAX {
                break;
            }
        }
        let places = 0..names.len();
        let pairs = places.flat_map(|late| (0..late).map(move |early| (early, late)));
        let pairs = pairs.map(|(early, late)| (names[early], names[late]));
        pairs.filter(|(early, late)| late.0 < early.0).any(|((a, kind), (b, other))| {
            let alike = (kind == other).then_some(kind);
            self.exchanged((a, b), None, None)
                || alike.is_some_and(|kind| self.exchanged((a, b), Some(kind), None))
        })
    }

    /// Whether two elements of a row changed places, and the numbers by which others mean them.
    fn exchanged_rows(&mut self) -> bool {
        let rows = self.rows();
        let pairs = rows.iter().flat_map(|row| {
            let places = 0..row.1.len().min(NAMES_MAX) as i128;
            places.flat_map(move |late| (0..late).map(move |early| (row, (early, late))))
        });
        pairs.take(PAIRS_MAX).any(|(row, pair)| self.exchanged(pair, None, Some(row)))
    }

    /// Whether the trace with two names exchanged became the best.
    fn exchanged(&mut self, (a, b): (i128, i128), kind: Option<Kind>, row: Option<&Row>) -> bool {
        // To look at all places of many pairs takes long too.
        if self.is_over() {
            return false;
        }
        let mut values = Vec::new();
        for place in self.places() {
            let Some(choice) = self.choice(place) else { return false };
            let other = match number(&choice).filter(|_| kind.is_none_or(|kind| choice.kind == kind)) {
                Some(name) if name == a => shifted(&choice, b - a),
                Some(name) if name == b => shifted(&choice, a - b),
                _ => None,
            };
            values.extend(other.map(|value| (place, value)));
        }
        let elements = row.map(|(step, row)| self.exchanged_elements((*step, row), (a, b), &mut values));
        let values = values.into_iter().map(|(place, value)| Edit::Value { place, value });
        let edits: Vec<Edit> = values.chain(elements).collect();
        self.is_better(edits)
    }

    /// Two elements of a row in each other's place. What changes between them is taken from `values`.
    fn exchanged_elements(
        &self,
        (step, row): (usize, &[Range<usize>]),
        (a, b): (i128, i128),
        values: &mut Vec<(Place, Value)>,
    ) -> Edit {
        let (first, last) = (row[a as usize].clone(), row[b as usize].clone());
        let range = first.start..last.end;
        let mut new = self.drafts[step].values.clone();
        let within = |((of, at), _): &mut (Place, Value)| *of == step && range.contains(at);
        for ((_, at), value) in values.extract_if(.., within) {
            new[at] = value;
        }
        let parts = [last.clone(), first.end..last.start, first].map(|part| &new[part]);
        Edit::Values { step, values: parts.concat(), range }
    }
}

#[cfg(test)]
mod tests {
    use crate::choice::Kind;
    use crate::model::{Model, fail};
    use crate::outcome::Outcome;
    use crate::shrink::tests::{check, draw};

    #[test]
    fn of_things_alike_the_first_has_the_simplest_name() {
        fn put() -> Model<Vec<i64>> {
            Model::new(Vec::new(), &["put", "take"], &[], |keys: &mut Vec<i64>, action, chooser, edge| {
                let key = draw(chooser, Kind::Index { n: 9 });
                edge(keys.len().min(9) as u32);
                if crate::trace::Action::Rule(0) == action {
                    keys.push(key);
                    return Outcome::Pass;
                }
                let is_first = keys.first() == Some(&key) && keys.iter().any(|other| *other != key);
                if is_first { fail("taken") } else { Outcome::Pass }
            })
        }
        check(put, "Rule(0) 0; Rule(0) 1; Rule(1) 0");
    }

    #[test]
    fn elements_that_others_number_come_in_the_simplest_order() {
        // A list of numbers, each of which is the place of another; one of which is its own place fails with one behind it.
        fn places() -> Model<()> {
            Model::new((), &["go"], &[], |(), _, chooser, edge| {
                let mut next = Vec::new();
                for _ in 0..3 {
                    chooser.span_begin((0, 0));
                    let flag = draw(chooser, Kind::Boolean { probability: 0.5 }) == 1;
                    next.push((flag, draw(chooser, Kind::Index { n: 3 }) as usize));
                    chooser.span_end(false);
                }
                edge(next[0].1 as u32);
                let fails = |(flag, place): (bool, usize)| flag && next[place] == (false, place);
                if next.iter().copied().any(fails) { fail("it leads to an end") } else { Outcome::Pass }
            })
        }
        check(places, "Rule(0) false 0 false 0 true 0");
    }
}
