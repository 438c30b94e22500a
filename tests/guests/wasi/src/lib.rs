//! The functions of WASI preview 1: a rule asserts what the specification says of one, and `tests/tests/wasi.rs` calls each from
//! the start state. There `/data` is descriptor 3, with `file` ("hello"), `dir/inner` and the link `link` to `file`; `/` is
//! descriptor 4, and otherwise empty.

use std::collections::BTreeMap;
use std::io::Write as _;

use wasip1::*;

/// Exports functions as rules, with a message where one panics.
macro_rules! rules {
    ($($(#[$doc:meta])* fn $name:ident() $body:block)*) => {
        $($(#[$doc])*
        #[unsafe(export_name = concat!("rule_", stringify!($name)))]
        #[allow(unused_unsafe, reason = "most of them call what is unsafe")]
        extern "C" fn $name() {
            $crate::say_panics();
            unsafe { $body }
        })*
    };
}

mod calls;
mod descriptors;
mod files;
mod limits;
mod links;
mod listing;
mod opening;
mod poll;
mod process;
mod renaming;

mod walk;

/// The folder with files in it.
const DATA: Fd = 3;
/// The directory `/`.
const ROOT: Fd = 4;
/// A number that no descriptor has.
const CLOSED: Fd = 77;
/// A link at the end of a path is followed.
const FOLLOW: Lookupflags = LOOKUPFLAGS_SYMLINK_FOLLOW;

/// All rights that apply to files, and to directories.
const FILE_RIGHTS: Rights = RIGHTS_FD_DATASYNC
    | RIGHTS_FD_READ
    | RIGHTS_FD_SEEK
    | RIGHTS_FD_FDSTAT_SET_FLAGS
    | RIGHTS_FD_SYNC
    | RIGHTS_FD_TELL
    | RIGHTS_FD_WRITE
    | RIGHTS_FD_ADVISE
    | RIGHTS_FD_ALLOCATE
    | RIGHTS_FD_FILESTAT_GET
    | RIGHTS_FD_FILESTAT_SET_SIZE
    | RIGHTS_FD_FILESTAT_SET_TIMES
    | RIGHTS_POLL_FD_READWRITE;
const DIRECTORY_RIGHTS: Rights = RIGHTS_FD_FDSTAT_SET_FLAGS
    | RIGHTS_FD_SYNC
    | RIGHTS_FD_ADVISE
    | RIGHTS_PATH_CREATE_DIRECTORY
    | RIGHTS_PATH_CREATE_FILE
    | RIGHTS_PATH_LINK_SOURCE
    | RIGHTS_PATH_LINK_TARGET
    | RIGHTS_PATH_OPEN
    | RIGHTS_FD_READDIR
    | RIGHTS_PATH_READLINK
    | RIGHTS_PATH_RENAME_SOURCE
    | RIGHTS_PATH_RENAME_TARGET
    | RIGHTS_PATH_FILESTAT_GET
    | RIGHTS_PATH_FILESTAT_SET_SIZE
    | RIGHTS_PATH_FILESTAT_SET_TIMES
    | RIGHTS_FD_FILESTAT_GET
    | RIGHTS_FD_FILESTAT_SET_TIMES
    | RIGHTS_PATH_SYMLINK
    | RIGHTS_PATH_REMOVE_DIRECTORY
    | RIGHTS_PATH_UNLINK_FILE
    | RIGHTS_POLL_FD_READWRITE;

/// Has a panic written to standard error, where its message is looked for.
fn say_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or("a panic");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let mut line = Vec::new();
        let _ = write!(line, "thread 'main' panicked at {place}:\n{text}\n");
        let parts = [Ciovec { buf: line.as_ptr(), buf_len: line.len() }];
        let _ = unsafe { fd_write(FD_STDERR, &parts) };
    }));
}

/// The call fails with this error.
#[track_caller]
fn fails<T>(result: Result<T, Errno>, expected: Errno) {
    assert_eq!(result.err(), Some(expected));
}

/// The call works.
#[track_caller]
fn works<T>(result: Result<T, Errno>) -> T {
    result.unwrap_or_else(|error| panic!("{error:?}"))
}

/// Opens a file with all rights, as this.
#[track_caller]
fn open(directory: Fd, path: &str, how: Oflags) -> Fd {
    works(unsafe { path_open(directory, FOLLOW, path, how, FILE_RIGHTS, 0, 0) })
}

