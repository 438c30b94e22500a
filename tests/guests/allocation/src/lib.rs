//! Three rows of a table, each of which may find no memory.

#![forbid(unsafe_code)]

use std::collections::TryReserveError;

use spelunk_guest::prelude::*;

const ROWS: usize = 3;

fn row() -> Result<Vec<u8>, TryReserveError> {
    let mut row = Vec::new();
    if cfg!(not(feature = "careless")) {
        row.try_reserve(200)?;
    }
    row.extend([7; 100]);
    // That does not fail.
    row.shrink_to_fit();
    Ok(row)
}

#[check]
fn table() {
    let mut table: [Vec<u8>; ROWS] = Default::default();
    let made = spelunk_guest::alloc_can_fail(|| {
        for place in &mut table {
            *place = row()?;
        }
        Ok::<(), TryReserveError>(())
    });
    let full = table.iter().filter(|row| row.len() == 100).count();
    let empty = table.iter().filter(|row| row.is_empty()).count();
    assert!(full + empty == ROWS, "a row is half full");
    assert!(made.is_ok() == (full == ROWS), "{full} rows were made");
    note!("{full}");
}
