//! Copies what is needed of the runtime into a module.

use crate::PREFIX;
use crate::code::each_instr;
use crate::link::Copies;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use walrus::ir::*;
use walrus::{
    ExportItem, FunctionBuilder, FunctionId, FunctionKind, GlobalId, GlobalKind, ImportKind, MemoryId, Module,
};

/// Copies what the functions of these names need, which `from` exports; its imports are what `memory` and `function`
/// say. Functions stand in `from` before those that call them. A function that is not there does nothing.
pub(super) fn link(
    module: &mut Module,
    from: &Module,
    wanted: &BTreeSet<&str>,
    memory: &dyn Fn(&str) -> Option<MemoryId>,
    function: &dyn Fn(&str) -> Option<FunctionId>,
) -> Result<BTreeMap<String, FunctionId>> {
    let mut copies = Copies::of(from);
    let exported = |name: &&str| from.exports.get_func(name).with_context(|| format!("no function {name}"));
    let roots: Vec<FunctionId> = wanted.iter().map(exported).collect::<Result<_>>()?;
    let needed = needed(from, roots);
    for import in from.imports.iter() {
        let name = format!("{}.{}", import.module, import.name);
        match import.kind {
            ImportKind::Memory(id) => {
                let memory = memory(&import.name).with_context(|| format!("no memory {name}"))?;
                copies.memories.insert(id, memory);
            }
            ImportKind::Function(id) if needed.contains(&id) => {
                let found = function(&name).unwrap_or_else(|| nothing(module, from, id));
                copies.functions.insert(id, found);
            }
            _ => {}
        }
    }
    let used = used_globals(from, &needed);
    for global in from.globals.iter().filter(|global| used.contains(&global.id())) {
        let GlobalKind::Local(initial) = &global.kind else { continue };
        let added = module.globals.add_local(global.ty, global.mutable, false, initial.clone());
        copies.globals.insert(global.id(), added);
    }
    for (id, function) in from.funcs.iter_local().filter(|(id, _)| needed.contains(id)) {
        let copy = copies.function(module, function);
        let copy = module.funcs.add_local(copy);
        let name = from.funcs.get(id).name.as_deref().unwrap_or_default();
        module.funcs.get_mut(copy).name = Some(format!("{PREFIX}:{name}"));
        copies.functions.insert(id, copy);
    }
    let exports = from.exports.iter().filter_map(|export| match export.item {
        ExportItem::Function(id) => Some((export.name.clone(), *copies.functions.get(&id)?)),
        _ => None,
    });
    Ok(exports.collect())
}

/// A function of this type that does nothing. Only those without results are ever missing where they are needed.
fn nothing(module: &mut Module, from: &Module, id: FunctionId) -> FunctionId {
    let (params, results) = from.types.params_results(from.funcs.get(id).ty());
    let mut builder = FunctionBuilder::new(&mut module.types, params, results);
    if !results.is_empty() {
        builder.func_body().unreachable();
    }
    let args = params.iter().map(|ty| module.locals.add(*ty)).collect();
    builder.finish(args, &mut module.funcs)
}

/// These functions, and what they call.
fn needed(from: &Module, roots: Vec<FunctionId>) -> BTreeSet<FunctionId> {
    let (mut needed, mut open) = (BTreeSet::new(), roots);
    while let Some(id) = open.pop() {
        if !needed.insert(id) {
            continue;
        }
        if let FunctionKind::Local(function) = &from.funcs.get(id).kind {
            each_instr(function, |instr, _| {
                if let Instr::Call(Call { func }) = instr {
                    open.push(*func);
                }
            });
        }
    }
    needed
}

/// The globals that these functions use.
fn used_globals(from: &Module, functions: &BTreeSet<FunctionId>) -> BTreeSet<GlobalId> {
    let mut globals = BTreeSet::new();
    for (_, function) in from.funcs.iter_local().filter(|(id, _)| functions.contains(id)) {
        each_instr(function, |instr, _| match instr {
            Instr::GlobalGet(GlobalGet { global }) | Instr::GlobalSet(GlobalSet { global }) => {
                globals.insert(*global);
            }
            _ => {}
        });
    }
    globals
}
