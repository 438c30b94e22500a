//! Debug information, written for a module of a test.

use std::ops::Range;

use gimli::write::{
    Address, AttributeValue, Dwarf, EndianVec, LineProgram, LineString, Range as Addresses, RangeList,
    Sections, Unit, UnitEntryId, UnitId,
};
use gimli::{DwTag, Encoding, Format, LineEncoding, LittleEndian, constants};
use wasmparser::{Parser, Payload};

use crate::symbols::Symbols;

/// The folder that the compiler was called in.
pub(super) const COMPILED_IN: &str = "/home/me/bank";

/// A module, and the debug information that it gets. Functions count without imports, instructions from 0.
pub(super) struct Written {
    wasm: Vec<u8>,
    code: usize,
    /// See [`offsets`].
    offsets: Vec<Vec<usize>>,
    dwarf: Dwarf,
    unit: UnitId,
}

impl Written {
    /// A module with one unit that has all of its code, in this version of DWARF.
    pub(super) fn of(text: &str, version: u16) -> Written {
        let wasm = wat::parse_str(text).unwrap();
        let (code, offsets) = offsets(&wasm);
        let mut written = Written { wasm, code, offsets, dwarf: Dwarf::new(), unit: no_unit() };
        let all = written.offsets.concat();
        written.add_unit(version, all[0]..*all.last().unwrap());
        written
    }

    /// Another unit, to which what comes next belongs.
    pub(super) fn add_unit(&mut self, version: u16, offsets: Range<usize>) {
        let encoding = Encoding { format: Format::Dwarf32, version, address_size: 4 };
        let text = |text: &str| LineString::String(text.into());
        let lines = LineProgram::new(
            encoding,
            LineEncoding::default(),
            text(COMPILED_IN),
            None,
            text("unit.rs"),
            None,
        );
        self.unit = self.dwarf.units.add(Unit::new(encoding, lines));
        let root = self.unit().root();
        let folder = AttributeValue::String(COMPILED_IN.into());
        self.unit().get_mut(root).set(constants::DW_AT_comp_dir, folder);
        self.set_addresses(root, &[offsets]);
    }

    pub(super) fn unit(&mut self) -> &mut Unit {
        self.dwarf.units.get_mut(self.unit)
    }

    pub(super) fn id(&self) -> UnitId {
        self.unit
    }

    /// Where an instruction is in the file.
    pub(super) fn offset(&self, function: usize, instruction: usize) -> usize {
        self.offsets[function][1 + instruction]
    }

    /// The instructions of a function, as offsets in the file.
    pub(super) fn offsets(&self, function: usize, instructions: Range<usize>) -> Range<usize> {
        self.offset(function, instructions.start)..self.offset(function, instructions.end)
    }

    fn set_addresses(&mut self, entry: UnitEntryId, offsets: &[Range<usize>]) {
        let address = |offset: usize| Address::Constant((offset - self.code) as u64);
        let addresses = offsets
            .iter()
            .map(|offsets| Addresses::StartEnd { begin: address(offsets.start), end: address(offsets.end) });
        let list = RangeList(addresses.collect());
        let list = self.unit().ranges.add(list);
        self.unit().get_mut(entry).set(constants::DW_AT_ranges, AttributeValue::RangeListRef(list));
        // To which those of version 4 would be relative.
        self.unit()
            .get_mut(entry)
            .set(constants::DW_AT_low_pc, AttributeValue::Address(Address::Constant(0)));
    }

    /// An entry of the unit, or below another one.
    pub(super) fn entry(&mut self, parent: Option<UnitEntryId>, tag: DwTag, name: &str) -> UnitEntryId {
        let parent = parent.unwrap_or(self.unit().root());
        let entry = self.unit().add(parent, tag);
        let attribute = match name.starts_with("_Z") {
            true => constants::DW_AT_linkage_name,
            false => constants::DW_AT_name,
        };
        self.set(entry, attribute, AttributeValue::String(name.into()));
        entry
    }

    pub(super) fn set(&mut self, entry: UnitEntryId, name: constants::DwAt, value: AttributeValue) {
        self.unit().get_mut(entry).set(name, value);
    }

    /// A function with all of its body.
    pub(super) fn function(&mut self, function: usize, name: &str) -> UnitEntryId {
        let entry = self.entry(None, constants::DW_TAG_subprogram, name);
        let (start, end) = (self.offsets[function][0], *self.offsets[function].last().unwrap());
        let start_address = Address::Constant((start - self.code) as u64);
        self.set(entry, constants::DW_AT_low_pc, AttributeValue::Address(start_address));
        self.set(entry, constants::DW_AT_high_pc, AttributeValue::Udata((end - start) as u64));
        entry
    }

