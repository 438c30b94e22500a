//! What exported functions take and return, by the DWARF of a module and its names.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gimli::{AttributeValue, DebuggingInformationEntry, UnitOffset, UnitRef, constants};
use wasmparser::FuncType;

use super::by_name::by_name;
use super::dwarf::{Sections, each_unit, text};
use super::meter::{Meter, Metered};
use super::module::Module;

pub(super) type Entry<'a> = DebuggingInformationEntry<Metered<'a>>;

/// Bytes that may be read, and beyond them a share of the debug information.
const BYTES_MIN: u64 = 1 << 20;
/// Types that a type may be made of, one in the other.
const NESTED_MAX: usize = 16;
/// Entries that may refer to one another.
const ORIGINS_MAX: usize = 4;
/// Parameters of a function.
const PARAMS_MAX: usize = 64;
/// Values of an enumeration.
const VALUES_MAX: usize = 256;

/// A function, as its source declares it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declared {
    /// Names, where they have any, and types.
    pub(crate) params: Vec<(Option<String>, Type)>,
    /// `None` where nothing is returned.
    pub(crate) returns: Option<Type>,
}

/// A type, as far as it says how to draw a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Boolean,
    Float,
    /// Bytes, and whether it has a sign.
    Integer(u64, bool),
    /// Names and values.
    Enumeration(Vec<(String, i64)>),
    /// What is there, and whether it is only read.
    Pointer(Box<Type>, bool),
    /// A byte of text.
    Letter(bool),
    /// A structure, union or class by its name.
    Structure(String),
    Function,
    /// Something that nothing is known of.
    Void,
    Unknown,
}

/// The declarations of these functions, by their indices, as far as they can be read: in debug information, where units that contradict
/// each other are told by the first, and else in names.
pub(crate) fn declared(wasm: &[u8], functions: &BTreeMap<u32, &FuncType>) -> BTreeMap<u32, Declared> {
    let mut found = by_name(wasm, functions);
    let module = Module::outline(wasm);
    if !module.debug.is_empty() {
        let wrapped = module.wrapped();
        let of_body = |index: &u32| Some((module.addresses(*wrapped.get(index).unwrap_or(index))?, *index));
        let mut bodies: Vec<(Range<u64>, u32)> = functions.keys().filter_map(of_body).collect();
        bodies.sort_unstable_by_key(|(addresses, _)| addresses.start);
        let sections = Sections { wasm, places: &module.debug };
        // It reads nothing but what others wrote, and what it panics at is theirs too.
        found.extend(catch_unwind(AssertUnwindSafe(|| read(sections, &bodies))).unwrap_or_default());
    }
    found
}

fn read(sections: Sections<'_>, bodies: &[(Range<u64>, u32)]) -> BTreeMap<u32, Declared> {
    let meter = Meter::new(BYTES_MIN + 4 * sections.bytes());
    let dwarf = sections.open(&meter);
    let mut found = BTreeMap::new();
    each_unit(&dwarf, &meter, |_, unit| {
        // All of a unit is read, which is more than is looked up in one.
        meter.allow(u64::MAX);
        let _ = unit.map(|unit| add(&meter, unit.unit_ref(&dwarf), bodies, &mut found));
        found.len() < bodies.len()
    });
    found
}

