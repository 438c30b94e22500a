//! Whether a value or a trap is what a test of the specification expects.

use wast::core::{NanPattern, V128Pattern};

/// Whether a trap is the one that the specification's tests call `message`.
pub(crate) fn is_expected(error: &str, message: &str) -> bool {
    let message = match message {
        _ if message.starts_with("uninitialized element") => "uninitialized element",
        _ if message.starts_with("null ") => "null ",
        "uninitialized" => "uninitialized element",
        "unreachable executed" => "unreachable",
        other => other,
    };
    error.contains(message)
}

pub(crate) fn is_f32(value: u32, expected: &NanPattern<wast::token::F32>) -> bool {
    match expected {
        NanPattern::CanonicalNan => value & 0x7fff_ffff == 0x7fc0_0000,
        NanPattern::ArithmeticNan => value & 0x7fc0_0000 == 0x7fc0_0000,
        NanPattern::Value(expected) => value == expected.bits,
    }
}

pub(crate) fn is_f64(value: u64, expected: &NanPattern<wast::token::F64>) -> bool {
    const QUIET: u64 = 0x7ff8_0000_0000_0000;
    match expected {
        NanPattern::CanonicalNan => value & (u64::MAX >> 1) == QUIET,
        NanPattern::ArithmeticNan => value & QUIET == QUIET,
        NanPattern::Value(expected) => value == expected.bits,
    }
}

pub(crate) fn is_v128(value: u128, expected: &V128Pattern) -> bool {
    let bytes = value.to_le_bytes();
    let lane32 = |lane: usize| u32::from_le_bytes(bytes[lane * 4..][..4].try_into().unwrap());
    let lane64 = |lane: usize| u64::from_le_bytes(bytes[lane * 8..][..8].try_into().unwrap());
    match expected {
        V128Pattern::I8x16(lanes) => (0..16).all(|lane| bytes[lane] == lanes[lane] as u8),
        V128Pattern::I16x8(lanes) => (0..8).all(|lane| bytes[lane * 2..][..2] == lanes[lane].to_le_bytes()),
        V128Pattern::I32x4(lanes) => (0..4).all(|lane| lane32(lane) == lanes[lane] as u32),
        V128Pattern::I64x2(lanes) => (0..2).all(|lane| lane64(lane) == lanes[lane] as u64),
        V128Pattern::F32x4(lanes) => (0..4).all(|lane| is_f32(lane32(lane), &lanes[lane])),
        V128Pattern::F64x2(lanes) => (0..2).all(|lane| is_f64(lane64(lane), &lanes[lane])),
    }
}
