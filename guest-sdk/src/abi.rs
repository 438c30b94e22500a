//! The imports of `guest-sdk/ABI.md`, as safe functions, and what else touches the machine. The only room with
//! `unsafe` code beside `sync`.
//!
//! `native/abi.rs` (native targets) and `script.rs` (the tests of this crate) have the same functions.

use std::cell::{RefCell, UnsafeCell};
use std::ptr;
use std::task::{RawWaker, RawWakerVTable, Waker};

#[cfg(target_feature = "atomics")]
compile_error!("a guest of Spelunk has one thread: build without the target feature `atomics`");

mod host {
    #[link(wasm_import_module = "spelunk")]
    unsafe extern "C" {
        pub(super) safe fn boolean(probability: f64) -> i32;
        pub(super) safe fn index(n: i32) -> i32;
        pub(super) fn schedule(threads: *const u32, count: usize) -> usize;
        pub(super) safe fn integer(min: i64, max: i64, simplest: i64) -> i64;
        pub(super) safe fn unsigned(min: u64, max: u64, simplest: u64) -> u64;
        pub(super) safe fn float(min: f64, max: f64, flags: i32) -> f64;
        pub(super) fn bytes(pointer: *mut u8, min_len: usize, max_len: usize) -> usize;

        pub(super) fn span_begin(label: *const u8, label_len: usize);
        pub(super) safe fn span_end(discarded: i32);

        pub(super) safe fn reject() -> !;
        pub(super) fn fail(message: *const u8, message_len: usize) -> !;
        pub(super) fn panic(
            message: *const u8,
            message_len: usize,
            file: *const u8,
            file_len: usize,
            line: u32,
            column: u32,
        ) -> !;
        pub(super) fn unreachable(name: *const u8, name_len: usize) -> !;

        pub(super) fn always(name: *const u8, name_len: usize, condition: i32);
        pub(super) fn sometimes(name: *const u8, name_len: usize, condition: i32);
        pub(super) fn reachable(name: *const u8, name_len: usize);
        pub(super) fn eventually(name: *const u8, name_len: usize, condition: i32);
        pub(super) fn always_eventually(name: *const u8, name_len: usize, condition: i32);
        pub(super) safe fn way(way: u64);
        pub(super) fn leads_to(name: *const u8, name_len: usize, from: i32, to: i32);

        pub(super) fn target(score: f64, label: *const u8, label_len: usize);
        pub(super) fn observe(number: i64, name: *const u8, name_len: usize);
        pub(super) fn event(text: *const u8, text_len: usize);

        pub(super) fn state(pointer: *const u8, len: usize);
        pub(super) safe fn claims() -> i32;

        pub(super) safe fn verbose() -> i32;
        pub(super) fn describe(name: *const u8, name_len: usize, value: *const u8, value_len: usize);
        pub(super) fn note(text: *const u8, text_len: usize);
    }
}

/// True with this probability in generation; simplest is `false`.
pub(crate) fn boolean(probability: f64) -> bool {
    host::boolean(probability) != 0
}

/// One of `0..n`; simplest is 0. Where `n` is 0 it does not return: the run ends as a deadlock.
pub(crate) fn index(n: usize) -> usize {
    host::index(n as i32) as usize
}

/// Which of these threads goes on, by its place. The highest bit of a number says that the thread gave way by itself.
pub(crate) fn schedule(threads: &[u32]) -> usize {
    // SAFETY: the host reads the words of a slice.
    unsafe { host::schedule(threads.as_ptr(), threads.len()) }
}

/// In `min..=max`; the nearest to `simplest` is the simplest.
pub(crate) fn integer(min: i64, max: i64, simplest: i64) -> i64 {
    host::integer(min, max, simplest)
}

/// In `min..=max`; the nearest to `simplest` is the simplest.
pub(crate) fn unsigned(min: u64, max: u64, simplest: u64) -> u64 {
    host::unsigned(min, max, simplest)
}

/// In `min..=max`, or NaN where that is said; infinite only where that is said and the range allows it.
pub(crate) fn float(min: f64, max: f64, nan: bool, infinite: bool) -> f64 {
    const NAN: i32 = 1;
    const INFINITE: i32 = 2;
    host::float(min, max, (NAN * i32::from(nan)) | (INFINITE * i32::from(infinite)))
}

/// `min..=max` bytes; simplest are few and zeros.
pub(crate) fn bytes(min: usize, max: usize) -> Vec<u8> {
    let mut drawn = vec![0; max];
    // SAFETY: the host writes at most `max` bytes, and there are that many at the pointer.
    let len = unsafe { host::bytes(drawn.as_mut_ptr(), min, max) };
    drawn.truncate(len);
    drawn
}

