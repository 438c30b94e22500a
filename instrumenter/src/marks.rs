//! Marks what a store changed.
//!
//! ```wat
//! (i32.store offset=8 (a) (v))  =>  (local.set $a (a)) (local.set $v (v))
//!                                   (i32.store offset=8 (local.get $a) (local.get $v))
//!                                   (i32.store8 $p offset=MAP
//!                                     (i32.shr_u (i32.add (local.get $a) (i32.const 8)) (i32.const 12)) (i32.const 1))
//! (table.set $t (i) (r))        =>  (table.set $t (i) (r)) (i32.store8 $p offset=MARK (i32.const 0) (i32.const 1))
//! ```
//!
//! The mark comes after the store: one that traps leaves none, and one that does not has an address within the
//! memory, hence within the map. Only the page of the first byte is marked; up to 15 bytes of the next page may
//! have changed with it. Where the address is a local's value, that local is used, and stores that another's mark
//! covers need none ([`bases`](crate::bases)).

use crate::bases::Bases;
use crate::code::*;
use crate::heap::Checks;
use std::collections::BTreeMap;
use walrus::ir::*;
use walrus::{FunctionId, LocalFunction, LocalId, MemoryId, TableId, ValType};

/// How a memory's pages are marked.
#[derive(Clone, Copy)]
pub(crate) struct Map {
    /// Where its dirty map begins in private memory.
    pub start: u32,
    pub memory64: bool,
    /// Marks `(address, length)`; there if the module has operators that need it.
    pub range: Option<FunctionId>,
}

pub(crate) struct Marks {
    pub private: Private,
    pub page_bits: u32,
    pub maps: BTreeMap<MemoryId, Map>,
    /// The mark of each table that changes.
    pub tables: BTreeMap<TableId, u32>,
    /// Finds errors of the heap on the way, since both need to know where addresses come from.
    pub checks: Option<Checks>,
}

impl Marks {
    /// Adds marks and checks to the function with this index.
    pub(crate) fn mark(
        &self,
        index: usize,
        function: &mut LocalFunction,
        seqs: &[InstrSeqId],
        locals: &NewLocals<'_>,
    ) {
        let mut scratch = Scratch::default();
        let mut local = |ty, slot| scratch.local(locals, ty, slot);
        let checker = self.checks.as_ref().and_then(|checks| checks.of(index, function));
        for &seq in seqs {
            let instrs = &mut function.block_mut(seq).instrs;
            let writes = instrs.iter().filter(|instr| self.writes(&instr.0)).count();
            let is_checked =
                checker.as_ref().is_some_and(|checker| instrs.iter().any(|instr| checker.concerns(&instr.0)));
            if writes == 0 && !is_checked {
                continue;
            }
            let mut code = Code::with_capacity(instrs.len() + writes * 9);
            let mut bases = Bases::default();
            for mut instr in std::mem::take(instrs) {
                if let Some(checker) = &checker {
                    let next = (&instr.0, &mut instr.1);
                    checker.before(function, &mut code, next, &mut bases, &mut local);
                }
                let after = instr.0.clone();
                self.instr(&mut code, instr, &mut bases, &mut local);
                bases.pass(&after);
            }
            function.block_mut(seq).instrs = code;
        }
    }

    /// Whether something must be marked after an instruction.
    fn writes(&self, instr: &Instr) -> bool {
        match instr {
            Instr::Store(Store { memory, .. })
            | Instr::LoadSimd(LoadSimd { memory, .. })
            | Instr::MemoryFill(MemoryFill { memory })
            | Instr::MemoryInit(MemoryInit { memory, .. })
            | Instr::MemoryCopy(MemoryCopy { dst: memory, .. }) => self.maps.contains_key(memory),
            Instr::TableSet(_)
            | Instr::TableFill(_)
            | Instr::TableGrow(_)
            | Instr::TableInit(_)
            | Instr::TableCopy(_) => true,
            _ => false,
        }
    }

