//! Values beside the stack pointer that a function begins with.

use std::collections::{BTreeMap, BTreeSet};
use walrus::LocalId;

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Unknown,
    Constant(i32),
    /// The stack pointer that the function begins with, as it was read.
    Entry,
    /// That, or something else.
    MaybeEntry,
    /// So much more than that, computed.
    Frame(i64),
}

impl Value {
    /// It counts beyond the block that it is in.
    pub(super) fn matters(self) -> bool {
        !matches!(self, Value::Unknown | Value::Constant(_))
    }

    pub(super) fn is_entry(self) -> bool {
        self == Value::Entry
    }

    /// The value of the stack pointer once it is set to this.
    pub(super) fn of_pointer(self) -> Value {
        match self {
            Value::Frame(0) => Value::Entry,
            Value::Entry | Value::Frame(_) => self,
            _ => Value::Unknown,
        }
    }

    /// The sum; none if nobody who has room below the stack pointer computes that.
    pub(super) fn plus(self, other: Value) -> Option<Value> {
        match (self, other) {
            (Value::Constant(one), Value::Constant(other)) => Some(Value::Constant(one.wrapping_add(other))),
            (value, Value::Constant(offset)) | (Value::Constant(offset), value) => value.moved(offset.into()),
            (one, other) => (!one.may_be_entry() && !other.may_be_entry()).then_some(Value::Unknown),
        }
    }

    /// As [`plus`](Self::plus), the difference.
    pub(super) fn minus(self, other: Value) -> Option<Value> {
        match (self, other) {
            (Value::Constant(one), Value::Constant(other)) => Some(Value::Constant(one.wrapping_sub(other))),
            (value, Value::Constant(offset)) => value.moved(-i64::from(offset)),
            // Room of a size that is computed.
            (Value::Entry, other) if !other.may_be_entry() => Some(Value::Unknown),
            (one, other) => (!one.may_be_entry() && !other.may_be_entry()).then_some(Value::Unknown),
        }
    }

    fn may_be_entry(self) -> bool {
        matches!(self, Value::Entry | Value::MaybeEntry)
    }

    fn moved(self, by: i64) -> Option<Value> {
        match self {
            Value::Entry if by == 0 => Some(self),
            Value::Entry if by < 0 => Some(Value::Frame(by)),
            Value::Entry | Value::MaybeEntry => None,
            Value::Frame(offset) => {
                let moved = offset + by;
                Some(if moved.unsigned_abs() < 1 << 31 { Value::Frame(moved) } else { Value::Unknown })
            }
            _ => Some(Value::Unknown),
        }
    }

    fn joined(self, other: Value) -> Value {
        match (self, other) {
            (one, other) if one == other => one,
            (one, other) if one.may_be_entry() || other.may_be_entry() => Value::MaybeEntry,
            _ => Value::Unknown,
        }
    }
}

/// What is known somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Env {
    /// Of the stack pointer.
    pub pointer: Value,
    /// Of locals; the others are unknown.
    locals: BTreeMap<LocalId, Value>,
}

impl Env {
    pub(super) fn at_entry() -> Env {
        Env { pointer: Value::Entry, locals: BTreeMap::new() }
    }

    pub(super) fn size(&self) -> usize {
        1 + self.locals.len()
    }

    pub(super) fn get(&self, local: LocalId) -> Value {
        self.locals.get(&local).copied().unwrap_or(Value::Unknown)
    }

    /// Assigns a local; what was known of it before.
    pub(super) fn set(&mut self, local: LocalId, value: Value) -> Value {
        let before = match value {
            Value::Unknown => self.locals.remove(&local),
            value => self.locals.insert(local, value),
        };
        before.unwrap_or(Value::Unknown)
    }

    /// What is known wherever one of both is.
    pub(super) fn joined(&self, other: &Env) -> Env {
        let locals = self.locals.keys().chain(other.locals.keys());
        let joined = locals.map(|local| (*local, self.get(*local).joined(other.get(*local))));
        let pointer = if self.pointer == other.pointer { self.pointer } else { Value::Unknown };
        Env { pointer, locals: joined.filter(|(_, value)| value.matters()).collect() }
    }

    /// Without what does not count in other blocks: that the stack pointer may be in a local always does.
    pub(super) fn filtered(&self, kept: &BTreeSet<LocalId>) -> Env {
        let counts = |(local, value): &(&LocalId, &Value)| {
            value.may_be_entry() || value.matters() && kept.contains(local)
        };
        let locals = self.locals.iter().filter(counts).map(|(local, value)| (*local, *value)).collect();
        Env { pointer: self.pointer, locals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::*;

    #[test]
    fn values_are_followed_downwards() {
        assert_eq!(Entry.minus(Constant(32)), Some(Frame(-32)));
        assert_eq!(Entry.plus(Constant(-32)), Some(Frame(-32)));
        assert_eq!(Constant(8).plus(Frame(-32)), Some(Frame(-24)));
        assert_eq!(Frame(-32).plus(Constant(32)).map(Value::of_pointer), Some(Entry));
        assert_eq!(Entry.minus(Unknown), Some(Unknown));
        assert_eq!(Frame(-32).minus(Unknown), Some(Unknown));
        for upwards in [Entry.plus(Constant(1)), Entry.minus(Constant(-1)), Entry.plus(Unknown)] {
            assert_eq!(upwards, None);
        }
        for lost in [Unknown.minus(Entry), MaybeEntry.minus(Constant(1)), Entry.minus(Entry)] {
            assert_eq!(lost, None);
        }
    }

    #[test]
    fn what_may_be_the_stack_pointer_stays_so() {
        assert_eq!(Entry.joined(Unknown), MaybeEntry);
        assert_eq!(MaybeEntry.joined(Entry), MaybeEntry);
        assert_eq!(Frame(-16).joined(Frame(-32)), Unknown);
        assert_eq!(Frame(-16).joined(Frame(-16)), Frame(-16));
    }
}
