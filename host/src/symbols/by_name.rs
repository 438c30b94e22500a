//! What exported functions take, by the name section of a module: linkers write the names of C++ there with the types of the parameters,
//! as `bank::hash(unsigned char const*, unsigned long)`, and others write what the parameters are called.

use std::collections::BTreeMap;

use wasmparser::{FuncType, KnownCustom, Name, Parser, Payload, ValType};

use super::types::{Declared, Type};

/// How a parameter is named that is an address.
const ADDRESSES: [&str; 8] = ["ptr", "pointer", "addr", "address", "buf", "buffer", "this", "self"];
/// Of the functions and parameters of one module.
const NAMES_MAX: usize = 1 << 20;
/// Bytes of a name of C++.
const NAME_MAX: usize = 4096;
/// Addresses of addresses.
const NESTED_MAX: usize = 16;

/// What the names of these functions, by their indices, say of their types. A function that none says anything of is left out.
pub(super) fn by_name(wasm: &[u8], functions: &BTreeMap<u32, &FuncType>) -> BTreeMap<u32, Declared> {
    let mut found = BTreeMap::new();
    let payloads = Parser::new(0).parse_all(wasm).map_while(Result::ok);
    let sections = payloads.filter_map(|payload| match payload {
        Payload::CustomSection(section) => match section.as_known() {
            KnownCustom::Name(names) => Some(names),
            _ => None,
        },
        _ => None,
    });
    for names in sections.flat_map(|names| names.into_iter().map_while(Result::ok)) {
        match names {
            Name::Function(names) => {
                for naming in names.into_iter().map_while(Result::ok).take(NAMES_MAX) {
                    let Some(ty) = functions.get(&naming.index) else { continue };
                    if let Some(declared) = of_cpp(naming.name, ty) {
                        found.insert(naming.index, declared);
                    }
                }
            }
            Name::Local(names) => {
                for locals in names.into_iter().map_while(Result::ok).take(NAMES_MAX) {
                    let Some(ty) = functions.get(&locals.index) else { continue };
                    let names = locals.names.into_iter().map_while(Result::ok).take(NAMES_MAX);
                    let names = names.map(|naming| (naming.index as usize, naming.name));
                    let named = of_params(names, ty);
                    found.entry(locals.index).or_insert(named);
                }
            }
            _ => {}
        }
    }
    found
}

/// The types that stand in a name of C++; none in that of another language.
fn of_cpp(name: &str, ty: &FuncType) -> Option<Declared> {
    let name = name.strip_suffix(" const").unwrap_or(name);
    let inner = name.strip_suffix(')').filter(|name| name.len() <= NAME_MAX)?;
    let begin = opening(inner)?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_>)]".contains(&byte);
    if !inner[..begin].bytes().next_back().is_some_and(is_word) {
        return None;
    }
    let mut params: Vec<(Option<String>, Type)> = Vec::new();
    for param in split(&inner[begin + 1..]) {
        let ty = read(param, NESTED_MAX);
        // It tells `size_t` from other numbers.
        let is_length =
            param == "unsigned long" && params.iter().any(|(_, ty)| matches!(ty, Type::Pointer(..)));
        params.push((is_length.then(|| "size".to_string()), ty));
    }
    // `this`, or where a structure is returned.
    if params.len() + 1 == ty.params().len() {
        params.insert(0, (None, Type::Pointer(Box::new(Type::Unknown), false)));
    }
    Some(Declared { params, returns: returns(ty) })
}

fn of_params<'n>(names: impl Iterator<Item = (usize, &'n str)>, ty: &FuncType) -> Declared {
    let number = |ty: &ValType| match ty {
        ValType::I32 => Type::Integer(4, true),
        ValType::I64 => Type::Integer(8, true),
        ValType::F32 | ValType::F64 => Type::Float,
        _ => Type::Unknown,
    };
    let mut params: Vec<_> = ty.params().iter().map(|ty| (None, number(ty))).collect();
    for (index, name) in names {
        let Some(param) = params.get_mut(index) else { break };
        let is_address = name.rsplit('_').next().is_some_and(|word| ADDRESSES.contains(&word));
        if is_address && ty.params()[index] == ValType::I32 {
            param.1 = Type::Pointer(Box::new(Type::Void), false);
        }
        param.0 = Some(name.to_string());
    }
    Declared { params, returns: returns(ty) }
}

fn returns(ty: &FuncType) -> Option<Type> {
    (!ty.results().is_empty()).then_some(Type::Unknown)
}

