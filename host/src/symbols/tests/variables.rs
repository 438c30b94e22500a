//! Variables, and what is in them.

use std::collections::BTreeMap;

use gimli::write::{Address, AttributeValue, Expression, UnitEntryId};
use gimli::{DwTag, constants};

use super::written::Written;
use crate::symbols::{Kind, Part, Several, Static, Symbols};

/// A type of so many bytes.
fn sized(written: &mut Written, tag: DwTag, name: &str, bytes: u64) -> UnitEntryId {
    let entry = written.entry(None, tag, name);
    written.set(entry, constants::DW_AT_byte_size, AttributeValue::Udata(bytes));
    entry
}

fn member(written: &mut Written, of: UnitEntryId, (name, at): (&str, u64), ty: UnitEntryId) {
    let entry = written.entry(Some(of), constants::DW_TAG_member, name);
    written.set(entry, constants::DW_AT_data_member_location, AttributeValue::Udata(at));
    written.set(entry, constants::DW_AT_type, AttributeValue::UnitRef(ty));
}

fn variable(written: &mut Written, (name, at): (&str, u64), ty: UnitEntryId) {
    let entry = written.entry(None, constants::DW_TAG_variable, name);
    let mut place = Expression::new();
    place.op_addr(Address::Constant(at));
    written.set(entry, constants::DW_AT_location, AttributeValue::Exprloc(place));
    written.set(entry, constants::DW_AT_type, AttributeValue::UnitRef(ty));
}

/// `struct { int head; struct { char state; int amount; } slots[3]; } ring` at 2048, and `int count` behind it.
fn ring(version: u16) -> Symbols {
    let mut written = Written::of("(module (memory 1) (func nop))", version);
    let byte = sized(&mut written, constants::DW_TAG_base_type, "char", 1);
    written.set(byte, constants::DW_AT_encoding, AttributeValue::Encoding(constants::DW_ATE_unsigned_char));
    let int = sized(&mut written, constants::DW_TAG_base_type, "int", 4);
    written.set(int, constants::DW_AT_encoding, AttributeValue::Encoding(constants::DW_ATE_signed));
    let slot = sized(&mut written, constants::DW_TAG_structure_type, "Slot", 8);
    member(&mut written, slot, ("state", 0), byte);
    member(&mut written, slot, ("amount", 4), int);
    let slots = written.entry(None, constants::DW_TAG_array_type, "");
    written.set(slots, constants::DW_AT_type, AttributeValue::UnitRef(slot));
    let range = written.entry(Some(slots), constants::DW_TAG_subrange_type, "");
    written.set(range, constants::DW_AT_count, AttributeValue::Udata(3));
    let ring = sized(&mut written, constants::DW_TAG_structure_type, "Ring", 28);
    member(&mut written, ring, ("head", 0), int);
    member(&mut written, ring, ("slots", 4), slots);
    let named = written.entry(None, constants::DW_TAG_typedef, "ring_t");
    written.set(named, constants::DW_AT_type, AttributeValue::UnitRef(ring));
    variable(&mut written, ("ring", 2048), named);
    variable(&mut written, ("count", 2076), int);
    // What the linker dropped.
    variable(&mut written, ("dropped", 0), named);
    let space = written.entry(None, constants::DW_TAG_namespace, "bank");
    let total = written.entry(Some(space), constants::DW_TAG_variable, "TOTAL");
    let mut place = Expression::new();
    place.op_addr(Address::Constant(4096));
    written.set(total, constants::DW_AT_location, AttributeValue::Exprloc(place));
    written.set(total, constants::DW_AT_type, AttributeValue::UnitRef(int));
    written.symbols()
}

#[test]
fn an_address_is_a_part_of_a_variable() {
    for version in [4, 5] {
        let expected = [
            (2048, "ring.head"),
            (2049, "ring.head"),
            (2052, "ring.slots[0].state"),
            // Between two members.
            (2054, "ring.slots[0]"),
            (2071, "ring.slots[2]"),
            (2072, "ring.slots[2].amount"),
            (2076, "count"),
        ];
        let found = ring(version).variables(&[2080, 2076, 2048, 2049, 2052, 2054, 2071, 2072, 4, 2047]);
        assert_eq!(found, BTreeMap::from(expected.map(|(at, path)| (at, path.to_string()))));
    }
}

