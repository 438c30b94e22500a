//! What a module that may be loaded anywhere is given: memory, a table, and where in them it lies.
//!
//! Its section `dylink.0` says how much it needs. It is laid out as Emscripten lays out a main module:
//!
//! | bytes | what |
//! |---|---|
//! | from 1,024 | its data, `__memory_base` |
//! | behind, from `__stack_low` | 64 KiB of stack, which begins at `__stack_high` |
//! | behind, from `__heap_base` | the heap |
//!
//! The elements of the table from 1, `__table_base`, are its own; behind them stand functions whose addresses it asks for.

use std::collections::BTreeMap;

use spelunk_instrumenter::{Obstacle, StateLayout};
use wasmparser::{Dylink0Subsection, ExternalKind, KnownCustom, Operator, Parser, Payload};
use wasmtime::{
    ExternType, Global, GlobalType, Instance, Linker, Module, Ref, Store, Table, TableType, Tag, Val,
};

use super::super::host::Host;
use super::names::known_as;

/// Where data may begin: what lies below is for null pointers.
const DATA_FIRST: u32 = 1024;
const STACK_BYTES: u32 = 64 << 10;
const STACK_ALIGN: u32 = 16;
/// The first element of a table stands for no function.
const TABLE_FIRST: u32 = 1;

/// The table of functions that addresses in C stand for.
pub(in crate::machine) const TABLE: &str = "__indirect_function_table";
/// The modules that addresses of data and of functions are imported from.
const DATA_ADDRESSES: &str = "GOT.mem";
const FUNCTION_ADDRESSES: &str = "GOT.func";

/// What a module that may be loaded anywhere says of itself.
#[derive(Default)]
pub(in crate::machine) struct Dynamic {
    base: u32,
    stack_low: u32,
    /// Elements of the table that are its own, from [`TABLE_FIRST`].
    elements: u32,
    /// What it exports of data, and where that lies in its own.
    data: BTreeMap<String, u32>,
}

impl Dynamic {
    /// Reads it off a module; `None` of one that lies where it was put.
    pub(in crate::machine) fn of(wasm: &[u8]) -> Option<Dynamic> {
        let mut needed = None;
        let (mut globals, mut exported, mut imported) = (Vec::new(), Vec::new(), 0);
        for payload in Parser::new(0).parse_all(wasm).filter_map(Result::ok) {
            match payload {
                Payload::CustomSection(section) => {
                    if let KnownCustom::Dylink0(parts) = section.as_known() {
                        for part in parts.into_iter().filter_map(Result::ok) {
                            if let Dylink0Subsection::MemInfo(info) = part {
                                needed = Some(info);
                            }
                        }
                    }
                }
                Payload::ImportSection(imports) => {
                    let is_global =
                        |import: &wasmparser::Import<'_>| matches!(import.ty, wasmparser::TypeRef::Global(_));
                    imported +=
                        imports.into_imports().filter_map(Result::ok).filter(is_global).count() as u32;
                }
                Payload::GlobalSection(section) => {
                    globals.extend(section.into_iter().filter_map(Result::ok).map(|global| {
                        match global.init_expr.get_operators_reader().read() {
                            Ok(Operator::I32Const { value }) => Some(value as u32),
                            _ => None,
                        }
                    }));
                }
                Payload::ExportSection(section) => {
                    let exports = section.into_iter().filter_map(Result::ok);
                    exported.extend(exports.filter(|export| export.kind == ExternalKind::Global));
                }
                _ => {}
            }
        }
        let info = needed?;
        let base = DATA_FIRST.checked_next_multiple_of(1u32.checked_shl(info.memory_alignment)?)?;
        let stack_low = base.checked_add(info.memory_size)?.checked_next_multiple_of(STACK_ALIGN)?;
        stack_low.checked_add(STACK_BYTES)?;
        let place = |index: u32| *globals.get(index.checked_sub(imported)? as usize)?;
        let data = exported.iter().filter_map(|export| Some((export.name.to_string(), place(export.index)?)));
        Some(Dynamic { base, stack_low, elements: info.table_size, data: data.collect() })
    }

    /// The number that an imported global has.
    fn number(&self, from: &str, name: &str, functions: &[&str]) -> Option<u32> {
        let stack_high = self.stack_low + STACK_BYTES;
        let address = |name: &str| match name {
            "__stack_low" => Some(self.stack_low),
            "__stack_high" | "__heap_base" => Some(stack_high),
            _ => self.data.get(name).and_then(|at| self.base.checked_add(*at)),
        };
        match from {
            DATA_ADDRESSES => address(name),
            FUNCTION_ADDRESSES => {
                let index = functions.iter().position(|function| *function == name)? as u32;
                self.functions_first()?.checked_add(index)
            }
            _ => match name {
                "__memory_base" => Some(self.base),
                "__table_base" => Some(TABLE_FIRST),
                "__stack_pointer" => Some(stack_high),
                _ => None,
            },
        }
    }

