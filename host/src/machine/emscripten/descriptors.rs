//! System calls on descriptors.

use xxhash_rust::xxh3::xxh3_64;

use super::super::host::pay;
use super::super::preview1::{CHANGE, Done, GROW, LOOK, WAIT, may_fail, struck};
use super::super::system::{APPEND, Descriptor, Errno, Node, Open, State, rights};
use super::files::{APPENDED, NO_WAIT, NONBLOCK};
use super::memory::{Call, Layout, get, get_u32, put, put_u32};
use super::paths::may;
use super::{change, system};

/// Offsets have 64 bits, which every descriptor says of itself.
const LARGE_FILES: u32 = 0o100000;
/// What Emscripten calls what is not supported, where WASI has another number.
pub(super) const NOT_SUPPORTED: i32 = -138;

/// The inode of a file that is open to be written to.
fn written(call: &Call<'_>, fd: u32) -> Done<u32> {
    let descriptor = system(call).descriptor(fd)?;
    match descriptor.open {
        Open::File { ino, .. } if descriptor.rights & rights::FD_WRITE != 0 => Ok(ino),
        _ => Err(Errno::Inval.into()),
    }
}

pub(super) fn ftruncate64(call: &mut Call<'_>, fd: u32, size: i64) -> Done<i32> {
    let ino = written(call, fd)?;
    let size = u64::try_from(size).map_err(|_| Errno::Inval)?;
    may_fail(call, "ftruncate64", &GROW, ino)?;
    may(&system(call).files, ino, 0o222)?;
    change(call).resize(ino, size)?;
    Ok(0)
}

pub(super) fn fallocate(call: &mut Call<'_>, fd: u32, mode: u32, at: i64, len: i64) -> Done<i32> {
    if mode != 0 {
        return Ok(NOT_SUPPORTED);
    }
    let ino = written(call, fd)?;
    let (Ok(at), Ok(len)) = (u64::try_from(at), u64::try_from(len)) else { return Err(Errno::Inval.into()) };
    may_fail(call, "fallocate", &GROW, ino)?;
    let end = at.checked_add(len).ok_or(Errno::Fbig)?;
    if end > system(call).files.content(ino)?.size() {
        change(call).resize(ino, end)?;
    }
    Ok(0)
}

pub(super) fn fadvise64(call: &mut Call<'_>, fd: u32, _at: i64, _len: i64, _advice: u32) -> Done<i32> {
    system(call).descriptor(fd)?;
    Ok(0)
}

pub(super) fn fdatasync(call: &mut Call<'_>, fd: u32) -> Done<i32> {
    let Some(ino) = system(call).descriptor(fd)?.open.ino() else { return Ok(0) };
    may_fail(call, "fdatasync", &CHANGE, ino)?;
    if system(call).may_crash() {
        change(call).sync(ino);
    }
    Ok(0)
}

/// Commands of `fcntl`.
const DUPLICATE: u32 = 0;
const GET_DESCRIPTOR_FLAGS: u32 = 1;
const SET_DESCRIPTOR_FLAGS: u32 = 2;
const GET_FLAGS: u32 = 3;
const SET_FLAGS: u32 = 4;
const GET_LOCK: u32 = 12;
const SET_LOCK: u32 = 13;
const SET_LOCK_WAITING: u32 = 14;
const DUPLICATE_AND_CLOSE: u32 = 1030;
/// What is not locked.
const UNLOCKED: u16 = 2;

pub(super) fn fcntl64(call: &mut Call<'_>, fd: u32, command: u32, more: u32) -> Done<i32> {
    let descriptor = system(call).descriptor(fd)?;
    match command {
        DUPLICATE | DUPLICATE_AND_CLOSE => {
            let least = get_u32(call, more)?;
            if least >= NUMBERS {
                return Err(Errno::Inval.into());
            }
            duplicate(call, fd, least)
        }
        GET_DESCRIPTOR_FLAGS | SET_DESCRIPTOR_FLAGS | SET_LOCK | SET_LOCK_WAITING => Ok(0),
        GET_FLAGS => Ok(flags_of(descriptor) as i32),
        SET_FLAGS => {
            let flags = get_u32(call, more)?;
            let descriptor = change(call).descriptor_mut(fd)?;
            descriptor.flags &= !(APPEND | NO_WAIT);
            descriptor.flags |= if flags & APPENDED != 0 { APPEND } else { 0 };
            descriptor.flags |= if flags & NONBLOCK != 0 { NO_WAIT } else { 0 };
            Ok(0)
        }
        GET_LOCK => {
            let lock = get_u32(call, more)?;
            put(call, lock, &UNLOCKED.to_le_bytes())?;
            Ok(0)
        }
        _ => Err(Errno::Inval.into()),
    }
}

