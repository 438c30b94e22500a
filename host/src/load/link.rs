//! A harness that is a module of its own: it imports what the target exports, and both become one module, so that whatever
//! names, stores or instruments a module does so with both.
//!
//! Items of the merged module stand in the order: imports of the target, imports of the harness that the target does not
//! provide, what the target defines, what the harness defines. The two parts differ only in how their indices are mapped.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail, ensure};
use wasm_encoder::reencode::{Error as Reencoding, Reencode};
use wasm_encoder::{CustomSection, Function, NameMap, NameSection, Section as _};
use wasmparser::{ExternalKind, Payload, TypeRef};

use super::parts::{KINDS, Part, Provided, kind_of};
use crate::file::nearest;

/// What a harness imports the target as, beside its name.
const TARGET: &str = "target";
/// Runs before anything else, in a module without a start function.
const INITIALIZE: &str = "_initialize";

/// The target with the harness, as one module. `stem` is the target's name.
///
/// # Errors
/// What cannot be linked, by its name.
pub(super) fn linked(target: &[u8], stem: &str, harness: &[u8]) -> Result<Vec<u8>> {
    let target = Part::read(target).context("the target")?;
    let harness = Part::read(harness).context("the harness")?;
    let provided = provide(&target, &harness, stem)?;
    let counts = [&target, &harness].map(|part| part.memories().len());
    let shares = harness.imports.iter().zip(&provided).any(|((_, _, ty), provided)| {
        provided.is_some() && matches!(ty, TypeRef::Memory(_))
    });
    ensure!(
        counts[0] == 0 || counts[1] == 0 || shares && counts[1] == 1,
        "the harness has a memory of its own, and the target another: have the harness import the target's memory (with \
         clang, --import-memory, and --global-base beyond the target's data and stack)"
    );
    let merged = Merged { maps: Maps::of(&target, &harness, &provided), target, harness, provided };
    let wasm = merged.encode().map_err(|error| anyhow!("the modules cannot be merged: {error}"))?;
    let features = wasmparser::WasmFeatures::all();
    wasmparser::Validator::new_with_features(features).validate_all(&wasm).context("the merged module is not valid")?;
    Ok(wasm)
}

/// What of the target stands for each import of the harness.
fn provide(target: &Part<'_>, harness: &Part<'_>, stem: &str) -> Result<Vec<Option<Provided>>> {
    let mut provided = Vec::new();
    for (module, name, wanted) in &harness.imports {
        let is_memory = matches!(wanted, TypeRef::Memory(_)) && (*module, *name) == ("env", "memory");
        if ![TARGET, stem].contains(module) && !is_memory {
            provided.push(None);
            continue;
        }
        let Some((_, kind, index)) = target.exports.iter().find(|(export, ..)| export == name) else {
            let near = nearest(name, target.exports.iter().map(|(export, ..)| *export));
            bail!("the harness imports `{name}` from `{module}`, which exports nothing of that name; {near}");
        };
        let found = Provided { kind: *kind, index: *index };
        if !target.is_as_wanted(found, harness, wanted) {
            bail!(
                "the harness imports `{name}` from `{module}` as {}; it is {}",
                harness.shown(wanted),
                target.shown_of(found)
            );
        }
        provided.push(Some(found));
    }
    ensure!(
        provided.iter().any(Option::is_some),
        "the harness imports nothing from `{TARGET}` or `{stem}`, so that there is nothing to link"
    );
    Ok(provided)
}

/// How the indices of both parts are mapped, for each of [`KINDS`].
struct Maps {
    target: Map,
    harness: Map,
}

#[derive(Default)]
struct Map {
    /// By the kind, where each item of the part is.
    items: [Vec<u32>; 5],
    types: u32,
    data: u32,
    elements: u32,
}

