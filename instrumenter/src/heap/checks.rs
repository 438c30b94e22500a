//! The checks of loads, stores and bulk operators.

use super::frames::Frames;
use crate::bases::{Bases, Value};
use crate::code::*;
use crate::layout::FramesLayout;
use walrus::ir::*;
use walrus::{FunctionId, GlobalId, LocalFunction, LocalId, MemoryId, ValType};

/// What was read or written, for `report`.
const READ: u32 = 1;
const WRITE: u32 = 2;

/// What is checked, and how.
pub(crate) struct Checks {
    /// The memory of the heap, and its shadow.
    pub memory: MemoryId,
    pub shadow: MemoryId,
    pub report: FunctionId,
    pub range: FunctionId,
    /// Where in private memory it is noted what went wrong.
    pub record: u32,
    pub stack: Option<GlobalId>,
    /// If the stack is sanitized, the offsets in the file of loads and stores in order that need no check.
    pub within: Option<Vec<u32>>,
    pub counted: Option<FramesLayout>,
    /// By index, as far as the name says it, of all but the runtime's functions.
    pub scopes: Vec<Scope>,
}

/// What is checked of what a function touches.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Scope {
    All,
    /// All, but of aligned words that it loads the first byte alone: the last one may end beyond a string.
    Words,
    /// What it writes, and of what it reads the first byte.
    Beginnings,
    Nothing,
}

/// Checks the accesses of one function.
pub(crate) struct Checker<'c> {
    checks: &'c Checks,
    frames: Frames,
    scope: Scope,
}

/// Gives a scratch local of a type.
type Locals<'a> = &'a mut dyn FnMut(ValType, u32) -> LocalId;

/// Slots of scratch locals that are ours, beside those of marks.
const ADDRESS: u32 = 8;
const SECOND: u32 = 9;
const THIRD: u32 = 10;
const CHECKED: u32 = 11;

/// Bytes that an instruction reads or writes at an address, and what it takes beside that.
struct Access {
    offset: u64,
    bytes: u32,
    what: u32,
    /// The type of the value above the address.
    value: Option<ValType>,
}

impl Checks {
    /// Of the function with this index; none of the runtime's.
    pub(crate) fn of(&self, index: usize, function: &LocalFunction) -> Option<Checker<'_>> {
        let scope = self.scopes.get(index).copied().filter(|scope| *scope != Scope::Nothing)?;
        Some(Checker {
            checks: self,
            // There is an end to a frame then.
            frames: Frames::of(function, self.stack.filter(|_| self.within.is_none())),
            scope: if scope == Scope::All && finds_zeros(function) { Scope::Words } else { scope },
        })
    }
}

/// Whether it is the load of a word that is aligned.
fn is_whole_word(instr: &Instr) -> bool {
    let Instr::Load(Load { kind, arg, .. }) = instr else { return false };
    matches!(kind.width(), 4 | 8) && arg.align == kind.width()
}

/// Whether a function looks for a zero byte in whole words, as `strlen` does under whatever name, or inlined: that takes two constants
/// that little else has, the first bits of all bytes and, as compilers write it, the last ones.
fn finds_zeros(function: &LocalFunction) -> bool {
    #[derive(Default)]
    struct Finds {
        first_bits: bool,
        last_bits: bool,
    }
    impl<'i> Visitor<'i> for Finds {
        fn visit_const(&mut self, constant: &Const) {
            let (value, last) = match constant.value {
                walrus::ir::Value::I32(value) => (i64::from(value), 0x0101_0101),
                walrus::ir::Value::I64(value) => (value, 0x0101_0101_0101_0101),
                _ => return,
            };
            self.first_bits |= value == -0x7f * last - 1;
            self.last_bits |= [last, last - 1, -last, !last].contains(&value);
        }
    }
    let mut finds = Finds::default();
    dfs_in_order(&mut finds, function, function.entry_block());
    finds.first_bits && finds.last_bits
}

