//! What instructions take, so that the budget bounds time and not turns of loops alone.
//!
//! A unit is about what one simple instruction takes, a third of a nanosecond. Of most instructions what they take is
//! known beforehand, and belongs to the way through the code that is paid for at loops and entries: for nothing where
//! that is short. An instruction that takes long and that few ways need to go through, or that takes as long as an
//! operand says, pays itself ([`charges`](crate::charges)).
//!
//! The figures are what instructions took on an x86-64 machine, in the order of magnitude. They decide where a guest that
//! does not end is stopped, so they do not change without need.

use walrus::ir::*;

/// Units in a step, which is the least that a turn of a loop pays.
const STEP: u64 = 256;
/// What a function takes at most whose entries are not counted, unless it has calls and may be called from several places.
pub(crate) const UNCOUNTED_MAX: u64 = 2048;

const MEMORY: u64 = 8;
const FLOAT: u64 = 8;
const DIVISION: u64 = 16;
const DIVISION_LONG: u64 = 32;
const CALL: u64 = 16;
pub(crate) const HOST_CALL: u64 = 64;

/// The steps that so much work counts as, at least one.
pub(crate) fn steps(work: u64) -> u32 {
    u32::try_from(1 + work / STEP).unwrap_or(u32::MAX)
}

/// What an instruction takes in units, without what it calls.
pub(crate) fn of(instr: &Instr) -> u64 {
    match instr {
        Instr::Block(_)
        | Instr::Loop(_)
        | Instr::Drop(_)
        | Instr::Const(_)
        | Instr::LocalGet(_)
        | Instr::RefNull(_) => 0,
        Instr::Binop(Binop { op }) => binary(*op),
        Instr::Unop(Unop { op }) => unary(*op),
        Instr::TernOp(_) => 4 * FLOAT,
        Instr::Load(_) | Instr::Store(_) | Instr::LoadSimd(_) => MEMORY,
        Instr::TableGet(_) | Instr::TableSet(_) => 2 * MEMORY,
        Instr::Call(_) | Instr::ReturnCall(_) => CALL,
        Instr::CallIndirect(_)
        | Instr::ReturnCallIndirect(_)
        | Instr::CallRef(_)
        | Instr::ReturnCallRef(_)
        | Instr::RefTest(_)
        | Instr::RefCast(_)
        | Instr::BrOnCast(_)
        | Instr::BrOnCastFail(_) => 2 * CALL,
        Instr::StructGet(_)
        | Instr::StructGetS(_)
        | Instr::StructGetU(_)
        | Instr::StructSet(_)
        | Instr::ArrayGet(_)
        | Instr::ArrayGetS(_)
        | Instr::ArrayGetU(_)
        | Instr::ArraySet(_) => 2 * MEMORY,
        Instr::MemoryFill(_)
        | Instr::MemoryCopy(_)
        | Instr::MemoryInit(_)
        | Instr::DataDrop(_)
        | Instr::ElemDrop(_)
        | Instr::RefFunc(_) => HOST_CALL,
        Instr::StructNew(_) | Instr::StructNewDefault(_) => 4 * HOST_CALL,
        _ => 1,
    }
}

fn binary(op: BinaryOp) -> u64 {
    use BinaryOp::*;
    match op {
        I32DivS | I32DivU | I32RemS | I32RemU => DIVISION,
        I64DivS | I64DivU | I64RemS | I64RemU | F32Div | F64Div | F32x4Div | F64x2Div => DIVISION_LONG,
        I32Mul | I64Mul => 3,
        F32Add | F32Sub | F32Mul | F64Add | F64Sub | F64Mul | F32x4Add | F32x4Sub | F32x4Mul | F64x2Add
        | F64x2Sub | F64x2Mul => FLOAT,
        F32Min | F32Max | F64Min | F64Max | F32x4Min | F32x4Max | F64x2Min | F64x2Max => 2 * FLOAT,
        I64x2Mul | I32x4Mul | I8x16Shl | I8x16ShrS | I8x16ShrU | I64x2ShrS | I16x8Q15MulrSatS
        | I32x4DotI16x8S => FLOAT,
        _ => 1,
    }
}

fn unary(op: UnaryOp) -> u64 {
    use UnaryOp::*;
    match op {
        F32Sqrt | F64Sqrt | F32x4Sqrt | F64x2Sqrt => DIVISION_LONG,
        F32Ceil | F32Floor | F32Trunc | F32Nearest | F64Ceil | F64Floor | F64Trunc | F64Nearest
        | F32x4Ceil | F32x4Floor | F32x4Trunc | F32x4Nearest | F64x2Ceil | F64x2Floor | F64x2Trunc
        | F64x2Nearest | F32DemoteF64 | F64PromoteF32 | F32x4DemoteF64x2Zero | F64x2PromoteLowF32x4
        | I8x16Popcnt => FLOAT,
        I32TruncSF32 | I32TruncUF32 | I32TruncSF64 | I32TruncUF64 | I64TruncSF32 | I64TruncUF32
        | I64TruncSF64 | I64TruncUF64 | I32TruncSSatF32 | I32TruncUSatF32 | I32TruncSSatF64
        | I32TruncUSatF64 | I64TruncSSatF32 | I64TruncUSatF32 | I64TruncSSatF64 | I64TruncUSatF64
        | F32ConvertSI32 | F32ConvertUI32 | F32ConvertSI64 | F32ConvertUI64 | F64ConvertSI32
        | F64ConvertUI32 | F64ConvertSI64 | F64ConvertUI64 => FLOAT,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_the_least() {
        assert_eq!([0, 255, 256, 30_000 * DIVISION].map(steps), [1, 1, 2, 1876]);
        assert_eq!(steps(u64::MAX), u32::MAX);
    }
}
