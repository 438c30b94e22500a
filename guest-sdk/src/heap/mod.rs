//! The bookkeeping of an allocator, all of which is a function of the blocks that are live.
//!
//! An explorer compares states by their memory. With an ordinary allocator two equal states differ: in what
//! freed blocks still hold, in the lists that link these, in headers that remember what came before. Here
//! a freed block is wiped, and what is written down says which places are live and nothing else, so that
//! whatever was allocated and freed in between, the same blocks at the same places make the same bytes.
//!
//! ```text
//! group, 256 KiB:  | page 0                  | page 1 | page 2 | … | page 63 |     pages of 4 KiB
//!                  | header | granules, each of 16 bytes
//!
//! header:  a bitmap for each page, of the granules that are live
//!          a level for each page: 0 where nothing in it is live, else 255 less the longest run of free granules
//!          which pages are taken, the least level of the group, and of how many groups a huge block is
//! ```
//!
//! A block that fits into a page is a run of its granules, at the first place that is free in the first page
//! whose level says that there is one. A larger one is a run of wholly free pages, and a huge one of wholly free
//! groups, but for the first page. First fit keeps small guests within their first page, header included, and
//! a page that is not stored to costs the explorer nothing.
//!
//! Sizes are not stored: who frees says them, as Rust's allocators are told.

mod lists;
#[cfg(test)]
mod tests;

pub(crate) use lists::Lists;

const GRANULE: usize = 16;
pub(crate) const PAGE: usize = 4096;
const PAGE_GRANULES: usize = PAGE / GRANULE;
const GROUP_PAGES: usize = 64;
/// Bytes in a group.
pub(crate) const GROUP: usize = GROUP_PAGES * PAGE;

/// Where things are in a header; the bitmaps come first.
const LEVELS: usize = GROUP_PAGES * BITMAP;
const TAKEN: usize = LEVELS + GROUP_PAGES;
const LEAST: usize = TAKEN + 8;
const HUGE: usize = LEAST + 8;
const HEADER_GRANULES: usize = (HUGE + 8).div_ceil(GRANULE);

/// Bytes of the bitmap of a page.
const BITMAP: usize = 8 * BITMAP_WORDS;
const BITMAP_WORDS: usize = PAGE_GRANULES / 64;

/// The longest run that a level tells from longer ones; a larger block gets pages of its own.
const RUN_MAX: usize = 254;
/// The level of a page without a free granule.
const FULL: u8 = 255;
/// The level of the first page where it holds no block. It is stored as 0, so that a group without blocks is all
/// zeros, as memory is that was never used.
const FIRST_LEVEL: u8 = level_of(PAGE_GRANULES - HEADER_GRANULES);

/// The memory that a heap lies in. All of it that the heap does not use is zero.
pub(crate) trait Memory {
    /// Where the group of this number begins, if there is or can be that much memory. A multiple of [`PAGE`].
    fn group(&mut self, index: usize) -> Option<usize>;

    /// Where the group begins that holds this address.
    fn group_of(&self, at: usize) -> usize;

    fn byte(&self, at: usize) -> u8;
    fn set_byte(&mut self, at: usize, byte: u8);

    /// The eight bytes at a multiple of 8.
    fn word(&self, at: usize) -> u64;
    fn set_word(&mut self, at: usize, word: u64);

    /// As much more memory as this, at least, above all that there is.
    fn more(&mut self, len: usize) -> Option<std::ops::Range<usize>>;

    /// Sets these bytes to 0.
    fn wipe(&mut self, at: usize, len: usize);
}

/// A block of `len` bytes, which is not 0. The bytes are zero.
#[inline]
pub(crate) fn allocate(memory: &mut impl Memory, len: usize, align: usize) -> Option<usize> {
    match Size::of(len, align) {
        Size::Granules(count) => allocate_granules(memory, count),
        Size::Pages(count) => allocate_pages(memory, count, align),
        Size::Groups(count) => allocate_groups(memory, count, align),
    }
}

/// Frees the block at `at`, which was allocated, or resized to be so, with this length and alignment.
#[inline]
pub(crate) fn free(memory: &mut impl Memory, at: usize, len: usize, align: usize) {
    memory.wipe(at, len);
    match Size::of(len, align) {
        Size::Granules(count) => free_granules(memory, at, count),
        Size::Pages(count) => free_pages(memory, at, count),
        Size::Groups(_) => {
            let header = at - PAGE;
            for field in [TAKEN, LEAST, HUGE] {
                memory.set_word(header + field, 0);
            }
        }
    }
}

