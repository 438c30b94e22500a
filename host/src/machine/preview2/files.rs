//! `wasi:filesystem`: descriptors, what is read of them and written to them, folders and listings.

use super::super::component::Value;
use super::super::host::pay;
use super::super::operations;
use super::super::preview1::{LOOK, READ, WRITE, change, may_fail, struck, system};
use super::super::system::{
    Errno, FIRST_PLACE, Inode, LISTED_BYTES, Node, Resource, Sink, Source, Times, rights,
};
use super::values::{Args, datetime, nanoseconds, none, some};
use super::{Call, Done, Function, add, broken};

pub(super) const TYPES: &str = "wasi:filesystem/types";

pub(super) const FUNCTIONS: &[Function] = &[
    (
        TYPES,
        "[method]descriptor.read-via-stream",
        "func(self: borrow<descriptor>, offset: filesize) -> result<input-stream, error-code>",
        read_via_stream,
    ),
    (
        TYPES,
        "[method]descriptor.write-via-stream",
        "func(self: borrow<descriptor>, offset: filesize) -> result<output-stream, error-code>",
        write_via_stream,
    ),
    (
        TYPES,
        "[method]descriptor.append-via-stream",
        "func(self: borrow<descriptor>) -> result<output-stream, error-code>",
        append_via_stream,
    ),
    (
        TYPES,
        "[method]descriptor.advise",
        "func(self: borrow<descriptor>, offset: filesize, length: filesize, advice: enum { normal, sequential, random, \
         will-need, dont-need, no-reuse }) -> result<_, error-code>",
        advise,
    ),
    (TYPES, "[method]descriptor.sync-data", SYNC_TYPE, sync_data),
    (TYPES, "[method]descriptor.sync", SYNC_TYPE, sync),
    (
        TYPES,
        "[method]descriptor.get-flags",
        "func(self: borrow<descriptor>) -> result<descriptor-flags, error-code>",
        get_flags,
    ),
    (
        TYPES,
        "[method]descriptor.get-type",
        "func(self: borrow<descriptor>) -> result<descriptor-type, error-code>",
        get_type,
    ),
    (
        TYPES,
        "[method]descriptor.set-size",
        "func(self: borrow<descriptor>, size: filesize) -> result<_, error-code>",
        set_size,
    ),
    (
        TYPES,
        "[method]descriptor.set-times",
        "func(self: borrow<descriptor>, data-access-timestamp: new-timestamp, data-modification-timestamp: new-timestamp) \
         -> result<_, error-code>",
        set_times,
    ),
    (
        TYPES,
        "[method]descriptor.read",
        "func(self: borrow<descriptor>, length: filesize, offset: filesize) -> result<tuple<list<u8>, bool>, error-code>",
        read,
    ),
    (
        TYPES,
        "[method]descriptor.write",
        "func(self: borrow<descriptor>, buffer: list<u8>, offset: filesize) -> result<filesize, error-code>",
        write,
    ),
    (
        TYPES,
        "[method]descriptor.read-directory",
        "func(self: borrow<descriptor>) -> result<directory-entry-stream, error-code>",
        read_directory,
    ),
    (
        TYPES,
        "[method]directory-entry-stream.read-directory-entry",
        "func(self: borrow<directory-entry-stream>) -> result<option<directory-entry>, error-code>",
        read_entry,
    ),
    (
        TYPES,
        "[method]descriptor.stat",
        "func(self: borrow<descriptor>) -> result<descriptor-stat, error-code>",
        stat,
    ),
    (
        TYPES,
        "[method]descriptor.is-same-object",
        "func(self: borrow<descriptor>, other: borrow<descriptor>) -> bool",
        is_same_object,
    ),
    (
        TYPES,
        "[method]descriptor.metadata-hash",
        "func(self: borrow<descriptor>) -> result<metadata-hash-value, error-code>",
        metadata_hash,
    ),
    (TYPES, "filesystem-error-code", "func(err: borrow<error>) -> option<error-code>", error_code),
    (
        "wasi:filesystem/preopens",
        "get-directories",
        "func() -> list<tuple<descriptor, string>>",
        get_directories,
    ),
];

