//! `path_*`.

#![expect(clippy::too_many_arguments, reason = "the specification gives them")]

use std::collections::BTreeMap;

use super::super::host::pay;
use super::super::system::{
    Answer, Content, Descriptor, End, Errno, FLAGS, Node, Open, Place, State, rights,
};
use super::descriptors::{filestat, times};
use super::memory::{Call, change, place, put, put_u32, system, text};
use super::{CHANGE, Done, GROW, LOOK, may_fail};
use crate::file::HostFault;

/// A link at the end of a path is followed.
const FOLLOW: u32 = 1;
/// How a path is opened: made where it is not there, as a directory, made anew, cut to nothing.
const CREATE: u32 = 1;
const DIRECTORY: u32 = 2;
const EXCLUSIVE: u32 = 4;
const TRUNCATE: u32 = 8;

fn end(flags: u32) -> Answer<End> {
    match flags {
        0 => Ok(End::Link),
        FOLLOW => Ok(End::Target),
        _ => Err(Errno::Inval),
    }
}

pub(super) fn path_create_directory(call: &mut Call<'_>, fd: u32, path: u32, len: u32) -> Done {
    let place = place(call, (fd, rights::PATH_CREATE_DIRECTORY), (path, len), End::Entry)?;
    may_fail(call, "path_create_directory", &GROW, place.directory)?;
    if place.ino.is_some() {
        return Err(Errno::Exist.into());
    }
    let node = Node::Directory { entries: BTreeMap::new(), parent: place.directory };
    change(call).create(place.directory, place.entry()?, node)?;
    Ok(())
}

pub(super) fn path_filestat_get(
    call: &mut Call<'_>,
    fd: u32,
    flags: u32,
    path: u32,
    len: u32,
    out: u32,
) -> Done {
    let place = place(call, (fd, rights::PATH_FILESTAT_GET), (path, len), end(flags)?)?;
    let files = &system(call).files;
    let ino = place.existing(files)?;
    let bytes = filestat(ino, files.get(ino));
    put(call, out, &bytes)
}

pub(super) fn path_filestat_set_times(
    call: &mut Call<'_>,
    fd: u32,
    flags: u32,
    path: u32,
    len: u32,
    accessed: u64,
    modified: u64,
    which: u32,
) -> Done {
    let place = place(call, (fd, rights::PATH_FILESTAT_SET_TIMES), (path, len), end(flags)?)?;
    let system = system(call);
    let ino = place.existing(&system.files)?;
    let times = times(system, ino, [accessed, modified], which)?;
    change(call).files.set_times(ino, times);
    Ok(())
}

pub(super) fn path_link(
    call: &mut Call<'_>,
    old_fd: u32,
    flags: u32,
    old: u32,
    old_len: u32,
    fd: u32,
    path: u32,
    len: u32,
) -> Done {
    let from = place(call, (old_fd, rights::PATH_LINK_SOURCE), (old, old_len), end(flags)?)?;
    let ino = from.existing(&system(call).files)?;
    let to = place(call, (fd, rights::PATH_LINK_TARGET), (path, len), End::Entry)?;
    may_fail(call, "path_link", &GROW, to.directory)?;
    if to.ino.is_some() {
        return Err(Errno::Exist.into());
    }
    if to.must_be_directory {
        return Err(Errno::Noent.into());
    }
    Ok(change(call).link(to.directory, to.entry()?, ino)?)
}

pub(super) fn path_open(
    call: &mut Call<'_>,
    fd: u32,
    flags: u32,
    path: u32,
    len: u32,
    how: u32,
    base: u64,
    inheriting: u64,
    fd_flags: u32,
    out: u32,
) -> Done {
    let is_new = how & (CREATE | EXCLUSIVE) == CREATE | EXCLUSIVE;
    let fd_flags = u16::try_from(fd_flags).ok().filter(|flags| flags & !FLAGS == 0).ok_or(Errno::Inval)?;
    if how > 15 || how & (CREATE | DIRECTORY) == CREATE | DIRECTORY {
        return Err(Errno::Inval.into());
    }
    let end = match (end(flags)?, how & CREATE != 0) {
        (End::Target, true) if !is_new => End::NewTarget,
        (_, true) => End::Entry,
        (end, false) => end,
    };
    let place = place(call, (fd, needed(how)), (path, len), end)?;
    let faults: &[HostFault] = match how {
        _ if place.ino.is_none() && how & CREATE != 0 => &GROW,
        _ if how & TRUNCATE != 0 => &CHANGE,
        _ => &LOOK,
    };
    may_fail(call, "path_open", faults, place.directory)?;
    // A free number is looked for among those that are taken.
    pay(call, system(call).descriptors.len() * DESCRIPTOR_BYTES)?;
    system(call).may_open()?;
    if how & CREATE != 0 && place.must_be_directory && place.name.is_some() {
        return Err(Errno::Isdir.into());
    }
    let existing = match place.ino {
        Some(_) if is_new => return Err(Errno::Exist.into()),
        Some(_) => Some(open_existing(system(call), &place, how, base & rights::FD_WRITE != 0)?),
        None if how & CREATE == 0 => return Err(Errno::Noent.into()),
        None => None,
    };
    let is_directory = matches!(existing, Some(Open::Directory { .. }));
    let (rights, inheriting) = granted(system(call).descriptor(fd)?, is_directory, base, inheriting)?;
    let system = change(call);
    let open = match existing {
        Some(open) => open,
        None => {
            let node = Node::File(Content::default());
            Open::File { ino: system.create(place.directory, place.entry()?, node)?, at: 0 }
        }
    };
    if let Open::File { ino, .. } = open
        && how & TRUNCATE != 0
    {
        system.resize(ino, 0)?;
    }
    let fd = system.add(Descriptor { open, flags: fd_flags, rights, inheriting })?;
    put_u32(call, out, fd)
}

