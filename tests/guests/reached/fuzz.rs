//! `parse.rs` as a fuzz target.

#[path = "parse.rs"]
mod parse;

#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut u8 {
    Vec::leak(vec![0; size]).as_mut_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> i32 {
    // It is given as many bytes as it says.
    parse::parse(unsafe { std::slice::from_raw_parts(data, size) });
    0
}
