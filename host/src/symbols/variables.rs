//! Which global variable of the source an address of memory is in, and which part of it, by DWARF.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gimli::{AttributeValue, Operation, UnitRef, constants};

use super::Symbols;
use super::dwarf::{Sections, each_unit};
use super::meter::{Meter, Metered};
use super::module::Module;
use super::types::{Entry, Types};

/// Bytes that may be read, and beyond them a share of the debug information.
const BYTES_MIN: u64 = 1 << 20;
/// Parts within parts.
const NESTED_MAX: usize = 24;
/// Bytes of a path; a longer one is cut at a part.
const PATH_MAX: usize = 120;
/// Members of a type that are looked at.
const MEMBERS_MAX: usize = 4096;

impl Symbols {
    /// What is at these addresses of memory 0, as far as it is in variables that have a name: `ring.slots[2].state`.
    pub(crate) fn variables(&self, addresses: &[u32]) -> BTreeMap<u32, String> {
        if let Some(parts) = &self.parts {
            // The memory of a module that was linked is that of the first.
            return parts.modules.first().map(|first| first.variables(addresses)).unwrap_or_default();
        }
        let module = Module::outline(&self.wasm);
        if module.debug.is_empty() || addresses.is_empty() {
            return BTreeMap::new();
        }
        let sections = Sections { wasm: &self.wasm, places: &module.debug };
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        // It reads nothing but what others wrote, and what it panics at is theirs too.
        catch_unwind(AssertUnwindSafe(|| read(sections, &addresses))).unwrap_or_default()
    }
}

fn read(sections: Sections<'_>, addresses: &[u32]) -> BTreeMap<u32, String> {
    let meter = Meter::new(BYTES_MIN + 4 * sections.bytes());
    let dwarf = sections.open(&meter);
    let mut found = BTreeMap::new();
    each_unit(&dwarf, &meter, |_, unit| {
        meter.allow(u64::MAX);
        let _ = unit.map(|unit| add(&meter, unit.unit_ref(&dwarf), addresses, &mut found));
        found.len() < addresses.len()
    });
    found
}

fn add<'a>(
    meter: &Meter,
    unit: UnitRef<'_, Metered<'a>>,
    addresses: &[u32],
    found: &mut BTreeMap<u32, String>,
) -> gimli::Result<()> {
    let types = Types { unit, meter };
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        meter.pay(1 + entry.attrs().len() as u64)?;
        if entry.tag() != constants::DW_TAG_variable {
            continue;
        }
        let Some(start) = address(unit, entry) else { continue };
        let ty = types.attribute(entry, constants::DW_AT_type);
        let Some(size) = ty.and_then(|ty| types.size(ty, NESTED_MAX)) else { continue };
        let first = addresses.partition_point(|at| u64::from(*at) < start);
        for at in addresses[first..].iter().take_while(|at| u64::from(**at) - start < size) {
            if let Some(ty) = ty
                && !found.contains_key(at)
                && let Some(mut path) = types.text(entry, constants::DW_AT_name)
            {
                types.descend(ty, u64::from(*at) - start, &mut path);
                found.insert(*at, path);
            }
        }
    }
    Ok(())
}

/// Where what the linker dropped is said to be.
const DROPPED: [u64; 3] = [0, u32::MAX as u64, u64::MAX];

/// Where a variable lies that has one place for ever.
pub(super) fn address<'a>(unit: UnitRef<'_, Metered<'a>>, entry: &Entry<'a>) -> Option<u64> {
    let AttributeValue::Exprloc(expression) = entry.attr_value(constants::DW_AT_location)? else {
        return None;
    };
    let mut operations = expression.operations(unit.encoding());
    match (operations.next().ok()??, operations.next().ok()?) {
        (Operation::Address { address }, None) => Some(address),
        (Operation::AddressIndex { index }, None) => unit.address(index).ok(),
        _ => None,
    }
    .filter(|address| !DROPPED.contains(address))
}

/// Whether there is one member.
fn is_alone(children: &[Entry<'_>]) -> bool {
    children.iter().filter(|child| child.tag() == constants::DW_TAG_member).count() == 1
}

/// The type of a part, the offset in it, and what it is called.
type Part<'a> = (AttributeValue<Metered<'a>>, u64, String);