    /// A call of `origin`, which was inlined as these instructions, from a line of a file.
    pub(super) fn inlined(
        &mut self,
        parent: UnitEntryId,
        origin: UnitEntryId,
        offsets: &[Range<usize>],
        (path, line): (&str, u64),
    ) -> UnitEntryId {
        let entry = self.unit().add(parent, constants::DW_TAG_inlined_subroutine);
        self.set(entry, constants::DW_AT_abstract_origin, AttributeValue::UnitRef(origin));
        self.set_addresses(entry, offsets);
        let file = self.file(path);
        self.set(entry, constants::DW_AT_call_file, AttributeValue::FileIndex(Some(file)));
        self.set(entry, constants::DW_AT_call_line, AttributeValue::Udata(line));
        self.set(entry, constants::DW_AT_call_column, AttributeValue::Udata(7));
        entry
    }

    fn file(&mut self, path: &str) -> gimli::write::FileId {
        let lines = &mut self.unit().line_program;
        let folder = lines.default_directory();
        lines.add_file(LineString::String(path.into()), folder, None)
    }

    /// Lines and columns of a function: each from an instruction on, to the next one.
    pub(super) fn lines(&mut self, function: usize, path: &str, rows: &[(usize, u64, u64)]) {
        let (start, end) = (self.offsets[function][0], *self.offsets[function].last().unwrap());
        let rows = rows.iter().map(|&(instruction, line, column)| {
            ((self.offset(function, instruction) - start) as u64, line, column)
        });
        let rows: Vec<_> = rows.collect();
        self.sequence((start - self.code) as u64, (end - start) as u64, path, &rows);
    }

    fn sequence(&mut self, address: u64, length: u64, path: &str, rows: &[(u64, u64, u64)]) {
        let file = self.file(path);
        let lines = &mut self.unit().line_program;
        lines.begin_sequence(Some(Address::Constant(address)));
        for &(offset, line, column) in rows {
            let row = lines.row();
            (row.address_offset, row.file, row.line, row.column) = (offset, file, line, column);
            lines.generate_row();
        }
        lines.end_sequence(length);
    }

    /// Lines of code that the linker dropped: at address 0.
    pub(super) fn dropped_lines(&mut self, path: &str) {
        self.sequence(0, 1000, path, &[(0, 99, 9)]);
    }

    /// The module with sections of its debug information.
    pub(super) fn wasm(&mut self) -> Vec<u8> {
        let mut sections = Sections::new(EndianVec::new(LittleEndian));
        self.dwarf.write(&mut sections).unwrap();
        let mut wasm = self.wasm.clone();
        let added = sections.for_each(|id, data| {
            add_section(&mut wasm, id.name(), data.slice());
            Ok::<_, gimli::Error>(())
        });
        added.unwrap();
        wasm
    }

    pub(super) fn symbols(&mut self) -> Symbols {
        Symbols::of(self.wasm())
    }
}

/// Where the content of the code section begins; of each function, the offset of its body, of its instructions, and of its
/// end.
pub(super) fn offsets(wasm: &[u8]) -> (usize, Vec<Vec<usize>>) {
    let (mut code, mut offsets) = (0, Vec::new());
    for payload in Parser::new(0).parse_all(wasm).map(Result::unwrap) {
        match payload {
            Payload::CodeSectionStart { range, .. } => code = range.start,
            Payload::CodeSectionEntry(body) => {
                let operators = body.get_operators_reader().unwrap().into_iter_with_offsets();
                let operators = operators.map(|operator| operator.unwrap().1);
                offsets.push(
                    [body.range().start].into_iter().chain(operators).chain([body.range().end]).collect(),
                );
            }
            _ => {}
        }
    }
    (code, offsets)
}

/// The one that is not there yet.
fn no_unit() -> UnitId {
    let encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 4 };
    Dwarf::new().units.add(Unit::new(encoding, LineProgram::none()))
}

pub(super) fn add_section(wasm: &mut Vec<u8>, name: &str, data: &[u8]) {
    let mut content = vec![name.len() as u8];
    content.extend_from_slice(name.as_bytes());
    content.extend_from_slice(data);
    wasm.push(0);
    let mut length = content.len();
    while length > 0x7f {
        wasm.push(length as u8 | 0x80);
        length >>= 7;
    }
    wasm.push(length as u8);
    wasm.extend(content);
}
