//! Copies all of the harness into the target.

use super::copy::Copies;
use super::place::Place;
use super::provide::{Item, Provided};
use crate::TABLE_ELEMENTS_MAX;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use walrus::ir::Value;
use walrus::{
    ConstExpr, DataKind, ElementItems, ElementKind, FunctionBuilder, FunctionId, FunctionKind, GlobalId,
    GlobalKind, Import, ImportId, ImportKind, Module, RawCustomSection,
};

/// The harness, in the target.
pub(super) struct Merged<'h> {
    pub(super) copies: Copies<'h>,
    /// The functions that the harness defines: its index there, and what it is here.
    pub(super) functions: Vec<(u32, FunctionId)>,
}

/// Copies the harness. The offsets of its code are moved by `offset`.
pub(super) fn merge<'h>(
    module: &mut Module,
    harness: &'h Module,
    provided: &Provided,
    place: Option<&Place>,
    offset: u32,
) -> Result<Merged<'h>> {
    let mut copies = Copies { offset: Some(offset), ..Copies::of(harness) };
    for ty in harness.types.iter() {
        let (params, results) = (ty.params().to_vec(), ty.results().to_vec());
        copies.types.insert(ty.id(), module.types.add(&params, &results));
    }
    let known = module.imports.iter().filter_map(|import| match import.kind {
        ImportKind::Function(id) => Some(((import.module.clone(), import.name.clone()), id)),
        _ => None,
    });
    let known: Known = known.collect();
    for import in harness.imports.iter() {
        let item = match provided.get(&import.id()) {
            Some(item) => *item,
            None => imported(module, harness, &known, import),
        };
        copies.import(&import.kind, item);
    }
    let functions = functions(module, harness, &mut copies);
    globals(module, harness, &mut copies, place);
    tables(module, harness, &mut copies, provided)?;
    for data in harness.data.iter() {
        let kind = match &data.kind {
            DataKind::Passive => DataKind::Passive,
            DataKind::Active { memory, offset } => {
                let memory = copies.memories.get(memory).copied().context("data of no memory")?;
                DataKind::Active { memory, offset: copies.constant(offset) }
            }
        };
        let copy = module.data.add(kind, data.value.clone());
        copies.data.insert(data.id(), copy);
    }
    for (id, function) in harness.funcs.iter_local() {
        let copy = copies.function(module, function);
        module.funcs.get_mut(copies.functions[&id]).kind = FunctionKind::Local(copy);
    }
    sections(module, harness);
    Ok(Merged { copies, functions })
}

impl Copies<'_> {
    fn import(&mut self, import: &ImportKind, item: Item) {
        match (import, item) {
            (ImportKind::Function(id), Item::Function(item)) => drop(self.functions.insert(*id, item)),
            (ImportKind::Table(id), Item::Table(item)) => drop(self.tables.insert(*id, item)),
            (ImportKind::Memory(id), Item::Memory(item)) => drop(self.memories.insert(*id, item)),
            (ImportKind::Global(id), Item::Global(item)) => drop(self.globals.insert(*id, item)),
            _ => {}
        }
    }
}

/// The functions that the target imports.
type Known = BTreeMap<(String, String), FunctionId>;

/// An import of the harness that stays one.
fn imported(module: &mut Module, harness: &Module, known: &Known, import: &Import) -> Item {
    let (from, name) = (&*import.module, &*import.name);
    match import.kind {
        ImportKind::Function(id) => {
            let (params, results) = harness.types.params_results(harness.funcs.get(id).ty());
            let ty = module.types.add(params, results);
            let known = known.get(&(from.to_string(), name.to_string())).copied();
            let known = known
                .filter(|id| module.types.params_results(module.funcs.get(*id).ty()) == (params, results));
            Item::Function(known.unwrap_or_else(|| module.add_import_func(from, name, ty).0))
        }
        ImportKind::Global(id) => {
            let global = harness.globals.get(id);
            let (ty, mutable, shared) = (global.ty, global.mutable, global.shared);
            Item::Global(module.add_import_global(from, name, ty, mutable, shared).0)
        }
        ImportKind::Memory(id) => {
            let memory = harness.memories.get(id);
            let (initial, maximum) = (memory.initial, memory.maximum);
            let (long, page) = (memory.memory64, memory.page_size_log2);
            Item::Memory(module.add_import_memory(from, name, false, long, initial, maximum, page).0)
        }
        ImportKind::Table(id) => {
            let table = harness.tables.get(id);
            let (initial, maximum) = (table.initial, table.maximum);
            Item::Table(
                module.add_import_table(from, name, table.table64, initial, maximum, table.element_ty).0,
            )
        }
        ImportKind::Tag(_) => unreachable!("a harness with tags was refused"),
    }
}