fn flags_of(descriptor: &Descriptor) -> u32 {
    let access = match descriptor.rights & (rights::FD_READ | rights::FD_WRITE) {
        rights::FD_READ => 0,
        rights::FD_WRITE => 1,
        0 => 0,
        _ => 2,
    };
    let append = if descriptor.flags & APPEND != 0 { APPENDED } else { 0 };
    let no_wait = if descriptor.flags & NO_WAIT != 0 { NONBLOCK } else { 0 };
    access | append | no_wait | LARGE_FILES
}

pub(super) fn dup(call: &mut Call<'_>, fd: u32) -> Done<i32> {
    duplicate(call, fd, 0)
}

/// Numbers that descriptors may be given are below this.
const NUMBERS: u32 = 4096;

/// Opens once more what a descriptor stands for, under the lowest free number from `least` on. Two descriptors of one file would
/// share where the next read begins, which they cannot here.
fn duplicate(call: &mut Call<'_>, fd: u32, least: u32) -> Done<i32> {
    let descriptor = system(call).descriptor(fd)?.clone();
    if let Open::File { .. } = descriptor.open {
        return Ok(NOT_SUPPORTED);
    }
    system(call).may_open()?;
    let taken = &system(call).descriptors;
    let Some(free) = (least..NUMBERS).find(|fd| !taken.contains_key(fd)) else {
        return Err(Errno::Mfile.into());
    };
    let system = change(call);
    system.descriptors.insert(free, descriptor);
    system.process.listings.remove(&free);
    Ok(free as i32)
}

pub(super) fn dup3(call: &mut Call<'_>, fd: u32, to: u32, _flags: u32) -> Done<i32> {
    let descriptor = system(call).descriptor(fd)?.clone();
    if fd == to {
        return Err(Errno::Inval.into());
    }
    if to >= NUMBERS {
        return Err(Errno::Badf.into());
    }
    if let Open::File { .. } = descriptor.open {
        return Ok(NOT_SUPPORTED);
    }
    if system(call).descriptor(to).is_ok() {
        change(call).close(to)?;
    }
    duplicate(call, fd, to)
}

/// Requests of `ioctl`.
const GET_TERMINAL: u32 = 0x5401;
const SET_TERMINAL: [u32; 6] = [0x5402, 0x5403, 0x5404, 0x5406, 0x5407, 0x5408];
const FLUSH_TERMINAL: u32 = 0x540b;
const GET_GROUP: u32 = 0x540f;
const SET_GROUP: u32 = 0x5410;
const GET_SIZE: u32 = 0x5413;
const SET_SIZE: u32 = 0x5414;

/// Standard output and standard error are terminals of 24 lines and 80 columns.
pub(super) fn ioctl(call: &mut Call<'_>, fd: u32, request: u32, more: u32) -> Done<i32> {
    let is_terminal = matches!(system(call).descriptor(fd)?.open, Open::Stdout | Open::Stderr);
    let is_known = [GET_TERMINAL, FLUSH_TERMINAL, GET_GROUP, SET_GROUP, GET_SIZE, SET_SIZE];
    if !is_known.contains(&request) && !SET_TERMINAL.contains(&request) {
        return Err(Errno::Inval.into());
    }
    if !is_terminal {
        return Err(Errno::Notty.into());
    }
    match request {
        GET_TERMINAL => {
            let at = get_u32(call, more)?;
            let modes = Layout::<60>::zeros().u32(0, 25_856).u32(4, 5).u32(8, 191).u32(12, 35_387);
            put(call, at, &modes.0)?;
        }
        GET_GROUP => {
            let at = get_u32(call, more)?;
            put_u32(call, at, 0)?;
        }
        SET_GROUP => return Err(Errno::Inval.into()),
        GET_SIZE => {
            let at = get_u32(call, more)?;
            put(call, at, &Layout::<4>::zeros().u16(0, 24).u16(2, 80).0)?;
        }
        _ => {}
    }
    Ok(0)
}

/// The bytes of an entry of a listing, `struct dirent`.
const ENTRY: usize = 280;
/// Looking at one entry costs as much as reading so many bytes.
const ENTRY_BYTES: usize = 64;

