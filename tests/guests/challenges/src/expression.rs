//! Sums and quotients of integers.

use std::fmt;

use spelunk_guest::prelude::*;

/// An expression as one would write it down.
#[derive(Clone)]
pub(crate) enum Expression {
    Number(i64),
    Sum(Box<Expression>, Box<Expression>),
    Quotient(Box<Expression>, Box<Expression>),
}

use Expression::{Number, Quotient, Sum};

/// Any expression.
pub(crate) fn expression() -> impl Strategy<Value = Expression> {
    recursive(any().mapped(Number), |operand| {
        (sampled_from([Sum, Quotient]), operand.clone(), operand)
            .mapped(|(operator, left, right)| operator(Box::new(left), Box::new(right)))
    })
}

impl Expression {
    /// A zero stands in it where it divides.
    pub(crate) fn divides_by_literal_zero(&self) -> bool {
        match self {
            Number(_) => false,
            Sum(left, right) => left.divides_by_literal_zero() || right.divides_by_literal_zero(),
            Quotient(left, right) => {
                matches!(**right, Number(0))
                    || left.divides_by_literal_zero()
                    || right.divides_by_literal_zero()
            }
        }
    }

    /// What it amounts to, wrapping around; `None` where that divides by zero.
    pub(crate) fn value(&self) -> Option<i64> {
        Some(match self {
            Number(number) => *number,
            Sum(left, right) => left.value()?.wrapping_add(right.value()?),
            Quotient(left, right) => {
                let (left, right) = (left.value()?, right.value()?);
                if right == 0 {
                    return None;
                }
                left.wrapping_div(right)
            }
        })
    }

    fn fmt_operand(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Number(_) => write!(f, "{self:?}"),
            _ => write!(f, "({self:?})"),
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (left, operator, right) = match self {
            Number(number) => return write!(f, "{number}"),
            Sum(left, right) => (left, '+', right),
            Quotient(left, right) => (left, '/', right),
        };
        left.fmt_operand(f)?;
        write!(f, " {operator} ")?;
        right.fmt_operand(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: i64) -> Box<Expression> {
        Box::new(Number(number))
    }

    #[test]
    fn a_zero_that_is_not_written_divides() {
        let zero = Box::new(Sum(number(0), number(0)));
        let quotient = Quotient(number(0), zero);
        assert_eq!(format!("{quotient:?}"), "0 / (0 + 0)");
        assert!(!quotient.divides_by_literal_zero());
        assert_eq!(quotient.value(), None);
        assert!(Quotient(number(1), number(0)).divides_by_literal_zero());
    }
}
