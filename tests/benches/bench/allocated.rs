//! An allocator that counts the bytes that a thread holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether it counts: what is timed is not to take longer for it.
static COUNTS: AtomicBool = AtomicBool::new(false);

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: isize) {
    if COUNTS.load(Ordering::Relaxed) {
        HELD.set(HELD.get() + bytes);
    }
}

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes that this thread allocated since it was asked first, less those that it freed since.
pub(crate) fn held() -> isize {
    COUNTS.store(true, Ordering::Relaxed);
    HELD.get()
}