impl Maps {
    fn of(target: &Part<'_>, harness: &Part<'_>, provided: &[Option<Provided>]) -> Maps {
        let mut maps = Maps {
            target: Map::default(),
            harness: Map { types: target.types, data: target.data, elements: target.elements, ..Map::default() },
        };
        for (at, kind) in KINDS.into_iter().enumerate() {
            let imports = |part: &Part<'_>| {
                part.imports.iter().filter(|(.., ty)| kind_of(ty) == kind).count() as u32
            };
            let of_target = imports(target);
            let left = harness.imports.iter().zip(provided);
            let left = left.filter(|((.., ty), provided)| kind_of(ty) == kind && provided.is_none()).count() as u32;
            let defined = of_target + left;
            let target_items = (0..of_target).chain((0..target.defined[at]).map(|index| defined + index));
            maps.target.items[at] = target_items.collect();
            let mut next = of_target;
            for ((.., ty), provided) in harness.imports.iter().zip(provided) {
                if kind_of(ty) != kind {
                    continue;
                }
                let index = match provided {
                    Some(provided) => maps.target.items[at][provided.index as usize],
                    None => {
                        next += 1;
                        next - 1
                    }
                };
                maps.harness.items[at].push(index);
            }
            let first = defined + target.defined[at];
            maps.harness.items[at].extend((0..harness.defined[at]).map(|index| first + index));
        }
        maps
    }
}

impl Map {
    fn item(&self, kind: ExternalKind, index: u32) -> Result<u32, Reencoding<Infallible>> {
        let at = KINDS.iter().position(|other| *other == kind).unwrap_or(0);
        // An index that there is not stays one, which the module is refused for.
        Ok(self.items[at].get(index as usize).copied().unwrap_or(u32::MAX))
    }
}

type Infallible = std::convert::Infallible;
type Mapped = Result<u32, Reencoding<Infallible>>;

impl Reencode for Map {
    type Error = Infallible;

    fn function_index(&mut self, index: u32) -> Mapped {
        self.item(ExternalKind::Func, index)
    }

    fn table_index(&mut self, index: u32) -> Mapped {
        self.item(ExternalKind::Table, index)
    }

    fn memory_index(&mut self, index: u32) -> Mapped {
        self.item(ExternalKind::Memory, index)
    }

    fn global_index(&mut self, index: u32) -> Mapped {
        self.item(ExternalKind::Global, index)
    }

    fn tag_index(&mut self, index: u32) -> Mapped {
        self.item(ExternalKind::Tag, index)
    }

    fn type_index(&mut self, index: u32) -> Mapped {
        Ok(index.saturating_add(self.types))
    }

    fn data_index(&mut self, index: u32) -> Mapped {
        Ok(index.saturating_add(self.data))
    }

    fn element_index(&mut self, index: u32) -> Mapped {
        Ok(index.saturating_add(self.elements))
    }
}

/// Both modules, about to become one.
struct Merged<'w> {
    target: Part<'w>,
    harness: Part<'w>,
    provided: Vec<Option<Provided>>,
    maps: Maps,
}

/// The sections of the merged module.
#[derive(Default)]
struct Sections {
    types: wasm_encoder::TypeSection,
    imports: wasm_encoder::ImportSection,
    functions: wasm_encoder::FunctionSection,
    tables: wasm_encoder::TableSection,
    memories: wasm_encoder::MemorySection,
    tags: wasm_encoder::TagSection,
    globals: wasm_encoder::GlobalSection,
    elements: wasm_encoder::ElementSection,
    code: wasm_encoder::CodeSection,
    data: wasm_encoder::DataSection,
    has_data_count: bool,
    custom: Vec<(String, Vec<u8>)>,
    functions_named: BTreeMap<u32, String>,
    globals_named: BTreeMap<u32, String>,
}

