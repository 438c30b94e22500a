//! Reading DWARF at a bounded cost.
//!
//! Entries of DWARF refer to one another, so a small section can describe an endless or quadratic amount of work. Every
//! read pays here, and reading ends with an error where nothing is left to pay with. The amounts count bytes, not time, so
//! the result is the same on every machine.

use std::borrow::Cow;
use std::cell::Cell;

use gimli::{Error, LittleEndian, Reader, ReaderOffsetId};

/// What may still be read.
#[derive(Debug)]
pub(super) struct Meter {
    /// Of what was allowed last.
    left: Cell<u64>,
    /// Beyond that.
    reserve: Cell<u64>,
}

impl Meter {
    pub(super) fn new(bytes: u64) -> Meter {
        Meter { left: Cell::new(bytes), reserve: Cell::new(0) }
    }

    /// Allows so many bytes for what comes next, of those that are left in all.
    pub(super) fn allow(&self, bytes: u64) {
        let all = self.left.get() + self.reserve.get();
        self.left.set(bytes.min(all));
        self.reserve.set(all - self.left.get());
    }

    #[cfg(test)]
    /// Whether nothing is left in all.
    pub(super) fn is_empty(&self) -> bool {
        self.left.get() + self.reserve.get() == 0
    }

    /// Pays for work beside reading.
    ///
    /// # Errors
    /// Less is left than that.
    pub(super) fn pay(&self, bytes: u64) -> gimli::Result<()> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                Err(Error::UnexpectedEof(ReaderOffsetId(0)))
            }
        }
    }
}

/// A part of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metered<'a> {
    bytes: &'a [u8],
    meter: &'a Meter,
}

impl<'a> Metered<'a> {
    pub(super) fn new(bytes: &'a [u8], meter: &'a Meter) -> Metered<'a> {
        Metered { bytes, meter }
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    fn end(&self) -> Error {
        Error::UnexpectedEof(self.offset_id())
    }

    fn taken(&mut self, len: usize) -> gimli::Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or(self.end())?;
        self.bytes = rest;
        Ok(taken)
    }
}

impl Reader for Metered<'_> {
    type Endian = LittleEndian;
    type Offset = usize;

    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn empty(&mut self) {
        self.bytes = &self.bytes[self.bytes.len()..];
    }

    fn truncate(&mut self, len: usize) -> gimli::Result<()> {
        self.bytes = self.bytes.get(..len).ok_or(self.end())?;
        Ok(())
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.bytes.as_ptr().addr().saturating_sub(base.bytes.as_ptr().addr())
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.bytes.as_ptr().addr() as u64)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let offset = id.0.checked_sub(self.offset_id().0)? as usize;
        (offset <= self.bytes.len()).then_some(offset)
    }

    fn find(&self, byte: u8) -> gimli::Result<usize> {
        let found = self.bytes.iter().position(|&other| other == byte);
        self.meter.pay(found.unwrap_or(self.bytes.len()) as u64)?;
        found.ok_or(self.end())
    }

    fn skip(&mut self, len: usize) -> gimli::Result<()> {
        self.split(len).map(drop)
    }

    fn split(&mut self, len: usize) -> gimli::Result<Self> {
        self.meter.pay(1)?;
        let bytes = self.taken(len)?;
        Ok(Metered { bytes, meter: self.meter })
    }

    fn to_slice(&self) -> gimli::Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(self.bytes))
    }

    fn to_string(&self) -> gimli::Result<Cow<'_, str>> {
        self.meter.pay(self.bytes.len() as u64)?;
        std::str::from_utf8(self.bytes).map(Cow::Borrowed).map_err(|_| Error::BadUtf8)
    }

    fn to_string_lossy(&self) -> gimli::Result<Cow<'_, str>> {
        self.meter.pay(self.bytes.len() as u64)?;
        Ok(String::from_utf8_lossy(self.bytes))
    }

    fn read_slice(&mut self, buf: &mut [u8]) -> gimli::Result<()> {
        self.meter.pay(buf.len() as u64)?;
        buf.copy_from_slice(self.taken(buf.len())?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ends_where_nothing_is_left_to_pay_with() {
        let meter = Meter::new(6);
        let mut reader = Metered::new(&[1, 2, 3, 4, 0, 6, 7, 8], &meter);
        assert_eq!(reader.read_u16().unwrap(), 0x0201);
        assert_eq!(reader.find(0).unwrap(), 2);
        meter.allow(1);
        assert!(reader.read_u16().is_err());
        assert!(!meter.is_empty());
        meter.allow(9);
        assert_eq!(reader.read_u8().unwrap(), 3);
        assert!(meter.is_empty() && reader.skip(1).is_err() && reader.read_u8().is_err());
    }

    #[test]
    fn what_is_not_there_is_not_read() {
        let meter = Meter::new(100);
        let whole = Metered::new(&[1, 2, 3], &meter);
        let mut reader = whole;
        assert!(reader.find(9).is_err() && reader.skip(4).is_err() && reader.truncate(4).is_err());
        reader.skip(3).unwrap();
        assert_eq!((reader.offset_from(&whole), whole.offset_from(&reader)), (3, 0));
        assert_eq!(whole.lookup_offset_id(reader.offset_id()), Some(3));
        assert!(reader.read_u8().is_err() && reader.is_empty());
    }
}
