//! What answers the functions that a component imports.

use std::sync::Arc;

use anyhow::{Result, bail};
use wasmtime::Caller;

use super::super::host::Host;
use super::interface::{Import, Interface, Sort, Ty, Type};
use super::value::Value;
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
    for import in &interface.imports {
        let Import::Function { interface: within, name, result, .. } = import else {
            all.push(None);
            continue;
        };
        if stubs == StubImports::None {
            unknown.push(format!("\n  `{within}#{name}`"));
        }
        all.push(Some(stub(interface, *result)));
    }
    if !unknown.is_empty() {
        bail!("the component imports what Spelunk does not provide:{}", unknown.concat());
    }
    Ok(all)
}

/// Returns the simplest value.
fn stub(interface: &Arc<Interface>, result: Option<Ty>) -> Provided {
    let value = result.map(|ty| simplest(interface, ty));
    Arc::new(move |_, _| Ok(value.clone()))
}

/// The value of a type that is zero, or empty, or the first case.
fn simplest(interface: &Interface, ty: Ty) -> Value {
    match &interface.types[ty].ty {
        Type::Bool => Value::Bool(false),
        Type::Integer(_, true) => Value::Signed(0),
        Type::Integer(_, false) => Value::Unsigned(0),
        Type::F32 => Value::F32(0),
        Type::F64 => Value::F64(0),
        Type::Char => Value::Char('\0'),
        Type::String => Value::text(""),
        Type::List(element) if interface.types[*element].ty == Type::Integer(1, false) => {
            Value::Bytes(Vec::new())
        }
        Type::List(_) => Value::List(Vec::new()),
        Type::Record(fields) => {
            Value::Record(fields.iter().map(|(_, ty)| simplest(interface, *ty)).collect())
        }
        Type::Tuple(types) => Value::Record(types.iter().map(|ty| simplest(interface, *ty)).collect()),
        Type::Variant(sort, cases) => {
            let case = usize::from(*sort == Sort::Option && cases.len() < 2);
            let payload = cases[case].1.map(|ty| Box::new(simplest(interface, ty)));
            Value::Variant(case as u32, payload)
        }
        Type::Flags(_) => Value::Flags(0),
        Type::Handle(..) => Value::Handle(0),
    }
}

/// A resource that the host provides is dropped.
pub(super) fn dropped(
    _interface: &Interface,
    _host: &mut Host,
    _resource: (u32, u32),
) -> wasmtime::Result<()> {
    Ok(())
}