/// The choices from here to [`span_end`] belong together.
pub(crate) fn span_begin(label: &'static str) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::span_begin(label.as_ptr(), label.len()) }
}

/// Closes the innermost span; `discarded` says that nothing came of its choices.
pub(crate) fn span_end(discarded: bool) {
    host::span_end(discarded as i32)
}

/// Ends a run that does not count.
pub(crate) fn reject() -> ! {
    host::reject()
}

/// Ends the run as a finding.
pub fn fail(message: &str) -> ! {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::fail(message.as_ptr(), message.len()) }
}

/// Ends the run as a finding that differs from others by its place.
pub(crate) fn panic(message: &str, file: &str, line: u32, column: u32) -> ! {
    // SAFETY: the host reads the bytes of two strings.
    unsafe { host::panic(message.as_ptr(), message.len(), file.as_ptr(), file.len(), line, column) }
}

/// The property `name` holds wherever this is reached; the run ends where it does not.
pub fn always(name: &'static str, condition: bool) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::always(name.as_ptr(), name.len(), condition as i32) }
}

/// The property `name` is expected to hold at least once.
pub fn sometimes(name: &'static str, condition: bool) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::sometimes(name.as_ptr(), name.len(), condition as i32) }
}

/// The property `name` is expected to be reached at least once.
pub fn reachable(name: &'static str) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::reachable(name.as_ptr(), name.len()) }
}

/// Every run comes to a state in which the condition of `name` holds.
pub fn eventually(name: &'static str, condition: bool) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::eventually(name.as_ptr(), name.len(), condition as i32) }
}

/// Every run comes again and again to a state in which the condition of `name` holds.
pub fn always_eventually(name: &'static str, condition: bool) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::always_eventually(name.as_ptr(), name.len(), condition as i32) }
}

/// Every run comes from a state in which `from` holds to one in which `to` does.
pub fn leads_to(name: &'static str, from: bool, to: bool) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::leads_to(name.as_ptr(), name.len(), from as i32, to as i32) }
}

/// The step is this one among those of its rule: of several calls, all together.
pub(crate) fn way(way: u64) {
    host::way(way);
}

/// The property `name` was reached although it must not be. Does not return here, but does on native targets.
pub fn never(name: &'static str) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::unreachable(name.as_ptr(), name.len()) }
}

/// The exploration prefers what raises the score of this label.
pub(crate) fn target(score: f64, label: &str) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::target(score, label.as_ptr(), label.len()) }
}

/// The exploration goes on from where a number was observed first under this name.
pub(crate) fn observe(name: &str, number: i64) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::observe(number, name.as_ptr(), name.len()) }
}

/// Something happened that the report counts.
pub(crate) fn event(text: &str) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::event(text.as_ptr(), text.len()) }
}

/// Bytes of the state that is compared in place of the memory.
pub(crate) fn state(bytes: &[u8]) {
    // SAFETY: the host reads the bytes of a slice.
    unsafe { host::state(bytes.as_ptr(), bytes.len()) }
}

/// Whether anything is claimed of runs without end.
pub(crate) fn claims() -> bool {
    host::claims() != 0
}

/// Whether a finding is being reported, so that it pays to format.
pub fn verbose() -> bool {
    host::verbose() != 0
}

/// Tells an argument of this step.
pub(crate) fn describe(name: &str, value: &str) {
    // SAFETY: the host reads the bytes of two strings.
    unsafe { host::describe(name.as_ptr(), name.len(), value.as_ptr(), value.len()) }
}

/// Tells a line below this step.
pub(crate) fn note(text: &str) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::note(text.as_ptr(), text.len()) }
}

/// State of a guest, in a static.
pub(crate) struct Shared<T>(UnsafeCell<RefCell<Option<T>>>);

// SAFETY: `Sync` is about several threads. A guest has one: `atomics`, without which WebAssembly has no
// threads, are refused above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) const fn new() -> Shared<T> {
        Shared(UnsafeCell::new(RefCell::new(None)))
    }

    fn cell(&self) -> &RefCell<Option<T>> {
        // SAFETY: it is written to in `begin_anew` alone, where nobody holds a reference.
        unsafe { &*self.0.get() }
    }

    pub(crate) fn set(&self, value: T) {
        *self.cell().borrow_mut() = Some(value);
    }

    pub(crate) fn take(&self) -> T {
        self.cell().take().expect("`setup` runs first")
    }

    /// What there is, of which nothing is left.
    pub(crate) fn leave(&self) -> Option<T> {
        self.cell().borrow_mut().take()
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(self.cell().borrow_mut().as_mut().expect("`setup` runs first"))
    }
}

