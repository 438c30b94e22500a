//! What is said of a component beside its code.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};
use wasmtime_environ::component::{
    CanonicalOptions, Export, ExportIndex, FixedEncoding, GlobalInitializer, InterfaceType, ResourceIndex,
    StringEncoding, Trampoline, Transcode as Op, TypeDef, TypeFuncIndex, TypeResourceTable,
    TypeResourceTableIndex,
};

use super::super::interface::{
    Encoding, Function, HandleType, Import, Interface, Options, Resource, Sort, Transcode, Ty, Type,
};
use super::merge::{Item, Merged, export_name};
use super::{Source, named};

/// Types and exports that a component may have.
const TYPES_MAX: usize = 100_000;

/// Parameters and result.
type FunctionType = (Vec<(String, Ty)>, Option<Ty>);

/// Types that one may be made of. Whoever goes through a value or a type does so in a time that this bounds.
const PARTS_MAX: u32 = 10_000;

struct Describing<'s, 'data> {
    source: &'s Source<'s, 'data>,
    interface: Interface,
    known: HashMap<InterfaceType, Ty>,
    /// The functions and types that are exported, with the interfaces that they are in.
    exports: Vec<(String, String, ExportIndex)>,
    /// Memories of the linked module, by what they are extracted as.
    memories: Vec<u32>,
}

/// The interface of a component that was linked.
pub(super) fn interface(source: &Source<'_, '_>, merged: &Merged) -> Result<Interface> {
    let mut describing = Describing {
        source,
        interface: Interface::default(),
        known: HashMap::new(),
        exports: Vec::new(),
        memories: Vec::new(),
    };
    describing.list_exports()?;
    describing.add_resources();
    describing.add_handles();
    describing.add_options(merged)?;
    describing.add_functions()?;
    describing.add_imports()?;
    Ok(describing.interface)
}

impl Describing<'_, '_> {
    fn list_exports(&mut self) -> Result<()> {
        let component = self.source.component();
        let mut open: Vec<(String, String, ExportIndex)> = Vec::new();
        let exports = component.exports.raw_iter();
        open.extend(exports.map(|(name, (index, _))| (String::new(), name.to_string(), *index)));
        open.reverse();
        while let Some((interface, name, index)) = open.pop() {
            ensure!(self.exports.len() < TYPES_MAX, "the component exports more than {TYPES_MAX} items");
            match &component.export_items[index] {
                Export::Instance { exports, .. } => {
                    let within = if interface.is_empty() { name } else { format!("{interface}/{name}") };
                    let mut inner: Vec<_> = exports
                        .raw_iter()
                        .map(|(name, (index, _))| (within.clone(), name.to_string(), *index))
                        .collect();
                    inner.reverse();
                    open.append(&mut inner);
                }
                Export::LiftedFunction { .. } | Export::Type(_) => {
                    self.exports.push((interface, name, index))
                }
                // Nobody calls into them.
                Export::ModuleStatic { .. } | Export::ModuleImport { .. } => {}
            }
        }
        Ok(())
    }

    fn add_resources(&mut self) {
        let component = self.source.component();
        for index in 0..component.num_resources {
            let index = ResourceIndex::from_u32(index);
            let resource = match component.defined_resource_index(index) {
                Some(defined) => Resource {
                    name: format!("resource{}", defined.as_u32()),
                    imported: None,
                    instance: Some(component.defined_resource_instances[defined].as_u32()),
                    drop: None,
                },
                None => {
                    let (import, path) = &component.imports[component.imported_resources[index]];
                    let (name, interface) = match path.split_last() {
                        Some((name, path)) => (name.clone(), named(&component.import_types[*import].0, path)),
                        None => (component.import_types[*import].0.clone(), String::new()),
                    };
                    Resource { name, imported: Some(interface), instance: None, drop: None }
                }
            };
            self.interface.resources.push(resource);
        }
        for initializer in &component.initializers {
            if let GlobalInitializer::Resource(resource) = initializer
                && resource.dtor.is_some()
            {
                let index = component.resource_index(resource.index);
                let drop = export_name("drop", resource.index.as_u32());
                self.interface.resources[index.as_u32() as usize].drop = Some(drop);
            }
        }
        // What it is exported as says best what it is called.
        for (_, name, index) in self.exports.clone() {
            if let Export::Type(TypeDef::Resource(handle)) = component.export_items[index]
                && let TypeResourceTable::Concrete { ty, .. } = self.source.types[handle]
            {
                let resource = &mut self.interface.resources[ty.as_u32() as usize];
                if resource.imported.is_none() {
                    resource.name = name;
                }
            }
        }
        self.interface.instances = component.num_runtime_component_instances;
        self.interface.has_flags = self.source.has_flags();
    }

