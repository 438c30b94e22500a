//! The stacks of threads, and going from one to another. See "Threads" in `guest-sdk/ABI.md`.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};

mod host {
    #[link(wasm_import_module = "spelunk")]
    unsafe extern "C" {
        pub(super) safe fn suspend();
        pub(super) fn resume(record: *mut super::Record) -> i32;
    }
}

/// The second parameter is 0. It tells these functions from others that are called through a pointer, which may then not suspend.
type Entry = extern "C" fn(argument: *mut (), f32);

/// What the instrumented module knows of a thread.
#[repr(C)]
pub(super) struct Record {
    entry: Entry,
    argument: *mut (),
    low: usize,
    stack: usize,
    frames: usize,
}

/// Bytes of a stack, which with what stands beside it has 4 pages. What is not used costs nothing.
const ROOM: usize = 252 << 10;

/// From the lowest address: what is written down of functions that were left, what is free, the stack, which grows down.
#[repr(C, align(16))]
pub(super) struct Stack {
    room: [u8; ROOM],
    record: Record,
}

/// A stack for one thread after another; all that it holds is 0 while it has none.
#[derive(Clone, Copy)]
pub(super) struct Place(*mut Stack);

impl Place {
    pub(super) fn new() -> Place {
        let layout = Layout::new::<Stack>();
        // SAFETY: the layout is not of size 0.
        let stack = unsafe { alloc_zeroed(layout) };
        if stack.is_null() {
            handle_alloc_error(layout);
        }
        Place(stack.cast())
    }

    /// A thread that calls this begins here.
    ///
    /// # Safety
    /// It ends before what it borrows.
    pub(super) unsafe fn begin<F: FnOnce()>(self, main: F) {
        extern "C" fn entry<F: FnOnce()>(argument: *mut (), _: f32) {
            // SAFETY: it is the box below, and a thread begins once.
            let main = unsafe { Box::from_raw(argument.cast::<F>()) };
            main();
        }

        let low = self.0.expose_provenance();
        let record = Record {
            entry: entry::<F>,
            argument: Box::into_raw(Box::new(main)).cast(),
            low,
            stack: low + ROOM,
            frames: low,
        };
        // SAFETY: the stack is allocated and never freed, and nobody else has a reference of its record.
        unsafe { (&raw mut (*self.0).record).write(record) }
    }

    /// Lets the thread go on until it suspends: true, or ends: false.
    pub(super) fn resume(self) -> bool {
        // SAFETY: the record is that of a thread that began, and has not ended.
        let is_suspended = unsafe { host::resume(&raw mut (*self.0).record) } != 0;
        if !is_suspended {
            // SAFETY: as in `begin`. Padding is none.
            unsafe {
                (&raw mut (*self.0).record)
                    .cast::<[u8; size_of::<Record>()]>()
                    .write([0; size_of::<Record>()])
            };
        }
        is_suspended
    }
}

/// The thread that runs stops here, until it is resumed.
pub(super) fn suspend() {
    host::suspend();
}
