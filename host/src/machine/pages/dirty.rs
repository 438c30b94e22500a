//! Which pages the guest wrote.

use super::super::scan;
use super::PAGE;
use super::table::PageTable;

/// A store may begin on one page, which is marked, and reach this many bytes into the next, which is not.
const FRINGE: usize = spelunk_instrumenter::FRINGE_BYTES as usize;

/// Adds the pages of `memory` that may differ from `resident` to `dirty`, which is in order, and clears the marks.
///
/// A mark stands for the page in which a store began; what it wrote may reach into the next page by
/// [`FRINGE`] bytes, so these are compared.
pub(crate) fn take_dirty(marks: &mut [u8], memory: &[u8], resident: &PageTable, dirty: &mut Vec<u32>) {
    let known = dirty.len();
    let pages = memory.len() / PAGE;
    let marked = pages.min(marks.len());
    scan::take(&mut marks[..marked], dirty);
    if known > 0 && dirty.len() > known {
        dirty.sort_unstable();
        dirty.dedup();
    }
    add_fringes(memory, resident, dirty);
}

fn add_fringes(memory: &[u8], resident: &PageTable, dirty: &mut Vec<u32>) {
    let pages = memory.len() / PAGE;
    let marked = dirty.len();
    for at in 0..marked {
        let next = dirty[at] as usize + 1;
        if next >= pages || (at + 1 < marked && dirty[at + 1] as usize == next) {
            continue;
        }
        // Of a size that is known, so that no call compares them.
        let now = memory[next * PAGE..].first_chunk::<FRINGE>();
        let before = resident.bytes(next).unwrap_or(&[0; PAGE]).first_chunk::<FRINGE>();
        let is_same = now == before;
        if !is_same {
            dirty.push(next as u32);
        }
    }
    if dirty.len() > marked {
        dirty.sort_unstable();
    }
}
