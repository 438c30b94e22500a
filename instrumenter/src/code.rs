//! Small pieces of code, and the private memory they touch.
//!
//! Every access to private memory has a constant address: `i32.const 0` with the address as the memory
//! argument's offset. Engines fold that into one machine operand.

use std::sync::{Mutex, PoisonError};
use walrus::ir::*;
use walrus::{LocalFunction, LocalId, MemoryId, ModuleLocals, ModuleTypes, ValType};

/// Instructions with their source locations, as walrus keeps them.
pub(crate) type Code = Vec<(Instr, InstrLocId)>;

/// Appends an instruction that stems from us and not from the target.
pub(crate) fn push(code: &mut Code, instr: impl Into<Instr>) {
    code.push((instr.into(), InstrLocId::default()));
}

pub(crate) fn get(code: &mut Code, local: LocalId) {
    push(code, LocalGet { local });
}

pub(crate) fn set(code: &mut Code, local: LocalId) {
    push(code, LocalSet { local });
}

pub(crate) fn tee(code: &mut Code, local: LocalId) {
    push(code, LocalTee { local });
}

pub(crate) fn i32_const(code: &mut Code, value: u32) {
    push(code, Const { value: Value::I32(value as i32) });
}

pub(crate) fn i64_const(code: &mut Code, value: u64) {
    push(code, Const { value: Value::I64(value as i64) });
}

pub(crate) fn binop(code: &mut Code, op: BinaryOp) {
    push(code, Binop { op });
}

pub(crate) fn unop(code: &mut Code, op: UnaryOp) {
    push(code, Unop { op });
}

/// The memory that only the instrumentation can reach.
#[derive(Clone, Copy)]
pub(crate) struct Private(pub MemoryId);

/// The width of an access to private memory.
#[derive(Clone, Copy)]
pub(crate) enum Width {
    Byte,
    Half,
    Word,
    Long,
}

impl Private {
    /// `address -- value`, from `address + offset`.
    pub(crate) fn load(self, code: &mut Code, width: Width, offset: u32) {
        let zero = ExtendedLoad::ZeroExtend;
        let (kind, align) = match width {
            Width::Byte => (LoadKind::I32_8 { kind: zero }, 1),
            Width::Half => (LoadKind::I32_16 { kind: zero }, 2),
            Width::Word => (LoadKind::I32 { atomic: false }, 4),
            Width::Long => (LoadKind::I64 { atomic: false }, 8),
        };
        push(code, Load { memory: self.0, kind, arg: MemArg { align, offset: offset.into() } });
    }

    /// `address value --`, to `address + offset`.
    pub(crate) fn store(self, code: &mut Code, width: Width, offset: u32) {
        let (kind, align) = match width {
            Width::Byte => (StoreKind::I32_8 { atomic: false }, 1),
            Width::Half => (StoreKind::I32_16 { atomic: false }, 2),
            Width::Word => (StoreKind::I32 { atomic: false }, 4),
            Width::Long => (StoreKind::I64 { atomic: false }, 8),
        };
        push(code, Store { memory: self.0, kind, arg: MemArg { align, offset: offset.into() } });
    }

    /// `-- value`
    pub(crate) fn load_at(self, code: &mut Code, width: Width, address: u32) {
        i32_const(code, 0);
        self.load(code, width, address);
    }

    /// Sets the byte at `address` to 1.
    pub(crate) fn raise(self, code: &mut Code, address: u32) {
        i32_const(code, 0);
        i32_const(code, 1);
        self.store(code, Width::Byte, address);
    }

    /// Takes steps from the budget, and traps where that is used up. `steps` pushes how many, an `i64`; `scratch` is an
    /// `i64` too.
    ///
    /// ```wat
    /// (i64.store $p offset=BUDGET (i32.const 0)
    ///   (local.tee $t (i64.sub (i64.load $p offset=BUDGET (i32.const 0)) STEPS)))
    /// (if (i64.lt_s (local.get $t) (i64.const 0)) (then (unreachable)))
    /// ```
    pub(crate) fn pay(
        self,
        function: &mut LocalFunction,
        code: &mut Code,
        (budget, scratch): (u32, LocalId),
        steps: impl FnOnce(&mut Code),
    ) {
        i32_const(code, 0);
        self.load_at(code, Width::Long, budget);
        steps(code);
        binop(code, BinaryOp::I64Sub);
        tee(code, scratch);
        self.store(code, Width::Long, budget);
        get(code, scratch);
        i64_const(code, 0);
        binop(code, BinaryOp::I64LtS);
        let mut trap = Code::with_capacity(1);
        push(&mut trap, Unreachable {});
        if_then(function, code, trap);
    }
}

