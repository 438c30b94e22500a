//! `path_*`.

#![expect(clippy::too_many_arguments, reason = "the specification gives them")]

use super::super::operations::{self, Opening};
use super::super::system::{Answer, Errno, FLAGS, rights};
use super::Done;
use super::descriptors::filestat;
use super::memory::{Call, put, put_u32, system, text};

/// A link at the end of a path is followed.
const FOLLOW: u32 = 1;

fn follows(flags: u32) -> Answer<bool> {
    if flags > FOLLOW { Err(Errno::Inval) } else { Ok(flags == FOLLOW) }
}

pub(super) fn path_create_directory(call: &mut Call<'_>, fd: u32, path: u32, len: u32) -> Done {
    let path = text(call, path, len)?;
    operations::create_directory(call, "path_create_directory", (fd, &path))
}

pub(super) fn path_filestat_get(
    call: &mut Call<'_>,
    fd: u32,
    flags: u32,
    path: u32,
    len: u32,
    out: u32,
) -> Done {
    let (follows, path) = (follows(flags)?, text(call, path, len)?);
    let ino = operations::existing(call, rights::PATH_FILESTAT_GET, (fd, &path), follows)?;
    let bytes = filestat(ino, system(call).files.get(ino));
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
    let (follows, path) = (follows(flags)?, text(call, path, len)?);
    let ino = operations::existing(call, rights::PATH_FILESTAT_SET_TIMES, (fd, &path), follows)?;
    operations::set_times(call, ino, [accessed, modified], which)
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
    let (old, follows) = (text(call, old, old_len)?, follows(flags)?);
    let path = text(call, path, len)?;
    operations::link(call, "path_link", ((old_fd, &old), follows), (fd, &path))
}

pub(super) fn path_open(
    call: &mut Call<'_>,
    fd: u32,
    flags: u32,
    path: u32,
    len: u32,
    how: u32,
    rights: u64,
    inheriting: u64,
    fd_flags: u32,
    out: u32,
) -> Done {
    let fd_flags = u16::try_from(fd_flags).ok().filter(|flags| flags & !FLAGS == 0).ok_or(Errno::Inval)?;
    if how > 15 {
        return Err(Errno::Inval.into());
    }
    let (follows, path) = (follows(flags)?, text(call, path, len)?);
    let opening = Opening { at: (fd, &path), follows, how, rights, inheriting, flags: fd_flags };
    let fd = operations::open(call, "path_open", &opening)?;
    put_u32(call, out, fd)
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
    let path = text(call, path, len)?;
    let target = operations::read_link(call, (fd, &path))?;
    let shown = &target.as_bytes()[..target.len().min(room as usize)];
    put(call, out, shown)?;
    put_u32(call, used, shown.len() as u32)
}

pub(super) fn path_remove_directory(call: &mut Call<'_>, fd: u32, path: u32, len: u32) -> Done {
    let path = text(call, path, len)?;
    operations::remove_directory(call, "path_remove_directory", (fd, &path))
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
    let (old, new) = (text(call, old, old_len)?, text(call, new, new_len)?);
    operations::rename(call, "path_rename", (fd, &old), (new_fd, &new))
}

pub(super) fn path_symlink(
    call: &mut Call<'_>,
    target: u32,
    target_len: u32,
    fd: u32,
    path: u32,
    len: u32,
) -> Done {
    let (target, path) = (text(call, target, target_len)?, text(call, path, len)?);
    operations::symlink(call, "path_symlink", &target, (fd, &path))
}

pub(super) fn path_unlink_file(call: &mut Call<'_>, fd: u32, path: u32, len: u32) -> Done {
    let path = text(call, path, len)?;
    operations::unlink(call, "path_unlink_file", (fd, &path))
}