/// Makes the block at `at` `new_len` bytes long where it lies, if that can be done. Bytes that are added are
/// zero.
pub(crate) fn resize(memory: &mut impl Memory, at: usize, len: usize, align: usize, new_len: usize) -> bool {
    let fits = match (Size::of(len, align), Size::of(new_len, align)) {
        (Size::Granules(old), Size::Granules(new)) if new > old => {
            take_granules(memory, at + old * GRANULE, new - old)
        }
        (Size::Granules(old), Size::Granules(new)) => {
            if new < old {
                // What is freed must be wiped; the rest of the old length is, below.
                free_granules(memory, at + new * GRANULE, old - new);
            }
            true
        }
        (Size::Pages(old), Size::Pages(new)) if new > old => {
            let place = Place::of(memory, at);
            let more = run_of_pages(new - old, place.page + old);
            let fits = place.page + new <= GROUP_PAGES && memory.word(place.group + TAKEN) & more == 0;
            if fits {
                take_pages(memory, place.group, more);
            }
            fits
        }
        (Size::Pages(old), Size::Pages(new)) => {
            if new < old {
                free_pages(memory, at + new * PAGE, old - new);
            }
            true
        }
        (Size::Groups(old), Size::Groups(new)) => old == new,
        _ => false,
    };
    if fits && new_len < len {
        memory.wipe(at + new_len, len - new_len);
    }
    fits
}

/// How much room a block takes.
enum Size {
    Granules(usize),
    Pages(usize),
    Groups(usize),
}

impl Size {
    #[inline]
    fn of(len: usize, align: usize) -> Size {
        let granules = len.div_ceil(GRANULE);
        if granules <= RUN_MAX && align <= GRANULE {
            return Size::Granules(granules);
        }
        let pages = len.div_ceil(PAGE);
        match pages < GROUP_PAGES {
            true => Size::Pages(pages),
            // The first page is the header's.
            false => Size::Groups((pages + 1).div_ceil(GROUP_PAGES)),
        }
    }
}

/// Where a granule is.
struct Place {
    /// Where its group begins.
    group: usize,
    page: usize,
    granule: usize,
}

impl Place {
    #[inline]
    fn of(memory: &impl Memory, at: usize) -> Place {
        let group = memory.group_of(at);
        let offset = at - group;
        Place { group, page: offset / PAGE, granule: offset % PAGE / GRANULE }
    }
}

/// The level of a page whose longest run of free granules is this long.
const fn level_of(run: usize) -> u8 {
    match run {
        PAGE_GRANULES => 0,
        RUN_MAX.. => FULL - RUN_MAX as u8,
        _ => FULL - run as u8,
    }
}

/// The longest run that a page of this level has, or, of the longest but one, at least has.
fn run_of(level: u8) -> usize {
    match level {
        0 => PAGE_GRANULES,
        _ => (FULL - level) as usize,
    }
}

#[inline]
fn level(memory: &impl Memory, group: usize, page: usize) -> u8 {
    memory.byte(group + LEVELS + page) + if page == 0 { FIRST_LEVEL } else { 0 }
}

fn set_level(memory: &mut impl Memory, group: usize, page: usize, new: u8) {
    let old = level(memory, group, page);
    if new == old {
        return;
    }
    memory.set_byte(group + LEVELS + page, new - if page == 0 { FIRST_LEVEL } else { 0 });
    if page > 0 && (old == 0 || new == 0) {
        let taken = memory.word(group + TAKEN) ^ 1 << page;
        memory.set_word(group + TAKEN, taken);
    }
    let least = memory.word(group + LEAST) as u8;
    if new < least {
        memory.set_word(group + LEAST, new.into());
    } else if old == least {
        set_least(memory, group);
    }
}

/// Writes down the least level of a group.
fn set_least(memory: &mut impl Memory, group: usize) {
    let least = match memory.word(group + TAKEN) | 1 == !0 {
        false => 0,
        true => (0..GROUP_PAGES).map(|page| level(memory, group, page)).min().expect("it has pages"),
    };
    if memory.word(group + LEAST) != least.into() {
        memory.set_word(group + LEAST, least.into());
    }
}

