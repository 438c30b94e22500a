//! What answers the functions that a component imports.

use std::sync::Arc;

use anyhow::{Result, bail};
use wasmtime::Caller;

use super::super::host::Host;
use super::interface::{Import, Interface};
use super::stubbed::stubbed;
use super::value::Value;
use super::{guest, wit};
use crate::file::StubImports;

/// What a function returned, where it returns anything.
pub(super) type Answer = Option<Value>;

/// Answers a call.
pub(super) type Provided =
    Arc<dyn Fn(&mut Caller<'_, Host>, Vec<Value>) -> wasmtime::Result<Answer> + Send + Sync>;

/// What answers each import that is a function, by its index.
///
/// # Errors
/// Imports that nothing answers, unless they are to be stubbed.
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
        if stubs == StubImports::None {
            unknown.push(format!("\n  `{within}#{name}`: {}", wit::function(interface, params, *result)));
        }
        all.push(Some(stubbed(interface, index, stubs)));
    }
    if !unknown.is_empty() {
        bail!("the component imports what Spelunk does not provide:{}", unknown.concat());
    }
    Ok(all)
}

/// A resource that the host provides is dropped.
pub(super) fn dropped(
    _interface: &Interface,
    _host: &mut Host,
    _resource: (u32, u32),
) -> wasmtime::Result<()> {
    Ok(())
}
