//! How the exports of a module are called that nobody wrote down: as their types say, in DWARF or in names.
//!
//! A number that is drawn for an address is an access out of bounds, and no error of the module. So where an exported function
//! takes an address, all of them are called by their types, and what no type explains is not called.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use wasmparser::{CompositeInnerType, ExternalKind, FuncType, Parser, Payload, TypeRef, ValType};

use crate::file::{Buffer, Content, Named, Null, Param, Pool, Returns, Signature, Signatures, What};
use crate::machine::{has_room, is_allocator, is_spelled};
use crate::symbols::{Declared, Type, declared};

/// Bytes and letters of what is drawn.
const BYTES_MAX: u32 = 64;
const LETTERS_MAX: u32 = 32;
/// How a parameter is named that says how long the one before it is.
const LENGTHS: [&str; 8] = ["len", "length", "size", "count", "sz", "n", "num", "bytes"];
/// Handles in a pool.
const HANDLES_MAX: u32 = 16;
/// Bytes of the longest number.
const NUMBER: u32 = 8;
/// How a function is named that takes its handle away.
const ENDS: [&str; 12] = [
    "free", "close", "destroy", "delete", "del", "release", "drop", "dispose", "finalize", "fini", "unref",
    "deinit",
];

/// How a parameter is named that a number is written to.
const OUTS: [&str; 7] = ["out", "result", "ret", "res", "err", "error", "status"];

/// What was guessed.
pub(super) struct Guess {
    pub(super) signatures: Signatures,
    /// Exports that are not called, since a type of theirs does not say how.
    pub(super) left_out: Vec<String>,
    /// Arguments can be put somewhere.
    pub(super) has_room: bool,
}

/// An exported function, and what its source declares.
struct Function<'f> {
    name: &'f str,
    declared: &'f Declared,
    ty: &'f FuncType,
}

impl Function<'_> {
    /// Whether each parameter is passed as one value, and so is the result.
    fn is_plain(&self) -> bool {
        let (declared, passed) = (&self.declared.params, self.ty.params());
        let returns = self.declared.returns.as_slice();
        let returns = if matches!(returns, [Type::Void]) { &[] } else { returns };
        let results = self.ty.results();
        declared.len() == passed.len()
            && declared.iter().zip(passed).all(|((_, ty), passed)| is_passed(ty, *passed))
            && returns.len() == results.len()
            && returns.iter().zip(results).all(|(ty, result)| is_passed(ty, *result))
    }

    /// Whether not every number is a value of each of its parameters.
    fn is_particular(&self) -> bool {
        let is_so = |ty: &Type| match ty {
            Type::Pointer(..) | Type::Boolean | Type::Enumeration(_) | Type::Letter(_) => true,
            Type::Integer(bytes, _) => *bytes < 4,
            _ => false,
        };
        self.declared.params.iter().any(|(_, ty)| is_so(ty))
    }
}

/// How the exports of a module are called, where it says nothing of that, and not every number will do.
pub(super) fn guessed(wasm: &[u8]) -> Option<Guess> {
    let Exports { functions, has_room } = exports(wasm).ok()??;
    let declared = declared(wasm, &functions.iter().map(|(_, index, ty)| (*index, ty)).collect());
    let function = |(name, index, ty)| Some(Function { name, declared: declared.get(index)?, ty });
    let functions = functions.iter().map(|(name, index, ty)| (name.as_str(), index, ty));
    let known: Vec<Function<'_>> = functions.filter_map(function).collect();
    if !known.iter().any(Function::is_particular) {
        return None;
    }
    let library = Library::of(&known, has_room);
    let mut guess = Guess {
        signatures: Signatures { are_all_rules: true, ..Signatures::default() },
        left_out: Vec::new(),
        has_room,
    };
    for function in &known {
        let name = function.name.to_string();
        match library.signature(function) {
            Some(signature) => {
                guess.signatures.rules.push(name.clone());
                guess.signatures.exports.insert(name, signature);
            }
            None => guess.left_out.push(name),
        }
    }
    guess.signatures.except = guess.left_out.clone();
    // An address may be as high as a negative number.
    let pool = |name: &String| (name.clone(), Pool { max: Some(HANDLES_MAX), null: Null::Zero });
    guess.signatures.pools = library.made.iter().map(pool).collect();
    Some(guess)
}

/// The exports of a module.
struct Exports {
    /// Functions whose names say nothing: their names, indices and types.
    functions: Vec<(String, u32, FuncType)>,
    /// Arguments can be put somewhere.
    has_room: bool,
}

/// The types of functions, as they are numbered, and the names of those that are exported.
#[derive(Default)]
struct Listed {
    types: Vec<Option<FuncType>>,
    functions: Vec<u32>,
    exported: Vec<(String, u32)>,
    /// It imports choices, or exports what has a meaning to Spelunk.
    is_harness: bool,
}