#[test]
fn a_name_and_what_leads_to_a_part_are_a_place() {
    for version in [4, 5] {
        let symbols = ring(version);
        let field = |name: &str| Part::Field(name.to_string());
        let index = |at: &str| Part::Index(at.to_string());
        let check = |name: &str, parts: &[Part], expected: Option<(u64, u64, Kind)>| {
            let found = symbols.find_static(name, parts).unwrap();
            assert_eq!(
                found.map(|found| (found.address, found.bytes, found.kind)),
                expected,
                "{name} {parts:?}"
            );
        };
        check("count", &[], Some((2076, 4, Kind::Signed)));
        check("ring", &[], Some((2048, 28, Kind::Other)));
        check("ring", &[field("head")], Some((2048, 4, Kind::Signed)));
        check("ring", &[field("slots")], Some((2052, 24, Kind::Other)));
        check("ring", &[field("slots"), index("2"), field("state")], Some((2068, 1, Kind::Unsigned)));
        check("ring", &[field("slots"), index("2"), field("amount")], Some((2072, 4, Kind::Signed)));
        check("ring", &[field("slots"), index("3")], None);
        check("ring", &[field("slots"), index("-1")], None);
        check("ring", &[field("slots"), index("18446744073709551615")], None);
        check("ring", &[field("nothing")], None);
        check("ring", &[index("0")], None);
        check("count", &[field("head")], None);
        check("TOTAL", &[], Some((4096, 4, Kind::Signed)));
        check("bank::TOTAL", &[], Some((4096, 4, Kind::Signed)));
        check("k::TOTAL", &[], None);
        check("dropped", &[], None);
        check("nothing", &[], None);
        let named = |(name, address, bytes, kind): (&str, u64, u64, Kind)| Static {
            name: name.to_string(),
            address,
            bytes,
            kind,
            bits: None,
        };
        let all = [
            ("ring", 2048, 28, Kind::Other),
            ("count", 2076, 4, Kind::Signed),
            ("bank::TOTAL", 4096, 4, Kind::Signed),
        ];
        assert_eq!(symbols.statics(10), (all.map(named).to_vec(), 0));
        assert_eq!(symbols.statics(2), (all[..2].iter().copied().map(named).collect(), 1));
    }
}

/// `struct outer : base { struct { int key; } value; int key; unsigned low : 4; int middle : 8; static int count; } o` at 2048, of which
/// `base` has an `int tag`; `enum { -1, 1 } level` at 2080; `int grid[2][3]` at 2084; and in two functions a `calls`.
fn c_plus_plus() -> Symbols {
    let mut written = Written::of("(module (memory 1) (func nop) (func nop))", 5);
    let int = sized(&mut written, constants::DW_TAG_base_type, "int", 4);
    written.set(int, constants::DW_AT_encoding, AttributeValue::Encoding(constants::DW_ATE_signed));
    let unsigned = sized(&mut written, constants::DW_TAG_base_type, "unsigned", 4);
    written.set(unsigned, constants::DW_AT_encoding, AttributeValue::Encoding(constants::DW_ATE_unsigned));
    let base = sized(&mut written, constants::DW_TAG_structure_type, "base", 4);
    member(&mut written, base, ("tag", 0), int);
    let payload = sized(&mut written, constants::DW_TAG_structure_type, "payload", 4);
    member(&mut written, payload, ("key", 0), int);
    let outer = sized(&mut written, constants::DW_TAG_structure_type, "outer", 16);
    let inherits = written.entry(Some(outer), constants::DW_TAG_inheritance, "");
    written.set(inherits, constants::DW_AT_type, AttributeValue::UnitRef(base));
    written.set(inherits, constants::DW_AT_data_member_location, AttributeValue::Udata(0));
    member(&mut written, outer, ("value", 4), payload);
    member(&mut written, outer, ("key", 8), int);
    for (name, ty, first, count) in [("low", unsigned, 96, 4), ("middle", int, 100, 8)] {
        let field = written.entry(Some(outer), constants::DW_TAG_member, name);
        written.set(field, constants::DW_AT_type, AttributeValue::UnitRef(ty));
        written.set(field, constants::DW_AT_bit_size, AttributeValue::Udata(count));
        written.set(field, constants::DW_AT_data_bit_offset, AttributeValue::Udata(first));
    }
    let count = written.entry(Some(outer), constants::DW_TAG_member, "count");
    written.set(count, constants::DW_AT_type, AttributeValue::UnitRef(int));
    written.set(count, constants::DW_AT_external, AttributeValue::Flag(true));
    let level = sized(&mut written, constants::DW_TAG_enumeration_type, "level", 4);
    for (name, value) in [("LOW", -1), ("HIGH", 1)] {
        let value = AttributeValue::Sdata(value);
        let entry = written.entry(Some(level), constants::DW_TAG_enumerator, name);
        written.set(entry, constants::DW_AT_const_value, value);
    }
    let grid = written.entry(None, constants::DW_TAG_array_type, "");
    written.set(grid, constants::DW_AT_type, AttributeValue::UnitRef(int));
    for count in [2, 3] {
        let range = written.entry(Some(grid), constants::DW_TAG_subrange_type, "");
        written.set(range, constants::DW_AT_count, AttributeValue::Udata(count));
    }
    variable(&mut written, ("o", 2048), outer);
    variable(&mut written, ("level", 2080), level);
    variable(&mut written, ("grid", 2084), grid);
    for (function, name, at) in [(0, "one", 3000), (1, "two", 3004)] {
        let function = written.function(function, name);
        let calls = written.entry(Some(function), constants::DW_TAG_variable, "calls");
        let mut place = Expression::new();
        place.op_addr(Address::Constant(at));
        written.set(calls, constants::DW_AT_location, AttributeValue::Exprloc(place));
        written.set(calls, constants::DW_AT_type, AttributeValue::UnitRef(int));
    }
    written.symbols()
}

