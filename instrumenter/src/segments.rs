//! Makes dropping a segment a change of memory, so that it can be undone.
//!
//! ```wat
//! (data.drop $d)                   =>  (i32.store8 $p offset=DROPPED (i32.const 0) (i32.const 1))
//! (memory.init $d (to) (s) (n))    =>  (memory.init $d (to) (s | (DROPPED && (s | n) != 0 ? -1 : 0)) (n))
//! ```
//!
//! A dropped segment has length 0: reading none of it from its start is still right, anything else is out of
//! its bounds, and so is what begins at -1 (no segment is 4 GiB long). The operator itself traps, with its own
//! message. Segments that are not passive are dropped by instantiation, and stay as they are.

use crate::code::*;
use std::collections::BTreeMap;
use walrus::ir::*;
use walrus::{DataId, ElementId, LocalFunction, ValType};

/// The flag of each segment that may be dropped.
pub(crate) struct Segments {
    pub private: Private,
    pub data: BTreeMap<DataId, u32>,
    pub elements: BTreeMap<ElementId, u32>,
}

impl Segments {
    /// Replaces the operators on these segments in a function.
    pub(crate) fn replace(&self, function: &mut LocalFunction, seqs: &[InstrSeqId], locals: &NewLocals<'_>) {
        if self.data.is_empty() && self.elements.is_empty() {
            return;
        }
        let mut scratch = Scratch::default();
        for &seq in seqs {
            if !function.block(seq).instrs.iter().any(|instr| self.flag(&instr.0).is_some()) {
                continue;
            }
            let old = std::mem::take(&mut function.block_mut(seq).instrs);
            let mut code = Code::with_capacity(old.len());
            for instr in old {
                match (self.flag(&instr.0), &instr.0) {
                    (Some(flag), Instr::DataDrop(_) | Instr::ElemDrop(_)) => {
                        self.private.raise(&mut code, flag)
                    }
                    (Some(flag), _) => {
                        let from = scratch.local(locals, ValType::I32, 0);
                        let count = scratch.local(locals, ValType::I32, 1);
                        self.displace(&mut code, flag, from, count);
                        code.push(instr);
                    }
                    (None, _) => code.push(instr),
                }
            }
            function.block_mut(seq).instrs = code;
        }
    }

    fn flag(&self, instr: &Instr) -> Option<u32> {
        match instr {
            Instr::DataDrop(DataDrop { data }) | Instr::MemoryInit(MemoryInit { data, .. }) => {
                self.data.get(data).copied()
            }
            Instr::ElemDrop(ElemDrop { elem }) | Instr::TableInit(TableInit { elem, .. }) => {
                self.elements.get(elem).copied()
            }
            _ => None,
        }
    }

    /// `from count -- from' count`
    fn displace(&self, code: &mut Code, flag: u32, from: walrus::LocalId, count: walrus::LocalId) {
        set(code, count);
        tee(code, from);
        i32_const(code, 0);
        self.private.load_at(code, Width::Byte, flag);
        get(code, from);
        get(code, count);
        binop(code, BinaryOp::I32Or);
        i32_const(code, 0);
        binop(code, BinaryOp::I32Ne);
        binop(code, BinaryOp::I32And);
        binop(code, BinaryOp::I32Sub);
        binop(code, BinaryOp::I32Or);
        get(code, count);
    }
}