impl Merged<'_> {
    fn encode(mut self) -> Result<Vec<u8>> {
        let mut sections = Sections::default();
        let functions = self.maps.harness.items[0].iter().chain(&self.maps.target.items[0]).max();
        let mut functions = functions.map_or(0, |last| last + 1);
        let none = vec![None; self.target.imports.len()];
        sections.add(&self.target, &none, &mut self.maps.target)?;
        sections.add(&self.harness, &self.provided, &mut self.maps.harness)?;
        // One function that calls both, where both parts have one of a kind.
        let nullary = self.target.types + self.harness.types;
        let mut both = |sections: &mut Sections, pair: [u32; 2]| {
            if functions_type_is_missing(sections, nullary) {
                sections.types.ty().function([], []);
            }
            sections.functions.function(nullary);
            let mut function = Function::new([]);
            function.instructions().call(pair[0]).call(pair[1]).end();
            sections.code.function(&function);
            functions += 1;
            functions - 1
        };
        let start = match (self.target.start, self.harness.start) {
            (Some(a), Some(b)) => {
                let pair = [self.maps.target.function_index(a)?, self.maps.harness.function_index(b)?];
                Some(both(&mut sections, pair))
            }
            (Some(a), None) => Some(self.maps.target.function_index(a)?),
            (None, Some(b)) => Some(self.maps.harness.function_index(b)?),
            (None, None) => None,
        };
        let mut exports: BTreeMap<String, (ExternalKind, u32)> = BTreeMap::new();
        let mut order = Vec::new();
        for (name, kind, index) in &self.target.exports {
            exports.insert(name.to_string(), (*kind, self.maps.target.item(*kind, *index)?));
            order.push(name.to_string());
        }
        for (name, kind, index) in &self.harness.exports {
            let index = self.maps.harness.item(*kind, *index)?;
            match exports.get(*name).copied() {
                None => order.push(name.to_string()),
                Some(same) if same == (*kind, index) => continue,
                Some((ExternalKind::Func, first)) if *name == INITIALIZE && *kind == ExternalKind::Func => {
                    let index = both(&mut sections, [first, index]);
                    exports.insert(name.to_string(), (*kind, index));
                    continue;
                }
                // What linkers say of a module's layout: the target's counts, whose memory it is.
                Some(_) if name.starts_with("__") => continue,
                Some(_) => bail!("both modules export `{name}`; rename it in the harness"),
            }
            exports.insert(name.to_string(), (*kind, index));
        }
        let exports = order.into_iter().map(|name| (exports[&name], name)).collect::<Vec<_>>();
        Ok(sections.finish(&exports, start))
    }
}

fn functions_type_is_missing(sections: &Sections, nullary: u32) -> bool {
    sections.types.len() == nullary
}