impl Listed {
    fn of(wasm: &[u8]) -> Result<Listed> {
        let mut listed = Listed::default();
        for payload in Parser::new(0).parse_all(wasm) {
            listed.add(payload?)?;
        }
        Ok(listed)
    }

    fn add(&mut self, payload: Payload<'_>) -> Result<()> {
        match payload {
            Payload::TypeSection(section) => {
                for group in section {
                    for ty in group?.into_types() {
                        self.types.push(match ty.composite_type.inner {
                            CompositeInnerType::Func(ty) => Some(ty),
                            _ => None,
                        });
                    }
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    self.is_harness |= import.module == "spelunk";
                    if let TypeRef::Func(ty) | TypeRef::FuncExact(ty) = import.ty {
                        self.functions.push(ty);
                    }
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    self.functions.push(ty?);
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    if export.kind == ExternalKind::Func {
                        self.is_harness |= is_spelled(export.name);
                        self.exported.push((export.name.to_string(), export.index));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// None where the module was made for Spelunk.
fn exports(wasm: &[u8]) -> Result<Option<Exports>> {
    let Listed { types, functions, exported, is_harness } = Listed::of(wasm)?;
    if is_harness {
        return Ok(None);
    }
    let mut all = Vec::new();
    for (name, index) in exported {
        let ty = *functions.get(index as usize).context("an export of no function")?;
        if let Some(Some(ty)) = types.get(ty as usize) {
            all.push((name, index, ty.clone()));
        }
    }
    let has_room = has_room(wasm, |name, params, results| {
        let are_i32 =
            |types: &[ValType], many| types.len() == many && types.iter().all(|ty| *ty == ValType::I32);
        all.iter().any(|(known, _, ty)| {
            known == name && are_i32(ty.params(), params) && are_i32(ty.results(), results)
        })
    });
    all.retain(|(name, ..)| !name.starts_with('_') && !is_allocator(name));
    Ok(Some(Exports { functions: all, has_room }))
}

/// Whether a value of this type is passed as one of that type.
fn is_passed(ty: &Type, passed: ValType) -> bool {
    match (ty, passed) {
        (Type::Float, ValType::F32 | ValType::F64) => true,
        (Type::Integer(bytes, _), ValType::I64) => *bytes == 8,
        (Type::Integer(bytes, _), ValType::I32) => *bytes <= 4,
        (Type::Boolean | Type::Enumeration(_) | Type::Letter(_) | Type::Pointer(..), ValType::I32) => true,
        (Type::Unknown, _) => true,
        _ => false,
    }
}

/// What the functions of a module make of one another's results.
struct Library {
    /// Structures whose addresses a function returns or writes, as handles.
    made: BTreeSet<String>,
    /// Those of which others are made, that may need them: they are not taken away.
    needed: BTreeSet<String>,
    /// Arguments can be put somewhere.
    has_room: bool,
}

impl Library {
    fn of(known: &[Function<'_>], has_room: bool) -> Library {
        let mut makers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for Function { declared, .. } in known {
            let taken: BTreeSet<String> =
                declared.params.iter().filter_map(|(_, ty)| structure(ty)).map(str::to_string).collect();
            let written = declared.params.iter().filter_map(|(_, ty)| match ty {
                Type::Pointer(to, false) => structure(to),
                _ => None,
            });
            for made in written.chain(returned(declared)) {
                makers.entry(made.to_string()).or_default().extend(taken.iter().cloned());
            }
        }
        let needed =
            makers.iter().flat_map(|(made, of)| of.iter().filter(move |of| *of != made)).cloned().collect();
        Library { made: makers.into_keys().collect(), needed, has_room }
    }

    /// How a function is called; none where one of its types does not say it.
    fn signature(&self, function: &Function<'_>) -> Option<Signature> {
        let Function { name, declared, .. } = function;
        if !function.is_plain() {
            return None;
        }
        let mut params: Vec<Param> = Vec::new();
        let mut index = 0;
        while let Some((named, ty)) = declared.params.get(index) {
            let next = declared.params.get(index + 1).filter(is_length);
            let what = match ty {
                Type::Pointer(to, is_read) => self.pointer(name, declared, (to, *is_read), next.is_some())?,
                ty => number(ty),
            };
            let name = named.clone().filter(|name| is_name(name)).unwrap_or_else(|| format!("arg{index}"));
            if matches!(&what, What::Buffer(_) | What::Out(_) | What::OutHandle(..)) && !self.has_room {
                return None;
            }
            // Two of one name would be refused.
            let name =
                if params.iter().any(|param| param.name == name) { format!("arg{index}") } else { name };
            // The length is a part of what it is of.
            index += if is_bytes(&what) { 2 } else { 1 };
            params.push(Param { name, what });
        }
        if !is_bounded(declared, &params) {
            return None;
        }
        let returns = match &declared.returns {
            Some(Type::Pointer(to, _)) if matches!(**to, Type::Letter(_)) => Returns::Text,
            _ => returned(declared).map_or(Returns::Number, |name| Returns::Handle(name.to_string())),
        };
        Some(Signature { params: Some(params), returns, ..Signature::default() })
    }

    fn pointer(
        &self,
        function: &str,
        declared: &Declared,
        (to, is_read): (&Type, bool),
        has_length: bool,
    ) -> Option<What> {
        let buffer = |content, ends_in_zero| What::Buffer(Buffer { content, ends_in_zero, is_kept: false });
        Some(match to {
            Type::Letter(_) | Type::Integer(1, _) | Type::Void if has_length => {
                buffer(Content::Bytes(0, BYTES_MAX), false)
            }
            Type::Letter(_) if is_read => buffer(Content::Text(letters(), 0, LETTERS_MAX), true),
            Type::Structure(name) if self.made.contains(name) => {
                let handles = declared.params.iter().filter(|(_, ty)| structure(ty).is_some()).count();
                let ends = words(function).any(|word| ENDS.contains(&word));
                // What others may need stays.
                if handles == 1 && ends && self.needed.contains(name) {
                    return None;
                }
                // As `realloc` does, and what inserts into a tree.
                let replaces = !is_read && returned(declared) == Some(name);
                What::Handle(name.clone(), handles == 1 && (ends || replaces))
            }
            Type::Pointer(inner, _) => match &**inner {
                Type::Structure(name) if self.made.contains(name) && !is_read => {
                    What::OutHandle(name.clone(), false)
                }
                _ => return None,
            },
            // Bytes would be a buffer.
            Type::Integer(2..=8, _) | Type::Float if !is_read && !has_length => What::Out(NUMBER),
            _ => return None,
        })
    }
}

/// Whether nothing says that more is read or written at an address than what is there: a length that stands elsewhere, or a number that
/// may count the numbers there.
fn is_bounded(declared: &Declared, params: &[Param]) -> bool {
    let integers = declared.params.iter().filter(|param| matches!(param.1, Type::Integer(4 | 8, _)));
    let with_lengths = params.iter().filter(|param| is_bytes(&param.what)).count();
    let has_integers = integers.clone().count() > with_lengths;
    let has_lengths = integers.filter(is_length).count() > with_lengths;
    params.iter().all(|Param { name, what }| match what {
        What::Buffer(_) => is_bytes(what) || !has_lengths,
        What::Out(_) => !has_integers || words(name).any(|word| OUTS.contains(&word)),
        _ => true,
    })
}

/// Whether its length is passed too.
fn is_bytes(what: &What) -> bool {
    matches!(what, What::Buffer(buffer) if !buffer.ends_in_zero)
}

/// The structure that an address is of.
fn structure(ty: &Type) -> Option<&str> {
    match ty {
        Type::Pointer(to, _) => match &**to {
            Type::Structure(name) if is_name(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// The structure that a function returns the address of, to be changed.
fn returned(declared: &Declared) -> Option<&str> {
    let returns = declared.returns.as_ref()?;
    structure(returns).filter(|_| matches!(returns, Type::Pointer(_, false)))
}

fn number(ty: &Type) -> What {
    match ty {
        Type::Boolean => What::Boolean,
        Type::Enumeration(values) => {
            let named = |(name, value): &(String, i64)| Named { name: Some(name.clone()), value: *value };
            What::OneOf(values.iter().map(named).collect())
        }
        Type::Letter(true) | Type::Integer(1, true) => What::Integer(i8::MIN.into(), i8::MAX.into()),
        Type::Letter(false) | Type::Integer(1, false) => What::Integer(0, u8::MAX.into()),
        Type::Integer(2, true) => What::Integer(i16::MIN.into(), i16::MAX.into()),
        Type::Integer(2, false) => What::Integer(0, u16::MAX.into()),
        _ => What::Any,
    }
}

/// Whether a parameter says how long the one before it is.
fn is_length((name, ty): &&(Option<String>, Type)) -> bool {
    let is_named = name
        .as_deref()
        .is_some_and(|name| words(name).next_back().is_some_and(|word| LENGTHS.contains(&word)));
    is_named && matches!(ty, Type::Integer(4, _))
}

/// The parts of a name such as `store_close`, in small letters.
fn words(name: &str) -> impl DoubleEndedIterator<Item = &str> {
    name.split('_').filter(|word| !word.is_empty())
}

/// Whether it can be a name of a pool or a parameter.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 100
}

/// What texts are made of, where nothing says it.
fn letters() -> Vec<String> {
    (b'a'..=b'z').chain(b' '..b'a').chain(b'{'..=b'~').map(|letter| char::from(letter).to_string()).collect()
}
