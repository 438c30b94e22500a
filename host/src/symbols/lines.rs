//! Which line an address comes from.

use std::ops::Range;

use gimli::{ColumnType, LineRow, UnitRef};

use super::dwarf::{Place, TEXT_MAX, text};
use super::entry::Call;
use super::meter::Metered;
use super::path::joined;

type Unit<'u, 'a> = UnitRef<'u, Metered<'a>>;

/// The place of an address, by the table of its unit: by a sequence whose addresses fit.
pub(super) fn place(
    unit: Unit<'_, '_>,
    address: u64,
    is_fitting: impl Fn(&Range<u64>) -> bool,
) -> Option<Place> {
    let mut rows = unit.line_program.clone()?.rows();
    // Where the sequence starts, and the row before.
    let (mut start, mut before): (u64, Option<Row>) = (0, None);
    let mut found: Option<Row> = None;
    while let Ok(Some((_, row))) = rows.next_row() {
        match before.take() {
            Some(before) if (before.address..row.address()).contains(&address) => found = Some(before),
            Some(_) => {}
            None => start = row.address(),
        }
        if !row.end_sequence() {
            before = Some(Row::of(row));
        } else if let Some(found) = found.take()
            // Code that the linker dropped begins at 0.
            && start > 0
            && is_fitting(&(start..row.address()))
        {
            let file = file(unit, found.file);
            return Some(Place { file, line: found.line, column: found.column });
        }
    }
    None
}

struct Row {
    address: u64,
    file: u64,
    line: Option<u32>,
    column: Option<u32>,
}

impl Row {
    fn of(row: &LineRow) -> Row {
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
        let column = match row.column() {
            ColumnType::LeftEdge => None,
            ColumnType::Column(column) => u32::try_from(column.get()).ok(),
        };
        // Line 0 is code that no line is known of.
        let column = column.filter(|_| line.is_some());
        Row { address: row.address(), file: row.file_index(), line, column }
    }
}

/// The place of an inlined call.
pub(super) fn of_call(unit: Unit<'_, '_>, call: Call) -> Place {
    let number = |number: Option<u64>| number.filter(|&number| number > 0)?.try_into().ok();
    let line = number(call.line);
    let column = number(call.column).filter(|_| line.is_some());
    Place { file: call.file.and_then(|file| self::file(unit, file)), line, column }
}

/// The path of a file, and the folder that the compiler was called in.
pub(super) fn file(unit: Unit<'_, '_>, index: u64) -> Option<(String, String)> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(index)?;
    let compiled_in = compiled_in(unit);
    let folder = file.directory(header).and_then(|folder| text(unit, folder)).unwrap_or_default();
    let path = joined(&joined(&compiled_in, &folder), &text(unit, file.path_name())?);
    Some((path, compiled_in))
}

/// The file that a unit was compiled of, and the folder that the compiler was called in.
pub(super) fn of_unit(unit: Unit<'_, '_>) -> Option<(String, String)> {
    let (name, compiled_in) = (short(unit.name?.bytes()), compiled_in(unit));
    Some((joined(&compiled_in, &name), compiled_in))
}

fn compiled_in(unit: Unit<'_, '_>) -> String {
    unit.comp_dir.map(|folder| short(folder.bytes())).unwrap_or_default()
}

fn short(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(TEXT_MAX)]).into_owned()
}
