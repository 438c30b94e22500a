//! The modules of all instances, one behind the other.

use anyhow::{Result, bail, ensure};
use wasm_encoder as we;
use wasm_encoder::reencode::utils;
use wasmparser::{KnownCustom, Name, Parser, Payload};
use wasmtime_environ::component::{
    CoreDef, ExportItem, GlobalInitializer, InstantiateModule, StaticModuleIndex,
};
use wasmtime_environ::{EntityIndex, EntityType, WasmValType};

use super::code::Instance;
use super::order::Starting;
use super::{Source, encoding};
use spelunk_instrumenter::Origins;

/// The module that the functions of the host are imported from. Nothing else is imported.
pub(crate) const MODULE: &str = "component";

/// A linked module, and where what the instances export is in it.
pub(super) struct Merged {
    pub(super) wasm: Vec<u8>,
    pub(super) origins: Origins,
    /// Modules that code comes from, as `origins` numbers them.
    pub(super) parts: Vec<StaticModuleIndex>,
    instances: Vec<Instance>,
}

/// The modules that code comes from, and what of it comes from where.
#[derive(Default)]
struct Parts {
    map: Origins,
    modules: Vec<StaticModuleIndex>,
}

impl Parts {
    /// The number of a module among them.
    fn part(&mut self, module: StaticModuleIndex) -> u32 {
        let known = self.modules.iter().position(|other| *other == module);
        let part = known.unwrap_or_else(|| {
            self.modules.push(module);
            self.modules.len() - 1
        });
        part as u32
    }
}

/// What a function is called by the host for.
pub(crate) fn export_name(what: &str, index: u32) -> String {
    format!("{what}:{index}")
}

/// An item of a linked module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Item {
    Function(u32),
    Table(u32),
    Memory(u32),
    Global(u32),
    Tag(u32),
}

impl Merged {
    /// What a definition stands for.
    pub(super) fn item(&self, definition: &CoreDef) -> Result<Item> {
        item(&self.instances, definition)
    }
}

fn item(instances: &[Instance], definition: &CoreDef) -> Result<Item> {
    Ok(match definition {
        CoreDef::Export(export) => {
            let instance = &instances[export.instance.as_u32() as usize];
            match &export.item {
                ExportItem::Index(EntityIndex::Function(at)) => {
                    Item::Function(instance.functions[at.as_u32() as usize])
                }
                ExportItem::Index(EntityIndex::Table(at)) => {
                    Item::Table(instance.tables[at.as_u32() as usize])
                }
                ExportItem::Index(EntityIndex::Memory(at)) => {
                    Item::Memory(instance.memories[at.as_u32() as usize])
                }
                ExportItem::Index(EntityIndex::Global(at)) => {
                    Item::Global(instance.globals[at.as_u32() as usize])
                }
                ExportItem::Index(EntityIndex::Tag(at)) => Item::Tag(instance.tags[at.as_u32() as usize]),
                ExportItem::Name(name) => {
                    bail!("the component looks `{name}` up in a module that it imports")
                }
            }
        }
        CoreDef::InstanceFlags(instance) => Item::Global(instance.as_u32()),
        CoreDef::Trampoline(trampoline) => Item::Function(trampoline.as_u32()),
        CoreDef::UnsafeIntrinsic(intrinsic) => {
            bail!("the component uses what only one engine has: {}", intrinsic.name())
        }
        CoreDef::TaskMayBlock => bail!("the component has async functions"),
    })
}

/// The sections of a linked module.
#[derive(Default)]
struct Sections {
    types: we::TypeSection,
    imports: we::ImportSection,
    functions: we::FunctionSection,
    tables: we::TableSection,
    memories: we::MemorySection,
    tags: we::TagSection,
    globals: we::GlobalSection,
    exports: we::ExportSection,
    elements: we::ElementSection,
    code: we::CodeSection,
    data: we::DataSection,
    names: we::NameMap,
    /// Items so far, by their kind.
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    types: u32,
    functions: u32,
    tables: u32,
    memories: u32,
    globals: u32,
    tags: u32,
}

fn next(count: &mut u32, many: usize, indices: &mut Vec<u32>) {
    let first = *count;
    *count += many as u32;
    indices.extend(first..*count);
}

