//! `fd_*` and `sock_*`.

use super::super::host::{Host, pay};
use super::super::imports::choose;
use super::super::operations;
use super::super::system::{
    APPEND, Answer, Errno, FLAGS, Inode, Input, LISTED_BYTES, Node, Open, State, Times, rights,
};
use super::memory::{Call, change, fill, parts, put, put_u32, put_u64, system, take};
use super::{Done, GROW, LOOK, READ, WRITE, may_fail, struck};
use crate::choice::{Kind, Value};

/// Types of files.
const CHARACTER_DEVICE: u8 = 2;
const DIRECTORY: u8 = 3;
const REGULAR_FILE: u8 = 4;
const SYMBOLIC_LINK: u8 = 7;

pub(super) fn fd_advise(call: &mut Call<'_>, fd: u32, offset: u64, len: u64, advice: u32) -> Done {
    operations::advise(call, fd, offset, len)?;
    if advice > 5 { Err(Errno::Inval.into()) } else { Ok(()) }
}

pub(super) fn fd_allocate(call: &mut Call<'_>, fd: u32, offset: u64, len: u64) -> Done {
    let (ino, _) = system(call).file(fd, rights::FD_ALLOCATE)?;
    if len == 0 {
        return Err(Errno::Inval.into());
    }
    may_fail(call, "fd_allocate", &GROW, ino)?;
    let end = offset.checked_add(len).ok_or(Errno::Fbig)?;
    let files = &system(call).files;
    if len > files.room() + files.content(ino)?.stored() {
        return Err(Errno::Nospc.into());
    }
    if end > files.content(ino)?.size() {
        change(call).resize(ino, end)?;
    }
    Ok(())
}

pub(super) fn fd_close(call: &mut Call<'_>, fd: u32) -> Done {
    system(call).descriptor(fd)?;
    Ok(change(call).close(fd)?)
}

pub(super) fn fd_datasync(call: &mut Call<'_>, fd: u32) -> Done {
    operations::sync(call, "fd_sync", fd, rights::FD_DATASYNC)
}

pub(super) fn fd_sync(call: &mut Call<'_>, fd: u32) -> Done {
    operations::sync(call, "fd_sync", fd, rights::FD_SYNC)
}

pub(super) fn fd_fdstat_get(call: &mut Call<'_>, fd: u32, out: u32) -> Done {
    let descriptor = system(call).descriptor(fd)?;
    let mut bytes = [0; 24];
    bytes[0] = match descriptor.open {
        // A pipe has no type, so nobody takes it for a terminal that one types at.
        Open::Stdin => 0,
        // As a terminal, which programs write to line by line.
        Open::Stdout | Open::Stderr => CHARACTER_DEVICE,
        Open::File { .. } => REGULAR_FILE,
        Open::Directory { .. } => DIRECTORY,
    };
    bytes[2..4].copy_from_slice(&descriptor.flags.to_le_bytes());
    bytes[8..16].copy_from_slice(&descriptor.rights.to_le_bytes());
    bytes[16..24].copy_from_slice(&descriptor.inheriting.to_le_bytes());
    put(call, out, &bytes)
}

pub(super) fn fd_fdstat_set_flags(call: &mut Call<'_>, fd: u32, flags: u32) -> Done {
    system(call).with_rights(fd, rights::FD_FDSTAT_SET_FLAGS)?;
    let flags = u16::try_from(flags).ok().filter(|flags| flags & !FLAGS == 0).ok_or(Errno::Inval)?;
    change(call).descriptor_mut(fd)?.flags = flags;
    Ok(())
}

pub(super) fn fd_fdstat_set_rights(call: &mut Call<'_>, fd: u32, base: u64, inheriting: u64) -> Done {
    let descriptor = system(call).descriptor(fd)?;
    // Rights can be given up only.
    if base & !descriptor.rights != 0 || inheriting & !descriptor.inheriting != 0 {
        return Err(Errno::Notcapable.into());
    }
    let descriptor = change(call).descriptor_mut(fd)?;
    (descriptor.rights, descriptor.inheriting) = (base, inheriting);
    Ok(())
}

