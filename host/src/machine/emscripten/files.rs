//! System calls on paths.

use std::collections::BTreeMap;

use super::super::host::pay;
use super::super::preview1::{CHANGE, Done, GROW, LOOK, may_fail};
use super::super::system::{
    APPEND, Content, DIRECTORY_MAX, Descriptor, End, Errno, Node, Open, Place, TARGET_MAX, rights,
};
use super::memory::{Call, get_u32, put, text};
use super::paths::{HERE, existing, may, may_change, path_of, place};
use super::{change, system};
use crate::file::HostFault;

/// How a file is opened.
const ACCESS: u32 = 3;
const WRITE_ONLY: u32 = 1;
const READ_WRITE: u32 = 2;
pub(super) const CREATE: u32 = 0o100;
const EXCLUSIVE: u32 = 0o200;
const TRUNCATE: u32 = 0o1000;
pub(super) const APPENDED: u32 = 0o2000;
pub(super) const NONBLOCK: u32 = 0o4000;
const DIRECTORY: u32 = 0o200000;
const NOFOLLOW: u32 = 0o400000;
const PATH: u32 = 0o10000000;
/// The flag of WASI for descriptors that do not wait.
pub(super) const NO_WAIT: u16 = 4;
/// Permissions that a mode may say.
const MODE: u32 = 0o7777;

/// What a descriptor that is opened with these flags may do.
fn rights_of(flags: u32) -> u64 {
    let writes = rights::FD_WRITE | rights::FD_ALLOCATE | rights::FD_FILESTAT_SET_SIZE;
    match flags & ACCESS {
        _ if flags & PATH != 0 => rights::FD_FILESTAT_GET,
        WRITE_ONLY => rights::FILE & !rights::FD_READ,
        READ_WRITE => rights::FILE,
        _ => rights::FILE & !writes,
    }
}

/// The bits of a mode that opening with these flags asks for.
fn asked(flags: u32) -> u16 {
    let writes = if flags & TRUNCATE != 0 { 0o222 } else { 0 };
    writes
        | match flags & ACCESS {
            WRITE_ONLY => 0o222,
            READ_WRITE => 0o666,
            _ => 0o444,
        }
}

pub(super) fn openat(call: &mut Call<'_>, at: i32, path: u32, flags: u32, more: u32) -> Done<i32> {
    let is_new = flags & (CREATE | EXCLUSIVE) == CREATE | EXCLUSIVE;
    let last = if flags & NOFOLLOW != 0 || is_new { End::Link } else { End::Target };
    let place = place(call, at, path, last)?;
    let mode = if flags & CREATE != 0 && more != 0 { get_u32(call, more)? } else { 0 };
    let faults: &[HostFault] = match place.ino {
        None if flags & CREATE != 0 => &GROW,
        Some(_) if flags & TRUNCATE != 0 => &CHANGE,
        _ => &LOOK,
    };
    may_fail(call, "openat", faults, place.directory)?;
    system(call).may_open()?;
    let open = match place.ino {
        Some(_) if is_new => return Err(Errno::Exist.into()),
        Some(_) => open_existing(call, &place, flags)?,
        None if flags & CREATE == 0 => return Err(Errno::Noent.into()),
        None => create(call, &place, mode)?,
    };
    let rights = match open {
        Open::Directory { .. } => rights::DIRECTORY,
        _ => rights_of(flags),
    };
    let inheriting = rights::DIRECTORY | rights::FILE;
    let append = if flags & APPENDED != 0 { APPEND } else { 0 };
    let no_wait = if flags & NONBLOCK != 0 { NO_WAIT } else { 0 };
    let system = change(call);
    let fd = system.add(Descriptor { open, flags: append | no_wait, rights, inheriting })?;
    // What had the number before read its listing for itself.
    system.process.listings.remove(&fd);
    Ok(fd as i32)
}

