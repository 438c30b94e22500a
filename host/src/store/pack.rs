//! Values as bytes, compressed. Nothing that is read is trusted.

use anyhow::{Result, ensure};
use serde::Serialize;

/// Bytes of a value, at most: more than those of any module, or of the steps to one state.
const BYTES_MAX: usize = 512 << 20;

pub(crate) fn packed(bytes: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress_prepend_size(bytes)
}

pub(crate) fn packed_json(value: &impl Serialize) -> Result<Vec<u8>> {
    Ok(packed(&serde_json::to_vec(value)?))
}

pub(crate) fn unpacked(bytes: &[u8]) -> Result<Vec<u8>> {
    let (len, rest) = lz4_flex::block::uncompressed_size(bytes)?;
    // No byte stands for more than 255; what claims to would only take up memory.
    let is_possible = len <= rest.len().saturating_mul(255) && len <= BYTES_MAX;
    ensure!(is_possible, "a value claims to have {len} bytes");
    Ok(lz4_flex::block::decompress(rest, len)?)
}
