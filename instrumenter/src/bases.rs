//! Knows when the mark of an earlier store covers a later one.
//!
//! Code that fills in a structure stores to the same base at growing offsets:
//!
//! ```wat
//! (i32.store offset=4 (local.get $s) …)      ;; marks the page of $s + 4, and so up to the byte $s + 19
//! (i64.store offset=8 (local.get $s) …)      ;; $s + 8 to $s + 15: nothing to do
//! ```
//!
//! A mark tells of all bytes of a page and of [`FRINGE_BYTES`] more, so of at least as many after the first
//! one stored to. For that the base must be known: the stack is followed through plain instructions, noting
//! which values are those of a local. Anything that may go elsewhere ends what is known.

use walrus::LocalId;
use walrus::MemoryId;
use walrus::ir::{self, *};

/// A mark on a page says that bytes of that page, and up to so many of the next, may have changed.
pub const FRINGE_BYTES: u32 = 15;

#[derive(Default)]
pub(crate) struct Bases {
    /// What is known of the values on the stack, as far as it is known.
    stack: Vec<Value>,
    marks: Vec<Mark>,
    /// Ranges that were checked for errors of the heap.
    checked: Vec<Checked>,
}

/// What is known of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// It is that of a local.
    Local(LocalId),
    /// It is this number.
    Constant(u32),
    Unknown,
}

#[derive(Clone, Copy)]
struct Checked {
    base: LocalId,
    offset: u64,
    bytes: u32,
}

#[derive(Clone, Copy)]
struct Mark {
    memory: MemoryId,
    base: LocalId,
    offset: u64,
}

/// So many marks are remembered.
const MARKS_MAX: usize = 8;

impl Bases {
    /// The local that holds the address of a store that is about to happen.
    pub(crate) fn of_store(&self) -> Option<LocalId> {
        match self.below(1) {
            Value::Local(local) => Some(local),
            _ => None,
        }
    }

    /// What is known of the value below so many others.
    pub(crate) fn below(&self, others: usize) -> Value {
        let at = self.stack.len().checked_sub(others + 1);
        at.map_or(Value::Unknown, |at| self.stack[at])
    }

    /// Whether so many bytes were checked already; if not, it is noted that they are now.
    pub(crate) fn is_checked(&mut self, base: LocalId, offset: u64, bytes: u32) -> bool {
        let holds = |checked: &Checked| {
            checked.base == base
                && checked.offset <= offset
                && offset + u64::from(bytes) <= checked.offset + u64::from(checked.bytes)
        };
        if self.checked.iter().any(holds) {
            return true;
        }
        if self.checked.len() == MARKS_MAX {
            self.checked.remove(0);
        }
        self.checked.push(Checked { base, offset, bytes });
        false
    }

    /// Whether a store of so many bytes needs no mark; if it does, one is noted.
    pub(crate) fn covers(&mut self, memory: MemoryId, base: LocalId, offset: u64, bytes: u32) -> bool {
        let covers = |mark: &Mark| {
            (mark.memory, mark.base) == (memory, base)
                && offset >= mark.offset
                && offset - mark.offset + u64::from(bytes) <= u64::from(FRINGE_BYTES) + 1
        };
        if self.marks.iter().any(covers) {
            return true;
        }
        if self.marks.len() == MARKS_MAX {
            self.marks.remove(0);
        }
        self.marks.push(Mark { memory, base, offset });
        false
    }

    /// Goes past an instruction of the target.
    pub(crate) fn pass(&mut self, instr: &Instr) {
        match instr {
            Instr::LocalGet(LocalGet { local }) => self.stack.push(Value::Local(*local)),
            Instr::Const(Const { value: ir::Value::I32(value) }) => {
                self.stack.push(Value::Constant(*value as u32));
            }
            Instr::LocalSet(LocalSet { local }) => {
                self.stack.pop();
                self.assigned(*local);
            }
            Instr::LocalTee(LocalTee { local }) => {
                self.stack.pop();
                self.assigned(*local);
                self.stack.push(Value::Local(*local));
            }
            other => match effect(other) {
                Some((pops, pushes)) => {
                    self.stack.truncate(self.stack.len().saturating_sub(pops));
                    self.stack.extend(std::iter::repeat_n(Value::Unknown, pushes));
                }
                None => *self = Self::default(),
            },
        }
    }

    fn assigned(&mut self, local: LocalId) {
        for value in &mut self.stack {
            if *value == Value::Local(local) {
                *value = Value::Unknown;
            }
        }
        self.marks.retain(|mark| mark.base != local);
        self.checked.retain(|checked| checked.base != local);
    }
}

/// How many values an instruction takes and gives; none for those that may go elsewhere.
pub(crate) fn effect(instr: &Instr) -> Option<(usize, usize)> {
    Some(match instr {
        Instr::Const(_) | Instr::GlobalGet(_) | Instr::MemorySize(_) | Instr::RefNull(_) => (0, 1),
        Instr::RefFunc(_) | Instr::TableSize(_) => (0, 1),
        Instr::GlobalSet(_) | Instr::Drop(_) => (1, 0),
        Instr::Unop(_) | Instr::Load(_) | Instr::RefIsNull(_) | Instr::TableGet(_) => (1, 1),
        Instr::Binop(_) => (2, 1),
        Instr::Store(_) | Instr::TableSet(_) => (2, 0),
        Instr::Select(_) | Instr::TernOp(_) | Instr::V128Bitselect(_) => (3, 1),
        _ => return None,
    })
}
