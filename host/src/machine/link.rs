//! Gives a module what it imports: from Spelunk, from WASI, what its toolchain expects, or stubs.

use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use wasmtime::{
    Caller, Error, Extern, ExternType, Func, FuncType, ImportType, Instance, Linker, Module, Store, Val,
    ValType,
};

use super::component::{self, Interface};
use super::emscripten::linking::{Dynamic, define_tables, global, is_table, tag};
use super::emscripten::names::known_as;
use super::host::Host;
use super::imports::{MODULE, choose, define};
use super::{emscripten, lens, preview1, toolchains};
use crate::choice::{Kind, Value};
use crate::file::{DRAWN, StubImports, ZERO};

/// Makes every import of `module` available but memories and tables, or says which cannot be.
///
/// # Errors
/// Imports that nobody provides, unless they are to be stubbed.
pub(crate) fn link(
    linker: &mut Linker<Host>,
    store: &mut Store<Host>,
    module: &Module,
    (stubs, interface): (StubImports, Option<&Arc<Interface>>),
    dynamic: Option<&Dynamic>,
) -> Result<()> {
    lens::define(linker).map_err(|e| anyhow::anyhow!("{e:#}"))?;
    if let Some(interface) = interface {
        return component::define(linker, store, module, interface, stubs);
    }
    define(linker).and_then(|()| preview1::define(linker)).map_err(|e| anyhow::anyhow!("{e:#}"))?;
    let mut unknown = Vec::new();
    for import in module.imports() {
        let (from, name) = known_as(&import);
        if [ZERO, DRAWN].contains(&from) {
            stub(linker, store, &import, from == DRAWN)?;
            continue;
        }
        if is_provided(linker, store, &import) {
            let wasi = linker.get_by_import(&mut *store, &import).and_then(Extern::into_func);
            if from == preview1::MODULE
                && let Some(func) = wasi.and_then(|wasi| emscripten::in_place_of(store, module, name, wasi))
            {
                define_one(linker, store, &import, func)?;
            }
            continue;
        }
        if let Some(item) = answer(linker, store, module, &import, dynamic) {
            item.map_or(Ok(()), |item| define_one(linker, store, &import, item))?;
            continue;
        }
        match from {
            MODULE | preview1::MODULE => return Err(unfit(linker, store, &import)),
            _ => unknown.push(import),
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    if stubs == StubImports::None {
        bail!("{}", refusal(&unknown));
    }
    unknown.iter().try_for_each(|import| stub(linker, store, import, stubs == StubImports::Drawn))
}

/// What to say of an import from a module of ours that has nothing like it.
fn unfit(linker: &Linker<Host>, store: &mut Store<Host>, import: &ImportType<'_>) -> anyhow::Error {
    let (from, name) = known_as(import);
    match (known_type(linker, store, (from, name)), import.ty()) {
        (Some(known), ExternType::Func(ty)) => {
            anyhow!("the module imports `{name}` from `{from}` as {}; it is {}", shown(&ty), shown(&known))
        }
        (Some(known), _) => anyhow!("`{name}` from `{from}` is a function, {}", shown(&known)),
        (None, _) => anyhow!("the module imports `{name}` from `{from}`, which has nothing of that name"),
    }
}

/// Makes the memories and tables that `module` imports, and stubs of what nobody provides.
///
/// # Errors
/// They have no room; what cannot be stubbed.
pub(crate) fn define_spaces(
    linker: &mut Linker<Host>,
    store: &mut Store<Host>,
    module: &Module,
    dynamic: Option<&Dynamic>,
) -> wasmtime::Result<()> {
    define_memories(linker, store, module)?;
    define_tables(linker, store, module, dynamic)?;
    linker.define_unknown_imports_as_default_values(store, module)
}

/// What an import is answered with, by the name that it is known under: a function, a global or a tag. What is answered with
/// nothing here is a memory or a table, which [`define_spaces`] makes.
fn answer(
    linker: &Linker<Host>,
    store: &mut Store<Host>,
    module: &Module,
    import: &ImportType<'_>,
    dynamic: Option<&Dynamic>,
) -> Option<Option<Extern>> {
    let (from, name) = known_as(import);
    let of_wasi = from == preview1::MODULE;
    if from == MODULE || of_wasi && import.ty().func().is_none() {
        return None;
    }
    let item = match import.ty() {
        ExternType::Memory(_) => return Some(None),
        ExternType::Table(ty) => return is_table(name, &ty).then_some(None),
        ExternType::Global(ty) => global(store, module, dynamic, (from, name), &ty)?.into(),
        ExternType::Tag(ty) => tag(store, name, &ty)?.into(),
        ExternType::Func(ty) => {
            let mut found =
                if from == toolchains::MODULE { toolchains::provided(store, name, &ty) } else { None };
            if !of_wasi {
                found = found.or_else(|| emscripten::provided(store, module, name, &ty));
            }
            if found.is_none() {
                let func = linker.get(&mut *store, preview1::MODULE, name).ok()?.into_func()?;
                found = emscripten::fitted(store, func, &ty);
            }
            found?.into()
        }
    };
    Some(Some(item))
}

fn define_one(
    linker: &mut Linker<Host>,
    store: &Store<Host>,
    import: &ImportType<'_>,
    item: impl Into<Extern>,
) -> Result<()> {
    let (module, name) = (import.module(), import.name());
    // A module may import one thing twice.
    linker.allow_shadowing(true);
    linker.define(store, module, name, item).map_err(|e| anyhow::anyhow!("{e:#}"))?;
    linker.allow_shadowing(false);
    Ok(())
}

/// What to say of imports that nobody provides, a line each.
fn refusal(unknown: &[ImportType<'_>]) -> String {
    let line = |import: &ImportType<'_>| {
        let what = match import.ty() {
            ExternType::Func(ty) => format!("a function {}", shown(&ty)),
            ExternType::Global(ty) => format!("a global {}", ty.content()),
            ExternType::Memory(_) => "a memory".to_string(),
            ExternType::Table(_) => "a table".to_string(),
            ExternType::Tag(_) => "a tag".to_string(),
        };
        format!("\n  `{}` from `{}`, {what}", import.name(), import.module())
    };
    let lines: String = unknown.iter().map(line).collect();
    let is_old = unknown.iter().any(|import| import.module() == "wasi_unstable");
    let advice = match is_old {
        true => "build it for WASI preview 1 (`wasi_snapshot_preview1`)",
        false => "build it without them",
    };
    format!(
        "the module imports what Spelunk does not provide:{lines}\n{advice}, or pass --stub-imports to have such functions \
         return zero, or --stub-imports=drawn to have them return drawn values"
    )
}

/// Has a function return values that are drawn, or zero, which it does too where nothing may be drawn. Its calls are noted where
/// they are to be compared.
fn stub(
    linker: &mut Linker<Host>,
    store: &mut Store<Host>,
    import: &ImportType<'_>,
    is_drawn: bool,
) -> Result<()> {
    let ExternType::Func(ty) = import.ty() else { return Ok(()) };
    let types: Option<Vec<Val>> = ty.results().map(|ty| Val::default_for_ty(&ty)).collect();
    let is_noted = store.data().step.effects.as_ref().is_some_and(|effects| effects.notes(import.name()));
    let is_needed = |types: &Vec<Val>| is_noted || is_drawn && !types.is_empty();
    let Some(defaults) = types.filter(is_needed) else { return Ok(()) };
    let kinds: Vec<Option<Kind>> = ty.results().map(|ty| drawn_kind(&ty).filter(|_| is_drawn)).collect();
    let name: Arc<str> = import.name().into();
    let func = Func::new(&mut *store, ty, move |mut caller: Caller<'_, Host>, args, results| {
        results.copy_from_slice(&defaults);
        if let Some(effects) = caller.data_mut().step.effects.as_mut().filter(|_| is_noted) {
            effects.call(&name, args);
        }
        for (result, kind) in results.iter_mut().zip(&kinds) {
            let Some(kind) = kind.filter(|_| caller.data().step.may_choose) else { continue };
            let value = choose(&mut caller, kind)?.clone();
            caller.data_mut().step.drew(&name, &value);
            *result = drawn(result, &value);
        }
        Ok(())
    });
    define_one(linker, store, import, func)
}

/// What was drawn, as a value of the type that `like` has.
pub(super) fn drawn(like: &Val, value: &Value) -> Val {
    match (like, value) {
        (Val::I32(_), Value::Integer(v)) => Val::I32(*v as i32),
        (Val::I64(_), Value::Integer(v)) => Val::I64(*v),
        (Val::F32(_), Value::Float(v)) => Val::F32((*v as f32).to_bits()),
        (Val::F64(_), Value::Float(v)) => Val::F64(v.to_bits()),
        (like, value) => unreachable!("{value:?} answers {like:?}"),
    }
}

/// What is drawn for a value of this type.
pub(super) fn drawn_kind(ty: &ValType) -> Option<Kind> {
    Some(match ty {
        ValType::I32 => Kind::Integer { min: i32::MIN.into(), max: i32::MAX.into(), simplest: 0 },
        ValType::I64 => Kind::Integer { min: i64::MIN, max: i64::MAX, simplest: 0 },
        ValType::F32 | ValType::F64 => {
            Kind::Float { min: f64::NEG_INFINITY, max: f64::INFINITY, nan: true, infinite: true }
        }
        ValType::V128 | ValType::Ref(_) => return None,
    })
}

/// Imported memories are those of a module made for them, since only a module's own memories can be saved.
fn define_memories(
    linker: &mut Linker<Host>,
    store: &mut Store<Host>,
    module: &Module,
) -> wasmtime::Result<()> {
    for import in module.imports() {
        let ExternType::Memory(ty) = import.ty() else { continue };
        let index = if ty.is_64() { "i64" } else { "" };
        let max = ty.maximum().map(|max| max.to_string()).unwrap_or_default();
        let text = format!(r#"(module (memory (export "") {index} {} {max}))"#, ty.minimum());
        let maker = Module::new(module.engine(), wat::parse_str(text).map_err(Error::from)?)?;
        let memory = Instance::new(&mut *store, &maker, &[])?.get_memory(&mut *store, "");
        if let Some(memory) = memory {
            linker.define(&*store, import.module(), import.name(), memory)?;
        }
    }
    Ok(())
}

/// Whether the ABI has this import, with this type.
fn is_provided(linker: &Linker<Host>, store: &mut Store<Host>, import: &ImportType<'_>) -> bool {
    let provided = linker.get_by_import(&mut *store, import).map(|item| item.ty(&*store));
    match (provided, import.ty()) {
        (Some(ExternType::Func(provided)), ExternType::Func(wanted)) => FuncType::eq(&provided, &wanted),
        _ => false,
    }
}

/// The type that an import has, where there is one of that name.
fn known_type(
    linker: &Linker<Host>,
    store: &mut Store<Host>,
    (module, name): (&str, &str),
) -> Option<FuncType> {
    let func = linker.get(&mut *store, module, name).ok()?.into_func()?;
    Some(func.ty(&*store))
}

/// A function type as `(i32, i32) -> i64`.
pub(super) fn shown(ty: &FuncType) -> String {
    let list = |types: Vec<String>| match &types[..] {
        [one] => one.clone(),
        many => format!("({})", many.join(", ")),
    };
    let params: Vec<String> = ty.params().map(|ty| ty.to_string()).collect();
    format!("({}) -> {}", params.join(", "), list(ty.results().map(|ty| ty.to_string()).collect()))
}