fn kind_of(node: &Node) -> u8 {
    match node {
        Node::File(_) => REGULAR_FILE,
        Node::Directory { .. } => DIRECTORY,
        Node::Link(_) => SYMBOLIC_LINK,
    }
}

/// What is known of an inode, as a guest is told.
pub(super) fn filestat(ino: u32, inode: &Inode) -> [u8; 64] {
    let size = operations::size(inode);
    let Times { accessed, modified, changed } = inode.times;
    stat(ino.into(), kind_of(&inode.node), inode.links.into(), [size, accessed, modified, changed])
}

fn stat(ino: u64, kind: u8, links: u64, numbers: [u64; 4]) -> [u8; 64] {
    let mut bytes = [0; 64];
    let words = [1, ino, kind.into(), links].into_iter().chain(numbers);
    for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    bytes
}

pub(super) fn fd_filestat_get(call: &mut Call<'_>, fd: u32, out: u32) -> Done {
    let system = system(call);
    let bytes = match system.with_rights(fd, rights::FD_FILESTAT_GET)?.open.ino() {
        Some(ino) => filestat(ino, system.files.get(ino)),
        None if system.descriptor(fd)?.open == Open::Stdin => stat(0, 0, 1, [0; 4]),
        None => stat(0, CHARACTER_DEVICE, 1, [0; 4]),
    };
    put(call, out, &bytes)
}

pub(super) fn fd_filestat_set_size(call: &mut Call<'_>, fd: u32, size: u64) -> Done {
    operations::set_size(call, "fd_filestat_set_size", fd, size)
}

pub(super) fn fd_filestat_set_times(
    call: &mut Call<'_>,
    fd: u32,
    accessed: u64,
    modified: u64,
    which: u32,
) -> Done {
    let open = &system(call).with_rights(fd, rights::FD_FILESTAT_SET_TIMES)?.open;
    let ino = open.ino().ok_or(Errno::Badf)?;
    operations::set_times(call, ino, [accessed, modified], which)
}

pub(super) fn fd_prestat_get(call: &mut Call<'_>, fd: u32, out: u32) -> Done {
    let Open::Directory { preopen: Some(path), .. } = &system(call).descriptor(fd)?.open else {
        return Err(Errno::Badf.into());
    };
    let len = path.len() as u64;
    // The tag of a directory is 0.
    put_u64(call, out, len << 32)
}

pub(super) fn fd_prestat_dir_name(call: &mut Call<'_>, fd: u32, at: u32, len: u32) -> Done {
    let Open::Directory { preopen: Some(path), .. } = &system(call).descriptor(fd)?.open else {
        return Err(Errno::Badf.into());
    };
    let path = path.clone();
    if path.len() > len as usize {
        return Err(Errno::Nametoolong.into());
    }
    put(call, at, path.as_bytes())
}

pub(super) fn fd_pread(call: &mut Call<'_>, fd: u32, list: u32, count: u32, offset: u64, out: u32) -> Done {
    let (ino, _) = system(call).file(fd, rights::FD_READ | rights::FD_SEEK)?;
    let read = read_file(call, ino, (list, count), offset)?;
    put_u32(call, out, read)
}

fn read_file(call: &mut Call<'_>, ino: u32, (list, count): (u32, u32), offset: u64) -> Done<u32> {
    let (mut parts, len) = parts(call, list, count)?;
    let left = system(call).files.content(ino)?.size().saturating_sub(offset).min(len.into());
    let len = if system(call).is_witness(ino) { len } else { struck(call, "fd_read", &READ, left as u32)? };
    shorten(&mut parts, len);
    fill(call, &parts, |system, done, room| system.files.read(ino, offset.saturating_add(done), room))
}

