//! Records, as they lie in a segment:
//!
//! ```text
//! checksum: u32 | key length: u16 | value length: u16, or NO_VALUE | key | value
//! ```
//!
//! The checksum is over everything after it. Numbers are little-endian.

/// In place of the length of a value: the key was deleted.
const NO_VALUE: u16 = u16::MAX;
const HEADER_LEN: usize = 8;

/// A key got this value, or was deleted; a deletion is called a tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
}

impl<'a> Record<'a> {
    /// Appends the record to `bytes`.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let value = self.value.unwrap_or_default();
        let value_len = if self.value.is_some() { length(value) } else { NO_VALUE };
        let start = bytes.len();
        bytes.extend([0; 4]);
        bytes.extend(length(self.key).to_le_bytes());
        bytes.extend(value_len.to_le_bytes());
        bytes.extend(self.key);
        bytes.extend(value);
        let checksum = checksum(&bytes[start + 4..]);
        bytes[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    }

    /// The first record of `bytes` and how long it is; `None` where there is no whole one.
    pub fn read(bytes: &'a [u8]) -> Option<(Record<'a>, usize)> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let [a, b, c, d, key_low, key_high, value_low, value_high] = *header;
        let key_len = usize::from(u16::from_le_bytes([key_low, key_high]));
        let value_len = match u16::from_le_bytes([value_low, value_high]) {
            NO_VALUE => None,
            len => Some(usize::from(len)),
        };
        let body_len = key_len + value_len.unwrap_or(0);
        let (key, value) = rest.get(..body_len)?.split_at(key_len);
        let len = HEADER_LEN + body_len;
        let is_whole = checksum(&bytes[4..len]) == u32::from_le_bytes([a, b, c, d]);
        is_whole.then_some((Record { key, value: value_len.map(|_| value) }, len))
    }
}

/// The records of a segment with the offset and length of each, up to the first that is not whole.
pub fn records(segment: &[u8]) -> impl Iterator<Item = (Record<'_>, usize, usize)> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let (record, len) = Record::read(&segment[offset..])?;
        let found = (record, offset, len);
        offset += len;
        Some(found)
    })
}

fn length(bytes: &[u8]) -> u16 {
    let len = u16::try_from(bytes.len()).ok().filter(|len| *len != NO_VALUE);
    len.expect("keys and values are shorter than 64 KiB")
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let written = [
            Record { key: b"a", value: Some(b"one") },
            Record { key: b"", value: Some(b"") },
            Record { key: b"a", value: None },
        ];
        let mut bytes = Vec::new();
        for record in &written {
            record.write(&mut bytes);
        }
        let read: Vec<_> = records(&bytes).map(|(record, ..)| record).collect();
        assert_eq!(read, written);
    }

    #[test]
    fn a_torn_record_is_not_read() {
        let mut bytes = Vec::new();
        Record { key: b"key", value: Some(b"value") }.write(&mut bytes);
        for len in 0..bytes.len() {
            assert_eq!(Record::read(&bytes[..len]), None);
        }
        bytes[9] ^= 1;
        assert_eq!(Record::read(&bytes), None);
    }
}
