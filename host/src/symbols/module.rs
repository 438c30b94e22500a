//! What is read off a module beside its debug information.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

use wasmparser::{
    ElementItems, ElementSectionReader, ExportSectionReader, ExternalKind, FunctionBody, ImportSectionReader,
    KnownCustom, Name, Operator, Parser, Payload, TypeRef,
};

use super::endings::{Endings, import_is_end};
use super::names::kept;

/// What the linker adds to the name of a function that calls what is exported.
const WRAPPER: &str = ".command_export";

/// The functions of a module, and where its debug information is.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// By index: what the name section calls it; else its name as an import or an export.
    names: Vec<Option<Box<str>>>,
    imported: usize,
    /// Where the body of each function that is not imported lies in the file.
    bodies: Vec<Range<usize>>,
    /// Where the content of the code section begins, from which DWARF counts.
    pub(super) code: usize,
    /// Names and places of the sections that hold debug information.
    pub(super) debug: Vec<(String, Range<usize>)>,
    pub(super) endings: Endings,
    /// It was built of a harness, which a section says.
    pub(super) is_harness: bool,
    /// Names that several functions have.
    repeated: OnceLock<BTreeSet<Box<str>>>,
}

impl Module {
    /// As far as the module can be read.
    pub(super) fn read(wasm: &[u8]) -> Module {
        let (mut module, read) = Module::outlined(wasm);
        module.endings = Endings::of(&read.never_returning, &read.functions, &read.mentioned);
        module
    }

    /// Without what its functions do.
    pub(super) fn outline(wasm: &[u8]) -> Module {
        Module::outlined(wasm).0
    }

    fn outlined(wasm: &[u8]) -> (Module, Read<'_>) {
        let (mut module, mut read) = (Module::default(), Read::default());
        for payload in Parser::new(0).parse_all(wasm).map_while(Result::ok) {
            module.add(payload, &mut read);
        }
        for (index, name) in std::mem::take(&mut read.exported) {
            if let Some(known) = module.names.get_mut(index as usize) {
                known.get_or_insert(name);
            }
        }
        (module, read)
    }