fn open_existing(call: &mut Call<'_>, place: &Place, flags: u32) -> Done<Open> {
    let files = &system(call).files;
    let ino = place.existing(files)?;
    let writes = matches!(flags & ACCESS, WRITE_ONLY | READ_WRITE) || flags & (TRUNCATE | CREATE) != 0;
    match files.get(ino).node {
        Node::Link(_) => return Err(Errno::Loop.into()),
        Node::Directory { .. } if writes => return Err(Errno::Isdir.into()),
        Node::File(_) if flags & DIRECTORY != 0 => return Err(Errno::Notdir.into()),
        _ => may(files, ino, asked(flags))?,
    }
    if files.is_directory(ino) {
        return Ok(Open::Directory { ino, preopen: None });
    }
    if flags & TRUNCATE != 0 {
        change(call).resize(ino, 0)?;
    }
    Ok(Open::File { ino, at: 0 })
}

fn create(call: &mut Call<'_>, place: &Place, mode: u32) -> Done<Open> {
    if place.must_be_directory {
        return Err(Errno::Isdir.into());
    }
    may_change(&system(call).files, place.directory)?;
    let system = change(call);
    let ino = system.create(place.directory, place.entry()?, Node::File(Content::default()))?;
    set_new_mode(call, ino, mode);
    Ok(Open::File { ino, at: 0 })
}

/// Gives what was just made the permissions that it is to have.
fn set_new_mode(call: &mut Call<'_>, ino: u32, mode: u32) {
    let system = change(call);
    let mode = (mode & 0o777) as u16 & !system.process.umask;
    let now = system.now();
    system.files.set_mode(ino, mode, now);
}

pub(super) fn mkdirat(call: &mut Call<'_>, at: i32, path: u32, mode: u32) -> Done<i32> {
    let place = place(call, at, path, End::Link)?;
    may_fail(call, "mkdirat", &GROW, place.directory)?;
    if place.ino.is_some() {
        return Err(Errno::Exist.into());
    }
    may_change(&system(call).files, place.directory)?;
    let node = Node::Directory { entries: BTreeMap::new(), parent: place.directory };
    let ino = change(call).create(place.directory, place.entry()?, node)?;
    set_new_mode(call, ino, mode);
    Ok(0)
}

/// Removes a directory, not a file.
const REMOVE_DIRECTORY: u32 = 0x200;

pub(super) fn unlinkat(call: &mut Call<'_>, at: i32, path: u32, flags: u32) -> Done<i32> {
    match flags {
        0 => {
            let place = place(call, at, path, End::Link)?;
            may_fail(call, "unlinkat", &CHANGE, place.directory)?;
            let files = &system(call).files;
            let ino = place.existing(files)?;
            may_change(files, place.directory)?;
            if files.is_directory(ino) {
                return Err(Errno::Isdir.into());
            }
            change(call).unlink(place.directory, place.entry()?)?;
            Ok(0)
        }
        REMOVE_DIRECTORY => remove_directory(call, at, path),
        _ => Err(Errno::Inval.into()),
    }
}

pub(super) fn rmdir(call: &mut Call<'_>, path: u32) -> Done<i32> {
    remove_directory(call, HERE, path)
}

fn remove_directory(call: &mut Call<'_>, at: i32, path: u32) -> Done<i32> {
    let place = place(call, at, path, End::Link)?;
    may_fail(call, "rmdir", &CHANGE, place.directory)?;
    let files = &system(call).files;
    let ino = place.existing(files)?;
    if !files.is_directory(ino) {
        return Err(Errno::Notdir.into());
    }
    let Some(name) = &place.name else { return Err(Errno::Busy.into()) };
    may_change(files, place.directory)?;
    if path_of(call, ino)? == system(call).process.directory {
        return Err(Errno::Busy.into());
    }
    change(call).remove_directory(place.directory, name)?;
    Ok(0)
}

pub(super) fn renameat(call: &mut Call<'_>, from: i32, old: u32, to: i32, new: u32) -> Done<i32> {
    let from = place(call, from, old, End::Link)?;
    let to = place(call, to, new, End::Link)?;
    may_fail(call, "renameat", &GROW, to.directory)?;
    let files = &system(call).files;
    let ino = from.existing(files)?;
    may_change(files, from.directory)?;
    may_change(files, to.directory)?;
    if to.must_be_directory && !files.is_directory(ino) {
        return Err(Errno::Notdir.into());
    }
    let (Some(old), Some(new)) = (&from.name, &to.name) else { return Err(Errno::Busy.into()) };
    let mut work = 0;
    let renamed = change(call).rename((from.directory, old), (to.directory, new), &mut work);
    pay(call, work)?;
    renamed?;
    Ok(0)
}