const SYNC_TYPE: &str = "func(self: borrow<descriptor>) -> result<_, error-code>";

/// Bytes that are read or written at once.
const BYTES_MAX: u64 = 1 << 20;

/// The case of `error-code` that an error is, and its name.
pub(super) fn code(errno: Errno) -> (u32, &'static str) {
    match errno {
        Errno::Acces => (0, "access"),
        Errno::Again => (1, "would-block"),
        Errno::Badf => (3, "bad-descriptor"),
        Errno::Busy => (4, "busy"),
        Errno::Exist => (7, "exist"),
        Errno::Fbig => (8, "file-too-large"),
        Errno::Ilseq => (9, "illegal-byte-sequence"),
        Errno::Intr => (11, "interrupted"),
        Errno::Inval => (12, "invalid"),
        Errno::Io => (13, "io"),
        Errno::Isdir => (14, "is-directory"),
        Errno::Loop => (15, "loop"),
        Errno::Mlink => (16, "too-many-links"),
        Errno::Nametoolong => (18, "name-too-long"),
        Errno::Nodev => (19, "no-device"),
        Errno::Noent => (20, "no-entry"),
        // There is no case for too many descriptors.
        Errno::Nomem | Errno::Mfile => (22, "insufficient-memory"),
        Errno::Nospc => (23, "insufficient-space"),
        Errno::Notdir => (24, "not-directory"),
        Errno::Notempty => (25, "not-empty"),
        Errno::Notsock => (27, "unsupported"),
        Errno::Notty => (28, "no-tty"),
        Errno::Range => (30, "overflow"),
        Errno::Perm | Errno::Notcapable => (31, "not-permitted"),
        Errno::Spipe => (34, "invalid-seek"),
        Errno::Xdev => (36, "cross-device"),
    }
}

/// A descriptor that a function is called with.
pub(super) fn descriptor(call: &Call<'_>, args: &mut Args) -> Done<u32> {
    let fd = args.resource()?;
    if system(call).opened(fd).is_some() { Ok(fd) } else { broken("there is no such descriptor") }
}

/// What it stands for.
fn ino(call: &Call<'_>, fd: u32) -> Done<u32> {
    Ok(system(call).descriptor(fd)?.open.ino().ok_or(Errno::Badf)?)
}

fn read_via_stream(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (fd, at) = (descriptor(call, args)?, args.number()?);
    let (ino, _) = system(call).file(fd, rights::FD_READ)?;
    add(call, Resource::Input(Source::File { ino, at })).map(Some)
}

fn write_via_stream(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (fd, at) = (descriptor(call, args)?, args.number()?);
    let (ino, _) = system(call).file(fd, rights::FD_WRITE)?;
    add(call, Resource::Output(Sink::File { ino, at: Some(at) })).map(Some)
}

fn append_via_stream(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let fd = descriptor(call, args)?;
    let (ino, _) = system(call).file(fd, rights::FD_WRITE)?;
    add(call, Resource::Output(Sink::File { ino, at: None })).map(Some)
}

/// Advice has no effect.
fn advise(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (fd, offset, len) = (descriptor(call, args)?, args.number()?, args.number()?);
    operations::advise(call, fd, offset, len)?;
    Ok(None)
}

fn sync_data(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let fd = descriptor(call, args)?;
    operations::sync(call, "descriptor.sync-data", fd, rights::FD_DATASYNC)?;
    Ok(None)
}

fn sync(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let fd = descriptor(call, args)?;
    operations::sync(call, "descriptor.sync", fd, rights::FD_SYNC)?;
    Ok(None)
}

