//! Puts a zone that nobody may touch between the frames on the stack.
//!
//! ```wat
//! (func $f (result i32)      (func $f (result i32)
//!                              (global.set $__stack_pointer
//!                                (call $enter (global.get $__stack_pointer) (i32.const F)))
//!   …                =>        (block $body (result i32) … with every way out to $body …)
//!                              (global.set $__stack_pointer
//!                                (call $leave (global.get $__stack_pointer) (i32.const F)))
//! )                          )
//! ```
//!
//! So whatever a function does with the stack pointer, it does 16 bytes further down, and its code stays as it is: that is
//! enough where it gives the stack pointer back as it was ([`pointer`](super::pointer)). Where another function assigns
//! it, zones that are then below are unmarked: those of functions that were left by an exception or by `longjmp`.

use super::pointer::Usage;
use crate::code::*;
use crate::depth::{self, Depth};
use crate::layout::FramesLayout;
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use std::collections::BTreeMap;
use walrus::ir::*;
use walrus::{ConstExpr, FunctionId, GlobalId, GlobalKind, LocalFunction, MemoryId, Module, ValType};

/// What is called about zones.
pub(super) struct Zones {
    pointer: GlobalId,
    memory: MemoryId,
    enter: FunctionId,
    leave: FunctionId,
    unwind: FunctionId,
}

/// The stack pointer of a module.
pub(super) fn pointer(module: &Module) -> Result<GlobalId> {
    let pointer = super::stack_pointer(module).context(
        "the stack cannot be sanitized: the module has no global called `__stack_pointer`, which LLVM's compilers give it; \
         keep its names (do not strip it), or export that global",
    )?;
    let global = module.globals.get(pointer);
    ensure!(
        global.ty != ValType::I64,
        "the stack cannot be sanitized: `__stack_pointer` is an i64, as with a 64-bit memory; compile for wasm32"
    );
    ensure!(
        global.mutable && global.ty == ValType::I32,
        "the stack cannot be sanitized: the global `__stack_pointer` is not a mutable i32"
    );
    Ok(pointer)
}

/// The address that the stack begins at; 0 if the module does not say so.
pub(super) fn high(module: &Module, pointer: Option<GlobalId>, memory: MemoryId) -> u32 {
    let initial = pointer.map(|pointer| &module.globals.get(pointer).kind);
    match initial {
        Some(GlobalKind::Local(ConstExpr::Value(Value::I32(high))))
            if u64::from(*high as u32) <= module.memories.get(memory).initial << 16 =>
        {
            *high as u32
        }
        _ => 0,
    }
}

impl Zones {
    pub(super) fn new(pointer: GlobalId, memory: MemoryId, linked: &BTreeMap<String, FunctionId>) -> Zones {
        let [enter, leave, unwind] = ["enter", "leave", "unwind"].map(|name| linked[name]);
        Zones { pointer, memory, enter, leave, unwind }
    }

    /// Adds them to the functions before `first`; the offsets of loads and stores in order that stay within a frame.
    pub(super) fn add(&self, module: &mut Module, first: usize) -> Result<(FramesLayout, Vec<u32>)> {
        let functions: Vec<(FunctionId, &LocalFunction)> =
            module.funcs.iter_local().filter(|(id, _)| id.index() < first).collect();
        let usage = |(id, function): &(FunctionId, &LocalFunction)| {
            (*id, Usage::of(function, &sequences(function), self.pointer, self.memory))
        };
        let usages: Vec<(FunctionId, Usage)> = functions.par_iter().map(usage).collect();
        let (mut counted, mut inside) = (FramesLayout { with_zone: 0, left_alone: 0 }, Vec::new());
        for (id, usage) in usages {
            inside.extend(usage.inside);
            let has_zone = usage.has_frame && usage.is_balanced;
            if usage.assigns && (!has_zone || usage.catches) {
                self.unwind_in(module.funcs.get_mut(id).kind.unwrap_local_mut());
            }
            if has_zone {
                self.wrap(module, id);
                counted.with_zone += 1;
            } else if usage.reads && !usage.is_balanced {
                counted.left_alone += 1;
            }
        }
        ensure!(
            counted.with_zone > 0,
            "the stack cannot be sanitized: no function of the module has variables on the stack in memory as LLVM's \
             compilers keep them there ({} others use it otherwise); do not ask for it (--sanitize)",
            counted.left_alone
        );
        inside.sort_unstable();
        Ok((counted, inside))
    }

    fn wrap(&self, module: &mut Module, id: FunctionId) {
        let function = module.funcs.get_mut(id).kind.unwrap_local_mut();
        Depth::declare(&mut module.types, function);
        let moved = |by: FunctionId| {
            let mut code = Code::new();
            push(&mut code, GlobalGet { global: self.pointer });
            i32_const(&mut code, id.index() as u32 + 1);
            push(&mut code, Call { func: by });
            push(&mut code, GlobalSet { global: self.pointer });
            code
        };
        let (mut code, mut leave) = (moved(self.enter), moved(self.leave));
        code.push(depth::body(function, &module.types, &leave));
        code.append(&mut leave);
        function.block_mut(function.entry_block()).instrs = code;
    }

    fn unwind_in(&self, function: &mut LocalFunction) {
        let assigns = |instr: &Instr| matches!(instr, Instr::GlobalSet(GlobalSet { global }) if *global == self.pointer);
        for seq in sequences(function) {
            if !function.block(seq).instrs.iter().any(|(instr, _)| assigns(instr)) {
                continue;
            }
            let mut code = Code::new();
            for (instr, location) in std::mem::take(&mut function.block_mut(seq).instrs) {
                if assigns(&instr) {
                    push(&mut code, Call { func: self.unwind });
                }
                code.push((instr, location));
            }
            function.block_mut(seq).instrs = code;
        }
    }
}
