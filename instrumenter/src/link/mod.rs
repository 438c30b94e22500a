//! Makes one module of two: a target, and a harness that imports what the target exports.
//!
//! ```wat
//! (module                                  (module
//!   (memory (export "memory") 1)             (import "target" "add" (func $add (param i32)))
//!   (func (export "add") (param i32) ..))    (func (export "rule:add") (call $add (..))))
//!
//! =>  (module
//!       (memory (export "memory") 1)
//!       (func $add (export "add") (param i32) ..)
//!       (func (export "rule:add") (call $add (..))))
//! ```
//!
//! | file | what |
//! |---|---|
//! | `provide` | which item of the target stands for an import of the harness |
//! | `place` | where the harness lies in the memory that both share |
//! | `room` | the target's memory ends where the harness begins |
//! | `copy` | copies functions of one module into another |
//! | `merge` | copies all of the harness |
//! | `exports` | what is exported, and what is called first |
//! | `origins` | from linked code back to the two modules |

mod copy;
mod exports;
mod merge;
mod origins;
mod place;
mod provide;
mod room;
#[cfg(test)]
mod tests;

pub(crate) use copy::Copies;
pub use origins::Origins;

use crate::refuse;
use anyhow::{Context, Result, ensure};
use walrus::{FunctionKind, Module, ModuleTypes, RawCustomSection, TypeId, ValType};

/// Two modules to be linked.
pub struct Parts<'p> {
    pub target: &'p [u8],
    pub harness: &'p [u8],
    /// Whether an export of this name has a meaning, which it has for the harness alone.
    pub has_meaning: &'p dyn Fn(&str) -> bool,
    /// Says which of these names are near to one that is not among them.
    pub nearest: &'p dyn Fn(&str, &[&str]) -> String,
}

/// What they became.
#[derive(Debug)]
pub struct Linked {
    pub wasm: Vec<u8>,
    pub origins: Origins,
}

/// Links a target with a harness.
///
/// Fails, with a message that says what to do, if one of them cannot be instrumented, if the harness imports from `target`
/// what that does not export, or if the two do not fit into one memory.
pub fn link(parts: &Parts<'_>) -> Result<Linked> {
    let mut module = read(parts.target).context("the target cannot be linked")?;
    let harness = read(parts.harness).context("the harness cannot be linked")?;
    check(&harness)?;
    let lengths = parts.target.len().checked_add(parts.harness.len());
    ensure!(
        lengths.is_some_and(|bytes| bytes < u32::MAX as usize),
        "the two modules are too large: they have more than 4 GiB together"
    );
    exports::name(&mut module);
    let targets: Vec<_> = module.funcs.iter().map(|function| function.id()).collect();
    let provided = provide::provide(&module, &harness, parts)?;
    let place = place::place(&module, &harness, &provided)?;
    if let Some(place) = &place {
        room::confine(&mut module, place)?;
    }
    let offset = parts.target.len() as u32;
    let merged = merge::merge(&mut module, &harness, &provided, place.as_ref(), offset)?;
    exports::merge(&mut module, &harness, &merged.copies, parts.has_meaning)?;
    origins::emit(&mut module, &targets, &merged.functions, offset)
}

/// A module that can be instrumented. Its sections of other tools stay as they are, but for those that tell of its code.
fn read(wasm: &[u8]) -> Result<Module> {
    refuse::check(wasm)?;
    // walrus writes a section `producers` of its own.
    let hidden = hidden(wasm, &["producers"]);
    let mut module = crate::parse_with(&hidden, false)?;
    for (_, section) in module.customs.iter_mut() {
        if section.name() == "!roducers"
            && let Some(section) = section.as_any_mut().downcast_mut::<RawCustomSection>()
        {
            section.name = "producers".to_string();
        }
    }
    let is_lost = |name: &str| name.starts_with("reloc.") || ["linking", "sourceMappingURL"].contains(&name);
    let lost: Vec<_> = module.customs.iter().filter(|(_, s)| is_lost(s.name())).map(|(id, _)| id).collect();
    lost.into_iter().for_each(|id| drop(module.customs.delete(id)));
    Ok(module)
}

/// The module with other first letters of the names of these sections, so that they are not understood.
fn hidden(wasm: &[u8], names: &[&str]) -> Vec<u8> {
    let mut copy = wasm.to_vec();
    for payload in wasmparser::Parser::new(0).parse_all(wasm).flatten() {
        if let wasmparser::Payload::CustomSection(section) = payload
            && names.contains(&section.name())
        {
            copy[section.data_offset() - section.name().len()] = b'!';
        }
    }
    copy
}

/// Refuses what of a harness cannot be copied.
fn check(harness: &Module) -> Result<()> {
    ensure!(
        !harness.customs.iter().any(|(_, section)| ["dylink", "dylink.0"].contains(&section.name())),
        "the harness is a shared library, which may be loaded anywhere; link it without -shared and -fPIC, with \
         -Wl,--import-memory and a -Wl,--global-base"
    );
    ensure!(
        harness.tags.iter().next().is_none(),
        "the harness has exceptions of its own, which cannot be linked; compile it without (-fno-exceptions)"
    );
    let is_plain = |ty: &ValType| match ty {
        ValType::Ref(ty) => *ty == walrus::RefType::FUNCREF || *ty == walrus::RefType::EXTERNREF,
        _ => true,
    };
    let is_function = harness.types.iter().all(|ty| match ty.as_function() {
        Some(ty) => ty.params().iter().chain(ty.results()).all(is_plain),
        None => false,
    });
    let locals = harness.globals.iter().map(|global| global.ty);
    let tables = harness.tables.iter().map(|table| ValType::Ref(table.element_ty));
    ensure!(
        is_function && locals.chain(tables).all(|ty| is_plain(&ty)),
        "the harness has types of its own beside functions of numbers, funcref and externref, which cannot be linked; \
         compile it without garbage collection"
    );
    Ok(())
}

/// Parameters and results of a function type, as `a function (i32) -> (i64)`.
fn shown(types: &ModuleTypes, ty: TypeId) -> String {
    let list = |types: &[ValType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (params, results) = types.params_results(ty);
    format!("a function ({}) -> ({})", list(params), list(results))
}

/// Whether a function is one of the module's own, and not imported.
fn is_local(module: &Module, function: walrus::FunctionId) -> bool {
    matches!(module.funcs.get(function).kind, FunctionKind::Local(_))
}
