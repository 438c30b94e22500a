//! Where code comes from, by the DWARF of a module.
//!
//! A unit of compilation lists functions; a function holds the calls that were inlined into it, with the place of each
//! call; a table gives the line of each address. Addresses count from the start of the content of the code section.
//!
//! `addr2line` does this too. It is not used here since it calls itself for each level of inlined calls, so that a hostile
//! module would end the process, and since it keeps whole tables of lines.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use gimli::{
    Abbreviations, AttributeValue, DebugInfoOffset, Dwarf, SectionId, Unit, UnitOffset, UnitRef,
    UnitSectionOffset, constants,
};

use super::entry::Entry;
use super::lines;
use super::meter::{Meter, Metered};
use super::path::Folders;

/// Bytes that each job may read, and beyond them a share of the debug information. Honest modules read a tenth of that.
const BYTES_MIN: u64 = 1 << 20;
/// Bytes that may be read to open one unit. Its abbreviations and files take up to 100 times as much memory.
const UNIT_BYTES_MAX: u64 = 1 << 20;
/// Bytes that may be read to look up one address.
const LOOKUP_BYTES_MAX: u64 = 16 << 20;
/// What a unit costs beside what is read of it.
const UNIT_COST: u64 = 64;
/// Ranges of addresses that are kept of all units.
const RANGES_MAX: usize = 1 << 21;
/// Units that are looked into for one address. More than one has it only where functions with equal code were merged.
const UNITS_MAX: usize = 8;
/// Ranges of functions that are kept of all units together.
const FUNCTIONS_MAX: usize = 1 << 21;
/// Calls inlined into one another.
const INLINED_MAX: usize = 64;
/// Entries that may refer to one another for a name.
const ORIGINS_MAX: usize = 16;
/// Bytes of a name or a path; a longer one counts as unknown.
pub(super) const TEXT_MAX: usize = 4096;

/// A function that an address is in: its own code, or a call inlined there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scope {
    /// Mangled where the compiler says that.
    pub(super) name: Option<String>,
    /// Whether it is declared never to return.
    pub(super) never_returns: bool,
    /// Where in it.
    pub(super) place: Place,
    /// The addresses of an inlined call, sorted.
    pub(super) inlined: Vec<Range<u64>>,
    /// Several calls of this function were inlined in the unit.
    pub(super) is_often: bool,
}

/// A place in a source file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Place {
    /// The path, and the folder that the compiler was called in.
    pub(super) file: Option<(String, String)>,
    pub(super) line: Option<u32>,
    pub(super) column: Option<u32>,
}

/// The units of a module.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// Where each begins in its section, in order.
    offsets: Vec<usize>,
    /// Addresses, and the unit that has them.
    ranges: Vec<(Range<u64>, u32)>,
    /// Of the units that were looked into.
    functions: HashMap<u32, Arc<Listed>>,
    functions_kept: usize,
    /// Where they were compiled.
    pub(super) folders: Folders,
}

/// What is in a unit.
#[derive(Debug, Default)]
struct Listed {
    functions: Vec<Function>,
    /// Of functions that calls were inlined of, by their entries, whether several were.
    inlined: HashMap<Origin, bool>,
}

/// An entry that another refers to: by its place in the unit, or in the section.
type Origin = (bool, usize);

fn origin_of(entry: &Entry<'_>) -> Option<Origin> {
    match entry.origin? {
        AttributeValue::UnitRef(offset) => Some((true, offset.0)),
        AttributeValue::DebugInfoRef(offset) => Some((false, offset.0)),
        _ => None,
    }
}

/// Addresses of a function, and where its entry is in the unit.
#[derive(Clone, Debug)]
struct Function {
    addresses: Range<u64>,
    entry: usize,
}

/// The sections of a module, which are read at the cost of a meter.
#[derive(Clone, Copy)]
pub(super) struct Sections<'a> {
    pub(super) wasm: &'a [u8],
    pub(super) places: &'a [(String, Range<usize>)],
}

impl<'a> Sections<'a> {
    /// How much debug information there is.
    pub(super) fn bytes(&self) -> u64 {
        self.places.iter().map(|(_, place)| place.len() as u64).sum()
    }

