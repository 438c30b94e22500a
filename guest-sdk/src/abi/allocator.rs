//! The allocator of a guest: `heap` in the linear memory.

use std::alloc::{GlobalAlloc, Layout};
use std::arch::wasm32::{memory_grow, memory_size};
use std::cell::UnsafeCell;
use std::ops::Range;
use std::ptr;

use crate::heap::{self, GROUP, Lists, Memory, PAGE};
use crate::memory;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

struct Allocator;

// SAFETY: blocks are allocated by `heap`, which gives each byte to one live block at most, and aligns it.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        give(layout.size(), layout.align())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises that there are bytes to give.
        unsafe { give_zeros(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        take_back(at, layout.size(), layout.align());
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_len: usize) -> *mut u8 {
        // SAFETY: the caller promises that it is a block of this layout.
        unsafe { give_other(at, layout.size(), layout.align(), new_len) }
    }
}

fn give(len: usize, align: usize) -> *mut u8 {
    if memory::fails(len) { ptr::null_mut() } else { place(len, align) }
}

/// # Safety
/// `len` is not 0.
unsafe fn give_zeros(len: usize, align: usize) -> *mut u8 {
    // SAFETY: the caller promises it.
    if memory::fails(len) { ptr::null_mut() } else { unsafe { place_zeros(len, align) } }
}

/// # Safety
/// At `at` is a block of this length and alignment.
unsafe fn give_other(at: *mut u8, len: usize, align: usize, new_len: usize) -> *mut u8 {
    // To shrink in place does not fail with other allocators either.
    if new_len > len && memory::fails(new_len) {
        return ptr::null_mut();
    }
    // SAFETY: the caller promises it.
    unsafe { resize(at, len, align, new_len) }
}

// What a sanitizer puts others in the place of, which it knows by name: so these are functions, also within this crate. What is to fail
// was asked before, so that it is asked the same there.

#[inline(never)]
fn place(len: usize, align: usize) -> *mut u8 {
    allocate(len, align).map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
}

/// # Safety
/// `len` is not 0.
#[inline(never)]
unsafe fn place_zeros(len: usize, align: usize) -> *mut u8 {
    let at = place(len, align);
    if !at.is_null() && lists().is_some() {
        // SAFETY: what is free is zero, but for lists, and what is wiped is a block.
        unsafe { at.write_bytes(0, len) };
    }
    at
}

#[inline(never)]
fn take_back(at: *mut u8, len: usize, align: usize) {
    free(at.expose_provenance(), len, align);
}

/// # Safety
/// At `at` is a block of this length and alignment.
#[inline(never)]
unsafe fn resize(at: *mut u8, len: usize, align: usize, new_len: usize) -> *mut u8 {
    let address = at.expose_provenance();
    let is_resized = match lists() {
        Some(lists) => lists.has(address) && Lists::fits(len, align, new_len),
        None => heap::resize(&mut Linear, address, len, align, new_len),
    };
    if is_resized {
        return at;
    }
    let Some(new) = allocate(new_len, align) else { return ptr::null_mut() };
    let new = ptr::with_exposed_provenance_mut(new);
    // SAFETY: both blocks are live, and so lie apart, and are at least as long as the shorter.
    unsafe { ptr::copy_nonoverlapping(at, new, len.min(new_len)) };
    free(address, len, align);
    new
}

/// In place of the heap, once nobody looks at the memory.
struct Unseen(UnsafeCell<Option<Lists>>);

// SAFETY: as for `First`.
unsafe impl Sync for Unseen {}

static UNSEEN: Unseen = Unseen(UnsafeCell::new(None));

#[inline]
fn lists() -> Option<&'static mut Lists> {
    // SAFETY: a guest has one thread, and no function here calls another while it has this.
    unsafe { (*UNSEEN.0.get()).as_mut() }
}

/// Nobody looks at the memory from here on: what is allocated need not lie where that depends on nothing but what is live.
pub(crate) fn is_unseen() {
    // SAFETY: as above.
    unsafe { (*UNSEEN.0.get()).get_or_insert(const { Lists::new() }) };
}

/// Makes a copy, and says whether that wrote to what was there, as it does to count who shares something; nothing where that would take too
/// long, unless it `matters`.
pub(crate) fn watched<R>(matters: bool, copy: impl FnOnce() -> R) -> (R, Option<bool>) {
    let Some(blocks) = begin_copy(matters) else { return (copy(), None) };
    let before = sum(&blocks);
    let copied = copy();
    end_copy();
    (copied, Some(sum(&blocks) != before))
}

#[inline(never)]
fn begin_copy(matters: bool) -> Option<Range<usize>> {
    lists()?.copies(matters)
}

#[inline(never)]
fn end_copy() {
    lists().into_iter().for_each(Lists::is_copied);
}

