//! Copies functions of one module into another.

use crate::code::{each_instr, sequences};
use std::collections::BTreeMap;
use walrus::ir::*;
use walrus::{
    ConstExpr, ConstOp, DataId, ElementId, FunctionBuilder, FunctionId, GlobalId, LocalFunction, LocalId,
    MemoryId, Module, TableId, TypeId,
};

/// What stands in the one module for the items of the other, `from`.
pub(crate) struct Copies<'m> {
    pub(crate) from: &'m Module,
    pub(crate) types: BTreeMap<TypeId, TypeId>,
    pub(crate) functions: BTreeMap<FunctionId, FunctionId>,
    pub(crate) memories: BTreeMap<MemoryId, MemoryId>,
    pub(crate) globals: BTreeMap<GlobalId, GlobalId>,
    pub(crate) tables: BTreeMap<TableId, TableId>,
    pub(crate) data: BTreeMap<DataId, DataId>,
    pub(crate) elements: BTreeMap<ElementId, ElementId>,
    /// What is added to the offset that an instruction comes from; without it that is forgotten.
    pub(crate) offset: Option<u32>,
}

impl<'m> Copies<'m> {
    pub(crate) fn of(from: &'m Module) -> Copies<'m> {
        Copies {
            from,
            types: BTreeMap::new(),
            functions: BTreeMap::new(),
            memories: BTreeMap::new(),
            globals: BTreeMap::new(),
            tables: BTreeMap::new(),
            data: BTreeMap::new(),
            elements: BTreeMap::new(),
            offset: None,
        }
    }

    /// A function of the other module for this one. What it names is known by now.
    pub(crate) fn function(&self, module: &mut Module, function: &LocalFunction) -> LocalFunction {
        let (params, results) = self.from.types.params_results(function.ty());
        let mut builder = FunctionBuilder::new(&mut module.types, params, results);
        let old = sequences(function);
        let mut seqs = BTreeMap::from([(function.entry_block(), builder.func_body_id())]);
        for seq in &old[1..] {
            let ty = self.block_type(module, function.block(*seq).ty);
            seqs.insert(*seq, builder.dangling_instr_seq(ty).id());
        }
        for seq in &old {
            let mut code = function.block(*seq).instrs.clone();
            for (instr, location) in &mut code {
                retarget(instr, &seqs);
                *location = self.location(*location);
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
        dfs_pre_order_mut(&mut Renaming { copies: self, locals }, &mut copy, entry);
        copy
    }

    /// A constant expression of the other module for this one.
    pub(crate) fn constant(&self, expression: &ConstExpr) -> ConstExpr {
        let mut copy = expression.clone();
        match &mut copy {
            ConstExpr::Global(global) => rename(global, &self.globals),
            ConstExpr::RefFunc(function) => rename(function, &self.functions),
            ConstExpr::Extended(ops) => ops.iter_mut().for_each(|op| match op {
                ConstOp::GlobalGet(global) => rename(global, &self.globals),
                ConstOp::RefFunc(function) => rename(function, &self.functions),
                _ => {}
            }),
            ConstExpr::Value(_) | ConstExpr::RefNull(_) => {}
        }
        copy
    }

    fn block_type(&self, module: &mut Module, ty: InstrSeqType) -> InstrSeqType {
        match ty {
            InstrSeqType::Simple(_) => ty,
            InstrSeqType::MultiValue(ty) => {
                let (params, results) = self.from.types.params_results(ty);
                InstrSeqType::new(&mut module.types, params, results)
            }
        }
    }

    fn location(&self, location: InstrLocId) -> InstrLocId {
        match self.offset {
            Some(offset) if !location.is_default() => InstrLocId::new(offset + location.data()),
            _ => InstrLocId::default(),
        }
    }
}

/// Has an instruction lead to the copies of sequences.
fn retarget(instr: &mut Instr, seqs: &BTreeMap<InstrSeqId, InstrSeqId>) {
    match instr {
        Instr::Block(Block { seq }) | Instr::Loop(Loop { seq }) => *seq = seqs[seq],
        Instr::IfElse(IfElse { consequent, alternative }) => {
            (*consequent, *alternative) = (seqs[consequent], seqs[alternative]);
        }
        Instr::Br(Br { block })
        | Instr::BrIf(BrIf { block })
        | Instr::BrOnNull(BrOnNull { block })
        | Instr::BrOnNonNull(BrOnNonNull { block })
        | Instr::BrOnCast(BrOnCast { block, .. })
        | Instr::BrOnCastFail(BrOnCastFail { block, .. }) => *block = seqs[block],
        Instr::BrTable(BrTable { blocks, default }) => {
            blocks.iter_mut().chain([default]).for_each(|block| *block = seqs[block]);
        }
        Instr::TryTable(TryTable { seq, catches }) => {
            *seq = seqs[seq];
            for catch in catches {
                let (TryTableCatch::Catch { label, .. }
                | TryTableCatch::CatchRef { label, .. }
                | TryTableCatch::CatchAll { label }
                | TryTableCatch::CatchAllRef { label }) = catch;
                *label = seqs[label];
            }
        }
        _ => {}
    }
}

/// Replaces items of one module by those of another. An item may be visited twice, and is one of the other module then.
struct Renaming<'a, 'm> {
    copies: &'a Copies<'m>,
    locals: BTreeMap<LocalId, LocalId>,
}

impl VisitorMut for Renaming<'_, '_> {
    fn visit_local_id_mut(&mut self, local: &mut LocalId) {
        rename(local, &self.locals);
    }

    fn visit_type_id_mut(&mut self, ty: &mut TypeId) {
        rename(ty, &self.copies.types);
    }

    fn visit_memory_id_mut(&mut self, memory: &mut MemoryId) {
        rename(memory, &self.copies.memories);
    }

    fn visit_global_id_mut(&mut self, global: &mut GlobalId) {
        rename(global, &self.copies.globals);
    }

    fn visit_function_id_mut(&mut self, function: &mut FunctionId) {
        rename(function, &self.copies.functions);
    }

    fn visit_table_id_mut(&mut self, table: &mut TableId) {
        rename(table, &self.copies.tables);
    }

    fn visit_data_id_mut(&mut self, data: &mut DataId) {
        rename(data, &self.copies.data);
    }

    fn visit_element_id_mut(&mut self, element: &mut ElementId) {
        rename(element, &self.copies.elements);
    }
}

fn rename<I: Copy + Ord>(id: &mut I, by: &BTreeMap<I, I>) {
    *id = by.get(id).copied().unwrap_or(*id);
}