pub(super) fn symlinkat(call: &mut Call<'_>, target: u32, at: i32, path: u32) -> Done<i32> {
    let target = text(call, target)?;
    let place = place(call, at, path, End::Link)?;
    may_fail(call, "symlinkat", &GROW, place.directory)?;
    if place.ino.is_some() {
        return Err(Errno::Exist.into());
    }
    if place.must_be_directory || target.is_empty() {
        return Err(Errno::Noent.into());
    }
    if target.len() > TARGET_MAX {
        return Err(Errno::Nametoolong.into());
    }
    may_change(&system(call).files, place.directory)?;
    change(call).create(place.directory, place.entry()?, Node::Link(target.into()))?;
    Ok(0)
}

/// A file has one name in the file systems of Emscripten.
pub(super) fn linkat(call: &mut Call<'_>, from: i32, old: u32, to: i32, new: u32, _flags: u32) -> Done<i32> {
    existing(call, from, old, End::Link)?;
    place(call, to, new, End::Link)?;
    Err(Errno::Mlink.into())
}

pub(super) fn readlinkat(call: &mut Call<'_>, at: i32, path: u32, out: u32, room: u32) -> Done<i32> {
    let ino = existing(call, at, path, End::Link)?;
    if room as i32 <= 0 {
        return Err(Errno::Inval.into());
    }
    let Node::Link(target) = &system(call).files.get(ino).node else { return Err(Errno::Inval.into()) };
    let target = target.clone();
    let shown = &target.as_bytes()[..target.len().min(room as usize)];
    put(call, out, shown)?;
    Ok(shown.len() as i32)
}

pub(super) fn truncate64(call: &mut Call<'_>, path: u32, size: i64) -> Done<i32> {
    let size = u64::try_from(size).map_err(|_| Errno::Inval)?;
    let ino = existing(call, HERE, path, End::Target)?;
    may_fail(call, "truncate64", &GROW, ino)?;
    let files = &system(call).files;
    files.content(ino)?;
    may(files, ino, 0o222)?;
    change(call).resize(ino, size)?;
    Ok(0)
}

pub(super) fn getcwd(call: &mut Call<'_>, out: u32, room: u32) -> Done<i32> {
    if room == 0 {
        return Err(Errno::Inval.into());
    }
    let mut path = system(call).process.directory.clone();
    path.push('\0');
    if path.len() > room as usize {
        return Err(Errno::Range.into());
    }
    put(call, out, path.as_bytes())?;
    Ok(path.len() as i32)
}

pub(super) fn chdir(call: &mut Call<'_>, path: u32) -> Done<i32> {
    let ino = existing(call, HERE, path, End::Target)?;
    enter(call, ino)
}

pub(super) fn fchdir(call: &mut Call<'_>, fd: u32) -> Done<i32> {
    match system(call).descriptor(fd)?.open {
        Open::Directory { ino, .. } => enter(call, ino),
        _ => Err(Errno::Notdir.into()),
    }
}

fn enter(call: &mut Call<'_>, ino: u32) -> Done<i32> {
    let files = &system(call).files;
    if !files.is_directory(ino) {
        return Err(Errno::Notdir.into());
    }
    may(files, ino, 0o111)?;
    let path = path_of(call, ino)?;
    if path.len() > DIRECTORY_MAX {
        return Err(Errno::Nametoolong.into());
    }
    change(call).process.directory = path;
    Ok(0)
}

pub(super) fn umask(call: &mut Call<'_>, mask: u32) -> Done<i32> {
    let process = &mut change(call).process;
    Ok(std::mem::replace(&mut process.umask, (mask & MODE) as u16 & 0o777).into())
}