impl Sections {
    /// Adds a part. Of its imports those that are provided are left out.
    fn add(&mut self, part: &Part<'_>, provided: &[Option<Provided>], map: &mut Map) -> Result<()> {
        for ((module, name, ty), provided) in part.imports.iter().zip(provided) {
            if provided.is_none() {
                self.imports.import(module, name, map.entity_type(*ty)?);
            }
        }
        for payload in wasmparser::Parser::new(0).parse_all(part.wasm) {
            match payload? {
                Payload::TypeSection(section) => map.parse_type_section(&mut self.types, section)?,
                Payload::FunctionSection(section) => map.parse_function_section(&mut self.functions, section)?,
                Payload::TableSection(section) => map.parse_table_section(&mut self.tables, section)?,
                Payload::MemorySection(section) => map.parse_memory_section(&mut self.memories, section)?,
                Payload::TagSection(section) => map.parse_tag_section(&mut self.tags, section)?,
                Payload::GlobalSection(section) => map.parse_global_section(&mut self.globals, section)?,
                Payload::ElementSection(section) => map.parse_element_section(&mut self.elements, section)?,
                Payload::DataCountSection { .. } => self.has_data_count = true,
                Payload::DataSection(section) => map.parse_data_section(&mut self.data, section)?,
                Payload::CodeSectionEntry(body) => map.parse_function_body(&mut self.code, body)?,
                Payload::CustomSection(section) => self.add_custom(&section, map)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Names go on with both parts, what is said to Spelunk too; of what else there is, only what says how a part was made
    /// is still true.
    fn add_custom(&mut self, section: &wasmparser::CustomSectionReader<'_>, map: &mut Map) -> Result<()> {
        match section.as_known() {
            wasmparser::KnownCustom::Name(names) => {
                for names in names.into_iter().map_while(Result::ok) {
                    let (kind, names, into) = match names {
                        wasmparser::Name::Function(names) => (ExternalKind::Func, names, &mut self.functions_named),
                        wasmparser::Name::Global(names) => (ExternalKind::Global, names, &mut self.globals_named),
                        _ => continue,
                    };
                    for naming in names.into_iter().map_while(Result::ok) {
                        let index = map.item(kind, naming.index)?;
                        into.entry(index).or_insert_with(|| naming.name.to_string());
                    }
                }
            }
            _ if section.name().starts_with("spelunk:") => {
                // Text, of which each line counts.
                let held = self.custom.iter_mut().find(|(name, _)| name == section.name());
                match held.filter(|_| ["spelunk:properties", "spelunk:reduction"].contains(&section.name())) {
                    Some((_, held)) => {
                        held.push(b'\n');
                        held.extend_from_slice(section.data());
                    }
                    None => self.custom.push((section.name().to_string(), section.data().to_vec())),
                }
            }
            _ if ["producers", "target_features"].contains(&section.name())
                && self.custom.iter().all(|(name, _)| name != section.name()) =>
            {
                self.custom.push((section.name().to_string(), section.data().to_vec()));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self, exports: &[((ExternalKind, u32), String)], start: Option<u32>) -> Vec<u8> {
        let mut out = b"\0asm\x01\0\0\0".to_vec();
        let mut exported = wasm_encoder::ExportSection::new();
        for ((kind, index), name) in exports {
            let kind = match kind {
                ExternalKind::Table => wasm_encoder::ExportKind::Table,
                ExternalKind::Memory => wasm_encoder::ExportKind::Memory,
                ExternalKind::Global => wasm_encoder::ExportKind::Global,
                ExternalKind::Tag => wasm_encoder::ExportKind::Tag,
                ExternalKind::Func | ExternalKind::FuncExact => wasm_encoder::ExportKind::Func,
            };
            exported.export(name, kind, *index);
        }
        let data_count = wasm_encoder::DataCountSection { count: self.data.len() };
        self.types.append_to(&mut out);
        self.imports.append_to(&mut out);
        self.functions.append_to(&mut out);
        self.tables.append_to(&mut out);
        self.memories.append_to(&mut out);
        if !self.tags.is_empty() {
            self.tags.append_to(&mut out);
        }
        self.globals.append_to(&mut out);
        exported.append_to(&mut out);
        if let Some(function_index) = start {
            wasm_encoder::StartSection { function_index }.append_to(&mut out);
        }
        self.elements.append_to(&mut out);
        if self.has_data_count {
            data_count.append_to(&mut out);
        }
        self.code.append_to(&mut out);
        self.data.append_to(&mut out);
        let mut names = NameSection::new();
        let map = |named: &BTreeMap<u32, String>| {
            let mut map = NameMap::new();
            named.iter().for_each(|(index, name)| map.append(*index, name));
            map
        };
        names.functions(&map(&self.functions_named));
        names.globals(&map(&self.globals_named));
        names.append_to(&mut out);
        for (name, data) in &self.custom {
            CustomSection { name: name.into(), data: data.into() }.append_to(&mut out);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wasm(wat: &str) -> Vec<u8> {
        wat::parse_str(format!("(module {wat})")).unwrap()
    }

    fn refuses(target: &str, harness: &str, expected: &str) {
        let error = linked(&wasm(target), "lib", &wasm(harness)).unwrap_err();
        assert_eq!(format!("{error:#}"), expected);
    }

    const TARGET: &str = r#"(memory (export "memory") 1) (global (export "g") (mut i32) (i32.const 5))
      (table (export "t") 2 funcref) (func (export "f") (param i32) (result i32) (local.get 0))"#;

    #[test]
    fn what_cannot_be_linked_is_refused_by_name() {
        refuses(
            TARGET,
            r#"(import "target" "fn" (func))"#,
            "the harness imports `fn` from `target`, which exports nothing of that name; did you mean `f`?",
        );
        refuses(
            TARGET,
            r#"(import "lib" "f" (func (param i32)))"#,
            "the harness imports `f` from `lib` as a function (i32) -> (); it is a function (i32) -> (i32)",
        );
        refuses(
            TARGET,
            r#"(import "lib" "g" (global i32))"#,
            "the harness imports `g` from `lib` as a global i32; it is a mutable global i32",
        );
        refuses(
            TARGET,
            r#"(import "lib" "memory" (memory 2))"#,
            "the harness imports `memory` from `lib` as a memory of 2 pages and more; it is a memory of 1 pages and more",
        );
        refuses(
            TARGET,
            r#"(import "other" "f" (func))"#,
            "the harness imports nothing from `target` or `lib`, so that there is nothing to link",
        );
        refuses(
            TARGET,
            r#"(import "lib" "f" (func (param i32) (result i32))) (memory 1)"#,
            "the harness has a memory of its own, and the target another: have the harness import the target's memory (with \
             clang, --import-memory, and --global-base beyond the target's data and stack)",
        );
        refuses(
            TARGET,
            r#"(import "lib" "f" (func (param i32) (result i32))) (func (export "t"))"#,
            "both modules export `t`; rename it in the harness",
        );
        let error = linked(&wasm(""), "lib", b"not wasm").unwrap_err();
        assert!(format!("{error:#}").starts_with("the harness: "), "{error:#}");
    }
}
