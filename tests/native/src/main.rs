//! The target of `tests/guests/fuzz`, or a roadblock of `tests/guests/roadblocks`, run by libFuzzer.
#![no_main]

#[cfg(feature = "roadblocks")]
mod roadblock {
    use std::sync::LazyLock;

    /// The one that is named.
    static ONE: LazyLock<fn(&[u8])> = LazyLock::new(|| {
        let name = std::env::var("ROADBLOCK").expect("ROADBLOCK names one");
        roadblocks::ALL.iter().find(|(known, _)| *known == name).expect("there is such a roadblock").1
    });

    libfuzzer_sys::fuzz_target!(|data: &[u8]| ONE(data));
}

#[cfg(not(feature = "roadblocks"))]
mod target {
    include!("../../guests/fuzz/src/target.rs");

    libfuzzer_sys::fuzz_target!(|data: &[u8]| target(data));
}
