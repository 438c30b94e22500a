//! Questions and answers: the kinds of choices with their constraints, and values.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What was asked: the kind of a choice and its constraint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Kind {
    /// True with this probability in generation. Below or at 0 always false, at or above 1 always true.
    Boolean {
        /// In `0.0..=1.0` to matter.
        probability: f64,
    },
    /// One of `0..n`.
    Index {
        /// How many alternatives there are; never 0.
        n: u32,
    },
    /// A signed integer in `min..=max`.
    Integer {
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
        /// The value that shrinking goes towards; within the range.
        simplest: i64,
    },
    /// An unsigned integer in `min..=max`.
    Unsigned {
        /// The least value.
        min: u64,
        /// The greatest value.
        max: u64,
        /// The value that shrinking goes towards; within the range.
        simplest: u64,
    },
    /// A float in `min..=max`.
    Float {
        /// The least value; not NaN.
        min: f64,
        /// The greatest value; not NaN.
        max: f64,
        /// NaN is a possible answer.
        nan: bool,
        /// Infinities within the range are possible answers.
        infinite: bool,
    },
    /// A byte string of `min..=max` bytes.
    Bytes {
        /// The least length.
        min: u32,
        /// The greatest length.
        max: u32,
    },
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    /// To [`Kind::Boolean`].
    Boolean(bool),
    /// To [`Kind::Index`].
    Index(u32),
    /// To [`Kind::Integer`].
    Integer(i64),
    /// To [`Kind::Unsigned`].
    Unsigned(u64),
    /// To [`Kind::Float`]. NaN is always the canonical one.
    #[serde(with = "bits")]
    Float(f64),
    /// To [`Kind::Bytes`]; shared, since the same bytes stand in many traces.
    #[serde(with = "shared")]
    Bytes(Arc<[u8]>),
}

/// A float as its bits, since not every float is a number in JSON.
mod bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        value.to_bits().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}

/// Shared bytes as a list.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, to: S) -> Result<S::Ok, S::Error> {
        bytes[..].serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        Vec::deserialize(from).map(Arc::from)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Boolean(a), Value::Boolean(b)) => a == b,
            (Value::Index(a), Value::Index(b)) => a == b,
            (Value::Integer(a), Value::Integer(b)) => a == b,
            (Value::Unsigned(a), Value::Unsigned(b)) => a == b,
            // By bits: 0.0 and -0.0 are two answers, NaN is one.
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

impl Value {
    /// Bytes that it holds beside itself.
    pub fn shared_bytes(&self) -> usize {
        if let Value::Bytes(bytes) = self { bytes.len() } else { 0 }
    }
}

impl fmt::Display for Value {
    /// As a literal: `true`, `-3`, `0.5`, `b"a\x00"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Boolean(v) => write!(f, "{v}"),
            Value::Index(v) => write!(f, "{v}"),
            Value::Integer(v) => write!(f, "{v}"),
            Value::Unsigned(v) => write!(f, "{v}"),
            Value::Float(v) => write!(f, "{v:?}"),
            Value::Bytes(v) => write!(f, "b\"{}\"", v.escape_ascii()),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Boolean { probability } => write!(f, "a boolean with probability {probability}"),
            Kind::Index { n } => write!(f, "an index below {n}"),
            Kind::Integer { min, max, .. } => write!(f, "an integer in {min}..={max}"),
            Kind::Unsigned { min, max, .. } => write!(f, "an unsigned integer in {min}..={max}"),
            Kind::Float { min, max, .. } => write!(f, "a float in {min:?}..={max:?}"),
            Kind::Bytes { min, max } => write!(f, "{min} to {max} bytes"),
        }
    }
}

impl Kind {
    /// The value that shrinking goes towards.
    pub fn simplest(&self) -> Value {
        match *self {
            Kind::Boolean { probability } => Value::Boolean(probability >= 1.0),
            Kind::Index { .. } => Value::Index(0),
            Kind::Integer { simplest, .. } => Value::Integer(simplest),
            Kind::Unsigned { simplest, .. } => Value::Unsigned(simplest),
            Kind::Float { min, max, .. } => Value::Float(0f64.clamp(min, max)),
            Kind::Bytes { min, .. } => Value::Bytes(vec![0; min as usize].into()),
        }
    }

    /// Whether `value` is a possible answer to this question.
    pub fn accepts(&self, value: &Value) -> bool {
        match (*self, value) {
            (Kind::Boolean { probability }, Value::Boolean(v)) => {
                if *v {
                    probability > 0.0
                } else {
                    probability.is_nan() || probability < 1.0
                }
            }
            (Kind::Index { n }, Value::Index(v)) => *v < n,
            (Kind::Integer { min, max, .. }, Value::Integer(v)) => (min..=max).contains(v),
            (Kind::Unsigned { min, max, .. }, Value::Unsigned(v)) => (min..=max).contains(v),
            (Kind::Float { min, max, nan, infinite }, Value::Float(v)) => {
                if v.is_nan() {
                    nan
                } else {
                    (infinite || v.is_finite()) && (min..=max).contains(v)
                }
            }
            (Kind::Bytes { min, max }, Value::Bytes(v)) => (min as usize..=max as usize).contains(&v.len()),
            _ => false,
        }
    }

