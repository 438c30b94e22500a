//! The numbers that a step drew, to find the choice that a number comes from.

use std::collections::BTreeMap;

use crate::choice::{Choice, Value};

/// Choices that are found by one number.
const SAME_MAX: usize = 16;

/// Choices of numbers, by what is left of them in a number of 4 bytes.
pub(super) struct Drawn<'c> {
    choices: &'c [Choice],
    /// Only what is found by a key is asked, and in the order of the choices.
    integers: BTreeMap<u32, Vec<usize>>,
    floats: BTreeMap<u32, Vec<usize>>,
}

impl<'c> Drawn<'c> {
    pub(super) fn of(choices: &'c [Choice]) -> Drawn<'c> {
        let mut drawn = Drawn { choices, integers: BTreeMap::new(), floats: BTreeMap::new() };
        for (at, choice) in choices.iter().enumerate() {
            let (map, key) = match (integer_of(&choice.value), &choice.value) {
                (Some(integer), _) => (&mut drawn.integers, integer as u32),
                (_, Value::Float(float)) => (&mut drawn.floats, (*float as f32).to_bits()),
                _ => continue,
            };
            let same = map.entry(key).or_default();
            if same.len() < SAME_MAX {
                same.push(at);
            }
        }
        drawn
    }

    /// The choices that may be this integer, each with its index and what was drawn.
    pub(super) fn integers(&self, value: u64) -> impl Iterator<Item = (usize, &'c Choice, u64)> {
        let found = self.integers.get(&(value as u32)).into_iter().flatten();
        found.filter_map(|at| Some((*at, &self.choices[*at], integer_of(&self.choices[*at].value)?)))
    }

    /// The choices that may be this float.
    pub(super) fn floats(&self, value: f64) -> impl Iterator<Item = (usize, &'c Choice)> {
        let found = self.floats.get(&(value as f32).to_bits()).into_iter().flatten();
        found.map(|at| (*at, &self.choices[*at]))
    }
}

fn integer_of(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(value) => Some(*value as u64),
        Value::Unsigned(value) => Some(*value),
        Value::Index(value) => Some((*value).into()),
        _ => None,
    }
}
