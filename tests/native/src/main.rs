//! The target of `tests/guests/fuzz`, run by libFuzzer.
#![no_main]

include!("../../guests/fuzz/src/target.rs");

libfuzzer_sys::fuzz_target!(|data: &[u8]| target(data));
