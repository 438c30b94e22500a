//! System calls on what is known of files.

use super::super::preview1::Done;
use super::super::system::{End, Errno, Inode, Node, Open, Times};
use super::memory::{Call, Layout, get, put};
use super::paths::{HERE, existing, may, place_or_itself};
use super::{change, system};

/// Kinds of files in a mode.
const CHARACTER_DEVICE: u32 = 0o020000;
const DIRECTORY: u32 = 0o040000;
const REGULAR_FILE: u32 = 0o100000;
const SYMBOLIC_LINK: u32 = 0o120000;

/// Bytes in a block, and of a directory.
const BLOCK: u64 = 4096;
/// The bytes of `struct stat`.
const STAT: usize = 96;

/// A time as whole seconds and nanoseconds.
fn split(nanoseconds: u64) -> (u64, u32) {
    (nanoseconds / 1_000_000_000, (nanoseconds % 1_000_000_000) as u32)
}

fn stat_of(ino: u32, inode: &Inode) -> [u8; STAT] {
    let (kind, mode, size) = match &inode.node {
        Node::File(content) => (REGULAR_FILE, inode.mode, content.size()),
        Node::Directory { .. } => (DIRECTORY, inode.mode, BLOCK),
        Node::Link(target) => (SYMBOLIC_LINK, 0o777, target.len() as u64),
    };
    let Times { accessed, modified, changed } = inode.times;
    let mut stat = Layout::zeros()
        .u32(0, 1)
        .u32(4, kind | u32::from(mode))
        .u32(8, inode.links)
        .u64(24, size)
        .u32(32, BLOCK as u32)
        .u32(36, size.div_ceil(BLOCK) as u32)
        .u64(88, ino.into());
    for (at, time) in [(40, accessed), (56, modified), (72, changed)] {
        let (seconds, rest) = split(time);
        stat = stat.u64(at, seconds).u32(at + 8, rest);
    }
    stat.0
}

/// What is known of a terminal, which standard streams are.
fn stat_of_stream(open: &Open) -> [u8; STAT] {
    // Numbers of devices: `/dev/tty` and `/dev/tty1`.
    let device = if *open == Open::Stderr { 6 << 8 } else { 5 << 8 };
    Layout::zeros().u32(0, 1).u32(4, CHARACTER_DEVICE | 0o666).u32(8, 1).u32(20, device).u32(32, 4096).0
}

fn put_stat(call: &mut Call<'_>, ino: u32, out: u32) -> Done<i32> {
    let bytes = stat_of(ino, system(call).files.get(ino));
    put(call, out, &bytes)?;
    Ok(0)
}

pub(super) fn stat64(call: &mut Call<'_>, path: u32, out: u32) -> Done<i32> {
    let ino = existing(call, HERE, path, End::Target)?;
    put_stat(call, ino, out)
}

pub(super) fn lstat64(call: &mut Call<'_>, path: u32, out: u32) -> Done<i32> {
    let ino = existing(call, HERE, path, End::Link)?;
    put_stat(call, ino, out)
}

/// A link is not followed; the path may be empty.
const NOFOLLOW: u32 = 0x100;
const EMPTY_PATH: u32 = 0x1000;
/// Flags that change nothing: no mount points are there to be made, and other names for what is there.
const NO_EFFECT: u32 = 0x800;

pub(super) fn newfstatat(call: &mut Call<'_>, at: i32, path: u32, out: u32, flags: u32) -> Done<i32> {
    if flags & !(NOFOLLOW | EMPTY_PATH | NO_EFFECT) != 0 {
        return Err(Errno::Inval.into());
    }
    let last = if flags & NOFOLLOW != 0 { End::Link } else { End::Target };
    if flags & EMPTY_PATH == 0 {
        let ino = existing(call, at, path, last)?;
        return put_stat(call, ino, out);
    }
    // With an empty path it is the descriptor that is meant, whatever it stands for.
    if get::<1>(call, path)? == [0] && at != HERE {
        return fstat64(call, at as u32, out);
    }
    let place = place_or_itself(call, at, path, last)?;
    let ino = place.existing(&system(call).files)?;
    put_stat(call, ino, out)
}

pub(super) fn fstat64(call: &mut Call<'_>, fd: u32, out: u32) -> Done<i32> {
    let open = &system(call).descriptor(fd)?.open;
    match open.ino() {
        Some(ino) => put_stat(call, ino, out),
        None => {
            let bytes = stat_of_stream(open);
            put(call, out, &bytes)?;
            Ok(0)
        }
    }
}

