//! Types as WIT writes them.

use super::interface::{Import, Interface, Sort, Ty, Type};

/// The type of a function: `func(a: u32) -> string`.
pub(super) fn function(interface: &Interface, params: &[(String, Ty)], result: Option<Ty>) -> String {
    let params: Vec<String> =
        params.iter().map(|(name, ty)| format!("{name}: {}", shown(interface, *ty))).collect();
    let result = result.map_or(String::new(), |ty| format!(" -> {}", shown(interface, ty)));
    format!("func({}){result}", params.join(", "))
}

/// A type. What has a name in WIT, and none in a component, is written out.
pub(super) fn shown(interface: &Interface, ty: Ty) -> String {
    let of = |ty: Ty| shown(interface, ty);
    let case = |ty: Option<Ty>| ty.map_or("_".to_string(), of);
    match &interface.types[ty].ty {
        Type::Bool => "bool".to_string(),
        Type::Integer(bytes, is_signed) => {
            format!("{}{}", if *is_signed { "s" } else { "u" }, 8 * u32::from(*bytes))
        }
        Type::F32 => "f32".to_string(),
        Type::F64 => "f64".to_string(),
        Type::Char => "char".to_string(),
        Type::String => "string".to_string(),
        Type::List(ty) => format!("list<{}>", of(*ty)),
        Type::Record(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, ty)| format!("{name}: {}", of(*ty))).collect();
            format!("record {{ {} }}", fields.join(", "))
        }
        Type::Tuple(types) => {
            format!("tuple<{}>", types.iter().map(|ty| of(*ty)).collect::<Vec<_>>().join(", "))
        }
        Type::Variant(Sort::Option, cases) => format!("option<{}>", case(cases[1].1)),
        Type::Variant(Sort::Result, cases) => match (cases[0].1, cases[1].1) {
            (None, None) => "result".to_string(),
            (ok, None) => format!("result<{}>", case(ok)),
            (ok, error) => format!("result<{}, {}>", case(ok), case(error)),
        },
        Type::Variant(Sort::Enum, cases) => {
            let names: Vec<&str> = cases.iter().map(|(name, _)| &**name).collect();
            format!("enum {{ {} }}", names.join(", "))
        }
        Type::Variant(Sort::Variant, cases) => {
            let of_case = |(name, ty): &(String, Option<Ty>)| match ty {
                Some(ty) => format!("{name}({})", of(*ty)),
                None => name.clone(),
            };
            format!("variant {{ {} }}", cases.iter().map(of_case).collect::<Vec<_>>().join(", "))
        }
        Type::Flags(names) => format!("flags {{ {} }}", names.join(", ")),
        Type::Handle(handle, is_own) => {
            let of = interface.handles[*handle as usize];
            let name = of.and_then(|of| interface.resources.get(of.resource as usize));
            let name = name.map_or("resource", |resource| &resource.name);
            if *is_own { name.to_string() } else { format!("borrow<{name}>") }
        }
    }
}

/// The functions that a component imports, and their types.
pub(in super::super) fn imported(interface: &Interface) -> Vec<(String, String)> {
    let functions = interface.imports.iter().filter_map(|import| match import {
        Import::Function { interface: within, name, params, result, .. } => {
            let whole = if within.is_empty() { name.clone() } else { format!("{within}#{name}") };
            Some((whole, function(interface, params, *result)))
        }
        _ => None,
    });
    functions.collect()
}

/// The resources that functions of a component return.
pub(in super::super) fn resources(interface: &Interface) -> Vec<String> {
    let mut returned = Vec::new();
    for function in &interface.functions {
        function.result.iter().for_each(|ty| interface.types.owned(*ty, &interface.handles, &mut returned));
    }
    returned.into_iter().map(|resource| interface.resources[resource as usize].name.clone()).collect()
}
