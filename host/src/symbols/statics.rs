//! Global variables of the source by their names: where each lies, and how its bytes are read. Also what a module calls the globals
//! of WebAssembly, and where in the source an exported function begins.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use gimli::{UnitRef, constants};
use wasmparser::{ExternalKind, KnownCustom, Name, Parser, Payload, TypeRef};

use super::dwarf::{Sections, each_unit};
use super::meter::{Meter, Metered};
use super::module::Module;
use super::names::{demangled, kept};
use super::places::Ty;
use super::types::Types;
use super::variables::address;
use super::{Frame, Symbols};

/// Bytes that may be read, and beyond them a share of the debug information.
const BYTES_MIN: u64 = 1 << 20;
/// Parts within parts.
const NESTED_MAX: usize = 24;
/// Bounds of variables that are looked at.
const BOUNDS_MAX: usize = 1 << 18;
/// Variables of one name that are told apart.
const SEVERAL_MAX: usize = 8;
/// Names of globals that are kept.
const GLOBALS_MAX: usize = 10_000;

/// How the bytes of a variable are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number without a sign, or an address.
    Unsigned,
    /// A number with a sign.
    Signed,
    /// A truth value.
    Boolean,
    /// A floating-point number.
    Float,
    /// Something that has parts, or that nothing is known of.
    Other,
}

/// A global variable of the source, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Static {
    /// Its name, with the namespaces it is in.
    pub name: String,
    /// Where it begins in memory 0.
    pub address: u64,
    /// Bytes that it has.
    pub bytes: u64,
    /// How they are read.
    pub kind: Kind,
    /// Of a field of bits, which of them it is: the first, the lowest of the bytes being 0, and how many.
    pub bits: Option<(u32, u32)>,
}

/// Variables that have one name, and where each lies: `one::calls` at 0x404.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Several(pub Vec<(String, u64)>);

/// What leads from a value to one of its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// `.name`
    Field(String),
    /// `[3]`, and of a map `[key]`.
    Index(String),
}

/// Called with a variable's name, its type, and where it lies; whether to go on.
type Each<'e> = &'e mut dyn for<'t, 'a> FnMut(&Types<'t, 'a>, &str, Ty<'a>, u64) -> bool;

impl Symbols {
    /// The variable with this name, or the part of it that these lead to. A name may be given with the namespaces and functions that it is in, or
    /// without; one that is whole is meant before those that end so.
    ///
    /// # Errors
    /// There are several.
    pub fn find_static(&self, name: &str, parts: &[Part]) -> Result<Option<Static>, Several> {
        let (mut whole, mut ends) = (BTreeMap::new(), BTreeMap::new());
        self.each_static(&mut |types, named, ty, start| {
            let is_end = || named.strip_suffix(name).is_some_and(|before| before.ends_with("::"));
            let found = match named == name {
                true => &mut whole,
                false if is_end() => &mut ends,
                false => return true,
            };
            found.entry(start).or_insert_with(|| (named.to_string(), types.find(ty, start, parts)));
            found.len() < SEVERAL_MAX
        });
        let mut found = if whole.is_empty() { ends } else { whole };
        if found.len() > 1 {
            return Err(Several(found.into_iter().map(|(at, (name, _))| (name, at)).collect()));
        }
        let found = found.pop_first().and_then(|(_, (name, place))| Some((name, place?)));
        Ok(found.map(|(name, place)| place.of(name)))
    }

    /// The variables that have one place for ever, by their addresses, and how many more than `max` there are.
    pub fn statics(&self, max: usize) -> (Vec<Static>, usize) {
        let (mut all, mut left_out) = (Vec::new(), 0);
        self.each_static(&mut |types, name, ty, start| {
            match all.len() < max {
                true => all.extend(types.find(ty, start, &[]).map(|place| place.of(name.to_string()))),
                false => left_out += 1,
            }
            true
        });
        all.sort_by(|one, other| (one.address, &one.name).cmp(&(other.address, &other.name)));
        all.dedup();
        (all, left_out)
    }

    /// Where variables begin and end.
    pub(crate) fn bounds(&self) -> BTreeSet<u64> {
        let mut bounds = BTreeSet::new();
        self.each_static(&mut |types, _, ty, start| {
            let place = types.find(ty, start, &[]).and_then(|place| place.range());
            bounds.extend(place.into_iter().flat_map(|range| [range.start, range.end]));
            bounds.len() < BOUNDS_MAX
        });
        bounds
    }

    /// Calls `each` with every variable until it says no.
    fn each_static(&self, each: Each<'_>) {
        if let Some(parts) = &self.parts {
            // The memory of a module that was linked is that of the first.
            return parts.modules.first().into_iter().for_each(|first| first.each_static(each));
        }
        let module = Module::outline(&self.wasm);
        if module.debug.is_empty() {
            return;
        }
        let sections = Sections { wasm: &self.wasm, places: &module.debug };
        // It reads nothing but what others wrote, and what it panics at is theirs too.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let meter = Meter::new(BYTES_MIN + 4 * sections.bytes());
            let dwarf = sections.open(&meter);
            let mut goes_on = true;
            each_unit(&dwarf, &meter, |_, unit| {
                meter.allow(u64::MAX);
                let of_unit = unit.map(|unit| in_unit(&meter, unit.unit_ref(&dwarf), each));
                goes_on = of_unit.is_none_or(|read| read.unwrap_or(true));
                goes_on
            });
        }));
    }

    /// What the module calls its globals, by their indices: in its name section, and where it exports them.
    pub fn globals(&self) -> BTreeMap<u32, Vec<String>> {
        let mut names: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        let mut add = |index: u32, name: &str| {
            let name = kept(name).into_string();
            if names.len() < GLOBALS_MAX || names.contains_key(&index) {
                let known = names.entry(index).or_default();
                if !known.contains(&name) {
                    known.push(name);
                }
            }
        };
        for payload in Parser::new(0).parse_all(&self.wasm).map_while(Result::ok) {
            match payload {
                Payload::ExportSection(exports) => {
                    let exports = exports.into_iter().map_while(Result::ok);
                    let globals = exports.filter(|export| export.kind == ExternalKind::Global);
                    globals.for_each(|export| add(export.index, export.name));
                }
                Payload::CustomSection(section) => {
                    let KnownCustom::Name(subsections) = section.as_known() else { continue };
                    for subsection in subsections.into_iter().map_while(Result::ok) {
                        if let Name::Global(globals) = subsection {
                            globals
                                .into_iter()
                                .map_while(Result::ok)
                                .for_each(|named| add(named.index, named.name));
                        }
                    }
                }
                _ => {}
            }
        }
        names
    }

    /// Where the body of a function begins in the file; none where it is imported.
    pub(crate) fn body_start(&self, function: u32) -> Option<u32> {
        let module = self.module.get_or_init(|| Module::read(&self.wasm));
        Some(module.body(function)?.start as u32)
    }

    /// Where in the source each of these begins: a function that only one has this name, whatever the namespaces it is in, or else
    /// the one that is exported by the second name, which may only call it. None of those of which no line is known.
    pub fn begins(&self, rules: &[(&str, &str)]) -> BTreeMap<String, Frame> {
        let functions = Functions::read(&self.wasm);
        let module = self.module.get_or_init(|| Module::read(&self.wasm));
        let mut named: BTreeMap<&str, Vec<u32>> = rules.iter().map(|(rule, _)| (*rule, Vec::new())).collect();
        for index in (functions.imported..).take(functions.starts.len()) {
            let name = module.name(index).map(demangled).unwrap_or_default();
            let last = name.rsplit("::").next().unwrap_or_default();
            named.get_mut(last).into_iter().for_each(|known| known.push(index));
        }
        let begin = |index: u32| {
            let start = *functions.starts.get(index.checked_sub(functions.imported)? as usize)?;
            let frame = self.frames(index, start).last()?.clone();
            frame.line.is_some().then_some(frame)
        };
        let of_rule = |(rule, export): &(&str, &str)| {
            let by_export = functions.exports.get(*export).and_then(|index| begin(*index));
            let by_name = match named[rule][..] {
                [index] => begin(index),
                _ => None,
            };
            // One in another file is what the rule calls, and has its name by chance.
            let is_rule = |frame: &Frame| by_export.as_ref().is_none_or(|export| export.file == frame.file);
            Some((rule.to_string(), by_name.filter(is_rule).or_else(|| by_export.clone())?))
        };
        rules.iter().filter_map(of_rule).collect()
    }
}