    /// The element of the table behind its own.
    fn functions_first(&self) -> Option<u32> {
        TABLE_FIRST.checked_add(self.elements)
    }
}

/// What no snapshot can hold: a table that the guest writes to, with functions that only the host refers to.
pub(in crate::machine) fn obstacle(wasm: &[u8], layout: &StateLayout) -> Option<Obstacle> {
    if layout.tables.is_empty() || Dynamic::of(wasm).is_none() {
        return None;
    }
    let imports = Parser::new(0).parse_all(wasm).filter_map(Result::ok).filter_map(|payload| match payload {
        Payload::ImportSection(imports) => Some(imports),
        _ => None,
    });
    let mut imports = imports.flat_map(|imports| imports.into_imports().filter_map(Result::ok));
    let asks = imports.any(|import| import.module == FUNCTION_ADDRESSES);
    let what = "a table with functions that the module asks the addresses of, which is written to";
    asks.then(|| Obstacle { what: what.to_string(), function: None, offset: 0 })
}

/// The functions whose addresses a module asks for, and exports itself.
fn functions_of(module: &Module) -> Vec<&str> {
    let mut names: Vec<&str> = module
        .imports()
        .map(|import| known_as(&import))
        .filter(|(from, name)| {
            *from == FUNCTION_ADDRESSES && matches!(module.get_export(name), Some(ExternType::Func(_)))
        })
        .map(|(_, name)| name)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The global that an import of this type is, where it is known. A module of which only the imports are known is asked
/// whether it may have it.
pub(in crate::machine) fn global(
    store: &mut Store<Host>,
    module: &Module,
    dynamic: Option<&Dynamic>,
    (from, name): (&str, &str),
    ty: &GlobalType,
) -> Option<Global> {
    let is_head = module.exports().len() == 0;
    let functions = functions_of(module);
    let number = match dynamic?.number(from, name, &functions) {
        None if is_head && from == FUNCTION_ADDRESSES => Some(0),
        number => number,
    }?;
    if !ty.content().is_i32() {
        return None;
    }
    Global::new(store, GlobalType::new(ty.content().clone(), ty.mutability()), Val::I32(number as i32)).ok()
}

/// Whether an import of this type is a table that a module is given.
pub(in crate::machine) fn is_table(name: &str, ty: &TableType) -> bool {
    name == TABLE && !ty.is_64() && ty.element().is_nullable() && ty.element().heap_type().is_func()
}

/// A tag that exceptions of C++ or `longjmp` have.
pub(in crate::machine) fn tag(store: &mut Store<Host>, name: &str, ty: &wasmtime::TagType) -> Option<Tag> {
    let is_known = ["__cpp_exception", "__c_longjmp"].contains(&name);
    is_known.then(|| Tag::new(store, ty).ok()).flatten()
}

/// Makes the tables that a module imports.
///
/// # Errors
/// More elements than tables may have.
pub(in crate::machine) fn define_tables(
    linker: &mut Linker<Host>,
    store: &mut Store<Host>,
    module: &Module,
    dynamic: Option<&Dynamic>,
) -> wasmtime::Result<()> {
    for import in module.imports() {
        let ExternType::Table(ty) = import.ty() else { continue };
        if !is_table(known_as(&import).1, &ty) {
            continue;
        }
        let asked = functions_of(module).len() as u64;
        let own = dynamic.and_then(Dynamic::functions_first).map_or(0, |first| u64::from(first) + asked);
        let least = ty.minimum().max(own);
        let (Ok(min), max) = (u32::try_from(least), ty.maximum().and_then(|max| u32::try_from(max).ok()))
        else {
            wasmtime::bail!("the table `{}` begins with {least} elements", import.name());
        };
        let table = Table::new(&mut *store, TableType::new(ty.element().clone(), min, max), Ref::Func(None))?;
        store.data_mut().guest.table = Some(table);
        linker.define(&*store, import.module(), import.name(), table)?;
    }
    Ok(())
}

/// Puts the functions whose addresses a module asked for into its table.
///
/// # Errors
/// The table is smaller than when it was made.
pub(in crate::machine) fn enter_functions(
    instance: Instance,
    store: &mut Store<Host>,
    module: &Module,
    dynamic: Option<&Dynamic>,
) -> wasmtime::Result<()> {
    let functions = functions_of(module);
    let (Some(first), Some(table)) = (dynamic.and_then(Dynamic::functions_first), store.data().guest.table)
    else {
        return Ok(());
    };
    for (index, name) in (u64::from(first)..).zip(functions) {
        let function = instance.get_func(&mut *store, name);
        table.set(&mut *store, index, Ref::Func(function))?;
    }
    Ok(())
}