pub(super) fn fd_read(call: &mut Call<'_>, fd: u32, list: u32, count: u32, out: u32) -> Done {
    let open = system(call).with_rights(fd, rights::FD_READ)?.open.clone();
    let read = match open {
        Open::File { ino, at } => {
            let read = read_file(call, ino, (list, count), at)?;
            if read > 0
                && let Open::File { at, .. } = &mut change(call).descriptor_mut(fd)?.open
            {
                *at += u64::from(read);
            }
            read
        }
        Open::Stdin => read_stdin(call, (list, count))?,
        _ => return Err(Errno::Badf.into()),
    };
    put_u32(call, out, read)
}

/// Leaves so many bytes of parts of memory.
fn shorten(parts: &mut Vec<(u32, u32)>, mut len: u32) {
    for (_, part) in parts.iter_mut() {
        *part = (*part).min(len);
        len -= *part;
    }
    parts.retain(|(_, part)| *part > 0);
}

/// Bytes of standard input that are left. What it holds is drawn where nothing says it.
pub(in super::super) fn stdin_left(call: &mut Call<'_>) -> Done<u64> {
    if system(call).stdin.is_none() {
        let kind = Kind::Bytes { min: 0, max: call.data().input_bytes_max };
        let Value::Bytes(bytes) = choose(call, kind)?.clone() else {
            unreachable!("bytes are answered by bytes")
        };
        pay(call, bytes.len())?;
        call.data_mut().step.drew("stdin", &Value::Bytes(bytes.clone()));
        change(call).stdin = Some(Input::new(bytes));
    }
    Ok(system(call).stdin_left().len() as u64)
}

fn read_stdin(call: &mut Call<'_>, (list, count): (u32, u32)) -> Done<u32> {
    let left = stdin_left(call)?;
    let (mut parts, len) = parts(call, list, count)?;
    let len = struck(call, "fd_read", &READ, left.min(len.into()) as u32)?;
    shorten(&mut parts, len);
    let read = fill(call, &parts, |system, done, room| {
        let left = system.stdin_left().get(done as usize..).unwrap_or_default();
        let len = left.len().min(room.len());
        room[..len].copy_from_slice(&left[..len]);
        Ok(len)
    })?;
    if read > 0 {
        change(call).stdin_at += u64::from(read);
    }
    Ok(read)
}

pub(super) fn fd_pwrite(call: &mut Call<'_>, fd: u32, list: u32, count: u32, offset: u64, out: u32) -> Done {
    let (ino, _) = system(call).file(fd, rights::FD_WRITE | rights::FD_SEEK)?;
    let written = write_file(call, ino, (list, count), offset)?;
    put_u32(call, out, written)
}

fn write_file(call: &mut Call<'_>, ino: u32, (list, count): (u32, u32), offset: u64) -> Done<u32> {
    let (mut parts, len) = parts(call, list, count)?;
    let len = if system(call).is_witness(ino) { len } else { struck(call, "fd_write", &WRITE, len)? };
    shorten(&mut parts, len);
    take(call, &parts, |host, done, bytes| {
        if bytes.is_empty() {
            return Ok(());
        }
        let system = host.system.as_mut().expect("a guest that imports it has one").change();
        let at = offset.checked_add(done).ok_or(Errno::Fbig)?;
        system.write(ino, at, bytes)
    })
}

pub(super) fn fd_write(call: &mut Call<'_>, fd: u32, list: u32, count: u32, out: u32) -> Done {
    let descriptor = system(call).with_rights(fd, rights::FD_WRITE)?;
    let is_append = descriptor.flags & APPEND != 0;
    let written = match descriptor.open {
        Open::File { ino, at } => {
            let at = if is_append { system(call).files.content(ino)?.size() } else { at };
            let written = write_file(call, ino, (list, count), at)?;
            if let Open::File { at: next, .. } = &mut change(call).descriptor_mut(fd)?.open {
                *next = at + u64::from(written);
            }
            written
        }
        Open::Stdout => say(call, (list, count), false)?,
        Open::Stderr => say(call, (list, count), true)?,
        _ => return Err(Errno::Badf.into()),
    };
    put_u32(call, out, written)
}