/// Flags of preview 1 and of descriptors that stand for the same: to sync all, data, and what is read.
const SYNCS: [(u16, u32); 3] = [(16, 1 << 2), (2, 1 << 3), (8, 1 << 4)];
const FLAG_READ: u32 = 1;
const FLAG_WRITE: u32 = 1 << 1;
const FLAG_MUTATE: u32 = 1 << 5;

fn get_flags(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let fd = descriptor(call, args)?;
    let descriptor = system(call).descriptor(fd)?;
    let has = |right: u64, flag: u32| if descriptor.rights & right != 0 { flag } else { 0 };
    let syncs = SYNCS.iter().filter(|(flag, _)| descriptor.flags & flag != 0).map(|(_, flag)| flag);
    let flags = has(rights::FD_READ | rights::FD_READDIR, FLAG_READ)
        | has(rights::FD_WRITE, FLAG_WRITE)
        | has(rights::PATH_CREATE_FILE, FLAG_MUTATE);
    Ok(Some(Value::Flags(syncs.fold(flags, |flags, flag| flags | flag))))
}

/// The rights that flags ask for, and the flags of preview 1. Whether entries may change is up to the folder that is open from
/// the start.
pub(super) fn asked_for(flags: u32) -> (u64, u16) {
    let without = |flag: u32, rights: u64| if flags & flag == 0 { rights } else { 0 };
    let missing = without(FLAG_READ, rights::FD_READ)
        | without(FLAG_WRITE, rights::FD_WRITE | rights::FD_ALLOCATE | rights::FD_FILESTAT_SET_SIZE);
    let syncs = SYNCS.iter().filter(|(_, flag)| flags & flag != 0).fold(0, |syncs, (flag, _)| syncs | flag);
    ((rights::DIRECTORY | rights::FILE) & !missing, syncs)
}

fn type_of(inode: &Inode) -> Value {
    let case = match inode.node {
        Node::Directory { .. } => 3,
        Node::Link(_) => 5,
        Node::File(_) => 6,
    };
    Value::Variant(case, None)
}

fn get_type(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let fd = descriptor(call, args)?;
    let ino = ino(call, fd)?;
    Ok(Some(type_of(system(call).files.get(ino))))
}

fn set_size(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (fd, size) = (descriptor(call, args)?, args.number()?);
    operations::set_size(call, "descriptor.set-size", fd, size)?;
    Ok(None)
}

/// Two times that are to be set, and which are, as preview 1 numbers it.
pub(super) fn new_times(args: &mut Args) -> Done<([u64; 2], u32)> {
    let (mut times, mut which) = ([0; 2], 0);
    for (index, time) in times.iter_mut().enumerate() {
        let (case, given) = args.case()?;
        let bits = match (case, given) {
            (0, _) => 0,
            (1, _) => 2,
            (_, given) => {
                let given = given.and_then(|given| nanoseconds(&given));
                *time = given.map_or_else(|| broken("a time is not of the type that it has"), Ok)?;
                1
            }
        };
        which |= bits << (2 * index);
    }
    Ok((times, which))
}

fn set_times(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let fd = descriptor(call, args)?;
    let (times, which) = new_times(args)?;
    system(call).with_rights(fd, rights::FD_FILESTAT_SET_TIMES)?;
    let ino = ino(call, fd)?;
    operations::set_times(call, ino, times, which)?;
    Ok(None)
}

fn read(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (fd, len, at) = (descriptor(call, args)?, args.number()?, args.number()?);
    let (ino, _) = system(call).file(fd, rights::FD_READ)?;
    let size = system(call).files.content(ino)?.size();
    let len = size.saturating_sub(at).min(len).min(BYTES_MAX) as u32;
    let is_witness = system(call).is_witness(ino);
    let len = if is_witness { len } else { struck(call, "descriptor.read", &READ, len)? };
    pay(call, len as usize)?;
    let mut bytes = vec![0; len as usize];
    system(call).files.read(ino, at, &mut bytes)?;
    let is_end = at.saturating_add(len.into()) >= size;
    Ok(Some(Value::Record(vec![Value::Bytes(bytes), Value::Bool(is_end)])))
}