/// Of the words at these addresses, what changes with any of them.
#[inline(never)]
fn sum(addresses: &Range<usize>) -> (u64, u64) {
    /// A turn of a loop pays from the budget, so that many words are looked at in each.
    const WORDS: usize = 16;
    let (mut sum, mut sums) = (0u64, 0u64);
    let mut look = |at: usize| {
        sum = sum.wrapping_add(Linear.word(at));
        sums = sums.wrapping_add(sum);
    };
    let whole = addresses.len() / (8 * WORDS) * (8 * WORDS);
    for at in (addresses.start..addresses.start + whole).step_by(8 * WORDS) {
        (0..WORDS).for_each(|word| look(at + 8 * word));
    }
    (addresses.start + whole..addresses.end).step_by(8).for_each(look);
    (sum, sums)
}

#[inline]
fn allocate(len: usize, align: usize) -> Option<usize> {
    match lists() {
        Some(lists) => lists.allocate(&mut Linear, len, align),
        None => heap::allocate(&mut Linear, len, align),
    }
}

#[inline]
fn free(at: usize, len: usize, align: usize) {
    match lists().filter(|lists| lists.has(at)) {
        Some(lists) => lists.free(&mut Linear, at, len, align),
        None => heap::free(&mut Linear, at, len, align),
    }
}

/// The first groups, so that a small guest needs no more memory than it starts with.
#[repr(C, align(4096))]
struct First(UnsafeCell<[u8; FIRST_GROUPS * GROUP]>);

const FIRST_GROUPS: usize = 2;

// SAFETY: `Sync` is about several threads, of which a guest has one.
unsafe impl Sync for First {}

static FIRST: First = First(UnsafeCell::new([0; FIRST_GROUPS * GROUP]));

fn first() -> usize {
    FIRST.0.get().expose_provenance()
}

/// The linear memory, from where the linker says that nothing of the program is any more.
struct Linear;

impl Linear {
    fn rest() -> usize {
        unsafe extern "C" {
            static __heap_base: u8;
        }
        (&raw const __heap_base).expose_provenance().next_multiple_of(PAGE)
    }
}

const WASM_PAGE: usize = 65_536;

/// Whether the memory reaches up to `end`, grown if it must be.
fn reaches(end: usize) -> bool {
    // More than is needed: the size of the memory is a part of the state.
    const GROWTH: usize = (1 << 20) / WASM_PAGE;
    let (has, needs) = (memory_size(0), end.div_ceil(WASM_PAGE));
    let grow = |by| memory_grow(0, by) != usize::MAX;
    needs <= has || grow(GROWTH.max(needs - has)) || grow(needs - has)
}

impl Memory for Linear {
    #[inline]
    fn group(&mut self, index: usize) -> Option<usize> {
        if index < FIRST_GROUPS {
            return Some(first() + index * GROUP);
        }
        let start = Linear::rest().checked_add((index - FIRST_GROUPS).checked_mul(GROUP)?)?;
        reaches(start.checked_add(GROUP)?).then_some(start)
    }

    #[inline]
    fn group_of(&self, at: usize) -> usize {
        let base = match (first()..first() + FIRST_GROUPS * GROUP).contains(&at) {
            true => first(),
            false => Linear::rest(),
        };
        base + (at - base) / GROUP * GROUP
    }

    #[inline]
    fn byte(&self, at: usize) -> u8 {
        // SAFETY: `at` lies in a group, and those lie in memory that is the heap's alone.
        unsafe { *ptr::with_exposed_provenance::<u8>(at) }
    }

    #[inline]
    fn set_byte(&mut self, at: usize, byte: u8) {
        // SAFETY: as above.
        unsafe { *ptr::with_exposed_provenance_mut::<u8>(at) = byte }
    }

    #[inline]
    fn word(&self, at: usize) -> u64 {
        // SAFETY: as above, and `at` is a multiple of 8.
        unsafe { *ptr::with_exposed_provenance::<u64>(at) }
    }

    #[inline]
    fn set_word(&mut self, at: usize, word: u64) {
        // SAFETY: as above, and `at` is a multiple of 8.
        unsafe { *ptr::with_exposed_provenance_mut::<u64>(at) = word }
    }

    fn more(&mut self, len: usize) -> Option<std::ops::Range<usize>> {
        let start = memory_size(0) * WASM_PAGE;
        reaches(start.checked_add(len)?).then(|| start..memory_size(0) * WASM_PAGE)
    }

    #[inline]
    fn wipe(&mut self, at: usize, len: usize) {
        /// Up to here stores cost less than the call that a `memory.fill` is.
        const WORDS_MAX: usize = 16;
        let start = ptr::with_exposed_provenance_mut::<u64>(at);
        let words = len.div_ceil(8);
        if !at.is_multiple_of(8) || words > WORDS_MAX {
            // SAFETY: the bytes lie in a block.
            return unsafe { start.cast::<u8>().write_bytes(0, len) };
        }
        for word in 0..words {
            // SAFETY: the words lie in a block, whose room is a multiple of 16 bytes. They are volatile to
            // keep the compiler from making a `memory.fill` of the loop.
            unsafe { start.add(word).write_volatile(0) };
        }
    }
}
