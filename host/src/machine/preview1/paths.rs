//! `path_*`.

#![expect(clippy::too_many_arguments, reason = "the specification gives them")]

use std::collections::BTreeMap;

use super::super::system::{
    Answer, Content, Descriptor, Errno, FLAGS, Node, Open, Place, State, TARGET_MAX, rights,
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

fn follows(flags: u32) -> Result<bool, Errno> {
    if flags > FOLLOW { Err(Errno::Inval) } else { Ok(flags == FOLLOW) }
}

pub(super) fn path_create_directory(call: &mut Call<'_>, fd: u32, path: u32, len: u32) -> Done {
    let place = place(call, (fd, rights::PATH_CREATE_DIRECTORY), (path, len), false)?;
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
    let place = place(call, (fd, rights::PATH_FILESTAT_GET), (path, len), follows(flags)?)?;
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
    let place = place(call, (fd, rights::PATH_FILESTAT_SET_TIMES), (path, len), follows(flags)?)?;
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
    let from = place(call, (old_fd, rights::PATH_LINK_SOURCE), (old, old_len), follows(flags)?)?;
    let to = place(call, (fd, rights::PATH_LINK_TARGET), (path, len), false)?;
    may_fail(call, "path_link", &GROW, to.directory)?;
    let ino = from.existing(&system(call).files)?;
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
    let mut needed = rights::PATH_OPEN;
    if how & CREATE != 0 {
        needed |= rights::PATH_CREATE_FILE;
    }
    if how & TRUNCATE != 0 {
        needed |= rights::PATH_FILESTAT_SET_SIZE;
    }
    let fd_flags = u16::try_from(fd_flags).ok().filter(|flags| flags & !FLAGS == 0).ok_or(Errno::Inval)?;
    if how > 15 || how & (CREATE | DIRECTORY) == CREATE | DIRECTORY {
        return Err(Errno::Inval.into());
    }
    let place = place(call, (fd, needed), (path, len), follows(flags)? && !is_new)?;
    let faults: &[HostFault] = match how {
        _ if place.ino.is_none() && how & CREATE != 0 => &GROW,
        _ if how & TRUNCATE != 0 => &CHANGE,
        _ => &LOOK,
    };
    may_fail(call, "path_open", faults, place.directory)?;
    let above = system(call).descriptor(fd)?;
    let (base, inheriting) = (base & above.inheriting, inheriting & above.inheriting);
    system(call).may_open()?;
    let open = match place.ino {
        Some(_) if is_new => return Err(Errno::Exist.into()),
        Some(_) => open_existing(system(call), &place, how, base & rights::FD_WRITE != 0)?,
        None if how & CREATE == 0 => return Err(Errno::Noent.into()),
        None if place.must_be_directory => return Err(Errno::Isdir.into()),
        None => {
            let node = Node::File(Content::default());
            let ino = change(call).create(place.directory, place.entry()?, node)?;
            Open::File { ino, at: 0 }
        }
    };
    if let Open::File { ino, .. } = open
        && how & TRUNCATE != 0
    {
        change(call).resize(ino, 0)?;
    }
    let (rights, inheriting) = match open {
        Open::Directory { .. } => (base & rights::DIRECTORY, inheriting),
        _ => (base & rights::FILE, 0),
    };
    let fd = change(call).add(Descriptor { open, flags: fd_flags, rights, inheriting })?;
    put_u32(call, out, fd)
}

/// Opens what is there.
fn open_existing(system: &State, place: &Place, how: u32, is_written: bool) -> Answer<Open> {
    let ino = place.existing(&system.files)?;
    match system.files.get(ino).node {
        Node::Link(_) => Err(Errno::Loop),
        Node::File(_) if how & DIRECTORY != 0 => Err(Errno::Notdir),
        Node::File(_) => Ok(Open::File { ino, at: 0 }),
        Node::Directory { .. } if how & (CREATE | TRUNCATE) != 0 => Err(Errno::Isdir),
        Node::Directory { .. } if is_written && how & DIRECTORY == 0 => Err(Errno::Isdir),
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
    let place = place(call, (fd, rights::PATH_READLINK), (path, len), false)?;
    let files = &system(call).files;
    let Node::Link(target) = &files.get(place.existing(files)?).node else { return Err(Errno::Inval.into()) };
    let target = target.clone();
    let shown = &target.as_bytes()[..target.len().min(room as usize)];
    put(call, out, shown)?;
    put_u32(call, used, shown.len() as u32)
}

pub(super) fn path_remove_directory(call: &mut Call<'_>, fd: u32, path: u32, len: u32) -> Done {
    let place = place(call, (fd, rights::PATH_REMOVE_DIRECTORY), (path, len), false)?;
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
    let from = place(call, (fd, rights::PATH_RENAME_SOURCE), (old, old_len), false)?;
    let to = place(call, (new_fd, rights::PATH_RENAME_TARGET), (new, new_len), false)?;
    may_fail(call, "path_rename", &GROW, to.directory)?;
    let files = &system(call).files;
    let ino = from.existing(files)?;
    if to.must_be_directory && !files.is_directory(ino) {
        return Err(Errno::Notdir.into());
    }
    Ok(change(call).rename((from.directory, from.entry()?), (to.directory, to.entry()?))?)
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
    let place = place(call, (fd, rights::PATH_SYMLINK), (path, len), false)?;
    may_fail(call, "path_symlink", &GROW, place.directory)?;
    if place.ino.is_some() {
        return Err(Errno::Exist.into());
    }
    if place.must_be_directory || target.is_empty() {
        return Err(Errno::Noent.into());
    }
    if target.len() > TARGET_MAX {
        return Err(Errno::Nametoolong.into());
    }
    if target.starts_with('/') {
        return Err(Errno::Perm.into());
    }
    if target.contains('\0') {
        return Err(Errno::Inval.into());
    }
    change(call).create(place.directory, place.entry()?, Node::Link(target.into()))?;
    Ok(())
}

pub(super) fn path_unlink_file(call: &mut Call<'_>, fd: u32, path: u32, len: u32) -> Done {
    let place = place(call, (fd, rights::PATH_UNLINK_FILE), (path, len), false)?;
    may_fail(call, "path_unlink_file", &CHANGE, place.directory)?;
    place.existing(&system(call).files)?;
    Ok(change(call).unlink(place.directory, place.entry()?)?)
}
