//! The values that functions take and return.

use super::super::component::Value;
use super::{Done, broken};

/// What a function was called with. The types are known to fit.
pub(super) struct Args(std::vec::IntoIter<Value>);

impl Args {
    pub(super) fn new(values: Vec<Value>) -> Args {
        Args(values.into_iter())
    }

    /// One more of them, as `of` reads it.
    fn one<T>(&mut self, of: impl FnOnce(Value) -> Option<T>) -> Done<T> {
        match self.0.next().and_then(of) {
            Some(value) => Ok(value),
            None => broken("a value is not of the type that it has"),
        }
    }

    pub(super) fn number(&mut self) -> Done<u64> {
        self.one(|value| if let Value::Unsigned(number) = value { Some(number) } else { None })
    }

    pub(super) fn text(&mut self) -> Done<String> {
        self.one(|value| if let Value::String(text) = value { Some(text) } else { None })
    }

    pub(super) fn bytes(&mut self) -> Done<Vec<u8>> {
        self.one(|value| if let Value::Bytes(bytes) = value { Some(bytes) } else { None })
    }

    pub(super) fn flags(&mut self) -> Done<u32> {
        self.one(|value| if let Value::Flags(bits) = value { Some(bits) } else { None })
    }

    /// What the resource of a handle is known by.
    pub(super) fn resource(&mut self) -> Done<u32> {
        self.one(resource)
    }

    pub(super) fn resources(&mut self) -> Done<Vec<u32>> {
        self.one(|value| match value {
            Value::List(values) => values.into_iter().map(resource).collect(),
            _ => None,
        })
    }

    /// The case of a variant, and its value.
    pub(super) fn case(&mut self) -> Done<(u32, Option<Box<Value>>)> {
        self.one(|value| if let Value::Variant(case, inner) = value { Some((case, inner)) } else { None })
    }
}

fn resource(value: Value) -> Option<u32> {
    if let Value::Handle(resource) = value { Some(resource) } else { None }
}

pub(super) fn some(value: Value) -> Value {
    Value::Variant(1, Some(Box::new(value)))
}

pub(super) fn none() -> Value {
    Value::Variant(0, None)
}

pub(super) fn ok(value: Option<Value>) -> Value {
    Value::Variant(0, value.map(Box::new))
}

pub(super) fn error(value: Value) -> Value {
    Value::Variant(1, Some(Box::new(value)))
}

const SECOND: u64 = 1_000_000_000;

/// A `datetime`, of nanoseconds.
pub(super) fn datetime(nanoseconds: u64) -> Value {
    Value::Record(vec![Value::Unsigned(nanoseconds / SECOND), Value::Unsigned(nanoseconds % SECOND)])
}

/// Nanoseconds of a `datetime`, the most that there are where they are more.
pub(super) fn nanoseconds(datetime: &Value) -> Option<u64> {
    match datetime {
        Value::Record(fields) => match fields[..] {
            [Value::Unsigned(seconds), Value::Unsigned(rest)] => {
                Some(seconds.saturating_mul(SECOND).saturating_add(rest))
            }
            _ => None,
        },
        _ => None,
    }
}
