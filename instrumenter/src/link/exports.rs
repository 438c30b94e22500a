//! What a linked module exports, and what is called of it first.

use super::copy::Copies;
use super::is_local;
use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use std::mem::discriminant;
use walrus::{ExportId, ExportItem, FunctionBuilder, FunctionId, Module, ModuleExports};

/// Readies a module before anything else is called.
const INITIALIZE: &str = "_initialize";
/// Runs the constructors, in a module that exports no [`INITIALIZE`].
const CONSTRUCT: &str = "__wasm_call_ctors";
/// Runs a program.
const START: &str = "_start";

/// Gives functions that have no name that of their export, which they may lose.
pub(super) fn name(module: &mut Module) {
    let exports = module.exports.iter().filter_map(|export| match export.item {
        ExportItem::Function(id) => Some((id, export.name.clone())),
        _ => None,
    });
    let exports: Vec<_> = exports.collect();
    for (id, name) in exports {
        if is_local(module, id) {
            module.funcs.get_mut(id).name.get_or_insert(name);
        }
    }
}

/// The exports of the target, by name.
type Known = BTreeMap<String, (ExportItem, ExportId)>;

/// Adds the exports of the harness, and leaves those of the target that mean nothing to the host.
pub(super) fn merge(
    module: &mut Module,
    harness: &Module,
    copies: &Copies<'_>,
    has_meaning: &dyn Fn(&str) -> bool,
) -> Result<()> {
    ensure!(
        function(&harness.exports, START).is_none(),
        "the harness is a program (it exports `{START}`); build it as a library: with clang -mexec-model=reactor or \
         -nostartfiles -Wl,--no-entry, with zig -fno-entry"
    );
    let has = |name: &str| harness.exports.iter().any(|export| export.name == name);
    ensure!(
        !has(INITIALIZE) || function(&harness.exports, INITIALIZE).is_some_and(|id| is_nullary(harness, id)),
        "the harness exports `{INITIALIZE}`, which must be a function that takes and returns nothing"
    );
    let readied = [readies(module), readies(harness).map(|id| copies.functions[&id])];
    let started = harness.start.map(|id| copies.functions[&id]);
    let means = |name: &str| has_meaning(name) || [START, INITIALIZE].contains(&name);
    let functions = module.exports.iter().filter(|export| matches!(export.item, ExportItem::Function(_)));
    let lost: Vec<_> = functions.filter(|export| means(&export.name)).map(|export| export.id()).collect();
    lost.into_iter().for_each(|id| module.exports.delete(id));
    let known = module.exports.iter().map(|export| (export.name.clone(), (export.item, export.id())));
    let known: Known = known.collect();
    for export in harness.exports.iter().filter(|export| export.name != INITIALIZE) {
        let item = match export.item {
            ExportItem::Function(id) => ExportItem::Function(copies.functions[&id]),
            ExportItem::Table(id) => ExportItem::Table(copies.tables[&id]),
            ExportItem::Memory(id) => ExportItem::Memory(copies.memories[&id]),
            ExportItem::Global(id) => ExportItem::Global(copies.globals[&id]),
            ExportItem::Tag(_) => continue,
        };
        add(module, &known, &export.name, item)?;
    }
    initialize(module, readied[0], started, readied[1]);
    Ok(())
}

/// What linkers say of the layout of memory is said of the target, whose memory it is.
fn add(module: &mut Module, known: &Known, name: &str, item: ExportItem) -> Result<()> {
    if let Some((known, id)) = known.get(name) {
        ensure!(
            discriminant(known) == discriminant(&item),
            "the target and the harness both export `{name}`, and not the same kind of thing; rename it in the harness"
        );
        match known {
            ExportItem::Memory(_) => return Ok(()),
            ExportItem::Global(_) | ExportItem::Table(_) if name.starts_with("__") => return Ok(()),
            _ => module.exports.delete(*id),
        }
    }
    module.exports.add(name, item);
    Ok(())
}

/// What readies a module.
fn readies(module: &Module) -> Option<FunctionId> {
    let mut names = [INITIALIZE, CONSTRUCT].into_iter();
    names.find_map(|name| function(&module.exports, name).filter(|id| is_nullary(module, *id)))
}

fn is_nullary(module: &Module, function: FunctionId) -> bool {
    let (params, results) = module.types.params_results(module.funcs.get(function).ty());
    params.is_empty() && results.is_empty()
}

fn function(exports: &ModuleExports, name: &str) -> Option<FunctionId> {
    exports.iter().find_map(|export| match export.item {
        ExportItem::Function(id) if export.name == name => Some(id),
        _ => None,
    })
}

/// The target is ready before the harness is. The start function of the target runs before both.
fn initialize(
    module: &mut Module,
    target: Option<FunctionId>,
    started: Option<FunctionId>,
    harness: Option<FunctionId>,
) {
    let called: Vec<FunctionId> = [target, started, harness].into_iter().flatten().collect();
    let initialize = match called[..] {
        [] => return,
        [only] => only,
        _ => {
            let mut builder = FunctionBuilder::new(&mut module.types, &[], &[]);
            builder.name(INITIALIZE.to_string());
            for id in called {
                builder.func_body().call(id);
            }
            builder.finish(Vec::new(), &mut module.funcs)
        }
    };
    module.exports.add(INITIALIZE, ExportItem::Function(initialize));
}
