//! Expressions over a state: `u32[0x10] + 1 > total && owner[2].name == "a"`.
//!
//! The operators bind as those of Rust do. A name is that of a part of the state that the guest describes, of a global of
//! WebAssembly, or of a variable of the source.

use std::ops::Range;

use super::value::Value;
use crate::symbols::{Kind, Part, Static};

/// Bytes of memory that an expression looks at.
const MEMORY_MAX: i128 = 64 << 10;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// As it was written.
    pub text: String,
    pub(super) node: Node,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Value(Value),
    /// Bytes: where they begin, and how many there are.
    Memory(usize, Box<Node>, Box<Node>),
    Load(Load, usize, Box<Node>),
    Global(String),
    Named(Named),
    /// A part of the state that the guest describes.
    Described(Named),
    /// Where a variable lies.
    Address(Named),
    Not(Box<Node>),
    Minus(Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
}

/// A name, and what leads from there to a part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// The name.
    pub name: String,
    /// To a part of it.
    pub parts: Vec<Part>,
}

/// A number in memory: bytes, and how they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    bytes: u64,
    of: Of,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Unsigned,
    Signed,
    Float,
}

pub(super) const LOADS: [(&str, Load); 10] = [
    ("u8", Load { bytes: 1, of: Of::Unsigned }),
    ("u16", Load { bytes: 2, of: Of::Unsigned }),
    ("u32", Load { bytes: 4, of: Of::Unsigned }),
    ("u64", Load { bytes: 8, of: Of::Unsigned }),
    ("i8", Load { bytes: 1, of: Of::Signed }),
    ("i16", Load { bytes: 2, of: Of::Signed }),
    ("i32", Load { bytes: 4, of: Of::Signed }),
    ("i64", Load { bytes: 8, of: Of::Signed }),
    ("f32", Load { bytes: 4, of: Of::Float }),
    ("f64", Load { bytes: 8, of: Of::Float }),
];

/// Why an expression has no value in a state.
#[derive(Debug)]
pub enum Lack {
    /// Something of it is not there.
    Absent(String),
    /// The state cannot be looked at.
    Stopped(anyhow::Error),
}

impl From<anyhow::Error> for Lack {
    fn from(error: anyhow::Error) -> Lack {
        Lack::Stopped(error)
    }
}

fn absent<T>(why: String) -> Result<T, Lack> {
    Err(Lack::Absent(why))
}

/// A state, as expressions see it.
pub(super) trait Scope {
    /// Bytes of a memory.
    fn bytes(&mut self, memory: usize, range: Range<u64>) -> Result<Vec<u8>, Lack>;
    /// A global of WebAssembly, by its index or a name.
    fn global(&mut self, name: &str) -> Result<Value, Lack>;
    /// A part of the state that the guest describes.
    fn described(&mut self, named: &Named) -> Result<Value, Lack>;
    /// What has this name.
    fn named(&mut self, named: &Named) -> Result<Value, Lack>;
    /// Where a variable of the source lies.
    fn address(&mut self, named: &Named) -> Result<u64, Lack>;
}

impl Expression {
    /// Its value.
    pub(super) fn evaluate(&self, scope: &mut dyn Scope) -> Result<Value, Lack> {
        self.node.evaluate(scope)
    }
}