pub(super) fn getdents64(call: &mut Call<'_>, fd: u32, out: u32, room: u32) -> Done<i32> {
    let Open::Directory { ino, .. } = system(call).descriptor(fd)?.open else {
        return Err(Errno::Notdir.into());
    };
    may_fail(call, "getdents64", &LOOK, ino)?;
    let count = system(call).files.entries(ino)?.len();
    pay(call, count * ENTRY_BYTES)?;
    let from = system(call).process.listings.get(&fd).copied().unwrap_or(0);
    let (bytes, next) = listing(system(call), ino, from, room as usize / ENTRY)?;
    put(call, out, &bytes)?;
    if bytes.is_empty() && room as usize >= ENTRY {
        return Ok(0);
    }
    set_listing(call, fd, next);
    Ok(bytes.len() as i32)
}

/// So many entries of a directory from a place on, and the place of the next. A place is a hash of the name, so that it stays
/// while other entries come and go.
fn listing(system: &State, directory: u32, from: u64, most: usize) -> Done<(Vec<u8>, u64)> {
    let files = &system.files;
    let place = |name: &str| 2 + (xxh3_64(name.as_bytes()) >> 2);
    let named = files.entries(directory)?.iter().map(|(name, ino)| (place(name), &**name, *ino));
    let all = [(0, ".", directory), (1, "..", files.parent(directory))].into_iter().chain(named);
    let mut entries: Vec<(u64, &str, u32)> = all.filter(|(place, ..)| *place >= from).collect();
    entries.sort_unstable();
    let (mut bytes, mut next) = (Vec::new(), from);
    for (place, name, ino) in entries.into_iter().take(most) {
        let kind: u16 = match files.get(ino).node {
            Node::File(_) => 8,
            Node::Directory { .. } => 4,
            Node::Link(_) => 10,
        };
        next = place + 1;
        let mut entry =
            Layout::<ENTRY>::zeros().u64(0, ino.into()).u64(8, next).u16(16, ENTRY as u16).u16(18, kind).0;
        entry[19..19 + name.len()].copy_from_slice(name.as_bytes());
        bytes.extend(entry);
    }
    Ok((bytes, next))
}

/// Goes to another place in the listing of a directory; `None` where the descriptor stands for none.
pub(super) fn seek_listing(call: &mut Call<'_>, fd: u32, offset: i64, whence: u32) -> Option<Done<u64>> {
    let Ok(Descriptor { open: Open::Directory { .. }, .. }) = system(call).descriptor(fd) else {
        return None;
    };
    let at = system(call).process.listings.get(&fd).copied().unwrap_or(0);
    let to = match whence {
        0 => u64::try_from(offset).ok(),
        1 => at.checked_add_signed(offset),
        _ => None,
    };
    let Some(to) = to else { return Some(Err(Errno::Inval.into())) };
    set_listing(call, fd, to);
    Some(Ok(to))
}

/// Remembers where a listing goes on. What is known of descriptors that were closed is forgotten.
fn set_listing(call: &mut Call<'_>, fd: u32, place: u64) {
    let State { process, descriptors, .. } = change(call);
    process.listings.insert(fd, place);
    process.listings.retain(|fd, place| *place > 0 && descriptors.contains_key(fd));
}

/// Bytes of what is waited for, and events.
const WAITED: u32 = 8;
const WAITED_MAX: u32 = 4096;
const READABLE: u16 = 1;
const WRITABLE: u16 = 4;
const INVALID: u16 = 32;

pub(super) fn poll(call: &mut Call<'_>, list: u32, count: u32, timeout: i32) -> Done<i32> {
    if count > WAITED_MAX {
        return Err(Errno::Inval.into());
    }
    pay(call, count as usize * ENTRY_BYTES)?;
    struck(call, "poll", &WAIT, 2)?;
    let mut ready = 0;
    for index in 0..count {
        let at = list.wrapping_add(index * WAITED);
        let [fd, asked] = [get_u32(call, at)?, u32::from(u16::from_le_bytes(get(call, at.wrapping_add(4))?))];
        let events = match system(call).descriptor(fd) {
            _ if (fd as i32) < 0 => 0,
            Err(_) => INVALID,
            Ok(_) => (READABLE | WRITABLE) & asked as u16,
        };
        put(call, at.wrapping_add(6), &events.to_le_bytes())?;
        ready += i32::from(events != 0);
    }
    // Nobody else makes anything ready.
    if ready == 0 && timeout > 0 {
        change(call).pass(timeout.unsigned_abs() as u64 * 1_000_000);
    }
    Ok(ready)
}
