//! Values of WIT, as the host has them.

/// A value of a type that whoever has it knows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    /// By its bits, of which those of a NaN are canonical.
    F32(u32),
    F64(u64),
    Char(char),
    String(String),
    /// A list of `u8`.
    Bytes(Vec<u8>),
    List(Vec<Value>),
    /// Fields, of a record or a tuple.
    Record(Vec<Value>),
    /// The case, and what it has.
    Variant(u32, Option<Box<Value>>),
    /// A bit for each.
    Flags(u32),
    /// Of what exports take and return, the handle that the host has; of what imports do, what the host knows the resource by.
    Handle(u32),
}

impl Value {
    pub(crate) fn text(text: impl Into<String>) -> Value {
        Value::String(text.into())
    }
}

/// The bits of an f32, those of a NaN made canonical.
pub(super) fn canonical32(bits: u32) -> u32 {
    if f32::from_bits(bits).is_nan() { 0x7fc0_0000 } else { bits }
}

/// The bits of an f64, those of a NaN made canonical.
pub(super) fn canonical64(bits: u64) -> u64 {
    if f64::from_bits(bits).is_nan() { 0x7ff8_0000_0000_0000 } else { bits }
}
