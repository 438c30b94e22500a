//! The tables of lines of a whole module: which line each address of its code comes from.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gimli::{LineRow, UnitRef};

use super::dwarf::{Sections, each_unit};
use super::lines::file;
use super::meter::{Meter, Metered};
use super::module::Module;

/// Bytes that may be read, and beyond them so many times the debug information. An honest table is read once.
const BYTES_MIN: u64 = 1 << 20;
const TIMES_READ: u64 = 4;
/// Rows that are kept.
const ROWS_MAX: usize = 1 << 22;
/// Files that are told apart.
const FILES_MAX: usize = 1 << 16;

/// The path of a file, and the folder that the compiler was called in.
pub(super) type Path = (String, String);

/// Addresses that come from one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// Where they begin; they end where the next ones do.
    pub(super) start: u32,
    /// The index of the file; none of code that comes from no line.
    pub(super) file: Option<u32>,
    /// From 1.
    pub(super) line: u32,
    /// Whether a statement begins here.
    pub(super) begins: bool,
}

/// All rows of a module, in the order of their addresses.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    pub(super) files: Vec<Path>,
    /// There is more than may be read, or it is damaged.
    pub(super) is_cut: bool,
}

impl Rows {
    /// As far as they can be read.
    pub(super) fn read(wasm: &[u8], module: &Module) -> Rows {
        if module.debug.is_empty() {
            return Rows::default();
        }
        let sections = Sections { wasm, places: &module.debug };
        // It reads nothing but what others wrote, and what it panics at is theirs too.
        let read = catch_unwind(AssertUnwindSafe(|| Rows::of(sections, module)));
        read.unwrap_or_else(|_| Rows { is_cut: true, ..Rows::default() })
    }

    /// As [`Rows::read`], with nothing to catch a panic.
    pub(super) fn of(sections: Sections<'_>, module: &Module) -> Rows {
        Reading::of(sections, module)
    }

    /// How many rows there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The row that an address is in, and its index.
    pub(super) fn at(&self, address: u32) -> Option<(usize, Row)> {
        let index = self.rows.partition_point(|row| row.start <= address).checked_sub(1)?;
        Some((index, self.rows[index]))
    }
}

/// A table of lines has parts, of which each has the rows of one function, or of several that follow one another.
struct Sequence {
    addresses: Range<u32>,
    rows: Vec<Row>,
}

struct Reading<'m> {
    module: &'m Module,
    meter: &'m Meter,
    files: BTreeMap<Path, u32>,
    sequences: Vec<Sequence>,
    rows: usize,
    is_cut: bool,
}

impl Reading<'_> {
    fn of(sections: Sections<'_>, module: &Module) -> Rows {
        let meter = Meter::new(BYTES_MIN + TIMES_READ * sections.bytes());
        let dwarf = sections.open(&meter);
        let mut reading = Reading {
            module,
            meter: &meter,
            files: BTreeMap::new(),
            sequences: Vec::new(),
            rows: 0,
            is_cut: false,
        };
        let is_whole = each_unit(&dwarf, &meter, |_, unit| {
            meter.allow(u64::MAX);
            let added = unit.map(|unit| reading.add(unit.unit_ref(&dwarf)));
            reading.is_cut |= !matches!(added, Some(Ok(())));
            reading.rows < ROWS_MAX
        });
        reading.is_cut |= !is_whole;
        reading.finish()
    }

    fn add(&mut self, unit: UnitRef<'_, Metered<'_>>) -> gimli::Result<()> {
        let Some(program) = unit.line_program.clone() else { return Ok(()) };
        let mut rows = program.rows();
        let mut files = BTreeMap::new();
        let (mut start, mut sequence): (Option<u64>, Vec<Row>) = (None, Vec::new());
        while let Some((_, row)) = rows.next_row()? {
            self.meter.pay(1)?;
            let first = *start.get_or_insert(row.address());
            if row.end_sequence() {
                let rows = std::mem::take(&mut sequence);
                start = None;
                if self.has(first, row.address()) && !rows.is_empty() {
                    self.rows += rows.len();
                    self.sequences.push(Sequence { addresses: first as u32..row.address() as u32, rows });
                }
            } else if self.rows + sequence.len() < ROWS_MAX {
                let row = self.row(unit, row, &mut files)?;
                // Of rows at one address the last counts: there is no code in the others.
                if sequence.last().is_some_and(|last| last.start == row.start) {
                    sequence.pop();
                }
                sequence.push(row);
            }
        }
        Ok(())
    }

    fn row(
        &mut self,
        unit: UnitRef<'_, Metered<'_>>,
        row: &LineRow,
        files: &mut BTreeMap<u64, Option<u32>>,
    ) -> gimli::Result<Row> {
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
        let file = match (line, files.get(&row.file_index())) {
            // Line 0 is code that no line is known of.
            (None, _) => None,
            (Some(_), Some(known)) => *known,
            (Some(_), None) => {
                let found = file(unit, row.file_index());
                self.meter.pay(found.as_ref().map_or(0, |(path, folder)| path.len() + folder.len()) as u64)?;
                let index = found.and_then(|path| self.file(path));
                files.insert(row.file_index(), index);
                index
            }
        };
        Ok(Row {
            start: u32::try_from(row.address()).unwrap_or(u32::MAX),
            file,
            line: line.unwrap_or(0),
            begins: row.is_stmt(),
        })
    }

    fn file(&mut self, path: Path) -> Option<u32> {
        let next = self.files.len() as u32;
        if next as usize >= FILES_MAX && !self.files.contains_key(&path) {
            self.is_cut = true;
            return None;
        }
        Some(*self.files.entry(path).or_insert(next))
    }

    /// Whether addresses are those of a function of the module, or begin with one. Code that the linker dropped is at address
    /// 0 or beyond the end, and what a tool left behind that changed the module fits no function.
    fn has(&self, start: u64, end: u64) -> bool {
        let Some(body) = self.module.body_at(start) else { return false };
        0 < start && start < end && end <= u64::from(u32::MAX) && (end <= body.end || start == body.start)
    }

    fn finish(mut self) -> Rows {
        self.sequences.sort_by_key(|sequence| sequence.addresses.start);
        let (mut rows, mut end) = (Vec::with_capacity(self.rows), 0);
        for sequence in self.sequences {
            // Functions with equal code may have been merged: the first is kept.
            if sequence.addresses.start < end {
                continue;
            }
            end = sequence.addresses.end;
            let addresses = sequence.addresses;
            rows.extend(sequence.rows.into_iter().filter(|row| addresses.contains(&row.start)));
            rows.push(Row { start: end, file: None, line: 0, begins: false });
        }
        // Addresses only rise within a sequence, unless somebody wants them not to.
        rows.sort_by_key(|row| row.start);
        let mut files: Vec<(Path, u32)> = self.files.into_iter().collect();
        files.sort_unstable_by_key(|(_, index)| *index);
        Rows { rows, files: files.into_iter().map(|(path, _)| path).collect(), is_cut: self.is_cut }
    }
}