/// Reads little-endian bytes.
fn loaded(bytes: &[u8], of: Of) -> Value {
    let mut word = [0; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    let unsigned = i128::from_le_bytes(word);
    match (of, bytes.len()) {
        (Of::Float, 4) => Value::Float(f32::from_bits(unsigned as u32).into()),
        (Of::Float, _) => Value::Float(f64::from_bits(unsigned as u64)),
        (Of::Unsigned, _) => Value::Int(unsigned),
        (Of::Signed, len) => {
            let unused = 128 - 8 * len as u32;
            Value::Int(unsigned << unused >> unused)
        }
    }
}

/// The value of a field of bits in the bytes that it is in, which are nine at most.
fn of_bits(bytes: &[u8], kind: Kind, (first, count): (u32, u32)) -> Value {
    let mut word = [0; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    let above = i128::from_le_bytes(word) << (128 - first - count);
    let unsigned = (above as u128 >> (128 - count)) as i128;
    match kind {
        Kind::Boolean => Value::Bool(unsigned != 0),
        Kind::Signed => Value::Int(above >> (128 - count)),
        _ => Value::Int(unsigned),
    }
}

/// The value of a variable of the source in its bytes.
pub(super) fn of_static(bytes: Vec<u8>, found: &Static) -> Value {
    if let Some(bits) = found.bits {
        return of_bits(&bytes, found.kind, bits);
    }
    match (found.kind, bytes.len()) {
        (Kind::Boolean, 1) if bytes[0] < 2 => Value::Bool(bytes[0] == 1),
        (Kind::Signed, 1..=8) => loaded(&bytes, Of::Signed),
        (Kind::Unsigned | Kind::Boolean, 1..=8) => loaded(&bytes, Of::Unsigned),
        (Kind::Float, 4 | 8) => loaded(&bytes, Of::Float),
        _ => Value::Bytes(bytes),
    }
}

impl Node {
    fn evaluate(&self, scope: &mut dyn Scope) -> Result<Value, Lack> {
        match self {
            Node::Value(value) => Ok(value.clone()),
            Node::Memory(memory, at, len) => {
                let (at, len) = (whole(at, scope)?, whole(len, scope)?);
                if len > MEMORY_MAX {
                    return absent(format!("{len} bytes are more than {MEMORY_MAX}"));
                }
                Ok(Value::Bytes(scope.bytes(*memory, span(at, len)?)?))
            }
            Node::Load(load, memory, at) => {
                let range = span(whole(at, scope)?, load.bytes.into())?;
                Ok(loaded(&scope.bytes(*memory, range)?, load.of))
            }
            Node::Global(name) => scope.global(name),
            Node::Named(named) => scope.named(named),
            Node::Described(named) => scope.described(named),
            Node::Address(named) => Ok(Value::Int(scope.address(named)?.into())),
            Node::Not(inner) => Ok(Value::Bool(!truth(inner, scope)?)),
            Node::Minus(inner) => Node::Value(Value::Int(0)).binary("-", inner, scope),
            Node::Binary(operator, one, other) => one.binary(operator, other, scope),
        }
    }

    fn binary(&self, operator: &str, other: &Node, scope: &mut dyn Scope) -> Result<Value, Lack> {
        match operator {
            "||" => return Ok(Value::Bool(truth(self, scope)? || truth(other, scope)?)),
            "&&" => return Ok(Value::Bool(truth(self, scope)? && truth(other, scope)?)),
            _ => {}
        }
        let (one, other) = (self.evaluate(scope)?, other.evaluate(scope)?);
        let unfit = || format!("`{operator}` does not take {} and {}", one.noun(), other.noun());
        let compared = match operator {
            "==" => one.equals(&other),
            "!=" => one.equals(&other).map(|is_equal| !is_equal),
            "<" => one.order(&other).map(|order| order.is_some_and(|order| order.is_lt())),
            "<=" => one.order(&other).map(|order| order.is_some_and(|order| order.is_le())),
            ">" => one.order(&other).map(|order| order.is_some_and(|order| order.is_gt())),
            ">=" => one.order(&other).map(|order| order.is_some_and(|order| order.is_ge())),
            _ => return calculated(operator, &one, &other).ok_or_else(|| Lack::Absent(unfit()))?,
        };
        compared.map(Value::Bool).ok_or_else(|| Lack::Absent(unfit()))
    }
}

/// The result of arithmetic; nothing where it does not take such values.
fn calculated(operator: &str, one: &Value, other: &Value) -> Option<Result<Value, Lack>> {
    if let (Value::Bool(one), Value::Bool(other)) = (one, other) {
        match operator {
            "&" => return Some(Ok(Value::Bool(one & other))),
            "|" => return Some(Ok(Value::Bool(one | other))),
            _ => {}
        }
    }
    let (one, other) = (one.number()?, other.number()?);
    let (Value::Int(left), Value::Int(right)) = (&one, &other) else {
        let (left, right) = (one.float()?, other.float()?);
        let value = match operator {
            "+" => left + right,
            "-" => left - right,
            "*" => left * right,
            _ => return None,
        };
        return Some(Ok(Value::Float(value)));
    };
    let value = match operator {
        "+" => left.checked_add(*right),
        "-" => left.checked_sub(*right),
        "*" => left.checked_mul(*right),
        "&" => Some(left & right),
        "|" => Some(left | right),
        _ => return None,
    };
    Some(match value {
        Some(value) => Ok(Value::Int(value)),
        None => absent(format!("{left} {operator} {right} has more than 127 bits")),
    })
}

fn truth(node: &Node, scope: &mut dyn Scope) -> Result<bool, Lack> {
    let value = node.evaluate(scope)?;
    value.is_true().ok_or_else(|| Lack::Absent(format!("{} is neither true nor false", value.noun())))
}

fn whole(node: &Node, scope: &mut dyn Scope) -> Result<i128, Lack> {
    match node.evaluate(scope)? {
        Value::Int(value) => Ok(value),
        other => absent(format!("{} is no address and no length", other.noun())),
    }
}

fn span(at: i128, len: i128) -> Result<Range<u64>, Lack> {
    let (start, end) = (u64::try_from(at), at.checked_add(len).map(u64::try_from));
    match (start, end) {
        (Ok(start), Some(Ok(end))) if start <= end => Ok(start..end),
        _ => absent(format!("there is no memory at {at}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_bits_is_read_from_the_bytes_that_it_is_in() {
        let bytes = 0x0012_3fd3_u32.to_le_bytes();
        let of = |kind, bits| of_static(bytes.to_vec(), &Static { kind, bits: Some(bits), ..place() });
        fn place() -> Static {
            Static { name: String::new(), address: 0, bytes: 4, kind: Kind::Other, bits: None }
        }
        assert_eq!(of(Kind::Unsigned, (0, 4)), Value::Int(3));
        assert_eq!(of(Kind::Signed, (4, 8)), Value::Int(-3));
        assert_eq!(of(Kind::Unsigned, (4, 8)), Value::Int(0xfd));
        assert_eq!(of(Kind::Unsigned, (12, 20)), Value::Int(0x123));
        assert_eq!(of(Kind::Boolean, (4, 1)), Value::Bool(true));
        assert_eq!(of(Kind::Boolean, (5, 1)), Value::Bool(false));
    }
}
