//! The imports of `guest-sdk/ABI.md`, as safe functions. The only file with `unsafe` code.
//!
//! `outside.rs` (native targets) and `script.rs` (the tests of this crate) have the same functions.

use std::cell::RefCell;

#[cfg(target_feature = "atomics")]
compile_error!("a guest of Spelunk has one thread: build without the target feature `atomics`");

mod host {
    #[link(wasm_import_module = "spelunk")]
    unsafe extern "C" {
        pub(super) safe fn boolean(probability: f64) -> i32;
        pub(super) safe fn index(n: i32) -> i32;
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

        pub(super) fn target(score: f64, label: *const u8, label_len: usize);
        pub(super) fn event(text: *const u8, text_len: usize);

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

/// Ends the run as a finding that is told apart from others by its place.
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

/// Something happened that the report counts.
pub(crate) fn event(text: &str) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::event(text.as_ptr(), text.len()) }
}

/// Whether a finding is being told, so that it pays to format.
pub fn verbose() -> bool {
    host::verbose() != 0
}

/// Tells an argument of this step.
pub(crate) fn describe(name: &'static str, value: &str) {
    // SAFETY: the host reads the bytes of two strings.
    unsafe { host::describe(name.as_ptr(), name.len(), value.as_ptr(), value.len()) }
}

/// Tells a line below this step.
pub(crate) fn note(text: &str) {
    // SAFETY: the host reads the bytes of a string.
    unsafe { host::note(text.as_ptr(), text.len()) }
}

/// State of a guest, in a static.
pub(crate) struct Shared<T>(RefCell<Option<T>>);

// SAFETY: `Sync` is about several threads. A guest has one: `atomics`, without which WebAssembly has no
// threads, are refused above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) const fn new() -> Shared<T> {
        Shared(RefCell::new(None))
    }

    pub(crate) fn set(&self, value: T) {
        *self.0.borrow_mut() = Some(value);
    }

    pub(crate) fn take(&self) -> T {
        self.0.take().expect("`setup` runs first")
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(self.0.borrow_mut().as_mut().expect("`setup` runs first"))
    }
}
