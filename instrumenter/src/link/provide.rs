//! Which item of the target stands for an import of the harness.

use super::{Parts, shown};
use anyhow::{Result, bail, ensure};
use std::collections::BTreeMap;
use walrus::{
    ExportItem, FunctionId, GlobalId, ImportId, ImportKind, MemoryId, Module, ModuleTypes, TableId, TypeId,
    ValType,
};

/// The module that imports of the target are from.
const TARGET: &str = "target";
/// Modules whose imports are the host's.
const HOST: [&str; 2] = ["spelunk", "wasi_snapshot_preview1"];

/// Something that is exported or imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Function(FunctionId),
    Table(TableId),
    Memory(MemoryId),
    Global(GlobalId),
}

/// By the import of the harness. Those that are not there stay imports.
pub(super) type Provided = BTreeMap<ImportId, Item>;

/// What the target has for each import of the harness.
pub(super) fn provide(target: &Module, harness: &Module, parts: &Parts<'_>) -> Result<Provided> {
    let mut provided = Provided::new();
    let known = Known::of(target);
    for import in harness.imports.iter() {
        let (module, name) = (&*import.module, &*import.name);
        if HOST.contains(&module) {
            continue;
        }
        let Some(wanted) = wanted(&import.kind) else { continue };
        match known.find((module, name), wanted) {
            Some(found) => {
                fits(target, harness, (module, name), found, wanted)?;
                provided.extend(item_of(found).map(|item| (import.id(), item)));
            }
            None if module == TARGET => {
                let names: Vec<&str> = target.exports.iter().map(|export| &*export.name).collect();
                let near = (parts.nearest)(name, &names);
                bail!(
                    "the harness imports `{name}` from `{TARGET}`, which exports nothing of that name; {near}"
                );
            }
            None => {}
        }
    }
    Ok(provided)
}

fn wanted(import: &ImportKind) -> Option<Item> {
    Some(match import {
        ImportKind::Function(id) => Item::Function(*id),
        ImportKind::Table(id) => Item::Table(*id),
        ImportKind::Memory(id) => Item::Memory(*id),
        ImportKind::Global(id) => Item::Global(*id),
        ImportKind::Tag(_) => return None,
    })
}

/// What the target has, by name.
struct Known<'m> {
    exports: BTreeMap<&'m str, ExportItem>,
    imports: BTreeMap<(&'m str, &'m str), &'m ImportKind>,
    only_memory: Option<MemoryId>,
}

impl<'m> Known<'m> {
    fn of(target: &'m Module) -> Known<'m> {
        let imports = target.imports.iter();
        let mut memories = target.memories.iter().map(|memory| memory.id());
        Known {
            exports: target.exports.iter().map(|export| (&*export.name, export.item)).collect(),
            imports: imports.map(|import| ((&*import.module, &*import.name), &import.kind)).collect(),
            only_memory: memories.next().filter(|_| memories.next().is_none()),
        }
    }

    /// What the target exports under this name; what it imports under it and from the same module; of memories, its only one.
    fn find(&self, (module, name): (&str, &str), wanted: Item) -> Option<ExportItem> {
        if let Some(export) = self.exports.get(name) {
            return Some(*export);
        }
        match (self.imports.get(&(module, name)), wanted) {
            (Some(ImportKind::Memory(id)), Item::Memory(_)) => Some(ExportItem::Memory(*id)),
            (Some(ImportKind::Table(id)), Item::Table(_)) => Some(ExportItem::Table(*id)),
            (Some(ImportKind::Global(id)), Item::Global(_)) => Some(ExportItem::Global(*id)),
            (_, Item::Memory(_)) => self.only_memory.map(ExportItem::Memory),
            _ => None,
        }
    }
}

fn item_of(export: ExportItem) -> Option<Item> {
    Some(match export {
        ExportItem::Function(id) => Item::Function(id),
        ExportItem::Table(id) => Item::Table(id),
        ExportItem::Memory(id) => Item::Memory(id),
        ExportItem::Global(id) => Item::Global(id),
        ExportItem::Tag(_) => return None,
    })
}

/// Sizes of memories and tables are looked at later.
fn fits(
    target: &Module,
    harness: &Module,
    (module, name): (&str, &str),
    found: ExportItem,
    wanted: Item,
) -> Result<()> {
    let fits = match (found, wanted) {
        (ExportItem::Function(found), Item::Function(wanted)) => {
            let (found, wanted) = (target.funcs.get(found).ty(), harness.funcs.get(wanted).ty());
            target.types.params_results(found) == harness.types.params_results(wanted)
        }
        (ExportItem::Global(found), Item::Global(wanted)) => {
            let (found, wanted) = (target.globals.get(found), harness.globals.get(wanted));
            (found.ty, found.mutable, found.shared) == (wanted.ty, wanted.mutable, wanted.shared)
        }
        (ExportItem::Table(found), Item::Table(wanted)) => {
            let (found, wanted) = (target.tables.get(found), harness.tables.get(wanted));
            (found.element_ty, found.table64) == (wanted.element_ty, wanted.table64)
        }
        (ExportItem::Memory(found), Item::Memory(wanted)) => {
            let (found, wanted) = (target.memories.get(found), harness.memories.get(wanted));
            ensure!(
                !found.memory64
                    && !wanted.memory64
                    && found.page_size_log2.or(wanted.page_size_log2).is_none(),
                "the target and the harness share the memory `{name}`, which has 64-bit addresses or pages of another size \
                 in one of them; these cannot be linked"
            );
            true
        }
        _ => false,
    };
    ensure!(
        fits,
        "the harness imports `{name}` from `{module}` as {}; the target has {} under this name",
        of_harness(harness, wanted),
        of_target(target, found)
    );
    Ok(())
}

fn of_harness(module: &Module, item: Item) -> String {
    text(module, &module.types, item)
}

fn of_target(module: &Module, item: ExportItem) -> String {
    item_of(item).map_or("a tag".to_string(), |item| text(module, &module.types, item))
}

fn text(module: &Module, types: &ModuleTypes, item: Item) -> String {
    match item {
        Item::Function(id) => function(types, module.funcs.get(id).ty()),
        Item::Memory(_) => "a memory".to_string(),
        Item::Table(id) => format!("a table of {}", ValType::Ref(module.tables.get(id).element_ty)),
        Item::Global(id) => {
            let global = module.globals.get(id);
            format!("a {}global {}", if global.mutable { "mutable " } else { "" }, global.ty)
        }
    }
}

fn function(types: &ModuleTypes, ty: TypeId) -> String {
    shown(types, ty)
}
