//! What of a module matters where it is linked with another.

use anyhow::{Context, Result, ensure};
use wasmparser::{
    CompositeInnerType, Encoding, ExternalKind, FuncType, GlobalType, MemoryType, Parser, Payload, RefType, TableType,
    TypeRef,
};

/// Kinds of items, each with indices of its own.
pub(super) const KINDS: [ExternalKind; 5] = [
    ExternalKind::Func,
    ExternalKind::Table,
    ExternalKind::Memory,
    ExternalKind::Global,
    ExternalKind::Tag,
];

/// A module.
#[derive(Default)]
pub(super) struct Part<'w> {
    pub(super) wasm: &'w [u8],
    pub(super) imports: Vec<(&'w str, &'w str, TypeRef)>,
    pub(super) exports: Vec<(&'w str, ExternalKind, u32)>,
    /// How many types, segments of data and of elements there are.
    pub(super) types: u32,
    pub(super) data: u32,
    pub(super) elements: u32,
    /// How many items it defines of each of [`KINDS`].
    pub(super) defined: [u32; 5],
    pub(super) start: Option<u32>,
    /// The function types, by index.
    func_types: Vec<Option<FuncType>>,
    /// What it imports and defines.
    functions: Vec<u32>,
    tables: Vec<TableType>,
    memories: Vec<MemoryType>,
    globals: Vec<GlobalType>,
    tags: Vec<u32>,
}

/// An item of the target that stands for an import of the harness.
#[derive(Clone, Copy, Debug)]
pub(super) struct Provided {
    pub(super) kind: ExternalKind,
    pub(super) index: u32,
}

pub(super) fn kind_of(ty: &TypeRef) -> ExternalKind {
    match ty {
        TypeRef::Func(_) | TypeRef::FuncExact(_) => ExternalKind::Func,
        TypeRef::Table(_) => ExternalKind::Table,
        TypeRef::Memory(_) => ExternalKind::Memory,
        TypeRef::Global(_) => ExternalKind::Global,
        TypeRef::Tag(_) => ExternalKind::Tag,
    }
}