/// The functions of a module.
#[derive(Default)]
struct Functions {
    imported: u32,
    /// Where the first instruction of each is that is not imported.
    starts: Vec<u32>,
    exports: BTreeMap<String, u32>,
}

impl Functions {
    fn read(wasm: &[u8]) -> Functions {
        let mut functions = Functions::default();
        for payload in Parser::new(0).parse_all(wasm).map_while(Result::ok) {
            match payload {
                Payload::ImportSection(imports) => {
                    let imports = imports.into_imports().map_while(Result::ok);
                    let is_function = |ty| matches!(ty, TypeRef::Func(_) | TypeRef::FuncExact(_));
                    functions.imported = imports.filter(|import| is_function(import.ty)).count() as u32;
                }
                Payload::ExportSection(all) => {
                    let is_function = |kind| matches!(kind, ExternalKind::Func | ExternalKind::FuncExact);
                    let all = all.into_iter().map_while(Result::ok).filter(|export| is_function(export.kind));
                    functions.exports = all.map(|export| (export.name.to_string(), export.index)).collect();
                }
                Payload::CodeSectionEntry(body) => {
                    let start = body.get_operators_reader().map_or(0, |reader| reader.original_position());
                    functions.starts.push(start as u32);
                }
                _ => {}
            }
        }
        functions
    }
}

/// Calls `each` with every variable of a unit; whether it goes on.
fn in_unit<'a>(meter: &Meter, unit: UnitRef<'_, Metered<'a>>, each: Each<'_>) -> gimli::Result<bool> {
    let types = Types { unit, meter };
    let mut entries = unit.entries();
    // The namespaces and functions that an entry is in, and how deep they are.
    let mut spaces: Vec<(isize, String)> = Vec::new();
    while let Some(entry) = entries.next_dfs()? {
        meter.pay(1 + entry.attrs().len() as u64)?;
        let depth = entry.depth();
        while spaces.last().is_some_and(|(at, _)| *at >= depth) {
            spaces.pop();
        }
        if let constants::DW_TAG_namespace | constants::DW_TAG_subprogram = entry.tag() {
            let name = types.text(entry, constants::DW_AT_name);
            if let Some(name) = name.filter(|_| spaces.len() < NESTED_MAX) {
                spaces.push((depth, name));
            }
            continue;
        }
        if entry.tag() != constants::DW_TAG_variable {
            continue;
        }
        let (Some(start), Some(ty)) = (address(unit, entry), types.attribute(entry, constants::DW_AT_type))
        else {
            continue;
        };
        let Some(own) = types.text(entry, constants::DW_AT_name) else { continue };
        let name: Vec<&str> = spaces.iter().map(|(_, name)| &**name).chain([&*own]).collect();
        meter.pay(name.iter().map(|name| name.len() as u64).sum())?;
        if !each(&types, &name.join("::"), ty, start) {
            return Ok(false);
        }
    }
    Ok(true)
}