/// The bitmap of a page. In that of the first the header counts as live, which is not stored.
fn bitmap(memory: &impl Memory, group: usize, page: usize) -> [u64; BITMAP_WORDS] {
    let mut words = [0; BITMAP_WORDS];
    for (word, live) in words.iter_mut().enumerate() {
        *live = memory.word(group + page * BITMAP + word * 8);
        if page == 0 {
            *live |= HEADER[word];
        }
    }
    words
}

/// The granules of the header in the first page.
const HEADER: [u64; BITMAP_WORDS] = {
    let mut words = [0; BITMAP_WORDS];
    let mut word = 0;
    while word < BITMAP_WORDS {
        words[word] = mask(0, HEADER_GRANULES, word);
        word += 1;
    }
    words
};

/// The part of the granules `start..end` that lies in this word of a bitmap.
const fn mask(start: usize, end: usize, word: usize) -> u64 {
    const fn below(granule: usize, word: usize) -> u64 {
        match granule.saturating_sub(word * 64) {
            64.. => !0,
            bits => (1 << bits) - 1,
        }
    }
    below(end, word) & !below(start, word)
}

/// Marks the granules `start..end` as live, or as free.
fn set_bits(memory: &mut impl Memory, group: usize, page: usize, (start, end): (usize, usize), live: bool) {
    for word in start / 64..=(end - 1) / 64 {
        let at = group + page * BITMAP + word * 8;
        let (old, mask) = (memory.word(at), mask(start, end, word));
        memory.set_word(at, if live { old | mask } else { old & !mask });
    }
}

/// The first granule from `from` on that is live, or else the number of granules. With `flip` !0 the first that
/// is free.
fn next(bitmap: &[u64; BITMAP_WORDS], from: usize, flip: u64) -> usize {
    let mut word = from / 64;
    let mut above = !0 << (from % 64);
    while word < BITMAP_WORDS {
        let found = (bitmap[word] ^ flip) & above;
        if found != 0 {
            return word * 64 + found.trailing_zeros() as usize;
        }
        (word, above) = (word + 1, !0);
    }
    PAGE_GRANULES
}

/// Where the run of free granules begins that ends before `end`.
fn run_start(bitmap: &[u64; BITMAP_WORDS], end: usize) -> usize {
    for word in (0..=end / 64).rev() {
        let live = bitmap.get(word).map_or(0, |live| live & mask(0, end, word));
        if live != 0 {
            return word * 64 + 64 - live.leading_zeros() as usize;
        }
    }
    0
}

#[inline]
fn allocate_granules(memory: &mut impl Memory, count: usize) -> Option<usize> {
    let highest = FULL - count as u8;
    let mut index = 0;
    loop {
        let group = memory.group(index)?;
        if memory.word(group + LEAST) as u8 <= highest {
            let page = (0..GROUP_PAGES).find(|page| level(memory, group, *page) <= highest);
            return Some(allocate_in_page(memory, group, page.expect("the least level is one"), count));
        }
        index += (memory.word(group + HUGE) as usize).max(1);
    }
}

/// Takes the first run of free granules that is long enough; there is one.
fn allocate_in_page(memory: &mut impl Memory, group: usize, page: usize, count: usize) -> usize {
    let bitmap = bitmap(memory, group, page);
    let mut start = next(&bitmap, 0, !0);
    let mut end = next(&bitmap, start, 0);
    let mut longest_before = 0;
    while end - start < count {
        longest_before = longest_before.max(end - start);
        start = next(&bitmap, end, !0);
        end = next(&bitmap, start, 0);
    }
    let longest = longest_before.max(end - start - count);
    set_bits(memory, group, page, (start, start + count), true);
    lower_run(memory, group, page, &bitmap, (start, end), longest);
    group + page * PAGE + start * GRANULE
}

/// Sets the level of a page in whose free run `start..end` something was put. `longest` is the longest run that
/// is left up to its end, and `bitmap` what was live before.
fn lower_run(
    memory: &mut impl Memory,
    group: usize,
    page: usize,
    bitmap: &[u64; BITMAP_WORDS],
    (start, end): (usize, usize),
    mut longest: usize,
) {
    let before = run_of(level(memory, group, page));
    if end - start < before {
        return;
    }
    let mut at = end;
    // It cannot have got longer.
    while longest < before && at < PAGE_GRANULES {
        let start = next(bitmap, at, !0);
        at = next(bitmap, start, 0);
        longest = longest.max(at - start);
    }
    set_level(memory, group, page, level_of(longest));
}

