//! Reports what is stored in memory and in globals, to a function that the host provides.
//!
//! ```wat
//! (i32.store offset=O (a) (v))  =>  (i32.store offset=O (call $stored (a) (v) (i32.const O) (i32.const SITE) (i32.const 4) (local.get $caller)))
//! (global.set $g (v))           =>  (global.set $g (call $set (v) (i32.const ~G) (i32.const SITE) (i32.const 4) (local.get $caller)))
//! ```
//!
//! A global stands in place of the address from the end of all addresses on.

use crate::PREFIX;
use crate::code::*;
use crate::compares::{Counts, REPORTS_MAX, finish};
use crate::contexts::push_caller;
use walrus::ir::*;
use walrus::{FunctionBuilder, FunctionId, GlobalId, LocalId, MemoryId, Module, ValType};

/// What reports, once it was added to a module.
pub(crate) struct Stored {
    /// The memory whose stores are reported.
    memory: Option<MemoryId>,
    /// Globals that are set, with their types.
    globals: Vec<(GlobalId, ValType)>,
    /// The functions that report an `i32` and an `i64` in memory.
    stored: [FunctionId; 2],
    /// Those that report one in a global.
    set: [FunctionId; 2],
}

impl Stored {
    /// Adds the functions that report. The last memory is private.
    pub(crate) fn add(module: &mut Module, counts: Counts) -> Stored {
        let memory = module.memories.iter().next();
        let memory = memory.filter(|memory| !memory.memory64 && memory.id() != counts.private.0);
        let memory = memory.map(|memory| memory.id());
        let is_number = |ty: ValType| matches!(ty, ValType::I32 | ValType::I64);
        let globals = module.globals.iter().filter(|global| global.mutable && is_number(global.ty));
        let globals = globals.map(|global| (global.id(), global.ty)).collect();
        let (i32, i64) = (ValType::I32, ValType::I64);
        let ty = module.types.add(&[i32, i32, i32, i64, i32], &[]);
        let (host, _) = module.add_import_func(PREFIX, "stored", ty);
        let [stored, set] = [true, false]
            .map(|has_address| [i32, i64].map(|ty| reporting(module, counts, host, (ty, has_address))));
        Stored { memory, globals, stored, set }
    }

    /// Puts before an instruction that stores what reports it.
    pub(crate) fn report(&self, code: &mut Code, instr: &Instr, site: u32, caller: Option<LocalId>) {
        let (ty, offset, width, functions) = match instr {
            Instr::Store(Store { memory, kind, arg }) if Some(*memory) == self.memory => {
                let ty = match kind {
                    StoreKind::I32 { .. } | StoreKind::I32_8 { .. } | StoreKind::I32_16 { .. } => {
                        ValType::I32
                    }
                    StoreKind::F32 | StoreKind::F64 | StoreKind::V128 => return,
                    _ => ValType::I64,
                };
                (ty, arg.offset as u32, kind.width(), &self.stored)
            }
            Instr::GlobalSet(GlobalSet { global }) => {
                let Some((id, ty)) = self.globals.iter().find(|(id, _)| id == global) else { return };
                (*ty, !(id.index() as u32), if *ty == ValType::I32 { 4 } else { 8 }, &self.set)
            }
            _ => return,
        };
        i32_const(code, offset);
        i32_const(code, site);
        i32_const(code, width);
        push_caller(code, caller);
        push(code, Call { func: functions[usize::from(ty == ValType::I64)] });
    }
}

/// Adds a function that reports a value, and returns it, with the address where there is one.
fn reporting(
    module: &mut Module,
    counts: Counts,
    host: FunctionId,
    (ty, has_address): (ValType, bool),
) -> FunctionId {
    let i32 = ValType::I32;
    let address = has_address.then(|| module.locals.add(i32));
    let value = module.locals.add(ty);
    let [offset, site, width, caller, at, n] = [(); 6].map(|()| module.locals.add(i32));
    let given: Vec<LocalId> = address.into_iter().chain([value]).collect();
    let mut results = vec![ty];
    results.splice(0..0, address.map(|_| i32));
    let params = [&results[..], &[i32; 4]].concat();
    let builder = FunctionBuilder::new(&mut module.types, &params, &results);
    let mut then = Code::new();
    get(&mut then, site);
    get(&mut then, caller);
    get(&mut then, offset);
    if let Some(address) = address {
        get(&mut then, address);
        binop(&mut then, BinaryOp::I32Add);
    }
    get(&mut then, value);
    if ty == i32 {
        unop(&mut then, UnaryOp::I64ExtendUI32);
    }
    get(&mut then, width);
    push(&mut then, Call { func: host });
    let params = given.iter().copied().chain([offset, site, width, caller]).collect();
    finish(module, builder, params, |function| {
        let mut code = counts.bound(function, (site, caller, at, n), REPORTS_MAX, then);
        given.iter().for_each(|local| get(&mut code, *local));
        code
    })
}
