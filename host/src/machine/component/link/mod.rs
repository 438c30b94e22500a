//! Makes one core module of a component: what its instances are made of, one behind the other, and for each thing that the
//! component model has them import a function of the host's.
//!
//! What is left of the component is its [`Interface`], which says what the functions take and return. What cannot be linked is
//! refused by its name.

mod code;
mod describe;
mod kept;
mod merge;
mod order;

use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Result, anyhow, bail, ensure};
use wasmparser::{Validator, WasmFeatures};
use wasmtime_environ::component::{
    Component, ComponentTranslation, ComponentTypes, ComponentTypesBuilder, CoreDef, Export,
    GlobalInitializer, InstantiateModule, StaticModuleIndex, Translator,
};
use wasmtime_environ::{ModuleTranslation, PrimaryMap, ScopeVec, Tunables};

use super::interface::Interface;
use crate::text::line;
use spelunk_instrumenter::Origins;

/// The core module that a component became.
#[derive(Debug, PartialEq)]
pub(crate) struct Linked {
    pub(crate) wasm: Vec<u8>,
    pub(crate) interface: Interface,
    pub(crate) origins: Origins,
    /// The modules that it was made of, as [`Origins`] numbers them.
    pub(crate) modules: Vec<Vec<u8>>,
}

pub(super) use merge::{MODULE, export_name};

/// Bytes of code that all instances may have together, which may be of one module.
const CODE_BYTES_MAX: usize = 256 << 20;

type Modules<'data> = PrimaryMap<StaticModuleIndex, ModuleTranslation<'data>>;

/// Links a component.
///
/// # Errors
/// A component that is not valid, or that has what cannot be linked.
pub(crate) fn link(bytes: &[u8]) -> Result<Linked> {
    // What it panics at, it was given.
    let linked = catch_unwind(AssertUnwindSafe(|| translated(bytes)));
    linked.unwrap_or_else(|_| bail!("the component cannot be read: it makes the reader fail"))
}

fn translated(bytes: &[u8]) -> Result<Linked> {
    // With exceptions, what goes between instances would catch them, though none is ever thrown.
    translated_with(bytes, WasmFeatures::empty()).or_else(|error| {
        match translated_with(bytes, WasmFeatures::EXCEPTIONS) {
            Ok(linked) => Ok(linked),
            Err(_) => Err(error),
        }
    })
}

fn translated_with(bytes: &[u8], more: WasmFeatures) -> Result<Linked> {
    let mut tunables = Tunables::default_host();
    tunables.concurrency_support = false;
    // Async functions, streams, threads, maps and lists of a fixed length are refused by the validator.
    let left_out = WasmFeatures::CM_ASYNC
        | WasmFeatures::EXCEPTIONS
        | WasmFeatures::CM_GC
        | WasmFeatures::CM64
        | WasmFeatures::CM_THREADING
        | WasmFeatures::CM_FIXED_LENGTH_LISTS
        | WasmFeatures::SHARED_EVERYTHING_THREADS;
    let features = (WasmFeatures::default() | WasmFeatures::GC).difference(left_out) | more;
    let mut validator = Validator::new_with_features(features);
    let mut builder = ComponentTypesBuilder::new(&validator);
    let adapters = ScopeVec::new();
    let translated = Translator::new(&tunables, &mut validator, &mut builder, &adapters).translate(bytes);
    let (translation, modules) = translated.map_err(|error| anyhow!("{}", line(&format!("{error:#}"))))?;
    let handles = builder.num_resource_tables() as u32;
    let (types, _) = builder.finish(&translation.component);
    let source = Source { translation: &translation, modules: &modules, types: &types, handles };
    source.refuse()?;
    source.validate_functions(features)?;
    let merged = merge::merged(&source)?;
    let interface = describe::interface(&source, &merged)?;
    let parts = merged.parts.iter().map(|module| modules[*module].wasm.to_vec()).collect();
    Ok(Linked { wasm: merged.wasm, interface, origins: merged.origins, modules: parts })
}