/// Looking at one descriptor costs as much as reading so many bytes.
const DESCRIPTOR_BYTES: usize = 4;

/// The rights that a directory must have for something to be opened so.
fn needed(how: u32) -> u64 {
    let right = |flag: u32, right: u64| if how & flag != 0 { right } else { 0 };
    rights::PATH_OPEN
        | right(CREATE, rights::PATH_CREATE_FILE)
        | right(TRUNCATE, rights::PATH_FILESTAT_SET_SIZE)
}

/// The rights that a new descriptor has of those that are asked for: those that apply to what it stands for. All of them must
/// be inherited from the directory that it is opened through.
fn granted(above: &Descriptor, is_directory: bool, base: u64, inheriting: u64) -> Answer<(u64, u64)> {
    let (base, inheriting) = match is_directory {
        true => (base & rights::DIRECTORY, inheriting & (rights::DIRECTORY | rights::FILE)),
        false => (base & rights::FILE, 0),
    };
    let is_held = (base | inheriting) & !above.inheriting == 0;
    if is_held { Ok((base, inheriting)) } else { Err(Errno::Notcapable) }
}

/// Opens what is there.
fn open_existing(system: &State, place: &Place, how: u32, is_written: bool) -> Answer<Open> {
    let ino = place.existing(&system.files)?;
    match system.files.get(ino).node {
        Node::File(_) | Node::Link(_) if how & DIRECTORY != 0 => Err(Errno::Notdir),
        Node::Link(_) => Err(Errno::Loop),
        Node::File(_) => Ok(Open::File { ino, at: 0 }),
        Node::Directory { .. } if how & (CREATE | TRUNCATE) != 0 => Err(Errno::Isdir),
        Node::Directory { .. } if is_written => Err(Errno::Isdir),
        Node::Directory { .. } => Ok(Open::Directory { ino, preopen: None }),
    }
}

pub(super) fn path_readlink(
    call: &mut Call<'_>,
    fd: u32,
    path: u32,
    len: u32,
    out: u32,
    room: u32,
    used: u32,
) -> Done {
    let place = place(call, (fd, rights::PATH_READLINK), (path, len), End::Link)?;
    let files = &system(call).files;
    let Node::Link(target) = &files.get(place.existing(files)?).node else { return Err(Errno::Inval.into()) };
    let target = target.clone();
    let shown = &target.as_bytes()[..target.len().min(room as usize)];
    put(call, out, shown)?;
    put_u32(call, used, shown.len() as u32)
}

pub(super) fn path_remove_directory(call: &mut Call<'_>, fd: u32, path: u32, len: u32) -> Done {
    let place = place(call, (fd, rights::PATH_REMOVE_DIRECTORY), (path, len), End::Entry)?;
    may_fail(call, "path_remove_directory", &CHANGE, place.directory)?;
    place.existing(&system(call).files)?;
    Ok(change(call).remove_directory(place.directory, place.entry()?)?)
}

pub(super) fn path_rename(
    call: &mut Call<'_>,
    fd: u32,
    old: u32,
    old_len: u32,
    new_fd: u32,
    new: u32,
    new_len: u32,
) -> Done {
    let from = place(call, (fd, rights::PATH_RENAME_SOURCE), (old, old_len), End::Entry)?;
    let to = place(call, (new_fd, rights::PATH_RENAME_TARGET), (new, new_len), End::Entry)?;
    may_fail(call, "path_rename", &GROW, to.directory)?;
    let files = &system(call).files;
    let ino = from.existing(files)?;
    if to.must_be_directory && !files.is_directory(ino) {
        return Err(Errno::Notdir.into());
    }
    let (from, to) = ((from.directory, from.entry()?), (to.directory, to.entry()?));
    let mut work = 0;
    let renamed = change(call).rename(from, to, &mut work);
    pay(call, work)?;
    Ok(renamed?)
}

pub(super) fn path_symlink(
    call: &mut Call<'_>,
    target: u32,
    target_len: u32,
    fd: u32,
    path: u32,
    len: u32,
) -> Done {
    let target = text(call, target, target_len)?;
    let place = place(call, (fd, rights::PATH_SYMLINK), (path, len), End::Entry)?;
    may_fail(call, "path_symlink", &GROW, place.directory)?;
    if place.ino.is_some() {
        return Err(Errno::Exist.into());
    }
    if place.must_be_directory {
        return Err(Errno::Noent.into());
    }
    if target.starts_with('/') {
        return Err(Errno::Perm.into());
    }
    change(call).create(place.directory, place.entry()?, Node::Link(target.into()))?;
    Ok(())
}

pub(super) fn path_unlink_file(call: &mut Call<'_>, fd: u32, path: u32, len: u32) -> Done {
    let place = place(call, (fd, rights::PATH_UNLINK_FILE), (path, len), End::Entry)?;
    may_fail(call, "path_unlink_file", &CHANGE, place.directory)?;
    let files = &system(call).files;
    if files.is_directory(place.existing(files)?) {
        return Err(Errno::Isdir.into());
    }
    Ok(change(call).unlink(place.directory, place.entry()?)?)
}
