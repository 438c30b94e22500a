//! Finds a module's state, and makes it reachable for the host.

use crate::calls::Calls;
use crate::code::{each_instr, offset_of};
use crate::layout::*;
use crate::names::FunctionName;
use crate::refuse::Offsets;
use crate::{Options, PREFIX};
use anyhow::{Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use walrus::ir::*;
use walrus::{
    AbstractHeapType, ConstExpr, DataId, ElementId, ElementItems, ElementKind, FunctionId, GlobalKind,
    HeapType, MemoryId, Module, ModuleTypes, RefType, TableId, ValType,
};

/// What the code of a module does to its state beyond stores.
#[derive(Default)]
pub(crate) struct Survey {
    /// Tables of functions that are written to.
    pub tables: BTreeSet<TableId>,
    /// Passive segments that are dropped, and that only `memory.init` and `table.init` read.
    pub data: BTreeSet<DataId>,
    pub elements: BTreeSet<ElementId>,
    /// Memories with operators that write ranges.
    pub ranges: BTreeSet<MemoryId>,
    /// Functions that catch exceptions.
    pub catchers: BTreeSet<FunctionId>,
    pub obstacles: Vec<Obstacle>,
}

/// Reads all code.
pub(crate) fn survey(module: &Module, names: &[FunctionName], offsets: &Offsets) -> Survey {
    let mut survey = Survey::default();
    let mut drops = Vec::new();
    let (mut array_data, mut array_elements) = (BTreeSet::new(), BTreeSet::new());
    for (id, function) in module.funcs.iter_local() {
        let name = Some(names[id.index()].name.clone());
        let obstacle = |what: &str, location| Obstacle {
            what: what.to_string(),
            function: name.clone(),
            offset: offset_of(location),
        };
        each_instr(function, |instr, location| match instr {
            Instr::TableGrow(TableGrow { table }) => {
                survey.tables.insert(*table);
                survey.obstacles.push(obstacle("table.grow", location));
            }
            Instr::TableSet(TableSet { table })
            | Instr::TableFill(TableFill { table })
            | Instr::TableInit(TableInit { table, .. })
            | Instr::TableCopy(TableCopy { dst: table, .. }) => {
                survey.tables.insert(*table);
            }
            Instr::TryTable(body) if !body.catches.is_empty() => {
                survey.catchers.insert(id);
            }
            Instr::MemoryFill(MemoryFill { memory })
            | Instr::MemoryInit(MemoryInit { memory, .. })
            | Instr::MemoryCopy(MemoryCopy { dst: memory, .. }) => {
                survey.ranges.insert(*memory);
            }
            Instr::DataDrop(DataDrop { data }) if module.data.get(*data).is_passive() => {
                survey.data.insert(*data);
                drops.push((Some(*data), None, obstacle("data.drop", location)));
            }
            Instr::ElemDrop(ElemDrop { elem })
                if matches!(module.elements.get(*elem).kind, ElementKind::Passive) =>
            {
                survey.elements.insert(*elem);
                drops.push((None, Some(*elem), obstacle("elem.drop", location)));
            }
            Instr::ArrayNewData(ArrayNewData { data, .. })
            | Instr::ArrayInitData(ArrayInitData { data, .. }) => {
                array_data.insert(*data);
            }
            Instr::ArrayNewElem(ArrayNewElem { elem, .. })
            | Instr::ArrayInitElem(ArrayInitElem { elem, .. }) => {
                array_elements.insert(*elem);
            }
            _ => {}
        });
    }
    survey.drops(drops, &array_data, &array_elements);
    survey.items(module, offsets);
    survey
        .tables
        .retain(|&table| holds(&module.types, module.tables.get(table).element_ty) == Holds::Functions);
    survey.obstacles.sort_by_key(|obstacle| obstacle.offset);
    survey
}

/// A `data.drop` or `elem.drop`: what it drops, and what it is where that is in the way of snapshots.
type Drop = (Option<DataId>, Option<ElementId>, Obstacle);

impl Survey {
    /// Dropping segments that arrays are made of is in the way of snapshots.
    fn drops(
        &mut self,
        drops: Vec<Drop>,
        by_array: &BTreeSet<DataId>,
        elements_by_array: &BTreeSet<ElementId>,
    ) {
        for (data, element, obstacle) in drops {
            let read_by_array = data.is_some_and(|data| by_array.contains(&data))
                || element.is_some_and(|element| elements_by_array.contains(&element));
            if read_by_array {
                self.obstacles.push(obstacle);
            }
        }
        self.data.retain(|data| !by_array.contains(data));
        self.elements.retain(|element| !elements_by_array.contains(element));
    }

    /// Looks for objects that items hold on to.
    fn items(&mut self, module: &Module, offsets: &Offsets) {
        let mut obstacle = |what: String, offset: Option<&u32>| {
            let offset = offset.copied().unwrap_or_default();
            self.obstacles.push(Obstacle { what, function: None, offset });
        };
        for (index, global) in module.globals.iter().enumerate() {
            let ValType::Ref(ty) = global.ty else { continue };
            // One from outside has nothing that a guest could change, unless it was made of an object here.
            let is_given = |init: &ConstExpr| matches!(init, ConstExpr::RefNull(_) | ConstExpr::Global(_));
            let is_made = match &global.kind {
                GlobalKind::Import(_) => false,
                GlobalKind::Local(init) => ty.heap_type != EXTERN || !is_given(init),
            };
            if match holds(&module.types, ty) {
                Holds::Objects => global.mutable || is_made,
                Holds::Numbers => global.mutable,
                Holds::Functions | Holds::Nothing => false,
            } {
                obstacle(format!("{} global", describe(ty)), offsets.globals.get(index));
            }
        }
        for (index, table) in module.tables.iter().enumerate() {
            let ty = table.element_ty;
            if match holds(&module.types, ty) {
                Holds::Objects => true,
                Holds::Numbers => self.tables.contains(&table.id()),
                Holds::Functions | Holds::Nothing => false,
            } {
                obstacle(format!("{} table", describe(ty)), offsets.tables.get(index));
            }
        }
        for (index, element) in module.elements.iter().enumerate() {
            let ElementItems::Expressions(ty, _) = &element.items else { continue };
            let stays = matches!(element.kind, ElementKind::Passive);
            if stays && holds(&module.types, *ty) == Holds::Objects {
                obstacle(format!("{} element segment", describe(*ty)), offsets.elements.get(index));
            }
        }
    }
}

const EXTERN: HeapType = HeapType::Abstract(AbstractHeapType::Extern);

/// What a reference can stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Only null.
    Nothing,
    Functions,
    /// 31-bit integers.
    Numbers,
    /// Things with an identity of their own, which the host cannot make again.
    Objects,
}

