//! Reading and writing a guest's memory.

use wasmtime::{Caller, Trap};

use super::super::host::{Host, pay};
use super::super::imports::{mark, memory_of, slice, write};
use super::super::system::{Errno, State, System};
use super::Done;

pub(super) type Call<'c> = Caller<'c, Host>;

/// Parts of memory that one call may read into or write from.
const PARTS_MAX: u32 = 1024;
/// A part costs as much as so many bytes, besides those that it has.
const PART_BYTES: usize = 512;

/// Bytes of a text that are looked at; no path is as long.
const TEXT_MAX: usize = 8192;

/// The virtual system, to be looked at.
pub(in super::super) fn system<'c>(call: &'c Call<'_>) -> &'c State {
    call.data().system.as_ref().map(System::get).expect("a guest that imports it has one")
}

/// The virtual system, to be changed.
pub(in super::super) fn change<'c>(call: &'c mut Call<'_>) -> &'c mut State {
    call.data_mut().system.as_mut().map(System::change).expect("a guest that imports it has one")
}

/// Writes bytes for which the guest pays.
pub(super) fn put(call: &mut Call<'_>, at: u32, bytes: &[u8]) -> Done {
    write(call, at, bytes)?;
    Ok(pay(call, bytes.len())?)
}

pub(super) fn put_u32(call: &mut Call<'_>, at: u32, value: u32) -> Done {
    Ok(write(call, at, &value.to_le_bytes())?)
}

pub(super) fn put_u64(call: &mut Call<'_>, at: u32, value: u64) -> Done {
    Ok(write(call, at, &value.to_le_bytes())?)
}

/// Bytes of memory.
pub(super) fn get<const LEN: usize>(call: &mut Call<'_>, at: u32) -> Done<[u8; LEN]> {
    let memory = memory_of(call)?;
    Ok(slice(memory.data(&*call), at, LEN as u32)?.try_into().expect("a slice of this length"))
}

/// A text, such as a path.
pub(super) fn text(call: &mut Call<'_>, at: u32, len: u32) -> Done<String> {
    let memory = memory_of(call)?;
    let bytes = slice(memory.data(&*call), at, len)?;
    if bytes.len() > TEXT_MAX {
        return Err(Errno::Nametoolong.into());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Errno::Ilseq)?.to_string();
    pay(call, text.len())?;
    Ok(text)
}

/// The parts of memory that a list names, each checked to be there, and their bytes together.
pub(super) fn parts(call: &mut Call<'_>, list: u32, count: u32) -> Done<(Vec<(u32, u32)>, u32)> {
    if count > PARTS_MAX {
        return Err(Errno::Inval.into());
    }
    let memory = memory_of(call)?;
    pay(call, count as usize * PART_BYTES)?;
    let data = memory.data(&*call);
    let list = slice(data, list, count * 8)?;
    let mut parts = Vec::new();
    let mut sum = 0u32;
    for part in list.as_chunks::<8>().0 {
        let [at, len] =
            [0, 4].map(|from| u32::from_le_bytes(*part[from..].first_chunk().expect("four bytes")));
        slice(data, at, len)?;
        sum = sum.checked_add(len).ok_or(Errno::Inval)?;
        parts.push((at, len));
    }
    Ok((parts, sum))
}

/// Has `read` fill parts of memory one after the other, until it has no more; how many bytes it gave.
pub(super) fn fill(
    call: &mut Call<'_>,
    parts: &[(u32, u32)],
    mut read: impl FnMut(&State, u64, &mut [u8]) -> Result<usize, Errno>,
) -> Done<u32> {
    let memory = memory_of(call)?;
    let mut done = 0u32;
    for (at, len) in parts {
        let (data, host) = memory.data_and_store_mut(&mut *call);
        let system = host.system.as_ref().expect("a guest that imports it has one").get();
        let room = data.get_mut(*at as usize..).and_then(|data| data.get_mut(..*len as usize));
        let room = room.ok_or(Trap::MemoryOutOfBounds).map_err(wasmtime::Error::from)?;
        let got = read(system, done.into(), room)?;
        mark(call, *at, got as u32);
        pay(call, got)?;
        done += got as u32;
        if got < *len as usize {
            break;
        }
    }
    Ok(done)
}

/// Has `write` take parts of memory one after the other.
pub(super) fn take(
    call: &mut Call<'_>,
    parts: &[(u32, u32)],
    mut write: impl FnMut(&mut Host, u64, &[u8]) -> Result<(), Errno>,
) -> Done<u32> {
    let memory = memory_of(call)?;
    let mut done = 0u32;
    for (at, len) in parts {
        pay(call, *len as usize)?;
        let (data, host) = memory.data_and_store_mut(&mut *call);
        match write(host, done.into(), slice(data, *at, *len)?) {
            Ok(()) => done += len,
            // What was written counts.
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(done)
}
