//! Two bugs whose errors one rule hands to Spelunk.

use std::cell::Cell;

#[link(wasm_import_module = "spelunk")]
unsafe extern "C" {
    fn fail(message: *const u8, len: usize) -> !;
}

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

#[derive(Debug)]
#[allow(dead_code, reason = "they are printed")]
enum Error {
    Small(u32),
    Large(u32),
}

#[inline(never)]
fn finish(result: Result<(), Error>) {
    if let Err(error) = result {
        let message = format!("{error:?}");
        // SAFETY: the host reads so many bytes there.
        unsafe { fail(message.as_ptr(), message.len()) }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn add(number: u32) {
    CALLS.set(CALLS.get() + 1);
    finish(match (CALLS.get(), number) {
        (2, 0..100) => Err(Error::Small(number)),
        (2, 1000..) => Err(Error::Large(number)),
        _ => Ok(()),
    });
}