    fn add_options(&mut self, merged: &Merged) -> Result<()> {
        let component = self.source.component();
        for initializer in &component.initializers {
            if let GlobalInitializer::ExtractMemory(memory) = initializer {
                let Item::Memory(at) = merged.item(&memory.export.clone().into())? else {
                    bail!("what the component lifts from is no memory");
                };
                let index = memory.index.as_u32() as usize;
                self.memories.resize(self.memories.len().max(index + 1), 0);
                self.memories[index] = at;
            }
        }
        for (_, options) in component.options.iter() {
            let options = self.options(options)?;
            self.interface.options.push(options);
        }
        self.interface.reallocs = component.num_runtime_reallocs;
        self.interface.post_returns = component.num_runtime_post_returns;
        Ok(())
    }

    fn options(&self, options: &CanonicalOptions) -> Result<Options> {
        use wasmtime_environ::component::CanonicalOptionsDataModel::{Gc, LinearMemory};
        ensure!(!options.async_ && options.callback.is_none(), "the component has async functions");
        let (memory, realloc) = match &options.data_model {
            Gc {} => bail!("the component passes values as objects that are garbage-collected"),
            LinearMemory(memory) => (memory.memory, memory.realloc),
        };
        Ok(Options {
            instance: options.instance.as_u32(),
            memory: memory.map(|memory| self.memories[memory.as_u32() as usize]),
            realloc: realloc.map(|realloc| realloc.as_u32()),
            post_return: options.post_return.map(|after| after.as_u32()),
            encoding: match options.string_encoding {
                StringEncoding::Utf8 => Encoding::Utf8,
                StringEncoding::Utf16 => Encoding::Utf16,
                StringEncoding::CompactUtf16 => Encoding::Compact,
            },
        })
    }

    fn add_functions(&mut self) -> Result<()> {
        for (interface, name, index) in self.exports.clone() {
            let Export::LiftedFunction { ty, options, .. } = &self.source.component().export_items[index]
            else {
                continue;
            };
            let shown = named(&interface, std::slice::from_ref(&name));
            let (params, result) =
                self.function(*ty).with_context(|| format!("in the exported function `{shown}`"))?;
            let (options, export) = (options.as_u32(), export_name("call", index.as_u32()));
            let function = Function { interface, name, params, result, options, export };
            self.interface.functions.push(function);
        }
        Ok(())
    }

