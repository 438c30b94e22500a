//! The bookkeeping of an allocator for a guest whose memory nobody looks at: what was freed is a list for each length.
//!
//! Blocks of up to 1 KiB are as long as a multiple of 16 bytes, longer ones as a power of two. None is ever made of others.

use std::ops::Range;

use super::{GRANULE, Memory, PAGE};

/// Up to here there is a list for each multiple of 16 bytes.
const SMALL_MAX: usize = 1024;
const SMALL: usize = SMALL_MAX / GRANULE;
/// One more for each power of two.
const LISTS: usize = SMALL + usize::BITS as usize;

/// What is free: in lists, of which each block begins with the address of the next, and what was never used.
pub(crate) struct Lists {
    free: [usize; LISTS],
    next: usize,
    end: usize,
    /// Where the first block lies.
    start: usize,
    /// Whether nothing is given that was freed.
    only_unused: bool,
    /// Bytes that may be looked at now, to see whether they are written to, and further ones where it matters.
    credit: usize,
    lent: usize,
}

/// So many bytes may be looked at for each copy, at first, and beyond that.
const LOOKED_AT: usize = 256;
const LOOKED_AT_FIRST: usize = 16 << 20;
const LENT: usize = 512 << 20;

impl Lists {
    pub(crate) const fn new() -> Lists {
        Lists {
            free: [0; LISTS],
            next: 0,
            end: 0,
            start: 0,
            only_unused: false,
            credit: LOOKED_AT_FIRST,
            lent: LENT,
        }
    }

    /// Whether this block was allocated here: all that are lie above all others.
    #[inline]
    pub(crate) fn has(&self, at: usize) -> bool {
        self.start != 0 && at >= self.start
    }

    /// A block of `len` bytes, which is not 0. The bytes are whatever was there.
    #[inline]
    pub(crate) fn allocate(&mut self, memory: &mut impl Memory, len: usize, align: usize) -> Option<usize> {
        let (list, room) = list_of(len, align)?;
        let at = self.free[list];
        if at == 0 || self.only_unused {
            return self.unused(memory, room);
        }
        self.free[list] = memory.word(at) as usize;
        Some(at)
    }

    /// Frees a block of this length and alignment.
    #[inline]
    pub(crate) fn free(&mut self, memory: &mut impl Memory, at: usize, len: usize, align: usize) {
        let Some((list, _)) = list_of(len, align) else { return };
        memory.set_word(at, self.free[list] as u64);
        self.free[list] = at;
    }

    /// A copy begins: where all blocks lie that there are, if it is to be looked at whether one of them is written to; what is allocated until
    /// [`Lists::is_copied`] lies beyond. That takes time, of which there is much more where it `matters`.
    pub(crate) fn copies(&mut self, matters: bool) -> Option<Range<usize>> {
        self.credit = self.credit.saturating_add(LOOKED_AT);
        let bytes = self.next - self.start;
        let credit = if matters && bytes > self.credit { &mut self.lent } else { &mut self.credit };
        *credit = credit.checked_sub(bytes)?;
        self.only_unused = true;
        Some(self.start..self.next)
    }

    /// That copy is made.
    pub(crate) fn is_copied(&mut self) {
        self.only_unused = false;
    }

    /// Whether a block has room for `new_len` bytes where it lies.
    pub(crate) fn fits(len: usize, align: usize, new_len: usize) -> bool {
        list_of(len, align) == list_of(new_len, align)
    }

    #[cold]
    fn unused(&mut self, memory: &mut impl Memory, room: usize) -> Option<usize> {
        let align = if room > SMALL_MAX { room.min(PAGE) } else { GRANULE };
        let mut at = self.next.next_multiple_of(align);
        if at.checked_add(room)? > self.end {
            let more = memory.more(room.checked_add(PAGE)?)?;
            // What follows on what there was is one with it.
            if more.start != self.end {
                at = more.start.next_multiple_of(align);
            }
            self.end = more.end;
            if self.start == 0 {
                self.start = more.start;
            }
        }
        self.next = at + room;
        Some(at)
    }
}

/// The list of blocks with room for so much, and how long they are; none where such a block cannot be.
#[inline]
fn list_of(len: usize, align: usize) -> Option<(usize, usize)> {
    if len <= SMALL_MAX && align <= GRANULE {
        let granules = len.div_ceil(GRANULE);
        return Some((granules - 1, granules * GRANULE));
    }
    if align > PAGE {
        return None;
    }
    let room = len.max(align).checked_next_power_of_two()?.max(2 * SMALL_MAX);
    Some((SMALL + room.trailing_zeros() as usize, room))
}