/// Links the modules of a component.
pub(super) fn merged(source: &Source<'_, '_>) -> Result<Merged> {
    let mut sections = Sections::default();
    sections.add_host(source)?;
    let (mut instances, modules) = sections.place(source)?;
    let starts = modules.iter().map(|module| source.modules[*module].start_func.is_some());
    let first = starts.clone().position(|starts| starts);
    // One that starts last of all starts where everything is in place.
    let is_ordered = first.is_some_and(|first| first + 1 < modules.len());
    let mut starting = Starting::default();
    let mut origins = Parts::default();
    origins.map.functions = vec![None; source.translation.trampolines.len()];
    for (instance, module) in instances.iter_mut().zip(&modules) {
        let starting = is_ordered.then_some(&mut starting);
        sections.add(instance, (source, *module), starting, &mut origins)?;
    }
    let start = match (is_ordered, first) {
        (true, _) => Some(sections.add_start(&starting)),
        (false, Some(first)) => instances[first].start,
        (false, None) => None,
    };
    let referenced: Vec<u32> = instances.iter().flat_map(|instance| instance.referenced.clone()).collect();
    if !referenced.is_empty() {
        sections.elements.declared(we::Elements::Functions(referenced.into()));
    }
    let Parts { map, modules } = origins;
    let mut merged = Merged { wasm: Vec::new(), origins: map, parts: modules, instances };
    merged.origins.parts =
        merged.parts.iter().map(|module| source.modules[*module].wasm_module_offset as u32).collect();
    sections.add_exports(source, &merged)?;
    let imported = source.translation.trampolines.len() as u32;
    origins_from_code(&mut merged.origins, sections.counts.functions - imported);
    merged.wasm = sections.finish(start);
    Ok(merged)
}

/// Offsets count from the beginning of the content of the code section, in which the number of functions comes first.
fn origins_from_code(origins: &mut Origins, functions: u32) {
    let mut count = Vec::new();
    crate::file::push_number(&mut count, functions as usize);
    origins.offsets.iter_mut().for_each(|(at, _)| *at += count.len() as u32);
}

impl Sections {
    /// Adds what the host provides, and a global for each instance of a component that says whether it may be left.
    fn add_host(&mut self, source: &Source<'_, '_>) -> Result<()> {
        for (index, trampoline) in source.translation.trampolines.iter() {
            let ty = source.component().trampolines[index];
            let ty = source.types.module_types()[ty].unwrap_func();
            let params: Vec<we::ValType> = ty.params().iter().map(value_type).collect::<Result<_>>()?;
            let results: Vec<we::ValType> = ty.results().iter().map(value_type).collect::<Result<_>>()?;
            self.types.ty().function(params, results);
            self.counts.types += 1;
            let (at, name) = (index.as_u32(), trampoline.symbol_name());
            self.imports.import(MODULE, &at.to_string(), we::EntityType::Function(at));
            self.names.append(at, &name);
            self.counts.functions += 1;
        }
        let instances = source.component().num_runtime_component_instances;
        for _ in 0..if source.has_flags() { instances } else { 0 } {
            let ty = we::GlobalType { val_type: we::ValType::I32, mutable: true, shared: false };
            self.globals.global(ty, &we::ConstExpr::i32_const(1));
            self.counts.globals += 1;
        }
        Ok(())
    }

    /// Gives the items of each instance their indices.
    fn place(&mut self, source: &Source<'_, '_>) -> Result<(Vec<Instance>, Vec<StaticModuleIndex>)> {
        let (mut instances, mut modules) = (Vec::new(), Vec::new());
        for initializer in &source.component().initializers {
            let GlobalInitializer::InstantiateModule(InstantiateModule::Static(index, args), _) = initializer
            else {
                continue;
            };
            let module = &source.modules[*index].module;
            ensure!(args.len() == module.imports().len(), "an instance is not given what its module imports");
            let mut instance = Instance::default();
            for (arg, (_, name, ty)) in args.iter().zip(module.imports()) {
                match (item(&instances, arg)?, ty) {
                    (Item::Function(at), EntityType::Function(_)) => instance.functions.push(at),
                    (Item::Table(at), EntityType::Table(_)) => instance.tables.push(at),
                    (Item::Memory(at), EntityType::Memory(_)) => instance.memories.push(at),
                    (Item::Global(at), EntityType::Global(_)) => instance.globals.push(at),
                    (Item::Tag(at), EntityType::Tag(_)) => instance.tags.push(at),
                    _ => bail!("a module imports `{name}`, and is given something else"),
                }
            }
            let counts = &mut self.counts;
            next(&mut counts.functions, module.num_defined_funcs(), &mut instance.functions);
            next(&mut counts.tables, module.num_defined_tables(), &mut instance.tables);
            next(&mut counts.memories, module.num_defined_memories(), &mut instance.memories);
            next(&mut counts.globals, module.num_defined_globals(), &mut instance.globals);
            next(&mut counts.tags, module.num_defined_tags(), &mut instance.tags);
            instances.push(instance);
            modules.push(*index);
        }
        Ok((instances, modules))
    }

    /// Adds the sections of an instance.
    fn add(
        &mut self,
        instance: &mut Instance,
        (source, index): (&Source<'_, '_>, StaticModuleIndex),
        mut starting: Option<&mut Starting>,
        origins: &mut Parts,
    ) -> Result<()> {
        let module = &source.modules[index];
        // An adapter is made by whoever reads the component, and comes from nowhere in it.
        let is_there = module.wasm_module_offset != 0;
        (instance.types, instance.data, instance.elements) =
            (self.counts.types, self.data.len(), self.elements.len());
        let imported = module.module.num_imported_funcs;
        let part = is_there.then(|| origins.part(index));
        for index in 0..module.module.num_defined_funcs() {
            origins.map.functions.push(part.map(|part| (part, (imported + index) as u32)));
        }
        for payload in Parser::new(0).parse_all(module.wasm) {
            self.add_section(
                instance,
                payload?,
                &mut starting,
                part.map(|_| (&mut origins.map, module.wasm_module_offset as u32)),
            )
            .map_err(encoding)?;
        }
        self.add_names(instance, module.wasm, imported);
        if let (Some(starting), Some(start)) = (starting, instance.start) {
            starting.call(start);
        }
        Ok(())
    }

