//! What a component is beside its code: the functions that it exports and imports, and the types of what they take and return.

use serde::{Deserialize, Serialize};

/// What a component exports and imports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Interface {
    pub(crate) types: Types,
    /// In the order of their names.
    pub(crate) functions: Vec<Function>,
    /// What the linked module imports, by index.
    pub(crate) imports: Vec<Import>,
    /// Types of resources.
    pub(crate) resources: Vec<Resource>,
    /// Handles of which resource a handle of this type is, and in which instance.
    pub(crate) handles: Vec<Option<HandleType>>,
    pub(crate) options: Vec<Options>,
    /// Instances of components, each with a table of handles.
    pub(crate) instances: u32,
    /// A global of each says whether it may be left.
    pub(crate) has_flags: bool,
    /// So many functions of each kind are exported to be called by the host.
    pub(crate) reallocs: u32,
    pub(crate) post_returns: u32,
}

/// A function that a component exports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Function {
    /// The interface that it is in; empty where the component exports it itself.
    pub(crate) interface: String,
    pub(crate) name: String,
    pub(crate) params: Vec<(String, Ty)>,
    pub(crate) result: Option<Ty>,
    pub(crate) options: u32,
    /// What the linked module exports it as.
    pub(crate) export: String,
}

/// A function that the linked module imports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Import {
    /// An import of the component.
    Function {
        interface: String,
        name: String,
        params: Vec<(String, Ty)>,
        result: Option<Ty>,
        options: u32,
    },
    /// Rewrites text from one memory to another.
    Transcode {
        how: Transcode,
        from: u32,
        to: u32,
    },
    ResourceNew(u32),
    ResourceRep(u32),
    ResourceDrop(u32),
    TransferOwn,
    TransferBorrow,
    /// A call from one instance to another begins, and ends.
    EnterCall,
    ExitCall,
    Trap,
}

/// How text is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Transcode {
    CopyUtf8,
    CopyUtf16,
    CopyLatin1,
    Latin1ToUtf16,
    Latin1ToUtf8,
    Utf16ToCompactProbablyUtf16,
    Utf16ToCompactUtf16,
    Utf16ToLatin1,
    Utf16ToUtf8,
    Utf8ToCompactUtf16,
    Utf8ToLatin1,
    Utf8ToUtf16,
}

/// A type of resources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Resource {
    pub(crate) name: String,
    /// The interface that it is imported from, where it is.
    pub(crate) imported: Option<String>,
    /// The instance that defines it, where one does.
    pub(crate) instance: Option<u32>,
    /// What the linked module exports that is called where one is dropped.
    pub(crate) drop: Option<String>,
}

/// What a handle is of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HandleType {
    pub(crate) resource: u32,
    pub(crate) instance: u32,
}

/// How values are passed between an instance and the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Options {
    pub(crate) instance: u32,
    pub(crate) memory: Option<u32>,
    pub(crate) realloc: Option<u32>,
    pub(crate) post_return: Option<u32>,
    pub(crate) encoding: Encoding,
}

/// How text is written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Encoding {
    Utf8,
    Utf16,
    /// Latin-1, or where a letter is not of that UTF-16.
    Compact,
}

/// A type, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Ty(pub(crate) u32);

/// The types of a component. What a type is made of stands before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Types(pub(super) Vec<Known>);

/// A type, and how its values are passed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) ty: Type,
    /// Bytes in memory.
    pub(crate) size: u32,
    pub(crate) align: u32,
    /// The values of a core function that it is passed as; none where they are more than [`FLAT_MAX`].
    pub(crate) flat: Option<Vec<Flat>>,
    /// A handle is a part of its values.
    pub(crate) has_handles: bool,
    /// A part of its values is always in memory.
    pub(crate) is_placed: bool,
    /// Types that it is made of, each as often as it stands in it.
    pub(crate) parts: u32,
}

/// The most values that parameters are passed as.
pub(crate) const FLAT_MAX: usize = 16;

/// A type of WIT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Type {
    Bool,
    /// Bytes, and whether it has a sign.
    Integer(u8, bool),
    F32,
    F64,
    Char,
    String,
    List(Ty),
    /// Fields with their names.
    Record(Vec<(String, Ty)>),
    Tuple(Vec<Ty>),
    /// Cases with their names.
    Variant(Sort, Vec<(String, Option<Ty>)>),
    Flags(Vec<String>),
    /// A handle of this type, and whether it is given away.
    Handle(u32, bool),
}

/// What a type with cases is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Sort {
    Variant,
    Enum,
    Option,
    Result,
}

/// A type of core values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Flat {
    I32,
    I64,
    F32,
    F64,
}

impl Flat {
    /// What can hold values of both types.
    fn join(self, other: Flat) -> Flat {
        match (self, other) {
            (one, other) if one == other => one,
            (Flat::I32 | Flat::F32, Flat::I32 | Flat::F32) => Flat::I32,
            _ => Flat::I64,
        }
    }
}

