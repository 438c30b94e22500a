//! What an entry of DWARF says about a unit, a function or an inlined call.

use std::ops::Range;

use gimli::{Attribute, AttributeValue, DwTag, EntriesRaw, RangeListsOffset, UnitRef, constants};

use super::meter::{Meter, Metered};

type Value<'a> = AttributeValue<Metered<'a>>;
type Unit<'u, 'a> = UnitRef<'u, Metered<'a>>;

/// An entry, as far as it matters here.
#[derive(Debug, Default)]
pub(super) struct Entry<'a> {
    pub(super) linkage_name: Option<Value<'a>>,
    pub(super) name: Option<Value<'a>>,
    /// The entry that says what this one leaves out.
    pub(super) origin: Option<Value<'a>>,
    pub(super) never_returns: bool,
    pub(super) call: Call,
    low: Option<u64>,
    high: Option<High>,
    ranges: Option<RangeListsOffset>,
}

/// Where an inlined call is: the index of the file, the line and the column.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Call {
    pub(super) file: Option<u64>,
    pub(super) line: Option<u64>,
    pub(super) column: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum High {
    Address(u64),
    Size(u64),
}

impl<'a> Entry<'a> {
    /// Reads on to the next entry; none where one ends a list, or its tag is not wanted.
    pub(super) fn next(
        unit: Unit<'_, 'a>,
        meter: &Meter,
        entries: &mut EntriesRaw<'_, Metered<'a>>,
        is_wanted: impl Fn(DwTag) -> bool,
    ) -> gimli::Result<Option<Entry<'a>>> {
        let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(None) };
        let attributes = abbreviation.attributes();
        // An attribute may take no bytes.
        meter.pay(attributes.len() as u64)?;
        if !is_wanted(abbreviation.tag()) {
            entries.skip_attributes(attributes)?;
            return Ok(None);
        }
        let mut entry = Entry::default();
        for attribute in attributes {
            entry.add(unit, &entries.read_attribute(*attribute)?)?;
        }
        Ok(Some(entry))
    }

    fn add(&mut self, unit: Unit<'_, 'a>, attribute: &Attribute<Metered<'a>>) -> gimli::Result<()> {
        let value = attribute.value();
        match attribute.name() {
            constants::DW_AT_linkage_name | constants::DW_AT_MIPS_linkage_name => {
                self.linkage_name = Some(value)
            }
            constants::DW_AT_name => self.name = Some(value),
            constants::DW_AT_abstract_origin | constants::DW_AT_specification => self.origin = Some(value),
            constants::DW_AT_noreturn => self.never_returns = matches!(value, AttributeValue::Flag(true)),
            constants::DW_AT_call_file => {
                // Before version 5, 0 was no file.
                self.call.file = match value {
                    AttributeValue::FileIndex(0) if unit.header.version() < 5 => None,
                    AttributeValue::FileIndex(file) => Some(file),
                    _ => None,
                };
            }
            constants::DW_AT_call_line => self.call.line = attribute.udata_value(),
            constants::DW_AT_call_column => self.call.column = attribute.udata_value(),
            constants::DW_AT_low_pc => self.low = unit.attr_address(value)?,
            constants::DW_AT_high_pc => {
                self.high = match value {
                    AttributeValue::Udata(size) => Some(High::Size(size)),
                    value => unit.attr_address(value)?.map(High::Address),
                };
            }
            constants::DW_AT_ranges => self.ranges = unit.attr_ranges_offset(value)?,
            _ => {}
        }
        Ok(())
    }

    /// The addresses that it has. Code that the linker dropped has none, or begins at address 0.
    pub(super) fn each_range(
        &self,
        unit: Unit<'_, 'a>,
        mut range: impl FnMut(Range<u64>),
    ) -> gimli::Result<()> {
        let mut each = |start: u64, end: u64| {
            if 0 < start && start < end {
                range(start..end);
            }
        };
        if let Some(offset) = self.ranges {
            let mut ranges = unit.ranges(offset)?;
            while let Some(found) = ranges.next()? {
                each(found.begin, found.end);
            }
        } else if let (Some(low), Some(high)) = (self.low, self.high) {
            match high {
                High::Address(high) => each(low, high),
                High::Size(size) => each(low, low.saturating_add(size)),
            }
        }
        Ok(())
    }
}