#[test]
fn parts_are_found_as_c_plus_plus_has_them() {
    let symbols = c_plus_plus();
    let field = |name: &str| Part::Field(name.to_string());
    let index = |at: &str| Part::Index(at.to_string());
    let place = |name: &str, parts: &[Part]| {
        let found = symbols.find_static(name, parts).unwrap()?;
        Some((found.address, found.bytes, found.kind, found.bits))
    };
    // A part with the name is meant before what is in a part called `value`.
    assert_eq!(place("o", &[field("key")]), Some((2056, 4, Kind::Signed, None)));
    assert_eq!(place("o", &[field("value"), field("key")]), Some((2052, 4, Kind::Signed, None)));
    assert_eq!(place("o", &[field("tag")]), Some((2048, 4, Kind::Signed, None)));
    assert_eq!(place("o", &[field("low")]), Some((2060, 1, Kind::Unsigned, Some((0, 4)))));
    assert_eq!(place("o", &[field("middle")]), Some((2060, 2, Kind::Signed, Some((4, 8)))));
    // It lies elsewhere.
    assert_eq!(place("o", &[field("count")]), None);
    assert_eq!(place("level", &[]), Some((2080, 4, Kind::Signed, None)));
    assert_eq!(place("grid", &[index("1")]), Some((2096, 12, Kind::Other, None)));
    assert_eq!(place("grid", &[index("1"), index("2")]), Some((2104, 4, Kind::Signed, None)));
    assert_eq!(place("grid", &[index("1"), index("3")]), None);
    assert_eq!(place("grid", &[index("2")]), None);
    assert_eq!(place("grid", &[index("1"), index("2"), index("0")]), None);
    let both = [("one::calls".to_string(), 3000), ("two::calls".to_string(), 3004)];
    assert_eq!(symbols.find_static("calls", &[]), Err(Several(both.into())));
    assert_eq!(place("two::calls", &[]), Some((3004, 4, Kind::Signed, None)));
    let expected =
        [(2049, "o.tag"), (2052, "o.value.key"), (2057, "o.key"), (2104, "grid[1][2]"), (3000, "calls")];
    let found = symbols.variables(&expected.map(|(at, _)| at));
    assert_eq!(found, BTreeMap::from(expected.map(|(at, path)| (at, path.to_string()))));
    let bounds: Vec<u64> = symbols.bounds().into_iter().collect();
    assert_eq!(bounds, [2048, 2064, 2080, 2084, 2108, 3000, 3004, 3008]);
}
