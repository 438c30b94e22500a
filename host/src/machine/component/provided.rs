//! What answers the functions that a component imports.

use std::sync::Arc;

use anyhow::{Result, bail};
use wasmtime::Caller;

use super::super::host::Host;
use super::super::preview2;
use super::interface::{Import, Interface, Resource, Sort, Ty, Type};
use super::stubbed::{full, stubbed};
use super::value::Value;
use super::{guest, wit};
use crate::file::StubImports;
use crate::text::line;

/// What a function returned, where it returns anything.
pub(super) type Answer = Option<Value>;

/// Answers a call.
pub(super) type Provided =
    Arc<dyn Fn(&mut Caller<'_, Host>, Vec<Value>) -> wasmtime::Result<Answer> + Send + Sync>;

/// What answers each import that is a function, by its index.
///
/// # Errors
/// Imports that nothing answers, unless they are to be stubbed; functions of WASI that have other types.
pub(super) fn all(interface: &Arc<Interface>, stubs: StubImports) -> Result<Vec<Option<Provided>>> {
    let (mut all, mut unknown) = (Vec::new(), Vec::new());
    for (index, import) in interface.imports.iter().enumerate() {
        let Import::Function { interface: within, name, params, result, .. } = import else {
            all.push(None);
            continue;
        };
        if let Some(provided) = guest::provided(interface, import)? {
            all.push(Some(provided));
            continue;
        }
        let shown = full(within, name);
        let ty = wit::function(interface, params, *result);
        let provided: Provided = match preview2::function(within, name, &ty)? {
            Some(known) => Arc::new(move |caller, values| known.call(caller, values)),
            None if stubs == StubImports::None && preview2::is_network(within) => {
                unsupported(interface, shown, *result)
            }
            None => {
                unknown.push(format!("\n  `{}`, `{}`", line(&shown), line(&ty)));
                stubbed(interface, index, stubs)
            }
        };
        all.push(Some(provided));
    }
    if !unknown.is_empty() && stubs == StubImports::None {
        bail!(
            "the component imports what Spelunk does not provide:{}\nbuild it without them, name a component that exports them \
             with --compose, or pass --stub-imports to have such functions return the simplest value of their type, or \
             --stub-imports=drawn to have them return drawn values",
            unknown.concat()
        );
    }
    Ok(all)
}

/// Whether the component imports a function of WASI, which is one of a virtual system.
pub(in super::super) fn imports_system(interface: &Interface) -> bool {
    interface.imports.iter().any(|import| match import {
        Import::Function { interface, .. } => preview2::interface(interface).is_some(),
        _ => false,
    })
}

/// Returns the error that says that there is no network, and fails where its type has none.
fn unsupported(interface: &Interface, name: String, result: Option<Ty>) -> Provided {
    let refusal = result.and_then(|ty| match &interface.types[ty].ty {
        Type::Variant(Sort::Result, cases) => cases.get(1)?.1,
        _ => None,
    });
    let case = refusal.and_then(|error| match &interface.types[error].ty {
        Type::Variant(_, cases) => preview2::REFUSALS
            .iter()
            .find_map(|name| cases.iter().position(|(case, ty)| case == name && ty.is_none())),
        _ => None,
    });
    let value = case.map(|case| {
        let error = Value::Variant(case as u32, None);
        Value::Variant(1, Some(Box::new(error)))
    });
    Arc::new(move |_, _| match &value {
        Some(value) => Ok(Some(value.clone())),
        None => preview2::unsupported(&name),
    })
}

/// A resource that the host provides is dropped.
pub(super) fn dropped(
    interface: &Interface,
    host: &mut Host,
    (resource, rep): (u32, u32),
) -> wasmtime::Result<()> {
    let resource = interface.resources.get(resource as usize);
    if let Some(Resource { name, imported: Some(within), .. }) = resource
        && preview2::interface(within).is_some()
    {
        preview2::dropped(host, name, rep);
    }
    Ok(())
}