fn say(call: &mut Call<'_>, (list, count): (u32, u32), is_error: bool) -> Done<u32> {
    let (parts, _) = parts(call, list, count)?;
    take(call, &parts, |host: &mut Host, _, bytes| {
        host.step.say(bytes, is_error);
        Ok(())
    })
}

pub(super) fn fd_readdir(call: &mut Call<'_>, fd: u32, at: u32, len: u32, cookie: u64, out: u32) -> Done {
    let ino = system(call).directory(fd, rights::FD_READDIR)?;
    may_fail(call, "fd_readdir", &LOOK, ino)?;
    let count = system(call).files.entries(ino)?.len();
    pay(call, count * LISTED_BYTES)?;
    let bytes = listing(system(call), ino, cookie, len as usize)?;
    put(call, at, &bytes)?;
    put_u32(call, out, bytes.len() as u32)
}

/// Bytes of an entry in a listing, before its name.
const HEAD_BYTES: usize = 24;

/// The first bytes of a directory's listing from a place on.
fn listing(system: &State, directory: u32, from: u64, len: usize) -> Answer<Vec<u8>> {
    let mut bytes = Vec::new();
    for (place, name, ino) in system.files.listed(directory, from, len / HEAD_BYTES + 1)? {
        if bytes.len() >= len {
            break;
        }
        let kind = kind_of(&system.files.get(ino).node);
        bytes.extend((place + 1).to_le_bytes());
        bytes.extend(u64::from(ino).to_le_bytes());
        bytes.extend((name.len() as u32).to_le_bytes());
        bytes.extend([kind, 0, 0, 0]);
        bytes.extend(name.as_bytes());
    }
    bytes.truncate(len);
    Ok(bytes)
}

pub(super) fn fd_renumber(call: &mut Call<'_>, fd: u32, to: u32) -> Done {
    Ok(change(call).renumber(fd, to)?)
}

pub(super) fn fd_seek(call: &mut Call<'_>, fd: u32, offset: i64, whence: u32, out: u32) -> Done {
    let needed = if (offset, whence) == (0, 1) { rights::FD_TELL } else { rights::FD_SEEK };
    let (ino, at) = system(call).file(fd, needed)?;
    let from = match whence {
        0 => 0,
        1 => at,
        2 => system(call).files.content(ino)?.size(),
        _ => return Err(Errno::Inval.into()),
    };
    let place =
        from.checked_add_signed(offset).filter(|place| *place <= i64::MAX as u64).ok_or(Errno::Inval)?;
    if let Open::File { at, .. } = &mut change(call).descriptor_mut(fd)?.open {
        *at = place;
    }
    put_u64(call, out, place)
}

pub(super) fn fd_tell(call: &mut Call<'_>, fd: u32, out: u32) -> Done {
    let (_, at) = system(call).file(fd, rights::FD_TELL)?;
    put_u64(call, out, at)
}

/// There are no sockets, so a descriptor is none.
fn no_socket(call: &Call<'_>, fd: u32) -> Done {
    system(call).descriptor(fd)?;
    Err(Errno::Notsock.into())
}

pub(super) fn sock_accept(call: &mut Call<'_>, fd: u32, _flags: u32, _out: u32) -> Done {
    no_socket(call, fd)
}

pub(super) fn sock_recv(
    call: &mut Call<'_>,
    fd: u32,
    _list: u32,
    _count: u32,
    _flags: u32,
    _out: u32,
    _flags_out: u32,
) -> Done {
    no_socket(call, fd)
}

pub(super) fn sock_send(
    call: &mut Call<'_>,
    fd: u32,
    _list: u32,
    _count: u32,
    _flags: u32,
    _out: u32,
) -> Done {
    no_socket(call, fd)
}

pub(super) fn sock_shutdown(call: &mut Call<'_>, fd: u32, _how: u32) -> Done {
    no_socket(call, fd)
}
