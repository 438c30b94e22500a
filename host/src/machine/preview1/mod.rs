//! WASI preview 1: the functions of `wasi_snapshot_preview1` on the virtual system.
//!
//! Each function decodes its arguments, has the system do it, and writes what comes of it into the guest's memory. An address
//! outside memory is a trap, as everywhere in the ABI: it is an error of the guest that ought to be found. All other errors are
//! those that the specification names.
//!
//! | file | what |
//! |---|---|
//! | `memory` | reading and writing a guest's memory |
//! | `descriptors` | `fd_*` and `sock_*` |
//! | `paths` | `path_*` |
//! | `process` | arguments, variables, clocks, randomness, `poll_oneoff`, `proc_*` |

mod descriptors;
mod memory;
mod paths;
mod process;

use wasmtime::{Caller, Error, Linker};

use super::host::{Host, Stop, pay};
use super::system::Errno;
use crate::file::HostFault;
pub(super) use descriptors::stdin_left;
use memory::Call;
pub(super) use memory::{change, system};
pub(super) use process::{PROGRAM, args, drawn_random, fill_random, jump, vars};

/// The module name that guests import from.
pub(super) const MODULE: &str = "wasi_snapshot_preview1";

/// A call costs as much as reading so many bytes, besides what it does.
const CALL_BYTES: usize = 1024;

/// Why a function did not do what it was asked for.
pub(super) enum Fail {
    /// The guest is told so.
    Errno(Errno),
    /// The guest does not go on.
    Stop(Error),
}

impl From<Errno> for Fail {
    fn from(errno: Errno) -> Fail {
        Fail::Errno(errno)
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Fail {
        Fail::Stop(error)
    }
}

pub(super) type Done<T = ()> = Result<T, Fail>;

/// Faults that can strike reads, writes, and calls that need room or do not.
pub(super) const READ: [HostFault; 4] =
    [HostFault::ShortRead, HostFault::Eio, HostFault::Eintr, HostFault::Eagain];
pub(super) const WRITE: [HostFault; 6] = [
    HostFault::ShortWrite,
    HostFault::Eio,
    HostFault::Enospc,
    HostFault::Eintr,
    HostFault::Eagain,
    HostFault::Crash,
];
pub(super) const GROW: [HostFault; 3] = [HostFault::Eio, HostFault::Enospc, HostFault::Crash];
pub(super) const CHANGE: [HostFault; 2] = [HostFault::Eio, HostFault::Crash];
pub(super) const LOOK: [HostFault; 1] = [HostFault::Eio];
pub(super) const WAIT: [HostFault; 1] = [HostFault::Eintr];

/// Has a fault strike a call, if one does. Of a read or write that is short, the bytes that are left of `len`.
pub(super) fn struck(call: &mut Call<'_>, name: &str, possible: &[HostFault], len: u32) -> Done<u32> {
    // Of one byte none can be missing.
    let possible = if len < 2 { &possible[possible.len().min(1)..] } else { possible };
    let host = call.data_mut();
    Err(Fail::Errno(match host.struck(name, possible)? {
        None => return Ok(len),
        Some(HostFault::ShortRead | HostFault::ShortWrite) => {
            let lens = if len < 4 { vec![1] } else { vec![1, len / 2, len - 1] };
            return Ok(lens[host.ask_index(lens.len())?]);
        }
        Some(HostFault::Crash) => return Err(Fail::Stop(Stop::Crash.into())),
        Some(HostFault::Enospc) => Errno::Nospc,
        Some(HostFault::Eintr) => Errno::Intr,
        Some(HostFault::Eagain) => Errno::Again,
        Some(_) => Errno::Io,
    }))
}

/// As [`struck`], of a call on a file or directory that moves no bytes.
pub(super) fn may_fail(call: &mut Call<'_>, name: &str, possible: &[HostFault], ino: u32) -> Done {
    if memory::system(call).is_witness(ino) {
        return Ok(());
    }
    struck(call, name, possible, 2).map(drop)
}

/// What a guest is told.
fn told(done: Done) -> wasmtime::Result<u32> {
    match done {
        Ok(()) => Ok(0),
        Err(Fail::Errno(errno)) => Ok(errno as u32),
        Err(Fail::Stop(error)) => Err(error),
    }
}

macro_rules! define {
    ($linker:ident: $($room:ident::$name:ident($($arg:ident: $type:ty),*);)*) => {
        $($linker.func_wrap(MODULE, stringify!($name), |mut call: Caller<'_, Host>, $($arg: $type),*| {
            pay(&mut call, CALL_BYTES)?;
            told($room::$name(&mut call, $($arg),*))
        })?;)*
    };
}