    fn add_section(
        &mut self,
        instance: &mut Instance,
        payload: Payload<'_>,
        starting: &mut Option<&mut Starting>,
        origins: Option<(&mut Origins, u32)>,
    ) -> Result<(), we::reencode::Error<std::convert::Infallible>> {
        match (payload, starting) {
            (Payload::TypeSection(section), _) => {
                for group in section.clone() {
                    self.counts.types += group?.types().len() as u32;
                }
                utils::parse_type_section(instance, &mut self.types, section)
            }
            (Payload::FunctionSection(section), _) => {
                utils::parse_function_section(instance, &mut self.functions, section)
            }
            (Payload::TableSection(section), _) => {
                utils::parse_table_section(instance, &mut self.tables, section)
            }
            (Payload::MemorySection(section), _) => {
                utils::parse_memory_section(instance, &mut self.memories, section)
            }
            (Payload::TagSection(section), _) => utils::parse_tag_section(instance, &mut self.tags, section),
            (Payload::GlobalSection(section), _) => {
                utils::parse_global_section(instance, &mut self.globals, section)
            }
            (Payload::ElementSection(section), Some(starting)) => {
                starting.add_elements(instance, &mut self.elements, section)
            }
            (Payload::ElementSection(section), None) => {
                utils::parse_element_section(instance, &mut self.elements, section)
            }
            (Payload::DataSection(section), Some(starting)) => {
                starting.add_data(instance, &mut self.data, section)
            }
            (Payload::DataSection(section), None) => {
                utils::parse_data_section(instance, &mut self.data, section)
            }
            (Payload::CodeSectionEntry(body), _) => instance.add_body(&mut self.code, &body, origins),
            (Payload::StartSection { func, .. }, _) => {
                instance.start = Some(instance.functions[func as usize]);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Adds what the functions that an instance defines are called.
    fn add_names(&mut self, instance: &Instance, wasm: &[u8], imported: usize) {
        let mut named = vec![None; instance.functions.len()];
        for payload in Parser::new(0).parse_all(wasm).map_while(Result::ok) {
            let Payload::CustomSection(section) = payload else { continue };
            let KnownCustom::Name(names) = section.as_known() else { continue };
            for names in names.into_iter().map_while(Result::ok) {
                let Name::Function(names) = names else { continue };
                for naming in names.into_iter().map_while(Result::ok) {
                    if let Some(named) = named.get_mut(naming.index as usize) {
                        *named = Some(naming.name);
                    }
                }
            }
        }
        for (at, name) in instance.functions.iter().zip(named).skip(imported) {
            if let Some(name) = name {
                self.names.append(*at, name);
            }
        }
    }

    fn add_start(&mut self, starting: &Starting) -> u32 {
        self.types.ty().function([], []);
        self.functions.function(self.counts.types);
        self.code.function(&starting.function());
        self.counts.functions += 1;
        self.counts.functions - 1
    }

    /// Exports what the host calls, and the globals that say whether an instance may be left.
    fn add_exports(&mut self, source: &Source<'_, '_>, merged: &Merged) -> Result<()> {
        for (what, index, definition) in source.called() {
            let Item::Function(at) = merged.item(&definition)? else {
                bail!("what the component lifts is no function");
            };
            self.exports.export(&export_name(what, index), we::ExportKind::Func, at);
        }
        let instances = source.component().num_runtime_component_instances;
        for index in 0..if source.has_flags() { instances } else { 0 } {
            self.exports.export(&export_name("flags", index), we::ExportKind::Global, index);
        }
        Ok(())
    }

    fn finish(self, start: Option<u32>) -> Vec<u8> {
        let mut module = we::Module::new();
        module.section(&self.types).section(&self.imports).section(&self.functions);
        module.section(&self.tables).section(&self.memories);
        if !self.tags.is_empty() {
            module.section(&self.tags);
        }
        module.section(&self.globals).section(&self.exports);
        if let Some(function_index) = start {
            module.section(&we::StartSection { function_index });
        }
        module.section(&self.elements);
        if !self.data.is_empty() {
            module.section(&we::DataCountSection { count: self.data.len() });
        }
        module.section(&self.code).section(&self.data);
        let mut names = we::NameSection::new();
        names.functions(&self.names);
        module.section(&names);
        module.finish()
    }
}

fn value_type(ty: &WasmValType) -> Result<we::ValType> {
    Ok(match ty {
        WasmValType::I32 => we::ValType::I32,
        WasmValType::I64 => we::ValType::I64,
        WasmValType::F32 => we::ValType::F32,
        WasmValType::F64 => we::ValType::F64,
        other => bail!("the host is given a value of the type {other:?}"),
    })
}