    fn add_imports(&mut self) -> Result<()> {
        let component = self.source.component();
        let lowered = component.initializers.iter().filter_map(|initializer| match initializer {
            GlobalInitializer::LowerImport { index, import } => Some((*index, *import)),
            _ => None,
        });
        let lowered: HashMap<_, _> = lowered.collect();
        for (_, trampoline) in self.source.translation.trampolines.iter() {
            let import = match trampoline {
                Trampoline::LowerImport { index, lower_ty, options } => {
                    let (import, path) = &component.imports[lowered[index]];
                    let within = &component.import_types[*import].0;
                    let (interface, name) = match path.split_last() {
                        Some((name, path)) => (named(within, path), name.clone()),
                        None => (String::new(), within.clone()),
                    };
                    let shown = named(within, path);
                    let (params, result) = self
                        .function(*lower_ty)
                        .with_context(|| format!("in the imported function `{shown}`"))?;
                    Import::Function { interface, name, params, result, options: options.as_u32() }
                }
                Trampoline::Transcoder { op, from, from64, to, to64 } => {
                    ensure!(!from64 && !to64, "the component passes text between memories of 64 bits");
                    let at = |memory: u32| self.memories[memory as usize];
                    Import::Transcode { how: transcode(*op), from: at(from.as_u32()), to: at(to.as_u32()) }
                }
                Trampoline::ResourceNew { ty, .. } => Import::ResourceNew(self.handle(*ty)?),
                Trampoline::ResourceRep { ty, .. } => Import::ResourceRep(self.handle(*ty)?),
                Trampoline::ResourceDrop { ty, .. } => Import::ResourceDrop(self.handle(*ty)?),
                Trampoline::ResourceTransferOwn => Import::TransferOwn,
                Trampoline::ResourceTransferBorrow => Import::TransferBorrow,
                Trampoline::EnterSyncCall => Import::EnterCall,
                Trampoline::ExitSyncCall => Import::ExitCall,
                Trampoline::Trap => Import::Trap,
                other => bail!(
                    "the component needs `{}`, which is of async functions, streams or threads; Spelunk links components without \
                     these",
                    other.symbol_name()
                ),
            };
            self.interface.imports.push(import);
        }
        Ok(())
    }

    fn function(&mut self, ty: TypeFuncIndex) -> Result<FunctionType> {
        let types = self.source.types;
        let ty = &types[ty];
        ensure!(!ty.async_, "it is async");
        let mut params = Vec::new();
        for (name, ty) in ty.param_names.iter().zip(&types[ty.params].types) {
            params.push((name.clone(), self.ty(*ty)?));
        }
        let result = match &*types[ty.results].types {
            [] => None,
            [one] => Some(self.ty(*one)?),
            many => bail!("it returns {} values", many.len()),
        };
        Ok((params, result))
    }

    /// A type, and those that it is made of. They nest no deeper than the component's validator lets them.
    fn ty(&mut self, ty: InterfaceType) -> Result<Ty> {
        if let Some(known) = self.known.get(&ty) {
            return Ok(*known);
        }
        ensure!(self.known.len() < TYPES_MAX, "the component has more than {TYPES_MAX} types");
        let abi = self.source.types.canonical_abi(&ty);
        let described = self.described(ty)?;
        let index = self.interface.types.push(described, (abi.size32, abi.align32));
        ensure!(
            self.interface.types[index].parts <= PARTS_MAX,
            "a type has more than {PARTS_MAX} parts, where those are written out that stand in it more than once"
        );
        self.known.insert(ty, index);
        Ok(index)
    }