    pub(super) fn open(&self, meter: &'a Meter) -> Dwarf<Metered<'a>> {
        let section = |id: SectionId| {
            let place = self.places.iter().find(|(name, _)| name == id.name());
            let bytes = place.and_then(|(_, place)| self.wasm.get(place.clone())).unwrap_or(&[]);
            Ok::<_, gimli::Error>(Metered::new(bytes, meter))
        };
        Dwarf::load(section).expect("every section is there, if empty")
    }
}

/// Calls `each` with every unit, if it can be read, until that says no or nothing is left to pay with; whether it came to the end.
pub(super) fn each_unit<'a>(
    dwarf: &Dwarf<Metered<'a>>,
    meter: &Meter,
    mut each: impl FnMut(DebugInfoOffset, Option<Unit<Metered<'a>>>) -> bool,
) -> bool {
    let mut headers = dwarf.units();
    let mut last: Option<(usize, Arc<Abbreviations>)> = None;
    loop {
        meter.allow(UNIT_BYTES_MAX);
        let header = match (headers.next(), meter.pay(UNIT_COST)) {
            (Ok(Some(header)), Ok(())) => header,
            (Ok(None), Ok(())) => return true,
            _ => return false,
        };
        let Some(offset) = header.debug_info_offset() else { continue };
        // Units that share their abbreviations follow one another.
        let at = header.debug_abbrev_offset();
        if last.as_ref().is_none_or(|(last, _)| *last != at.0) {
            last = dwarf.abbreviations(&header).ok().map(|abbreviations| (at.0, abbreviations));
        }
        let unit = last.as_ref().and_then(|(_, abbreviations)| {
            Unit::new_with_abbreviations(dwarf, header, abbreviations.clone()).ok()
        });
        if !each(offset, unit) {
            return false;
        }
    }
}

impl Units {
    /// As far as they can be read.
    pub(super) fn read(sections: Sections<'_>) -> Units {
        let meter = Meter::new(BYTES_MIN + sections.bytes() / 2);
        let dwarf = sections.open(&meter);
        let mut units = Units::default();
        each_unit(&dwarf, &meter, |offset, unit| {
            let index = units.offsets.len() as u32;
            units.offsets.push(offset.0);
            if let Some(unit) = unit {
                let unit = unit.unit_ref(&dwarf);
                let named = lines::of_unit(unit);
                // Units may share a long name.
                let is_paid =
                    |(file, folder): &(String, String)| meter.pay((file.len() + folder.len()) as u64).is_ok();
                if let Some((file, folder)) = named.filter(is_paid) {
                    units.folders.add(&file, &folder);
                }
                let _ = units.add_ranges(unit, &meter, index);
            }
            units.ranges.len() < RANGES_MAX
        });
        units
    }

    fn add_ranges(&mut self, unit: UnitRef<'_, Metered<'_>>, meter: &Meter, index: u32) -> gimli::Result<()> {
        let root = Entry::next(unit, meter, &mut unit.entries_raw(None)?, |_| true)?;
        root.map_or(Ok(()), |root| root.each_range(unit, |range| self.ranges.push((range, index))))
    }

    /// The scopes that an address is in, the innermost first; none where that is not known, or where what is known does
    /// not fit the function whose addresses are given: a tool that changed the module left it behind.
    pub(super) fn scopes(&mut self, sections: Sections<'_>, address: u64, body: Range<u64>) -> Vec<Scope> {
        let having = self.ranges.iter().filter(|(range, _)| range.contains(&address));
        let having: Vec<u32> = having.map(|(_, unit)| *unit).take(UNITS_MAX).collect();
        for unit in having {
            let listed = self.listed(sections, unit);
            let of_address = listed.functions.iter().filter(|function| function.addresses.contains(&address));
            let length = |function: &&Function| function.addresses.end - function.addresses.start;
            let function = of_address.min_by_key(length);
            let is_fitting = |Range { start, end }: &Range<u64>| body.start <= *start && *end <= body.end;
            if function.is_some_and(|function| !is_fitting(&function.addresses)) {
                continue;
            }
            let meter = Meter::new(LOOKUP_BYTES_MAX.min(BYTES_MIN + sections.bytes() / 8));
            let lookup = Lookup { units: self, dwarf: &sections.open(&meter), meter: &meter, address };
            let scopes = match function {
                Some(function) => lookup.scopes(unit, function.entry, &listed),
                // Where only lines are wanted, compilers leave out functions without inlined calls.
                None => lookup.line(unit, is_fitting),
            };
            if let Ok(scopes) = scopes
                && !scopes.is_empty()
            {
                return scopes;
            }
        }
        Vec::new()
    }

