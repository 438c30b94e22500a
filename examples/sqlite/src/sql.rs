//! The grammar: values, conditions and indexes, how they are drawn, written, and what they mean.

use std::fmt;

use serde::{Deserialize, Serialize};
use spelunk_guest::prelude::*;

use crate::model::{Row, field};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Column {
    Id,
    A,
    B,
}

/// In the order in which SQLite sorts them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    /// A letter, so many times.
    Text(char, u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    More,
    AtLeast,
    Is,
    IsNot,
}

/// `a >= 1`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Term {
    column: Column,
    operator: Operator,
    value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    One(Term),
    And(Term, Term),
    Or(Term, Term),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Index {
    pub(crate) is_unique: bool,
    pub(crate) columns: Vec<Column>,
    pub(crate) partial: Option<Term>,
}

/// Few small values, and sometimes a text that needs pages of its own.
pub(crate) fn value(len_max: u16) -> impl Strategy<Value = Value> {
    composite(move || match choose(4) {
        0 => Value::Integer(draw(0..=3)),
        1 => Value::Null,
        2 => Value::Text(draw(sampled_from(['a', 'b'])), draw(1..=2)),
        _ => Value::Text(draw(sampled_from(['a', 'b'])), draw(1..=len_max)),
    })
}

pub(crate) fn term() -> impl Strategy<Value = Term> {
    use Operator::{AtLeast, AtMost, Equal, Is, IsNot, Less, More, NotEqual};
    composite(|| Term {
        column: draw(sampled_from([Column::A, Column::B, Column::Id])),
        operator: draw(sampled_from([Equal, IsNot, Is, NotEqual, Less, AtMost, More, AtLeast])),
        value: draw(value(20)),
    })
}

/// What most partial indexes say.
fn not_null() -> impl Strategy<Value = Term> {
    let columns = || sampled_from([Column::A, Column::B]);
    composite(move || Term { column: draw(columns()), operator: Operator::IsNot, value: Value::Null })
}

pub(crate) fn condition() -> impl Strategy<Value = Condition> {
    composite(|| {
        let first = draw(term());
        match choose(3) {
            0 => Condition::One(first),
            1 => Condition::And(first, draw(term())),
            _ => Condition::Or(first, draw(term())),
        }
    })
}

pub(crate) fn index() -> impl Strategy<Value = Index> {
    composite(|| Index {
        is_unique: draw(weighted(0.3)),
        columns: draw(sampled_from([
            vec![Column::A],
            vec![Column::B],
            vec![Column::A, Column::B],
            vec![Column::B, Column::A],
        ])),
        partial: match choose(4) {
            0 | 1 => None,
            2 => Some(draw(not_null())),
            _ => Some(draw(term())),
        },
    })
}

impl Term {
    /// `None` is SQL's unknown.
    fn truth(&self, id: &Value, row: &Row) -> Option<bool> {
        let (left, right) = (field(self.column, id, row), &self.value);
        match self.operator {
            Operator::Is => return Some(left == right),
            Operator::IsNot => return Some(left != right),
            _ if *left == Value::Null || *right == Value::Null => return None,
            _ => {}
        }
        Some(match self.operator {
            Operator::Equal => left == right,
            Operator::NotEqual => left != right,
            Operator::Less => left < right,
            Operator::AtMost => left <= right,
            Operator::More => left > right,
            _ => left >= right,
        })
    }

    pub(crate) fn holds(&self, id: &Value, row: &Row) -> bool {
        self.truth(id, row) == Some(true)
    }
}

impl Condition {
    /// `WHERE` takes what is true, and for that an unknown part of `AND` and `OR` is as good as false.
    pub(crate) fn holds(&self, id: &Value, row: &Row) -> bool {
        match self {
            Condition::One(term) => term.holds(id, row),
            Condition::And(left, right) => left.holds(id, row) && right.holds(id, row),
            Condition::Or(left, right) => left.holds(id, row) || right.holds(id, row),
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Column::Id => "id",
            Column::A => "a",
            Column::B => "b",
        })
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Integer(number) => write!(f, "{number}"),
            Value::Text(letter, len) => write!(f, "'{}'", letter.to_string().repeat((*len).into())),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.operator {
            Operator::Equal => "=",
            Operator::NotEqual => "<>",
            Operator::Less => "<",
            Operator::AtMost => "<=",
            Operator::More => ">",
            Operator::AtLeast => ">=",
            Operator::Is => "IS",
            Operator::IsNot => "IS NOT",
        };
        write!(f, "{} {operator} {}", self.column, self.value)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::One(term) => write!(f, "{term}"),
            Condition::And(left, right) => write!(f, "{left} AND {right}"),
            Condition::Or(left, right) => write!(f, "{left} OR {right}"),
        }
    }
}
