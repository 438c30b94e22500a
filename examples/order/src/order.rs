//! An order as it comes in over a stream: how many, whether anonymously, and if not, for whom.

/// Where bytes come from.
pub trait Stream {
    /// Fills the buffer, or fails; then it must not be read any more.
    fn read(&mut self, buffer: &mut [u8]) -> Result<(), Broken>;
}

/// The stream broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub quantity: u32,
    /// `None` for an anonymous order.
    pub name: Option<[u8; 8]>,
}

/// Reads an order.
pub fn deserialize(stream: &mut impl Stream) -> Result<Order, Broken> {
    let mut quantity = [0; 4];
    stream.read(&mut quantity)?;
    let mut is_anonymous = [0];
    stream.read(&mut is_anonymous)?;
    let name = match is_anonymous {
        [0] => Some(read_name(stream)?),
        _ => None,
    };
    Ok(Order { quantity: u32::from_le_bytes(quantity), name })
}

fn read_name(stream: &mut impl Stream) -> Result<[u8; 8], Broken> {
    let mut name = [0; 8];
    let result = stream.read(&mut name);
    if cfg!(feature = "fixed") {
        result?;
    }
    // The bug: without that, the error of the last read is dropped, and the order is for nobody.
    Ok(name)
}