    /// The answer that stands for a recorded one: itself where it is possible, the nearest possible one of a
    /// number out of range, the beginning of bytes that are too many, else nothing.
    pub fn fit(&self, value: &Value) -> Option<Value> {
        if self.accepts(value) {
            return Some(value.clone());
        }
        match (*self, value) {
            (Kind::Index { n }, Value::Index(_)) => Some(Value::Index(n - 1)),
            (Kind::Integer { min, max, .. }, Value::Integer(v)) => Some(Value::Integer((*v).clamp(min, max))),
            (Kind::Unsigned { min, max, .. }, Value::Unsigned(v)) => {
                Some(Value::Unsigned((*v).clamp(min, max)))
            }
            (Kind::Float { min, max, .. }, Value::Float(v)) if !v.is_nan() => {
                let nearest = Value::Float(v.clamp(min.max(f64::MIN).min(max), max.min(f64::MAX).max(min)));
                self.accepts(&nearest).then_some(nearest)
            }
            (Kind::Bytes { max, .. }, Value::Bytes(v)) if v.len() > max as usize => {
                Some(Value::Bytes(v[..max as usize].into()))
            }
            _ => None,
        }
    }

    /// How far `value` is from the simplest one: 0 is simplest, and smaller is simpler. Byte strings count
    /// by length first, so the order is that of pairs.
    pub fn complexity(&self, value: &Value) -> (u64, u128) {
        match (*self, value) {
            (_, Value::Boolean(v)) => (0, u128::from(*v)),
            (_, Value::Index(v)) => (0, u128::from(*v)),
            (Kind::Integer { simplest, .. }, Value::Integer(v)) => {
                (0, zigzag(i128::from(*v) - i128::from(simplest)))
            }
            (Kind::Unsigned { simplest, .. }, Value::Unsigned(v)) => {
                (0, zigzag(i128::from(*v) - i128::from(simplest)))
            }
            // The simplest may be a fraction, where the range ends at one.
            (_, value @ Value::Float(v)) => {
                (0, if *value == self.simplest() { 0 } else { 1 + float_complexity(*v) })
            }
            (_, Value::Bytes(v)) => {
                let leading = v.iter().take(15).fold(0u128, |n, b| n << 8 | u128::from(*b));
                (v.len() as u64, leading)
            }
            _ => (u64::MAX, u128::MAX),
        }
    }
}

impl Kind {
    /// How many possible answers there are; `None` where they are too many to be counted.
    pub fn alternatives(&self) -> Option<u64> {
        let range = |min: i128, max: i128| u64::try_from(max - min + 1).ok();
        match *self {
            Kind::Boolean { probability } if probability > 0.0 && probability < 1.0 => Some(2),
            Kind::Boolean { .. } => Some(1),
            Kind::Index { n } => Some(n.into()),
            Kind::Integer { min, max, .. } => range(min.into(), max.into()),
            Kind::Unsigned { min, max, .. } => range(min.into(), max.into()),
            // Zero has two signs.
            Kind::Float { min, max, nan, .. } if min == max => {
                Some(1 + u64::from(min == 0.0) + u64::from(nan))
            }
            Kind::Bytes { max: 0, .. } => Some(1),
            Kind::Float { .. } | Kind::Bytes { .. } => None,
        }
    }

    /// The possible answer with this number, from 0, in the order of [`Kind::complexity`]. The number is below
    /// that of [`Kind::alternatives`].
    pub fn nth(&self, number: u64) -> Value {
        match *self {
            Kind::Boolean { probability } => Value::Boolean(number == 1 || probability >= 1.0),
            Kind::Index { .. } => Value::Index(number as u32),
            Kind::Integer { min, max, simplest } => {
                Value::Integer(nth_integer(number, min.into(), max.into(), simplest.into()) as i64)
            }
            Kind::Unsigned { min, max, simplest } => {
                Value::Unsigned(nth_integer(number, min.into(), max.into(), simplest.into()) as u64)
            }
            Kind::Float { min, .. } => Value::Float(match number {
                0 if min == 0.0 => 0.0,
                0 => min,
                1 if min == 0.0 => -0.0,
                _ => f64::NAN,
            }),
            Kind::Bytes { .. } => Value::Bytes(Arc::default()),
        }
    }
}