    fn add<'a>(&mut self, payload: Payload<'a>, read: &mut Read<'a>) {
        match payload {
            Payload::ImportSection(imports) => self.add_imports(imports, read),
            Payload::ExportSection(exports) => read.add_exports(exports),
            Payload::ElementSection(elements) => read.add_elements(elements),
            Payload::CodeSectionStart { range, .. } => self.code = range.start,
            Payload::CodeSectionEntry(body) => {
                self.names.push(None);
                self.bodies.push(body.range());
                read.functions.push(body);
            }
            Payload::CustomSection(section) if section.name().starts_with(".debug_") => {
                self.debug.push((section.name().to_string(), section.data_offset()..section.range().end));
            }
            Payload::CustomSection(section) if section.name() == "spelunk:harness" => self.is_harness = true,
            Payload::CustomSection(section) => {
                if let KnownCustom::Name(names) = section.as_known() {
                    names.into_iter().map_while(Result::ok).for_each(|name| self.add_names(name));
                }
            }
            _ => {}
        }
    }

    fn add_imports(&mut self, imports: ImportSectionReader<'_>, read: &mut Read<'_>) {
        for import in imports.into_imports().map_while(Result::ok) {
            if matches!(import.ty, TypeRef::Func(_) | TypeRef::FuncExact(_)) {
                self.names.push(Some(kept(import.name)));
                read.never_returning.push(import_is_end(import.module, import.name));
                self.imported += 1;
            }
        }
    }

    /// The name section follows the code, so the functions are known.
    fn add_names(&mut self, names: Name<'_>) {
        if let Name::Function(names) = names {
            for naming in names.into_iter().map_while(Result::ok) {
                if let Some(name) = self.names.get_mut(naming.index as usize) {
                    *name = Some(kept(naming.name));
                }
            }
        }
    }

    /// What a function is called, as the module has it.
    pub(super) fn name(&self, function: u32) -> Option<&str> {
        self.names.get(function as usize)?.as_deref()
    }

    /// The first function with this name, of those that are not imported.
    pub(super) fn function(&self, name: &str) -> Option<u32> {
        let names = self.names.iter().enumerate().skip(self.imported);
        names.into_iter().find(|(_, known)| known.as_deref() == Some(name)).map(|(index, _)| index as u32)
    }

    /// Whether another function has the name of this one.
    pub(super) fn is_repeated(&self, function: u32) -> bool {
        let repeated = self.repeated.get_or_init(|| {
            let (mut known, mut repeated) = (BTreeSet::new(), BTreeSet::new());
            for name in self.names.iter().flatten() {
                if !known.insert(name) {
                    repeated.insert(name.clone());
                }
            }
            repeated
        });
        self.name(function).is_some_and(|name| repeated.contains(name))
    }

    /// The functions that others call between constructors and destructors, which the linker made for them to be exported, by those.
    pub(super) fn wrapped(&self) -> BTreeMap<u32, u32> {
        let names = || (0..).zip(&self.names).filter_map(|(index, name)| Some((index, name.as_deref()?)));
        let wrappers = names().filter_map(|(index, name)| Some((name.strip_suffix(WRAPPER)?, index)));
        let wrappers: BTreeMap<&str, u32> = wrappers.collect();
        names().filter_map(|(index, name)| Some((*wrappers.get(name)?, index))).collect()
    }

    /// The names of its functions.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().flatten().map(|name| &**name)
    }

    /// The addresses of a function's code, as DWARF counts them; none where it is imported.
    pub(super) fn addresses(&self, function: u32) -> Option<Range<u64>> {
        let body = self.body(function)?;
        Some(body.start.checked_sub(self.code)? as u64..body.end.checked_sub(self.code)? as u64)
    }

    /// The functions that are not imported, and where their bodies lie in the file.
    pub(super) fn bodies(&self) -> impl Iterator<Item = (u32, Range<usize>)> {
        (self.imported as u32..).zip(self.bodies.iter().cloned())
    }

    /// The addresses, as DWARF counts them, of the function that has one.
    pub(super) fn body_at(&self, address: u64) -> Option<Range<u64>> {
        let address = address.checked_add(self.code as u64)?;
        let after = self.bodies.partition_point(|body| body.start as u64 <= address);
        let body = self.bodies.get(after.checked_sub(1)?)?;
        let code = self.code as u64;
        (address < body.end as u64).then(|| body.start as u64 - code..body.end as u64 - code)
    }

    /// Where the body of a function lies in the file; none where it is imported.
    pub(super) fn body(&self, function: u32) -> Option<Range<usize>> {
        self.bodies.get((function as usize).checked_sub(self.imported)?).cloned()
    }
}

/// What has a meaning only once all functions are known.
#[derive(Default)]
struct Read<'a> {
    /// By index of the import.
    never_returning: Vec<bool>,
    functions: Vec<FunctionBody<'a>>,
    exported: Vec<(u32, Box<str>)>,
    /// The functions that are exported or in a table, each as often as it is.
    mentioned: Vec<u32>,
}

impl Read<'_> {
    fn add_exports(&mut self, exports: ExportSectionReader<'_>) {
        for export in exports.into_iter().map_while(Result::ok) {
            if matches!(export.kind, ExternalKind::Func | ExternalKind::FuncExact) {
                self.exported.push((export.index, kept(export.name)));
                self.mentioned.push(export.index);
            }
        }
    }

    fn add_elements(&mut self, elements: ElementSectionReader<'_>) {
        for element in elements.into_iter().map_while(Result::ok) {
            match element.items {
                ElementItems::Functions(functions) => {
                    self.mentioned.extend(functions.into_iter().map_while(Result::ok));
                }
                ElementItems::Expressions(_, expressions) => {
                    let expressions = expressions.into_iter().map_while(Result::ok);
                    let operators = expressions.flat_map(|expression| expression.get_operators_reader());
                    self.mentioned.extend(operators.map_while(Result::ok).filter_map(
                        |operator| match operator {
                            Operator::RefFunc { function_index } => Some(function_index),
                            _ => None,
                        },
                    ));
                }
            }
        }
    }
}