/// Takes the granules at `at`, if they are free and in one page with the one before.
fn take_granules(memory: &mut impl Memory, at: usize, count: usize) -> bool {
    let Place { group, page, granule } = Place::of(memory, at - GRANULE);
    let (start, end) = (granule + 1, granule + 1 + count);
    if end > PAGE_GRANULES {
        return false;
    }
    let bitmap = bitmap(memory, group, page);
    let run_end = next(&bitmap, start, 0);
    if run_end < end {
        return false;
    }
    set_bits(memory, group, page, (start, end), true);
    // Those before the run are not known, so all are looked at.
    if run_end - start >= run_of(level(memory, group, page)) {
        let mut longest = run_end - end;
        let mut at = 0;
        while at < start {
            let free = next(&bitmap, at, !0);
            at = next(&bitmap, free, 0);
            if free < start {
                longest = longest.max(at - free);
            }
        }
        lower_run(memory, group, page, &bitmap, (start, run_end), longest);
    }
    true
}

/// Frees the granules at `at`. Runs only get longer, so the level follows from the one that they are in now.
fn free_granules(memory: &mut impl Memory, at: usize, count: usize) {
    let Place { group, page, granule } = Place::of(memory, at);
    let (start, end) = (granule, granule + count);
    set_bits(memory, group, page, (start, end), false);
    let bitmap = bitmap(memory, group, page);
    let run = next(&bitmap, end, 0) - run_start(&bitmap, start);
    if run > run_of(level(memory, group, page)) {
        set_level(memory, group, page, level_of(run));
    }
}

/// `count` bits from this one on.
fn run_of_pages(count: usize, from: usize) -> u64 {
    (((1u128 << count) - 1) << from) as u64
}

#[cold]
fn allocate_pages(memory: &mut impl Memory, count: usize, align: usize) -> Option<usize> {
    let mut index = 0;
    loop {
        let group = memory.group(index)?;
        let taken = memory.word(group + TAKEN) | 1;
        let fits = |page: usize| {
            page + count <= GROUP_PAGES
                && taken & run_of_pages(count, page) == 0
                && (group + page * PAGE).is_multiple_of(align)
        };
        if let Some(page) = (1..GROUP_PAGES).find(|page| fits(*page)) {
            take_pages(memory, group, run_of_pages(count, page));
            return Some(group + page * PAGE);
        }
        index += (memory.word(group + HUGE) as usize).max(1);
    }
}

/// Takes pages that are wholly free.
fn take_pages(memory: &mut impl Memory, group: usize, pages: u64) {
    set_pages(memory, group, pages, FULL, memory.word(group + TAKEN) | pages);
}

#[cold]
fn free_pages(memory: &mut impl Memory, at: usize, count: usize) {
    let Place { group, page, .. } = Place::of(memory, at);
    let pages = run_of_pages(count, page);
    set_pages(memory, group, pages, 0, memory.word(group + TAKEN) & !pages);
}

fn set_pages(memory: &mut impl Memory, group: usize, pages: u64, level: u8, taken: u64) {
    for page in (0..GROUP_PAGES).filter(|page| pages >> page & 1 != 0) {
        memory.set_byte(group + LEVELS + page, level);
    }
    memory.set_word(group + TAKEN, taken);
    set_least(memory, group);
}

#[cold]
fn allocate_groups(memory: &mut impl Memory, count: usize, align: usize) -> Option<usize> {
    if align > PAGE {
        return None;
    }
    let mut first = 0;
    'search: loop {
        let start = memory.group(first)?;
        for nth in 0..count {
            // The groups need not all lie side by side.
            let group = memory.group(first + nth)?;
            let is_free = memory.word(group + TAKEN) == 0 && memory.byte(group + LEVELS) == 0;
            if !is_free || group != start + nth * GROUP {
                first += match is_free {
                    true => nth,
                    false => nth + (memory.word(group + HUGE) as usize).max(1),
                };
                continue 'search;
            }
        }
        memory.set_word(start + TAKEN, !0);
        memory.set_word(start + LEAST, FULL.into());
        memory.set_word(start + HUGE, count as u64);
        return Some(start + PAGE);
    }
}