fn holds(types: &ModuleTypes, ty: RefType) -> Holds {
    use AbstractHeapType::*;
    match ty.heap_type {
        HeapType::Abstract(None | NoExtern | NoExn | NoFunc) => Holds::Nothing,
        HeapType::Abstract(Func) => Holds::Functions,
        HeapType::Abstract(I31) => Holds::Numbers,
        HeapType::Concrete(id) | HeapType::Exact(id) if types.get(id).is_function() => Holds::Functions,
        _ => Holds::Objects,
    }
}

/// `externref`, or `(ref struct)` for what has no short name.
fn describe(ty: RefType) -> String {
    match ty.heap_type {
        HeapType::Concrete(_) | HeapType::Exact(_) => "typed reference".to_string(),
        _ => ty.to_string(),
    }
}

/// Exports all of a module's state, and tells where it is.
pub(crate) fn export(
    module: &mut Module,
    survey: Survey,
    calls: &Calls,
    layout: &mut StateLayout,
    memories: &[(MemoryId, MemoryLayout)],
) {
    for (id, memory) in memories {
        module.exports.add(&memory.export, *id);
        layout.memories.push(memory.clone());
    }
    export_globals(module, layout);
    for table in survey.tables {
        let export = format!("{PREFIX}:table:{}", table.index());
        module.exports.add(&export, table);
        let table64 = module.tables.get(table).table64;
        layout.tables.push(TableLayout { export, index: table.index() as u32, table64 });
    }
    let references = layout.globals.iter().any(|global| global.kind == ValueKind::Function);
    if references || !layout.tables.is_empty() {
        layout.functions = Some(export_functions(module, calls));
    }
    layout.obstacles = survey.obstacles;
}

fn export_globals(module: &mut Module, layout: &mut StateLayout) {
    let mut exports = Vec::new();
    for (index, global) in module.globals.iter().enumerate() {
        let kind = match global.ty {
            ValType::I32 => ValueKind::I32,
            ValType::I64 => ValueKind::I64,
            ValType::F32 => ValueKind::F32,
            ValType::F64 => ValueKind::F64,
            ValType::V128 => ValueKind::V128,
            ValType::Ref(ty) if holds(&module.types, ty) == Holds::Functions => ValueKind::Function,
            ValType::Ref(_) => continue,
        };
        if global.mutable {
            let export = format!("{PREFIX}:global:{index}");
            exports.push((global.id(), GlobalLayout { export, index: index as u32, kind }));
        }
    }
    for (id, global) in exports {
        module.exports.add(&global.export, id);
        layout.globals.push(global);
    }
}

/// Adds and exports a table of all functions that something refers to.
fn export_functions(module: &mut Module, calls: &Calls) -> String {
    let functions = calls.referenced.clone();
    let size = functions.len() as u64;
    let table = module.tables.add_local(false, size, Some(size), RefType::FUNCREF);
    let offset = walrus::ConstExpr::Value(Value::I32(0));
    module.elements.add(ElementKind::Active { table, offset }, ElementItems::Functions(functions));
    let export = format!("{PREFIX}:functions");
    module.exports.add(&export, table);
    export
}

/// The memories of a module with room for their dirty maps; what may grow too far is limited.
pub(crate) fn memories(
    module: &mut Module,
    options: &Options,
    targets: &[MemoryId],
    allocator: &mut Allocator,
) -> Result<Vec<(MemoryId, MemoryLayout)>> {
    let mut memories = Vec::new();
    let limit = options.memory_bytes_max / 65536;
    for (index, &id) in targets.iter().enumerate() {
        let memory = module.memories.get_mut(id);
        ensure!(
            memory.initial <= limit,
            "memory {index} begins with {} pages of 64 KiB, more than the limit allows ({limit}); raise `memory_bytes_max`, or --memory-max",
            memory.initial
        );
        let declared = memory.maximum.unwrap_or(u64::MAX);
        let natural = if memory.memory64 { u64::MAX } else { 65536 };
        let largest = declared.min(limit).min(natural);
        if memory.import.is_none() && largest < declared.min(natural) {
            memory.maximum = Some(largest);
        }
        let dirty = match options.dirty {
            true => allocator.take(largest * (65536 / u64::from(options.page_bytes)), 64)?,
            false => 0..0,
        };
        let layout = MemoryLayout {
            export: format!("{PREFIX}:memory:{index}"),
            dirty,
            memory64: memory.memory64,
            pages_min: memory.initial,
            pages_max: memory.maximum,
        };
        memories.push((id, layout));
    }
    Ok(memories)
}

/// A flag for each item, from `start`.
pub(crate) fn flags<T: Ord + Copy>(items: &BTreeSet<T>, start: u32) -> BTreeMap<T, u32> {
    items.iter().copied().zip(start..).collect()
}
