//! A fuzz target as people have them for libFuzzer: one function, without anything of Spelunk.

include!("target.rs");

#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, len: usize) -> i32 {
    // SAFETY: the fuzzer hands over so many bytes.
    target(unsafe { std::slice::from_raw_parts(data, len) });
    0
}