/// By distance from the simplest, above before below; where one side has ended, the other alone.
fn nth_integer(number: u64, min: i128, max: i128, simplest: i128) -> i128 {
    let number = i128::from(number);
    let (above, below) = (max - simplest, simplest - min);
    let both = above.min(below);
    if number > 2 * both {
        return if above > below { simplest + (number - both) } else { simplest - (number - both) };
    }
    if number % 2 == 1 { simplest + (number + 1) / 2 } else { simplest - number / 2 }
}

/// 0, 1, -1, 2, -2, … as 0, 1, 2, 3, 4, …
fn zigzag(distance: i128) -> u128 {
    if distance > 0 { distance as u128 * 2 - 1 } else { distance.unsigned_abs() * 2 }
}

/// Whole numbers before fractions, small before large, positive before negative; infinities, then NaN, last.
fn float_complexity(v: f64) -> u128 {
    let class: u128 = match v {
        v if v.is_nan() => 3,
        v if v.is_infinite() => 2,
        v if v.fract() != 0.0 => 1,
        _ => 0,
    };
    class << 100 | u128::from(v.abs().to_bits()) << 1 | u128::from(v.is_sign_negative())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(min: i64, max: i64) -> Kind {
        Kind::Integer { min, max, simplest: 0i64.clamp(min, max) }
    }

    #[test]
    fn floats_and_bytes_are_refitted() {
        let float = |min, max| Kind::Float { min, max, nan: false, infinite: false };
        assert_eq!(float(1.5, 9.0).fit(&Value::Float(f64::INFINITY)), Some(Value::Float(9.0)));
        assert_eq!(float(1.5, 9.0).fit(&Value::Float(-3.0)), Some(Value::Float(1.5)));
        assert_eq!(float(1.5, 9.0).fit(&Value::Float(f64::NAN)), None);
        let whole = float(f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(whole.fit(&Value::Float(f64::NEG_INFINITY)), Some(Value::Float(f64::MIN)));
        let bytes = |bytes: &[u8]| Value::Bytes(bytes.into());
        assert_eq!(Kind::Bytes { min: 1, max: 2 }.fit(&bytes(b"abc")), Some(bytes(b"ab")));
        assert_eq!(Kind::Bytes { min: 2, max: 3 }.fit(&bytes(b"a")), None);
    }

    #[test]
    fn a_float_is_simplest_where_its_range_says() {
        let kind = Kind::Float { min: 5.5, max: 10.0, nan: false, infinite: false };
        let mut values = [7.25, 6.0, 10.0, 5.5];
        values.sort_by_key(|v| kind.complexity(&Value::Float(*v)));
        assert_eq!(values, [5.5, 6.0, 10.0, 7.25]);
    }

    #[test]
    fn integers_are_simplest_at_zero_then_one_then_minus_one() {
        let kind = integer(i64::MIN, i64::MAX);
        let mut values = [2, -1, 0, -2, 1, i64::MIN, i64::MAX];
        values.sort_by_key(|v| kind.complexity(&Value::Integer(*v)));
        assert_eq!(values, [0, 1, -1, 2, -2, i64::MAX, i64::MIN]);
    }

    #[test]
    fn alternatives_are_in_the_order_of_complexity() {
        let check = |kind: Kind, expected: &str| {
            let count = kind.alternatives().unwrap();
            let values: Vec<Value> = (0..count).map(|number| kind.nth(number)).collect();
            assert!(values.iter().all(|value| kind.accepts(value)), "{kind:?}");
            assert!(values.is_sorted_by_key(|value| kind.complexity(value)), "{kind:?}");
            let text: Vec<String> = values.iter().map(ToString::to_string).collect();
            assert_eq!(text.join(" "), expected);
        };
        check(Kind::Boolean { probability: 0.5 }, "false true");
        check(Kind::Boolean { probability: 0.0 }, "false");
        check(Kind::Boolean { probability: 1.0 }, "true");
        check(Kind::Index { n: 3 }, "0 1 2");
        check(integer(-2, 5), "0 1 -1 2 -2 3 4 5");
        check(integer(-5, 1), "0 1 -1 -2 -3 -4 -5");
        check(Kind::Integer { min: 3, max: 5, simplest: 5 }, "5 4 3");
        check(Kind::Unsigned { min: u64::MAX - 2, max: u64::MAX, simplest: u64::MAX - 1 }, &{
            format!("{} {} {}", u64::MAX - 1, u64::MAX, u64::MAX - 2)
        });
        check(Kind::Float { min: 0.5, max: 0.5, nan: true, infinite: false }, "0.5 NaN");
        check(Kind::Float { min: 0.0, max: 0.0, nan: false, infinite: false }, "0.0 -0.0");
        check(Kind::Bytes { min: 0, max: 0 }, "b\"\"");
        assert_eq!(integer(i64::MIN, i64::MAX).alternatives(), None);
        assert_eq!(Kind::Bytes { min: 1, max: 1 }.alternatives(), None);
    }
}
