//! Expressions in which names are bound.

use std::fmt;

#[derive(Clone, PartialEq)]
pub(crate) enum Expression {
    Number(u8),
    /// A name that is not bound is 0.
    Name(char),
    Sum(Box<Expression>, Box<Expression>),
    /// `let name = value in body`
    Let(char, Box<Expression>, Box<Expression>),
}

use Expression::{Let, Name, Number, Sum};

impl Expression {
    pub(crate) fn value(&self, bound: &mut Vec<(char, u32)>) -> u32 {
        match self {
            Number(number) => u32::from(*number),
            Name(name) => bound.iter().rfind(|(other, _)| other == name).map_or(0, |(_, value)| *value),
            Sum(left, right) => left.value(bound).wrapping_add(right.value(bound)),
            Let(name, value, body) => {
                let value = value.value(bound);
                bound.push((*name, value));
                let result = body.value(bound);
                bound.pop();
                result
            }
        }
    }

    /// Without `let`: names are replaced by what they stand for.
    pub(crate) fn inlined(&self) -> Expression {
        match self {
            Number(_) | Name(_) => self.clone(),
            Sum(left, right) => Sum(Box::new(left.inlined()), Box::new(right.inlined())),
            Let(name, value, body) => body.replaced(*name, value).inlined(),
        }
    }

    /// The bug: names in `value` are caught by bindings between here and where it is put.
    fn replaced(&self, name: char, value: &Expression) -> Expression {
        match self {
            Number(_) => self.clone(),
            Name(other) if *other == name => value.clone(),
            Name(_) => self.clone(),
            Sum(left, right) => {
                Sum(Box::new(left.replaced(name, value)), Box::new(right.replaced(name, value)))
            }
            Let(other, inner, body) => {
                let inner = Box::new(inner.replaced(name, value));
                let body = if *other == name { body.clone() } else { Box::new(body.replaced(name, value)) };
                Let(*other, inner, body)
            }
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Number(number) => write!(f, "{number}"),
            Name(name) => write!(f, "{name}"),
            Sum(left, right) => write!(f, "({left:?} + {right:?})"),
            Let(name, value, body) => write!(f, "(let {name} = {value:?} in {body:?})"),
        }
    }
}