fn add<'a>(
    meter: &Meter,
    unit: UnitRef<'_, Metered<'a>>,
    bodies: &[(Range<u64>, u32)],
    found: &mut BTreeMap<u32, Declared>,
) -> gimli::Result<()> {
    let types = Types { unit, meter };
    let mut entries = unit.entries();
    // The function that is being read, and how deep its entry is.
    let mut function: Option<(isize, u32)> = None;
    while let Some(entry) = entries.next_dfs()? {
        meter.pay(1 + entry.attrs().len() as u64)?;
        let depth = entry.depth();
        if function.as_ref().is_some_and(|(at, _)| depth <= *at) {
            function = None;
        }
        match entry.tag() {
            constants::DW_TAG_subprogram => {
                let low = entry.attr_value(constants::DW_AT_low_pc);
                let low = low.and_then(|value| unit.attr_address(value).ok()?);
                let index = low.and_then(|low| function_at(bodies, low));
                let Some(index) = index.filter(|index| !found.contains_key(index)) else { continue };
                let returns = types.attribute(entry, constants::DW_AT_type);
                let returns = returns.map(|value| types.read(value, NESTED_MAX));
                found.insert(index, Declared { params: Vec::new(), returns });
                function = Some((depth, index));
            }
            constants::DW_TAG_formal_parameter => {
                let Some((at, index)) = &function else { continue };
                let Some(declared) = found.get_mut(index).filter(|_| depth == at + 1) else { continue };
                if declared.params.len() < PARAMS_MAX {
                    let named = types.text(entry, constants::DW_AT_name);
                    let ty = types.attribute(entry, constants::DW_AT_type);
                    let ty = ty.map_or(Type::Unknown, |value| types.read(value, NESTED_MAX));
                    declared.params.push((named, ty));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The function that this address is in.
fn function_at(bodies: &[(Range<u64>, u32)], address: u64) -> Option<u32> {
    let next = bodies.partition_point(|(addresses, _)| addresses.start <= address);
    let (addresses, index) = bodies.get(next.checked_sub(1)?)?;
    addresses.contains(&address).then_some(*index)
}

/// The types of a unit.
pub(super) struct Types<'t, 'a> {
    pub(super) unit: UnitRef<'t, Metered<'a>>,
    pub(super) meter: &'t Meter,
}

impl<'a> Types<'_, 'a> {
    /// What an entry says, or the one that it stands for.
    pub(super) fn attribute(
        &self,
        entry: &Entry<'a>,
        name: constants::DwAt,
    ) -> Option<AttributeValue<Metered<'a>>> {
        let mut entry = entry.clone();
        for _ in 0..ORIGINS_MAX {
            if let Some(value) = entry.attr_value(name) {
                return Some(value);
            }
            let origin = entry.attr_value(constants::DW_AT_abstract_origin);
            entry = self.entry(origin.or_else(|| entry.attr_value(constants::DW_AT_specification))?)?;
        }
        None
    }

    /// The entry of this unit that a value refers to.
    pub(super) fn entry(&self, value: AttributeValue<Metered<'a>>) -> Option<Entry<'a>> {
        let AttributeValue::UnitRef(offset) = value else { return None };
        self.at(offset)
    }

    fn at(&self, offset: UnitOffset) -> Option<Entry<'a>> {
        let entry = self.unit.entry(offset).ok()?;
        self.meter.pay(1 + entry.attrs().len() as u64).ok()?;
        Some(entry)
    }

    pub(super) fn text(&self, entry: &Entry<'a>, name: constants::DwAt) -> Option<String> {
        text(self.unit, self.attribute(entry, name)?)
    }

    fn read(&self, value: AttributeValue<Metered<'a>>, nested: usize) -> Type {
        let Some(entry) = self.entry(value).filter(|_| nested > 0) else { return Type::Unknown };
        let inner = || match entry.attr_value(constants::DW_AT_type) {
            Some(inner) => self.read(inner, nested - 1),
            None => Type::Void,
        };
        let bytes = entry.attr(constants::DW_AT_byte_size).and_then(|bytes| bytes.udata_value());
        match entry.tag() {
            constants::DW_TAG_typedef
            | constants::DW_TAG_const_type
            | constants::DW_TAG_volatile_type
            | constants::DW_TAG_restrict_type
            | constants::DW_TAG_atomic_type => inner(),
            constants::DW_TAG_pointer_type => {
                let is_read = entry.attr_value(constants::DW_AT_type).is_some_and(|to| self.is_constant(to));
                Type::Pointer(Box::new(inner()), is_read || self.is_of_rust_and_read(&entry))
            }
            constants::DW_TAG_base_type => self.base(&entry, bytes),
            constants::DW_TAG_enumeration_type => self.enumeration(&entry),
            constants::DW_TAG_structure_type
            | constants::DW_TAG_union_type
            | constants::DW_TAG_class_type => {
                self.text(&entry, constants::DW_AT_name).map_or(Type::Unknown, Type::Structure)
            }
            constants::DW_TAG_subroutine_type => Type::Function,
            _ => Type::Unknown,
        }
    }

    fn base(&self, entry: &Entry<'a>, bytes: Option<u64>) -> Type {
        let Some(AttributeValue::Encoding(encoding)) = entry.attr_value(constants::DW_AT_encoding) else {
            return Type::Unknown;
        };
        match (encoding, bytes) {
            // As Zig has it.
            (_, Some(0)) => Type::Void,
            (constants::DW_ATE_boolean, _) => Type::Boolean,
            (constants::DW_ATE_float, Some(4 | 8)) => Type::Float,
            (constants::DW_ATE_signed_char, _) => Type::Letter(true),
            // `unsigned char` is what C has for bytes.
            (constants::DW_ATE_unsigned_char, _) => {
                let is_char = self.text(entry, constants::DW_AT_name).is_some_and(|name| name == "char");
                if is_char { Type::Letter(false) } else { Type::Integer(1, false) }
            }
            (constants::DW_ATE_signed, Some(bytes)) => Type::Integer(bytes, true),
            (constants::DW_ATE_unsigned, Some(bytes)) => Type::Integer(bytes, false),
            _ => Type::Unknown,
        }
    }

    fn enumeration(&self, entry: &Entry<'a>) -> Type {
        let mut values = Vec::new();
        let Ok(mut entries) = self.unit.entries_at_offset(entry.offset()) else { return Type::Unknown };
        let mut is_first = true;
        while let Ok(Some(inner)) = entries.next_dfs() {
            let depth = inner.depth();
            if self.meter.pay(1).is_err() || (!is_first && depth <= 0) || values.len() > VALUES_MAX {
                break;
            }
            is_first = false;
            if inner.tag() == constants::DW_TAG_enumerator {
                let name = inner.attr_value(constants::DW_AT_name).and_then(|name| text(self.unit, name));
                let value = inner.attr(constants::DW_AT_const_value);
                let value =
                    value.and_then(|value| value.sdata_value().or(value.udata_value().map(|v| v as i64)));
                values.extend(name.zip(value));
            }
        }
        if values.is_empty() || values.len() > VALUES_MAX { Type::Unknown } else { Type::Enumeration(values) }
    }

    fn is_constant(&self, value: AttributeValue<Metered<'a>>) -> bool {
        let mut value = value;
        for _ in 0..NESTED_MAX {
            let Some(entry) = self.entry(value) else { return false };
            match entry.tag() {
                constants::DW_TAG_const_type => return true,
                constants::DW_TAG_typedef | constants::DW_TAG_volatile_type => {}
                _ => return false,
            }
            let Some(inner) = entry.attr_value(constants::DW_AT_type) else { return false };
            value = inner;
        }
        false
    }

    /// Rust has it in the name of the type: `*const u8`.
    fn is_of_rust_and_read(&self, entry: &Entry<'a>) -> bool {
        self.text(entry, constants::DW_AT_name).is_some_and(|name| {
            name.starts_with("*const ") || name.starts_with('&') && !name.starts_with("&mut ")
        })
    }
}
