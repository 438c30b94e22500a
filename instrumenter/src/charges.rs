//! Has instructions pay for themselves that take long.
//!
//! ```wat
//! (table.fill $t (i) (r) (n))  =>  (i) (r) (n) (local.set $n) PAY 64 + ELEMENTS / 4 (local.get $n) (table.fill $t)
//! (throw $e)                   =>  PAY 16 (throw $e)
//! ```
//!
//! They are rare in ordinary code, and the longest way through it would have to pay for them where it does not go through
//! them at all. An operand that says how many elements there are is the last one in each of them. Of more than there can
//! be none is written, so they are not paid for: the instruction fails as it does in the plain module.

use crate::code::*;
use walrus::ir::*;
use walrus::{LocalFunction, Module, TableId, ValType};

/// What an instruction pays.
#[derive(Clone, Copy)]
struct Charge {
    steps: u32,
    elements: Option<Elements>,
}

/// Elements that an instruction pays for.
#[derive(Clone, Copy)]
struct Elements {
    /// The type of the operand that says how many they are.
    ty: ValType,
    /// The most that there can be.
    max: u64,
    /// How many are paid for with one step, as a power of two.
    step_bits: u32,
}

/// Where the budget is, and which tables have addresses of 64 bits.
pub(crate) struct Charges {
    pub private: Private,
    pub budget: u32,
    pub tables64: Vec<bool>,
}

/// What a `memory.grow` pays: it makes the host change what is mapped.
const GROW_STEPS: u32 = 256;
/// What a `throw` pays.
const THROW_STEPS: u32 = 16;
/// What an instruction pays that writes many elements of a table, beside the elements.
const TABLE_STEPS: u32 = 64;
/// What an array pays that is made or written as a whole, beside the elements.
const ARRAY_STEPS: u32 = 4;
/// More than fit in the memory of a guest.
const ARRAY_ELEMENTS_MAX: u64 = 1 << 32;
/// Elements that all tables of a guest together may have: the host does not let them grow further.
pub const TABLE_ELEMENTS_MAX: u64 = 1 << 22;

impl Charges {
    pub(crate) fn new(module: &Module, private: Private, budget: u32) -> Self {
        let tables64 = module.tables.iter().map(|table| table.table64).collect();
        Self { private, budget, tables64 }
    }

    /// Adds what a function's instructions pay.
    pub(crate) fn add(&self, function: &mut LocalFunction, seqs: &[InstrSeqId], locals: &NewLocals<'_>) {
        let mut scratch = Scratch::default();
        for &seq in seqs {
            if !function.block(seq).instrs.iter().any(|(instr, _)| self.of(instr).is_some()) {
                continue;
            }
            let instrs = std::mem::take(&mut function.block_mut(seq).instrs);
            let mut code = Code::with_capacity(instrs.len() + 16);
            for (instr, location) in instrs {
                if let Some(charge) = self.of(&instr) {
                    self.pay(function, &mut code, charge, &mut scratch, locals);
                }
                code.push((instr, location));
            }
            function.block_mut(seq).instrs = code;
        }
    }

    fn pay(
        &self,
        function: &mut LocalFunction,
        code: &mut Code,
        Charge { steps, elements }: Charge,
        scratch: &mut Scratch,
        locals: &NewLocals<'_>,
    ) {
        let left = scratch.local(locals, ValType::I64, 0);
        let count = elements.map(|elements| (elements, scratch.local(locals, elements.ty, 1)));
        if let Some((_, count)) = count {
            set(code, count);
        }
        self.private.pay(function, code, (self.budget, left), |code| {
            i64_const(code, steps.into());
            let Some((Elements { ty, max, step_bits }, count)) = count else { return };
            let wide = |code: &mut Code| {
                get(code, count);
                if ty == ValType::I32 {
                    unop(code, UnaryOp::I64ExtendUI32);
                }
            };
            wide(code);
            i64_const(code, step_bits.into());
            binop(code, BinaryOp::I64ShrU);
            i64_const(code, 0);
            wide(code);
            i64_const(code, max);
            binop(code, BinaryOp::I64LeU);
            push(code, Select { ty: None });
            binop(code, BinaryOp::I64Add);
        });
        if let Some((_, count)) = count {
            get(code, count);
        }
    }

    fn of(&self, instr: &Instr) -> Option<Charge> {
        let elements = Elements { ty: ValType::I32, max: ARRAY_ELEMENTS_MAX, step_bits: 4 };
        let array = Charge { steps: ARRAY_STEPS, elements: Some(elements) };
        Some(match instr {
            Instr::MemoryGrow(_) => Charge { steps: GROW_STEPS, elements: None },
            Instr::Throw(_) | Instr::ThrowRef(_) => Charge { steps: THROW_STEPS, elements: None },
            Instr::TableGrow(TableGrow { table }) | Instr::TableFill(TableFill { table }) => {
                self.table(&[*table])
            }
            Instr::TableCopy(TableCopy { src, dst }) => self.table(&[*src, *dst]),
            // Segments have no more elements than 32 bits count.
            Instr::TableInit(_) => self.table(&[]),
            Instr::ArrayNewElem(_) | Instr::ArrayInitElem(_) => self.table(&[]),
            Instr::ArrayNew(_)
            | Instr::ArrayNewDefault(_)
            | Instr::ArrayNewData(_)
            | Instr::ArrayInitData(_)
            | Instr::ArrayFill(_)
            | Instr::ArrayCopy(_) => array,
            Instr::ArrayNewFixed(ArrayNewFixed { len, .. }) => {
                Charge { steps: ARRAY_STEPS + len / 16, elements: None }
            }
            _ => return None,
        })
    }

    /// The length is of 64 bits where all of the tables have such addresses.
    fn table(&self, tables: &[TableId]) -> Charge {
        let is_64 = !tables.is_empty() && tables.iter().all(|table| self.tables64[table.index()]);
        let length = if is_64 { ValType::I64 } else { ValType::I32 };
        let elements = Elements { ty: length, max: TABLE_ELEMENTS_MAX, step_bits: 2 };
        Charge { steps: TABLE_STEPS, elements: Some(elements) }
    }
}