/// A component, as it was read.
struct Source<'s, 'data> {
    translation: &'s ComponentTranslation,
    modules: &'s Modules<'data>,
    types: &'s ComponentTypes,
    /// Types of handles.
    handles: u32,
}

impl Source<'_, '_> {
    fn component(&self) -> &Component {
        &self.translation.component
    }

    /// The modules that instances are made of, in order.
    fn instances(&self) -> impl Iterator<Item = StaticModuleIndex> {
        self.component().initializers.iter().filter_map(|initializer| match initializer {
            GlobalInitializer::InstantiateModule(InstantiateModule::Static(module, _), _) => Some(*module),
            _ => None,
        })
    }

    /// The functions that the host calls: what for, and by which index.
    fn called(&self) -> Vec<(&'static str, u32, CoreDef)> {
        let mut called = Vec::new();
        for initializer in &self.component().initializers {
            match initializer {
                GlobalInitializer::ExtractRealloc(realloc) => {
                    called.push(("realloc", realloc.index.as_u32(), realloc.def.clone()));
                }
                GlobalInitializer::ExtractPostReturn(after) => {
                    called.push(("post-return", after.index.as_u32(), after.def.clone()));
                }
                GlobalInitializer::Resource(resource) => {
                    let drop = resource.dtor.iter();
                    called.extend(drop.map(|drop| ("drop", resource.index.as_u32(), drop.clone())));
                }
                _ => {}
            }
        }
        for (index, export) in self.component().export_items.iter() {
            if let Export::LiftedFunction { func, .. } = export {
                called.push(("call", index.as_u32(), func.clone()));
            }
        }
        called
    }

    /// Whether anything looks whether an instance may be left: what it imports, and calls from one to another.
    fn has_flags(&self) -> bool {
        let is_flag = |arg: &CoreDef| matches!(arg, CoreDef::InstanceFlags(_));
        let mut instances =
            self.component().initializers.iter().filter_map(|initializer| match initializer {
                GlobalInitializer::InstantiateModule(InstantiateModule::Static(_, args), _) => Some(args),
                _ => None,
            });
        !self.translation.trampolines.is_empty() || instances.any(|args| args.iter().any(is_flag))
    }

    /// Validates the functions of its modules, which so far nobody looked at. Once they are merged it is too late: what is of one would be
    /// there for all.
    fn validate_functions(&self, features: WasmFeatures) -> Result<()> {
        for (_, module) in self.modules.iter() {
            let valid = Validator::new_with_features(features).validate_all(module.wasm);
            valid.map_err(|error| anyhow!("a module that it has is not valid: {error}"))?;
        }
        Ok(())
    }

    /// Refuses what cannot be linked.
    fn refuse(&self) -> Result<()> {
        let component = self.component();
        for initializer in &component.initializers {
            match initializer {
                GlobalInitializer::InstantiateModule(InstantiateModule::Import(import, _), _) => {
                    let (import, path) = &component.imports[*import];
                    let name = &component.import_types[*import].0;
                    bail!(
                        "the component imports a module, `{}`; only functions, types and instances can be imported",
                        named(name, path)
                    );
                }
                GlobalInitializer::ExtractCallback(_) => bail!("the component exports an async function"),
                GlobalInitializer::ExtractTable(_) => bail!("the component starts threads"),
                _ => {}
            }
        }
        let bytes: usize = self.instances().map(|module| self.modules[module].wasm.len()).sum();
        ensure!(
            bytes <= CODE_BYTES_MAX,
            "the instances of the component have {} MiB of modules together; {} are the most",
            bytes >> 20,
            CODE_BYTES_MAX >> 20
        );
        Ok(())
    }
}

/// An import by the name of what it is in and its own.
fn named(name: &str, path: &[String]) -> String {
    match path {
        [] => name.to_string(),
        path if name.is_empty() => path.join("#"),
        path => format!("{name}#{}", path.join("#")),
    }
}

/// The error of re-encoding a module, which was validated.
fn encoding<E: std::fmt::Debug>(error: wasm_encoder::reencode::Error<E>) -> anyhow::Error {
    anyhow!("a module of the component cannot be written anew: {error:?}")
}
