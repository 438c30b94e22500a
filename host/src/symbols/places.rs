//! Where a part of a variable lies, and how its bytes are read, by DWARF.

use std::ops::Range;

use gimli::{AttributeValue, constants};

use super::meter::Metered;
use super::statics::{Kind, Part, Static};
use super::types::{Entry, Types};

/// Parts within parts.
const NESTED_MAX: usize = 24;

pub(super) type Ty<'a> = AttributeValue<Metered<'a>>;

/// A value, or what is in it.
#[derive(Clone)]
struct Inner<'a> {
    ty: Ty<'a>,
    /// Bytes from the start of what it is in.
    offset: u64,
    /// Of an array, how many of its dimensions were entered.
    entered: usize,
    /// Of a field of bits, the first of them from there on, and how many.
    bits: Option<(u64, u64)>,
}

impl<'a> Inner<'a> {
    fn of(ty: Ty<'a>, offset: u64) -> Inner<'a> {
        Inner { ty, offset, entered: 0, bits: None }
    }

    fn behind(self, offset: u64) -> Option<Inner<'a>> {
        Some(Inner { offset: self.offset.checked_add(offset)?, ..self })
    }
}

/// As [`Static`], which has a name.
pub(super) struct Place {
    address: u64,
    bytes: u64,
    kind: Kind,
    bits: Option<(u32, u32)>,
}

impl Place {
    pub(super) fn range(&self) -> Option<Range<u64>> {
        Some(self.address..self.address.checked_add(self.bytes)?)
    }

    pub(super) fn of(self, name: String) -> Static {
        let Place { address, bytes, kind, bits } = self;
        Static { name, address, bytes, kind, bits }
    }
}

