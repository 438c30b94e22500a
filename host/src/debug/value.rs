//! What an expression comes to.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Value as Json, json};

use crate::machine::GlobalValue;
use crate::text;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// A floating-point number.
    Float(f64),
    /// Bytes of memory, or of a value that has parts.
    Bytes(Vec<u8>),
    /// What the guest says.
    Text(String),
}

impl Value {
    /// What the guest says, as what it looks like.
    pub(super) fn read(text: &str) -> Value {
        if let "true" | "false" = text {
            return Value::Bool(text == "true");
        }
        if let Ok(number) = text.parse() {
            return Value::Int(number);
        }
        let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        match text.parse().ok().filter(|_| is_number) {
            Some(number) => Value::Float(number),
            None => Value::Text(text.to_string()),
        }
    }

    /// What a global holds; none of a function.
    pub(super) fn of_global(value: GlobalValue) -> Option<Value> {
        Some(match value {
            GlobalValue::I32(value) => Value::Int(value.into()),
            GlobalValue::I64(value) => Value::Int(value.into()),
            GlobalValue::F32(bits) => Value::Float(f32::from_bits(bits).into()),
            GlobalValue::F64(bits) => Value::Float(f64::from_bits(bits)),
            GlobalValue::V128(bits) => Value::Bytes(bits.to_le_bytes().to_vec()),
            GlobalValue::Func(None) => Value::Text("null".to_string()),
            GlobalValue::Func(Some(_)) => Value::Text("a function".to_string()),
            GlobalValue::Opaque => return None,
        })
    }

    /// Whether it counts as true; none of what is neither.
    pub(super) fn is_true(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            Value::Int(value) => Some(*value != 0),
            Value::Float(value) => Some(*value != 0.0),
            Value::Bytes(_) | Value::Text(_) => None,
        }
    }

    /// As a number, which truth values are too.
    pub(super) fn number(&self) -> Option<Value> {
        match self {
            Value::Bool(value) => Some(Value::Int((*value).into())),
            Value::Int(_) | Value::Float(_) => Some(self.clone()),
            Value::Bytes(_) | Value::Text(_) => None,
        }
    }

    /// Whether two are equal; none of values of different kinds. A text equals what it is quoted.
    pub(super) fn equals(&self, other: &Value) -> Option<bool> {
        match (self, other) {
            (Value::Text(one), Value::Text(other)) => {
                Some(one == other || *one == format!("{other:?}") || *other == format!("{one:?}"))
            }
            (Value::Bytes(one), Value::Bytes(other)) => Some(one == other),
            _ => match (self.number()?, other.number()?) {
                (Value::Int(one), Value::Int(other)) => Some(one == other),
                (one, other) => Some(one.float()? == other.float()?),
            },
        }
    }

    /// The order of two numbers; `Some(None)` where one of them is none.
    pub(super) fn order(&self, other: &Value) -> Option<Option<Ordering>> {
        match (self.number()?, other.number()?) {
            (Value::Int(one), Value::Int(other)) => Some(Some(one.cmp(&other))),
            (one, other) => Some(one.float()?.partial_cmp(&other.float()?)),
        }
    }

    pub(super) fn float(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// What kind of value it is, in a message.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Value::Bool(_) => "a truth value",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a floating-point number",
            Value::Bytes(_) => "bytes",
            Value::Text(_) => "text",
        }
    }

    /// As JSON: bytes in hexadecimal, and numbers that JSON has no room for as text.
    pub(super) fn json(&self) -> Json {
        match self {
            Value::Bool(value) => json!(value),
            Value::Int(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => json!(value),
                (_, Ok(value)) => json!(value),
                _ => json!(value.to_string()),
            },
            Value::Float(value) if value.is_finite() => json!(value),
            Value::Float(_) | Value::Bytes(_) => json!(self.to_string()),
            Value::Text(text) => json!(text),
        }
    }
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Value {
    /// As a part of one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => value.fmt(f),
            Value::Int(value) => value.fmt(f),
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Bytes(bytes) => f.write_str(&hex(bytes)),
            Value::Text(value) => f.write_str(&text::line(value)),
        }
    }
}