/// Opens a directory with all rights.
#[track_caller]
fn open_directory(directory: Fd, path: &str) -> Fd {
    let inheriting = DIRECTORY_RIGHTS | FILE_RIGHTS;
    works(unsafe { path_open(directory, FOLLOW, path, OFLAGS_DIRECTORY, DIRECTORY_RIGHTS, inheriting, 0) })
}

/// Opens what is there, and closes it.
fn try_open(directory: Fd, follow: Lookupflags, path: &str, how: Oflags) -> Result<(), Errno> {
    let fd = unsafe { path_open(directory, follow, path, how, 0, 0, 0)? };
    unsafe { fd_close(fd) }
}

fn write(fd: Fd, bytes: &[u8]) -> Result<usize, Errno> {
    unsafe { fd_write(fd, &[Ciovec { buf: bytes.as_ptr(), buf_len: bytes.len() }]) }
}

/// Reads at most so many bytes.
fn read(fd: Fd, len: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; len];
    let got = unsafe { fd_read(fd, &[Iovec { buf: bytes.as_mut_ptr(), buf_len: len }])? };
    bytes.truncate(got);
    Ok(bytes)
}

fn read_at(fd: Fd, len: usize, offset: u64) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; len];
    let got = unsafe { fd_pread(fd, &[Iovec { buf: bytes.as_mut_ptr(), buf_len: len }], offset)? };
    bytes.truncate(got);
    Ok(bytes)
}

fn write_at(fd: Fd, bytes: &[u8], offset: u64) -> Result<usize, Errno> {
    unsafe { fd_pwrite(fd, &[Ciovec { buf: bytes.as_ptr(), buf_len: bytes.len() }], offset) }
}

/// A new file that holds this.
#[track_caller]
fn create(directory: Fd, path: &str, bytes: &[u8]) {
    let fd = open(directory, path, OFLAGS_CREAT | OFLAGS_EXCL);
    assert_eq!(write(fd, bytes), Ok(bytes.len()));
    works(unsafe { fd_close(fd) });
}

/// What a file holds.
#[track_caller]
fn content(directory: Fd, path: &str) -> Vec<u8> {
    let fd = open(directory, path, 0);
    let size = works(unsafe { fd_filestat_get(fd) }).size;
    let bytes = works(read(fd, size as usize + 1));
    works(unsafe { fd_close(fd) });
    bytes
}

/// What a path names, without following a link.
fn stat(directory: Fd, path: &str) -> Result<Filestat, Errno> {
    unsafe { path_filestat_get(directory, 0, path) }
}

/// The bytes of a listing from a cookie on.
fn listed(fd: Fd, len: usize, cookie: u64) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; len];
    let used = unsafe { fd_readdir(fd, bytes.as_mut_ptr(), len, cookie)? };
    bytes.truncate(used);
    Ok(bytes)
}

/// An entry of a listing: where the next one is, the number of the file, its type, the name.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    next: u64,
    ino: u64,
    kind: u8,
    name: String,
}

/// The whole entries at the start of a listing.
fn entries(mut bytes: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<24>() {
        let len = u32::from_le_bytes(*head[16..].first_chunk().unwrap()) as usize;
        let Some((name, rest)) = rest.split_at_checked(len) else { break };
        entries.push(Entry {
            next: u64::from_le_bytes(*head.first_chunk().unwrap()),
            ino: u64::from_le_bytes(*head[8..].first_chunk().unwrap()),
            kind: head[20],
            name: String::from_utf8(name.to_vec()).unwrap(),
        });
        bytes = rest;
    }
    entries
}

/// All entries of a directory by name, but for `.` and `..`, with their types.
#[track_caller]
fn names(directory: Fd) -> BTreeMap<String, u8> {
    let all = entries(&works(listed(directory, 1 << 20, 0))).into_iter();
    all.filter(|entry| ![".", ".."].contains(&&*entry.name)).map(|entry| (entry.name, entry.kind)).collect()
}

/// Functions by the numbers of their arguments, for those that the types of the crate do not have.
mod raw {
    pub(crate) use wasip1::wasi_snapshot_preview1::*;
}

const INVAL: i32 = 28;