/// What is known of the file system: numbers that the glue of Emscripten gives too, but for those that depend on files.
fn put_statfs(call: &mut Call<'_>, out: u32) -> Done<i32> {
    let bytes = Layout::<72>::zeros()
        .u32(4, BLOCK as u32)
        .u64(8, 1_000_000)
        .u64(16, 500_000)
        .u64(24, 500_000)
        .u64(32, 16_384)
        .u64(40, 16_384)
        .u32(48, 42)
        .u32(56, 255)
        .u32(60, BLOCK as u32)
        .u32(64, 2);
    put(call, out, &bytes.0)?;
    Ok(0)
}

pub(super) fn statfs64(call: &mut Call<'_>, path: u32, _size: u32, out: u32) -> Done<i32> {
    existing(call, HERE, path, End::Target)?;
    put_statfs(call, out)
}

pub(super) fn fstatfs64(call: &mut Call<'_>, fd: u32, _size: u32, out: u32) -> Done<i32> {
    system(call).descriptor(fd)?;
    put_statfs(call, out)
}

pub(super) fn faccessat(call: &mut Call<'_>, at: i32, path: u32, mode: u32, _flags: u32) -> Done<i32> {
    if mode & !7 != 0 {
        return Err(Errno::Inval.into());
    }
    let ino = existing(call, at, path, End::Target)?;
    let bits = [(4, 0o444), (2, 0o222), (1, 0o111)].iter().filter(|(bit, _)| mode & bit != 0);
    may(&system(call).files, ino, bits.fold(0, |bits, (_, more)| bits | more))?;
    Ok(0)
}

fn set_mode(call: &mut Call<'_>, ino: u32, mode: u32) -> Done<i32> {
    let system = change(call);
    let now = system.now();
    system.files.set_mode(ino, mode as u16, now);
    Ok(0)
}

pub(super) fn chmod(call: &mut Call<'_>, path: u32, mode: u32) -> Done<i32> {
    fchmodat(call, HERE, path, mode, 0)
}

pub(super) fn fchmodat(call: &mut Call<'_>, at: i32, path: u32, mode: u32, flags: u32) -> Done<i32> {
    let last = if flags & NOFOLLOW != 0 { End::Link } else { End::Target };
    let ino = existing(call, at, path, last)?;
    set_mode(call, ino, mode)
}

pub(super) fn fchmod(call: &mut Call<'_>, fd: u32, mode: u32) -> Done<i32> {
    match system(call).descriptor(fd)?.open.ino() {
        Some(ino) => set_mode(call, ino, mode),
        None => Ok(0),
    }
}

/// There is one user, whom all files belong to.
pub(super) fn fchown32(call: &mut Call<'_>, fd: u32, _user: u32, _group: u32) -> Done<i32> {
    system(call).descriptor(fd)?;
    Ok(0)
}

pub(super) fn fchownat(
    call: &mut Call<'_>,
    at: i32,
    path: u32,
    _user: u32,
    _group: u32,
    flags: u32,
) -> Done<i32> {
    let last = if flags & NOFOLLOW != 0 { End::Link } else { End::Target };
    let place = place_or_itself(call, at, path, last)?;
    place.existing(&system(call).files)?;
    Ok(0)
}

/// Nanoseconds that stand for the time now, and for the time that there is.
const NOW: u32 = 0x3fff_ffff;
const OMIT: u32 = 0x3fff_fffe;

pub(super) fn utimensat(call: &mut Call<'_>, at: i32, path: u32, times: u32, flags: u32) -> Done<i32> {
    let last = if flags & NOFOLLOW != 0 { End::Link } else { End::Target };
    let place = place_or_itself(call, at, path, last)?;
    let ino = place.existing(&system(call).files)?;
    let now = system(call).now();
    let given = if times == 0 { None } else { Some(get::<32>(call, times)?) };
    let mut set = system(call).files.get(ino).times;
    for (time, from) in [(&mut set.accessed, 0), (&mut set.modified, 16)] {
        let Some(given) = &given else {
            *time = now;
            continue;
        };
        let seconds = i64::from_le_bytes(*given[from..].first_chunk().expect("eight bytes"));
        let rest = u32::from_le_bytes(*given[from + 8..].first_chunk().expect("four bytes"));
        match rest {
            NOW => *time = now,
            OMIT => {}
            // There is no time before 1970, and none that does not fit.
            rest => {
                let seconds = u64::try_from(seconds).unwrap_or(0);
                *time = seconds.saturating_mul(1_000_000_000).saturating_add(rest.into());
            }
        }
    }
    set.changed = now;
    change(call).files.set_times(ino, set);
    Ok(0)
}