impl<'a> Types<'_, 'a> {
    /// Bytes of a value.
    pub(super) fn size(&self, ty: AttributeValue<Metered<'a>>, nested: usize) -> Option<u64> {
        let entry = self.entry(ty).filter(|_| nested > 0)?;
        let inner = || self.size(entry.attr_value(constants::DW_AT_type)?, nested - 1);
        let bytes = entry.attr(constants::DW_AT_byte_size).and_then(|bytes| bytes.udata_value());
        match entry.tag() {
            constants::DW_TAG_array_type => bytes.or_else(|| {
                self.counts(&entry)?.iter().try_fold(inner()?, |size, count| size.checked_mul(*count))
            }),
            _ => bytes.or_else(inner),
        }
    }

    /// Elements of an array in each of its dimensions.
    pub(super) fn counts(&self, entry: &Entry<'a>) -> Option<Vec<u64>> {
        let count = |range: &Entry<'a>| {
            let number = |name| range.attr(name).and_then(|value| value.udata_value());
            let bound = || number(constants::DW_AT_upper_bound)?.checked_add(1);
            number(constants::DW_AT_count).or_else(bound)
        };
        self.children(entry).iter().map(count).collect()
    }

    /// Bytes of what is in an array, of whose dimensions so many were entered.
    pub(super) fn stride(&self, entry: &Entry<'a>, entered: usize) -> Option<u64> {
        let element = self.size(entry.attr_value(constants::DW_AT_type)?, NESTED_MAX)?;
        let counts = self.counts(entry)?;
        counts.get(entered..)?.iter().try_fold(element, |size, count| size.checked_mul(*count))
    }

    /// Appends to a path what of a value is at this offset.
    fn descend(&self, ty: AttributeValue<Metered<'a>>, offset: u64, path: &mut String) {
        let (mut ty, mut offset) = (ty, offset);
        for _ in 0..NESTED_MAX {
            let Some((inner, rest, part)) = self.part(ty, offset) else { return };
            if path.len() + part.len() > PATH_MAX {
                return;
            }
            path.push_str(&part);
            (ty, offset) = (inner, rest);
        }
    }

    /// The part of a value at an offset.
    fn part(&self, ty: AttributeValue<Metered<'a>>, offset: u64) -> Option<Part<'a>> {
        let entry = self.entry(ty)?;
        let inner = entry.attr_value(constants::DW_AT_type);
        match entry.tag() {
            constants::DW_TAG_array_type => {
                let (mut rest, mut indices) = (offset, String::new());
                for entered in 1..=self.counts(&entry)?.len() {
                    let stride = self.stride(&entry, entered).filter(|size| *size > 0)?;
                    indices += &format!("[{}]", rest / stride);
                    rest %= stride;
                }
                Some((inner?, rest, indices))
            }
            constants::DW_TAG_structure_type | constants::DW_TAG_class_type => self.member(&entry, offset),
            constants::DW_TAG_typedef
            | constants::DW_TAG_const_type
            | constants::DW_TAG_volatile_type
            | constants::DW_TAG_atomic_type => Some((inner?, offset, String::new())),
            _ => None,
        }
    }

    /// The member of a structure at an offset, or of a variant that it may be.
    fn member(&self, entry: &Entry<'a>, offset: u64) -> Option<Part<'a>> {
        let children = self.children(entry);
        let is_alone = is_alone(&children);
        children.iter().find_map(|child| match child.tag() {
            // What is inherited has no name, and what is in it has.
            constants::DW_TAG_member | constants::DW_TAG_inheritance => {
                self.member_at(child, offset, is_alone)
            }
            constants::DW_TAG_variant_part => self.variant(child, offset),
            _ => None,
        })
    }

    /// A member, if it is at the offset. One that only wraps another has no name that says anything.
    fn member_at(&self, member: &Entry<'a>, offset: u64, is_alone: bool) -> Option<Part<'a>> {
        let start = member.attr(constants::DW_AT_data_member_location)?.udata_value()?;
        let ty = member.attr_value(constants::DW_AT_type)?;
        let size = self.size(ty, NESTED_MAX)?;
        let rest = offset.checked_sub(start).filter(|rest| *rest < size)?;
        let name = self.text(member, constants::DW_AT_name).unwrap_or_default();
        // As of `RefCell`.
        let is_cell = || {
            let name = self.entry(ty).and_then(|ty| self.text(&ty, constants::DW_AT_name));
            name.is_some_and(|name| name.starts_with("UnsafeCell<"))
        };
        let is_wrapper = name.is_empty() || (name == "__0" || name == "value") && (is_alone || is_cell());
        Some((ty, rest, if is_wrapper { String::new() } else { format!(".{name}") }))
    }

    /// What is at an offset in the first variant that has something there.
    fn variant(&self, part: &Entry<'a>, offset: u64) -> Option<Part<'a>> {
        for member in self.children(part).iter().flat_map(|variant| self.children(variant)) {
            let Some((ty, rest, name)) = self.member_at(&member, offset, false) else { continue };
            let Some(variant) = self.entry(ty) else { continue };
            // A variant is a structure, which holds no variants itself.
            let members = self.children(&variant);
            let at = |member| self.member_at(member, rest, is_alone(&members));
            if let Some((ty, rest, inner)) = members.iter().find_map(at) {
                let name = if name == ".Some" { "" } else { &*name };
                return Some((ty, rest, format!("{name}{inner}")));
            }
        }
        None
    }

    pub(super) fn children(&self, entry: &Entry<'a>) -> Vec<Entry<'a>> {
        let mut children = Vec::new();
        let Ok(mut entries) = self.unit.entries_at_offset(entry.offset()) else { return children };
        let mut is_first = true;
        while let Ok(Some(inner)) = entries.next_dfs() {
            let depth = inner.depth();
            let cost = 1 + inner.attrs().len() as u64;
            let is_over = !is_first && depth <= 0 || children.len() == MEMBERS_MAX;
            if self.meter.pay(cost).is_err() || is_over {
                break;
            }
            if !is_first && depth == 1 {
                children.push(inner.clone());
            }
            is_first = false;
        }
        children
    }
}