/// Makes room for the functions that the harness defines, which name one another.
fn functions(module: &mut Module, harness: &Module, copies: &mut Copies<'_>) -> Vec<(u32, FunctionId)> {
    let mut functions = Vec::new();
    for (index, function) in harness.funcs.iter().enumerate() {
        let FunctionKind::Local(local) = &function.kind else { continue };
        let (params, results) = harness.types.params_results(local.ty());
        let mut builder = FunctionBuilder::new(&mut module.types, params, results);
        builder.func_body().unreachable();
        let args = params.iter().map(|ty| module.locals.add(*ty)).collect();
        let copy = builder.local_func(args);
        let id = module.funcs.add_local(copy);
        module.funcs.get_mut(id).name = function.name.clone();
        copies.functions.insert(function.id(), id);
        functions.push((index as u32, id));
    }
    functions
}

fn globals(module: &mut Module, harness: &Module, copies: &mut Copies<'_>, place: Option<&Place>) {
    let stack: Option<(GlobalId, i32)> = place.and_then(|place| place.stack);
    for global in harness.globals.iter() {
        let GlobalKind::Local(initial) = &global.kind else { continue };
        let initial = match stack {
            Some((pointer, top)) if pointer == global.id() => ConstExpr::Value(Value::I32(top)),
            _ => copies.constant(initial),
        };
        let copy = module.globals.add_local(global.ty, global.mutable, false, initial);
        // The names of the target's tell of the target.
        module.globals.get_mut(copy).name = global.name.as_ref().map(|name| format!("harness:{name}"));
        copies.globals.insert(global.id(), copy);
    }
}

fn tables(module: &mut Module, harness: &Module, copies: &mut Copies<'_>, provided: &Provided) -> Result<()> {
    for table in harness.tables.iter().filter(|table| table.import.is_none()) {
        let init = table.init.as_ref().map(|init| copies.constant(init));
        let (long, initial, maximum) = (table.table64, table.initial, table.maximum);
        let copy = module.tables.add_local_with_init(long, initial, maximum, table.element_ty, init);
        module.tables.get_mut(copy).name.clone_from(&table.name);
        copies.tables.insert(table.id(), copy);
    }
    extend(module, harness, copies, provided)?;
    for element in harness.elements.iter() {
        let kind = match &element.kind {
            ElementKind::Active { table, offset } => {
                ElementKind::Active { table: copies.tables[table], offset: copies.constant(offset) }
            }
            other => other.clone(),
        };
        let items = match &element.items {
            ElementItems::Functions(ids) => {
                ElementItems::Functions(ids.iter().map(|id| copies.functions[id]).collect())
            }
            ElementItems::Expressions(ty, items) => {
                ElementItems::Expressions(*ty, items.iter().map(|item| copies.constant(item)).collect())
            }
        };
        let copy = module.elements.add(kind, items);
        copies.elements.insert(element.id(), copy);
    }
    Ok(())
}

/// Makes the tables of the target that the harness imports as large as both need them.
fn extend(module: &mut Module, harness: &Module, copies: &Copies<'_>, provided: &Provided) -> Result<()> {
    let is_shared = |import: &Option<ImportId>| import.is_some_and(|import| provided.contains_key(&import));
    for table in harness.tables.iter().filter(|table| is_shared(&table.import)) {
        let shared = module.tables.get_mut(copies.tables[&table.id()]);
        let owned = shared.initial;
        let mut wanted = owned.max(table.initial);
        for element in harness.elements.iter() {
            let ElementKind::Active { table: of, offset } = &element.kind else { continue };
            if *of != table.id() {
                continue;
            }
            let ConstExpr::Value(Value::I32(at)) = offset else {
                bail!("the harness has functions in the target's table at a place that is not a constant")
            };
            let at = u64::from(*at as u32);
            ensure!(
                at >= owned,
                "the harness has functions in the target's table from {at} on, of which the first {owned} elements are the \
                 target's; link the harness with -Wl,--table-base={owned}"
            );
            let items = match &element.items {
                ElementItems::Functions(items) => items.len(),
                ElementItems::Expressions(_, items) => items.len(),
            };
            wanted = wanted.max(at + items as u64);
        }
        ensure!(
            wanted <= TABLE_ELEMENTS_MAX,
            "the target and the harness need a table of {wanted} elements, more than {TABLE_ELEMENTS_MAX}"
        );
        shared.initial = wanted;
        shared.maximum = shared.maximum.map(|most| most.max(wanted));
    }
    Ok(())
}

/// What the harness says to Spelunk goes on with what the target says. A line ends where the one ends.
fn sections(module: &mut Module, harness: &Module) {
    let names = ["spelunk:properties", "spelunk:reduction"];
    let said = harness.customs.iter().filter(|(_, section)| names.contains(&section.name()));
    for (_, section) in said {
        let Some(section) = section.as_any().downcast_ref::<RawCustomSection>() else { continue };
        let data = [b"\n", &*section.data].concat();
        module.customs.add(RawCustomSection { name: section.name.clone(), data });
    }
}