    /// What is in a unit; as far as it can be read.
    fn listed(&mut self, sections: Sections<'_>, unit: u32) -> Arc<Listed> {
        if let Some(listed) = self.functions.get(&unit) {
            return listed.clone();
        }
        let mut listed = Listed::default();
        let start = self.offsets[unit as usize];
        let end = self.offsets.get(unit as usize + 1).map_or(sections.bytes(), |&end| end as u64);
        let meter = Meter::new(BYTES_MIN + 4 * (end - start as u64));
        let dwarf = sections.open(&meter);
        let _ =
            self.open(&dwarf, &meter, unit).and_then(|opened| listed.read(opened.unit_ref(&dwarf), &meter));
        let kept = listed.functions.len() + listed.inlined.len();
        if self.functions_kept + kept > FUNCTIONS_MAX {
            self.functions.clear();
            self.functions_kept = 0;
        }
        self.functions_kept += kept;
        let listed = Arc::new(listed);
        self.functions.insert(unit, listed.clone());
        listed
    }

    fn open<'a>(
        &self,
        dwarf: &Dwarf<Metered<'a>>,
        meter: &Meter,
        unit: u32,
    ) -> gimli::Result<Unit<Metered<'a>>> {
        meter.allow(UNIT_BYTES_MAX);
        let header = dwarf.unit_header(DebugInfoOffset(self.offsets[unit as usize]));
        let unit = header.and_then(|header| dwarf.unit(header));
        meter.allow(u64::MAX);
        unit
    }
}

impl Listed {
    fn read(&mut self, unit: UnitRef<'_, Metered<'_>>, meter: &Meter) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(None)?;
        // Whether the function that is read has code.
        let mut is_there = false;
        while !entries.is_empty() && self.functions.len() + self.inlined.len() < FUNCTIONS_MAX {
            let offset = entries.next_offset().0;
            let is_function = Cell::new(false);
            let is_wanted = |tag| {
                is_function.set(tag == constants::DW_TAG_subprogram);
                is_function.get() || tag == constants::DW_TAG_inlined_subroutine
            };
            let Some(entry) = Entry::next(unit, meter, &mut entries, is_wanted)? else { continue };
            if is_function.get() {
                is_there = false;
                entry.each_range(unit, |addresses| {
                    is_there = true;
                    self.functions.push(Function { addresses, entry: offset });
                })?;
            } else if let Some(origin) = origin_of(&entry).filter(|_| is_there) {
                self.inlined.entry(origin).and_modify(|often| *often = true).or_insert(false);
            }
        }
        Ok(())
    }
}

/// A function or an inlined call, and the addresses of the latter.
type Called<'a> = (Entry<'a>, Vec<Range<u64>>);

/// One address, looked up.
struct Lookup<'l, 'a> {
    units: &'l Units,
    dwarf: &'l Dwarf<Metered<'a>>,
    meter: &'l Meter,
    address: u64,
}