    fn described(&mut self, ty: InterfaceType) -> Result<Type> {
        let types = self.source.types;
        Ok(match ty {
            InterfaceType::Bool => Type::Bool,
            InterfaceType::S8 => Type::Integer(1, true),
            InterfaceType::U8 => Type::Integer(1, false),
            InterfaceType::S16 => Type::Integer(2, true),
            InterfaceType::U16 => Type::Integer(2, false),
            InterfaceType::S32 => Type::Integer(4, true),
            InterfaceType::U32 => Type::Integer(4, false),
            InterfaceType::S64 => Type::Integer(8, true),
            InterfaceType::U64 => Type::Integer(8, false),
            InterfaceType::Float32 => Type::F32,
            InterfaceType::Float64 => Type::F64,
            InterfaceType::Char => Type::Char,
            InterfaceType::String => Type::String,
            InterfaceType::List(list) => Type::List(self.ty(types[list].element)?),
            InterfaceType::Record(record) => {
                let fields = types[record].fields.iter();
                let fields = fields.map(|field| Ok((field.name.clone(), self.ty(field.ty)?)));
                Type::Record(fields.collect::<Result<_>>()?)
            }
            InterfaceType::Tuple(tuple) => {
                let fields = types[tuple].types.iter().map(|ty| self.ty(*ty));
                Type::Tuple(fields.collect::<Result<_>>()?)
            }
            InterfaceType::Variant(variant) => {
                let cases = types[variant].cases.iter();
                let cases = cases.map(|(name, ty)| Ok((name.clone(), self.case(*ty)?)));
                Type::Variant(Sort::Variant, cases.collect::<Result<_>>()?)
            }
            InterfaceType::Enum(names) => {
                let names = types[names].names.iter();
                Type::Variant(Sort::Enum, names.map(|name| (name.clone(), None)).collect())
            }
            InterfaceType::Option(option) => {
                let some = self.case(Some(types[option].ty))?;
                Type::Variant(Sort::Option, vec![("none".into(), None), ("some".into(), some)])
            }
            InterfaceType::Result(result) => {
                let (ok, error) = (self.case(types[result].ok)?, self.case(types[result].err)?);
                Type::Variant(Sort::Result, vec![("ok".into(), ok), ("err".into(), error)])
            }
            InterfaceType::Flags(flags) => {
                let names: Vec<String> = types[flags].names.iter().cloned().collect();
                ensure!(names.len() <= 32, "it has {} flags; 32 are the most", names.len());
                Type::Flags(names)
            }
            InterfaceType::Own(handle) => Type::Handle(self.handle(handle)?, true),
            InterfaceType::Borrow(handle) => Type::Handle(self.handle(handle)?, false),
            other => bail!("Spelunk does not pass values of the type {other:?}"),
        })
    }

    fn case(&mut self, ty: Option<InterfaceType>) -> Result<Option<Ty>> {
        ty.map(|ty| self.ty(ty)).transpose()
    }

    fn handle(&self, handle: TypeResourceTableIndex) -> Result<u32> {
        let index = handle.as_u32();
        let known = self.interface.handles.get(index as usize);
        ensure!(known.is_some_and(Option::is_some), "it takes handles of a resource that no instance has");
        Ok(index)
    }

    /// Calls from one instance to another name handles by the indices that they have in the component.
    fn add_handles(&mut self) {
        for index in 0..self.source.handles {
            let handle = match self.source.types[TypeResourceTableIndex::from_u32(index)] {
                TypeResourceTable::Concrete { ty, instance } => {
                    Some(HandleType { resource: ty.as_u32(), instance: instance.as_u32() })
                }
                TypeResourceTable::Abstract(_) => None,
            };
            self.interface.handles.push(handle);
        }
    }
}

fn transcode(op: Op) -> Transcode {
    match op {
        Op::Copy(FixedEncoding::Utf8) => Transcode::CopyUtf8,
        Op::Copy(FixedEncoding::Utf16) => Transcode::CopyUtf16,
        Op::Copy(FixedEncoding::Latin1) => Transcode::CopyLatin1,
        Op::Latin1ToUtf16 => Transcode::Latin1ToUtf16,
        Op::Latin1ToUtf8 => Transcode::Latin1ToUtf8,
        Op::Utf16ToCompactProbablyUtf16 => Transcode::Utf16ToCompactProbablyUtf16,
        Op::Utf16ToCompactUtf16 => Transcode::Utf16ToCompactUtf16,
        Op::Utf16ToLatin1 => Transcode::Utf16ToLatin1,
        Op::Utf16ToUtf8 => Transcode::Utf16ToUtf8,
        Op::Utf8ToCompactUtf16 => Transcode::Utf8ToCompactUtf16,
        Op::Utf8ToLatin1 => Transcode::Utf8ToLatin1,
        Op::Utf8ToUtf16 => Transcode::Utf8ToUtf16,
    }
}
