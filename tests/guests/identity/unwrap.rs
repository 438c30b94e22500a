//! Two bugs whose errors one helper unwraps.

use std::cell::Cell;

thread_local! {
    static ONES: Cell<u32> = const { Cell::new(0) };
    static TWOS: Cell<u32> = const { Cell::new(0) };
}

#[derive(Debug)]
#[allow(dead_code, reason = "they are printed")]
enum Error {
    Full { bytes: u32 },
    Empty { bytes: u32 },
}

#[inline(never)]
fn must(result: Result<(), Error>) {
    result.unwrap();
}

fn count(of: &'static std::thread::LocalKey<Cell<u32>>) -> u32 {
    of.set(of.get() + 1);
    of.get()
}

#[unsafe(no_mangle)]
pub extern "C" fn one(bytes: u32) {
    must(if count(&ONES) == 2 { Err(Error::Full { bytes }) } else { Ok(()) });
}

#[unsafe(no_mangle)]
pub extern "C" fn two(bytes: u32) {
    must(if count(&TWOS) == 2 { Err(Error::Empty { bytes }) } else { Ok(()) });
}