/// Defines all functions of the specification.
pub(super) fn define(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    define! { linker:
        process::args_get(list: u32, bytes: u32);
        process::args_sizes_get(count: u32, size: u32);
        process::environ_get(list: u32, bytes: u32);
        process::environ_sizes_get(count: u32, size: u32);
        process::clock_res_get(clock: u32, out: u32);
        process::clock_time_get(clock: u32, precision: u64, out: u32);
        process::poll_oneoff(subscriptions: u32, events: u32, count: u32, out: u32);
        process::proc_raise(signal: u32);
        process::random_get(out: u32, len: u32);
        process::sched_yield();
        descriptors::fd_advise(fd: u32, offset: u64, len: u64, advice: u32);
        descriptors::fd_allocate(fd: u32, offset: u64, len: u64);
        descriptors::fd_close(fd: u32);
        descriptors::fd_datasync(fd: u32);
        descriptors::fd_fdstat_get(fd: u32, out: u32);
        descriptors::fd_fdstat_set_flags(fd: u32, flags: u32);
        descriptors::fd_fdstat_set_rights(fd: u32, rights: u64, inheriting: u64);
        descriptors::fd_filestat_get(fd: u32, out: u32);
        descriptors::fd_filestat_set_size(fd: u32, size: u64);
        descriptors::fd_filestat_set_times(fd: u32, accessed: u64, modified: u64, flags: u32);
        descriptors::fd_pread(fd: u32, parts: u32, count: u32, offset: u64, out: u32);
        descriptors::fd_prestat_get(fd: u32, out: u32);
        descriptors::fd_prestat_dir_name(fd: u32, path: u32, len: u32);
        descriptors::fd_pwrite(fd: u32, parts: u32, count: u32, offset: u64, out: u32);
        descriptors::fd_read(fd: u32, parts: u32, count: u32, out: u32);
        descriptors::fd_readdir(fd: u32, entries: u32, len: u32, cookie: u64, out: u32);
        descriptors::fd_renumber(fd: u32, to: u32);
        descriptors::fd_seek(fd: u32, offset: i64, whence: u32, out: u32);
        descriptors::fd_sync(fd: u32);
        descriptors::fd_tell(fd: u32, out: u32);
        descriptors::fd_write(fd: u32, parts: u32, count: u32, out: u32);
        descriptors::sock_accept(fd: u32, flags: u32, out: u32);
        descriptors::sock_recv(fd: u32, parts: u32, count: u32, flags: u32, out: u32, flags_out: u32);
        descriptors::sock_send(fd: u32, parts: u32, count: u32, flags: u32, out: u32);
        descriptors::sock_shutdown(fd: u32, how: u32);
        paths::path_create_directory(fd: u32, path: u32, len: u32);
        paths::path_filestat_get(fd: u32, flags: u32, path: u32, len: u32, out: u32);
        paths::path_filestat_set_times(
            fd: u32, flags: u32, path: u32, len: u32, accessed: u64, modified: u64, which: u32
        );
        paths::path_link(
            old_fd: u32, flags: u32, old: u32, old_len: u32, fd: u32, path: u32, len: u32
        );
        paths::path_open(
            fd: u32, flags: u32, path: u32, len: u32, how: u32, rights: u64, inheriting: u64, fd_flags: u32,
            out: u32
        );
        paths::path_readlink(fd: u32, path: u32, len: u32, out: u32, room: u32, used: u32);
        paths::path_remove_directory(fd: u32, path: u32, len: u32);
        paths::path_rename(fd: u32, old: u32, old_len: u32, new_fd: u32, new: u32, new_len: u32);
        paths::path_symlink(target: u32, target_len: u32, fd: u32, path: u32, len: u32);
        paths::path_unlink_file(fd: u32, path: u32, len: u32);
    }
    linker.func_wrap(MODULE, "proc_exit", process::proc_exit)?;
    Ok(())
}