/// The locals of a module, to which several threads add at once. Which numbers they get depends on who comes first, but
/// not their order in one function, and nothing else is emitted.
pub(crate) struct NewLocals<'a>(Mutex<&'a mut ModuleLocals>);

impl<'a> NewLocals<'a> {
    pub(crate) fn new(locals: &'a mut ModuleLocals) -> Self {
        Self(Mutex::new(locals))
    }

    pub(crate) fn add(&self, ty: ValType) -> LocalId {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(ty)
    }
}

/// The locals that a function gains: one for each type and use, shared by every place that needs one.
#[derive(Default)]
pub(crate) struct Scratch(Vec<(ValType, u32, LocalId)>);

impl Scratch {
    /// The local of this type for this use (`slot` tells apart those that live at once).
    pub(crate) fn local(&mut self, locals: &NewLocals<'_>, ty: ValType, slot: u32) -> LocalId {
        if let Some(found) = self.0.iter().find(|known| (known.0, known.1) == (ty, slot)) {
            return found.2;
        }
        let local = locals.add(ty);
        self.0.push((ty, slot, local));
        local
    }
}

/// A new instruction sequence of this function with this code.
pub(crate) fn sequence(function: &mut LocalFunction, ty: impl Into<InstrSeqType>, code: Code) -> InstrSeqId {
    let mut sequence = function.builder_mut().dangling_instr_seq(ty);
    *sequence.instrs_mut() = code;
    sequence.id()
}

/// Appends `if then end` without operands.
pub(crate) fn if_then(function: &mut LocalFunction, code: &mut Code, then: Code) {
    let consequent = sequence(function, None, then);
    let alternative = sequence(function, None, Code::new());
    push(code, IfElse { consequent, alternative });
}

/// What a branch to a label carries: the parameters of a loop, the results of anything else.
pub(crate) fn label_types<'a>(
    types: &'a ModuleTypes,
    function: &LocalFunction,
    label: InstrSeqId,
    is_loop: bool,
) -> std::borrow::Cow<'a, [ValType]> {
    match (function.block(label).ty, is_loop) {
        (InstrSeqType::Simple(None), _) | (InstrSeqType::Simple(Some(_)), true) => (&[][..]).into(),
        (InstrSeqType::Simple(Some(ty)), false) => vec![ty].into(),
        (InstrSeqType::MultiValue(ty), true) => types.params(ty).into(),
        (InstrSeqType::MultiValue(ty), false) => types.results(ty).into(),
    }
}

/// The type of a block that takes and gives this, which was made to exist before.
pub(crate) fn block_type(types: &ModuleTypes, takes: &[ValType], gives: &[ValType]) -> InstrSeqType {
    InstrSeqType::existing(types, takes, gives).expect("types are declared before code is rewritten")
}

/// What a sequence takes.
pub(crate) fn parameter_types(types: &ModuleTypes, ty: InstrSeqType) -> Vec<ValType> {
    match ty {
        InstrSeqType::Simple(_) => Vec::new(),
        InstrSeqType::MultiValue(ty) => types.params(ty).to_vec(),
    }
}

struct Each<F>(F);

impl<'a, F: FnMut(&'a Instr, InstrLocId)> Visitor<'a> for Each<F> {
    fn visit_instr(&mut self, instr: &'a Instr, location: &'a InstrLocId) {
        (self.0)(instr, *location);
    }
}

/// Calls `f` with each instruction of a function, in order.
pub(crate) fn each_instr<'a>(function: &'a LocalFunction, f: impl FnMut(&'a Instr, InstrLocId)) {
    dfs_in_order(&mut Each(f), function, function.entry_block());
}

struct Sequences(Vec<InstrSeqId>);

impl<'a> Visitor<'a> for Sequences {
    fn start_instr_seq(&mut self, sequence: &'a InstrSeq) {
        self.0.push(sequence.id());
    }
}

/// Every sequence that is part of a function, in order.
pub(crate) fn sequences(function: &LocalFunction) -> Vec<InstrSeqId> {
    let mut found = Sequences(Vec::new());
    dfs_in_order(&mut found, function, function.entry_block());
    found.0
}

/// The byte offset in the original file, 0 for what is ours.
pub(crate) fn offset_of(location: InstrLocId) -> u32 {
    if location.is_default() { 0 } else { location.data() }
}
