//! A deserialiser, and a stream that fails at every call in turn.

#![forbid(unsafe_code)]

pub mod order;

use spelunk_guest::prelude::*;

use order::{Broken, Order, Stream, deserialize};

/// Passes on the bytes of an order, or fails: each call may do either.
struct Fake<'a> {
    bytes: &'a [u8],
    has_failed: bool,
}

impl Stream for Fake<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<(), Broken> {
        assert!(!self.has_failed, "the stream is read after it failed");
        self.has_failed = flip();
        if self.has_failed {
            note!("a read of {} bytes fails", buffer.len());
            return Err(Broken);
        }
        let (now, later) = self.bytes.split_at(buffer.len());
        buffer.copy_from_slice(now);
        self.bytes = later;
        Ok(())
    }
}

#[check]
fn every_read_fails_once() {
    let order = Order { quantity: 3, name: if flip() { None } else { Some(*b"Lovelace") } };
    let mut bytes = order.quantity.to_le_bytes().to_vec();
    bytes.push(order.name.is_none().into());
    bytes.extend(order.name.iter().flatten());

    let mut stream = Fake { bytes: &bytes, has_failed: false };
    let read = deserialize(&mut stream);
    note!("{read:?}");
    assert!(read.is_err() == stream.has_failed, "a read failed, and there is an order");
    assert!(read.is_err() || read == Ok(order), "the order is another");
}