    fn instr(&self, code: &mut Code, instr: (Instr, InstrLocId), bases: &mut Bases, local: Locals) {
        match &instr.0 {
            Instr::Store(Store { memory, kind, arg }) => {
                let (memory, offset, bytes) = (*memory, arg.offset, kind.width());
                match bases.of_store() {
                    Some(base) if self.maps.contains_key(&memory) => {
                        code.push(instr);
                        if !bases.covers(memory, base, offset, bytes) {
                            self.mark_store(code, memory, base, offset);
                        }
                    }
                    _ => {
                        let ty = stored_type(*kind);
                        self.store(code, memory, offset, ty, instr, local);
                    }
                }
            }
            Instr::LoadSimd(LoadSimd { memory, kind, arg }) if is_store(*kind) => {
                self.store(code, *memory, arg.offset, ValType::V128, instr, local);
            }
            Instr::MemoryFill(MemoryFill { memory }) => {
                let length = self.address_type(*memory);
                self.bulk(code, *memory, [ValType::I32, length], instr, local);
            }
            Instr::MemoryInit(MemoryInit { memory, .. }) => {
                self.bulk(code, *memory, [ValType::I32, ValType::I32], instr, local);
            }
            Instr::MemoryCopy(MemoryCopy { src, dst }) => {
                let (from, to) = (self.address_type(*src), self.address_type(*dst));
                let length = if from == to { to } else { ValType::I32 };
                self.bulk(code, *dst, [from, length], instr, local);
            }
            Instr::TableSet(TableSet { table })
            | Instr::TableFill(TableFill { table })
            | Instr::TableGrow(TableGrow { table })
            | Instr::TableInit(TableInit { table, .. })
            | Instr::TableCopy(TableCopy { dst: table, .. }) => {
                let mark = self.tables.get(table).copied();
                code.push(instr);
                mark.into_iter().for_each(|mark| self.private.raise(code, mark));
            }
            _ => code.push(instr),
        }
    }

    /// The type of a memory's addresses; `i32` for private memory, which has no map.
    fn address_type(&self, memory: MemoryId) -> ValType {
        match self.maps.get(&memory) {
            Some(Map { memory64: true, .. }) => ValType::I64,
            _ => ValType::I32,
        }
    }

    /// `address value --`
    fn store(
        &self,
        code: &mut Code,
        memory: MemoryId,
        offset: u64,
        ty: ValType,
        instr: (Instr, InstrLocId),
        local: Locals,
    ) {
        if !self.maps.contains_key(&memory) {
            code.push(instr);
            return;
        }
        let (address, value) = (local(self.address_type(memory), 0), local(ty, 1));
        set(code, value);
        tee(code, address);
        get(code, value);
        code.push(instr);
        self.mark_store(code, memory, address, offset);
    }

    /// Marks the page of `address + offset`.
    fn mark_store(&self, code: &mut Code, memory: MemoryId, address: LocalId, offset: u64) {
        let map = &self.maps[&memory];
        get(code, address);
        page(code, map.memory64, offset, self.page_bits);
        i32_const(code, 1);
        self.private.store(code, Width::Byte, map.start);
    }

    /// `address second length --`, where the types of the last two are given.
    fn bulk(
        &self,
        code: &mut Code,
        memory: MemoryId,
        [second, length]: [ValType; 2],
        instr: (Instr, InstrLocId),
        local: Locals,
    ) {
        let Some(map) = self.maps.get(&memory) else {
            code.push(instr);
            return;
        };
        let address = self.address_type(memory);
        let [to, from, count] = [local(address, 0), local(second, 1), local(length, 2)];
        set(code, count);
        set(code, from);
        tee(code, to);
        get(code, from);
        get(code, count);
        code.push(instr);
        get(code, to);
        get(code, count);
        if (address, length) == (ValType::I64, ValType::I32) {
            unop(code, UnaryOp::I64ExtendUI32);
        }
        let func = map.range.expect("the survey found this operator");
        push(code, Call { func });
    }
}

/// Gives a scratch local of a type.
type Locals<'a> = &'a mut dyn FnMut(ValType, u32) -> LocalId;

/// `address -- page`: the page that `address + offset` is on.
pub(crate) fn page(code: &mut Code, memory64: bool, offset: u64, bits: u32) {
    match memory64 {
        false => {
            if offset != 0 {
                i32_const(code, offset as u32);
                binop(code, BinaryOp::I32Add);
            }
            i32_const(code, bits);
            binop(code, BinaryOp::I32ShrU);
        }
        true => {
            if offset != 0 {
                i64_const(code, offset);
                binop(code, BinaryOp::I64Add);
            }
            i64_const(code, bits.into());
            binop(code, BinaryOp::I64ShrU);
            unop(code, UnaryOp::I32WrapI64);
        }
    }
}

pub(crate) fn stored_type(kind: StoreKind) -> ValType {
    match kind {
        StoreKind::I32 { .. } | StoreKind::I32_8 { .. } | StoreKind::I32_16 { .. } => ValType::I32,
        StoreKind::F32 => ValType::F32,
        StoreKind::F64 => ValType::F64,
        StoreKind::V128 => ValType::V128,
        StoreKind::I64 { .. }
        | StoreKind::I64_8 { .. }
        | StoreKind::I64_16 { .. }
        | StoreKind::I64_32 { .. } => ValType::I64,
    }
}

fn is_store(kind: LoadSimdKind) -> bool {
    matches!(
        kind,
        LoadSimdKind::V128Store8Lane(_)
            | LoadSimdKind::V128Store16Lane(_)
            | LoadSimdKind::V128Store32Lane(_)
            | LoadSimdKind::V128Store64Lane(_)
    )
}
