//! Files in memory: a mapping is a copy, which is written back when it ends.

use wasmtime::{Extern, Trap};

use super::super::host::pay;
use super::super::imports::{mark, memory_of, slice};
use super::super::preview1::{Done, LOOK, WRITE, may_fail};
use super::super::system::{Errno, Open, rights};
use super::calls::within;
use super::memory::{Call, put_u32};
use super::system;

/// Mappings begin at multiples of this.
const ALIGN: u32 = 64 << 10;
/// A mapping that may be written to, and one whose writes do not reach the file.
const WRITABLE: u32 = 2;
const PRIVATE: u32 = 2;

/// The guest's own function that reserves memory at a multiple of a number.
const RESERVE: &str = "emscripten_builtin_memalign";

#[expect(clippy::too_many_arguments, reason = "the glue gives them")]
pub(super) fn mmap(
    call: &mut Call<'_>,
    len: u32,
    protection: u32,
    flags: u32,
    fd: u32,
    at: i64,
    allocated: u32,
    out: u32,
) -> Done<i32> {
    let descriptor = system(call).descriptor(fd)?;
    let (reads, writes) =
        (descriptor.rights & rights::FD_READ != 0, descriptor.rights & rights::FD_WRITE != 0);
    let is_shared = flags & PRIVATE == 0;
    if !reads || protection & WRITABLE != 0 && is_shared && !writes {
        return Err(Errno::Acces.into());
    }
    let Open::File { ino, .. } = descriptor.open else { return Err(Errno::Nodev.into()) };
    let at = u64::try_from(at).map_err(|_| Errno::Inval)?;
    if len == 0 {
        return Err(Errno::Inval.into());
    }
    may_fail(call, "mmap", &LOOK, ino)?;
    let room = len.checked_next_multiple_of(ALIGN).ok_or(Errno::Nomem)?;
    let address = reserve(call, room)?;
    // The guest ran meanwhile, and may have closed it.
    let Open::File { ino, .. } = system(call).descriptor(fd)?.open else { return Err(Errno::Nodev.into()) };
    let memory = memory_of(call)?;
    pay(call, room as usize)?;
    let (data, host) = memory.data_and_store_mut(&mut *call);
    let mapped = data.get_mut(address as usize..).and_then(|data| data.get_mut(..room as usize));
    let mapped = mapped.ok_or_else(|| wasmtime::Error::from(Trap::MemoryOutOfBounds))?;
    mapped.fill(0);
    let system = host.system.as_ref().expect("a guest that imports it has one").get();
    system.files.read(ino, at, &mut mapped[..len as usize])?;
    mark(call, address, room);
    put_u32(call, allocated, 1)?;
    put_u32(call, out, address)?;
    Ok(0)
}

/// Has the guest reserve so many bytes.
fn reserve(call: &mut Call<'_>, bytes: u32) -> Done<u32> {
    let function = call.get_export(RESERVE).and_then(Extern::into_func);
    let function = function.and_then(|function| function.typed::<(u32, u32), u32>(&*call).ok());
    let Some(function) = function else { return Err(Errno::Nomem.into()) };
    match within(call, |call| function.call(call, (ALIGN, bytes)))? {
        0 => Err(Errno::Nomem.into()),
        address => Ok(address),
    }
}

pub(super) fn munmap(
    call: &mut Call<'_>,
    from: u32,
    len: u32,
    protection: u32,
    flags: u32,
    fd: u32,
    at: i64,
) -> Done<i32> {
    system(call).descriptor(fd)?;
    if protection & WRITABLE != 0 { write_back(call, (from, len), flags, fd, at) } else { Ok(0) }
}

pub(super) fn msync(
    call: &mut Call<'_>,
    from: u32,
    len: u32,
    _protection: u32,
    flags: u32,
    fd: u32,
    at: i64,
) -> Done<i32> {
    write_back(call, (from, len), flags, fd, at)
}

/// Writes a mapping to its file.
fn write_back(call: &mut Call<'_>, (from, len): (u32, u32), flags: u32, fd: u32, at: i64) -> Done<i32> {
    let Open::File { ino, .. } = system(call).descriptor(fd)?.open else { return Err(Errno::Nodev.into()) };
    if flags & PRIVATE != 0 {
        return Ok(0);
    }
    let at = u64::try_from(at).map_err(|_| Errno::Inval)?;
    // All of it is written, or nothing.
    may_fail(call, "msync", &WRITE[1..], ino)?;
    pay(call, len as usize)?;
    let memory = memory_of(call)?;
    let (data, host) = memory.data_and_store_mut(&mut *call);
    let bytes = slice(data, from, len)?;
    host.system.as_mut().expect("a guest that imports it has one").change().write(ino, at, bytes)?;
    Ok(0)
}
