//! Variables, and what is in them.

use std::collections::BTreeMap;

use gimli::write::{Address, AttributeValue, Expression, UnitEntryId};
use gimli::{DwTag, constants};

use super::written::Written;
use crate::symbols::{Kind, Part, Static, Symbols};

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
            let found = symbols.find_static(name, parts);
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