/// The next multiple of an alignment.
pub(super) fn aligned(offset: u32, align: u32) -> u32 {
    offset.next_multiple_of(align)
}

impl std::ops::Index<Ty> for Types {
    type Output = Known;

    fn index(&self, ty: Ty) -> &Known {
        &self.0[ty.0 as usize]
    }
}

impl Types {
    /// Adds a type, of which sizes are known.
    pub(super) fn push(&mut self, ty: Type, (size, align): (u32, u32)) -> Ty {
        let flat = self.flat_of(&ty);
        let parts = parts(&ty);
        let has_handles = matches!(ty, Type::Handle(..)) || parts.iter().any(|part| self[*part].has_handles);
        let is_placed =
            matches!(ty, Type::String | Type::List(_)) || parts.iter().any(|part| self[*part].is_placed);
        let of_parts = parts.iter().map(|part| self[*part].parts);
        let parts = of_parts.fold(1, u32::saturating_add);
        self.0.push(Known { ty, size, align, flat, has_handles, is_placed, parts });
        Ty(self.0.len() as u32 - 1)
    }

    /// Resources, of which a value of this type gives some away.
    pub(crate) fn owned(&self, ty: Ty, handles: &[Option<HandleType>], found: &mut Vec<u32>) {
        if !self[ty].has_handles {
            return;
        }
        if let Type::Handle(handle, true) = self[ty].ty
            && let Some(of) = handles[handle as usize]
            && !found.contains(&of.resource)
        {
            found.push(of.resource);
        }
        parts(&self[ty].ty).into_iter().for_each(|part| self.owned(part, handles, found));
    }

    fn flat_of(&self, ty: &Type) -> Option<Vec<Flat>> {
        let all = |types: &mut dyn Iterator<Item = Ty>| {
            let mut flat = Vec::new();
            for ty in types {
                flat.extend_from_slice(self[ty].flat.as_ref()?);
                if flat.len() > FLAT_MAX {
                    return None;
                }
            }
            Some(flat)
        };
        match ty {
            Type::Bool | Type::Char | Type::Flags(_) | Type::Handle(..) | Type::Integer(1 | 2 | 4, _) => {
                Some(vec![Flat::I32])
            }
            Type::Integer(..) => Some(vec![Flat::I64]),
            Type::F32 => Some(vec![Flat::F32]),
            Type::F64 => Some(vec![Flat::F64]),
            Type::String | Type::List(_) => Some(vec![Flat::I32, Flat::I32]),
            Type::Record(fields) => all(&mut fields.iter().map(|(_, ty)| *ty)),
            Type::Tuple(types) => all(&mut types.iter().copied()),
            Type::Variant(_, cases) => {
                let mut joined = vec![Flat::I32];
                for case in cases.iter().filter_map(|(_, case)| *case) {
                    for (at, flat) in self[case].flat.as_ref()?.iter().enumerate() {
                        match joined.get_mut(at + 1) {
                            Some(joined) => *joined = joined.join(*flat),
                            None => joined.push(*flat),
                        }
                    }
                }
                (joined.len() <= FLAT_MAX).then_some(joined)
            }
        }
    }

    /// Bytes of values one behind the other, and their alignment.
    pub(crate) fn layout(&self, types: impl Iterator<Item = Ty>) -> (u32, u32) {
        let (size, align) = types.fold((0, 1), |(size, align), ty| {
            let known = &self[ty];
            (aligned(size, known.align) + known.size, align.max(known.align))
        });
        (aligned(size, align), align)
    }

    /// The types that parameters are passed as; none where they are in memory.
    pub(crate) fn flat_params(&self, params: &[(String, Ty)]) -> Option<Vec<Flat>> {
        let mut flat = Vec::new();
        for (_, ty) in params {
            flat.extend_from_slice(self[*ty].flat.as_ref()?);
        }
        (flat.len() <= FLAT_MAX).then_some(flat)
    }

    /// The type that a result is passed as; none where it is in memory.
    pub(crate) fn flat_result(&self, result: Ty) -> Option<Flat> {
        match self[result].flat.as_deref()? {
            [one] => Some(*one),
            _ => None,
        }
    }
}

/// What a type is made of.
fn parts(ty: &Type) -> Vec<Ty> {
    match ty {
        Type::List(ty) => vec![*ty],
        Type::Record(fields) => fields.iter().map(|(_, ty)| *ty).collect(),
        Type::Tuple(types) => types.clone(),
        Type::Variant(_, cases) => cases.iter().filter_map(|(_, case)| *case).collect(),
        _ => Vec::new(),
    }
}

/// Bytes of what says which case it is, of so many.
pub(super) fn discriminant_bytes(cases: usize) -> u32 {
    match cases {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// Where in memory the value of a case is.
pub(super) fn payload_offset(types: &Types, cases: &[(String, Option<Ty>)]) -> u32 {
    let align = cases.iter().filter_map(|(_, case)| Some(types[(*case)?].align)).max().unwrap_or(1);
    aligned(discriminant_bytes(cases.len()), align)
}