impl<'a> Types<'_, 'a> {
    /// What these lead to in a variable that lies there.
    pub(super) fn find(&self, ty: Ty<'a>, start: u64, parts: &[Part]) -> Option<Place> {
        let mut at = Inner::of(ty, start);
        for part in parts {
            at = self.enter(at.ty, at.entered, part, NESTED_MAX)?.behind(at.offset)?;
        }
        self.place(&at)
    }

    fn place(&self, at: &Inner<'a>) -> Option<Place> {
        if let Some((first, count)) = at.bits {
            let address = at.offset.checked_add(first / 8)?;
            let first = first % 8;
            let kind = self.kind(at.ty, self.size(at.ty, NESTED_MAX)?);
            let bits = (
                u32::try_from(first).ok()?,
                u32::try_from(count).ok().filter(|count| (1..=64).contains(count))?,
            );
            return Some(Place { address, bytes: (first + count).div_ceil(8), kind, bits: Some(bits) });
        }
        let (bytes, kind) = match at.entered {
            0 => {
                let bytes = self.size(at.ty, NESTED_MAX)?;
                (bytes, self.kind(at.ty, bytes))
            }
            entered => (self.stride(&self.entry(at.ty)?, entered)?, Kind::Other),
        };
        Some(Place { address: at.offset, bytes, kind, bits: None })
    }

    /// How a value is read. What has one part that is all of it is read as that part.
    fn kind(&self, ty: Ty<'a>, bytes: u64) -> Kind {
        let mut ty = ty;
        for _ in 0..NESTED_MAX {
            let Some(entry) = self.entry(ty) else { break };
            let inner = entry.attr_value(constants::DW_AT_type);
            let next = match entry.tag() {
                constants::DW_TAG_base_type => {
                    return match entry.attr_value(constants::DW_AT_encoding) {
                        Some(AttributeValue::Encoding(encoding)) => match encoding {
                            constants::DW_ATE_boolean => Kind::Boolean,
                            constants::DW_ATE_float if bytes == 4 || bytes == 8 => Kind::Float,
                            constants::DW_ATE_signed | constants::DW_ATE_signed_char => Kind::Signed,
                            constants::DW_ATE_unsigned
                            | constants::DW_ATE_unsigned_char
                            | constants::DW_ATE_address
                            | constants::DW_ATE_UTF => Kind::Unsigned,
                            _ => Kind::Other,
                        },
                        _ => Kind::Other,
                    };
                }
                constants::DW_TAG_pointer_type | constants::DW_TAG_reference_type => return Kind::Unsigned,
                constants::DW_TAG_enumeration_type if inner.is_none() => return self.kind_of_enum(&entry),
                constants::DW_TAG_structure_type | constants::DW_TAG_class_type => {
                    let children = self.children(&entry);
                    let mut members = children.iter().filter(|child| child.tag() == constants::DW_TAG_member);
                    let member = members.find_map(|member| {
                        let ty = member.attr_value(constants::DW_AT_type)?;
                        (self.member_place(member)?.1.is_none() && self.size(ty, NESTED_MAX) == Some(bytes))
                            .then_some(ty)
                    });
                    let is_plain = children.iter().all(|child| child.tag() != constants::DW_TAG_variant_part);
                    member.filter(|_| is_plain)
                }
                constants::DW_TAG_typedef
                | constants::DW_TAG_const_type
                | constants::DW_TAG_volatile_type
                | constants::DW_TAG_atomic_type
                | constants::DW_TAG_enumeration_type => inner,
                _ => None,
            };
            let Some(next) = next else { break };
            ty = next;
        }
        Kind::Other
    }

    /// That of an enumeration which does not say what number it is.
    fn kind_of_enum(&self, entry: &Entry<'a>) -> Kind {
        let is_negative = |value: &Entry<'a>| {
            let value = value.attr(constants::DW_AT_const_value).and_then(|value| value.sdata_value());
            value.is_some_and(|value| value < 0)
        };
        if self.children(entry).iter().any(is_negative) { Kind::Signed } else { Kind::Unsigned }
    }

    /// A part of a value, of whose dimensions so many were entered. Members that only wrap another, and have no name that says anything, are
    /// seen through, where none has the name that is looked for.
    fn enter(&self, ty: Ty<'a>, entered: usize, part: &Part, nested: usize) -> Option<Inner<'a>> {
        let entry = self.entry(ty).filter(|_| nested > 0)?;
        let inner = entry.attr_value(constants::DW_AT_type);
        match (entry.tag(), part) {
            (constants::DW_TAG_array_type, Part::Index(index)) => {
                let counts = self.counts(&entry)?;
                let count = counts.get(entered).copied()?;
                let index: u64 = index.trim().parse().ok().filter(|index| *index < count)?;
                let offset = index.checked_mul(self.stride(&entry, entered + 1)?)?;
                let is_element = entered + 1 == counts.len();
                match is_element {
                    true => Some(Inner::of(inner?, offset)),
                    false => Some(Inner { entered: entered + 1, ..Inner::of(ty, offset) }),
                }
            }
            (
                constants::DW_TAG_structure_type
                | constants::DW_TAG_class_type
                | constants::DW_TAG_union_type,
                _,
            ) => self.enter_structure(&entry, part, nested),
            (
                constants::DW_TAG_typedef
                | constants::DW_TAG_const_type
                | constants::DW_TAG_volatile_type
                | constants::DW_TAG_atomic_type,
                _,
            ) => self.enter(inner?, entered, part, nested - 1),
            _ => None,
        }
    }

    fn enter_structure(&self, entry: &Entry<'a>, part: &Part, nested: usize) -> Option<Inner<'a>> {
        let mut members = Vec::new();
        let (mut bases, children) = (Vec::new(), self.children(entry));
        for child in children {
            match child.tag() {
                constants::DW_TAG_member => members.push(child),
                constants::DW_TAG_inheritance => bases.push(child),
                constants::DW_TAG_variant_part => {
                    let variants = self.children(&child);
                    members.extend(variants.iter().flat_map(|variant| self.children(variant)));
                }
                _ => {}
            }
        }
        let own = members.iter().find_map(|member| self.own_member(member, part));
        let of_base = || bases.iter().find_map(|base| self.enter_member(base, part, nested));
        let wrappers = || members.iter().filter(|member| self.is_wrapper(member));
        own.or_else(of_base).or_else(|| wrappers().find_map(|member| self.enter_member(member, part, nested)))
    }

    /// Where a member begins, in bytes, and of a field of bits also the first of them and how many; `None` of one that lies elsewhere.
    fn member_place(&self, member: &Entry<'a>) -> Option<(u64, Option<(u64, u64)>)> {
        let number = |name| member.attr(name).and_then(|value| value.udata_value());
        let is_elsewhere = [constants::DW_AT_external, constants::DW_AT_declaration];
        if is_elsewhere.into_iter().any(|name| member.attr(name).is_some()) {
            return None;
        }
        let start = match member.attr(constants::DW_AT_data_member_location) {
            Some(start) => start.udata_value()?,
            // The parts of a union all begin where it does.
            None => 0,
        };
        let Some(count) = number(constants::DW_AT_bit_size) else { return Some((start, None)) };
        let first = match number(constants::DW_AT_bit_offset) {
            None => number(constants::DW_AT_data_bit_offset).unwrap_or(0),
            // Counted from the highest bit of what it is stored in.
            Some(above) => {
                let size = || self.size(member.attr_value(constants::DW_AT_type)?, NESTED_MAX);
                let stored = number(constants::DW_AT_byte_size).or_else(size)?;
                stored.checked_mul(8)?.checked_sub(above.checked_add(count)?)?
            }
        };
        Some((start, Some((first, count))))
    }

    /// The member, if it has this name.
    fn own_member(&self, member: &Entry<'a>, part: &Part) -> Option<Inner<'a>> {
        let Part::Field(field) = part else { return None };
        if self.text(member, constants::DW_AT_name)? != *field {
            return None;
        }
        let (start, bits) = self.member_place(member)?;
        Some(Inner { bits, ..Inner::of(member.attr_value(constants::DW_AT_type)?, start) })
    }

    fn is_wrapper(&self, member: &Entry<'a>) -> bool {
        let name = self.text(member, constants::DW_AT_name).unwrap_or_default();
        matches!(&*name, "" | "__0" | "value" | "Some")
    }

    fn enter_member(&self, member: &Entry<'a>, part: &Part, nested: usize) -> Option<Inner<'a>> {
        let (start, bits) = self.member_place(member)?;
        let ty = member.attr_value(constants::DW_AT_type).filter(|_| bits.is_none())?;
        self.enter(ty, 0, part, nested - 1)?.behind(start)
    }
}
