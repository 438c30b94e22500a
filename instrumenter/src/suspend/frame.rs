//! What a function writes down when it is left, and reads back.

use super::runtime::{Problem, REWINDING, Runtime, Word};
use crate::code::*;
use std::collections::{BTreeMap, BTreeSet};
use walrus::ir::*;
use walrus::{LocalFunction, LocalId, ValType};

/// The frame of a function: a number that names the call in which it was, and locals. Those that do not matter are 0.
#[derive(Default)]
pub(super) struct Frame {
    slots: Vec<(LocalId, ValType, u32)>,
    size: u32,
}

/// Bytes of the number of a call.
const SITE_BYTES: u32 = 4;

impl Frame {
    pub(super) fn of(saved: &[BTreeSet<LocalId>], types: &BTreeMap<LocalId, ValType>) -> Frame {
        let all: BTreeSet<LocalId> = saved.iter().flatten().copied().collect();
        let mut frame = Frame { slots: Vec::new(), size: SITE_BYTES };
        for local in all {
            let ty = types[&local];
            frame.slots.push((local, ty, frame.size));
            frame.size += bytes(ty);
        }
        frame
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Gives the locals that do not matter their first value.
    pub(super) fn forget(&self, code: &mut Code, saved: &BTreeSet<LocalId>) {
        for (local, ty, _) in self.slots.iter().filter(|slot| !saved.contains(&slot.0)) {
            zero(code, *ty);
            set(code, *local);
        }
    }

    /// Where the function is called to go on from where it was: reads that back. `at` becomes the number of the call among
    /// those of the function, which are `count` and of which the first is `first` among all.
    pub(super) fn read_back(
        &self,
        function: &mut LocalFunction,
        runtime: &Runtime,
        (at, pointer): (LocalId, LocalId),
        (first, count): (u32, u32),
    ) -> Code {
        let mut then = Code::new();
        runtime.word(&mut then, Word::Frames);
        i32_const(&mut then, self.size);
        binop(&mut then, BinaryOp::I32Sub);
        tee(&mut then, pointer);
        runtime.word(&mut then, Word::Low);
        binop(&mut then, BinaryOp::I32LtU);
        runtime.fail_if(function, &mut then, Problem::Overwritten);
        runtime.set_word(&mut then, Word::Frames, |code| get(code, pointer));
        get(&mut then, pointer);
        self.load(&mut then, runtime, ValType::I32, 0);
        i32_const(&mut then, first);
        binop(&mut then, BinaryOp::I32Sub);
        tee(&mut then, at);
        i32_const(&mut then, count);
        binop(&mut then, BinaryOp::I32GeU);
        runtime.fail_if(function, &mut then, Problem::Overwritten);
        for (local, ty, offset) in &self.slots {
            get(&mut then, pointer);
            self.load(&mut then, runtime, *ty, *offset);
            set(&mut then, *local);
        }
        let mut code = Code::new();
        i32_const(&mut code, u32::MAX);
        set(&mut code, at);
        runtime.word(&mut code, Word::State);
        i32_const(&mut code, REWINDING);
        binop(&mut code, BinaryOp::I32Eq);
        if_then(function, &mut code, then);
        code
    }

    /// Writes down where the function is, and the locals.
    pub(super) fn write_down(
        &self,
        function: &mut LocalFunction,
        runtime: &Runtime,
        (at, pointer): (LocalId, LocalId),
        first: u32,
    ) -> Code {
        let mut code = Code::new();
        runtime.stack_pointer(&mut code);
        runtime.word(&mut code, Word::Frames);
        tee(&mut code, pointer);
        binop(&mut code, BinaryOp::I32Sub);
        i32_const(&mut code, self.size);
        binop(&mut code, BinaryOp::I32LtU);
        runtime.fail_if(function, &mut code, Problem::NoRoom);
        get(&mut code, pointer);
        get(&mut code, at);
        i32_const(&mut code, first);
        binop(&mut code, BinaryOp::I32Add);
        self.store(&mut code, runtime, ValType::I32, 0);
        for (local, ty, offset) in &self.slots {
            get(&mut code, pointer);
            get(&mut code, *local);
            self.store(&mut code, runtime, *ty, *offset);
        }
        runtime.set_word(&mut code, Word::Frames, |code| {
            get(code, pointer);
            i32_const(code, self.size);
            binop(code, BinaryOp::I32Add);
        });
        code
    }

    fn load(&self, code: &mut Code, runtime: &Runtime, ty: ValType, offset: u32) {
        let kind = match ty {
            ValType::I64 => LoadKind::I64 { atomic: false },
            ValType::F32 => LoadKind::F32,
            ValType::F64 => LoadKind::F64,
            ValType::V128 => LoadKind::V128,
            _ => LoadKind::I32 { atomic: false },
        };
        push(code, Load { memory: runtime.memory(), kind, arg: MemArg { align: 1, offset: offset.into() } });
    }

    fn store(&self, code: &mut Code, runtime: &Runtime, ty: ValType, offset: u32) {
        let kind = match ty {
            ValType::I64 => StoreKind::I64 { atomic: false },
            ValType::F32 => StoreKind::F32,
            ValType::F64 => StoreKind::F64,
            ValType::V128 => StoreKind::V128,
            _ => StoreKind::I32 { atomic: false },
        };
        push(code, Store { memory: runtime.memory(), kind, arg: MemArg { align: 1, offset: offset.into() } });
    }
}

fn bytes(ty: ValType) -> u32 {
    match ty {
        ValType::I64 | ValType::F64 => 8,
        ValType::V128 => 16,
        _ => 4,
    }
}

/// Pushes 0 of this type. References were refused.
pub(super) fn zero(code: &mut Code, ty: ValType) {
    let value = match ty {
        ValType::I64 => Value::I64(0),
        ValType::F32 => Value::F32(0.0),
        ValType::F64 => Value::F64(0.0),
        ValType::V128 => Value::V128(0),
        _ => Value::I32(0),
    };
    push(code, Const { value });
}