impl Checker<'_> {
    /// Whether an instruction is checked.
    pub(crate) fn concerns(&self, instr: &Instr) -> bool {
        self.access(instr).is_some() || self.ranges(instr).is_some()
    }

    /// Appends the check of an instruction that comes next. The check has the place of the instruction, since either may trap.
    pub(crate) fn before(
        &self,
        function: &mut LocalFunction,
        code: &mut Code,
        (instr, location): (&Instr, &mut InstrLocId),
        bases: &mut Bases,
        local: Locals<'_>,
    ) {
        if let Some(access) = self.access(instr) {
            let within = self.checks.within.as_deref().unwrap_or_default();
            if !location.is_default() && within.binary_search(&offset_of(*location)).is_ok() {
                return;
            }
            self.one(function, code, access, location, bases, local);
        } else if let Some(ranges) = self.ranges(instr) {
            let [to, from, count] = [ADDRESS, SECOND, THIRD].map(|slot| local(ValType::I32, slot));
            for operand in [count, from, to] {
                set(code, operand);
            }
            for (is_first, what) in ranges.iter().copied() {
                get(code, if is_first { to } else { from });
                get(code, count);
                i32_const(code, what);
                code.push((Call { func: self.checks.range }.into(), *location));
            }
            for operand in [to, from, count] {
                get(code, operand);
            }
        }
    }

    /// Which ranges a bulk operator touches: at its first operand or at its second one, and how.
    fn ranges(&self, instr: &Instr) -> Option<Vec<(bool, u32)>> {
        let ours = |memory: &MemoryId| *memory == self.checks.memory;
        match instr {
            Instr::MemoryFill(MemoryFill { memory }) | Instr::MemoryInit(MemoryInit { memory, .. })
                if ours(memory) =>
            {
                Some(vec![(true, WRITE)])
            }
            // Between memories of different addresses the operands have different types.
            Instr::MemoryCopy(MemoryCopy { src, dst }) if ours(src) && ours(dst) => {
                Some(vec![(false, READ), (true, WRITE)])
            }
            _ => None,
        }
    }

    fn access(&self, instr: &Instr) -> Option<Access> {
        let (memory, offset, bytes, what, value) = match instr {
            Instr::Load(Load { memory, kind, arg }) => (memory, arg.offset, kind.width(), READ, None),
            Instr::Store(Store { memory, kind, arg }) => {
                (memory, arg.offset, kind.width(), WRITE, Some(crate::marks::stored_type(*kind)))
            }
            Instr::LoadSimd(LoadSimd { memory, kind, arg }) => {
                let (bytes, what, value) = simd(*kind);
                (memory, arg.offset, bytes, what, value)
            }
            _ => return None,
        };
        let bytes = match self.scope {
            Scope::Beginnings if what == READ => 1,
            Scope::Words if is_whole_word(instr) => 1,
            _ => bytes,
        };
        (*memory == self.checks.memory).then_some(Access { offset, bytes, what, value })
    }

    fn one(
        &self,
        function: &mut LocalFunction,
        code: &mut Code,
        access: Access,
        location: &mut InstrLocId,
        bases: &mut Bases,
        local: Locals<'_>,
    ) {
        let Access { offset, bytes, what, value } = access;
        let base = bases.below(usize::from(value.is_some()));
        match base {
            Value::Constant(_) => return,
            Value::Local(base) if self.frames.contains(base) || bases.is_checked(base, offset, bytes) => {
                return;
            }
            _ => {}
        }
        let spilled = match (base, value) {
            (Value::Local(base), _) => {
                get(code, base);
                None
            }
            (_, Some(ty)) => {
                let (value, address) = (local(ty, SECOND), local(ValType::I32, ADDRESS));
                set(code, value);
                tee(code, address);
                get(code, address);
                Some(value)
            }
            (_, None) => {
                let address = local(ValType::I32, ADDRESS);
                tee(code, address);
                get(code, address);
                None
            }
        };
        if offset != 0 {
            i32_const(code, offset as u32);
            binop(code, BinaryOp::I32Add);
        }
        self.test(function, code, (bytes, what), *location, local(ValType::I32, CHECKED));
        // A place leads to what comes after it too, up to the next one.
        *location = InstrLocId::default();
        if let Some(value) = spilled {
            get(code, value);
        }
    }

    /// `address --`
    fn test(
        &self,
        function: &mut LocalFunction,
        code: &mut Code,
        (bytes, what): (u32, u32),
        location: InstrLocId,
        address: LocalId,
    ) {
        tee(code, address);
        i32_const(code, 3);
        binop(code, BinaryOp::I32ShrU);
        let zero = ExtendedLoad::ZeroExtend;
        let (kind, align) = match bytes {
            // Seven bits further at most, of so many bits.
            1 => (LoadKind::I32_8 { kind: zero }, 1),
            16 => (LoadKind::I32 { atomic: false }, 4),
            _ => (LoadKind::I32_16 { kind: zero }, 2),
        };
        let load = Load { memory: self.checks.shadow, kind, arg: MemArg { align, offset: 0 } };
        code.push((load.into(), location));
        get(code, address);
        i32_const(code, 7);
        binop(code, BinaryOp::I32And);
        binop(code, BinaryOp::I32ShrU);
        i32_const(code, ((1u64 << bytes) - 1) as u32);
        binop(code, BinaryOp::I32And);
        let mut bad = Code::new();
        i32_const(&mut bad, what);
        get(&mut bad, address);
        i32_const(&mut bad, bytes);
        push(&mut bad, Call { func: self.checks.report });
        if_then(function, code, bad);
    }
}

/// Bytes that a vector instruction reads or writes, which of both, and the type of the value above the address.
fn simd(kind: LoadSimdKind) -> (u32, u32, Option<ValType>) {
    use LoadSimdKind::*;
    let lane = Some(ValType::V128);
    match kind {
        Splat8 => (1, READ, None),
        Splat16 => (2, READ, None),
        Splat32 | V128Load32Zero => (4, READ, None),
        Splat64 | V128Load64Zero | V128Load8x8S | V128Load8x8U | V128Load16x4S | V128Load16x4U
        | V128Load32x2S | V128Load32x2U => (8, READ, None),
        V128Load8Lane(_) => (1, READ, lane),
        V128Load16Lane(_) => (2, READ, lane),
        V128Load32Lane(_) => (4, READ, lane),
        V128Load64Lane(_) => (8, READ, lane),
        V128Store8Lane(_) => (1, WRITE, lane),
        V128Store16Lane(_) => (2, WRITE, lane),
        V128Store32Lane(_) => (4, WRITE, lane),
        V128Store64Lane(_) => (8, WRITE, lane),
    }
}
