//! A rule that makes any call, and writes what came of it to standard output.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::calls::{Call, How, SLOTS};
use crate::*;

/// Stands for a slot in which nothing is open.
const NOTHING: Fd = Fd::MAX;

static OPEN: [AtomicU32; SLOTS] = [const { AtomicU32::new(NOTHING) }; SLOTS];

/// What was seen so far, so that memory depends on it.
static SEEN: AtomicU32 = AtomicU32::new(0);

#[unsafe(no_mangle)]
extern "C" fn rule_walk(call: u32, a: u32, b: u32, c: u32) {
    say_panics();
    let answer = answer(Call::of(call, [a, b, c])).unwrap_or_else(|error| format!("error {}", error.raw()));
    let seen = answer
        .bytes()
        .fold(SEEN.load(Ordering::Relaxed), |seen, byte| seen.wrapping_mul(31) + u32::from(byte));
    SEEN.store(seen, Ordering::Relaxed);
    let _ = write(FD_STDOUT, format!("{answer}\n").as_bytes());
}

fn answer(call: Call) -> Result<String, Errno> {
    let slot = |slot: usize| OPEN[slot].load(Ordering::Relaxed);
    let done = |()| "done".to_string();
    unsafe {
        match call {
            Call::MakeDirectory(path) => path_create_directory(ROOT, path).map(done),
            Call::RemoveDirectory(path) => path_remove_directory(ROOT, path).map(done),
            Call::Unlink(path) => path_unlink_file(ROOT, path).map(done),
            Call::Rename(old, new) => path_rename(ROOT, old, ROOT, new).map(done),
            Call::Link(old, new) => path_link(ROOT, 0, old, ROOT, new).map(done),
            Call::Symlink(target, path) => path_symlink(target, ROOT, path).map(done),
            Call::ReadLink(path) => {
                let mut bytes = [0; 100];
                let used = path_readlink(ROOT, path, bytes.as_mut_ptr(), 100)?;
                Ok(String::from_utf8_lossy(&bytes[..used]).into_owned())
            }
            Call::Stat { path, follows } => path_filestat_get(ROOT, follows.into(), path).map(shown),
            Call::List(path) => {
                let fd = path_open(ROOT, FOLLOW, path, OFLAGS_DIRECTORY, RIGHTS_FD_READDIR, 0, 0)?;
                let names: Vec<_> = names(fd).into_keys().filter(|name| name != "data").collect();
                fd_close(fd)?;
                Ok(names.join(" "))
            }
            Call::Open { slot, path, how } => {
                let _ = close(slot);
                OPEN[slot].store(open_as(path, how)?, Ordering::Relaxed);
                Ok("open".to_string())
            }
            Call::Close(slot) => close(slot).map(done),
            Call::Read { slot: at, len, offset } => {
                let bytes = match offset {
                    Some(offset) => read_at(slot(at), len, offset)?,
                    None => read(slot(at), len)?,
                };
                let sum = bytes.iter().fold(0u32, |sum, byte| sum.wrapping_mul(31) + u32::from(*byte));
                Ok(format!("{} {sum}", bytes.len()))
            }
            Call::Write { slot: at, len, offset } => {
                let bytes = vec![len as u8 | 1; len];
                let done = match offset {
                    Some(offset) => write_at(slot(at), &bytes, offset)?,
                    None => write(slot(at), &bytes)?,
                };
                Ok(done.to_string())
            }
            Call::Seek { slot: at, offset, whence } => {
                let whence = [WHENCE_SET, WHENCE_CUR, WHENCE_END][usize::from(whence)];
                fd_seek(slot(at), offset, whence).map(|at| at.to_string())
            }
            Call::Resize { slot: at, size } => fd_filestat_set_size(slot(at), size).map(done),
            Call::Size(at) => fd_filestat_get(slot(at)).map(shown),
        }
    }
}

fn close(slot: usize) -> Result<(), Errno> {
    unsafe { fd_close(OPEN[slot].swap(NOTHING, Ordering::Relaxed)) }
}

fn open_as(path: &str, how: How) -> Result<Fd, Errno> {
    let flag = |is: bool, flag: Oflags| if is { flag } else { 0 };
    let oflags = flag(how.creates, OFLAGS_CREAT)
        | flag(how.is_new, OFLAGS_EXCL)
        | flag(how.truncates, OFLAGS_TRUNC)
        | flag(how.is_directory, OFLAGS_DIRECTORY);
    let mut rights = FILE_RIGHTS & !(RIGHTS_FD_READ | RIGHTS_FD_WRITE | RIGHTS_FD_FILESTAT_SET_SIZE);
    if how.reads {
        rights |= RIGHTS_FD_READ;
    }
    if how.writes {
        rights |= RIGHTS_FD_WRITE | RIGHTS_FD_FILESTAT_SET_SIZE;
    }
    let fdflags = if how.appends { FDFLAGS_APPEND } else { 0 };
    unsafe { path_open(ROOT, how.follows.into(), path, oflags, rights, 0, fdflags) }
}

/// The type, and what is the same everywhere.
fn shown(stat: Filestat) -> String {
    match stat.filetype {
        FILETYPE_DIRECTORY => "directory".to_string(),
        FILETYPE_SYMBOLIC_LINK => format!("link of {} bytes, {} names", stat.size, stat.nlink),
        _ => format!("file of {} bytes, {} names", stat.size, stat.nlink),
    }
}
