//! Has instructions pay for themselves that take long.
//!
//! ```wat
//! (table.fill $t (i) (r) (n))  =>  (i) (r) (n) (local.set $n) PAY 64 + $n / 4 (local.get $n) (table.fill $t)
//! (throw $e)                   =>  PAY 16 (throw $e)
//! ```
//!
//! They are rare in ordinary code, and the longest way through it would have to pay for them where it does not go through
//! them at all. An operand that says how many elements there are is the last one in each of them.

use crate::code::*;
use walrus::ir::*;
use walrus::{LocalFunction, Module, TableId, ValType};

/// What an instruction pays.
#[derive(Clone, Copy)]
struct Charge {
    steps: u32,
    /// Elements for a step, as a power of two, and the type of the operand that says how many there are.
    elements: Option<(u32, ValType)>,
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
        let count = elements.map(|(bits, ty)| (bits, ty, scratch.local(locals, ty, 1)));
        if let Some((_, _, count)) = count {
            set(code, count);
        }
        self.private.pay(function, code, (self.budget, left), |code| {
            i64_const(code, steps.into());
            let Some((bits, ty, count)) = count else { return };
            get(code, count);
            if ty == ValType::I32 {
                unop(code, UnaryOp::I64ExtendUI32);
            }
            i64_const(code, bits.into());
            binop(code, BinaryOp::I64ShrU);
            // More elements than 32 bits count are nowhere, and the budget must not overflow.
            i64_const(code, u32::MAX.into());
            binop(code, BinaryOp::I64And);
            binop(code, BinaryOp::I64Add);
        });
        if let Some((_, _, count)) = count {
            get(code, count);
        }
    }

    fn of(&self, instr: &Instr) -> Option<Charge> {
        let array = |bits| Charge { steps: ARRAY_STEPS, elements: Some((bits, ValType::I32)) };
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
            | Instr::ArrayCopy(_) => array(4),
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
        Charge { steps: TABLE_STEPS, elements: Some((2, length)) }
    }
}
