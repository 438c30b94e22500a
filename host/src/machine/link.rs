//! Gives a module what it imports.

use anyhow::{Result, bail};
use wasmtime::{Error, ExternType, FuncType, ImportType, Instance, Linker, Module, Store};

use super::host::Host;
use super::imports::{MODULE, define};
use super::preview1;

/// Makes every import of `module` available, or says which cannot be.
///
/// # Errors
/// Imports that are not of this ABI, unless they are to be stubbed.
pub(crate) fn link(
    linker: &mut Linker<Host>,
    store: &mut Store<Host>,
    module: &Module,
    stub_imports: bool,
) -> Result<()> {
    define(linker).and_then(|()| preview1::define(linker)).map_err(|e| anyhow::anyhow!("{e:#}"))?;
    let mut unknown = Vec::new();
    for import in module.imports() {
        if is_provided(linker, store, &import) {
            continue;
        }
        let name = import.name();
        let module = import.module();
        if ![MODULE, preview1::MODULE].contains(&module) {
            unknown.push(format!("`{name}` from `{module}`"));
            continue;
        }
        match (known_type(linker, store, (module, name)), import.ty()) {
            (Some(known), ExternType::Func(ty)) => {
                bail!(
                    "the module imports `{name}` from `{module}` as {}; it is {}",
                    shown(&ty),
                    shown(&known)
                )
            }
            (Some(known), _) => bail!("`{name}` from `{module}` is a function, {}", shown(&known)),
            (None, _) => bail!("the module imports `{name}` from `{module}`, which has nothing of that name"),
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    if !stub_imports {
        bail!(
            "the module imports what Spelunk does not provide: {}; build it without them, or pass \
             --stub-imports to have every such function return zero",
            unknown.join(", ")
        );
    }
    stub_memories(linker, store, module)
        .and_then(|()| linker.define_unknown_imports_as_default_values(store, module))
        .map_err(|e| anyhow::anyhow!("an import cannot be stubbed: {e:#}"))
}

/// Imported memories are those of a module made for them, since only a module's own memories can be saved.
fn stub_memories(
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
