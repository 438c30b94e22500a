//! Reading and writing what a guest has in memory.

use wasmtime::{Caller, Trap};

use super::super::host::{Host, pay};
use super::super::imports::{memory_of, slice, write};
use super::super::preview1::Done;
use super::super::system::Errno;

pub(super) type Call<'c> = Caller<'c, Host>;

/// Bytes of a text that are looked at; no path is as long.
const TEXT_MAX: usize = 8192;

/// Writes bytes for which the guest pays.
pub(super) fn put(call: &mut Call<'_>, at: u32, bytes: &[u8]) -> Done {
    write(call, at, bytes)?;
    Ok(pay(call, bytes.len())?)
}

pub(super) fn put_u32(call: &mut Call<'_>, at: u32, value: u32) -> Done {
    Ok(write(call, at, &value.to_le_bytes())?)
}

/// Bytes of memory.
pub(super) fn get<const LEN: usize>(call: &mut Call<'_>, at: u32) -> Done<[u8; LEN]> {
    let memory = memory_of(call)?;
    Ok(slice(memory.data(&*call), at, LEN as u32)?.try_into().expect("a slice of this length"))
}

pub(super) fn get_u32(call: &mut Call<'_>, at: u32) -> Done<u32> {
    Ok(u32::from_le_bytes(get(call, at)?))
}

/// A text that ends in a 0, such as a path.
pub(super) fn text(call: &mut Call<'_>, at: u32) -> Done<String> {
    let memory = memory_of(call)?;
    let data = memory.data(&*call);
    let rest = data.get(at as usize..).ok_or(Trap::MemoryOutOfBounds).map_err(wasmtime::Error::from)?;
    let looked = &rest[..rest.len().min(TEXT_MAX)];
    let Some(len) = looked.iter().position(|byte| *byte == 0) else {
        let ends = rest.len() > TEXT_MAX;
        return Err(if ends {
            Errno::Nametoolong.into()
        } else {
            wasmtime::Error::from(Trap::MemoryOutOfBounds).into()
        });
    };
    let text = std::str::from_utf8(&looked[..len]).map_err(|_| Errno::Ilseq)?.to_string();
    pay(call, text.len())?;
    Ok(text)
}

/// The bytes of a struct, field after field.
pub(super) struct Layout<const LEN: usize>(pub(super) [u8; LEN]);

impl<const LEN: usize> Layout<LEN> {
    pub(super) fn zeros() -> Self {
        Layout([0; LEN])
    }

    pub(super) fn u16(mut self, at: usize, value: u16) -> Self {
        self.0[at..at + 2].copy_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn u32(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn u64(mut self, at: usize, value: u64) -> Self {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
        self
    }
}