fn write(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (fd, bytes, at) = (descriptor(call, args)?, args.bytes()?, args.number()?);
    let (ino, _) = system(call).file(fd, rights::FD_WRITE)?;
    let len = (bytes.len() as u64).min(BYTES_MAX) as u32;
    let is_witness = system(call).is_witness(ino);
    let len = if is_witness { len } else { struck(call, "descriptor.write", &WRITE, len)? };
    pay(call, len as usize)?;
    if len > 0 {
        change(call).write(ino, at, &bytes[..len as usize])?;
    }
    Ok(Some(Value::Unsigned(len.into())))
}

fn read_directory(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let fd = descriptor(call, args)?;
    // As all that reads a file or directory.
    let ino = match system(call).directory(fd, rights::FD_READDIR)? {
        ino if system(call).is_witness(ino) => ino,
        ino => {
            may_fail(call, "descriptor.read-directory", &LOOK, ino)?;
            ino
        }
    };
    add(call, Resource::Listing { ino, place: FIRST_PLACE }).map(Some)
}

fn read_entry(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let number = args.resource()?;
    let Some(Resource::Listing { ino, place }) = system(call).resource(number) else {
        return broken("there is no such directory-entry-stream");
    };
    let (ino, place) = (*ino, *place);
    may_fail(call, "directory-entry-stream.read-directory-entry", &LOOK, ino)?;
    pay(call, system(call).files.entries(ino)?.len() * LISTED_BYTES)?;
    let files = &system(call).files;
    let Some((place, name, child)) = files.listed(ino, place, 1)?.pop() else { return Ok(Some(none())) };
    let entry = Value::Record(vec![type_of(files.get(child)), Value::text(name)]);
    change(call).set_resource(number, Resource::Listing { ino, place: place + 1 });
    Ok(Some(some(entry)))
}

pub(super) fn stat_of(inode: &Inode) -> Value {
    let Times { accessed, modified, changed } = inode.times;
    let mut fields =
        vec![type_of(inode), Value::Unsigned(inode.links.into()), Value::Unsigned(operations::size(inode))];
    fields.extend([accessed, modified, changed].map(|time| some(datetime(time))));
    Value::Record(fields)
}

fn stat(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let fd = descriptor(call, args)?;
    let ino = ino(call, fd)?;
    Ok(Some(stat_of(system(call).files.get(ino))))
}

fn is_same_object(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let [one, other] = [descriptor(call, args)?, descriptor(call, args)?];
    Ok(Some(Value::Bool(ino(call, one)? == ino(call, other)?)))
}

/// The number of a file or directory, and of the device.
pub(super) fn hash_of(ino: u32) -> Value {
    Value::Record(vec![Value::Unsigned(ino.into()), Value::Unsigned(1)])
}

fn metadata_hash(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let fd = descriptor(call, args)?;
    Ok(Some(hash_of(ino(call, fd)?)))
}

fn error_code(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    match system(call).resource(args.resource()?) {
        Some(Resource::Error { errno, is_of_file: true }) => {
            Ok(Some(some(Value::Variant(code(*errno).0, None))))
        }
        Some(Resource::Error { .. }) => Ok(Some(none())),
        _ => broken("there is no such error"),
    }
}

fn get_directories(call: &mut Call<'_>, _: &mut Args) -> Done<Option<Value>> {
    pay(call, system(call).descriptors.len() * LISTED_BYTES)?;
    let folders = change(call).open_folders()?;
    let pair = |(fd, path): (u32, String)| Value::Record(vec![Value::Handle(fd), Value::text(path)]);
    Ok(Some(Value::List(folders.into_iter().map(pair).collect())))
}