impl<'w> Part<'w> {
    /// # Errors
    /// Bytes that are no module.
    pub(super) fn read(wasm: &'w [u8]) -> Result<Part<'w>> {
        let mut part = Part { wasm, ..Part::default() };
        for payload in Parser::new(0).parse_all(wasm) {
            part.add(payload.context("it cannot be read")?)?;
        }
        part.defined = [
            part.functions.len(),
            part.tables.len(),
            part.memories.len(),
            part.globals.len(),
            part.tags.len(),
        ]
        .map(|count| count as u32);
        for (at, kind) in KINDS.into_iter().enumerate() {
            part.defined[at] -= part.imports.iter().filter(|(.., ty)| kind_of(ty) == kind).count() as u32;
        }
        Ok(part)
    }

    fn add(&mut self, payload: Payload<'w>) -> Result<()> {
        match payload {
            Payload::Version { encoding, .. } => {
                ensure!(encoding == Encoding::Module, "it is a component; core modules can be linked");
            }
            Payload::TypeSection(section) => {
                for group in section {
                    for ty in group?.into_types() {
                        self.func_types.push(match ty.composite_type.inner {
                            CompositeInnerType::Func(ty) => Some(ty),
                            _ => None,
                        });
                    }
                }
                self.types = self.func_types.len() as u32;
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    self.imports.push((import.module, import.name, import.ty));
                    match import.ty {
                        TypeRef::Func(ty) | TypeRef::FuncExact(ty) => self.functions.push(ty),
                        TypeRef::Table(ty) => self.tables.push(ty),
                        TypeRef::Memory(ty) => self.memories.push(ty),
                        TypeRef::Global(ty) => self.globals.push(ty),
                        TypeRef::Tag(ty) => self.tags.push(ty.func_type_idx),
                    }
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    self.functions.push(ty?);
                }
            }
            Payload::TableSection(section) => {
                for table in section {
                    self.tables.push(table?.ty);
                }
            }
            Payload::MemorySection(section) => {
                for memory in section {
                    self.memories.push(memory?);
                }
            }
            Payload::GlobalSection(section) => {
                for global in section {
                    self.globals.push(global?.ty);
                }
            }
            Payload::TagSection(section) => {
                for tag in section {
                    self.tags.push(tag?.func_type_idx);
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    self.exports.push((export.name, export.kind, export.index));
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(section) => self.elements = section.count(),
            Payload::DataSection(section) => self.data = section.count(),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn memories(&self) -> &[MemoryType] {
        &self.memories
    }

    fn func_type(&self, ty: u32) -> Option<&FuncType> {
        self.func_types.get(ty as usize)?.as_ref()
    }

    /// A type that both modules name alike: none that one of them defines.
    fn is_plain(ty: &FuncType) -> bool {
        let mut types = ty.params().iter().chain(ty.results());
        types.all(|ty| ty.as_reference_type().is_none_or(|ty| [RefType::FUNCREF, RefType::EXTERNREF].contains(&ty)))
    }

    /// Whether an item of this module is what another imports as `wanted`.
    pub(super) fn is_as_wanted(&self, found: Provided, other: &Part<'_>, wanted: &TypeRef) -> bool {
        let index = found.index as usize;
        let same = |ty: Option<&u32>, wanted: u32| {
            let (ty, wanted) = (ty.and_then(|ty| self.func_type(*ty)), other.func_type(wanted));
            ty.is_some_and(|ty| wanted == Some(ty) && Part::is_plain(ty))
        };
        let has_room = |(least, most): (u64, Option<u64>), (wanted, wanted_most): (u64, Option<u64>)| {
            least >= wanted && wanted_most.is_none_or(|wanted| most.is_some_and(|most| most <= wanted))
        };
        match (found.kind, wanted) {
            (ExternalKind::Func, TypeRef::Func(ty)) => same(self.functions.get(index), *ty),
            (ExternalKind::Tag, TypeRef::Tag(ty)) => same(self.tags.get(index), ty.func_type_idx),
            (ExternalKind::Global, TypeRef::Global(ty)) => self.globals.get(index) == Some(ty),
            (ExternalKind::Memory, TypeRef::Memory(ty)) => self.memories.get(index).is_some_and(|memory| {
                (memory.memory64, memory.shared, memory.page_size_log2) == (ty.memory64, ty.shared, ty.page_size_log2)
                    && has_room((memory.initial, memory.maximum), (ty.initial, ty.maximum))
            }),
            (ExternalKind::Table, TypeRef::Table(ty)) => self.tables.get(index).is_some_and(|table| {
                (table.element_type, table.table64, table.shared) == (ty.element_type, ty.table64, ty.shared)
                    && has_room((table.initial, table.maximum), (ty.initial, ty.maximum))
            }),
            _ => false,
        }
    }

    /// What an import is, for a message.
    pub(super) fn shown(&self, ty: &TypeRef) -> String {
        match ty {
            TypeRef::Func(ty) | TypeRef::FuncExact(ty) => {
                format!("a function {}", self.func_type(*ty).map(shown).unwrap_or_default())
            }
            TypeRef::Table(ty) => format!("a table of {} elements and more", ty.initial),
            TypeRef::Memory(ty) => match ty.maximum {
                Some(most) => format!("a memory of {} to {most} pages", ty.initial),
                None => format!("a memory of {} pages and more", ty.initial),
            },
            TypeRef::Global(ty) => {
                let mutable = if ty.mutable { "mutable " } else { "" };
                format!("a {mutable}global {}", ty.content_type)
            }
            TypeRef::Tag(ty) => format!("a tag {}", self.func_type(ty.func_type_idx).map(shown).unwrap_or_default()),
        }
    }

    /// What an item is, for a message.
    pub(super) fn shown_of(&self, item: Provided) -> String {
        let index = item.index as usize;
        let ty = match item.kind {
            ExternalKind::Func | ExternalKind::FuncExact => self.functions.get(index).map(|ty| TypeRef::Func(*ty)),
            ExternalKind::Table => self.tables.get(index).map(|ty| TypeRef::Table(*ty)),
            ExternalKind::Memory => self.memories.get(index).map(|ty| TypeRef::Memory(*ty)),
            ExternalKind::Global => self.globals.get(index).map(|ty| TypeRef::Global(*ty)),
            ExternalKind::Tag => self.tags.get(index).map(|ty| {
                TypeRef::Tag(wasmparser::TagType { kind: wasmparser::TagKind::Exception, func_type_idx: *ty })
            }),
        };
        ty.map_or_else(|| "nothing".to_string(), |ty| self.shown(&ty))
    }
}

/// A function type as `(i32, i32) -> (i64)`.
fn shown(ty: &FuncType) -> String {
    let list = |types: &[wasmparser::ValType]| {
        types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    format!("({}) -> ({})", list(ty.params()), list(ty.results()))
}