/// Where the parameters begin that end at the end.
fn opening(inner: &str) -> Option<usize> {
    let mut open = 0;
    for (at, byte) in inner.bytes().enumerate().rev() {
        match byte {
            b')' => open += 1,
            b'(' if open == 0 => return Some(at),
            b'(' => open -= 1,
            _ => {}
        }
    }
    None
}

/// The types between commas.
fn split(params: &str) -> Vec<&str> {
    let (mut open, mut start, mut parts) = (0, 0, Vec::new());
    for (at, byte) in params.bytes().enumerate() {
        match byte {
            b'(' | b'<' | b'[' => open += 1,
            b')' | b'>' | b']' => open -= 1,
            b',' if open == 0 => {
                parts.push(params[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = params[start..].trim();
    if !last.is_empty() || !parts.is_empty() {
        parts.push(last);
    }
    parts
}

/// A type as a demangler prints it: `char const*`.
fn read(text: &str, nested: usize) -> Type {
    let text = text.trim_end_matches(" volatile").trim_end_matches(" const");
    if let Some(to) = text.strip_suffix("&&").or_else(|| text.strip_suffix(['*', '&'])) {
        let is_read = to.ends_with(" const");
        let to = if nested == 0 { Type::Unknown } else { read(to, nested - 1) };
        return Type::Pointer(Box::new(to), is_read);
    }
    match text {
        "bool" => Type::Boolean,
        "char" | "signed char" => Type::Letter(true),
        "unsigned char" | "char8_t" | "std::byte" => Type::Integer(1, false),
        "short" => Type::Integer(2, true),
        "unsigned short" | "char16_t" => Type::Integer(2, false),
        "int" | "long" | "wchar_t" => Type::Integer(4, true),
        "unsigned int" | "unsigned long" | "char32_t" => Type::Integer(4, false),
        "long long" => Type::Integer(8, true),
        "unsigned long long" => Type::Integer(8, false),
        "float" | "double" => Type::Float,
        "void" => Type::Void,
        // By value it may be an address too.
        other => Type::Structure(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(to: Type, is_read: bool) -> Type {
        Type::Pointer(Box::new(to), is_read)
    }

    fn types(name: &str, params: usize) -> Option<Vec<Type>> {
        let ty = FuncType::new(vec![ValType::I32; params], []);
        of_cpp(name, &ty).map(|declared| declared.params.into_iter().map(|(_, ty)| ty).collect())
    }

    #[track_caller]
    fn check(name: &str, expected: &[Type]) {
        assert_eq!(types(name, expected.len()).as_deref(), Some(expected));
    }

    #[test]
    fn names_of_cpp_say_what_their_functions_take() {
        let store = || pointer(Type::Structure("Store".into()), false);
        let bytes = || pointer(Type::Integer(1, false), true);
        check("f()", &[]);
        check(
            "put(Store*, char const*, unsigned long)",
            &[store(), pointer(Type::Letter(true), true), Type::Integer(4, false)],
        );
        check("bank::hash(unsigned char const*, int)", &[bytes(), Type::Integer(4, true)]);
        check("f(Store&&, Store&, Store**)", &[store(), store(), pointer(store(), false)]);
        check("f(char const* const)", &[pointer(Type::Letter(true), true)]);
        check("f(std::pair<int, long>*)", &[pointer(Type::Structure("std::pair<int, long>".into()), false)]);
        check("f(void (*)(int, int), bool)", &[Type::Structure("void (*)(int, int)".into()), Type::Boolean]);
        check("L::at(int) const", &[Type::Integer(4, true)]);
        check("L::operator()(int)", &[Type::Integer(4, true)]);
        assert_eq!(types("L::at(int)", 2), Some(vec![pointer(Type::Unknown, false), Type::Integer(4, true)]));
    }

    #[test]
    fn names_of_other_languages_say_nothing() {
        for name in
            ["f", "main.(*Ledger).Post", "~lib/array/Array<i32>#__get", "_ZN3fooEv", ")", "f)", "()", ""]
        {
            assert_eq!(types(name, 1), None, "{name}");
        }
        assert_eq!(types(&format!("f({}*)", "x".repeat(NAME_MAX)), 1), None);
    }

    #[test]
    fn addresses_without_end_are_unknown() {
        let found = types(&format!("f(int{})", "*".repeat(1000)), 1).unwrap();
        let mut ty = &found[0];
        for _ in 0..=NESTED_MAX {
            let Type::Pointer(to, _) = ty else { panic!("{ty:?}") };
            ty = to;
        }
        assert_eq!(*ty, Type::Unknown);
    }
}
