//! Text, as an instance writes it.

use super::super::interface::Encoding;
use super::{Passed, Passing, broken};

/// The bit of a length that says that a text is UTF-16, where it may be either.
pub(in super::super) const UTF16: u32 = 1 << 31;

impl Passing<'_> {
    pub(super) fn lift_text(&mut self, at: u32, len: u32) -> Passed<String> {
        let (is_wide, len) = match self.options.encoding {
            Encoding::Utf8 => (false, len),
            Encoding::Utf16 => (true, len),
            Encoding::Compact => (len & UTF16 != 0, len & !UTF16),
        };
        let align = if self.options.encoding == Encoding::Utf8 { 1 } else { 2 };
        if !at.is_multiple_of(align) {
            return broken(format!("a text begins at {at:#x}, which is not aligned to {align} bytes"));
        }
        let bytes = u64::from(len) * if is_wide { 2 } else { 1 };
        if u64::from(at) + bytes > self.memory().len() as u64 {
            return broken(format!("a text of {len} units at {at:#x} ends outside of memory"));
        }
        self.count(0, bytes as usize)?;
        let bytes = self.read(at, bytes as usize)?;
        match (self.options.encoding, is_wide) {
            (Encoding::Utf8, _) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(text.to_string()),
                Err(_) => broken("a text is not UTF-8"),
            },
            (_, true) => {
                let units = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
                match char::decode_utf16(units).collect() {
                    Ok(text) => Ok(text),
                    Err(_) => broken("a text is not UTF-16"),
                }
            }
            (_, false) => Ok(bytes.iter().map(|byte| char::from(*byte)).collect()),
        }
    }

    /// Where the text was put, and its length as it is passed.
    pub(super) fn lower_text(&mut self, text: &str) -> Passed<(u32, u32)> {
        self.count(0, 2 * text.len())?;
        let len = text.len() as u32;
        match self.options.encoding {
            Encoding::Utf8 => {
                let at = self.realloc((0, 0), 1, len)?;
                self.write(at, text.as_bytes())?;
                Ok((at, len))
            }
            // As many units as there are bytes are the most.
            Encoding::Utf16 => {
                let at = self.realloc((0, 0), 2, 2 * len)?;
                self.lower_wide(text, at, 2 * len)
            }
            Encoding::Compact => {
                let at = self.realloc((0, 0), 2, len)?;
                let narrow: Vec<u8> = text.chars().map_while(|letter| u8::try_from(letter).ok()).collect();
                self.write(at, &narrow)?;
                if narrow.len() < text.chars().count() {
                    let at = self.realloc((at, len), 2, 2 * len)?;
                    let (at, units) = self.lower_wide(text, at, 2 * len)?;
                    return Ok((at, units | UTF16));
                }
                let used = narrow.len() as u32;
                let at = if used < len { self.realloc((at, len), 2, used)? } else { at };
                Ok((at, used))
            }
        }
    }

    /// Writes UTF-16 into room of so many bytes, and gives back what it does not need.
    fn lower_wide(&mut self, text: &str, at: u32, room: u32) -> Passed<(u32, u32)> {
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        self.write(at, &wide)?;
        let used = wide.len() as u32;
        let at = if used < room { self.realloc((at, room), 2, used)? } else { at };
        Ok((at, used / 2))
    }
}
