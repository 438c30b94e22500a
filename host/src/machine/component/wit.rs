//! Types as WIT writes them, those that have names by what they are made of.

use super::interface::{Import, Interface, Sort, Ty, Type};

/// Bytes of the text of a type, of those that are shown.
const TEXT_MAX: usize = 4096;

/// `func(key: string) -> option<list<u8>>`. A long one ends in `…`.
pub(in super::super) fn function(
    interface: &Interface,
    params: &[(String, Ty)],
    result: Option<Ty>,
) -> String {
    let mut text = "func(".to_string();
    named(interface, params.iter().map(|(name, ty)| (name, Some(*ty))), ": ", "", &mut text);
    text += ")";
    if let Some(ty) = result {
        text += " -> ";
        shown(interface, ty, &mut text);
    }
    cut(text)
}

/// `option<list<u8>>`. A long one ends in `…`.
pub(super) fn value(interface: &Interface, ty: Ty) -> String {
    let mut text = String::new();
    shown(interface, ty, &mut text);
    cut(text)
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_MAX {
        text.truncate(text.floor_char_boundary(TEXT_MAX));
        text += " …";
    }
    text
}

/// Names with their types, where they have any, between two marks.
fn named<'n>(
    interface: &Interface,
    list: impl Iterator<Item = (&'n String, Option<Ty>)>,
    before: &str,
    after: &str,
    text: &mut String,
) {
    for (index, (name, ty)) in list.enumerate() {
        if text.len() > TEXT_MAX {
            return;
        }
        *text += if index > 0 { ", " } else { "" };
        *text += name;
        if let Some(ty) = ty {
            *text += before;
            shown(interface, ty, text);
            *text += after;
        }
    }
}

fn list(interface: &Interface, types: impl Iterator<Item = Option<Ty>>, text: &mut String) {
    for (index, ty) in types.enumerate() {
        if text.len() > TEXT_MAX {
            return;
        }
        *text += if index > 0 { ", " } else { "" };
        match ty {
            Some(ty) => shown(interface, ty, text),
            None => *text += "_",
        }
    }
}

fn shown(interface: &Interface, ty: Ty, text: &mut String) {
    if text.len() > TEXT_MAX {
        return;
    }
    match &interface.types[ty].ty {
        Type::Bool => *text += "bool",
        Type::Integer(bytes, is_signed) => {
            *text += &format!("{}{}", if *is_signed { "s" } else { "u" }, 8 * u32::from(*bytes));
        }
        Type::F32 => *text += "f32",
        Type::F64 => *text += "f64",
        Type::Char => *text += "char",
        Type::String => *text += "string",
        Type::List(element) => {
            *text += "list<";
            shown(interface, *element, text);
            *text += ">";
        }
        Type::Record(fields) => {
            *text += "record { ";
            named(interface, fields.iter().map(|(name, ty)| (name, Some(*ty))), ": ", "", text);
            *text += " }";
        }
        Type::Tuple(types) => {
            *text += "tuple<";
            list(interface, types.iter().map(|ty| Some(*ty)), text);
            *text += ">";
        }
        Type::Variant(sort, cases) => with_cases(interface, *sort, cases, text),
        Type::Flags(names) => *text += &format!("flags {{ {} }}", names.join(", ")),
        Type::Handle(handle, is_own) => {
            let of = interface.handles.get(*handle as usize).copied().flatten();
            let resource = of.and_then(|of| interface.resources.get(of.resource as usize));
            let name = resource.map_or("resource", |resource| &resource.name);
            *text += &if *is_own { name.to_string() } else { format!("borrow<{name}>") };
        }
    }
}

fn with_cases(interface: &Interface, sort: Sort, cases: &[(String, Option<Ty>)], text: &mut String) {
    let types = || cases.iter().map(|(_, ty)| *ty);
    match sort {
        Sort::Variant | Sort::Enum => {
            *text += if sort == Sort::Enum { "enum { " } else { "variant { " };
            named(interface, cases.iter().map(|(name, ty)| (name, *ty)), "(", ")", text);
            *text += " }";
        }
        Sort::Option => {
            *text += "option<";
            list(interface, types().skip(1), text);
            *text += ">";
        }
        Sort::Result if types().all(|ty| ty.is_none()) => *text += "result",
        Sort::Result => {
            let ends = if types().nth(1).flatten().is_none() { 1 } else { 2 };
            *text += "result<";
            list(interface, types().take(ends), text);
            *text += ">";
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