impl<T: Default> Shared<T> {
    pub(crate) fn with_or_default<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(self.cell().borrow_mut().get_or_insert_default())
    }
}

impl<T: Clone> Shared<T> {
    /// A copy of what there is.
    pub(crate) fn copy(&self) -> Option<T> {
        self.cell().borrow().clone()
    }

    /// Puts a value in the place of the one that there is, which is whole.
    pub(crate) fn replace(&self, value: Option<T>) {
        *self.cell().borrow_mut() = value;
    }

    /// Puts a value in the place of one that was left in the middle of a call, which may be anything, and is forgotten.
    pub(crate) fn begin_anew(&self, value: Option<T>) {
        // SAFETY: the host calls this while no other function of the guest runs, so nobody has a reference to what is there.
        unsafe { self.0.get().write(RefCell::new(value)) }
    }
}

/// Wakes this task. It is a number and nothing else; what is cloned or dropped of it is counted.
pub(crate) fn waker(task: usize) -> Waker {
    static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop);

    fn clone(task: *const ()) -> RawWaker {
        crate::task::hold(task.addr());
        RawWaker::new(task, &VTABLE)
    }

    fn wake(task: *const ()) {
        wake_by_ref(task);
        drop(task);
    }

    fn wake_by_ref(task: *const ()) {
        crate::task::wake(task.addr());
    }

    fn drop(task: *const ()) {
        crate::task::let_go(task.addr());
    }

    let raw = RawWaker::new(ptr::without_provenance(task), &VTABLE);
    // SAFETY: the data is a number that nobody reads as a pointer, and the functions only pass it on. `Waker`
    // is for several threads, and a guest has one.
    unsafe { Waker::from_raw(raw) }
}

/// Makes a guest for WASI a reactor. Without this export, the linker lets each call of the host begin and end the program.
#[cfg(target_os = "wasi")]
#[unsafe(export_name = "_initialize")]
extern "C" fn initialize() {
    unsafe extern "C" {
        fn __wasm_call_ctors();
    }
    // SAFETY: the host calls this once, before anything else.
    unsafe { __wasm_call_ctors() }
}

/// The host copies states of the harness from here on, and does not look at the memory.
pub(crate) fn is_unseen() {
    #[cfg(all(feature = "allocator", not(target_os = "wasi")))]
    allocator::is_unseen();
}

/// Makes a copy, and says whether that wrote to what was there, where that is known; it `matters`, more time is taken.
pub(crate) fn watched<R>(matters: bool, copy: impl FnOnce() -> R) -> (R, Option<bool>) {
    #[cfg(all(feature = "allocator", not(target_os = "wasi")))]
    return allocator::watched(matters, copy);
    #[cfg(not(all(feature = "allocator", not(target_os = "wasi"))))]
    {
        let _ = matters;
        (copy(), None)
    }
}

/// The allocator of the libc, since its functions allocate too, and would take the memory of one beside it. What is freed is
/// wiped.
#[cfg(all(feature = "allocator", target_os = "wasi"))]
mod allocator {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::hint::black_box;
    use std::ptr;

    use crate::memory;

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    struct Allocator;

    // SAFETY: blocks are those of `System`.
    unsafe impl GlobalAlloc for Allocator {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if memory::fails(layout.size()) {
                return ptr::null_mut();
            }
            // SAFETY: the caller promises what `System` asks for.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
            // SAFETY: the block is live. The compiler must not leave out the stores, although nothing reads them.
            unsafe {
                wipe(at, layout.size());
                System.dealloc(black_box(at), layout);
            }
        }

        unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_len: usize) -> *mut u8 {
            // To shrink does not fail with other allocators either, and wipes what is cut off.
            if new_len <= layout.size() {
                // SAFETY: the end lies in the block, which is live.
                return unsafe {
                    wipe(at.add(new_len), layout.size() - new_len);
                    System.realloc(black_box(at), layout, new_len)
                };
            }
            // SAFETY: the caller promises that both layouts are valid, and the new block is longer than the old one.
            unsafe {
                let new = self.alloc(Layout::from_size_align_unchecked(new_len, layout.align()));
                if !new.is_null() {
                    ptr::copy_nonoverlapping(at, new, layout.size());
                    self.dealloc(at, layout);
                }
                new
            }
        }
    }

    /// Writes zeros. A sanitizer knows it by name: whether the block is live is for what comes after it to say.
    ///
    /// # Safety
    /// So many bytes may be written.
    #[inline(never)]
    unsafe fn wipe(at: *mut u8, len: usize) {
        // SAFETY: the caller promises it.
        unsafe { at.write_bytes(0, len) };
    }
}

#[cfg(all(feature = "allocator", not(target_os = "wasi")))]
mod allocator;