impl<'a> Lookup<'_, 'a> {
    fn scopes(&self, index: u32, function: usize, listed: &Listed) -> gimli::Result<Vec<Scope>> {
        let opened = self.units.open(self.dwarf, self.meter, index)?;
        let unit = opened.unit_ref(self.dwarf);
        let chain = self.chain(unit, UnitOffset(function))?;
        let mut place = lines::place(unit, self.address, |_| true).unwrap_or_default();
        let mut scopes = Vec::new();
        for (entry, mut inlined) in chain.into_iter().rev() {
            let (name, never_returns) = self.name(unit, &entry, ORIGINS_MAX);
            inlined.sort_unstable_by_key(|range| range.start);
            let often = origin_of(&entry).and_then(|origin| listed.inlined.get(&origin));
            let is_often = often.copied().unwrap_or_default();
            scopes.push(Scope { name, never_returns, place, inlined, is_often });
            place = lines::of_call(unit, entry.call);
        }
        Ok(scopes)
    }

    /// The line alone.
    fn line(&self, index: u32, is_fitting: impl Fn(&Range<u64>) -> bool) -> gimli::Result<Vec<Scope>> {
        let opened = self.units.open(self.dwarf, self.meter, index)?;
        let place = lines::place(opened.unit_ref(self.dwarf), self.address, is_fitting);
        Ok(place.map(|place| Scope { place, ..Scope::default() }).into_iter().collect())
    }

    /// The function, and the inlined calls that the address is in with all of their addresses, the innermost last.
    fn chain(&self, unit: UnitRef<'_, Metered<'a>>, function: UnitOffset) -> gimli::Result<Vec<Called<'a>>> {
        let mut entries = unit.entries_raw(Some(function))?;
        let mut chain = Vec::new();
        chain.extend(Entry::next(unit, self.meter, &mut entries, |_| true)?.map(|entry| (entry, Vec::new())));
        let is_inlined = |tag| tag == constants::DW_TAG_inlined_subroutine;
        while entries.next_depth() > 0 && !entries.is_empty() && chain.len() <= INLINED_MAX {
            if let Some(entry) = Entry::next(unit, self.meter, &mut entries, is_inlined)? {
                let mut addresses = Vec::new();
                entry.each_range(unit, |range| addresses.push(range))?;
                if addresses.iter().any(|range| range.contains(&self.address)) {
                    chain.push((entry, addresses));
                }
            }
        }
        Ok(chain)
    }

    /// What an entry is called, and whether it never returns; an entry may leave that to others.
    fn name(
        &self,
        unit: UnitRef<'_, Metered<'a>>,
        entry: &Entry<'a>,
        origins_left: usize,
    ) -> (Option<String>, bool) {
        let linkage_name = entry.linkage_name.and_then(|name| text(unit, name));
        if linkage_name.is_some() || origins_left == 0 {
            return (linkage_name, entry.never_returns);
        }
        let of_origin = entry.origin.and_then(|origin| self.origin(unit, origin, origins_left - 1).ok());
        let (name, never_returns) = of_origin.unwrap_or_default();
        let name = name.or_else(|| entry.name.and_then(|name| text(unit, name)));
        (name, entry.never_returns || never_returns)
    }

    fn origin(
        &self,
        unit: UnitRef<'_, Metered<'a>>,
        origin: AttributeValue<Metered<'a>>,
        origins_left: usize,
    ) -> gimli::Result<(Option<String>, bool)> {
        let named = |unit: UnitRef<'_, Metered<'a>>, offset| {
            let mut entries = unit.entries_raw(Some(offset))?;
            let entry = Entry::next(unit, self.meter, &mut entries, |_| true)?;
            Ok(entry.map(|entry| self.name(unit, &entry, origins_left)).unwrap_or_default())
        };
        match origin {
            AttributeValue::UnitRef(offset) => named(unit, offset),
            AttributeValue::DebugInfoRef(offset) => {
                let index = self.units.offsets.partition_point(|&unit| unit <= offset.0);
                let Some(index) = index.checked_sub(1) else { return Ok((None, false)) };
                let other = self.units.open(self.dwarf, self.meter, index as u32)?;
                match UnitSectionOffset(offset.0).to_unit_offset(&other.header) {
                    Some(offset) => named(other.unit_ref(self.dwarf), offset),
                    None => Ok((None, false)),
                }
            }
            _ => Ok((None, false)),
        }
    }
}

/// A text of a unit, unless it is long.
pub(super) fn text<'a>(unit: UnitRef<'_, Metered<'a>>, value: AttributeValue<Metered<'a>>) -> Option<String> {
    let bytes = unit.attr_string(value).ok()?.bytes();
    (!bytes.is_empty() && bytes.len() <= TEXT_MAX).then(|| String::from_utf8_lossy(bytes).into_owned())
}
