//! Imports that nobody provides, answered with values of their types: the simplest, or such as are drawn.

use std::sync::Arc;

use super::draw;
use super::interface::{Import, Interface, Ty, Type};
use super::provided::Provided;
use super::shown::shown;
use super::value::Value;
use crate::file::StubImports;

/// What answers the import with this index.
pub(super) fn stubbed(interface: &Arc<Interface>, index: usize, stubs: StubImports) -> Provided {
    let of = interface.clone();
    Arc::new(move |caller, args| {
        let Import::Function { interface: within, name, params, result, .. } = &of.imports[index] else {
            unreachable!("it is a function")
        };
        let host = caller.data_mut();
        let whole = full(within, name);
        if let Some(effects) = host.step.effects.as_mut().filter(|effects| effects.notes(&whole)) {
            let args: Vec<String> =
                params.iter().zip(&args).map(|((_, ty), value)| shown(&of, *ty, value)).collect();
            effects.call_with_text(&whole, &args.join(", "));
        }
        let answer = match result {
            None => None,
            Some(ty) if stubs == StubImports::Drawn && host.step.may_choose => {
                let mut used = draw::Used { is_import: true, ..draw::Used::default() };
                Some(draw::value(&of, *ty, host, &mut used)?)
            }
            Some(ty) => Some(simplest(&of, *ty)),
        };
        host.step.note(|| {
            let args = params.iter().zip(&args).map(|((_, ty), value)| shown(&of, *ty, value));
            let returned = result.zip(answer.as_ref()).map(|(ty, value)| shown(&of, ty, value));
            let returned = returned.map_or_else(String::new, |value| format!(", which returns {value}"));
            format!("calls {whole}({}){returned}", args.collect::<Vec<_>>().join(", "))
        });
        Ok(answer)
    })
}

pub(super) fn full(interface: &str, name: &str) -> String {
    if interface.is_empty() { name.to_string() } else { format!("{interface}#{name}") }
}

/// The value of a type that is zero, or empty, or the first case.
fn simplest(interface: &Interface, ty: Ty) -> Value {
    let of = |ty: Ty| simplest(interface, ty);
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
        Type::Record(fields) => Value::Record(fields.iter().map(|(_, ty)| of(*ty)).collect()),
        Type::Tuple(types) => Value::Record(types.iter().map(|ty| of(*ty)).collect()),
        Type::Variant(_, cases) => Value::Variant(0, cases[0].1.map(|ty| Box::new(of(ty)))),
        Type::Flags(_) => Value::Flags(0),
        Type::Handle(..) => Value::Handle(0),
    }
}
