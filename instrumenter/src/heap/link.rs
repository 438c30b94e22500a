//! Copies functions of one module into another.

use crate::PREFIX;
use crate::code::{each_instr, sequences};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use walrus::ir::*;
use walrus::{
    ExportItem, FunctionBuilder, FunctionId, FunctionKind, GlobalId, GlobalKind, ImportKind, LocalFunction,
    LocalId, MemoryId, Module,
};

/// What stands for the items of the module that is copied from.
pub(super) struct Linker<'m> {
    from: &'m Module,
    functions: BTreeMap<FunctionId, FunctionId>,
    memories: BTreeMap<MemoryId, MemoryId>,
    globals: BTreeMap<GlobalId, GlobalId>,
}

impl<'m> Linker<'m> {
    /// Copies what the functions of these names need, which `from` exports; its imports are what `memory` and `function`
    /// say. Functions stand in `from` before those that call them. A function that is not there does nothing.
    pub(super) fn link(
        module: &mut Module,
        from: &'m Module,
        wanted: &BTreeSet<&str>,
        memory: &dyn Fn(&str) -> Option<MemoryId>,
        function: &dyn Fn(&str) -> Option<FunctionId>,
    ) -> Result<BTreeMap<String, FunctionId>> {
        let (functions, memories, globals) = Default::default();
        let mut linker = Linker { from, functions, memories, globals };
        let exported =
            |name: &&str| from.exports.get_func(name).with_context(|| format!("no function {name}"));
        let roots: Vec<FunctionId> = wanted.iter().map(exported).collect::<Result<_>>()?;
        let needed = needed(from, roots);
        for import in from.imports.iter() {
            let name = format!("{}.{}", import.module, import.name);
            match import.kind {
                ImportKind::Memory(id) => {
                    let memory = memory(&import.name).with_context(|| format!("no memory {name}"))?;
                    linker.memories.insert(id, memory);
                }
                ImportKind::Function(id) if needed.contains(&id) => {
                    let found = function(&name).unwrap_or_else(|| linker.nothing(module, id));
                    linker.functions.insert(id, found);
                }
                _ => {}
            }
        }
        let used = used_globals(from, &needed);
        for global in from.globals.iter().filter(|global| used.contains(&global.id())) {
            let GlobalKind::Local(initial) = &global.kind else { continue };
            let added = module.globals.add_local(global.ty, global.mutable, false, initial.clone());
            linker.globals.insert(global.id(), added);
        }
        for (id, function) in from.funcs.iter_local().filter(|(id, _)| needed.contains(id)) {
            let copy = linker.copy(module, id, function);
            linker.functions.insert(id, copy);
        }
        let exports = from.exports.iter().filter_map(|export| match export.item {
            ExportItem::Function(id) => Some((export.name.clone(), *linker.functions.get(&id)?)),
            _ => None,
        });
        Ok(exports.collect())
    }

    /// A function of this type that does nothing. Only those without results are ever missing where they are needed.
    fn nothing(&self, module: &mut Module, id: FunctionId) -> FunctionId {
        let (params, results) = self.from.types.params_results(self.from.funcs.get(id).ty());
        let mut builder = FunctionBuilder::new(&mut module.types, params, results);
        if !results.is_empty() {
            builder.func_body().unreachable();
        }
        let args = params.iter().map(|ty| module.locals.add(*ty)).collect();
        builder.finish(args, &mut module.funcs)
    }

    fn copy(&self, module: &mut Module, id: FunctionId, function: &LocalFunction) -> FunctionId {
        let (params, results) = self.from.types.params_results(function.ty());
        let mut builder = FunctionBuilder::new(&mut module.types, params, results);
        let name = self.from.funcs.get(id).name.as_deref().unwrap_or_default();
        builder.name(format!("{PREFIX}:{name}"));
        let old = sequences(function);
        let mut seqs = BTreeMap::from([(function.entry_block(), builder.func_body_id())]);
        for seq in &old[1..] {
            seqs.insert(*seq, builder.dangling_instr_seq(function.block(*seq).ty).id());
        }
        for seq in &old {
            let mut code = function.block(*seq).instrs.clone();
            for (instr, location) in &mut code {
                retarget(instr, &seqs);
                *location = InstrLocId::default();
            }
            *builder.instr_seq(seqs[seq]).instrs_mut() = code;
        }
        let mut locals = BTreeMap::new();
        let mut add = |local: &LocalId| {
            let ty = self.from.locals.get(*local).ty();
            *locals.entry(*local).or_insert_with(|| module.locals.add(ty))
        };
        let args = function.args.iter().map(&mut add).collect();
        each_instr(function, |instr, _| match instr {
            Instr::LocalGet(LocalGet { local })
            | Instr::LocalSet(LocalSet { local })
            | Instr::LocalTee(LocalTee { local }) => {
                add(local);
            }
            _ => {}
        });
        let mut copy = builder.local_func(args);
        let entry = copy.entry_block();
        dfs_pre_order_mut(&mut Renaming { linker: self, locals }, &mut copy, entry);
        module.funcs.add_local(copy)
    }
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

/// Replaces items of one module by those of another. An item may be visited twice, and is one of the other module then.
struct Renaming<'a, 'm> {
    linker: &'a Linker<'m>,
    locals: BTreeMap<LocalId, LocalId>,
}

/// Has an instruction lead to the copies of sequences.
fn retarget(instr: &mut Instr, seqs: &BTreeMap<InstrSeqId, InstrSeqId>) {
    match instr {
        Instr::Block(Block { seq }) | Instr::Loop(Loop { seq }) => *seq = seqs[seq],
        Instr::IfElse(IfElse { consequent, alternative }) => {
            (*consequent, *alternative) = (seqs[consequent], seqs[alternative]);
        }
        Instr::Br(Br { block }) | Instr::BrIf(BrIf { block }) => *block = seqs[block],
        _ => {}
    }
}

impl VisitorMut for Renaming<'_, '_> {
    fn visit_local_id_mut(&mut self, local: &mut LocalId) {
        rename(local, &self.locals);
    }

    fn visit_memory_id_mut(&mut self, memory: &mut MemoryId) {
        rename(memory, &self.linker.memories);
    }

    fn visit_global_id_mut(&mut self, global: &mut GlobalId) {
        rename(global, &self.linker.globals);
    }

    fn visit_function_id_mut(&mut self, function: &mut FunctionId) {
        rename(function, &self.linker.functions);
    }
}

fn rename<I: Copy + Ord>(id: &mut I, by: &BTreeMap<I, I>) {
    *id = by.get(id).copied().unwrap_or(*id);
}
