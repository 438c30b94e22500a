//! A fuzz target as libFuzzer wants it: bytes of anybody are parsed.

/// # Safety
/// There are `size` bytes at `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> i32 {
    // SAFETY: the caller says so.
    let data = unsafe { std::slice::from_raw_parts(data, size) };
    if let Ok(multihash) = multihash::MultihashRef::from_slice(data) {
        assert_eq!(multihash.as_bytes(), data);
        multihash.algorithm();
    }
    0
}
